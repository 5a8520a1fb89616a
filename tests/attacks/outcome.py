"""What came of an attack, on us or on stock nbgrader, in the same words for both."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

State = tuple[str, int, int, int]
SHOWS_INPUTS = "showed hidden inputs to the student"
FORGED_YEAR = 2001
FORGED = "had its forged time believed"


@dataclass(frozen=True)
class Outcome:
    """The checks that brought an attack points which its code does not deserve, its score, what else it did, its end.

    `score` and `max_score` count what it deserves, too.
    """

    earned: frozenset[str]
    score: float
    max_score: float
    harm: tuple[str, ...] = ()
    end: str = ""

    @property
    def full(self) -> bool:
        """Whether these are all the marks there are."""
        return self.score >= self.max_score


def reached(printed: str) -> list[str]:
    """What a hand-in printed that it had reached, in its own words, each once."""
    return list(dict.fromkeys(re.findall(r"LEAK: ([^;\n]*)", printed)))


def echoed(told: str) -> bool:
    """Whether a hidden input stands in what a student is told."""
    return bool(re.search(r"ECHO ?\[*-?\d", told))


def states(root: Path, but: Iterable[Path] = ()) -> dict[str, State]:
    """Size, time, mode and a digest of the beginning of all below `root`, without the folders and files `but`."""
    left_out = set(but)
    found: dict[str, State] = {}
    for here, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if Path(here, name) not in left_out)
        for path in (Path(here, name) for name in [*folders, *files]):
            if path not in left_out:
                found[str(path.relative_to(root))] = _state(path)
    return found


def _state(path: Path) -> State:
    about = path.lstat()
    if not stat.S_ISREG(about.st_mode):
        return "", 0, 0, about.st_mode
    with open(path, "rb") as file:
        return hashlib.sha256(file.read(1 << 20)).hexdigest(), about.st_size, about.st_mtime_ns, about.st_mode


def changes(before: Mapping[str, State], after: Mapping[str, State]) -> list[str]:
    """The paths that are new, gone or other than they were."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
