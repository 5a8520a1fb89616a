"""Lessons and exercises into source notebooks, and an instructor's edits of those back into lessons.

`course/lessons/<slug>.md` is the truth of a notebook's text and cells, `graders/exercises/<slug>.py` of its answers and
checks. The same input gives the same bytes. A digest in each notebook tells a hand edit from an outdated build.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graders.authoring import Answer, Exercise, ExerciseError, UsageError

Notebook = dict[str, Any]
Cell = dict[str, Any]

POINTS = "{{ points }}"
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
ROLES = ("answer", "visible", "hidden")


class HandEdited(UsageError):
    """A source notebook was changed by hand; building over it would lose that."""


# --- reading lessons --------------------------------------------------------------------------------------------------


def lessons_folder() -> Path:
    """Where the lessons lie in this installation."""
    import course

    return Path(course.__file__).parent / "lessons"


def read_lesson(path: Path) -> list[Cell]:
    """The cells of a lesson: `kind` (markdown or code), `source`, and the options that its author wrote."""
    import jupytext

    if not path.exists():
        raise ExerciseError(f"there is no lesson {path.name}; every exercise has one in course/lessons/")
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="md:myst")
    return [
        {"kind": cell.cell_type, "source": cell.source, "options": dict(cell.metadata)}
        for cell in notebook.cells
        if cell.source.strip() or cell.metadata
    ]


# --- lessons + exercises -> notebooks ---------------------------------------------------------------------------------


def build(exercise: Exercise, lesson: list[Cell]) -> Notebook:
    """The source notebook of `exercise`, as an nbformat 4.5 dictionary."""
    cells = [built for cell in lesson for built in _build_cell(exercise, cell)]
    _check_placed(exercise, cells)
    _unique_ids(cells)
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made: dict[str, Any] = {"assignment": exercise.slug, "digest": digest(notebook)}
    if exercise.instances is not None:
        made["instances"] = exercise.instances
    return {**notebook, "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}, "qkv": made}}


def _build_cell(exercise: Exercise, cell: Cell) -> Iterator[Cell]:
    role = cell["options"].get("role")
    if role is not None and role not in ROLES:
        raise ExerciseError(f"{exercise.slug}: a lesson cell has the role {role!r}; there are: {', '.join(ROLES)}")
    if role == "answer":
        yield _answer_cell(exercise, str(cell["options"].get("name", "")))
    elif role == "hidden":
        yield from (_hidden_cell(exercise, id) for id in _placed(exercise, str(cell["options"].get("checks", ""))))
    elif cell["kind"] == "code":
        metadata = _nbgrader(_cell_id(cell), locked=True) if role == "visible" else {}
        yield _code(_cell_id(cell), cell["source"], metadata)
    else:
        source = cell["source"].replace(POINTS, points_table(exercise))
        yield {"cell_type": "markdown", "id": _cell_id(cell), "metadata": {}, "source": _lines(source)}


def _cell_id(cell: Cell) -> str:
    name = cell["options"].get("name")
    if name:
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(name)):
            raise ExerciseError(f"the cell name {name!r} is no id; letters, digits, - and _ are, at most 64 of them")
        return str(name)
    return f"{cell['kind']}-{hashlib.sha256(cell['source'].encode()).hexdigest()[:10]}"


def _answer_cell(exercise: Exercise, name: str) -> Cell:
    if name not in exercise.answers:
        raise ExerciseError(
            f"{exercise.slug}: the lesson has an answer cell {name!r}, the exercise none; it has: "
            + ", ".join(exercise.answers)
        )
    return _code(name, answer_source(exercise.answers[name]), _nbgrader(name, solution=True))


def answer_source(answer: Answer) -> str:
    """An answer cell's source: what students get, and the solution between nbgrader's marks."""
    indent = re.match(r" *", answer.solution.lstrip("\n")).group()  # type: ignore[union-attr]
    region = [indent + BEGIN_SOLUTION, answer.solution.strip("\n"), indent + END_SOLUTION]
    return "\n".join([answer.before, *region] if answer.before else region)


def _placed(exercise: Exercise, patterns: str) -> list[str]:
    """The ids of the checks that a hidden cell places, by names or globs, in the exercise's order."""
    wanted = patterns.split()
    for pattern in wanted:
        if not fnmatch.filter(exercise.checks, pattern):
            raise ExerciseError(
                f"{exercise.slug}: the lesson places checks {pattern!r}, which fits none of:"
                f" {', '.join(exercise.checks)}"
            )
    return [id for id in exercise.checks if any(fnmatch.fnmatch(id, pattern) for pattern in wanted)]


def _hidden_cell(exercise: Exercise, id: str) -> Cell:
    check = exercise.checks[id]
    source = [
        f"# {check.title}.",
        f"# {_points(check.points)}, decided by a hidden check after you hand in; there is nothing to run here.",
        BEGIN_HIDDEN,
        "from graders.instructor import grade",
        f'grade("{exercise.slug}", "{id}")',
        END_HIDDEN,
    ]
    return _code(id, "\n".join(source), _nbgrader(id, grade=True, locked=True, points=check.points))


def _points(points: float) -> str:
    return f"{points:g} point" + ("" if points == 1 else "s")


def points_table(exercise: Exercise) -> str:
    """The Markdown table of points per check, and how many of them hidden checks decide."""
    rows = [f"| {check.title} | {check.points:g} |" for check in exercise.checks.values()]
    total = f"{exercise.max_score:g}"
    decided = (
        f"Hidden checks decide all {total} of these points after you hand in. The visible checks in this notebook"
        " run on small examples: they help you on the way, and passing them is not yet full marks. Still less is a"
        " *Success!* of the Validate button, which knows no hidden check and says it of an empty notebook, too."
    )
    return "\n".join(
        ["| What is checked | Points |", "|---|---|", *rows, f"| **Together** | **{total}** |", "", decided]
    )


def _nbgrader(id: str, *, points: float | None = None, **flags: bool) -> dict[str, Any]:
    fields = {"grade": False, "grade_id": id, "locked": False, "schema_version": 3, "solution": False, "task": False}
    return {"nbgrader": fields | flags | ({} if points is None else {"points": _number(points)})}


def _number(points: float) -> float | int:
    return int(points) if float(points).is_integer() else points


def _code(id: str, source: str, metadata: dict[str, Any]) -> Cell:
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id,
        "metadata": metadata,
        "outputs": [],
        "source": _lines(source),
    }


def _lines(source: str) -> list[str]:
    return source.splitlines(keepends=True)


def _check_placed(exercise: Exercise, cells: list[Cell]) -> None:
    placed = [cell["id"] for cell in cells]
    for what, names in (("answer", exercise.answers), ("check", exercise.checks)):
        for name in names:
            if placed.count(name) != 1:
                raise ExerciseError(
                    f"{exercise.slug}: the {what} {name!r} stands {placed.count(name)} times in the lesson; it"
                    " belongs there once"
                )


def _unique_ids(cells: list[Cell]) -> None:
    """Two cells with the same text (a rule, say) still need two ids."""
    seen: dict[str, int] = {}
    for cell in cells:
        seen[cell["id"]] = seen.get(cell["id"], 0) + 1
        if seen[cell["id"]] > 1:
            if "nbgrader" in cell["metadata"]:
                raise ExerciseError(f"two cells have the name {cell['id']!r}; a name belongs to one cell")
            cell["id"] = f"{cell['id']}-{seen[cell['id']]}"


# --- files ------------------------------------------------------------------------------------------------------------


def dumps(notebook: Notebook) -> str:
    """A notebook's text as Jupyter writes it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


_LINE = json.JSONEncoder(ensure_ascii=False)


def dumps_by_cell(notebook: Notebook) -> str:
    """A notebook's text with a line for each cell, in half the time: for what no one compares line by line."""
    cells = ",\n".join(map(_LINE.encode, notebook["cells"]))
    rest = _LINE.encode({name: value for name, value in notebook.items() if name != "cells"})
    return f'{{"cells": [\n{cells}\n],\n{rest[1:]}\n'


def digest(notebook: Notebook) -> str:
    """What tells whether a person edited the cells: types, ids, sources, nbgrader's settings; not outputs."""
    cells = [
        [cell["cell_type"], cell.get("id"), "".join(cell["source"]), cell["metadata"].get("nbgrader")]
        for cell in notebook["cells"]
    ]
    return hashlib.sha256(json.dumps(cells, sort_keys=True).encode()).hexdigest()[:16]


def load(path: Path) -> Notebook:
    """A source notebook from its file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise UsageError(f"{path} is no notebook ({type(error).__name__}); delete it and run qkv build") from None


def was_edited(notebook: Notebook) -> bool:
    """Whether the cells differ from what `build` once wrote there."""
    return notebook["metadata"].get("qkv", {}).get("digest") != digest(notebook)


def expect_instances(exercise: Exercise, notebook: Notebook, what: str) -> None:
    """Raises UsageError where `what`, a `notebook` of `exercise`, has other numbers drawn than would be drawn now."""
    frozen = notebook["metadata"].get("qkv", {}).get("instances")
    if exercise.instances != frozen:
        raise UsageError(
            f"{what} {exercise.slug} has {_drawn(frozen)}, but the installed course draws {_drawn(exercise.instances)}:"
            " set VERSION and TERM in course/instances.py back, or build, release and hand out the notebook again;"
            " nothing was done"
        )


def _drawn(frozen: Any) -> str:
    if not isinstance(frozen, dict):
        return "no numbers of one's own"
    return f"numbers of version {frozen.get('version')}, term {frozen.get('term')!r}"


def fresh(exercise: Exercise) -> Notebook:
    """The notebook that the installed lesson and exercise give now."""
    return build(exercise, read_lesson(lessons_folder() / f"{exercise.slug}.md"))


def write_source(exercise: Exercise, folder: Path, *, force: bool = False) -> bool:
    """Write `folder/<slug>/<slug>.ipynb`; False if it was up to date. Raises HandEdited rather than lose an edit."""
    path = folder / exercise.slug / f"{exercise.slug}.ipynb"
    notebook = fresh(exercise)
    if path.exists():
        present = load(path)
        if digest(present) == digest(notebook) and present["metadata"].get("qkv") == notebook["metadata"]["qkv"]:
            return False
        if was_edited(present) and not force:
            raise HandEdited(
                f"{path} was edited by hand in {differences(present, notebook)}; qkv adopt {exercise.slug} takes"
                " the edit"
                f" into the lesson, qkv build --force {exercise.slug} throws it away"
            )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, dumps(notebook))
    return True


def write_whole(path: Path, text: str) -> None:
    """Write a file so that an interrupted run leaves the old one or the new one, never half."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def differences(present: Notebook, wanted: Notebook) -> str:
    """Which cells differ, by id, for a message."""
    old = {cell.get("id"): "".join(cell["source"]) for cell in present["cells"]}
    new = {cell.get("id"): "".join(cell["source"]) for cell in wanted["cells"]}
    changed = [str(id) for id in old if old[id] != new.get(id)] + [f"{id} (deleted)" for id in new if id not in old]
    return ("cell " if len(changed) == 1 else "cells ") + ", ".join(changed[:5]) + (" …" if len(changed) > 5 else "")


# --- back into the lesson ---------------------------------------------------------------------------------------------


def adopt(exercise: Exercise, notebook: Notebook, lesson_path: Path) -> list[str]:
    """Take the text that was edited in a source notebook into its lesson; what was taken, one line each.

    Answers and hidden checks belong to the exercise's module, so an edit there is refused with its place.
    """
    lesson = read_lesson(lesson_path)
    wanted = build(exercise, lesson)
    _refuse_exercise_edits(exercise, notebook, wanted)
    cells, taken = _merge(exercise, lesson, notebook)
    if taken:
        write_whole(lesson_path, _as_myst(cells, lesson_path.read_text(encoding="utf-8")))
    return taken


def _refuse_exercise_edits(exercise: Exercise, present: Notebook, wanted: Notebook) -> None:
    mine = {cell["id"]: cell for cell in present["cells"]}
    for cell in wanted["cells"]:
        settings = cell["metadata"].get("nbgrader")
        if not settings or not (settings["grade"] or settings["solution"]):
            continue
        found = mine.get(cell["id"])
        if found is None or "".join(found["source"]) != "".join(cell["source"]):
            raise UsageError(
                f"cell {cell['id']} of source/{exercise.slug} holds an answer or a hidden check and was"
                f" {'deleted' if found is None else 'edited'}; change graders/exercises/{exercise.slug}.py instead,"
                " undo it here, and adopt again"
            )


def _merge(exercise: Exercise, lesson: list[Cell], present: Notebook) -> tuple[list[Cell], list[str]]:
    """The lesson's cells in the order of `present`, with its texts; hidden cells stay where their first check is."""
    known = {built["id"]: cell for cell in lesson for built in _build_cell(exercise, cell)}
    cells: list[Cell] = []
    taken = []
    for found in present["cells"]:
        origin = known.get(found.get("id"))
        source = "".join(found["source"])
        if origin is None:
            cells.append({"kind": found["cell_type"], "source": source, "options": {}})
            taken.append(
                f"new {found['cell_type']} cell: {source.strip().splitlines()[0][:60] if source.strip() else ''}"
            )
        elif origin["options"].get("role") in ("answer", "hidden"):
            cells += [] if any(cell is origin for cell in cells) else [origin]
        else:
            text = source.replace(points_table(exercise), POINTS)
            cells.append(origin if text == origin["source"] else {**origin, "source": text})
            taken += [] if text == origin["source"] else [f"cell {found['id']}"]
    ids = {cell.get("id") for cell in present["cells"]}
    return cells, taken + [f"deleted cell {id}" for id in known if id not in ids]


def _as_myst(cells: list[Cell], before: str) -> str:
    import jupytext
    import nbformat

    notebook = jupytext.reads(before, fmt="md:myst")
    make = {"code": nbformat.v4.new_code_cell, "markdown": nbformat.v4.new_markdown_cell}
    notebook.cells = [make[cell["kind"]](cell["source"], metadata=cell["options"]) for cell in cells]
    header = before.split("---\n", 2)[1]
    body = jupytext.writes(notebook, fmt="md:myst").split("---\n", 2)[2]
    return f"---\n{header}---\n{body.rstrip()}\n"


# --- solved -----------------------------------------------------------------------------------------------------------


def solution(exercise: Exercise) -> Notebook:
    """The worked notebook to hand out: every answer filled in, no marks of nbgrader, no hidden check."""
    notebook = fresh(exercise)
    cells = []
    for cell in notebook["cells"]:
        settings = cell["metadata"].get("nbgrader", {})
        if settings.get("grade") and not settings.get("solution"):
            continue
        lines = [line for line in cell["source"] if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION)]
        cells.append({**cell, "metadata": {}, "source": _lines("".join(lines).rstrip("\n"))})
    return {**notebook, "cells": cells, "metadata": {"kernelspec": KERNEL, "language_info": {"name": "python"}}}
