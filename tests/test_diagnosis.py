"""What is said of a wrong answer: the idea or the two ideas that reproduce it, else facts, and never a wrong name."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from itertools import combinations
from types import SimpleNamespace

import hypothesis
import numpy as np
import pytest
import torch

from course.instances import instance
from graders import counterexample
from graders.authoring import TOLERANCE, CheckFailed, Exercise, ExerciseError, UsageError, load_exercise
from graders.diagnosis import Earlier, OutOfTime, explain, pairs, replay, same, same_trace
from graders.grading import Job, Told, judge
from graders.invariants import broken
from graders.sandbox.box import Sandbox
from graders.student import LocalStudent, ModuleState, StudentError

EXERCISE = load_exercise("fused_self_attention")
FUSED = "fused_self_attention"


def judged(name, answer, check_id, seed=0, exercise=EXERCISE):
    """The student whose `name` is `answer`, after a check, and whether it passed."""
    student = LocalStudent({**exercise.references, name: answer})
    check = exercise.checks[check_id]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            check(student, exercise.rng(check.id, seed))
        except (CheckFailed, StudentError):
            return student, False
    return student, True


def ideas(name, answer, check_id, seed=0):
    """The ids that the diagnosis gives `answer` at a check that it fails."""
    student, passed = judged(name, answer, check_id, seed)
    assert not passed
    return [idea.id for idea in explain(EXERCISE, EXERCISE.checks[check_id], seed, student.trace)]


def facts(name, answer, check_id, seed=0):
    """What is said beside the failure of an answer that nothing explains."""
    assert ideas(name, answer, check_id, seed) == []
    student, _ = judged(name, answer, check_id, seed)
    return broken(EXERCISE, EXERCISE.checks[check_id], seed, student)


def by_hand(axis=-1, scaled=True, first="Q", unscaled=1.0, power=1.0, late=1.0):
    """Fused attention as a student writes it, with things to get wrong; no code in common with the catalogue."""

    def attention(X, W_qkv, scale):
        d_k = W_qkv.shape[1] // 3
        P = X @ W_qkv
        q, k, v = P[..., :d_k], P[..., d_k : 2 * d_k], P[..., 2 * d_k :]
        if first == "K":
            q, k = k, q
        s = np.einsum("...id,...jd->...ij", q, k) * (scale if scaled else unscaled)
        e = np.exp(s - s.max(axis=axis, keepdims=True)) ** power
        return late * (e / e.sum(axis=axis, keepdims=True) @ v)

    return attention


# --- pairs ------------------------------------------------------------------------------------------------------------


def test_pair_of_ideas_is_named():
    """Two independent faults in one function are told as both of them."""
    answer = by_hand(axis=-2, scaled=False)
    assert ideas(FUSED, answer, "fused_values") == ["fused_forgets_scale+fused_softmax_over_queries"]


def test_pair_is_named_whatever_the_function():
    """The same two faults are found in each function that can have them."""
    families = {"causal_attention": "causal", "cross_attention": "cross", "causal_attention_torch": "torch"}
    for name, family in families.items():
        wrong = EXERCISE.families[name](scaling="none", roles="KKV")
        named = ideas(name, wrong, f"{family}_values")
        assert named == [f"{family}_forgets_scale+{family}_compares_keys"]


def test_explaining_ends_when_its_time_is_over():
    """Numbers that take long to compare cost a student the name of the idea, and the class no minutes."""
    student, _ = judged(FUSED, by_hand(axis=-2), "fused_values")
    check = EXERCISE.checks["fused_values"]
    with pytest.raises(OutOfTime):
        explain(EXERCISE, check, 0, student.trace, seconds=0)
    session = SimpleNamespace(perform=LocalStudent({**EXERCISE.references, FUSED: by_hand(axis=-2)})._perform)
    result, _ = judge(Job(EXERCISE, "", (), seed=0), check, session, Told(left=1e-9))
    assert (result.status, result.misconceptions) == ("failed", ())


@pytest.mark.parametrize("value", [[[1.0, 2.0]], [["x", 1.0]], np.ones((1, 2)), np.ones(()), 3, "x"])
def test_values_of_other_lengths_are_not_the_same(value):
    """An axis of one is an axis, and a number is no list of one."""
    assert same(value, value)
    assert not same(value, [value])
    assert not same([value], value)


def test_single_idea_is_tried_first():
    """Even weights hide the scale: one idea is enough, and the second is not invented."""
    wrong = EXERCISE.families[FUSED](scaling="none", weigh="even")
    assert ideas(FUSED, wrong, "fused_values") == ["fused_weighs_evenly"]


def test_wrong_value_beside_a_changed_argument_is_both():
    """Whoever forgets the scale and writes into W_qkv reads of both."""

    def answer(X, W_qkv, scale):
        value = EXERCISE.families[FUSED](scaling="none")(X, W_qkv, scale)
        W_qkv *= 2
        return value

    assert ideas(FUSED, answer, "fused_values")[0] == "fused_forgets_scale+fused_changes_its_weights"


def test_same_error_is_no_evidence_for_a_pair():
    """An answer that raises at once is not called two things that happen to raise the same."""

    def answer(X, W_qkv, scale):
        raise OverflowError

    assert ideas(FUSED, answer, "fused_values") == []


def test_pairs_combine_different_choices_of_one_function():
    """No pair sets one choice twice, or mixes two functions; both sentences are told."""
    for pair in pairs(EXERCISE, replacing=[FUSED]):
        one, other = pair.parts
        assert pair.id == f"{one.id}+{other.id}"
        assert not one.faults.keys() & other.faults.keys()
        assert {one.replaces, other.replaces} == {FUSED}
        assert one.sentence in pair.sentence
        assert other.sentence in pair.sentence


def test_faults_without_a_family_are_refused():
    """An author is told how to register a family."""
    exercise = Exercise("x", references={"f": print}, checks=dict(EXERCISE.checks))
    with pytest.raises(ExerciseError, match="has no family; add one with"):
        exercise.add_misconception("a", replaces="f", first_fails="fused_values", sentence="You.", faults={"b": 1})
    with pytest.raises(ExerciseError, match="needs an answer, or faults"):
        exercise.add_misconception("a", replaces="f", first_fails="fused_values", sentence="You.")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_nine_pairs_of_ten_are_named(seed, capsys):
    """Of pairs that no single idea and no right answer equals, 90 % are named exactly and first."""
    results = Counter(outcome(pair, seed) for pair in list(pairs(EXERCISE, replacing=[FUSED]))[seed::7])
    with capsys.disabled():
        print(f"\npairs of {FUSED}, seed {seed}: {dict(results)}")
    assert results["passes"] == 0
    assert results["named"] >= 0.9 * (results.total() - results["as a single idea"])


def outcome(pair, seed):
    """What the diagnosis makes of `pair` at the first check of its function that it fails."""
    for check_id in EXERCISE.checks:
        student, passed = judged(FUSED, pair.answer, check_id, seed) if check_id.startswith("fused_") else (None, True)
        if not passed:
            found = explain(EXERCISE, EXERCISE.checks[check_id], seed, student.trace)
            if found[:1] and not found[0].parts:
                return "as a single idea"
            return "named" if [idea.id for idea in found[:1]] == [pair.id] else "other"
    return "passes"


# --- never a wrong name -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_random_wrong_functions_get_no_wrong_name(capsys):
    """A name given to one of 200 compositions is a part of it, or explains it on other inputs as well."""
    rng = np.random.default_rng(5)
    faults = [idea.faults for idea in EXERCISE.misconceptions.values() if idea.replaces == FUSED and idea.faults]
    named = wrong = 0
    for _ in range(200):
        chosen, answer = composed(faults, rng)
        student, passed = judged(FUSED, answer, "fused_values", seed=11)
        found = [] if passed else explain(EXERCISE, EXERCISE.checks["fused_values"], 11, student.trace)[:1]
        named += len(found)
        wrong += sum(not is_part(idea, chosen) and not explains(idea, answer, seed=12) for idea in found)
    with capsys.disabled():
        print(f"\n200 compositions: {named} named, {wrong} of them wrongly")
    assert wrong == 0


def composed(faults, rng):
    """Three faults of different choices at once, two of three times disturbed in a way that the catalogue has not."""
    chosen = {}
    for index in rng.permutation(len(faults)):
        if len(chosen) < 3 and not faults[index].keys() & chosen.keys():
            chosen |= faults[index]
    attention = EXERCISE.families[FUSED](**chosen)
    factor = rng.choice([1.0, 0.5, rng.uniform(0.9, 1.1)])
    return chosen, lambda X, W_qkv, scale: attention(X * factor, W_qkv, scale)


def is_part(idea, chosen):
    """Whether what is named was put in; the rest may not show on these inputs, as an overflow that does not happen."""
    return all(part.faults and part.faults.items() <= chosen.items() for part in idea.parts or (idea,))


def explains(idea, answer, seed):
    """Whether `idea` gives what `answer` gives on the hidden inputs of `seed`."""
    check = EXERCISE.checks["fused_values"]
    student, _ = judged(FUSED, answer, check.id, seed)
    return same_trace(replay(EXERCISE, check, seed, idea), student.trace)


# --- distinct explanations --------------------------------------------------------------------------------------------

SAME = {
    frozenset(("fused_changes_its_weights", "fused_scales_integers_in_place")): "integers raise before any value is",
}
"""Ideas that one check cannot tell apart, with the reason."""


def distance(left, right):
    """By how many tolerances two traces differ; infinite where they differ in kind."""
    most = 0.0 if len(left) == len(right) else np.inf
    for one, other in zip(left, right, strict=False):
        if (one.error or ("",))[0] != (other.error or ("",))[0]:
            return np.inf
        if len(numbers(one)) != len(numbers(other)):
            return np.inf
        for a, b in zip(numbers(one), numbers(other), strict=True):
            if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
                return np.inf
            a, b = a[np.isfinite(a)], b[np.isfinite(b)]
            most = max(most, np.abs(a - b).max(initial=0) / (TOLERANCE * np.abs(b).max(initial=0) + 1e-12))
    return most


def numbers(seen):
    """The arrays of an observation: values, or a module's parameters, gradients and arguments."""
    value = seen.value.parameters.values() if isinstance(seen.value, ModuleState) else seen.value
    value = [value] if isinstance(value, np.ndarray) or value is None else value
    found = [*value, *seen.gradients, *seen.arguments]
    return [item.astype(np.float64) if isinstance(item, np.ndarray) else np.array(np.nan) for item in found]


@pytest.mark.parametrize("name", EXERCISE.families)
def test_single_ideas_are_told_apart(name, capsys):
    """No two ideas of one function give the same trace at a check where one is named, unless declared with a reason."""
    together, nearest = set(), (np.inf, "")
    wrong = [idea for idea in EXERCISE.misconceptions.values() if idea.replaces == name]
    for check_id in dict.fromkeys(idea.first_fails for idea in wrong):
        traces = {idea: replay(EXERCISE, EXERCISE.checks[check_id], 0, idea) for idea in wrong}
        for one, other in combinations(wrong, 2):
            if check_id not in (one.first_fails, other.first_fails):
                continue
            if same_trace(traces[one], traces[other]):
                together.add(frozenset((one.id, other.id)))
            else:
                nearest = min(nearest, (distance(traces[one], traces[other]), f"{one.id}, {other.id} in {check_id}"))
    with capsys.disabled():
        print(f"\n{name}: nearest {nearest[0]:.3g} tolerances, {nearest[1]}")
    assert together - set(SAME) == set()


# --- facts ------------------------------------------------------------------------------------------------------------


def test_weights_that_do_not_sum_to_one_are_told():
    """A factor that no idea explains: what equal tokens show, and that the output is off by it everywhere."""
    told = facts(FUSED, by_hand(late=0.3), "fused_values")
    assert "where all tokens are equal, your output is their value times 0.3: rows of weights do not sum to 1" in told
    assert told[-1] == "your output is the right one times 0.3 everywhere"


def test_weights_of_another_sharpness_break_no_invariant():
    """A temperature of one's own is a softmax still: nothing is said that is not so."""
    assert facts(FUSED, by_hand(power=1.7), "fused_values") == []


def test_output_outside_the_values_is_told():
    """No average is larger than what it is of."""
    told = facts(FUSED, by_hand(late=5.0), "fused_values")
    assert "your output lies outside the values, where no average of them can lie" in told


def test_order_of_tokens_that_matters_is_told():
    """Weights that depend on the place of a token."""

    def answer(X, W_qkv, scale):
        output = by_hand()(X, W_qkv, scale)
        return output + 0.01 * np.arange(X.shape[-2])[:, None]

    assert "turning the tokens round does not turn your output round" in facts(FUSED, answer, "fused_values")


def test_future_that_leaks_is_told():
    """Weights that are pulled towards the mean of all tokens see what comes later."""

    def answer(X, W_Q, W_K, W_V, causal=True):
        _, weights = EXERCISE.references["causal_attention"](X, W_Q, W_K, W_V, causal)
        weights = 0.8 * weights + 0.2 / len(X)
        return weights @ (X @ W_V), weights

    told = facts("causal_attention", answer, "causal_values")
    assert told == ["another last token changes rows of your output before it"]


def test_rows_of_weights_are_added_up():
    """Where the weights are returned, they are looked at themselves."""

    def answer(*arguments):
        output, weights = EXERCISE.references["cross_attention"](*arguments)
        return output, weights * 0.7

    assert "rows of your weights do not sum to 1" in facts("cross_attention", answer, "cross_values")


def test_rows_in_another_order_are_told():
    """The right rows in the wrong places."""
    told = facts(FUSED, lambda *arguments: by_hand()(*arguments)[..., ::-1, :], "fused_one_sequence")
    assert told[-1] == "your output has the right rows in another order"


def test_answer_left_to_chance_is_told_as_such():
    """Dropout leaks no future and loses no order: each call only gives other numbers than the one before."""
    rng = np.random.default_rng(0)

    def answer(X, W_Q, W_K, W_V, causal=True):
        _, weights = EXERCISE.references["causal_attention"](X, W_Q, W_K, W_V, causal)
        weights = weights * (rng.random(weights.shape) < 0.8) / 0.8
        return weights @ (X @ W_V), weights

    told = facts("causal_attention", answer, "causal_values")
    assert told == ["the same call gives other numbers when it is repeated"]


def test_function_is_asked_a_few_times_only():
    """What is said beside a failure costs at most five more calls."""
    calls = []
    answer = by_hand(power=1.7)
    student, _ = judged(FUSED, lambda *arguments: calls.append(1) or answer(*arguments), "fused_values")
    before = len(calls)
    broken(EXERCISE, EXERCISE.checks["fused_values"], 0, student)
    assert len(calls) - before <= 5


# --- counter-examples -------------------------------------------------------------------------------------------------


def search(name, answer, exercise=EXERCISE):
    """The counter-example found for `answer`, as text; empty if none."""
    student = LocalStudent({**exercise.references, name: answer})
    found = counterexample._search(hypothesis, exercise, name, student)
    return "" if found is None else found.text()


def test_counterexample_is_small_and_shows_both_sides():
    """One token or two, whole numbers, and what is right beside what came."""
    text = search(FUSED, by_hand(scaled=False))
    assert text.startswith("fused_self_attention is wrong, for example, on\n    X       [[")
    assert "\n    scale   0.5\n" in text
    assert "\n    yours   [[" in text
    assert "\n    right   [[" in text
    assert len(text) < 500


def test_counterexample_of_any_answer_is_short():
    """What an answer returned may be millions of characters."""
    wide = {f"{n}": "x" * 1000 for n in range(10_000)}
    assert len("".join(counterexample._cut(counterexample._written(wide)))) < 20_000


@pytest.mark.slow
def test_right_answer_has_no_counterexample():
    """Also one that is written otherwise."""
    assert search(FUSED, by_hand()) == ""


@pytest.mark.slow
def test_counterexample_reaches_large_scores():
    """Overflow needs large scores, and they stay within the contract."""
    for name in (FUSED, "causal_attention"):
        assert "nan" in search(name, EXERCISE.families[name](weigh="overflowing"))


def test_changed_argument_and_error_are_counterexamples():
    """What went wrong stands where a value would."""

    def changes(X, W_qkv, scale):
        X *= 2
        return by_hand()(X / 2, W_qkv, scale)

    assert "your function changed its argument X" in search(FUSED, changes)
    assert "raises ZeroDivisionError" in search(FUSED, lambda *arguments: 1 / 0)


def test_answer_that_is_not_attempted_has_no_counterexample():
    """An empty stub is not wrong on anything."""

    def stub(*arguments):
        raise NotImplementedError

    assert search(FUSED, stub) == ""


@pytest.mark.slow
def test_counterexample_accepts_what_the_contract_accepts():
    """Either standard deviation is right, and so is any head that behaves."""
    statistics, head = load_exercise("break_sqrt_d"), load_exercise("previous_token_head")
    right = statistics.references["score_statistics"]

    def other_std(q, k, g, scaled):
        n = g.size
        found = right(q, k, g, scaled)
        return found if n == 1 else found | {"std": found["std"] * np.sqrt(n / (n - 1))}

    assert search("score_statistics", other_std, statistics) == ""
    assert "q" in search("score_statistics", lambda *given: right(*given) | {"one_hot": 2.0}, statistics)

    def times(factor):
        def answer(n_vocab, T):
            W_Q, W_K, W_V = head.references["previous_token_head"](n_vocab, T)
            return factor * W_Q, W_K, W_V

        return answer

    assert search("previous_token_head", times(1.5), head) == ""
    assert "n_vocab" in search("previous_token_head", times(0.1), head)


def test_missing_hypothesis_is_said(monkeypatch):
    """Whoever runs the command learns what to install."""
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    with pytest.raises(UsageError, match="pip install hypothesis"):
        counterexample._hypothesis()


def test_counterexample_is_found_through_the_sandbox():
    """The student's code runs where all of it runs; a wrong table of shapes is shown by its sizes."""
    exercise = load_exercise("attention_shapes")
    wrong = "def attention_shapes(B, T_q, T_k, d, d_k, d_v):\n    return [(B, T_q, d)] * 11"
    with Sandbox(exercise.uses) as sandbox:
        text = counterexample.counterexamples(exercise, wrong, sandbox)
    assert text.splitlines()[1:4] == ["    B       2", "    T_q     2", "    T_k     2"]


def head(**faults):
    """A SingleHead with these choices wrong."""
    return EXERCISE.families["SingleHead"](**faults)


def test_head_has_a_counterexample_of_one_short_sequence():
    """What is in `qkv` stands beside the input; a bias is drawn where it matters alone."""
    text = search("SingleHead", head(scaling="none"))
    names = [line.split()[0] for line in text.splitlines() if line.startswith("    ") and line[4] != " "]
    assert names == ["x", "weight", "bias", "yours", "right"]
    assert "x        [[[0, 0],\n               [0, 1]]]\n" in text
    assert "bias     [0, 0, 0, 0, 0, 0]\n" in text
    assert "bias     [0, 0, 1]\n    yours    [[[0]]]\n    right    [[[1]]]" in search("SingleHead", head(bias=0.0))


@pytest.mark.slow
def test_right_head_has_no_counterexample():
    """With a bias or without, which is right where nothing sets it."""

    class WithoutBias(torch.nn.Module):
        def __init__(self, d, d_k):
            super().__init__()
            self.qkv = torch.nn.Linear(d, 3 * d_k, bias=False)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

    assert search("SingleHead", WithoutBias) == ""


def test_head_of_other_parts_is_told_in_words():
    """A head without `qkv` cannot be asked; one that is missing is not wrong on anything."""
    assert "has no parameter qkv.weight" in search("SingleHead", lambda d, d_k: torch.nn.Linear(d, d_k))
    student = LocalStudent({})
    assert counterexample._search(hypothesis, EXERCISE, "SingleHead", student) is None


DERIVED = """
import numpy as np
Q, K, V = (np.array(matrix, dtype=float) for matrix in {numbers})
STUDENT = "someone else"
raw_scores = K @ Q.T
scores = raw_scores / np.sqrt(2)
e = np.exp(scores)
weights = (e / e.sum(axis=0)).round(4).tolist()
output = 7 * np.ones((3, 2))
"""


def test_numbers_of_ones_own_are_shown_wrong_on_others():
    """For each idea behind a student's matrices, small Q, K and V with the steps between; what has no idea says so."""
    exercise = load_exercise("derive_by_hand")
    numbers = [matrix.tolist() for matrix in instance("ada")]
    with Sandbox(exercise.uses) as sandbox:
        text = counterexample.counterexamples(exercise, DERIVED.format(numbers=numbers), sandbox, "ada")
        right = "\n".join(
            f"{name} = {value.tolist()!r}" for name, value in exercise.names(id="ada").items() if name != "STUDENT"
        )
        assert counterexample.counterexamples(exercise, right, sandbox, "ada") == "nothing is wrong"
    raw, weights, output = text.split("\n\n")
    assert raw.startswith("raw_scores is wrong, for example, on\n    Q       [[0, 0],\n")
    assert [line.split()[0] for line in weights.splitlines() if "[[" in line] == [
        *("Q", "K", "raw_scores", "scores", "yours", "right")
    ]
    assert output.startswith("output is off in 6 of 6 entries, first at token 1, column 1")
    assert output.endswith("no idea explains it, so it is tried on no other numbers")
    assert "nan" not in text


# --- what earlier checks say ------------------------------------------------------------------------------------------


def hand_in(slug, **answers):
    """The ideas named at each check that a hand-in fails, when its checks are judged one after the other."""
    exercise = load_exercise(slug)
    session = SimpleNamespace(perform=LocalStudent({**exercise.references, **answers})._perform)
    job, told = Job(exercise, "ada", (), seed=3), Told()
    results = [judge(job, check, session, told)[0] for check in exercise.checks.values()]
    return {result.id: list(result.misconceptions) for result in results if result.status != "passed"}


def test_idea_that_a_passed_check_refutes_is_not_named():
    """A wrong width of the output alone is not an exchange of all widths, which fails an earlier check."""
    exercise = load_exercise("attention_shapes")
    answer = exercise.misconceptions["gives_the_output_the_key_width"].answer
    student, check = LocalStudent({"attention_shapes": answer}), exercise.checks["output_is_as_wide_as_a_value"]
    with pytest.raises(CheckFailed):
        check(student, exercise.rng(check.id, 0))
    assert len(explain(exercise, check, 0, student.trace)) == 3
    named = {"output_is_as_wide_as_a_value": ["gives_the_output_the_key_width"]}
    assert hand_in("attention_shapes", attention_shapes=answer) == named


def test_idea_that_was_named_before_comes_first():
    """Where one idea explains all that fails, it is told again and no other is put before it."""
    wrong = load_exercise("attention_shapes").misconceptions["makes_square_projections"].answer
    named = hand_in("attention_shapes", attention_shapes=wrong)
    assert len(named) == 3
    assert {ids[0] for ids in named.values()} == {"makes_square_projections"}


def test_error_alone_is_no_evidence_against_an_earlier_check():
    """Three ideas raise ValueError on a batch; whoever was not named one of them before is not named it now."""

    def answer(X, W_qkv, scale):
        if X.ndim > 2:
            raise ValueError("one sequence at a time")
        return by_hand(power=1.3)(X, W_qkv, scale)

    student, _ = judged(FUSED, answer, "fused_two_scales")
    check = EXERCISE.checks["fused_two_scales"]
    earlier = Earlier(failed={"fused_values"})
    assert explain(EXERCISE, check, 0, student.trace) != []
    assert explain(EXERCISE, check, 0, student.trace, earlier) == []


def test_two_wrong_numbers_of_one_dict_are_a_pair():
    """Undivided scores and their entropy in bits: both are named where both show."""
    exercise = load_exercise("break_sqrt_d")
    faults = [exercise.misconceptions[id].faults for id in ("never_divides", "entropy_in_bits")]
    wrong = exercise.families["score_statistics"](**faults[0], **faults[1])
    named = hand_in("break_sqrt_d", score_statistics=wrong)
    assert named["std_of_the_scores"] == ["never_divides"]
    assert named["mean_row_entropy"] == ["never_divides", "entropy_in_bits"]


def test_two_wrong_entries_of_one_table_are_a_pair():
    """Two ideas about different entries of the same check."""
    exercise = load_exercise("attention_shapes")
    wrong = exercise.families["attention_shapes"](
        **exercise.misconceptions["stores_keys_transposed"].faults,
        X_q=exercise.misconceptions["writes_tokens_as_columns"].answer,
    )
    named = hand_in("attention_shapes", attention_shapes=wrong)
    assert named["projections_keep_the_tokens"] == []  # the second is no idea of the catalogue, but a part of one
    wrong = exercise.families["attention_shapes"](
        **exercise.misconceptions["stores_keys_transposed"].faults,
        **exercise.misconceptions["makes_values_from_keys"].faults,
    )
    named = hand_in("attention_shapes", attention_shapes=wrong)
    assert named["parameters_serve_every_length"] == ["makes_values_from_keys"]
    assert named["projections_keep_the_tokens"] == ["stores_keys_transposed"]
