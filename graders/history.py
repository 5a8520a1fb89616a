"""What a student handed in before: one line a version, beside the verdict that took its place.

A verdict is overwritten at each grading; without these lines nobody could say what a class learned by handing in again.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

from graders.build import write_whole
from graders.settings import HISTORY, VERDICT
from graders.verdict import Verdict

Broken = (OSError, ValueError, TypeError, KeyError)


def earlier(folder: Path) -> list[Verdict]:
    """The verdicts on earlier versions, oldest first, without their messages; a line that is broken is left out."""
    verdicts = []
    for line in _lines(folder):
        try:
            verdicts.append(Verdict.from_json(line))
        except Broken:
            continue
    return verdicts


def keep(folder: Path, verdict: Verdict) -> None:
    """Note the verdict in `folder`, which `verdict` is about to replace, unless it is on a version that is known."""
    try:
        before = Verdict.from_json((folder / VERDICT).read_text(encoding="utf-8"))
    except Broken:
        return
    known = {verdict.fingerprint, *(other.fingerprint for other in earlier(folder))}
    if before.fingerprint not in known and not (folder / HISTORY).is_dir():
        write_whole(folder / HISTORY, "".join(f"{line}\n" for line in [*_lines(folder), _line(before)]))


def _lines(folder: Path) -> list[str]:
    try:
        return (folder / HISTORY).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return []


def _line(verdict: Verdict) -> str:
    """The verdict in one line: what was said to the student is long, and can be had again by grading."""
    checks = tuple(replace(check, title="", message="") for check in verdict.checks)
    return json.dumps(asdict(replace(verdict, checks=checks)), separators=(",", ":"))
