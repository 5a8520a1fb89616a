"""The words an author of an exercise uses: Exercise, reference, check, misconception, expect_*, CheckFailed.

An exercise module reads top to bottom: what a right answer is, how we can tell, what people write instead. See
`graders/exercises/` for examples and CONTRIBUTING.md for the four steps.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from course import instances
from graders.student import ModuleState, Other, Structure, Student

TOLERANCE = 1e-4
"""Relative to max |expected|: float32 work on scores of ±1000 errs by up to 4.9e-5 of it (CURRICULUM, contracts)."""

EXERCISES = Path(__file__).parent / "exercises"

F = TypeVar("F", bound=Callable[..., Any])


class ExerciseError(Exception):
    """An exercise or lesson that its author must mend; the message says what was found and what would be right."""


class CheckFailed(Exception):
    """A check's judgement as data: what differs, what was found, a hint, and shapes. `public` facts may be shown whole.

    `expected` is shown to students only where `public` is true (it follows from the contract, not from a hidden input)
    or the instructor reveals expected values. A `finding` is the code of something that a person should look at.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: Any = None,
        got: Any = None,
        hint: str = "",
        public: bool = False,
        expected_shape: Sequence[int] | None = None,
        got_shape: Sequence[int] | None = None,
        misconception: str = "",
        finding: str = "",
    ) -> None:
        super().__init__(what)
        self.what, self.expected, self.got, self.hint, self.public = what, expected, got, hint, public
        self.expected_shape = None if expected_shape is None else list(expected_shape)
        self.got_shape = None if got_shape is None else list(got_shape)
        self.misconception = misconception
        self.finding = finding


@dataclass(frozen=True)
class Check:
    """One hidden check: `id`, `points`, the first line of its docstring as `title`, and the function that judges."""

    id: str
    points: float
    title: str
    run: Callable[..., str | None]
    hint: str = ""

    def __call__(self, student: Student, rng: np.random.Generator) -> str:
        """Judge, or raise; what comes back is a remark for the student on how the points were earned, mostly none."""
        return (self.run(student, rng) if _takes_rng(self.run) else self.run(student)) or ""


@functools.cache
def _takes_rng(check: Callable[..., str | None]) -> bool:
    return len(inspect.signature(check).parameters) > 1


@dataclass(frozen=True)
class Misconception:
    """A wrong answer that people write: what it replaces, the check it fails first, and one sentence for its author.

    `faults` are the choices that it makes wrongly, where its function has a family; `parts` are the ideas of a pair.
    """

    id: str
    replaces: str
    first_fails: str
    sentence: str
    hint: str
    answer: Any
    faults: Mapping[str, Any] = field(default_factory=dict, hash=False)
    parts: tuple[Misconception, ...] = ()


@dataclass(frozen=True)
class Answer:
    """A cell that the student fills in: the text around the solution region and the solution itself."""

    name: str
    before: str
    solution: str


@dataclass
class Exercise:
    """All that the grader knows of one assignment. `slug` is the only key; `uses` lists modules to preload."""

    slug: str
    uses: tuple[str, ...] = ("numpy",)
    references: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    checks: dict[str, Check] = field(default_factory=dict)
    misconceptions: dict[str, Misconception] = field(default_factory=dict)
    notebook: Callable[[dict[str, Any], str], dict[str, Any]] | None = None
    families: dict[str, Callable[..., Any]] = field(default_factory=dict)
    splits: dict[str, Callable[[Any], Mapping[str, Any]]] = field(default_factory=dict)
    invariants: dict[str, list[Callable[[Any], str]]] = field(default_factory=dict)
    accepted: dict[str, Callable[..., bool]] = field(default_factory=dict)
    trials: dict[str, Callable[..., tuple[Any, Any]]] = field(default_factory=dict)

    def reference(self, function: F) -> F:
        """Register a right answer; its signature and docstring are released as the stub, its body is the solution."""
        name = function.__name__
        if not function.__doc__:
            raise ExerciseError(f"{self.slug}: reference '{name}' needs a docstring; students read it as the contract")
        self.references[name] = function
        self.answers[name] = _answer_from(function)
        return function

    def value(self, name: str, *, solution: str, before: str = "", reference: Any = None) -> None:
        """Register an answer that is a value, not a function: `solution` is the code that a right notebook has there.

        `reference` is a right value for the laws, or what the function of `personal` makes each student's from.
        """
        self.answers[name] = Answer(name, before, solution)
        if reference is not None:
            self.references[name] = reference

    def personal(self, notebook: F) -> F:
        """Register what a notebook defines whose answers differ from student to student: (references, id) -> names."""
        self.notebook = notebook
        return notebook

    def names(self, wrong: Misconception | None = None, *, id: str = "") -> dict[str, Any]:
        """What the notebook of student `id` defines that is right throughout, or but for one misconception."""
        references = dict(self.references)
        if wrong is not None:
            references[wrong.replaces] = wrong.answer
        return references if self.notebook is None else self.notebook(references, id)

    def check(self, *, points: float, hint: str = "") -> Callable[[F], F]:
        """Register a hidden check worth `points`; students read its docstring's first line when it fails."""

        def register(function: F) -> F:
            name = function.__name__
            if not function.__doc__:
                raise ExerciseError(
                    f"{self.slug}: check '{name}' needs a docstring; students read its first line when the check fails"
                )
            title = function.__doc__.strip().splitlines()[0].rstrip(".")
            self.checks[name] = Check(name, float(points), title, function, hint)
            return function

        return register

    def misconception(
        self, *, replaces: str, first_fails: Callable[..., Any] | str, hint: str = ""
    ) -> Callable[[F], F]:
        """Register a wrong answer; its docstring is the sentence that a student who wrote it reads."""

        def register(function: F) -> F:
            check = first_fails if isinstance(first_fails, str) else first_fails.__name__
            self.add_misconception(
                function.__name__,
                replaces=replaces,
                first_fails=check,
                sentence=function.__doc__ or "",
                hint=hint,
                answer=function,
            )
            return function

        return register

    def family(
        self,
        *,
        replaces: str,
        make: Callable[..., Any],
        split: Callable[[Any], Mapping[str, Any]] | None = None,
    ) -> None:
        """Register how wrong answers of one reference are made: `make(**faults)` is it with those choices wrong.

        Misconceptions added with `faults` of different keywords can then be combined, so that pairs are named too.
        `split` finds the faults of a misconception that is written as a whole answer.
        """
        self.families[replaces] = make
        if split is not None:
            self.splits[replaces] = split

    def invariant(self, *names: str) -> Callable[[F], F]:
        """Register what holds of every right answer of `names`: a function of a `graders.invariants.Call`.

        It returns a sentence where that does not hold, else an empty one; students read it where nothing was named.
        """

        def register(function: F) -> F:
            for name in names:
                self.invariants.setdefault(name, []).append(function)
            return function

        return register

    def accepts(self, name: str) -> Callable[[F], F]:
        """Register what tells a right value of `name` where several are: a function `(value, *arguments) -> bool`."""

        def register(function: F) -> F:
            self.accepted[name] = function
            return function

        return register

    def tries(self, name: str) -> Callable[[F], F]:
        """Register how an answer that is a class is tried on small numbers: `(student, *arrays) -> (theirs, right)`.

        The signature states the shape of each array, as a reference's does.
        """

        def register(function: F) -> F:
            self.trials[name] = function
            return function

        return register

    def add_misconception(
        self,
        name: str,
        *,
        replaces: str,
        first_fails: str,
        sentence: str,
        hint: str = "",
        answer: Any = None,
        faults: Mapping[str, Any] | None = None,
    ) -> None:
        """Register a wrong answer that was made, not written: given as it is, or as `faults` of a family."""
        if (answer is None) == (not faults):
            raise ExerciseError(f"{self.slug}: misconception '{name}' needs an answer, or faults, and not both")
        if faults and replaces not in self.families:
            raise ExerciseError(
                f"{self.slug}: misconception '{name}' has faults, but '{replaces}' has no family; add one with"
                " exercise.family(replaces=…, make=…)"
            )
        if first_fails not in self.checks:
            raise ExerciseError(
                f"{self.slug}: misconception '{name}' names '{first_fails}', which is not one of its checks: "
                + ", ".join(self.checks)
            )
        if replaces not in self.references:
            raise ExerciseError(
                f"{self.slug}: misconception '{name}' replaces '{replaces}', which is not one of its references: "
                + ", ".join(self.references)
            )
        if not sentence.strip():
            raise ExerciseError(f"{self.slug}: misconception '{name}' needs a docstring; it is what students read")
        sentence = " ".join(sentence.split())
        if faults:
            answer = self.families[replaces](**faults)
        elif replaces in self.splits:
            faults = self.splits[replaces](answer)
        self.misconceptions[name] = Misconception(
            name, replaces, first_fails, sentence, hint, answer, dict(faults or {})
        )

    @property
    def instances(self) -> dict[str, Any] | None:
        """The version and the term of the numbers that each student gets; None where all have the same."""
        return None if self.notebook is None else {"version": instances.VERSION, "term": instances.TERM}

    @property
    def max_score(self) -> float:
        """The points of all checks together."""
        return sum(check.points for check in self.checks.values())

    def rng(self, check: str, seed: int) -> np.random.Generator:
        """The generator of one check's hidden inputs: the same for the same seed, whatever other checks drew."""
        digest = hashlib.sha256(f"{self.slug}/{check}/{seed}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:16], "big"))

    def with_points(self, points: Mapping[str, float]) -> Exercise:
        """The same exercise with other points for the named checks."""
        unknown = set(points) - set(self.checks)
        if unknown:
            raise ExerciseError(
                f"{self.slug}: points are given for {sorted(unknown)}, which are none of its checks:"
                f" {', '.join(self.checks)}"
            )
        checks = {
            name: Check(name, float(points.get(name, check.points)), check.title, check.run, check.hint)
            for name, check in self.checks.items()
        }
        return replace(self, checks=checks)


def _answer_from(function: Any) -> Answer:
    """Split a reference's source into the stub (signature and docstring) and its body."""
    lines = inspect.getsource(function).splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"\s*(def|class) ", line))
    lines = lines[start:]
    if isinstance(function, type):
        return Answer(function.__name__, *_split_class(lines))
    quote = next(i for i, line in enumerate(lines) if '"""' in line)
    end = (
        quote
        if lines[quote].count('"""') == 2
        else next(i for i, line in enumerate(lines[quote + 1 :], quote + 1) if '"""' in line)
    )
    return Answer(function.__name__, "\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :]))


def _split_class(lines: list[str]) -> tuple[str, str]:
    """A class is released as its first line and docstring; its methods are the solution."""
    quote = next(i for i, line in enumerate(lines) if '"""' in line)
    end = (
        quote
        if lines[quote].count('"""') == 2
        else next(i for i, line in enumerate(lines[quote + 1 :], quote + 1) if '"""' in line)
    )
    return "\n".join(lines[: end + 1]), "\n".join(lines[end + 1 :]).strip("\n")


# --- expectations -----------------------------------------------------------------------------------------------------


def expect_array(value: Any, *, shape: Sequence[int] | None = None, name: str, hint: str = "") -> np.ndarray:
    """`value` as a finite-dtype `float64` array of exactly `shape`; lists and tensors count as arrays."""
    array = _as_array(value, name)
    if shape is not None and array.shape != tuple(shape):
        raise CheckFailed(
            f"the shape of {name} is wrong",
            expected=tuple(shape),
            got=array.shape,
            public=True,
            expected_shape=shape,
            got_shape=array.shape,
            hint=hint,
        )
    return array


def _as_array(value: Any, name: str) -> np.ndarray:
    if isinstance(value, Other):
        raise CheckFailed(
            f"{name} is {_article(value.type)}, not an array", got=value.type, hint="Does every path return?"
        )
    if value is None:
        raise CheckFailed(f"{name} is None, not an array", got="None", hint="Is there a return at the end?")
    try:
        array = np.asarray(value)
    except ValueError:
        raise CheckFailed(f"the rows of {name} differ in length", hint="An array needs rows of equal length.") from None
    if array.dtype.kind not in "fiub":
        raise CheckFailed(f"{name} does not hold numbers", got=type(value).__name__)
    return array.astype(np.float64)


def _article(noun: str) -> str:
    return ("an " if noun[:1].lower() in "aeiou" else "a ") + noun


def expect_close(
    got: Any,
    expected: Any,
    *,
    name: str,
    hint: str = "",
    tolerance: float | None = None,
    public: bool = False,
    place: Callable[[tuple[int, ...]], str] = lambda index: str(list(index)),
) -> np.ndarray:
    """`got` within `tolerance` of `expected` (default: `TOLERANCE` × max |expected|); CheckFailed says where not.

    `place` puts the index of the first wrong entry into words.
    """
    expected = np.asarray(expected, dtype=np.float64)
    array = expect_array(got, shape=expected.shape, name=name, hint=hint)
    if tolerance is None:
        tolerance = TOLERANCE * float(np.max(np.abs(expected), initial=0.0))
    if not np.all(np.isfinite(array)):
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise CheckFailed(
            f"{name} is not finite in {_share(~np.isfinite(array))}, first at {place(first)}",
            got=float(array[first]),
            hint=hint,
            got_shape=array.shape,
        )
    off = np.abs(array - expected) > max(tolerance, 1e-12)
    if np.any(off):
        first = tuple(int(i) for i in np.argwhere(off)[0])
        where = f", first at {place(first)}" if first else ""
        raise CheckFailed(
            f"{name} is off in {_share(off)}{where}" if first else f"{name} is off",
            expected=float(expected[first]),
            got=float(array[first]),
            hint=hint,
            public=public,
            expected_shape=expected.shape,
            got_shape=array.shape,
        )
    return array


def _share(mask: np.ndarray) -> str:
    return f"{int(mask.sum())} of {mask.size} entries" if mask.ndim else "its value"


def expect_unchanged(before: Sequence[Any], after: Sequence[Any], *, names: Sequence[str]) -> None:
    """The arguments are what they were before the call."""
    for name, old, new in zip(names, before, after, strict=False):
        if isinstance(old, np.ndarray) and not (
            isinstance(new, np.ndarray) and old.shape == new.shape and np.array_equal(old, new, equal_nan=True)
        ):
            raise CheckFailed(
                f"your function changed its argument {name}",
                expected=f"{name} as it was before the call",
                public=True,
                hint="Operators like *= and -= write into the array you were given; x = x * 2 makes a new one.",
            )


def fields(value: Any, names: Sequence[str], *, what: str) -> dict[str, Any]:
    """`value` as a dict with `names`: from a mapping, an object with those attributes, or a sequence in that order."""
    if isinstance(value, Structure):
        value = value.fields if set(names) <= set(value.fields) else (value.items or value.fields)
    if isinstance(value, Mapping):
        missing = [name for name in names if name not in value]
        if missing:
            found = ", ".join(str(key) for key in list(value)[:12]) or "nothing"
            raise CheckFailed(f"{what} has no entry {missing[0]!r}", expected=", ".join(names), got=found, public=True)
        return {name: value[name] for name in names}
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0):
        if len(value) != len(names):
            raise CheckFailed(
                f"{what} has {len(value)} parts where {len(names)} belong", expected=", ".join(names), public=True
            )
        return dict(zip(names, value, strict=True))
    raise CheckFailed(
        f"{what} is {_article(kind_of(value))}",
        expected="a dict or a tuple with " + ", ".join(names),
        got=kind_of(value),
        public=True,
    )


def kind_of(value: Any) -> str:
    """The name of a value's type as the student would say it."""
    if isinstance(value, (Other, Structure, ModuleState)):
        return value.type
    return {type(None): "None", np.ndarray: "array"}.get(type(value), type(value).__name__)


# --- registry ---------------------------------------------------------------------------------------------------------


def load_exercise(slug: str) -> Exercise:
    """The exercise of `graders/exercises/<slug>.py` and what was learned for it.

    Raises ExerciseError where it is not whole and consistent.
    """
    import importlib

    from graders.learned import with_learned

    _module_of(slug)
    try:
        module = importlib.import_module(f"graders.exercises.{slug}")
        exercise = module.exercise
    except ExerciseError:
        raise
    except Exception as error:
        where = inspect.trace()[-1]
        raise ExerciseError(
            f"graders/exercises/{slug}.py cannot be loaded: {type(error).__name__}: {error} (line {where.lineno}"
            f" of {where.filename.rsplit('/', 1)[-1]})"
        ) from error
    if exercise.slug != slug:
        raise ExerciseError(
            f"graders/exercises/{slug}.py defines the exercise {exercise.slug!r}; the slug is its file's name"
        )
    if not exercise.checks:
        raise ExerciseError(f"{slug}: has no check; decorate at least one with @exercise.check(points=…)")
    return with_learned(exercise)


def declared_uses(slug: str) -> tuple[str, ...]:
    """What `Exercise("<slug>", uses=(…))` lists, read from its module's text: importing that may take seconds.

    UsageError where there is no such exercise; the default where the text says nothing that can be read.
    """
    path = _module_of(slug)
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Exercise"]
        told = [word.value for call in calls for word in call.keywords if word.arg == "uses"]
        return tuple(ast.literal_eval(told[0])) if told else Exercise.uses
    except (SyntaxError, ValueError):  # loading it will say what is wrong
        return Exercise.uses


def slugs() -> list[str]:
    """The slugs of all exercises, in alphabetical order."""
    return sorted(path.stem for path in EXERCISES.glob("*.py") if not path.stem.startswith("_"))


def _module_of(slug: str) -> Path:
    if slug not in slugs():
        raise UsageError(f"there is no exercise {slug!r}; there are: {', '.join(slugs())}")
    return EXERCISES / f"{slug}.py"


class UsageError(Exception):
    """Whoever runs the command asked for what cannot be; one line says what was found and what would be right."""
