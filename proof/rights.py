"""Right answers of every make: those of tests/exercises/cases, and the reference's results in other containers."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from graders.authoring import Exercise
from proof.judging import STUDENT, Names, right_but

CASES = Path(__file__).parents[1] / "tests" / "exercises" / "cases"


def module_of(exercise: Exercise, answer: str) -> str:
    """The module of cases with right answers for a reference: `SingleHead` → `single_head_right`, else the slug's."""
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", answer).lower()
    return f"{words if (CASES / f'{words}_right.py').exists() else exercise.slug}_right"


def right_answers(exercise: Exercise) -> Iterator[tuple[str, str, Names]]:
    """(reference, case, what the notebook defines) for every right answer that the tests know."""
    if exercise.notebook is not None:
        for name, derive in _public(_cases(f"{exercise.slug}_right")):
            given = exercise.names(id=STUDENT)
            numbers = {key: value for key, value in given.items() if key not in exercise.answers}
            yield next(iter(exercise.answers)), name, {**numbers, **derive(*(numbers[key] for key in "QKV"))}
        return
    for answer, reference in exercise.references.items():
        if not callable(reference):
            continue
        for name, case in _public(_cases(module_of(exercise, answer)), classes=isinstance(reference, type)):
            yield answer, name, right_but(exercise, {answer: case})


def _cases(module: str) -> ModuleType:
    if not (CASES / f"{module}.py").exists():  # an exercise that is new
        return ModuleType(module)
    folder = str(CASES.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(f"cases.{module}")


def _public(module: ModuleType, classes: bool = False) -> Iterator[tuple[str, Any]]:
    """The answers of a module of cases: its classes where one is asked for, else its functions and other callables."""
    for name, case in list(vars(module).items()):
        own = getattr(case, "__module__", None) in (module.__name__, "functools", None)
        if own and callable(case) and not name.startswith("_") and inspect.isclass(case) == classes:
            yield name, case
