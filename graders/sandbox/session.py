"""One hand-in in the sandbox: its cells in order, then calls; replayed in a fresh child where one had to be stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from graders.sandbox import replies
from graders.sandbox.box import Limits, Sandbox
from graders.sandbox.child import Child, Stopped
from graders.sandbox.inside.wire import BadFrame

MAX_REPLAYS = 6
MAX_STOPS_PER_NAME = 2
"""A function that had to be stopped this often is not called again: it would cost its deadline each time."""
CUT_OFF_AGAIN = 1 / 6
"""The share of its time that a cell gets in a replay which was cut off before: what it does, it does at its start."""
OUTPUTS = 20
"""How many times what one cell may show all cells may show together: a notebook can have thousands."""
NEVER_ENDS = "is there a loop that never ends?"

Output = dict[str, Any]


@dataclass
class CellRun:
    """What one cell did: outputs as nbformat dictionaries, and what became of it if it did not end by itself."""

    outputs: list[Output] = field(default_factory=list)
    count: int | None = None
    ok: bool = False
    stopped: str = ""


class Session:
    """Runs `sources` once, then answers `perform`. Use as a context manager."""

    def __init__(self, sandbox: Sandbox, sources: Sequence[str]) -> None:
        self._sandbox, self._sources = sandbox, list(sources)
        self.limits: Limits = sandbox.limits
        self._until = time.monotonic() + self.limits.hand_in
        self._child: Child | None = None
        self._skipped: set[int] = set()
        self._cut_off: set[int] = set()
        self._stops: Counter[str] = Counter()
        self._starts = 0
        self._room = OUTPUTS * self.limits.output
        self.runs: list[CellRun] = [CellRun() for _ in self._sources]

    def run(self) -> list[CellRun]:
        """Run every cell; a cell that must be stopped is left out of the replay that follows."""
        self._ready()
        return self.runs

    def perform(self, request: dict[str, Any]) -> dict[str, Any]:
        """The child's reply to one call or read; `Stopped` where it had to be stopped or may not be asked again."""
        name = request["name"]
        if self._stops[name] >= MAX_STOPS_PER_NAME:
            raise Stopped(
                "not_run", f"{name} was not called again, since it had to be stopped {MAX_STOPS_PER_NAME} times"
            )
        while self._left() > 0 and (child := self._ready()) is not None:
            seconds = min(self.limits.call, self._left())
            try:
                reply = replies.answer(child.ask(request, seconds))
            except Stopped as stop:
                self._child = None
                if stop.cause == "lost":  # the sandbox ended under it: nobody's fault, so asked again
                    continue
                raise self._stop(name, stop, seconds) from None
            if reply.get("error", {}).get("type") == "CellTimeout":
                raise self._stop(name, Stopped("timeout", ""), seconds)
            return reply
        raise Stopped("not_run", self._why_not())

    def _stop(self, name: str, stop: Stopped, seconds: float) -> Stopped:
        self._stops[name] += 1
        return _in_words(stop, f"calling {name}", seconds)

    def _ready(self) -> Child | None:
        """A child with the cells run, or None where there is no time, or no patience, for another."""
        while self._child is None and self._may_start():
            self._starts += 1
            self._child = child = self._sandbox.child()
            if not all(self._run_cell(child, index) for index in range(len(self._sources))):
                self._child = None
        return self._child

    def _may_start(self) -> bool:
        return self._left() > 0 and self._starts <= MAX_REPLAYS

    def _why_not(self) -> str:
        if self._left() <= 0:
            return "the time for the whole notebook was used up"
        return f"the notebook's process had to be started again more than {MAX_REPLAYS} times"

    def _run_cell(self, child: Child, index: int) -> bool:
        """Whether the child lives on."""
        if index in self._skipped or not self._sources[index].strip():
            return True
        seconds = min(self._patience(index), self._left())
        if seconds <= 0:
            self.runs[index].stopped = "not run: the time for the whole notebook was used up"
            return True
        try:
            reply = child.ask({"op": "cell", "source": self._sources[index]}, seconds)
        except Stopped as stop:
            self._note_stop(index, stop, seconds)
            return False
        except BadFrame as error:  # before it was sent
            self.runs[index].stopped = f"not run: {error}"
            return True
        self._note_run(index, reply, seconds)
        return True

    def _patience(self, index: int) -> float:
        """A function that never ends is called by one lesson cell after another: only the first has its full time."""
        if index in self._cut_off:
            return self.limits.cell * CUT_OFF_AGAIN
        return min(self.limits.cell, self.limits.call) if self._cut_off or self._skipped else self.limits.cell

    def _note_stop(self, index: int, stop: Stopped, seconds: float) -> None:
        if stop.cause != "lost":
            self._skipped.add(index)
            why = f" after {seconds:.3g} s: {NEVER_ENDS}" if stop.cause == "timeout" else f": {stop.reason}"
            self.runs[index] = CellRun(stopped=f"stopped{why}")

    def _note_run(self, index: int, reply: dict[str, Any], seconds: float) -> None:
        if index in self._cut_off:
            return  # what it put out in its full time is kept
        stopped = ""
        if reply.get("timed_out") is True:
            self._cut_off.add(index)
            stopped = f"stopped after {seconds:.3g} s: {NEVER_ENDS}"
        self._room += replies.size(self.runs[index].outputs)
        shown = replies.outputs(reply, max(min(self.limits.output, self._room), 0))
        self._room -= replies.size(shown)
        self.runs[index] = CellRun(shown, replies.count(reply), reply.get("ok") is True, stopped)

    def _left(self) -> float:
        return self._until - time.monotonic()

    def close(self) -> None:
        """End the child, if one is left."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_exception: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def _in_words(stop: Stopped, doing: str, seconds: float) -> Stopped:
    if stop.cause == "timeout":
        return Stopped("timeout", f"timed out after {seconds:.3g} s {doing}: {NEVER_ENDS}")
    if stop.cause in ("not_run", "lost"):
        return stop
    return Stopped(stop.cause, f"{stop.reason} while {doing}")
