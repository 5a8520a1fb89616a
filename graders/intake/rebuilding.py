"""A clean notebook from the released one and the source text of the one handed in; no other word of it is believed."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from graders.intake.cells import answers_of, defined, name_of, role, text_of
from graders.intake.filling import Draft, draft_cells
from graders.intake.matching import Match, nothing_recognised, recognise, released_cells
from graders.intake.ordering import Piece, in_order
from graders.intake.reading import Cell, Notebook, NotGradable, fresh_id
from graders.verdict import Finding

MISSING = "# The answer cell was missing from the hand-in."
ELSEWHERE = "# The answer was written in another cell; this one was as released."


@dataclass(frozen=True)
class HandIn:
    """A hand-in as it is graded: the rebuilt notebook, what a person should know, the grade ids of written answers."""

    notebook: Notebook
    findings: tuple[Finding, ...]
    answered: tuple[str, ...]


def rebuild(submitted: Notebook, released: Notebook) -> HandIn:
    """The hand-in `submitted`, as `read_notebook` gives it, rebuilt from the assignment's `released` notebook.

    Neither is changed.
    Raises NotGradable where no cell of the assignment can be recognised in it.
    """
    match = recognise(submitted["cells"], released_cells(released))
    if not match.of:
        raise NotGradable("other-notebook", nothing_recognised(submitted["cells"]))
    draft = draft_cells(match)
    pieces = in_order(match, draft)
    answered = _settle_untouched(match, draft, pieces)
    _distinct_ids(pieces, match.released)
    notebook = {
        "cells": [_finished(piece.cell) for piece in pieces],
        "metadata": copy.deepcopy(released.get("metadata", {})),
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return HandIn(notebook, tuple(match.notes.findings()), answered)


def executable(notebook: Notebook) -> list[tuple[int, str]]:
    """Index and source of every code cell that runs in grading: all but the graded test cells."""
    return [
        (index, text_of(cell))
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and role(cell) != "graded"
    ]


# --- answers that were written elsewhere ------------------------------------------------------------------------------


def _settle_untouched(match: Match, draft: Draft, pieces: list[Piece]) -> tuple[str, ...]:
    """Keep released stubs from overwriting an answer that stands elsewhere; the grade ids that were answered."""
    answered: list[str] = []
    earlier: set[str] = set()
    anywhere = {name for piece in pieces for name in _written_names(match, draft, piece)}
    for piece in pieces:
        theirs = piece.theirs
        is_answer = theirs is not None and role(match.released[theirs]) == "answer"
        if theirs is not None and is_answer and _settle_answer(match, draft, theirs, earlier, anywhere):
            answered.append(name_of(match.released[theirs]))
        earlier |= _written_names(match, draft, piece)
    return tuple(answered)


def _written_names(match: Match, draft: Draft, piece: Piece) -> set[str]:
    """The names that student-written code in `piece` defines."""
    if piece.cell["cell_type"] != "code" or (piece.theirs is not None and piece.theirs not in draft.own):
        return set()
    names = defined(piece.cell["source"])
    if piece.theirs is not None and role(match.released[piece.theirs]) == "lesson":
        return names - defined(match.released[piece.theirs]["source"])
    return names


def _settle_answer(match: Match, draft: Draft, theirs: int, earlier: set[str], anywhere: set[str]) -> bool:
    """Whether the answer was written, here or elsewhere; a stub that stands in its way becomes a comment."""
    if theirs in draft.own:
        return True
    released, missing = match.released[theirs], theirs not in draft.source_of
    is_code = released["cell_type"] == "code"
    names = answers_of(released) if is_code else set()
    if is_code and (missing or (names & earlier and draft.cells[theirs]["source"])):
        draft.cells[theirs]["source"] = MISSING if missing else ELSEWHERE
    if missing or names & anywhere:
        _note_elsewhere(match, name_of(released), missing, bool(names & anywhere))
    return bool(names & anywhere)


def _note_elsewhere(match: Match, name: str, missing: bool, found: bool) -> None:
    cell = "the answer cell is missing" if missing else "the answer cell is as released"
    answer = "the answer stands in another cell and was run there" if found else "no other cell defines the answer"
    match.notes.add("warning", "answer-elsewhere" if found else "missing-answer", f"{cell}; {answer}", name)


# --- the last touches -------------------------------------------------------------------------------------------------


def _finished(cell: Cell) -> Cell:
    """`cell` as nbformat 4.5 has it, without outputs."""
    finished: Cell = {name: cell[name] for name in ("cell_type", "id", "metadata", "source") if name in cell}
    if cell["cell_type"] == "code":
        return {**finished, "execution_count": None, "outputs": []}
    return {**finished, "attachments": cell["attachments"]} if "attachments" in cell else finished


def _distinct_ids(pieces: list[Piece], released: list[Cell]) -> None:
    """Released cells keep their ids; a student's cell that has one of those, or none, gets its own."""
    taken = {cell["id"] for cell in released if "id" in cell}
    for number, piece in enumerate(pieces, start=1):
        id = piece.cell.get("id")
        if piece.theirs is not None and id:
            continue
        if not id or id in taken:
            piece.cell["id"] = fresh_id(taken, number)
        taken.add(piece.cell["id"])
