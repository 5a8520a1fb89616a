"""Judge a notebook's names in this process: which checks fail, and which ideas are named for it."""

from __future__ import annotations

import contextlib
import functools
import io
import signal
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graders.authoring import Check, CheckFailed, Exercise, Misconception, load_exercise
from graders.diagnosis import Earlier, explain, replay, same_trace
from graders.student import Elsewhere, LocalStudent, Observation, StudentError

SECONDS = 20
"""How long one answer may take for one check; a right one takes a fraction of a second."""
SEED = 1
FRESH = (2, 3)
"""Seeds of the inputs on which a name is tried again."""
STUDENT = "student 1"
"""Whose numbers an exercise gets whose numbers differ from student to student."""

Names = dict[str, Any]
Ids = frozenset[str]


class TimedOut(BaseException):
    """An answer took longer than SECONDS. No Exception, which a check or an answer could take for its own."""


@dataclass(frozen=True)
class Failure:
    """A check that failed, and its explanations, likeliest first: each an idea, or a pair of them."""

    check: str
    explanations: tuple[Misconception, ...]

    @property
    def named(self) -> list[Ids]:
        """The ids of each explanation."""
        return [ids_of(idea) for idea in self.explanations]


@functools.cache
def exercise_of(slug: str) -> Exercise:
    """The exercise as it is committed: what an instructor learned from hand-ins is theirs to prove."""
    whole = load_exercise(slug)
    ideas = {id: idea for id, idea in whole.misconceptions.items() if not isinstance(idea.answer, Elsewhere)}
    return replace(whole, misconceptions=ideas)


def ids_of(idea: Misconception) -> Ids:
    """The id of an idea, or those of a pair's parts."""
    return frozenset(part.id for part in (idea.parts or (idea,)))


def failures(exercise: Exercise, names: Names, *, about: str, seed: int = SEED) -> Iterator[Failure]:
    """The checks that ask for `about` and that `names` fail, in their order, each with what is named."""
    earlier = Earlier()
    for check in exercise.checks.values():
        if about in asked(exercise.slug, check.id):
            passed, trace = judged(exercise, check, names, seed)
            if passed:
                earlier.note(check.id, None)
                continue
            failure = Failure(check.id, tuple(_explained(exercise, check, trace, seed, earlier)))
            earlier.note(check.id, failure.named[0] if failure.named else ())
            yield failure


def judged(exercise: Exercise, check: Check, names: Names, seed: int) -> tuple[bool, list[Observation]]:
    """Whether `names` pass one check, and what came back."""
    student = LocalStudent(names, id=STUDENT if exercise.notebook else "")
    with quiet(), limited():
        try:
            check(student, exercise.rng(check.id, seed))
        except (CheckFailed, StudentError):
            return False, student.trace
    return True, student.trace


def _explained(
    exercise: Exercise, check: Check, trace: list[Observation], seed: int, earlier: Earlier
) -> list[Misconception]:
    with quiet():
        return explain(exercise, check, seed, trace, earlier)


@functools.cache
def asked(slug: str, check: str) -> frozenset[str]:
    """The names that a check asks a right answer for; all, where answers are values made from one another."""
    exercise = exercise_of(slug)
    if exercise.notebook is not None:
        return frozenset(exercise.references)
    return frozenset(seen.name for seen in replay(exercise, exercise.checks[check], SEED))


def same_function(exercise: Exercise, idea: Misconception, names: Names, seeds: Sequence[int] = FRESH) -> bool:
    """Whether `names` answer as `idea` does, in every check that asks for it, by default on fresh inputs."""
    wrong = exercise.names(idea, id=STUDENT)
    for check in exercise.checks.values():
        if idea.replaces in asked(exercise.slug, check.id):
            for seed in seeds:
                if not same_trace(judged(exercise, check, wrong, seed)[1], judged(exercise, check, names, seed)[1]):
                    return False
    return True


def passes(exercise: Exercise, names: Names, *, about: str, seed: int = SEED) -> bool:
    """Whether `names` pass every check that asks for `about`."""
    return all(
        judged(exercise, check, names, seed)[0]
        for check in exercise.checks.values()
        if about in asked(exercise.slug, check.id)
    )


def right_but(exercise: Exercise, wrong: Mapping[str, Any]) -> Names:
    """The names of a notebook that is right but for the references in `wrong`."""
    references = {**exercise.references, **wrong}
    return references if exercise.notebook is None else exercise.notebook(references, STUDENT)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Warnings are no failures, and nobody reads what answers print."""
    silent = contextlib.redirect_stdout(io.StringIO())
    with silent, warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def limited(seconds: int = SECONDS) -> Iterator[None]:
    """Raise TimedOut where what is inside takes too long."""

    def ring(*_: Any) -> None:
        raise TimedOut

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
