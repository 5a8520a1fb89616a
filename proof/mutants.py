"""Automatic mutants of the right answers: one operator, number, condition or name of a solution at a time is another.

The operators are cosmic-ray's, used as a library, since the source of a notebook's answer cells is no module on disk;
and one of ours, because its own for names puts random numbers in their place.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cosmic_ray import plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator

from graders.authoring import Exercise
from proof.judging import STUDENT, Names

NEED_ARGUMENTS = ("core/VariableReplacer", "core/VariableInserter")
"""Operators that work only on variables named in a configuration."""


@dataclass(frozen=True)
class Mutant:
    """One changed answer cell: `key` names the answer and what was changed in it."""

    answer: str
    key: str
    source: str


def mutants(exercise: Exercise, answer: str) -> Iterator[Mutant]:
    """Every mutant of an answer's solution, each once, although two operators may make the same."""
    whole = source_of(exercise, answer)
    seen = {whole}
    for operator in _operators(_given(exercise, answer)):
        occurrence = 0
        while (source := mutate_code(whole, operator, occurrence)) is not None:
            occurrence += 1
            if source not in seen:
                seen.add(source)
                yield Mutant(answer, f"{answer}: {_difference(whole, source)}", source)


def _given(exercise: Exercise, answer: str) -> list[str]:
    """The names that a cell of values finds: the student's numbers, and the answers before it."""
    names = list(exercise.names(id=STUDENT)) if exercise.notebook is not None else [answer]
    return [name for name in names[: names.index(answer)] if name != "STUDENT"]


def _operators(given: list[str]) -> Iterator[Operator]:
    for name in plugins.operator_names():
        if name not in NEED_ARGUMENTS:
            yield plugins.get_operator(name)()
    yield OtherName(given)


class OtherName(Operator):
    """Puts every other name that a function or a cell has by then in the place of one that it reads."""

    def __init__(self, given: list[str]) -> None:
        self.given = given

    def mutation_positions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        """One position for each other name."""
        yield from ((node.start_pos, node.end_pos) for _ in self._others(node))

    def mutate(self, node: Any, index: int) -> Any:
        """The name, replaced by another."""
        node.value = self._others(node)[index]
        return node

    def _others(self, node: Any) -> list[str]:
        if node.type != "name" or node.is_definition() or not _is_variable(node):
            return []
        scope = node.search_ancestor("funcdef") or node.get_root_node()
        made = [
            leaf.value
            for leaf in _leaves(scope)
            if leaf.type == "name" and leaf.is_definition() and _is_variable(leaf) and leaf.end_pos < node.start_pos
        ]
        names = dict.fromkeys([*self.given, *made])
        return [name for name in names if name != node.value] if node.value in names else []

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """What cosmic-ray asks of an operator."""
        return (Example("c = a", "c = b", operator_args={"given": ["a", "b"]}),)


def _is_variable(leaf: Any) -> bool:
    """Whether a name is no attribute, no keyword of a call and no function's own."""
    before, parent = leaf.get_previous_leaf(), leaf.parent
    keyword = parent.type == "argument" and leaf is parent.children[0] and parent.children[1].type == "operator"
    own = parent.type in ("funcdef", "classdef") and leaf is parent.name
    return not (before is not None and before.value == ".") and not keyword and not own and leaf.value != "self"


def _leaves(node: Any) -> Iterator[Any]:
    for child in getattr(node, "children", ()):
        yield from _leaves(child) if hasattr(child, "children") else [child]


def source_of(exercise: Exercise, answer: str) -> str:
    """The source of a solved answer cell."""
    cell = exercise.answers[answer]
    return f"{cell.before}\n{cell.solution}\n"


def _difference(before: str, after: str) -> str:
    """What changed, as `old → new`, line by line without indentation."""
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    old, new = ([line[2:].strip() for line in lines if line.startswith(sign)] for sign in ("- ", "+ "))
    at = before.splitlines().index(next(line[2:] for line in lines if line.startswith("- "))) if old else 0
    same = [line.strip() for line in before.splitlines()[:at]].count(old[0]) if old else 0
    return f"{' '.join(old)} → {' '.join(new)}" + (f" (line {same + 1} like it)" if same else "")


def run(exercise: Exercise, mutant: Mutant | None = None) -> Names:
    """What a solved notebook defines once its answer cells have run, one of them mutated; may raise anything."""
    module = importlib.import_module(f"graders.exercises.{exercise.slug}")
    names: dict[str, Any] = {name: value for name, value in vars(module).items() if name not in exercise.answers}
    if exercise.notebook is not None:
        given = exercise.names(id=STUDENT)
        names |= {name: given[name] for name in given if name not in exercise.answers}
    for answer in exercise.answers:
        source = mutant.source if mutant and mutant.answer == answer else source_of(exercise, answer)
        # Fresh draws are drawn from a fixed seed here, so that a mutant's fate is the same every time.
        exec(compile(source.replace("default_rng()", "default_rng(0)"), f"<{answer}>", "exec"), names)
    return names
