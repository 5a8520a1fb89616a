"""`qkv learn`: a wrong answer that nothing explains yet becomes an entry of the catalogue, if it can be told by name.

What is asked of it here is what the laws in tests/exercises/test_laws.py ask of every entry, so that they hold of it
from its first day. The answer runs behind the sandbox's walls; whoever calls this opens them (`learned.behind`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from graders.authoring import Check, CheckFailed, Exercise, Misconception, UsageError
from graders.build import write_whole
from graders.diagnosis import NOTHING_TO_EXPLAIN, Trace, explain, off_in_numbers, replay, same_trace
from graders.learned import Learned, file_of
from graders.reports.quote import printable
from graders.student import LocalStudent, StudentError

SEEDS = range(10)
"""Hidden inputs on which an entry must first fail the same check."""
CALL_SECONDS = 1.0
"""What one call of an entry may take: it is asked again for each hand-in that fails a check of its function."""
NAMED = range(3)
"""Those on which it must be named, and be told apart from every other."""


@dataclass(frozen=True)
class Found:
    """What is wrong with an answer: the function that it gets wrong, the check that fails first, and what that says."""

    replaces: str
    first_fails: str
    what: str


def examine(exercise: Exercise, source: str) -> Found:
    """What is wrong in `source`; UsageError where that is nothing, too much, or explained already."""
    functions = [name for name, answer in exercise.answers.items() if answer.before.startswith(("def ", "class "))]
    if not functions:
        raise UsageError(
            f"{exercise.slug} asks for numbers, and one student's are nobody else's; write what they did wrongly as a"
            f" misconception in graders/exercises/{exercise.slug}.py"
        )
    wrong = [found for name in functions if (found := _judged(exercise, source, name))]
    if not wrong:
        raise UsageError(
            f"there is nothing to learn: of {', '.join(functions)}, every one that the answer defines passes its checks"
        )
    if len(wrong) > 1:
        names = ", ".join(found.replaces for found in wrong)
        raise UsageError(f"the answer is wrong in {names}; leave only one of them in the file")
    _refuse_known(exercise, source, wrong[0])
    return wrong[0]


def learn(exercise: Exercise, source: str, found: Found, id: str, sentence: str, hint: str = "") -> Path:
    """Keep the answer as the idea `id`; its file. UsageError, and nothing is written, where it breaks a law."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,63}", id):
        raise UsageError(f"{id!r} is no id; use small letters, digits and _, as in forgets_the_batch")
    if id in exercise.misconceptions:
        raise UsageError(f"{exercise.slug} has an idea {id} already: {exercise.misconceptions[id].sentence}")
    sentence, hint = printable(sentence), printable(hint)
    if not sentence:
        raise UsageError("the sentence is empty; it is what students read, as in: You do not scale the scores.")
    one = Learned(id, found.replaces, found.first_fails, sentence, hint, source)
    idea = one.idea(exercise.uses)
    _refuse_unnamed(replace(exercise, misconceptions={**exercise.misconceptions, id: idea}), idea)
    _refuse_alike(exercise, idea)
    path = file_of(exercise.slug, id)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, one.text())
    return path


# --- what is wrong ----------------------------------------------------------------------------------------------------


def _judged(exercise: Exercise, source: str, name: str) -> Found | None:
    """How `source` gets `name` wrong with everything else right; None where it does not, or does not answer."""
    idea = _candidate(exercise, source, name)
    first = [_first_failed(exercise, idea, seed) for seed in SEEDS]
    if first[0] is not None and first[0][1] is None:
        return None  # not attempted
    checks = {check.id for check, _ in filter(None, first)}
    if not checks:
        return None
    if len(checks) > 1 or None in first:
        raise UsageError(
            f"{name} does not fail in the same way on all hidden inputs ({', '.join(sorted(checks))}, or none), so no"
            " sentence would be true of it each time"
        )
    check, what = first[0]  # type: ignore[misc]
    return Found(name, check.id, str(what))


def _candidate(exercise: Exercise, source: str, name: str) -> Misconception:
    return Learned("", name, "", "", "", source).idea(exercise.uses)


def _first_failed(exercise: Exercise, idea: Misconception, seed: int) -> tuple[Check, str | None] | None:
    """The first check that `idea` fails, and how; None in place of words where nothing was attempted."""
    for check in exercise.checks.values():
        if idea.replaces in {seen.name for seen in replay(exercise, check, seed)}:
            trace, failure = _run(exercise, idea, check, seed)
            if failure is not None:
                error = trace[-1].error if trace else None
                return check, None if error and error[0] in NOTHING_TO_EXPLAIN else failure
    return None


def _run(exercise: Exercise, idea: Misconception, check: Check, seed: int) -> tuple[Trace, str | None]:
    """What comes back where `idea` is judged by `check`, and how it fails; None where it passes."""
    student = LocalStudent(exercise.names(idea))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            check(student, exercise.rng(check.id, seed))
        except CheckFailed as failure:
            return student.trace, failure.what
        except StudentError as error:
            return student.trace, f"your {error.name} raised {error.type}: {error.message}"
    return student.trace, None


def _refuse_known(exercise: Exercise, source: str, found: Found) -> None:
    """An answer that has a name, or could not be told by what comes back, is not learned."""
    check, idea = exercise.checks[found.first_fails], _candidate(exercise, source, found.replaces)
    for seed in NAMED:
        trace, _ = _run(exercise, idea, check, seed)
        known = explain(exercise, check, seed, trace)
        if known:
            raise UsageError(f"the answer has a name already, {known[0].id}: {known[0].sentence}")
        error = next((seen.error for seen in trace if seen.error), None)
        if error:
            raise UsageError(
                f"in {check.id}, {found.replaces} raises {error[0]} ({printable(error[1])[:200]}); whatever else raises"
                " that would get the same name, so only answers that return something are learned"
            )
        if not off_in_numbers(trace, replay(exercise, check, seed)):
            raise UsageError(
                f"in {check.id}, {found.replaces} returns no finite number that a right answer does not; whatever else"
                " returns that would get the same name"
            )


# --- the laws ---------------------------------------------------------------------------------------------------------


def _refuse_unnamed(exercise: Exercise, idea: Misconception) -> None:
    """The catalogue with `idea` in it gives the answer this name and no other."""
    check = exercise.checks[idea.first_fails]
    for seed in NAMED:
        trace, _ = _run(exercise, idea, check, seed)
        named = [other.id for other in explain(exercise, check, seed, trace)]
        if named != [idea.id]:
            raise UsageError(
                f"the answer is not the same when it is asked again, so {check.id} could not tell it by name; does it"
                " draw random numbers, or remember earlier calls?"
            )


def _refuse_alike(exercise: Exercise, idea: Misconception) -> None:
    """Where wrong answers have a family, and so are told apart: none gives what `idea` gives where that one is named.

    Elsewhere two ideas may look alike in one check, and the one that stands first in the catalogue is told first.
    """
    if idea.replaces not in exercise.families:
        return
    others = [other for other in exercise.misconceptions.values() if other.replaces == idea.replaces]
    checks: Collection[str] = dict.fromkeys(other.first_fails for other in others)
    for check, seed in ((exercise.checks[id], seed) for id in checks for seed in NAMED):
        trace = replay(exercise, check, seed, idea)
        for other in others:
            if other.first_fails == check.id and same_trace(replay(exercise, check, seed, other), trace):
                raise UsageError(
                    f"in {check.id} the answer gives what {other.id} gives, which would then have two names:"
                    f" {other.sentence}"
                )
