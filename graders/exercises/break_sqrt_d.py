"""What happens without √d_k: measured by the student's own function, predicted before, claimed after.

Every hidden input is built so that its statistics tell the catalogued mistakes apart: one-hot rows beside rows that
nearly are, keys that are popular with all queries, rows whose gradients differ by an order of magnitude.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from graders.authoring import TOLERANCE, CheckFailed, Exercise, expect_array, expect_unchanged, fields
from graders.exercises import _score_inputs as inputs
from graders.exercises._score_faults import FAULTS, Run, norms, with_parts
from graders.exercises._score_inputs import Case
from graders.student import Student, StudentError

exercise = Exercise("break_sqrt_d", uses=("numpy", "torch"))

Numbers = dict[str, float]
FIELDS = ("std", "one_hot", "entropy", "grad_median")
CLAIMS = ("one_hot_unscaled", "entropy_unscaled", "entropy_scaled", "gradient_ratio")


@exercise.reference
def score_statistics(
    q: Float[np.ndarray, "T d_k"], k: Float[np.ndarray, "T d_k"], g: Float[np.ndarray, "T T"], scaled: bool
) -> dict[str, float]:
    """How sharp attention is on these queries and keys, and how much gradient its scores receive.

    The scores are q kᵀ, divided by √d_k if `scaled`; the weights are their softmax over each row. `g` is the gradient
    of some loss with respect to the weights, so the loss to differentiate is the sum of weights · g.

    Returns a dict of four numbers:
    "std"          the standard deviation of all scores, after any division (divide by n or by n − 1, as you like)
    "one_hot"      the share of rows, 0 to 1, with a weight above 0.99
    "entropy"      the mean over the rows of −Σ w ln w, in nats; a weight of 0 adds 0
    "grad_median"  the median over the rows of the length (Euclidean norm) of the row's gradient of the loss with
                   respect to those scores, the divided ones if `scaled` (either median of an even number)

    q, k and g are float32, float64 or integers and stay as they are. All four are finite for all scores within ±1000.

    Source: Vaswani et al. (2017), section 3.2.1.
    """
    scores = q @ k.T / (np.sqrt(q.shape[-1]) if scaled else 1)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    log_weights = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    weights = np.exp(log_weights)
    # A softmax hands back w_i (g_i − Σ_j w_j g_j): where one weight is 1 and the rest are 0, every factor is.
    gradient = weights * (g - (weights * g).sum(axis=-1, keepdims=True))
    return {
        "std": float(scores.std()),
        "one_hot": float((weights.max(axis=-1) > 0.99).mean()),
        # ln w is taken from the scores: the logarithm of a weight that underflowed is −∞, and 0 · −∞ is NaN.
        "entropy": float(-(weights * log_weights).sum(axis=-1).mean()),
        "grad_median": float(np.median(np.linalg.norm(gradient, axis=-1))),
    }


exercise.value(
    "predictions",
    before="""
# Before the run: T = 64 queries and keys of d_k = 512 random numbers each. What do you expect? A dict of four numbers:
# predictions = {
#     "one_hot_unscaled": …,  share of rows, 0 to 1, with a weight above 0.99 when the scores are not divided
#     "entropy_unscaled": …,  mean entropy of a row in nats, not divided (evenly spread over 64 keys: ln 64 = 4.16)
#     "entropy_scaled": …,    the same with the division by √d_k
#     "gradient_ratio": …,    grad_median with the division, divided by grad_median without it
# }
# Any finite number counts here. Being wrong costs nothing; it is what makes the result worth remembering.
""".strip("\n"),
    solution="""
predictions = {"one_hot_unscaled": 0.5, "entropy_unscaled": 1.0, "entropy_scaled": 4.0, "gradient_ratio": 10.0}
""".strip("\n"),
    reference={"one_hot_unscaled": 0.5, "entropy_unscaled": 1.0, "entropy_scaled": 4.0, "gradient_ratio": 10.0},
)

exercise.value(
    "claims",
    before="""
# After the run: `claims`, a dict with the same four names. Measure each number with your score_statistics, as a mean
# over ten fresh draws (no fixed seed) of normal q, k (64, 512) and g (64, 64). For the ratio, divide the mean of
# grad_median with the division by its mean without it.
""".strip("\n"),
    solution="""
rng = np.random.default_rng()
draws = [[rng.standard_normal(shape) for shape in ((64, 512), (64, 512), (64, 64))] for _ in range(10)]
raw, divided = ([score_statistics(q, k, g, scaled) for q, k, g in draws] for scaled in (False, True))


def mean(runs, name):
    return np.mean([run[name] for run in runs])


claims = {
    "one_hot_unscaled": mean(raw, "one_hot"),
    "entropy_unscaled": mean(raw, "entropy"),
    "entropy_scaled": mean(divided, "entropy"),
    "gradient_ratio": mean(divided, "grad_median") / mean(raw, "grad_median"),
}
""".strip("\n"),
    reference={"one_hot_unscaled": 0.59, "entropy_unscaled": 0.18, "entropy_scaled": 3.69, "gradient_ratio": 60.0},
)


# --- how we can tell --------------------------------------------------------------------------------------------------


@exercise.check(points=1)
def predicted_first(student: Student) -> str:
    """`predictions` holds four finite numbers; any will do."""
    predicted = numbers(student.read("predictions"), CLAIMS, what="predictions")
    measured = dict.fromkeys(CLAIMS, "nothing yet")
    with contextlib.suppress(CheckFailed, StudentError):
        claims = numbers(student.read("claims"), CLAIMS, what="claims")
        measured = {name: f"{claim:.3g}" for name, claim in claims.items()}
    return "you predicted, and then measured: " + ", ".join(
        f"{name} {predicted[name]:.3g} and {measured[name]}" for name in CLAIMS
    )


def numbers(value: Any, names: Sequence[str], *, what: str) -> dict[str, float]:
    """The finite numbers of `value` under `names`."""
    entries = fields(value, names, what=what)
    for name in [name for name, entry in entries.items() if entry is None]:
        raise CheckFailed(f"{name} in {what} is None, not a number", got="None", hint="Each name needs a number.")
    found = {name: number(entry, name) for name, entry in entries.items()}
    for name, entry in found.items():
        if not np.isfinite(entry):
            raise CheckFailed(f"{name} in {what} is not a finite number", got=entry)
    return found


def number(value: Any, name: str) -> float:
    """`value` as one number, be it a float, an array or a tensor of one entry."""
    array = expect_array(value, name=name)
    if array.size != 1:
        raise CheckFailed(f"{name} is not one number but {array.size}", got=array.shape, expected="one number")
    return float(array.reshape(()))


def statistics(student: Student, case: Case) -> dict[str, float]:
    """The four numbers that the student's function gives for `case`, finite or not."""
    value = student.score_statistics(*case)
    return {name: number(entry, name) for name, entry in fields(value, FIELDS, what="what you return").items()}


# Float32 work leaves about 1e-7 · |g| in a row whose gradient vanishes; ln(w + 1e-12) moves an entropy by 1e-10.
FLOORS = {"std": 0.0, "one_hot": 1e-6, "entropy": 1e-5, "grad_median": 1e-6}
# What vanishes for one reason is no evidence for another, so that for a name only rounding is let pass.
ROUNDING = dict.fromkeys(FIELDS, 1e-9)


def near(name: str, got: float, values: Sequence[float], floors: Mapping[str, float] = FLOORS) -> bool:
    """Whether `got` is one of `values`; NaN is NaN."""
    return any(
        abs(got - value) <= floors[name] + TOLERANCE * abs(value) or (got != got and value != value) for value in values
    )


def forms(name: str, value: float, case: Case) -> list[float]:
    """The value, and for a standard deviation the value with the other degrees of freedom."""
    n = case.g.size
    return [value, value * np.sqrt(n / max(n - 1, 1))] if name == "std" else [value]


def accepted(name: str, case: Case) -> list[float]:
    """All that the contract allows for `name`: either standard deviation, any median of an even number."""
    values = forms(name, score_statistics(*case)[name], case)
    if name == "grad_median":
        ordered = np.sort(norms(Run(*case).G))
        values += [float(ordered[(len(case.q) - 1) // 2]), float(ordered[len(case.q) // 2])]
    return values


def judge(student: Student, cases: Sequence[Case], names: Sequence[str], hint: str, *, paid: bool = False) -> None:
    """The numbers called `names` are right in all `cases`.

    With `paid`, a mistake for which another check takes the marks is let pass here: one mistake costs once.
    """
    given = [_in_one_form(student, statistics(student, case), case) for case in cases]
    for name in names:
        wrong = [
            (got, case)
            for got, case in zip(given, cases, strict=True)
            if not near(name, got[name], accepted(name, case))
        ]
        idea = named_by(name, given, cases) if wrong else ""
        if wrong and not (paid and idea and exercise.misconceptions[idea].first_fails in JUDGES.values()):
            raise _off(name, *wrong[0], hint, idea)


def _in_one_form(student: Student, found: Numbers, case: Case) -> Numbers:
    """`found`, once each right number of it is noted in the form that the reference has, for the diagnosis."""
    right = {name: accepted(name, case) for name in FIELDS}
    student.read_as({name: right[name][0] if near(name, found[name], right[name]) else found[name] for name in FIELDS})
    return found


JUDGES = {
    "std": "std_of_the_scores",
    "one_hot": "share_of_one_hot_rows",
    "entropy": "mean_row_entropy",
    "grad_median": "median_row_gradient",
}
"""The check that takes the marks for each number."""


def _off(name: str, got: dict[str, float], case: Case, hint: str, misconception: str) -> CheckFailed:
    return CheckFailed(
        f"{name} is {'off' if np.isfinite(got[name]) else 'not finite'} where scaled is {case.scaled}",
        expected=accepted(name, case)[0],
        got=got[name],
        hint=hint,
        misconception=misconception,
    )


def named_by(name: str, given: Sequence[Numbers], cases: Sequence[Case]) -> str:
    """The catalogued answer that gives these values of `name`; of several, the one that agrees in most other numbers.

    Number by number, because the others may rightly differ: another median, other degrees of freedom, a tuple.
    """
    found: dict[str, tuple[int, bool]] = {}
    for wrong in exercise.misconceptions.values():
        if wrong.replaces == "score_statistics":
            answers = answers_of(wrong.answer, cases)
            if answers and agree(name, given, answers, cases) and _borne_out(name, given, answers, cases):
                alike = sum(agree(other, given, answers, cases) for other in FIELDS)
                # Of two that are as much alike, the one that says less.
                found[wrong.id] = alike, set(wrong.faults) == {name}
    return max(found, key=lambda id: found[id], default="")


def _borne_out(name: str, given: Sequence[Numbers], answers: Sequence[Numbers], cases: Sequence[Case]) -> bool:
    """Whether an idea that gives the same `name` is more than a chance: a count needs a second number that is alike."""
    return name != "one_hot" or any(agree(other, given, answers, cases) for other in ("entropy", "grad_median"))


def answers_of(answer: Any, cases: Sequence[Case]) -> list[dict[str, float]]:
    """What `answer` gives for the cases; nothing where it cannot, as with integers divided in place."""
    with np.errstate(all="ignore"), contextlib.suppress(TypeError):
        return [answer(*case.copy()) for case in cases]
    return []


def agree(
    name: str, given: Sequence[dict[str, float]], others: Sequence[dict[str, float]], cases: Sequence[Case]
) -> bool:
    """Whether both have the same `name` in all cases."""
    triples = zip(given, others, cases, strict=True)
    return all(near(name, got[name], forms(name, other[name], case), ROUNDING) for got, other, case in triples)


@exercise.accepts("score_statistics")
def is_right(value: Any, *arguments: Any) -> bool:
    """Whether `value` is one of the answers that the contract allows for these arguments."""
    found = fields(value, FIELDS, what="it")
    return all(near(name, number(found[name], name), accepted(name, Case(*arguments))) for name in FIELDS)


@exercise.check(points=3)
def std_of_the_scores(student: Student, rng: np.random.Generator) -> None:
    """`std` is the standard deviation of all scores, divided by √d_k where `scaled` says so."""
    cases = [inputs.plain(rng, 7, 5, scaled=False), inputs.plain(rng, 9, 11, scaled=True)]
    judge(student, cases, ["std"], "std of what: scores or weights? And divided by the root of which size, when?")


@exercise.check(points=2)
def share_of_one_hot_rows(student: Student, rng: np.random.Generator) -> None:
    """`one_hot` is the share of rows that have a weight above 0.99."""
    cases = [inputs.one_hot_rows(rng, 13, 14, scaled=False), inputs.one_hot_rows(rng, 11, 17, scaled=True)]
    judge(student, cases, ["one_hot"], "Take each row's largest weight first: one number per query.")


@exercise.check(points=3)
def mean_row_entropy(student: Student, rng: np.random.Generator) -> None:
    """`entropy` is the mean over the rows of −Σ w ln w, in nats."""
    cases = [inputs.popular_keys(rng, 9, 13, scaled=False), inputs.popular_keys(rng, 11, 15, scaled=True).single()]
    judge(student, cases, ["entropy"], "A row that is evenly spread over n keys has entropy ln n.")


@exercise.check(points=3)
def median_row_gradient(student: Student, rng: np.random.Generator) -> None:
    """`grad_median` is the median over the rows of the norm of the loss's gradient with respect to the scores."""
    cases = [inputs.mixed_rows(rng, 9, 13, scaled=False), inputs.mixed_rows(rng, 11, 16, scaled=True).single()]
    judge(student, cases, ["grad_median"], "How does w_i change with the score s_j, for j = i and for j ≠ i?")


@exercise.check(points=2)
def saturated_rows_have_an_entropy(student: Student, rng: np.random.Generator) -> None:
    """Rows whose other weights underflow to 0 have an entropy of 0, not NaN."""
    cases = [inputs.saturated(rng, 6, 9, scaled=False), inputs.saturated(rng, 8, 16, scaled=True)]
    judge(student, cases, FIELDS[1:], "What is 0 · ln 0 in floating point, and what should it be here?", paid=True)


@exercise.check(points=1)
def scores_of_a_thousand(student: Student, rng: np.random.Generator) -> None:
    """All four numbers are finite and right for scores up to ±1000."""
    cases = [inputs.far_out(rng, 8, 9, scaled=False), inputs.far_out(rng, 6, 16, scaled=True)]
    hint = "What is exp(1000) in float64, and what may be taken off a whole row beforehand?"
    judge(student, cases, FIELDS, hint, paid=True)


@exercise.check(points=1)
def arguments_stay_as_they_are(student: Student, rng: np.random.Generator) -> None:
    """q, k and g are the same after the call, and may be whole numbers."""
    case = inputs.plain(rng, 5, 8, scaled=True)
    seen = student.observe("score_statistics", *case)
    try:
        expect_unchanged(case[:3], seen.arguments[:3], names=("q", "k", "g"))
    except CheckFailed as failure:
        left = seen.arguments[0] if seen.arguments else None
        same_shape = isinstance(left, np.ndarray) and left.shape == case.q.shape
        divided = same_shape and np.allclose(left * np.sqrt(case.q.shape[1]), case.q)
        failure.misconception = "divides_in_place" if divided else ""
        raise
    case = inputs.whole_numbers(rng, 6, 7, scaled=True)
    judge(student, [case], FIELDS, "An array of integers cannot hold halves: divide into a new array.", paid=True)


BANDS = {
    "one_hot_unscaled": (0.48, 0.70),
    "entropy_unscaled": (0.12, 0.25),
    "entropy_scaled": (3.6, 3.8),
    "gradient_ratio": (1.0, np.inf),
}
"""Where the mean of ten fresh draws lies, whoever draws them; single draws scatter far more (CURRICULUM, decisions)."""


def expect_claim(student: Student, rng: np.random.Generator, name: str) -> None:
    """The claim lies in its band, and so does what the student's own function measures on ten fresh draws."""
    claim = numbers(student.read("claims"), CLAIMS, what="claims")[name]
    if not _inside(claim, name):
        raise CheckFailed(
            f"your claim for {name} does not hold on fresh draws",
            got=claim,
            hint="Measure again with T = 64 and d_k = 512, as a mean over ten draws.",
            misconception=named_by_claim(name, claim),
        )
    measured = MEASURES[name](student, rng, 1.0)
    if not _inside(measured, name):
        raise CheckFailed(
            f"your own function does not bear out your claim for {name}: it measures something else on fresh draws",
            got=f"{claim:.3g} claimed, {measured:.3g} measured",
            hint="A claim rests on a measurement: mend the function first.",
        )
    weak = MEASURES[name](student, rng, WEAK)
    if abs(weak - measured) <= 0.05 * abs(measured) if name == "gradient_ratio" else _inside(weak, name):
        raise CheckFailed(
            f"your own function does not bear out your claim for {name}: it gives the same for far shorter queries",
            got=f"{measured:.3g} on fresh draws, {weak:.3g} where the queries are a quarter as long",
            hint="Each number is to be computed from q, k and g.",
        )


WEAK = 0.25
"""Of the length of the queries in a second measurement: the right means lie far outside their bands there, and so do
those of every catalogued answer that is in a band on fresh draws. A function that only knows the bands stays."""


def _inside(value: float, name: str) -> bool:
    low, high = BANDS[name]
    return bool(low < value < high)


def named_by_claim(name: str, claim: float) -> str:
    """The catalogued mistake behind a claim outside its band."""
    signs = {
        "claims_a_percentage": name == "one_hot_unscaled" and _inside(claim / 100, name),
        "claims_bits": name == "entropy_scaled" and _inside(claim * np.log(2), name),
        "claims_the_other_run": name == "entropy_unscaled" and _inside(claim, "entropy_scaled"),
        # Means over ten draws give ratios from 30 to 130; a sum, a product or a remainder of the two lies elsewhere.
        "claims_the_ratio_upside_down": name == "gradient_ratio" and 10 < 1 / (claim or 1) < 200,
    }
    return next((id for id, seen in signs.items() if seen), "")


def mean_of(student: Student, rng: np.random.Generator, length: float, name: str, *, scaled: bool) -> float:
    """The mean of one of the student's numbers over ten fresh draws, with queries of `length` times theirs."""
    cases = [inputs.fresh(rng, scaled=scaled) for _ in range(10)]
    return float(np.mean([statistics(student, case._replace(q=length * case.q))[name] for case in cases]))


def ratio(student: Student, rng: np.random.Generator, length: float) -> float:
    """The mean of grad_median with the division over its mean without it."""
    divided = mean_of(student, rng, length, "grad_median", scaled=True)
    return divided / max(mean_of(student, rng, length, "grad_median", scaled=False), 1e-300)


MEASURES = {
    "one_hot_unscaled": lambda *asked: mean_of(*asked, "one_hot", scaled=False),
    "entropy_unscaled": lambda *asked: mean_of(*asked, "entropy", scaled=False),
    "entropy_scaled": lambda *asked: mean_of(*asked, "entropy", scaled=True),
    "gradient_ratio": ratio,
}


@exercise.check(points=1)
def claim_one_hot_unscaled(student: Student, rng: np.random.Generator) -> None:
    """Your claim on the share of one-hot rows without the division holds on fresh draws."""
    expect_claim(student, rng, "one_hot_unscaled")


@exercise.check(points=1)
def claim_entropy_unscaled(student: Student, rng: np.random.Generator) -> None:
    """Your claim on the entropy without the division holds on fresh draws."""
    expect_claim(student, rng, "entropy_unscaled")


@exercise.check(points=1)
def claim_entropy_scaled(student: Student, rng: np.random.Generator) -> None:
    """Your claim on the entropy with the division holds on fresh draws."""
    expect_claim(student, rng, "entropy_scaled")


@exercise.check(points=1)
def claim_gradient_ratio(student: Student, rng: np.random.Generator) -> None:
    """Your claim on how much less gradient the median row gets without the division holds on fresh draws."""
    expect_claim(student, rng, "gradient_ratio")


# --- what people write instead ----------------------------------------------------------------------------------------

exercise.family(replaces="score_statistics", make=with_parts)
exercise.family(replaces="claims", make=lambda **wrong: {**exercise.references["claims"], **wrong})

for fault in FAULTS:
    exercise.add_misconception(replaces="score_statistics", **vars(fault))


def claim_slip(name: str, first_fails: str, sentence: str, **wrong: float) -> None:
    """Catalogue a wrong `claims`."""
    exercise.add_misconception(name, replaces="claims", first_fails=first_fails, sentence=sentence, faults=wrong)


claim_slip(
    "claims_a_percentage",
    "claim_one_hot_unscaled",
    "Your claim is a percentage; a share lies between 0 and 1.",
    one_hot_unscaled=59.0,
)
claim_slip(
    "claims_the_other_run",
    "claim_entropy_unscaled",
    "Your claim is the entropy with the division: the two runs have changed places.",
    entropy_unscaled=3.69,
    entropy_scaled=0.18,
)
claim_slip(
    "claims_bits",
    "claim_entropy_scaled",
    "Your claim counts bits; the entropy is asked in nats, with the natural logarithm.",
    entropy_scaled=5.32,
)
claim_slip(
    "claims_the_ratio_upside_down",
    "claim_gradient_ratio",
    "Your ratio is upside down: divide the gradient with the division by the one without it.",
    gradient_ratio=1 / 60,
)
