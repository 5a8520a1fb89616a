"""Which released cell a submitted one is: by nbgrader's grade id, else by the cell's id, else by its text."""

from __future__ import annotations

from dataclasses import dataclass, field

from graders.intake.cells import about, answers_of, defined, name_of, plain, role, text_of
from graders.intake.reading import Cell, Notebook, listed
from graders.verdict import Finding, Severity


@dataclass
class Notes:
    """Findings that are gathered cell by cell and reported once each."""

    said: dict[tuple[Severity, str, str], list[str]] = field(default_factory=dict)

    def add(self, severity: Severity, code: str, words: str, name: str) -> None:
        self.said.setdefault((severity, code, words), []).append(name)

    def findings(self) -> list[Finding]:
        return [
            Finding(severity, code, f"{listed(names)}: {words}") for (severity, code, words), names in self.said.items()
        ]


@dataclass
class Match:
    """Submitted cells beside the released ones: `of` maps a submitted index to the released one that it is."""

    submitted: list[Cell]
    released: list[Cell]
    of: dict[int, int] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    def claims(self) -> list[list[int]]:
        """For each released cell the submitted cells that are it, in their order."""
        claims: list[list[int]] = [[] for _ in self.released]
        for ours, theirs in sorted(self.of.items()):
            claims[theirs].append(ours)
        return claims


def released_cells(released: Notebook) -> list[Cell]:
    """The cells of the released notebook, each source as one string; what lies within a cell is not to be changed."""
    return [{**cell, "source": text_of(cell)} for cell in released["cells"]]


def recognise(submitted: list[Cell], released: list[Cell]) -> Match:
    """Which released cell each submitted one is; the surest sign decides first."""
    match = Match(submitted, released)
    _by_grade_id(match)
    _by_cell_id(match)
    lost = all(role(released[index]) == "lesson" for index in match.of.values())
    _by_text(match)
    if lost:
        _by_definition(match)
    return match


def _by_grade_id(match: Match) -> None:
    known = {about(cell)["grade_id"]: index for index, cell in enumerate(match.released) if about(cell).get("grade_id")}
    for index, cell in enumerate(match.submitted):
        if about(cell).get("grade_id") in known:
            match.of[index] = known[about(cell)["grade_id"]]


def _by_cell_id(match: Match) -> None:
    """A released cell's id equals its grade id, so that an answer whose metadata was lost is still known."""
    none_kept = not match.of
    known = {cell.get("id"): index for index, cell in enumerate(match.released)}
    taken = set(match.of.values())
    for index, cell in enumerate(match.submitted):
        theirs = known.get(cell["id"])
        if index in match.of or theirs is None or theirs in taken:
            continue
        match.of[index] = theirs
        if role(match.released[theirs]) != "lesson":
            words = "nbgrader metadata missing; recognised by the cell's id"
            match.notes.add("warning" if none_kept else "info", "metadata-missing", words, cell["id"])


def _by_text(match: Match) -> None:
    """Cells whose text is, to the last word, that of a released cell that nobody is yet."""
    taken = set(match.of.values())
    waiting: dict[str, list[int]] = {}
    for theirs, cell in reversed(list(enumerate(match.released))):
        if theirs not in taken and plain(cell["source"]).strip():
            waiting.setdefault(plain(cell["source"]), []).append(theirs)
    for index, cell in enumerate(match.submitted):
        same = waiting.get(plain(cell["source"])) if index not in match.of else None
        if same:
            match.of[index] = same.pop()
            name = name_of(match.released[match.of[index]])
            match.notes.add("info", "recognised-by-text", "ids missing; recognised by the text", name)


def _by_definition(match: Match) -> None:
    """Where metadata and ids are lost altogether, the cell that defines an answer is that answer's cell."""
    wanted = {
        name: theirs
        for theirs, cell in reversed(list(enumerate(match.released)))
        if role(cell) == "answer"
        for name in answers_of(cell)
    }
    for index, cell in enumerate(match.submitted):
        names = wanted.keys() & defined(cell["source"]) if index not in match.of else ()
        if names:
            match.of[index] = min(wanted[name] for name in names)
            words = "nbgrader metadata missing; recognised by what the cell defines"
            match.notes.add("warning", "metadata-missing", words, name_of(match.released[match.of[index]]))


def nothing_recognised(cells: list[Cell]) -> str:
    """Why a notebook is none of this assignment's, for its author to read."""
    ids = [about(cell)["grade_id"] for cell in cells if about(cell).get("grade_id")]
    has = (
        f"it has cells of another one: {listed(ids)}"
        if ids
        else f"it has {len(cells)} cells, all unknown"
        if cells
        else "it is empty"
    )
    return f"the notebook has no cell of this assignment; {has}"
