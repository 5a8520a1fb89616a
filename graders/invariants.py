"""What is wrong with an answer that no misconception explains: facts about it, never a guess at its cause.

An exercise registers what holds of every right answer (`exercise.invariant`). Here those are tried on the calls that a
failed check made, and last of all whether the answer is the right one but for a factor, an order or a transpose.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graders.authoring import Check, CheckFailed, Exercise
from graders.diagnosis import replay, same
from graders.sandbox.box import Stopped
from graders.student import Observation, Student, StudentError

MOST_QUESTIONS = 5
"""How often the student's function is called again for one failed check."""
ENOUGH_NUMBERS = 4
"""Of fewer numbers, any two answers are alike but for a factor or an order."""

Request = dict[str, Any]


@dataclass
class Call:
    """One call that a check made: what was asked, what came back, and the means to ask again."""

    request: Request
    value: Any
    ask: Callable[[Request], Any]

    @property
    def name(self) -> str:
        """The student's function."""
        return str(self.request["name"])

    def again(self, **changes: Any) -> Any:
        """What comes back from the same request with `changes`."""
        return self.ask({**self.request, **changes})


def broken(exercise: Exercise, check: Check, seed: int, student: Student) -> list[str]:
    """One sentence for each invariant that fails in what `student` answered to `check`; it may be asked again."""
    trace = list(student.trace)
    if not exercise.invariants or not trace or trace[-1].error is not None:
        return []
    asked = _asked(exercise, check, seed, trace)
    ask = _bounded(student)
    # Where two equal questions get two answers, comparing the answers to two different ones says nothing.
    calls = [Call(request, seen.value, ask) for request, seen in zip(asked, trace, strict=False)]
    if calls and (chance := _tried(_left_to_chance, calls[-1])):
        return [chance]
    told: dict[str, None] = {}
    for call in calls:
        for invariant in exercise.invariants.get(call.name, []):
            told[_tried(invariant, call)] = None
    told[_but_for(replay(exercise, check, seed), trace)] = None
    return [sentence for sentence in told if sentence]


def _tried(invariant: Callable[[Call], str], call: Call) -> str:
    """An answer of another shape or type has no such invariant, and one that fails now has been told so."""
    expected_of_strange_answers = (StudentError, Stopped, CheckFailed, ValueError, TypeError, IndexError, KeyError)
    with warnings.catch_warnings(), np.errstate(all="ignore"), contextlib.suppress(*expected_of_strange_answers):
        warnings.simplefilter("ignore")
        return invariant(call)
    return ""


def _left_to_chance(call: Call) -> str:
    """The same question gets the same answer, within what a check lets pass."""
    return "" if same(call.again(), call.value) else "the same call gives other numbers when it is repeated"


def _bounded(student: Student) -> Callable[[Request], Any]:
    left = MOST_QUESTIONS

    def ask(request: Request) -> Any:
        nonlocal left
        if left == 0:
            raise Stopped("not_run", "enough has been asked")
        left -= 1
        return student._ask(**request).value

    return ask


class _Recorder(Student):
    """Answers from a trace, and notes what it was asked."""

    def __init__(self, trace: Sequence[Observation]) -> None:
        super().__init__(dict)
        self._replies, self.asked = iter(trace), list[Request]()

    def _ask(self, **request: Any) -> Observation:
        seen = next(self._replies, None)
        if seen is None or seen.error is not None:
            raise StudentError(request["name"], "Missing", "", "")
        self.asked.append(request)
        return seen


def _asked(exercise: Exercise, check: Check, seed: int, trace: Sequence[Observation]) -> list[Request]:
    recorder = _Recorder(trace)
    with contextlib.suppress(CheckFailed, StudentError):
        check(recorder, exercise.rng(check.id, seed))
    return recorder.asked


# --- right but for something ------------------------------------------------------------------------------------------


def _but_for(right: Sequence[Observation], trace: Sequence[Observation]) -> str:
    """How all wrong answers of `trace` differ from the right ones, if in the same simple way."""
    both = [(_first(mine.value), _first(theirs.value)) for theirs, mine in zip(right, trace, strict=False)]
    wrong = [(got, expected) for got, expected in both if not same(got, expected)]
    for relation in (_factor, _transpose, _order):
        told = {relation(got, expected) for got, expected in wrong}
        if len(told) == 1 and "" not in told:
            return told.pop()
    return ""


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) and len(value) else value


def _numbers(*values: Any) -> bool:
    return all(
        isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.size >= ENOUGH_NUMBERS
        and np.isfinite(value).all() for value in values
    )  # fmt: skip


def _factor(got: Any, expected: Any) -> str:
    if not _numbers(got, expected) or got.shape != expected.shape or not np.any(expected):
        return ""
    factor = float(np.vdot(expected, got) / np.vdot(expected, expected))
    if factor == 0 or not same(got, factor * expected):
        return ""
    return f"your output is the right one times {factor:.4g} everywhere"


def _transpose(got: Any, expected: Any) -> str:
    if not _numbers(got, expected) or expected.ndim < 2 or not same(got, np.swapaxes(expected, -1, -2)):
        return ""
    return "your output is the right one transposed"


def _order(got: Any, expected: Any) -> str:
    """Rows are paired by sorting both; equal rows pair anyhow."""
    if not _numbers(got, expected) or got.shape != expected.shape or got.ndim < 2:
        return ""
    ours, theirs = (_sorted_rows(array) for array in (expected, got))
    return "your output has the right rows in another order" if same(theirs, ours) else ""


def _sorted_rows(array: np.ndarray) -> np.ndarray:
    rows = array.reshape(-1, array.shape[-1])
    return rows[np.lexsort(np.round(rows.T, 6)[::-1])]
