"""What stands in each released cell: the released text, or the student's where the cell is theirs to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from graders.intake.cells import about, answers_of, defined, name_of, plain, role, same_text
from graders.intake.matching import Match
from graders.intake.reading import CONFLICT, Cell
from graders.verdict import Severity


@dataclass
class Draft:
    """The rebuilt cells before they are put in order.

    `cells` holds one for each released cell and `source_of` the submitted cell that stands for it; `added` maps a
    submitted index to the cell that it becomes beside the released ones; `own` names the released cells whose text is
    the student's.
    """

    cells: list[Cell] = field(default_factory=list)
    source_of: dict[int, int] = field(default_factory=dict)
    added: dict[int, Cell] = field(default_factory=dict)
    own: set[int] = field(default_factory=set)


def draft_cells(match: Match) -> Draft:
    """What stands in each released cell and beside it; notes what was repaired."""
    draft = Draft(added={i: _added(cell) for i, cell in enumerate(match.submitted) if i not in match.of})
    fill: dict[str, Callable[[Match, Draft, int, list[int]], None]] = {
        "answer": _fill_answer,
        "lesson": _fill_lesson,
        "graded": _fill_fixed,
        "locked": _fill_fixed,
    }
    for theirs, claims in enumerate(match.claims()):
        draft.cells.append(dict(match.released[theirs]))
        fill[role(match.released[theirs])](match, draft, theirs, claims)
    return draft


def _added(cell: Cell, kind: str | None = None) -> Cell:
    """A student's own cell: its text, and nothing that its metadata claim."""
    kept: Cell = {name: cell[name] for name in ("id", "source", "attachments") if name in cell}
    return {**kept, "cell_type": kind or cell["cell_type"], "metadata": {}}


def _fill_fixed(match: Match, draft: Draft, theirs: int, claims: list[int]) -> None:
    """A graded or locked cell: the released text, whatever was handed in; copies that were worked in stay beside it."""
    released, name = match.released[theirs], name_of(match.released[theirs])
    if not claims:
        match.notes.add("info", "restored", "missing from the hand-in; put back as released", name)
        return
    changed = [ours for ours in claims if not _contains(released, match.submitted[ours])]
    whole = [ours for ours in claims if same_text(match.submitted[ours], released)]
    draft.source_of[theirs] = (whole or claims)[0]
    _note_changes(match, theirs, claims)
    for ours in changed:
        edited_original = not whole and ours == changed[0]
        if not edited_original or _answers_in(match, ours):
            draft.added[ours] = _added(match.submitted[ours])
            severity: Severity = "warning" if _answers_in(match, ours) else "info"
            words = "a changed copy of it was kept as the student's own cell"
            match.notes.add(severity, "code-in-locked-cell", words, name)


def _contains(released: Cell, cell: Cell) -> bool:
    """Whether `cell` holds nothing that its released version does not: a copy of it, or a part after a split."""
    return same_text(cell, released) or plain(cell["source"]).strip() in plain(released["source"])


def _answers_in(match: Match, ours: int) -> bool:
    names = defined(match.submitted[ours]["source"])
    return any(names & answers_of(cell) for cell in match.released if role(cell) == "answer")


def _note_changes(match: Match, theirs: int, claims: list[int]) -> None:
    released, name, note = match.released[theirs], name_of(match.released[theirs]), match.notes.add
    cells = [match.submitted[ours] for ours in claims]
    if not all(same_text(cell, released) for cell in cells):
        note("info", "changed-test", "text changed; graded as released", name)
    if any(cell["cell_type"] != released["cell_type"] for cell in cells):
        note("info", "changed-type", f"type changed; a {released['cell_type']} cell again", name)
    if len(cells) > 1:
        note("info", "copied", "handed in more than once; counted once", name)
    marks = [about(cell) for cell in cells if about(cell)]
    if any(mark.get("points", 0) != about(released).get("points", 0) for mark in marks):
        note("info", "changed-points", "points changed; they count as released", name)
    if any(
        bool(mark.get(key)) != bool(about(released).get(key))
        for mark in marks
        for key in ("grade", "solution", "locked")
    ):
        note("info", "changed-marks", "nbgrader marks changed; they count as released", name)
    if any("tags" in cell["metadata"] for cell in cells):
        note("info", "ignored-tag", "tagged skip-execution, which counts for nothing", name)


def _fill_lesson(match: Match, draft: Draft, theirs: int, claims: list[int]) -> None:
    """An unlocked lesson cell: the student's text. One that became code stays code; code never turns to text."""
    released = draft.cells[theirs]
    if not claims:
        if released["cell_type"] == "code":
            match.notes.add("info", "restored", "missing from the hand-in; put back as released", name_of(released))
        return
    cell = match.submitted[claims[0]]
    draft.source_of[theirs] = claims[0]
    if not same_text(cell, released):
        draft.own.add(theirs)
        _take(released, cell)
    if cell["cell_type"] == "code" and theirs in draft.own:
        released["cell_type"] = "code"
    elif cell["cell_type"] != released["cell_type"]:
        words = f"type changed; a {released['cell_type']} cell again"
        match.notes.add("info", "changed-type", words, name_of(released))


def _take(released: Cell, cell: Cell) -> None:
    released["source"] = cell["source"]
    if "attachments" in cell:
        released["attachments"] = cell["attachments"]


def _fill_answer(match: Match, draft: Draft, theirs: int, claims: list[int]) -> None:
    """An answer cell: the last of its copies that defines the answer stands for it; the others run where they stood."""
    released, name = match.released[theirs], name_of(match.released[theirs])
    written = [ours for ours in claims if _is_written(match.submitted[ours], released)]
    if not written:
        _fill_unwritten(match, draft, theirs, claims)
        return
    alike = [ours for ours in written if match.submitted[ours]["cell_type"] == released["cell_type"]]
    complete = [ours for ours in alike or written if defined(match.submitted[ours]["source"]) & answers_of(released)]
    chosen = (complete or alike or written)[-1]
    draft.source_of[theirs] = chosen
    draft.own.add(theirs)
    _take(draft.cells[theirs], match.submitted[chosen])
    kind = None if alike else released["cell_type"]
    draft.added |= {ours: _added(match.submitted[ours], kind) for ours in written if ours != chosen}
    _note_answer(match, name, claims, complete, chosen, released)


def _is_written(cell: Cell, released: Cell) -> bool:
    return bool(cell["source"].strip() or "attachments" in cell) and not same_text(cell, released)


def _fill_unwritten(match: Match, draft: Draft, theirs: int, claims: list[int]) -> None:
    """Nothing written there: the released stub, or what the student left of it."""
    released = draft.cells[theirs]
    if not claims:
        return
    stubs = [ours for ours in claims if plain(match.submitted[ours]["source"]).strip()]
    draft.source_of[theirs] = (stubs or claims)[0]
    if not stubs:
        released["source"] = ""


def _note_answer(match: Match, name: str, claims: list[int], complete: list[int], chosen: int, released: Cell) -> None:
    cells = [match.submitted[ours] for ours in claims]
    versions = {plain(match.submitted[ours]["source"]) for ours in complete}
    if len(versions) > 1:
        match.notes.add("warning", "two-versions", "answered more than once; all were run, the last one counts", name)
    elif len(claims) > 1:
        match.notes.add("info", "copied", "handed in as several cells; all that were written in were run", name)
    if match.submitted[chosen]["cell_type"] != released["cell_type"]:
        words = f"type changed; a {released['cell_type']} cell again"
        match.notes.add("info", "changed-type", words, name)
    if any("tags" in cell["metadata"] for cell in cells):
        match.notes.add("info", "ignored-tag", "tagged skip-execution, which counts for nothing", name)
    if CONFLICT.search(match.submitted[chosen]["source"]):
        match.notes.add("warning", "conflict", "merge conflict markers stand in the answer", name)
