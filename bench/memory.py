"""The peak memory of grading's processes, watched from outside through /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

EVERY_SECONDS = 2.0
"""Looking costs some 20 ms of a core, which grading could have had."""


@dataclass
class Peaks:
    """Bytes at most resident in one grading worker, and in one student's process.

    Both share with their parents what those had loaded before they forked; `own` leaves that out.
    """

    worker: int = 0
    student: int = 0
    own: dict[str, int] = field(default_factory=lambda: {"worker": 0, "student": 0})

    def note(self, pid: int, kind: str) -> None:
        """Look at the process `pid`."""
        peak = _kilobytes(pid, "status", "VmHWM")
        setattr(self, kind, max(getattr(self, kind), peak << 10))
        own = _kilobytes(pid, "smaps_rollup", "Private_Dirty") + _kilobytes(pid, "smaps_rollup", "Private_Clean")
        self.own[kind] = max(self.own[kind], own << 10)


@contextmanager
def watched(grader: int) -> Iterator[Peaks]:
    """The peaks of the workers and students' processes below the process `grader`, while the block runs."""
    peaks, done = Peaks(), threading.Event()
    thread = threading.Thread(target=_watch, args=(grader, peaks, done))
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def _watch(grader: int, peaks: Peaks, done: threading.Event) -> None:
    while not done.wait(EVERY_SECONDS):
        for pid, kind in _kinds(grader).items():
            peaks.note(pid, kind)


def _kinds(grader: int) -> dict[int, str]:
    """Which of the processes below `grader` is a worker, and which a student's."""
    parents = {pid: parent for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if (parent := _parent(pid))}
    commands = {pid: _command(pid) for pid in parents if _below(pid, grader, parents)}
    kinds = {}
    for pid, command in commands.items():
        above = commands.get(parents[pid], [])
        if any("inside.zygote" in word for word in above) and not above[0].endswith("bwrap"):
            kinds[pid] = "student"
        elif parents[pid] == grader and command == _command(grader):
            kinds[pid] = "worker"
    return kinds


def _below(pid: int, top: int, parents: dict[int, int]) -> bool:
    while (pid := parents.get(pid, 0)) not in (0, top):
        continue
    return pid == top


def _parent(pid: int) -> int:
    return _kilobytes(pid, "status", "PPid")


def _command(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]


def _kilobytes(pid: int, file: str, name: str) -> int:
    """The number behind `name`, 0 where the process has ended or may not be looked at."""
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)
