"""How far grading a class is: a live line in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from types import TracebackType
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from graders.reports.quote import printable
from graders.verdict import Verdict

COUNTED = ("full marks", "partial", "zero", "needs a look")


def outcome(verdict: Verdict) -> str:
    """Which of the running counts a verdict belongs to."""
    if verdict.needs_person:
        return "needs a look"
    if verdict.score >= verdict.max_score:
        return "full marks"
    return "partial" if verdict.score > 0 else "zero"


class ClassProgress:
    """Rate, time left and running counts. Use as a context manager; tell it `started` and then each verdict."""

    def __init__(self, slug: str, stream: IO[str] | None = None) -> None:
        self.slug, self.stream = slug, stream or sys.stderr
        self.counts: Counter[str] = Counter()
        self.kept = self.done = self.total = 0
        self._began = time.monotonic()
        self._live: Progress | None = None
        self._task = TaskID(0)

    def started(self, total: int) -> None:
        """There are `total` hand-ins, and grading begins."""
        self.total, self._began = total, time.monotonic()
        if self.stream.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            texts = (TextColumn("{task.fields[rate]}"), TextColumn("{task.fields[counts]}"))
            self._live = Progress(*columns, *texts, console=Console(file=self.stream))
            self._task = self._live.add_task(self.slug, total=total, rate="", counts="")
            self._live.start()
        else:
            print(f"{self.slug}: {total} hand-ins", file=self.stream, flush=True)

    def graded(self, verdict: Verdict, kept: bool) -> None:
        """One more verdict; `kept` if an earlier run had written it."""
        self.done += 1
        self.kept += kept
        self.counts[outcome(verdict)] += 1
        if self._live is not None:
            self._live.update(self._task, advance=1, rate=self._rate(), counts=self._counts())
        elif not kept:
            print(
                f"{self.done}/{self.total} {printable(verdict.student)}: {verdict.score:g} of {verdict.max_score:g}"
                f" in {verdict.seconds:.1f} s",
                file=self.stream,
                flush=True,
            )

    def _counts(self) -> str:
        return "  ".join(f"{self.counts[name]} {name}" for name in COUNTED if self.counts[name])

    def summary(self) -> str:
        """What was done, in one line."""
        kept = f"; {self.kept} unchanged since an earlier run" if self.kept else ""
        return f"{self.slug}: {self.done} hand-ins, {self._counts()} ({self._rate() or 'nothing to do'}{kept})"

    def _rate(self) -> str:
        """Hand-ins graded by this run, per second; empty where there are none."""
        seconds, new = time.monotonic() - self._began, self.done - self.kept
        return f"{new / seconds:.1f} a second" if new and seconds > 0 else ""

    def __enter__(self) -> ClassProgress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if kind is None:
            print(self.summary(), file=self.stream, flush=True)
        elif issubclass(kind, KeyboardInterrupt):
            print(
                f"{self.slug}: stopped after {self.done} of {self.total}; the same command goes on from there",
                file=self.stream,
            )
