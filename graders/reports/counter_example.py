"""The smallest input that a person can follow on which a wrong idea and a right answer part.

Found by running both on matrices of small whole numbers, the smallest first. Where a function makes weights from sizes
alone, many answers are right and a difference would prove nothing: there is no example then, nor for what no call can
show (an idea of stored numbers or of gradients).
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any

import numpy as np

from graders.authoring import Exercise, Misconception
from graders.student import LocalStudent

PLAIN = 0.1
"""How far numbers must lie apart for a person to see it without a calculator."""

ENTRIES: tuple[tuple[int, ...], ...] = ((0, 1, 2), (-1, 0, 1, 2), (-30, 0, 1, 30))
"""What matrices are filled with; 30² is a score that exp does not survive."""

SIZES, DRAWS, PATIENCE = 30, 12, 6
"""How many sizes and inputs are tried, and how many sizes more for an example whose first result shows it."""

_SCALES = (2.0, 0.5)
_RANGES = {"*": (0, 1, 2), "T": (2, 3)}
"""Sizes by a symbol's first letter: a batch may be missing, and one token alone has nothing to choose from."""

_SHAPES = {"Q": "T d_k", "K": "T d_k", "V": "T d_v", "raw_scores": "T T", "scores": "T T", "weights": "T T"}
"""Shapes of arguments whose signature says no more than that they are arrays."""


@dataclass(frozen=True)
class Value:
    """One quantity of the example, by its name; `wrong` is what the idea makes of it."""

    name: str
    right: str
    wrong: str = ""


@dataclass(frozen=True)
class CounterExample:
    """A call of `function`: what goes in, the steps of a right answer, and what comes out either way."""

    function: str
    inputs: tuple[Value, ...]
    steps: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True)
class _Found:
    arguments: dict[str, Any]
    right: dict[str, Any]
    wrong: dict[str, Any]

    @property
    def cost(self) -> tuple[bool, float]:
        """How much there is to follow: a second result has to be read as well, large entries cost more than zeros."""
        first = next(iter(self.right), "")
        told = (
            first in self.wrong and np.any(_plain(self.right[first])) and _apart(self.right[first], self.wrong[first])
        )
        return not told, sum(float(np.abs(_plain(value)).sum()) for value in self.arguments.values())


@dataclass(frozen=True)
class Pair:
    """A right answer and a wrong one. Where answers are values that `stages` make of each other, calls go by names."""

    reference: Callable[..., Any]
    wrong: Callable[..., Any]
    stages: Mapping[str, Callable[..., Any]]
    shown: Callable[..., Any] | None = None
    """Whose own names are the steps, where not the reference's."""

    def parameters(self) -> dict[str, str]:
        """What an example must draw, and what each of it is, as the annotation says."""
        found = self._leaves(self.reference)
        return {**found, **(self._leaves(self.wrong) if self.stages else {})}

    def _leaves(self, function: Callable[..., Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, parameter in inspect.signature(function).parameters.items():
            stage = self.stages.get(name)
            found |= self._leaves(stage) if stage else {name: str(parameter.annotation)}
        return found

    def call(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """What `function` makes of the arguments, or of the stages that the references make of them."""
        if not self.stages:
            return function(*arguments.values())
        return function(**{name: self._known(name, arguments) for name in inspect.signature(function).parameters})

    def _known(self, name: str, arguments: Mapping[str, Any]) -> Any:
        return arguments[name] if name in arguments else self.call(self.stages[name], arguments)

    def steps(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The matrices on the way to the right answer."""
        if not self.stages:
            return _locals(self.reference, self.shown or self.reference, arguments)
        before = itertools.takewhile(lambda stage: stage is not self.reference, self.stages.values())
        return {name: self.call(stage, arguments) for name, stage in zip(self.stages, before, strict=False)}


def counter_example(exercise: Exercise, idea: Misconception) -> CounterExample | None:
    """A small call on which `idea` and the reference that it replaces give results that differ plainly."""
    pair = _pair(exercise, idea)
    if pair is None:
        return None
    reference = pair.reference
    parameters = pair.parameters()
    if not _can_be_drawn(parameters, reference):
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = _search(pair, parameters)
        return None if found is None else _told(idea.replaces, pair, found)


def _pair(exercise: Exercise, idea: Misconception) -> Pair | None:
    reference, wrong = exercise.references[idea.replaces], idea.answer
    if not callable(wrong):
        return None
    if idea.replaces in exercise.trials:
        trial = exercise.trials[idea.replaces]
        right, wrong = (_tried(trial, {**exercise.references, idea.replaces: it}) for it in (reference, wrong))
        return Pair(right, wrong, {}, shown=reference.forward)
    if not inspect.isfunction(reference):
        return None
    return Pair(reference, wrong, exercise.references if exercise.notebook else {})


def _tried(trial: Callable[..., tuple[Any, Any]], names: Mapping[str, Any]) -> Callable[..., Any]:
    """What a trial gives for these `names`, as a function of its arrays."""
    student = LocalStudent(names)

    def answer(*arrays: Any) -> Any:
        return trial(student, *arrays)[0]

    told = inspect.signature(trial)
    answer.__signature__ = told.replace(parameters=list(told.parameters.values())[1:])  # type: ignore[attr-defined]
    return answer


# --- what goes in -----------------------------------------------------------------------------------------------------


def _can_be_drawn(parameters: Mapping[str, str], reference: Callable[..., Any]) -> bool:
    sizes_alone = all(kind == "int" for kind in parameters.values())
    makes_weights = sizes_alone and "Float" in str(inspect.signature(reference).return_annotation)
    known = all(kind in ("int", "float", "bool") or _shape(name, kind) for name, kind in parameters.items())
    return known and not makes_weights


def _shape(name: str, kind: str) -> str:
    told = re.search(r"""Float\[[\w.]+, ['"]([^'"]+)['"]\]""", kind)
    return told[1] if told else _SHAPES.get(name, "") if kind not in ("int", "float", "bool") else ""


def _inputs(parameters: Mapping[str, str]) -> Iterator[list[Callable[[np.random.Generator], dict[str, Any]]]]:
    """Ways to draw all arguments, a list for each kind of entries: from few numbers to many."""
    shapes = {name: shape for name, kind in parameters.items() if (shape := _shape(name, kind))}
    sizes = _sizes(shapes)
    for entries in ENTRIES if shapes else ENTRIES[:1]:
        yield [partial(_drawn, parameters=parameters, shapes=shapes, sizes=size, entries=entries) for size in sizes]


def _sizes(shapes: Mapping[str, str]) -> list[dict[str, int]]:
    """Numbers for the symbols in `shapes`, those that make the fewest entries first; a batch of 0 is none."""
    symbols = sorted({symbol for shape in shapes.values() for symbol in re.findall(r"\*?[A-Za-z]\w*", _without(shape))})
    ranges = [_RANGES.get(symbol[:1], (1, 2, 3)) for symbol in symbols]
    every = (dict(zip(symbols, numbers, strict=True)) for numbers in itertools.product(*ranges))
    return sorted(every, key=lambda sizes: (_entries(shapes, sizes), sum(sizes.values())))[:SIZES]


def _without(shape: str) -> str:
    """`3*d_k` names the symbol d_k; `*batch` is one of its own."""
    return re.sub(r"\d+\*", "", shape)


def _entries(shapes: Mapping[str, str], sizes: Mapping[str, int]) -> int:
    return sum(math.prod(_numbers(shape, sizes)) for shape in shapes.values())


def _numbers(shape: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    axes = []
    for axis in shape.split():
        factor, _, symbol = axis.rpartition("*") if axis[0].isdigit() else ("", "", axis)
        axes.append(int(factor or 1) * sizes[symbol])
    return tuple(size for size in axes if size)


def _drawn(
    rng: np.random.Generator,
    parameters: Mapping[str, str],
    shapes: Mapping[str, str],
    sizes: Mapping[str, int],
    entries: Sequence[int],
) -> dict[str, Any]:
    """One value for each argument; plain sizes are distinct numbers from 2."""
    counted = itertools.count(2)
    return {
        name: _array(rng.choice(entries, _numbers(shapes[name], sizes)), kind)
        if name in shapes
        else next(counted)
        if kind == "int"
        else bool(rng.integers(2))
        if kind == "bool"
        else float(rng.choice(_SCALES))
        for name, kind in parameters.items()
    }


def _array(numbers: np.ndarray, kind: str) -> Any:
    numbers = numbers.astype(np.float64)
    if "torch" not in kind:
        return numbers
    import torch

    return torch.tensor(numbers)


# --- the search -------------------------------------------------------------------------------------------------------


def _search(pair: Pair, parameters: Mapping[str, str]) -> _Found | None:
    rng = np.random.default_rng(0)
    for by_size in _inputs(parameters):
        best, patience = None, PATIENCE
        for draw in by_size:
            drawn = (draw(rng) for _ in range(DRAWS))
            found = [f for arguments in drawn if (f := _parted(pair, arguments))]
            best = min([*found, *([best] if best else [])], key=lambda found: found.cost, default=None)
            patience -= best is not None
            if best and (not best.cost[0] or patience < 0):
                break
        if best:
            # What depends on an earlier call or on chance is nothing that one call could show.
            again = _parted(pair, best.arguments)
            return best if again and not _differ(again.wrong, best.wrong) else None
    return None


def _parted(pair: Pair, arguments: dict[str, Any]) -> _Found | None:
    """Both results, if a person sees that they differ; an idea that raises shows too little."""
    with contextlib.suppress(Exception):
        right, wrong = (_results(pair, function, arguments) for function in (pair.reference, pair.wrong))
        return _Found(arguments, right, wrong) if _differ(right, wrong) else None
    return None


def _results(pair: Pair, function: Callable[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """What a call gives, by names, and its arguments as they are afterwards."""
    given = copy.deepcopy(arguments)
    value = pair.call(function, given)
    after = {
        f"{name} afterwards": array for name, array in given.items() if _differ({"": array}, {"": arguments[name]})
    }
    return {**_named(value, pair.reference), **after}


def _named(value: Any, reference: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    if hasattr(value, "state_dict"):
        return dict(value.state_dict())
    if isinstance(value, tuple):
        told = re.search(r"returns \(([\w, ]+)\)", reference.__doc__ or "")
        names = told[1].split(", ") if told else []
        return {names[i] if i < len(names) else f"part {i + 1}": part for i, part in enumerate(value)}
    return {"result": value}


def _differ(left: Mapping[str, Any], right: Mapping[str, Any]) -> bool:
    return left.keys() != right.keys() or any(_apart(left[name], right[name]) for name in left)


def _apart(left: Any, right: Any) -> bool:
    a, b = _plain(left), _plain(right)
    if a.shape != b.shape:
        return True
    with np.errstate(all="ignore"):
        # An infinity less itself is no number, as is what overflowed; equal ones have not parted.
        return bool(np.any(~(np.abs(a - b) < PLAIN) & ~((a == b) | (np.isnan(a) & np.isnan(b)))))


def _plain(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().numpy()
    return np.asarray(value, dtype=np.float64)


# --- in words ---------------------------------------------------------------------------------------------------------


def _told(function: str, pair: Pair, found: _Found) -> CounterExample:
    inputs = tuple(Value(name, text(value)) for name, value in found.arguments.items())
    steps = tuple(Value(name, text(value)) for name, value in pair.steps(found.arguments).items())
    names = [name for name in {**found.right, **found.wrong} if _shown(name, found)]
    results = tuple(Value(name, _text_of(name, found.right), _text_of(name, found.wrong)) for name in names)
    # A name that stands for a result, too, holds what it was made of until the last line.
    last = {function, *(value.name for value in results)}
    return CounterExample(function, inputs, tuple(step for step in steps if step.name not in last), results)


def _shown(name: str, found: _Found) -> bool:
    """All of a pair, but of a dictionary with many entries those that differ."""
    many = len(found.right) > 2
    return (
        not many or name not in found.right or name not in found.wrong or _apart(found.right[name], found.wrong[name])
    )


def _text_of(name: str, values: Mapping[str, Any]) -> str:
    return text(values[name]) if name in values else "as it was" if name.endswith("afterwards") else "nothing"


def _locals(reference: Any, shown: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The matrices that a right answer makes on its way: what the names in `shown` stand for when it returns."""
    kept: dict[str, Any] = {}

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is shown.__code__:
            kept.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        reference(*copy.deepcopy(dict(arguments)).values())
    finally:
        sys.setprofile(before)
    order = [name for name in shown.__code__.co_varnames if name in kept and name not in arguments]
    return {name: kept[name] for name in order if np.ndim(kept[name]) >= 2 and "bool" not in str(kept[name].dtype)}


def text(value: Any) -> str:
    """A number, a shape or a matrix as a person writes it, three decimals at most."""
    if isinstance(value, (tuple, list, str, bool)):
        return str(value)
    array = _plain(value)
    if array.ndim == 0:
        return _number(float(array))
    cells = [_number(float(entry)) for entry in array.ravel()]
    width = max(map(len, cells), default=0)
    return _rows(np.array([cell.rjust(width) for cell in cells], dtype=object).reshape(array.shape))


def _rows(cells: np.ndarray) -> str:
    if cells.ndim == 1:
        return f"[{'  '.join(cells)}]"
    return ("\n" if cells.ndim == 2 else "\n\n").join(_rows(part) for part in cells)


def _number(value: float) -> str:
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{round(value, 3) + 0.0:.5g}".replace("-", "−")
