"""What a student handed in before: one line a version, beside the verdict that took its place.

A verdict is overwritten at each grading; without these lines nobody could say what a class learned by handing in again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from graders.build import write_whole
from graders.settings import HISTORY, VERDICT
from graders.verdict import Verdict

Broken = (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError)


def earlier(folder: Path) -> list[Verdict]:
    """The verdicts on earlier versions, oldest first, without their messages; a line that is broken is left out."""
    return _verdicts(_lines(folder))


@dataclass(frozen=True)
class Past:
    """What an earlier grading left of a hand-in: its verdict, if any, and the lines on versions before it."""

    verdict: Verdict | None = None
    lines: tuple[str, ...] = ()


def past(folder: Path) -> Past:
    """What `folder` holds; nbgrader deletes it before it grades again."""
    return Past(verdict_in(folder), tuple(_lines(folder)))


def verdict_in(folder: Path) -> Verdict | None:
    """The verdict in `folder`, if one is there that can be read."""
    try:
        return Verdict.from_json((folder / VERDICT).read_text(encoding="utf-8"))
    except Broken:
        return None


def keep(folder: Path, verdict: Verdict, before: Past | None = None) -> None:
    """Note in `folder` the verdict that `verdict` is about to replace, unless it is on a version that is known.

    `before` is what was in the folder, if it is gone from there.
    """
    before = past(folder) if before is None else before
    lines = list(before.lines)
    known = {verdict.fingerprint, *(other.fingerprint for other in _verdicts(lines))}
    if before.verdict is not None and before.verdict.fingerprint not in known:
        lines.append(_line(before.verdict))
    if lines != _lines(folder) and not (folder / HISTORY).is_dir():
        write_whole(folder / HISTORY, "".join(f"{line}\n" for line in lines))


def _verdicts(lines: Sequence[str]) -> list[Verdict]:
    """What lines say, but for broken ones."""
    verdicts = []
    for line in lines:
        try:
            verdicts.append(Verdict.from_json(line))
        except Broken:
            continue
    return verdicts


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / HISTORY).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _line(verdict: Verdict) -> str:
    """The verdict in one line: what was said to the student is long, and can be had again by grading."""
    checks = tuple(replace(check, title="", message="") for check in verdict.checks)
    return json.dumps(asdict(replace(verdict, checks=checks)), separators=(",", ":"))
