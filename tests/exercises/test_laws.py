"""Laws that hold over every exercise; the slug is in each test's id."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

from graders.authoring import Check, CheckFailed, Exercise, Misconception, declared_uses, load_exercise, slugs
from graders.diagnosis import explain, replay
from graders.student import LocalStudent, StudentError

SEEDS = range(20)
EXERCISES = {slug: load_exercise(slug) for slug in slugs()}


def passes(exercise: Exercise, check: Check, names: dict, seed: int) -> bool:
    """Whether `names` passes one check on the hidden inputs of `seed`."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            check(LocalStudent(names), exercise.rng(check.id, seed))
        except (CheckFailed, StudentError):
            return False
    return True


def failed_checks(exercise: Exercise, names: dict, seed: int) -> list[str]:
    """The ids of the checks that `names` fails, in the exercise's order."""
    return [check.id for check in exercise.checks.values() if not passes(exercise, check, names, seed)]


@functools.cache
def asked_of(slug: str, check_id: str) -> frozenset[str]:
    """The names that a check asks a right answer for: an answer that it never asks for cannot fail it."""
    exercise = EXERCISES[slug]
    return frozenset(seen.name for seen in replay(exercise, exercise.checks[check_id], seed=0))


def first_failed(exercise: Exercise, wrong: Misconception, seed: int) -> str | None:
    """The first check that fails where one reference is replaced by `wrong`."""
    names = exercise.names(wrong, id=f"student {seed}")
    for check in exercise.checks.values():
        asked = exercise.notebook is not None or wrong.replaces in asked_of(exercise.slug, check.id)
        if asked and not passes(exercise, check, names, seed):
            return check.id
    return None


@pytest.mark.parametrize("slug", EXERCISES)
def test_declared_uses_is_what_the_exercise_lists(slug):
    """It is read from the text, so that a class's sandbox can start before the exercise is imported."""
    assert declared_uses(slug) == EXERCISES[slug].uses


def misconceptions() -> list:
    """Every misconception of every exercise, as (exercise, misconception) with both names in the id."""
    return [
        pytest.param(exercise, wrong, id=f"{slug}-{wrong.id}")
        for slug, exercise in EXERCISES.items()
        for wrong in exercise.misconceptions.values()
    ]


@pytest.mark.parametrize("slug", EXERCISES)
def test_reference_passes_every_check(slug):
    """A right answer earns everything, whatever the seed."""
    exercise = EXERCISES[slug]
    for seed in SEEDS:
        assert failed_checks(exercise, exercise.names(id=f"student {seed}"), seed) == []


@pytest.mark.parametrize("slug", EXERCISES)
def test_answer_that_is_missing_passes_no_check(slug):
    """An empty notebook earns nothing."""
    exercise = EXERCISES[slug]
    assert failed_checks(exercise, {}, seed=0) == list(exercise.checks)


@pytest.mark.parametrize("slug", EXERCISES)
def test_points_sum_to_a_round_number(slug):
    """Students can see at a glance what a point is worth."""
    assert EXERCISES[slug].max_score % 5 == 0


@pytest.mark.parametrize(("exercise", "wrong"), misconceptions())
def test_misconception_first_fails_its_check(exercise, wrong):
    """Each catalogued wrong answer fails, whatever the seed, and first at the check that it names."""
    for seed in range(10):
        assert first_failed(exercise, wrong, seed) == wrong.first_fails, f"seed {seed}"


@pytest.mark.parametrize(("exercise", "wrong"), misconceptions())
def test_misconception_is_named(exercise, wrong):
    """The diagnosis names the idea behind each catalogued wrong answer, at the check that it fails first."""
    check = exercise.checks[wrong.first_fails]
    for seed in range(3):
        student = LocalStudent(exercise.names(wrong, id=f"student {seed}"))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            with pytest.raises((CheckFailed, StudentError)):
                check(student, exercise.rng(check.id, seed))
        assert [found.id for found in explain(exercise, check, seed, student.trace)][:1] == [wrong.id]
