"""What a proof rests on, as a digest: source text alone, so that it is the same on every machine."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from proof import rights
from proof.judging import exercise_of

ROOT = Path(__file__).parents[1]
ENGINE = ("graders/authoring.py", "graders/diagnosis.py")
"""What decides, beside an exercise, which check fails and what is named."""
MEASURE = ("faults.py", "judging.py", "mutants.py", "parts.py", "rights.py", "equivalents.toml", "names.toml")
"""What measures; how it is shown is no matter."""


def digest(slug: str) -> str:
    """The digest of all that the proof of one exercise rests on."""
    made = hashlib.sha256()
    for path in sorted(sources(slug)):
        # Lines may end otherwise in another checkout.
        made.update(f"{path.relative_to(ROOT).as_posix()}\n{path.read_text(encoding='utf-8')}\0".encode())
    return made.hexdigest()[:16]


def sources(slug: str) -> set[Path]:
    """The exercise with what it imports of its own, its right answers, what measures, and what decides."""
    exercise = exercise_of(slug)
    cases = {rights.CASES / f"{rights.module_of(exercise, answer)}.py" for answer in exercise.answers}
    proof = {ROOT / "proof" / name for name in MEASURE}
    own = _imported(ROOT / "graders" / "exercises" / f"{slug}.py")
    return {*own, *filter(Path.exists, cases), *proof, *map(ROOT.joinpath, ENGINE)}


def _imported(path: Path, found: set[Path] | None = None) -> set[Path]:
    """A module and those of the exercises and the course that it imports."""
    found = set() if found is None else found
    if path not in found:
        found.add(path)
        for name in _names(path):
            if name.startswith(("graders.exercises.", "graders.symbols", "course.")):
                other = ROOT.joinpath(*name.split(".")).with_suffix(".py")
                if other.exists():
                    _imported(other, found)
    return found


def _names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
