"""In which order the rebuilt cells come.

Released cells come in released order. Cells that the student added stay behind the released cell that they followed,
and never fall behind an answer that they preceded.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from graders.intake.cells import name_of, role
from graders.intake.filling import Draft
from graders.intake.matching import Match
from graders.intake.reading import Cell


@dataclass
class Piece:
    """A rebuilt cell; `theirs` is the released cell that it is, or None."""

    cell: Cell
    theirs: int | None = None


def in_order(match: Match, draft: Draft) -> list[Piece]:
    """Released cells in released order, each followed by the cells that the student added behind it."""
    behind: list[list[Piece]] = [[] for _ in range(len(match.released) + 1)]
    for ours, anchor in _anchors(match, draft):
        behind[anchor + 1].append(Piece(draft.added[ours]))
    pieces = list(behind[0])
    for theirs, cell in enumerate(draft.cells):
        pieces += [Piece(cell, theirs), *behind[theirs + 1]]
    return pieces


def _anchors(match: Match, draft: Draft) -> list[tuple[int, int]]:
    """For each added cell its submitted index and the released cell that it stands behind (-1: before the first)."""
    stands_for = {ours: theirs for theirs, ours in draft.source_of.items()}
    sequence = [stands_for[ours] for ours in sorted(stands_for)]
    kept = _longest_rising(sequence)
    for theirs in sorted(set(sequence) - kept):
        match.notes.add("info", "moved", "moved; graded in the released order", name_of(match.released[theirs]))
    limits = _first_answer_after(match, stands_for)
    anchors, here = [], -1
    for ours in range(len(match.submitted)):
        if stands_for.get(ours) in kept:
            here = stands_for[ours]
        if ours in draft.added:
            anchors.append((ours, min(_past_missing(draft, here), limits[ours] - 1)))
    return anchors


def _past_missing(draft: Draft, anchor: int) -> int:
    """Put-back cells come before what the student wrote in their stead, so that they overwrite none of it."""
    while anchor + 1 < len(draft.cells) and anchor + 1 not in draft.source_of:
        anchor += 1
    return anchor


def _first_answer_after(match: Match, stands_for: dict[int, int]) -> list[int]:
    """For each submitted cell the earliest released place of the answers that followed it: it must not fall behind."""
    limits, limit = [], len(match.released)
    for ours in reversed(range(len(match.submitted))):
        limits.append(limit)
        theirs = stands_for.get(ours)
        if theirs is not None and role(match.released[theirs]) == "answer":
            limit = min(limit, theirs)
    return limits[::-1]


def _longest_rising(sequence: Sequence[int]) -> set[int]:
    """The members of a longest rising subsequence of distinct numbers: the cells that kept their order."""
    tails: list[int] = []
    before: dict[int, int | None] = {}
    for number in sequence:
        place = bisect.bisect_left(tails, number)
        before[number] = tails[place - 1] if place else None
        tails[place : place + 1] = [number]
    kept, here = set(), tails[-1] if tails else None
    while here is not None:
        kept.add(here)
        here = before[here]
    return kept
