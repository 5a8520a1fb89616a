"""derive_by_hand: three tokens with a pencil, on numbers of the student's own (curriculum B-E2, B-n1, B4, B5).

Four matrices are handed in. Each is made from the one before it, so each earns its points in either of two ways: right
against the truth, or right against what the student wrote one step earlier (error carried forward).
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from course.instances import canonical, instance
from graders.authoring import CheckFailed, Exercise, expect_array, expect_close
from graders.student import Other, Student, StudentError

exercise = Exercise("derive_by_hand", uses=("numpy",))

Matrices = dict[str, np.ndarray]
Step = Callable[..., np.ndarray]

STAGES = ("raw_scores", "scores", "weights", "output")
SHAPES = {"raw_scores": (3, 3), "scores": (3, 3), "weights": (3, 3), "output": (3, 2)}
TOLERANCES = {"raw_scores": 0.005, "scores": 0.005, "weights": 0.005, "output": 0.02}
"""Room for three decimals in the first three matrices and for two in the last."""

AXES = {**dict.fromkeys(STAGES, ("query", "key")), "output": ("token", "column")}
"""What the lesson calls the rows and columns of each matrix."""


# --- what a right answer is -------------------------------------------------------------------------------------------
# A step takes the matrices that it names: Q, K, V and any stage before it. `.mT` transposes each matrix of a stack.


def compare(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Every query against every key."""
    return Q @ K.mT


def scale(raw_scores: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Scores of one size, however wide the keys are (Vaswani et al. 2017, equation 1)."""
    return raw_scores / np.sqrt(K.shape[-1])


def share(scores: np.ndarray) -> np.ndarray:
    """Each row as shares of one whole."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def blend(weights: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Each row's mixture of the values."""
    return weights @ V


exercise.value(
    "raw_scores",
    before="# Every query against every key: 3 × 3 whole numbers, one row per query.",
    solution="raw_scores = Q @ K.T",
    reference=compare,
)
exercise.value(
    "scores",
    before="# The raw scores, scaled: 3 × 3, to 3 decimals.",
    solution="scores = raw_scores / np.sqrt(K.shape[1])",
    reference=scale,
)
exercise.value(
    "weights",
    before="# Each row as shares of one whole: 3 × 3, to 3 decimals.",
    solution="exps = np.exp(scores)\nweights = exps / exps.sum(axis=1, keepdims=True)",
    reference=share,
)
exercise.value(
    "output",
    before="# What each token collects: 3 × 2, to 2 decimals.",
    solution="output = weights @ V",
    reference=blend,
)


@exercise.personal
def notebook(steps: Mapping[str, Step], id: str) -> dict[str, Any]:
    """What the notebook of student `id` defines who takes these `steps`, one per stage, as far as the shapes allow."""
    names: dict[str, Any] = {"STUDENT": id, **numbers(id)}
    for stage in STAGES:
        try:
            names[stage] = take(steps[stage], names)
        except ValueError:
            break
    return names


def numbers(id: str) -> Matrices:
    """The Q, K and V of student `id`."""
    return dict(zip("QKV", (matrix.astype(float) for matrix in instance(id)), strict=True))


def take(step: Step, known: Mapping[str, Any]) -> np.ndarray:
    """The matrix that `step` makes of those of the `known` ones that it names."""
    return step(**{name: known[name] for name in inspect.signature(step).parameters})


# --- how we can tell --------------------------------------------------------------------------------------------------


@exercise.check(points=5, hint="Entry (i, j) is one dot product: row i of Q with row j of K.")
def raw_scores_are_dot_products(student):
    """`raw_scores` compares every query with every key."""
    return judge(student, "raw_scores")


@exercise.check(points=5, hint="Divide each raw score by √d_k. How many numbers are in one key?")
def scores_are_scaled(student):
    """`scores` holds the raw scores, scaled."""
    return judge(student, "scores")


@exercise.check(points=5, hint="In each row: e to the power of each score, divided by the sum of these three.")
def weights_are_shares_of_a_row(student):
    """`weights` holds each row of scores as shares of one whole."""
    return judge(student, "weights")


@exercise.check(points=5, hint="Row i: each value times its weight in row i of the weights, all three added up.")
def output_blends_the_values(student):
    """`output` holds each token's mixture of the values."""
    return judge(student, "output")


@dataclass(frozen=True)
class Work:
    """What a student entered, by stage, beside the numbers `given` that it is to be made from."""

    given: Matrices
    entered: Matrices

    def known(self, stage: str) -> Matrices:
        """What the step to `stage` starts from, as this student has it; a stage that they left out is made for them."""
        known = dict(self.given)
        for name in STAGES[: STAGES.index(stage)]:
            known[name] = self.entered[name] if self.usable(name) else take(exercise.references[name], known)
        return known

    def usable(self, stage: str) -> bool:
        """Whether `stage` was entered in the right shape, so that a later one can be right for it."""
        return stage in self.entered and self.entered[stage].shape == SHAPES[stage]

    def carried(self, stage: str) -> np.ndarray:
        """The right `stage` for what this student entered before it."""
        return take(exercise.references[stage], self.known(stage))

    def true(self, stage: str) -> np.ndarray:
        """The right `stage`."""
        return Work(self.given, {}).carried(stage)

    def right(self, stage: str) -> bool:
        """Whether `stage` is right against the truth."""
        return near(self.entered[stage], self.true(stage), stage)

    def first_wrong(self) -> str:
        """The first of the entered stages that is not right."""
        return next(stage for stage in self.entered if not self.right(stage))

    def follows(self, stage: str) -> bool:
        """Whether `stage` is right for what the student entered before it, and something can be carried from there."""
        return not self.bar(stage) and near(self.entered[stage], self.carried(stage), stage)

    def bar(self, stage: str) -> str:
        """Why nothing can be carried to `stage`; empty where it can."""
        if stage == STAGES[0]:
            return "nothing comes before it"
        last, known, mine = before(stage), self.known(stage), self.entered[stage]
        if not np.isfinite(known[last]).all():
            return f"not all of your {last} are finite"
        if np.ptp(known[last]) <= 2 * TOLERANCES[last]:
            return f"your {last} are all equal"
        if why := self.needs_no_work(stage):
            return why
        width = SHAPES[stage][1]
        repeated = [name for name in COPIES[stage] if near(mine, known[name][:, :width], stage)]
        return f"{stage} is a copy of {repeated[0]}" if repeated else ""

    def needs_no_work(self, stage: str) -> str:
        """Why what follows at `stage` can be had without computing; empty where it cannot."""
        last, known, carried = before(stage), self.known(stage), self.carried(stage)
        wrong = self.usable(last) and not self.right(last)
        if stage == "output" and wrong and (why := self.needs_no_work("weights")):
            return why  # weights that were had for nothing are no start either
        if stage in EXAMPLE and wrong and near(np.sort(known[last], None), EXAMPLE[stage], last):
            return f"your {last} are those of the worked example"
        # Some number is right for both steps, so that nothing tells which was taken.
        if stage == "scores" and alike(known[last], carried, stage):
            return "your raw_scores are almost zero"
        if stage == "weights" and all(shared_among_best(row) for row in carried):
            return "from your scores, each row of weights is shared equally among its best"
        average = np.broadcast_to(known["V"].mean(axis=0), SHAPES["output"])
        return "your weights are almost all equal" if stage == "output" and alike(average, carried, stage) else ""


COPIES = {"scores": (), "weights": ("scores",), "output": ("weights", "V")}
"""What earns nothing by carrying when it is copied into a stage."""

EXAMPLE = {"scores": np.sort([1.0, 0, 1, 0, 1, 1, 1, 1, 2])}
EXAMPLE["weights"] = EXAMPLE["scores"] / np.sqrt(2)
"""The entries, by size, from which the lesson's worked example goes on to each stage: its numbers can be read there."""


def before(stage: str) -> str:
    """The stage that `stage` is made from."""
    return STAGES[STAGES.index(stage) - 1]


def near(mine: np.ndarray, other: np.ndarray, stage: str) -> bool:
    """Equal to the decimals that `stage` is asked for."""
    # The small change is for decimals that no float can hold: 0.41 is to be within 0.005 of 0.405.
    return mine.shape == other.shape and bool(np.all(np.abs(mine - other) <= TOLERANCES[stage] + 1e-9))


def alike(one: np.ndarray, other: np.ndarray, stage: str) -> bool:
    """Whether some number would be near both."""
    return bool(np.all(np.abs(one - other) <= 2 * TOLERANCES[stage]))


def shared_among_best(row: np.ndarray) -> bool:
    """Whether a row of weights gives equal shares to its one, two or three best, and nothing to the others."""
    ordered = -np.sort(-row)
    return any(alike(ordered, np.repeat([1 / best, 0], [best, 3 - best]), "weights") for best in (1, 2, 3))


def judge(student: Student, stage: str) -> str:
    """What was carried, in words, where `stage` earns its points; else a CheckFailed."""
    declared = declared_id(student)
    first, *others = ids_of(student, declared)
    student.read_as(first)
    entered = attempts(student, stage)
    if not first:
        raise CheckFailed("STUDENT is not set, so there are no numbers to compare with", hint="See the first cell.")
    if stage == STAGES[-1]:
        note_copies(student, first, entered)
    for work in (Work(numbers(id), entered) for id in (first, *others)):
        if work.right(stage):
            return ""
        if work.follows(stage):
            return carried(work, stage)
    if declared not in ("", first) and fits(Work(numbers(declared), entered), stage):
        raise another_id(stage)
    raise off(Work(numbers(first), entered), stage)


def ids_of(student: Student, declared: str) -> list[str]:
    """Whose numbers count: the roster's, and before it a declared id that is listed as an alias of it."""
    roster = canonical(student.id) or declared
    if declared == roster or declared not in student.aliases:
        return [roster]
    student.note("alias", f"STUDENT is {declared!r}, an alias of {roster!r}: its numbers count")
    return [declared, roster]


def note_copies(student: Student, id: str, entered: Matrices) -> None:
    """Tell the instructor where weights and output are right for another student's numbers, and not for one's own."""
    stages = STAGES[2:]
    own = Work(numbers(id), entered)
    if any(stage not in entered or own.right(stage) for stage in stages):
        return
    for other in student.classmates:
        if all(Work(numbers(canonical(other)), entered).right(stage) for stage in stages):
            found = f"weights and output are not right for {id}, but for the numbers of {other}"
            student.note("another-students-numbers", found, "warning")


def carried(work: Work, stage: str) -> str:
    """Why `stage` earns its points although it is not right."""
    first = work.first_wrong()
    cause = "they are rounded" if first == stage else f"{first} went wrong first"
    return f"full marks, carried: this is right for your own {before(stage)} ({cause})"


def fits(work: Work, stage: str) -> bool:
    """Whether `stage` would earn its points."""
    return work.right(stage) or work.follows(stage)


def declared_id(student: Student) -> str:
    """The id that the notebook gives as its author's; empty where it gives none."""
    try:
        declared = student.read("STUDENT")
    except StudentError:
        return ""
    return canonical(str(declared)) if isinstance(declared, (str, int)) else ""


MOST_ENTRIES = 100
"""Of an earlier stage from which ideas are tried: a step may make of it what is many times as large."""


def attempts(student: Student, stage: str) -> Matrices:
    """What the student entered for the stages up to `stage`: those before it as far as they are a few numbers."""
    entered: Matrices = {}
    for name in STAGES[: STAGES.index(stage)]:
        with contextlib.suppress(CheckFailed):
            entered[name] = attempt(student, name)
    few = {name: matrix for name, matrix in entered.items() if matrix.size <= MOST_ENTRIES}
    return few | {stage: attempt(student, stage)}


def attempt(student: Student, stage: str) -> np.ndarray:
    """What the student entered for `stage`: numbers in rows, however they are written."""
    try:
        value = student.read(stage)
    except StudentError as error:
        if error.cell:
            raise CheckFailed(
                f"{stage} has no value: its cell raised {error.cell}; the stages after it are judged without it"
            ) from None
        value = None
    if value is None or isinstance(value, Other) or (isinstance(value, (str, list, tuple)) and not len(value)):
        raise CheckFailed(f"{stage} is not attempted; the stages after it are judged without it")
    return expect_array(value, name=stage)


def another_id(stage: str) -> CheckFailed:
    """The numbers fit the id that the notebook declares, and not the one on the roster: no silent zero."""
    return CheckFailed(
        f"{stage} is right for another id: STUDENT in this notebook is not the id on the roster, and the numbers are "
        "those of the id in the notebook; a person should look at this",
        hint="Is STUDENT your own id, as your instructor lists it?",
        finding="another-id",
    )


def off(work: Work, stage: str) -> CheckFailed:
    """What is off in `stage`, which step went wrong first, and which idea explains it."""
    bar = work.bar(stage)
    expected = work.true(stage) if bar else work.carried(stage)
    try:
        tolerance, place = TOLERANCES[stage] + 1e-9, partial(in_words, stage)
        expect_close(work.entered[stage], expected, name=stage, tolerance=tolerance, place=place)
    except CheckFailed as failure:
        failure.what += f"; {story(work, stage, bar)}"
        failure.misconception = idea_behind(work, stage)
        return failure
    raise AssertionError(f"{stage} is near what is expected and earns nothing")


def in_words(stage: str, index: tuple[int, ...]) -> str:
    """An entry of `stage` as the lesson calls it: counted from 1, a query and a key, or a token and a column."""
    row, column = AXES[stage]
    return f"{row} {index[0] + 1}, {column} {index[1] + 1}"


def story(work: Work, stage: str, bar: str) -> str:
    """Which step went wrong first, and why nothing is carried."""
    first = work.first_wrong()
    if first == stage:
        return "this is the step that went wrong first"
    if bar:
        return f"{first} went wrong first, and nothing is carried because {bar}"
    return f"{first} went wrong first, and this is not what follows from your own {before(stage)} either"


def idea_behind(work: Work, stage: str) -> str:
    """The misconception that makes the student's `stage` of what they had before it, or of the truth; empty if none."""
    if near(work.entered[stage], work.carried(stage), stage):
        return ""  # it follows from the stage before, and only a guard bars it
    # What they had before may have any shape here.
    theirs = {**work.known(stage), **{name: work.entered[name] for name in work.entered if name != stage}}
    for known in (theirs, work.known(stage), Work(work.given, {}).known(stage)):
        for wrong in exercise.misconceptions.values():
            if wrong.replaces == stage and gives(wrong.answer, known, work.entered[stage], stage):
                return wrong.id
    return ""


def gives(step: Step, known: Matrices, mine: np.ndarray, stage: str) -> bool:
    """Whether `step` makes `mine` of what is `known`, as far as the shapes allow it."""
    with contextlib.suppress(ValueError, AttributeError):  # a number has no rows, and NumPy's no transpose
        return near(mine, take(step, known), stage)
    return False


# --- what people write instead ----------------------------------------------------------------------------------------


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def exchanges_queries_and_keys(Q, K):
    """You exchanged queries and keys: rows belong to queries, so entry (i, j) is query i with key j."""
    return K @ Q.mT


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def takes_queries_for_keys(Q):
    """You compared the queries with themselves; each query is compared with the keys."""
    return Q @ Q.mT


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def takes_keys_for_queries(K):
    """You compared the keys with themselves; it is the queries that ask."""
    return K @ K.mT


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def compares_with_values(Q, V):
    """You compared the queries with the values; keys are for matching, values are only what is handed over."""
    return Q @ V.mT


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def reshapes_the_keys(Q, K):
    """You reshaped K to 2 × 3; a transpose turns rows into columns, a reshape deals the numbers out anew."""
    return Q @ K.reshape(*K.shape[:-2], 2, 3)


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def scales_too_early(Q, K):
    """You divided by √d_k already here; the raw scores are the plain dot products, whole numbers."""
    return compare(Q, K) / np.sqrt(2)


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def multiplies_entry_by_entry(Q, K):
    """You multiplied Q and K entry by entry; a score is a dot product, one number for each pair of rows."""
    return Q * K


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def multiplies_columns_of_queries(Q, K):
    """You computed QᵀK, which compares features; QKᵀ compares tokens, row by row."""
    return Q.mT @ K


@exercise.misconception(replaces="raw_scores", first_fails=raw_scores_are_dot_products)
def multiplies_columns_of_keys(Q, K):
    """You computed KᵀQ, which compares features; QKᵀ compares tokens, row by row."""
    return K.mT @ Q


@exercise.misconception(replaces="scores", first_fails=scores_are_scaled)
def forgets_to_scale(raw_scores):
    """You left the raw scores as they were: divide each by √d_k."""
    return raw_scores


@exercise.misconception(replaces="scores", first_fails=scores_are_scaled)
def divides_by_d_k(raw_scores):
    """You divided by d_k; it is the square root of d_k that brings the scores to one size."""
    return raw_scores / 2


@exercise.misconception(replaces="scores", first_fails=scores_are_scaled)
def multiplies_by_root_d_k(raw_scores):
    """You multiplied by √d_k; wide keys make large scores, so divide."""
    return raw_scores * np.sqrt(2)


@exercise.misconception(replaces="scores", first_fails=scores_are_scaled)
def divides_by_root_of_tokens(raw_scores):
    """You divided by √T, the root of the number of tokens; what counts is d_k, how many numbers a key holds."""
    return raw_scores / np.sqrt(3)


@exercise.misconception(replaces="scores", first_fails=scores_are_scaled)
def divides_by_tokens(raw_scores):
    """You divided by T, the number of tokens; what counts is √d_k, from how many numbers a key holds."""
    return raw_scores / 3


@exercise.misconception(replaces="scores", first_fails=scores_are_scaled)
def subtracts_the_largest(raw_scores):
    """You subtracted each row's largest score; that keeps exp small and belongs to the softmax, not to the scores."""
    scores = raw_scores / np.sqrt(2)
    return scores - scores.max(axis=-1, keepdims=True)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def softmax_over_columns(scores):
    """You made each column sum to 1; a row belongs to one query, and it is the row that is shared out."""
    return share(scores.mT).mT


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def softmax_over_everything(scores):
    """You shared one whole among all nine entries; each row is a whole of its own."""
    return np.exp(scores) / np.exp(scores).sum(axis=(-2, -1), keepdims=True)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def transposes_the_weights(scores):
    """You wrote each query's weights as a column; they are the row of that query."""
    return share(scores).mT


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def divides_without_exp(scores):
    """You divided each score by the sum of its row; softmax takes e to the power of the scores first."""
    return scores / scores.sum(axis=-1, keepdims=True)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def exp_without_dividing(scores):
    """You took e to the power of the scores and stopped; divide each row by its sum, so that it makes one whole."""
    return np.exp(scores)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def powers_of_ten(scores):
    """You took powers of 10 where powers of e belong; on many calculators the two keys are neighbours."""
    return 10.0**scores / (10.0**scores).sum(axis=-1, keepdims=True)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def leaves_scores_as_weights(scores):
    """You used the scores as weights; softmax turns them into positive shares of one whole."""
    return scores


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def takes_only_the_best(scores):
    """You gave everything to the best match; softmax is soft, and every token gets some weight."""
    return (scores == scores.max(axis=-1, keepdims=True)).astype(float)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def shares_equally(scores):
    """You gave every token the same weight; a higher score takes a larger share."""
    return np.full_like(scores, 1 / 3)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def looks_only_at_itself(scores):
    """You let every token look at itself alone; the scores decide who is looked at."""
    return np.zeros_like(scores) + np.eye(3)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def squashes_each_score(scores):
    """You squashed each score on its own, with a sigmoid; softmax lets the scores of a row compete for one whole."""
    return 1 / (1 + np.exp(-scores))


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def softmax_of_raw_scores(raw_scores):
    """You took the softmax of the raw scores; it is the scaled ones that are shared out."""
    return share(raw_scores)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def scales_after_the_softmax(raw_scores):
    """You scaled after the softmax; the division by √d_k comes before it, or the rows no longer make one whole."""
    return share(raw_scores) / np.sqrt(2)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def scales_twice(scores):
    """You divided by √d_k once more; the scores were scaled already."""
    return share(scores / np.sqrt(2))


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def hides_later_tokens(scores):
    """You applied a causal mask; nothing is hidden here, every token sees all three."""
    seen = np.exp(scores) * np.tri(3)
    return seen / seen.sum(axis=-1, keepdims=True)


@exercise.misconception(replaces="weights", first_fails=weights_are_shares_of_a_row)
def drops_later_weights(scores):
    """You set the weights of later tokens to 0; nothing is hidden here, and a row must still sum to 1."""
    return share(scores) * np.tri(3)


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def takes_keys_for_values(weights, K):
    """You mixed the keys; keys are for matching, values are what is handed over."""
    return weights @ K


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def takes_queries_for_values(weights, Q):
    """You mixed the queries; what is handed over are the values."""
    return weights @ Q


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def mixes_by_columns(weights, V):
    """You read the weights down their columns; row i holds the weights of token i."""
    return weights.mT @ V


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def mixes_by_scores(scores, V):
    """You mixed the values by the scores; it is the weights that say how much of each is taken."""
    return scores @ V


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def mixes_by_raw_scores(raw_scores, V):
    """You mixed the values by the raw scores; it is the weights that say how much of each is taken."""
    return raw_scores @ V


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def averages_all_values(weights, V):
    """You averaged the values evenly; each counts by its weight."""
    return 0 * (weights @ V) + V.mean(axis=-2, keepdims=True)


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def repeats_the_values(weights, V):
    """You repeated V; each token's output is a mixture of all three values."""
    return 0 * (weights @ V) + V


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def takes_the_best_value(weights, V):
    """You took the value with the largest weight whole; the output is a blend of all of them."""
    return takes_only_the_best(weights) @ V


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def keeps_to_its_own_value(weights, V):
    """You weighted each token's own value and left the others out; add up all three, each times its weight."""
    return (weights * np.eye(3)) @ V


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def divides_by_the_tokens(weights, V):
    """You divided the sum by the number of tokens; the weights already make one whole."""
    return weights @ V / 3


@exercise.misconception(replaces="output", first_fails=output_blends_the_values)
def rounds_too_early(weights, V):
    """You rounded the weights before you used them; keep three decimals at least until the last step."""
    return np.round(weights, 2) @ V
