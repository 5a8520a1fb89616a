"""Which misconception explains what a student's answer did.

A check is run again, on the same hidden inputs, with one wrong reference in the student's place. If everything that
came back is what came back from the student, and it differs from what a right answer gives, that misconception is
named. Where no single one does, pairs of a family's faults are tried in the same way.
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from graders.authoring import TOLERANCE, Check, CheckFailed, Exercise, Misconception
from graders.sandbox.inside import calls
from graders.student import LocalStudent, ModuleState, Observation, Structure, Student, StudentError, through

Trace = Sequence[Observation]
Alike = Callable[[Observation, Observation], bool]

PATIENCE = 2.0
"""Seconds of work for the pairs of one check, which take a fraction of it: so a busy machine names what an idle one
does, and a catalogue that has grown large delays nobody."""

NOTHING_TO_EXPLAIN = ("Missing", "NotImplementedError")
"""Errors that say that there is no answer yet, right or wrong."""


@dataclass
class Earlier:
    """What the checks before this one made of the same hand-in: those passed and failed, and the ids named so far."""

    passed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)

    def note(self, check: str, named: Iterable[str] | None) -> None:
        """Keep one check's outcome: the ids named for its failure, or None where it passed."""
        if named is None:
            self.passed.add(check)
        else:
            self.failed.add(check)
            self.named.update(named)

    def refutes(self, idea: Misconception) -> bool:
        """Whether the idea fails a check that this hand-in passed, or failed without being given its name."""
        return idea.first_fails in self.passed or bool(self.contradicts(idea))

    def contradicts(self, idea: Misconception) -> int:
        """How many parts of the idea should have shown before, and were not named."""
        return sum(part.first_fails in self.failed for part in self._new(idea))

    def strangeness(self, idea: Misconception) -> tuple[int, int]:
        """By what ideas are ordered: how much speaks against one, and how much of it is new."""
        return self.contradicts(idea), len(self._new(idea))

    def _new(self, idea: Misconception) -> list[Misconception]:
        return [part for part in idea.parts or (idea,) if part.id not in self.named]


class OutOfTime(Exception):
    """Explaining a failure took longer than it may."""


def explain(
    exercise: Exercise,
    check: Check,
    seed: int,
    trace: Trace,
    earlier: Earlier | None = None,
    seconds: float = math.inf,
) -> list[Misconception]:
    """The misconceptions that reproduce `trace`, which failed `check` on the inputs of `seed`; likeliest first.

    A pair comes as one Misconception with two `parts`, and only where no single one explains the trace. What `earlier`
    checks found decides between ideas that are alike in this one, and an error alone is no evidence against it.

    Raises OutOfTime, at the next idea, after `seconds` of work: what a student sent may take long to compare.
    """
    until = time.thread_time() + seconds
    earlier = earlier or Earlier()
    if trace and trace[-1].error is not None and trace[-1].error[0] in NOTHING_TO_EXPLAIN:
        return []
    right = replay(exercise, check, seed)
    found = named_by_check(exercise, check, seed, trace)
    called = {seen.name for seen in trace}
    singles = [idea for idea in exercise.misconceptions.values() if idea.replaces in called and idea not in found]
    again = _Again(exercise, check, seed, trace, right, until)
    reproduced = again.reproduced_by(singles)
    refuted = {idea.id for idea in reproduced if earlier.refutes(idea)}
    found += [idea for idea in reproduced if idea.id not in refuted]
    found = found or again.beside_changed_arguments([idea for idea in singles if not earlier.refutes(idea)])
    if not found:
        pairs_given = again.reproduced_by_pairs(_may_show(exercise, check, called))
        # What a refuted idea gives alone, it also gives beside one that does not show here.
        found = [pair for pair in pairs_given if not refuted & {part.id for part in pair.parts}]
    if not off_in_numbers(trace, right):
        found = [idea for idea in found if not earlier.contradicts(idea)]
    return sorted(found, key=earlier.strangeness)


def _may_show(exercise: Exercise, check: Check, names: Collection[str]) -> set[str]:
    """Those of `names` about which some idea shows here or later: of the others, earlier checks have said it all."""
    order = list(exercise.checks)
    late = order[order.index(check.id) :]
    return {idea.replaces for idea in exercise.misconceptions.values() if idea.first_fails in late} & set(names)


def pairs(exercise: Exercise, *, replacing: Collection[str] | None = None) -> Iterator[Misconception]:
    """Every two faults of one function that can be combined, as one Misconception each; likeliest first.

    Of all functions, or of those named in `replacing`.

    Two faults can be combined where they are made of different choices. A catalogue starts with what most people get
    wrong, so of two pairs the one is likelier whose ideas stand nearer to its start.
    """
    for replaced, make in exercise.families.items():
        if replacing is not None and replaced not in replacing:
            continue
        ideas = [idea for idea in exercise.misconceptions.values() if idea.replaces == replaced and idea.faults]
        ranked = sorted(combinations(enumerate(ideas), 2), key=lambda two: two[0][0] + two[1][0])
        for (_, one), (_, other) in ranked:
            if not one.faults.keys() & other.faults.keys():
                yield _pair(exercise, one, other, make(**one.faults, **other.faults))


def _pair(exercise: Exercise, one: Misconception, other: Misconception, answer: Any) -> Misconception:
    """Both ideas as one; the part that fails first, if one does, comes first."""
    order = list(exercise.checks)
    parts = sorted((one, other), key=lambda part: order.index(part.first_fails))
    first, second = parts
    sentence = f"{first.sentence} {second.sentence}"
    hint = first.hint or second.hint
    name = f"{first.id}+{second.id}"
    return Misconception(name, one.replaces, first.first_fails, sentence, hint, answer, parts=tuple(parts))


class _Again:
    """One failed check, to be run again with wrong references."""

    def __init__(self, exercise: Exercise, check: Check, seed: int, trace: Trace, right: Trace, until: float) -> None:
        self.exercise, self.check, self.seed, self.trace, self.right = exercise, check, seed, trace, right
        self.until = until

    def reproduced_by(self, ideas: Sequence[Misconception]) -> list[Misconception]:
        """Those of `ideas` that give the trace."""
        return [idea for idea in ideas if self._reproduces(idea)]

    def beside_changed_arguments(self, ideas: Sequence[Misconception]) -> list[Misconception]:
        """Where arguments were changed: those of `ideas` that give the values, each with one that changes them so."""
        changed = _changed(self.trace, self.right)
        if not changed:
            return []
        valued = [idea for idea in ideas if self._reproduces(idea, _same_values)]
        changing = [idea for idea in ideas if changed == _changed(self._replayed(idea), self.right)]
        found = [_pair(self.exercise, idea, other, None) for idea in valued for other in changing if other != idea]
        return found or valued

    def reproduced_by_pairs(self, called: set[str]) -> list[Misconception]:
        """The pairs that give the trace, if there are numbers in it that a right answer does not give."""
        if not off_in_numbers(self.trace, self.right):
            return []
        until, found = time.thread_time() + PATIENCE, []
        first = _First(self.exercise, self.check, self.seed, self.right)
        for pair in pairs(self.exercise, replacing=called):
            if time.thread_time() > until:
                break
            if first.may_give(pair, self.trace[0]) and self._reproduces(pair):
                found.append(pair)
        return found

    def _replayed(self, idea: Misconception) -> list[Observation]:
        return replay(self.exercise, self.check, self.seed, idea)

    def _reproduces(self, idea: Misconception, alike: Alike | None = None) -> bool:
        if time.thread_time() > self.until:
            raise OutOfTime
        alike = alike or _same_observation
        wrong = replay(self.exercise, self.check, self.seed, idea, like=self.trace, alike=alike)
        return same_trace(wrong, self.trace, alike) and not same_trace(wrong, self.right[: len(wrong)], alike)


def off_in_numbers(trace: Trace, right: Trace) -> bool:
    """Whether some value of `trace` holds finite numbers and differs from the right one.

    An error, or NaN throughout, looks the same whatever two things made it, and so is no evidence for a pair.
    """
    return any(
        seen.error is None and _some_finite(seen.value) and not _same_values(seen, other)
        for seen, other in zip(trace, right, strict=False)
    )


def _some_finite(value: Any) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return any(_some_finite(item) for item in value)
    array = np.asarray(value) if isinstance(value, (np.ndarray, float, int)) else np.array([])
    return array.dtype.kind in "fiub" and bool(np.isfinite(array).any())


def _changed(trace: Trace, right: Trace) -> set[int]:
    """Which arguments are not what they are after a right answer, in any call."""
    return {
        index
        for seen, other in zip(trace, right, strict=False)
        for index, (after, before) in enumerate(zip(seen.arguments, other.arguments, strict=False))
        if not same(after, before)
    }


class _First:
    """The first thing that a check asks: most pairs are told apart by it alone, without a run of the whole check."""

    def __init__(self, exercise: Exercise, check: Check, seed: int, right: Trace) -> None:
        self._references, request = exercise.references, _first_request(exercise, check, seed)
        # As the student's process has it: with tensors.
        self._request = None if request is None else through(request, tensors=True)
        # A check may note what it took a reply for, and then only a whole run can be compared.
        self._comparable = bool(right) and self._gives(exercise.references, right[0])

    def may_give(self, idea: Misconception, seen: Observation) -> bool:
        """Whether `idea` answers the first request as `seen`, as far as that can be told."""
        if not self._comparable or seen.name != idea.replaces:
            return True
        return self._gives({**self._references, idea.replaces: idea.answer}, seen)

    def _gives(self, names: Mapping[str, Any], seen: Observation) -> bool:
        """Whether `names` answer with the value, or the kind of error, that was seen."""
        if self._request is None:
            return False
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            reply = calls.perform(dict(names), _copied(self._request))
        if "error" in reply or seen.error is not None:
            return "error" in reply and seen.error is not None and reply["error"]["type"] == seen.error[0]
        return same(_in_numpy(reply["value"]), seen.value)


def _copied(tree: Any) -> Any:
    """A request that may be written to."""
    if isinstance(tree, dict):
        return {key: _copied(item) for key, item in tree.items()}
    if isinstance(tree, list):
        return [_copied(item) for item in tree]
    return tree.clone() if hasattr(tree, "clone") else tree  # arrays are copied by whoever carries the request out


def _in_numpy(value: Any) -> Any:
    """A reference's own result as the check would see it."""
    if isinstance(value, (tuple, list)):
        return type(value)(_in_numpy(item) for item in value)
    return value.detach().numpy() if hasattr(value, "detach") else value


class _Stops(Student):
    """A student that only notes what it is asked first."""

    def __init__(self) -> None:
        super().__init__(dict)
        self.asked: dict[str, Any] | None = None

    def _ask(self, **request: Any) -> Observation:
        self.asked = request
        raise StudentError(request["name"], "Missing", "", "")


def _first_request(exercise: Exercise, check: Check, seed: int) -> dict[str, Any] | None:
    student = _Stops()
    with contextlib.suppress(CheckFailed, StudentError):
        check(student, exercise.rng(check.id, seed))
    return student.asked


def named_by_check(exercise: Exercise, check: Check, seed: int, trace: Trace) -> list[Misconception]:
    """The misconception that `check` itself names when it judges `trace` again, or two joined by "+", if any.

    A check names one where behaviour tells and values do not: infinitely many weights make the same wrong head.
    """
    try:
        check(_Recorded(trace), exercise.rng(check.id, seed))
    except CheckFailed as failure:
        ids = failure.misconception.split("+")
        ideas = [exercise.misconceptions[id] for id in ids if id in exercise.misconceptions]
        return ideas if len(ideas) < 2 else [_pair(exercise, ideas[0], ideas[1], None)]
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

    def __init__(self, names: Mapping[str, Any], trace: Trace, alike: Alike) -> None:
        super().__init__(names)
        self._like, self._alike = trace, alike

    def _ask(self, **request: Any) -> Observation:
        # The last observation is complete only now: the check may have noted what it took the reply for.
        done = len(self.trace)
        if done > len(self._like) or (done and not self._alike(self.trace[-1], self._like[done - 1])):
            raise _Differs
        return super()._ask(**request)


def replay(
    exercise: Exercise,
    check: Check,
    seed: int,
    misconception: Misconception | None = None,
    like: Trace | None = None,
    alike: Alike | None = None,
) -> list[Observation]:
    """What comes back when `check` judges the references, or the references with one replaced by a misconception.

    With `like`, no further than to where it differs from that trace by `alike`.
    """
    names = dict(exercise.references)
    if misconception is not None:
        names[misconception.replaces] = misconception.answer
    student = LocalStudent(names) if like is None else _Following(names, like, alike or _same_observation)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with contextlib.suppress(CheckFailed, StudentError, _Differs):
            check(student, exercise.rng(check.id, seed))
    return student.trace


def same_trace(left: Trace, right: Trace, alike: Alike | None = None) -> bool:
    """Both requests for request the same, values, arguments and gradients, or what else `alike` compares."""
    alike = alike or _same_observation
    return len(left) == len(right) and all(alike(a, b) for a, b in zip(left, right, strict=True))


def _same_observation(left: Observation, right: Observation) -> bool:
    return _same_values(left, right) and same(left.arguments, right.arguments)


def _same_values(left: Observation, right: Observation) -> bool:
    if left.error is not None or right.error is not None:
        # Messages differ between equal mistakes (another variable name, another line), so the kind of error decides.
        return left.error is not None and right.error is not None and left.error[0] == right.error[0]
    return same(left.value, right.value) and same(left.gradients, right.gradients)


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


def _length(value: Any) -> int:
    """Of the first axis; 0 for what has none."""
    return len(value) if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim) else 0


def _ragged(value: Any) -> bool:
    """A sequence that is not simply an array written as a list."""
    if not isinstance(value, (list, tuple)):
        return False
    return isinstance(value, tuple) or any(
        isinstance(item, (np.ndarray, dict, tuple, type(None), str)) for item in value
    )


def _same_arrays(left: Any, right: Any) -> bool:
    if _length(left) != _length(right):
        return False  # before a list of any length becomes an array
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
