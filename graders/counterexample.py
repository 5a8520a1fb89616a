"""The smallest input on which an answer is wrong, in numbers that a person can check by hand; for instructors.

Inputs are drawn from the signatures of the references, which state every shape; hypothesis searches and shrinks. Where
an answer is numbers of a student's own, the idea that explains them is tried on other numbers.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import tempfile
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from graders.authoring import CheckFailed, Exercise, Misconception, UsageError, expect_close, expect_unchanged, fields
from graders.diagnosis import explain
from graders.reports.counter_example import Pair
from graders.reports.message import number
from graders.reports.quote import printable
from graders.sandbox.box import Sandbox, Stopped
from graders.sandbox.session import Session
from graders.student import LocalStudent, ModuleState, Structure, Student, StudentError, Tensor

TRIES = 200
"""Inputs per search: a wrong function mostly differs at one of the first ten."""
SMALLER = 300
"""Inputs tried to find a smaller one than the first that is wrong."""

MOST_LINES, LONGEST = 30, 300
"""Of a value in the text: lines, and characters in each."""

NO_ANSWER = ("Missing", "NotImplementedError")


@dataclass(frozen=True)
class Search:
    """One kind of input: `entries` from the simplest on, as `dtype`; lengths reach `longest`, other sizes `widest`."""

    entries: tuple[float, ...]
    longest: int
    widest: int
    dtype: type = np.float64
    batches: int = 3


SMALL = (0, 1, -1, 2, -2, 3, -3)
SEARCHES = (
    Search(SMALL, longest=3, widest=3),
    Search(SMALL, longest=3, widest=3, dtype=np.int64),
    # One column of entries up to 5.5 makes scores up to 5.5⁴ = 915: beyond exp's range, within the contract's ±1000.
    Search((0, 1, -1, 5.5, -5.5), longest=2, widest=1),
)
ALONE = Search(SMALL[:4], longest=2, widest=2, batches=1)
"""Where much must be drawn, as all that a class is made of, one short sequence is tried before all else."""
SCALES = (1.0, 0.5)


@dataclass
class Found:
    """An input and what both sides made of it; `yours` is a value, or what went wrong in words."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    yours: Any = None
    right: Any = None

    def text(self) -> str:
        """The counter-example as plain text."""
        rows = {**self.arguments, "yours": self.yours, "right": self.right}
        width = max(len(name) for name in rows) + 3
        lines = [f"{self.name} is wrong, for example, on"]
        for name, value in rows.items():
            first, *others = _cut(_written(value))
            lines += [f"    {name:<{width}}{first}", *(" " * (4 + width) + line for line in others)]
        return "\n".join(lines)


def counterexamples(exercise: Exercise, source: str, sandbox: Sandbox, id: str = "") -> str:
    """For each answer in `source` that is wrong, the smallest input that shows it, as plain text.

    `id` is the student's, for exercises with personal numbers. Raises UsageError where hypothesis is missing.
    """
    hypothesis = _hypothesis()
    with Session(sandbox, [source]) as session:
        session.run()
        if exercise.notebook is not None:
            return "\n\n".join(_of_ideas(hypothesis, exercise, session, id)) or "nothing is wrong"
        names = [name for name, answer in exercise.answers.items() if answer.before.startswith("def ")]
        names += exercise.trials
        found = [_search(hypothesis, exercise, name, Student(session.perform)) for name in names]
    told = [one.text() for one in found if one is not None]
    return "\n\n".join(told) or f"no counter-example found among small inputs of {', '.join(names)}"


def _hypothesis() -> ModuleType:
    try:
        import hypothesis
        from hypothesis.configuration import set_hypothesis_home_dir
    except ImportError:
        raise UsageError(
            "--counterexample needs hypothesis, which is not installed here; pip install hypothesis"
        ) from None
    set_hypothesis_home_dir(tempfile.gettempdir())  # it keeps notes, and they are none of the course's files
    return hypothesis


def _search(hypothesis: ModuleType, exercise: Exercise, name: str, student: Student) -> Found | None:
    trial = _Tried(exercise, name, student) if name in exercise.trials else _Trial(exercise, name, student)
    for search in trial.searches:
        _find(hypothesis, trial.inputs(search), trial.fails)
        if trial.found is not None or trial.over:
            break
    return trial.found


def _find(hypothesis: ModuleType, inputs: Any, fails: Callable[[dict[str, Any]], bool]) -> None:
    """Have hypothesis look for the smallest of `inputs` that fails; what it saw, `fails` keeps."""
    with contextlib.suppress(_Enough, hypothesis.errors.HypothesisException):
        hypothesis.find(
            inputs,
            fails,
            settings=hypothesis.settings(
                max_examples=TRIES,
                phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
                deadline=None,
                database=None,
                derandomize=True,
                suppress_health_check=list(hypothesis.HealthCheck),
            ),
        )


# --- one try ----------------------------------------------------------------------------------------------------------


class _Enough(BaseException):
    """Nothing more is to be learned by asking. No Exception, which hypothesis would take for one more wrong answer."""


class _Trial:
    """Asks both sides, and keeps the last input on which they differ: hypothesis ends with the smallest."""

    searches: tuple[Search, ...] = SEARCHES

    def __init__(self, exercise: Exercise, name: str, student: Student) -> None:
        self.exercise, self.name, self.student = exercise, name, student
        self.right = LocalStudent(exercise.references)
        self.found: Found | None = None
        self.over = False
        self._since = 0

    def inputs(self, search: Search) -> Any:
        """A strategy for the arguments."""
        return _inputs(self.exercise.references[self.name], search)

    def fails(self, arguments: dict[str, Any]) -> bool:
        """Whether the student's answer is wrong on `arguments`; raises _Enough where it should not be asked again."""
        self.right.trace.clear()
        self.student.trace.clear()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                right = self._truth(arguments)
            except StudentError:
                return False  # no input of this function's
            problem = self._problem(arguments, right)
        if problem is not None:
            shown = {name: _array(value) for name, value in arguments.items()}
            self.found = Found(self.name, shown, problem, right)
        self._since += self.found is not None
        if self.over or self._since > SMALLER:
            raise _Enough
        return problem is not None

    def _truth(self, arguments: dict[str, Any]) -> Any:
        return self.right.observe(self.name, *arguments.values()).value

    def _problem(self, arguments: dict[str, Any], right: Any) -> Any:
        """What is wrong with the student's reply: the value, or words; None if nothing is."""
        try:
            return self._asked(arguments, right)
        except StudentError as error:
            self.over = error.type in NO_ANSWER
            return None if self.over else f"raises {error.type}"
        except Stopped as stop:
            self.over = True
            return stop.reason if stop.cause == "timeout" else None
        except CheckFailed as failure:
            return failure.what

    def _asked(self, arguments: dict[str, Any], right: Any) -> Any:
        seen = self.student.observe(self.name, *arguments.values())
        before = [_array(value) for value in arguments.values()]
        expect_unchanged(before, seen.arguments, names=list(arguments))
        return None if self._right(seen.value, before, right) else _plain(seen.value)

    def _right(self, value: Any, arguments: Sequence[Any], right: Any) -> bool:
        accepted = self.exercise.accepted.get(self.name)
        try:
            return accepted(value, *arguments) if accepted else agree(value, right)
        except CheckFailed:
            return False


class _Tried(_Trial):
    """An answer that is no function, asked as its exercise says; what is right may depend on what it is made of."""

    searches = (ALONE, *SEARCHES)

    def inputs(self, search: Search) -> Any:
        return _inputs(self.exercise.trials[self.name], search)

    def _truth(self, arguments: dict[str, Any]) -> Any:
        return self.exercise.trials[self.name](self.right, *arguments.values())[1]

    def _asked(self, arguments: dict[str, Any], right: Any) -> Any:
        value, theirs = self.exercise.trials[self.name](self.student, *arguments.values())
        return None if agree(value, theirs) else _plain(value)


# --- numbers of one's own ---------------------------------------------------------------------------------------------


def _of_ideas(hypothesis: ModuleType, exercise: Exercise, session: Session, id: str) -> Iterator[str]:
    """For each answer that is wrong on the student's own numbers: small ones on which its idea is wrong, in words."""
    for check in exercise.checks.values():
        student = Student(session.perform, id=id)
        try:
            check(student, exercise.rng(check.id, 0))
        except CheckFailed as failure:
            ideas = explain(exercise, check, 0, student.trace)
            found = _other_numbers(hypothesis, exercise, ideas[0]) if ideas else None
            yield found.text() if found else f"{failure.what}; no idea explains it, so it is tried on no other numbers"


def _other_numbers(hypothesis: ModuleType, exercise: Exercise, idea: Misconception) -> Found | None:
    """The smallest numbers of the shapes that students get on which `idea` gives something finite and wrong."""
    from hypothesis import strategies as st

    pair = Pair(exercise.references[idea.replaces], idea.answer, exercise.references)
    own = exercise.names(id="anyone")
    shapes = {name: own[name].shape for name in pair.parameters()}
    found: list[Found] = []

    def fails(given: dict[str, np.ndarray]) -> bool:
        with np.errstate(all="ignore"):
            right, wrong = (pair.call(function, given) for function in (pair.reference, pair.wrong))
            shown = {**given, **pair.steps(given)}
        if not np.isfinite(wrong).all() or agree(wrong, right):
            return False
        found.append(Found(idea.replaces, shown, wrong, right))
        return True

    _find(hypothesis, st.fixed_dictionaries({name: _small(st, shape) for name, shape in shapes.items()}), fails)
    return found[-1] if found else None


def _small(st: ModuleType, shape: tuple[int, ...]) -> Any:
    """Arrays of 0, 1 and 2."""
    size = int(np.prod(shape))
    entries = st.lists(st.integers(0, 2), min_size=size, max_size=size)
    return entries.map(lambda numbers: np.array(numbers, dtype=np.float64).reshape(shape))


def agree(value: Any, right: Any) -> bool:
    """Whether `value` holds the numbers of `right`, in whatever container."""
    try:
        if isinstance(right, Mapping):
            return all(agree(part, right[name]) for name, part in fields(value, list(right), what="it").items())
        if isinstance(right, ModuleState):
            return isinstance(value, ModuleState) and _same_module(value, right)
        if isinstance(right, (tuple, list)):
            parts = _plain(value)
            return len(parts) == len(right) and all(agree(a, b) for a, b in zip(parts, right, strict=True))
        expect_close(value, right, name="it")
    except (CheckFailed, TypeError):
        return False
    return True


def _same_module(value: ModuleState, right: ModuleState) -> bool:
    extra = (np.any(array) for name, array in value.parameters.items() if name not in right.parameters)
    return agree(value.parameters, right.parameters) and not any(extra)


def _plain(value: Any) -> Any:
    """A structure's parts, a module's parameters; other values as they are, but None in words."""
    if isinstance(value, Structure):
        return value.items or tuple(value.fields.values())
    if isinstance(value, ModuleState):
        return dict(value.parameters)
    return "None" if value is None else value


def _array(argument: Any) -> Any:
    return argument.array if isinstance(argument, Tensor) else argument


# --- inputs from signatures -------------------------------------------------------------------------------------------


def _inputs(reference: Any, search: Search) -> Any:
    """A strategy for the arguments of `reference`, by name; the student whom a trial asks is none."""
    from hypothesis import strategies as st

    hints = typing.get_type_hints(reference)
    parameters = [name for name in inspect.signature(reference).parameters if hints.get(name) is not Student]

    @st.composite
    def draw_arguments(draw: Any) -> dict[str, Any]:
        sizes: dict[str, int] = {}
        return {name: _drawn(draw, st, hints.get(name), search, sizes) for name in parameters}

    return draw_arguments()


def _drawn(draw: Any, st: ModuleType, hint: Any, search: Search, sizes: dict[str, int]) -> Any:
    if hint is bool:
        return not draw(st.booleans())  # the simplest is True: what a flag asks for is what is learned first
    if hint is int:
        return draw(st.integers(2, 4))
    if hint is float:
        return draw(st.sampled_from(SCALES))
    if not hasattr(hint, "dim_str"):
        raise UsageError(f"inputs are drawn for arrays, numbers and flags, and there is an argument of type {hint}")
    shape = _shape(draw, st, hint.dim_str, search, sizes)
    entries = st.sampled_from(search.entries)
    numbers = draw(st.lists(entries, min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    tensor = "torch" in hint.array_type.__module__
    array: np.ndarray = np.array(numbers, dtype=np.float64 if tensor else search.dtype).reshape(shape)
    return Tensor(array) if tensor else array


def _shape(draw: Any, st: ModuleType, dims: str, search: Search, sizes: dict[str, int]) -> tuple[int, ...]:
    """A shape for `dims`, as jaxtyping writes them: `*batch T d`, `d 3*d_k`."""
    shape: list[int] = []
    for dim in dims.split():
        symbol = re.sub(r"^\d*\*", "", dim)
        if symbol not in sizes:
            least = 0 if dim.startswith("*") else 1
            most = {"B": min(search.batches, search.longest), "T": search.longest}.get(symbol[0], search.widest)
            sizes[symbol] = draw(st.integers(least, most if least else search.longest))
        factor = int(dim.split("*")[0]) if re.match(r"\d", dim) else 1
        shape += [] if dim.startswith("*") and sizes[symbol] == 0 else [factor * sizes[symbol]]
    return tuple(shape)


# --- as text ----------------------------------------------------------------------------------------------------------


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return "\n".join(f"{printable(str(name))}: {_written(part)}" for name, part in value.items())
    if isinstance(value, (tuple, list)) and any(isinstance(part, np.ndarray) for part in value):
        return "\n".join(_written(part) for part in value)
    if isinstance(value, np.ndarray) and value.ndim > 1:
        rows = [_written(row).replace("\n", "\n ") for row in value]
        return "[" + ",\n ".join(rows) + "]"
    if isinstance(value, np.ndarray):
        return _row(value.tolist()) if value.dtype.kind in "fiub" else printable(str(value.dtype))
    return printable(str(value)[:300])


def _cut(text: str) -> list[str]:
    """The lines of a value; a small input has few, and an answer may be anything."""
    lines = [line if len(line) <= LONGEST else f"{line[:LONGEST]}…" for line in text.split("\n")]
    return lines if len(lines) <= MOST_LINES else [*lines[:MOST_LINES], "…"]


def _row(numbers: Sequence[float] | float) -> str:
    return "[" + ", ".join(map(number, numbers)) + "]" if isinstance(numbers, list) else number(float(numbers))  # type: ignore[arg-type]
