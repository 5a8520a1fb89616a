"""Which misconception explains what a student's answer did.

A check is run again, on the same hidden inputs, with one wrong reference in the student's place. If everything that
came back is what came back from the student, and it differs from what a right answer gives, that misconception is
named.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graders.authoring import TOLERANCE, Check, CheckFailed, Exercise, Misconception
from graders.student import LocalStudent, ModuleState, Observation, Structure, Student, StudentError

Trace = Sequence[Observation]


def explain(exercise: Exercise, check: Check, seed: int, trace: Trace) -> list[Misconception]:
    """The misconceptions that reproduce `trace`, which failed `check` on the inputs of `seed`; likeliest first."""
    if trace and trace[-1].error is not None and trace[-1].error[0] in NOTHING_TO_EXPLAIN:
        return []
    called = {seen.name for seen in trace}
    right = replay(exercise, check, seed)
    found = named_by_check(exercise, check, seed, trace)
    for misconception in exercise.misconceptions.values():
        if misconception.replaces not in called or misconception in found:
            continue
        wrong = replay(exercise, check, seed, misconception, like=trace)
        if same_trace(wrong, trace) and not same_trace(wrong, right[: len(wrong)]):
            found.append(misconception)
    return found


NOTHING_TO_EXPLAIN = ("Missing", "NotImplementedError")
"""Errors that say that there is no answer yet, right or wrong."""


def named_by_check(exercise: Exercise, check: Check, seed: int, trace: Trace) -> list[Misconception]:
    """The misconception that `check` itself names when it judges `trace` again, if any.

    A check names one where behaviour tells and values do not: infinitely many weights make the same wrong head.
    """
    try:
        check(_Recorded(trace), exercise.rng(check.id, seed))
    except CheckFailed as failure:
        named = exercise.misconceptions.get(failure.misconception)
        return [] if named is None else [named]
    except StudentError:
        pass
    return []


class _Recorded(Student):
    """A student that answers each request with the next observation of a trace."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(dict)
        self._replies = iter(trace)

    def _ask(self, **request: Any) -> Observation:
        seen = next(self._replies, Observation(request["name"], error=("Missing", "")))
        if seen.error is not None:
            raise StudentError(seen.name, *seen.error, "")
        return seen


class _Differs(Exception):
    """The replay has parted from the trace that it should follow."""


class _Following(LocalStudent):
    """A local student that stops as soon as what it brings back is not what `trace` holds."""

    def __init__(self, names: Mapping[str, Any], trace: Trace) -> None:
        super().__init__(names)
        self._like = trace

    def _ask(self, **request: Any) -> Observation:
        # The last observation is complete only now: the check may have noted what it took the reply for.
        done = len(self.trace)
        if done > len(self._like) or (done and not _same_observation(self.trace[-1], self._like[done - 1])):
            raise _Differs
        return super()._ask(**request)


def replay(
    exercise: Exercise, check: Check, seed: int, misconception: Misconception | None = None, like: Trace | None = None
) -> list[Observation]:
    """What comes back when `check` judges the references, or the references with one replaced by a misconception.

    With `like`, no further than to where it differs from that trace.
    """
    names = dict(exercise.references)
    if misconception is not None:
        names[misconception.replaces] = misconception.answer
    student = LocalStudent(names) if like is None else _Following(names, like)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.suppress(CheckFailed, StudentError, _Differs):
            check(student, exercise.rng(check.id, seed))
    return student.trace


def same_trace(left: Trace, right: Trace) -> bool:
    """Both requests for request the same, values first; arguments count where they are what differs."""
    return len(left) == len(right) and all(_same_observation(a, b) for a, b in zip(left, right, strict=True))


def _same_observation(left: Observation, right: Observation) -> bool:
    if left.error is not None or right.error is not None:
        # Messages differ between equal mistakes (another variable name, another line), so the kind of error decides.
        return left.error is not None and right.error is not None and left.error[0] == right.error[0]
    return (
        same(left.value, right.value)
        and same(left.arguments, right.arguments)
        and same(left.gradients, right.gradients)
    )


def same(left: Any, right: Any) -> bool:
    """Equal as data, floats within the contract's tolerance."""
    if isinstance(left, Structure):
        left = left.fields
    if isinstance(right, Structure):
        right = right.fields
    if isinstance(left, ModuleState) and isinstance(right, ModuleState):
        return same(left.parameters, right.parameters)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if _ragged(left) or _ragged(right):
        sequences = isinstance(left, (list, tuple)) and isinstance(right, (list, tuple))
        return sequences and len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return _same_arrays(left, right)


def _ragged(value: Any) -> bool:
    """A sequence that is not simply an array written as a list."""
    if not isinstance(value, (list, tuple)):
        return False
    return isinstance(value, tuple) or any(
        isinstance(item, (np.ndarray, dict, tuple, type(None), str)) for item in value
    )


def _same_arrays(left: Any, right: Any) -> bool:
    try:
        a, b = np.asarray(left), np.asarray(right)
    except ValueError:
        return False
    if a.shape != b.shape or a.dtype.kind not in "fiub" or b.dtype.kind not in "fiub":
        return bool(a.shape == b.shape and a.dtype.kind == b.dtype.kind and np.array_equal(a, b))
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = b[np.isfinite(b)]
    tolerance = TOLERANCE * float(np.max(np.abs(finite), initial=0.0)) + 1e-12
    return bool(np.allclose(a, b, rtol=0.0, atol=tolerance, equal_nan=True))
