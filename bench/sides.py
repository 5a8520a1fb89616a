"""What is compared: each side is started anew, grades or runs the hand-ins, and tells how long all of it took."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench import courses
from bench.courses import SLUG
from bench.memory import Peaks, watched
from graders.build import load
from graders.intake import executable

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NBGRADER_EXECUTION": "autograde"}
"""One thread on every side; and lessons draw no picture for nobody, as nbgrader has it while it grades."""


@dataclass(frozen=True)
class Run:
    """One side's time for `many` hand-ins, and when each was done, counted from the first, where that is known."""

    side: str
    many: int
    processes: int
    seconds: float
    done: tuple[float, ...] = ()
    peaks: Peaks = field(default_factory=Peaks)

    @property
    def rate(self) -> float:
        """Hand-ins per second, start-up counted."""
        return self.many / self.seconds

    def cost(self, first: int, last: int) -> float:
        """Seconds per hand-in from the `first` to the `last` that was done."""
        return (self.done[last - 1] - self.done[first - 2]) / (last - first + 1)


def stock(folder: Path, many: int) -> Run:
    """`nbgrader autograde` as it comes, which grades one after another."""
    course = courses.stock(folder)
    courses.hand_in(course, many)
    started = time.perf_counter()
    done = subprocess.run(
        [courses.command("nbgrader"), "autograde", SLUG], cwd=course, env=ENVIRONMENT, capture_output=True, check=False
    )
    seconds = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-1000:])
    _expect(len(list((course / "autograded").glob(f"*/{SLUG}/*.ipynb"))), many)
    return Run("stock nbgrader autograde", many, 1, seconds)


def cold_nbclient(folder: Path, many: int, processes: int = 2) -> Run:
    """nbclient with a kernel for each hand-in, shared out among processes; it marks nothing and writes nothing."""
    paths = courses.hand_in(courses.ours(folder), many)
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.cold", *map(str, paths[k::processes])],
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
        )
        for k in range(processes)
    ]
    for process in running:
        process.communicate()
    _expect(sum(process.returncode == 0 for process in running), processes)
    return Run("cold nbclient", many, processes, time.perf_counter() - started)


def ours(folder: Path, many: int, processes: int) -> Run:
    """`qkv grade`: verdicts, marks in the gradebook, notebooks and feedback pages."""
    course = courses.ours(folder)
    courses.hand_in(course, many)
    started = time.perf_counter()
    words = [courses.command("qkv"), "grade", SLUG, "--jobs", str(processes)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=course, env=ENVIRONMENT, **pipes) as run, watched(run.pid) as peaks:
        _, errors = run.communicate()
        seconds = time.perf_counter() - started
    if run.returncode:
        raise RuntimeError(errors.decode()[-1000:])
    return Run("qkv grade", many, processes, seconds, _done(course, many), peaks)


def _done(course: Path, many: int) -> tuple[float, ...]:
    """When each verdict was written, the last file of a hand-in; all must have full marks."""
    paths = list((course / "autograded").glob(f"*/{SLUG}/verdict.json"))
    verdicts = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    _expect(sum(verdict["score"] == verdict["max_score"] for verdict in verdicts), many)
    times = sorted(path.stat().st_mtime_ns / 1e9 for path in paths)
    return tuple(moment - times[0] for moment in times)


def floor(folder: Path, many: int) -> float:
    """Seconds that a hand-in's own cells take, where all that they import is loaded."""
    (path,) = courses.hand_in(courses.ours(folder), 1)
    words = [sys.executable, "-m", "bench.floor", str(path), str(many)]
    told = subprocess.run(words, env=ENVIRONMENT, check=True, capture_output=True, text=True).stdout
    return statistics.fmean(json.loads(told))


def cells(path: Path) -> list[str]:
    """The code that grading runs of the notebook at `path`."""
    return [source for _, source in executable(load(path))]


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"a side did not do its work: {found} where {wanted} belong")
