"""√d_k left out and measured: right functions pass, wrong ones are named, claims rest on the student's own function."""

from __future__ import annotations

import inspect
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cases import break_sqrt_d_right, break_sqrt_d_wrong

from graders.authoring import CheckFailed, load_exercise
from graders.diagnosis import explain
from graders.exercises import _score_inputs as inputs
from graders.student import LocalStudent, Observation, StudentError

EXERCISE = load_exercise("break_sqrt_d")
SEEDS = range(20)
CLAIM_CHECKS = [check for check in EXERCISE.checks if check.startswith("claim_")]
FUNCTION_CHECKS = [check for check in EXERCISE.checks if check not in (*CLAIM_CHECKS, "predicted_first")]


def cases(module) -> list:
    """The public functions of a module of cases, by name."""
    return [
        pytest.param(function, id=name)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]


def notebook(**answers) -> dict:
    """The names of a right notebook, but for `answers`."""
    return {**EXERCISE.references, **answers}


def failure(names: dict, check: str, seed: int = 0) -> CheckFailed | StudentError | None:
    """How a notebook with `names` fails `check`, or None."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            EXERCISE.checks[check](LocalStudent(names), EXERCISE.rng(check, seed))
        except (CheckFailed, StudentError) as found:
            return found
    return None


def failed(names: dict, seed: int, checks: list[str] = FUNCTION_CHECKS) -> list[str]:
    """Those of `checks` that a notebook with `names` fails."""
    return [check for check in checks if failure(names, check, seed) is not None]


def first_failed(names: dict, seed: int) -> str | None:
    """The first check of the function that a notebook with `names` fails."""
    return next((check for check in FUNCTION_CHECKS if failure(names, check, seed) is not None), None)


def named(names: dict, check: str, seed: int) -> list[str]:
    """The ids that the diagnosis gives for a notebook with `names` at `check`."""
    student = LocalStudent(names)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with pytest.raises((CheckFailed, StudentError)):
            EXERCISE.checks[check](student, EXERCISE.rng(check, seed))
    return [found.id for found in explain(EXERCISE, EXERCISE.checks[check], seed, student.trace)]


@pytest.mark.parametrize("answer", cases(break_sqrt_d_right))
def test_right_function_of_any_make_passes_every_check(answer):
    """Either median, either degree of freedom, float32, autograd, differences, loops and tuples are all right."""
    for seed in SEEDS:
        assert failed(notebook(score_statistics=answer), seed) == [], f"seed {seed}"
    assert failed(notebook(score_statistics=answer), 0, CLAIM_CHECKS) == []


@pytest.mark.parametrize("answer", cases(break_sqrt_d_wrong))
def test_wrong_function_loses_marks_and_is_named(answer):
    """Each plausible wrong function fails, whatever the seed, and is called by its name where it has one."""
    wanted = break_sqrt_d_wrong.NAMED[answer.__name__]
    for seed in SEEDS:
        wrong = first_failed(notebook(score_statistics=answer), seed)
        assert wrong is not None, f"seed {seed}"
        if seed % 5 == 0:  # replaying the whole catalogue takes a while
            ids = named(notebook(score_statistics=answer), wrong, seed)
            assert ids[:1] == ([wanted] if wanted else []), f"seed {seed}"


def test_names_in_the_table_are_in_the_catalogue():
    """A name that no misconception has would never be given."""
    assert set(break_sqrt_d_wrong.NAMED.values()) - {""} <= set(EXERCISE.misconceptions)


def test_second_mistake_is_named_where_it_shows():
    """Two wrong numbers are two findings, each at the check that judges it."""
    names = notebook(score_statistics=break_sqrt_d_wrong.bits_and_the_mean)
    assert named(names, "mean_row_entropy", 0)[:1] == ["entropy_in_bits"]
    assert named(names, "median_row_gradient", 0)[:1] == ["mean_of_the_rows"]


@pytest.mark.parametrize("answer", ["entropy_bits", "no_division_anywhere", "mean_not_median", "share_of_entries"])
def test_one_mistake_costs_the_checks_on_extremes_nothing(answer):
    """Entropy in bits is paid for where entropy is judged, and not again where only extremes and integers are."""
    names = notebook(score_statistics=getattr(break_sqrt_d_wrong, answer))
    for seed in range(5):
        assert failed(names, seed, FUNCTION_CHECKS[4:]) == []


def test_feedback_shows_the_prediction_beside_the_measurement():
    """The check on predictions passes with both numbers of each name, or with what is missing."""
    check = EXERCISE.checks["predicted_first"]

    def remark(**names):
        return check(LocalStudent(notebook(**names)), EXERCISE.rng(check.id, 0))

    told = "you predicted, and then measured: one_hot_unscaled 0.5 and 0.59, entropy_unscaled 1 and 0.18, "
    assert remark() == f"{told}entropy_scaled 4 and 3.69, gradient_ratio 10 and 60"
    assert remark(claims={}).endswith("gradient_ratio 10 and nothing yet")
    wild = dict.fromkeys(EXERCISE.references["claims"], -1.23456e300)
    assert len(remark(predictions=wild, claims=wild)) <= 300


def test_any_finite_prediction_earns_the_marks_and_no_more_than_a_twentieth():
    """A prediction is asked for to be made, not to be right."""
    wild = dict.fromkeys(("one_hot_unscaled", "entropy_unscaled", "entropy_scaled", "gradient_ratio"), -1e9)
    assert failure(notebook(predictions=wild), "predicted_first") is None
    assert EXERCISE.checks["predicted_first"].points <= 0.05 * EXERCISE.max_score


@pytest.mark.parametrize("gap", [None, float("nan"), float("inf"), "many", ...])
def test_prediction_with_a_gap_earns_nothing(gap):
    """Four finite numbers are four finite numbers."""
    predictions = {**EXERCISE.references["predictions"], "entropy_scaled": gap}
    assert failure(notebook(predictions=predictions), "predicted_first") is not None


def test_mean_of_ten_fresh_draws_lies_in_every_band():
    """The bands hold whoever draws: no seed of the grader's fails a right function."""
    for seed in range(20):
        assert failed(notebook(), seed, CLAIM_CHECKS) == [], f"seed {seed}"


@pytest.mark.parametrize("check", CLAIM_CHECKS)
def test_claim_without_a_function_earns_nothing(check):
    """A number copied from the lesson is no evidence."""
    names = notebook()
    del names["score_statistics"]
    assert isinstance(failure(names, check), StudentError)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        ("claim_one_hot_unscaled", "share_of_entries"),
        ("claim_entropy_unscaled", "entropy_columns"),
        ("claim_entropy_scaled", "entropy_bits"),
        ("claim_gradient_ratio", "loss_without_g"),
    ],
)
def test_claim_that_ones_own_function_contradicts_earns_nothing(check, answer):
    """The right number beside a function that measures another is not a measurement."""
    found = failure(notebook(score_statistics=getattr(break_sqrt_d_wrong, answer)), check)
    assert found is not None
    assert "does not bear out" in found.what


def _in_the_bands(q, k, g, scaled):
    return {"std": 1.0, "one_hot": 0.55, "entropy": 3.7 if scaled else 0.2, "grad_median": 1.0 if scaled else 0.02}


NOISE = np.random.default_rng(0)


def _in_the_bands_by_chance(q, k, g, scaled):
    return {name: value * NOISE.uniform(0.99, 1.01) for name, value in _in_the_bands(q, k, g, scaled).items()}


def _in_the_bands_by_the_draw(q, k, g, scaled):
    return {name: value + 1e-3 * float(q.flat[0]) for name, value in _in_the_bands(q, k, g, scaled).items()}


@pytest.mark.parametrize("answer", [_in_the_bands, _in_the_bands_by_chance, _in_the_bands_by_the_draw])
@pytest.mark.parametrize("check", CLAIM_CHECKS)
def test_function_that_says_what_was_claimed_measures_nothing(check, answer):
    """The bands stand in the literature: whoever returns a number from them has not measured it."""
    assert "far shorter queries" in failure(notebook(score_statistics=answer), check).what


@pytest.mark.parametrize("argument", [None, [1.0], {"a": 1}])
def test_argument_that_became_something_else_is_a_changed_one(argument):
    """What comes back for an argument is the student's process's word."""
    case = inputs.plain(np.random.default_rng(0), 5, 8, scaled=True)
    seen = Observation("score_statistics", EXERCISE.references["score_statistics"](*case), (argument, case.k, case.g))
    student = SimpleNamespace(observe=lambda *_: seen)
    with pytest.raises(CheckFailed):
        EXERCISE.checks["arguments_stay_as_they_are"](student, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("one_hot_unscaled", 0.48, 0.70), ("entropy_unscaled", 0.12, 0.25), ("entropy_scaled", 3.6, 3.8)],
)
def test_claim_is_judged_by_its_band(name, low, high):
    """Inside the band counts, outside does not."""
    for value, right in ((low + 1e-3, True), (high - 1e-3, True), (low - 1e-3, False), (high + 1e-3, False)):
        claims = {**EXERCISE.references["claims"], name: value}
        assert (failure(notebook(claims=claims), f"claim_{name}") is None) == right


@pytest.mark.parametrize(
    ("ratio", "right"), [(1.01, True), (6433.0, True), (1.0, False), (0.02, False), (-37.0, False)]
)
def test_gradient_ratio_only_has_to_exceed_one(ratio, right):
    """Single draws scatter over three orders of magnitude, so no size is asked."""
    claims = {**EXERCISE.references["claims"], "gradient_ratio": ratio}
    assert (failure(notebook(claims=claims), "claim_gradient_ratio") is None) == right


def test_solution_of_claims_earns_its_marks():
    """The code that stands in the solved notebook measures what the checks ask for."""
    names = {"np": np, "score_statistics": EXERCISE.references["score_statistics"]}
    exec(EXERCISE.answers["claims"].solution, names)
    assert failed(notebook(claims=names["claims"]), 0, CLAIM_CHECKS) == []
