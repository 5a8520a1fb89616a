"""What a cell is to nbgrader and to the grader, and which names its text defines."""

from __future__ import annotations

import re
from typing import Any, Literal

from graders.intake.reading import Cell, Notebook

NAME = r"[^\W\d]\w*"
FUNCTION = re.compile(rf"^(?:async[ \t]+)?(?:def|class)[ \t]+({NAME})", re.MULTILINE)
ASSIGNED = re.compile(rf"^({NAME}(?:[ \t]*,[ \t]*{NAME})*)[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
# Of the magics for a whole cell, these run it as the Python it is.
PLAIN_MAGICS = re.compile(r"\s*%%(time|capture|prun)\b")


def about(cell: Cell) -> dict[str, Any]:
    """What nbgrader's metadata say of `cell`."""
    return cell["metadata"].get("nbgrader") or {}


def role(cell: Cell) -> Literal["answer", "graded", "locked", "lesson"]:
    """What `cell` is to nbgrader: `answer` is the student's, `graded` a test, `locked` read-only, `lesson` the rest."""
    marks = about(cell)
    if marks.get("solution"):
        return "answer"
    return "graded" if marks.get("grade") else "locked" if marks.get("locked") or marks.get("task") else "lesson"


def text_of(cell: Cell) -> str:
    """The source of `cell`, which nbformat writes as a string or as a list of lines."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def grade_ids(released: Notebook) -> tuple[str, ...]:
    """The grade ids of a released notebook, in its order."""
    return tuple(about(cell)["grade_id"] for cell in released["cells"] if about(cell).get("grade_id"))


def name_of(cell: Cell) -> str:
    """What a report calls `cell`."""
    return str(about(cell).get("grade_id") or cell.get("id") or "a cell")


def defined(text: str) -> set[str]:
    """The names that top-level lines of `text` define. Read by pattern, since one magic line would stop a parser."""
    if text.lstrip().startswith("%%") and not PLAIN_MAGICS.match(text):
        return set()
    assigned = (name.strip() for group in ASSIGNED.findall(text) for name in group.split(","))
    return {*FUNCTION.findall(text), *assigned}


def answers_of(released: Cell) -> set[str]:
    """The names that the student is to define in a released answer cell; its grade id is one where it can be."""
    functions = set(FUNCTION.findall(text_of(released)))
    id = str(about(released).get("grade_id", ""))
    return (functions or defined(text_of(released))) | ({id} if id.isidentifier() else set())


def plain(text: str) -> str:
    """`text` without what editors change unasked: trailing blanks and the lines' ends."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def same_text(cell: Cell, other: Cell) -> bool:
    """Whether two cells, whose sources are strings, differ in nothing but what editors change unasked."""
    return bool(cell["source"] == other["source"]) or plain(cell["source"]) == plain(other["source"])
