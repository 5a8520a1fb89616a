"""Catalogued faults, alone, in pairs and in random company."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from graders.authoring import Exercise, Misconception
from graders.diagnosis import pairs
from proof.judging import Ids, Names, right_but

SEED = 20


@dataclass(frozen=True)
class Wrong:
    """A wrong notebook, the name of the answer that is wrong in it, and the ids of the faults put in."""

    about: str
    ids: Ids
    names: Names
    note: str = ""

    @property
    def label(self) -> str:
        """The faults in words."""
        return " + ".join(sorted(self.ids)) + (f" ({self.note})" if self.note else "")


def singles(exercise: Exercise, about: str) -> Iterator[Wrong]:
    """Every misconception about one answer, alone."""
    for idea in _ideas(exercise, about):
        yield Wrong(about, frozenset({idea.id}), right_but(exercise, {about: idea.answer}))


def together(exercise: Exercise, about: str) -> Iterator[Wrong]:
    """Every two misconceptions about one answer that can be combined; where values are made from one another, also
    every two about different answers."""
    for pair in pairs(exercise, replacing=[about]):
        ids = frozenset(part.id for part in pair.parts)
        yield Wrong(about, ids, right_but(exercise, {about: pair.answer}))
    if exercise.notebook is not None:
        for one, other in combinations(exercise.misconceptions.values(), 2):
            if about == one.replaces != other.replaces:
                wrong = {one.replaces: one.answer, other.replaces: other.answer}
                yield Wrong(about, frozenset({one.id, other.id}), right_but(exercise, wrong))


def company(exercise: Exercise, about: str, count: int) -> Iterator[Wrong]:
    """`count` random compositions of one to three faults, most of them disturbed in a way that no catalogue has."""
    ideas = _ideas(exercise, about)
    rng = np.random.default_rng([SEED, *about.encode()])
    for _ in range(count if ideas else 0):
        chosen = _chosen(ideas, int(rng.integers(1, 4)), rng)
        answer = _composed(exercise, about, chosen)
        note, where, change = _disturbance(rng)
        wrong = {about: _disturbed(answer, where, change)}
        yield Wrong(about, frozenset(idea.id for idea in chosen), right_but(exercise, wrong), note)


def _ideas(exercise: Exercise, about: str) -> list[Misconception]:
    return [idea for idea in exercise.misconceptions.values() if idea.replaces == about]


def _chosen(ideas: list[Misconception], most: int, rng: np.random.Generator) -> list[Misconception]:
    """Up to `most` ideas that can be combined: of different choices, or one alone."""
    chosen: list[Misconception] = []
    for index in rng.permutation(len(ideas)):
        idea = ideas[index]
        taken = {name for other in chosen for name in other.faults}
        if not chosen or (idea.faults and chosen[0].faults and not idea.faults.keys() & taken):
            chosen.append(idea)
        if len(chosen) == most:
            break
    return chosen


def _composed(exercise: Exercise, about: str, chosen: list[Misconception]) -> Any:
    if len(chosen) == 1:
        return chosen[0].answer
    faults: Mapping[str, Any] = {name: value for idea in chosen for name, value in idea.faults.items()}
    return exercise.families[about](**faults)


# --- disturbances -----------------------------------------------------------------------------------------------------

Change = Callable[[Any], Any]


def _disturbance(rng: np.random.Generator) -> tuple[str, str, Change]:
    """What is done to an answer beside its faults: in words, to its input or its output, and how; nothing at times."""
    factor = float(rng.choice([0.5, 2.0, -1.0, rng.uniform(0.9, 1.1), rng.uniform(0.2, 3)]))
    seed = int(rng.integers(1 << 30))
    return [
        (f"input × {factor:.3g}", "input", lambda array: array * factor),
        (f"output × {factor:.3g}", "output", lambda array: array * factor),
        (f"output + {factor:.3g}", "output", lambda array: array + factor),
        ("output shuffled", "output", lambda array: _shuffled(array, seed)),
        ("", "", lambda array: array),
    ][int(rng.integers(5))]


def _shuffled(array: Any, seed: int) -> Any:
    """The same numbers in another order, the same for each array of as many."""
    order = np.random.default_rng(seed).permutation(int(np.prod(array.shape)))
    return array.reshape(-1)[order.tolist()].reshape(array.shape)


def _disturbed(answer: Any, where: str, change: Change) -> Any:
    """`answer`, a function, a head or a value, with its input or output changed."""
    if isinstance(answer, type):
        undisturbed: Any = answer

        def forward(self: Any, x: Any) -> Any:
            return _disturbed(functools.partial(undisturbed.forward, self), where, change)(x)

        return type(answer.__name__, (answer,), {"forward": forward})
    if not callable(answer):
        return _mapped(answer, change) if where == "output" else answer

    def disturbed(*arguments: Any, **named: Any) -> Any:
        if where == "input" and arguments and _is_array(arguments[0]):
            arguments = (change(arguments[0]), *arguments[1:])
        value = answer(*arguments, **named)
        return _mapped(value, change) if where == "output" else value

    disturbed.__signature__ = inspect.signature(answer)  # type: ignore[attr-defined] # steps are called by their names
    return disturbed


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "reshape")


def _mapped(value: Any, change: Change) -> Any:
    """`value` with every array or number in it changed; in a table of shapes, the sizes of the last entry."""
    if isinstance(value, dict):
        return {name: _mapped(part, change) for name, part in value.items()}
    if isinstance(value, (tuple, list)) and value and all(isinstance(size, int) for size in value):
        return tuple(int(abs(size)) for size in change(np.array(value)).tolist())
    if isinstance(value, (tuple, list)):
        return tuple(_mapped(part, change) for part in value)
    if _is_array(value):
        return change(value)
    return change(np.array(value)).item() if isinstance(value, (int, float)) else value
