"""What a check is handed: the student's answer, whose functions it calls as if they were local.

In grading, requests cross into the sandbox; in a unit test they are carried out here on a plain namespace. Either way
the values pass through the same encoding, so a check sees plain arrays and cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from graders.sandbox.inside import calls, wire
from graders.sandbox.inside.wire import ModuleState, Other, Structure, Tensor

__all__ = [
    "Elsewhere",
    "LocalStudent",
    "ModuleState",
    "Observation",
    "Other",
    "Structure",
    "Student",
    "StudentError",
    "Tensor",
]

Perform = Callable[[dict[str, Any]], dict[str, Any]]


class StudentError(Exception):
    """The student's code raised, or defines no such name. `type`, `message` and `line` are text from their process.

    `cell` is the type of the error that ended the cell which should have defined it, if one did.
    """

    def __init__(self, name: str, type: str, message: str, line: str, cell: str = "") -> None:
        super().__init__(f"{name}: {type}")
        self.name, self.type, self.message, self.line, self.cell = name, type, message, line, cell


@dataclass(frozen=True)
class Observation:
    """All that one request brought back; arrays are plain `numpy.ndarray`s, tensors included."""

    name: str
    value: Any = None
    arguments: tuple[Any, ...] = ()
    gradients: tuple[np.ndarray | None, ...] = ()
    parameters: Mapping[str, tuple[int, ...]] | None = None
    error: tuple[str, str] | None = None


class Student:
    """The student's answer as a check sees it; `trace` keeps what every request brought back, for the diagnosis.

    `id` is the roster's, set by the grader, for checks whose right answer differs from student to student. It is empty
    where an author runs a check without a roster; what a notebook says of its author is only ever `read`. `aliases`
    are the ids that it may give instead, `classmates` those of the others. `noted` is what a check wants the instructor
    to know, passed or not. `raised` holds, for names whose cells ended in an error, the type of that.
    """

    def __init__(
        self,
        perform: Perform,
        *,
        id: str = "",
        aliases: Collection[str] = (),
        classmates: Collection[str] = (),
        raised: Mapping[str, str] | None = None,
    ) -> None:
        self._perform = perform
        self.id, self.aliases, self.classmates, self.raised = id, frozenset(aliases), classmates, raised or {}
        self.trace: list[Observation] = []
        self.noted: list[tuple[Literal["info", "warning"], str, str]] = []

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self.observe(name, *args, **kwargs).value

    def observe(self, name: str, *args: Any, **kwargs: Any) -> Observation:
        """Call the student's `name` positionally: its value, and its arguments as they are afterwards."""
        return self._ask(op="call", name=name, args=list(args), kwargs=kwargs, gradients_of=[], upstream=None)

    def read(self, name: str) -> Any:
        """The value of the student's global `name`."""
        return self._ask(op="read", name=name).value

    def read_as(self, meaning: Any) -> None:
        """Note what the check took the last reply for, so that the diagnosis compares meanings and not containers."""
        if self.trace:  # a recording that is judged again keeps none
            self.trace[-1] = replace(self.trace[-1], value=meaning, error=None)

    def note(self, code: str, message: str, severity: Literal["info", "warning"] = "info") -> None:
        """Tell the instructor something, of which a `warning` needs their eyes; it becomes a finding of that code."""
        self.noted.append((severity, code, message))

    def gradients(self, name: str, *args: Any, of: tuple[int, ...], upstream: np.ndarray) -> Observation:
        """Call `name` with `Tensor` arguments and run backward from `upstream` on its (first) output.

        `gradients` holds d(sum(output * upstream))/d(args[i]) for each i in `of`; None where the graph is cut.
        """
        request = {"op": "call", "name": name, "args": list(args), "kwargs": {}}
        return self._ask(**request, gradients_of=list(of), upstream=upstream)

    def module(
        self, name: str, *args: Any, weights: Mapping[str, np.ndarray], inputs: np.ndarray, upstream: Any = None
    ) -> Observation:
        """Construct `name(*args)`, set those of `weights` that it has, and call it on `inputs`.

        With `upstream`, run backward from it; `gradients` are then those of the weights that were set, in their order.
        """
        request = {"op": "module", "name": name, "args": list(args)}
        return self._ask(**request, weights=dict(weights), inputs=inputs, upstream=upstream)

    def _ask(self, **request: Any) -> Observation:
        reply = self._perform(request)
        seen = _observation(request["name"], reply)
        self.trace.append(seen)
        if seen.error is not None:
            line = str(reply["error"].get("line", ""))
            raise StudentError(seen.name, *seen.error, line, self.raised.get(seen.name, ""))
        return seen


@dataclass(frozen=True)
class Elsewhere:
    """An answer in a namespace that runs in another process; `perform` carries requests there."""

    perform: Perform


class LocalStudent(Student):
    """A namespace in this process as a student: for unit tests, misconceptions and an author's own kernel."""

    def __init__(self, names: Mapping[str, Any], *, id: str = "", aliases: Collection[str] = ()) -> None:
        def perform(request: dict[str, Any]) -> dict[str, Any]:
            answer = names.get(request["name"])
            if isinstance(answer, Elsewhere):
                return answer.perform(request)
            return through(calls.perform(dict(names), through(request, tensors=True)))

        super().__init__(perform, id=id, aliases=aliases)


def through(tree: Any, tensors: bool = False) -> Any:
    """`tree` as it is on the other side of the process boundary; with `tensors`, on the student's side."""
    frame = wire.encode(tree)
    header, _ = wire.check_lengths(frame[: wire.LENGTHS.size])
    start = wire.LENGTHS.size + header
    return wire.decode(frame[wire.LENGTHS.size : start], frame[start:], tensors)


def _observation(name: str, reply: Mapping[str, Any]) -> Observation:
    error = reply.get("error")
    if error is not None:
        return Observation(name, error=(str(error.get("type", "Error")), str(error.get("message", ""))))
    return Observation(
        name,
        value=reply.get("value"),
        arguments=tuple(reply.get("arguments") or ()),
        gradients=tuple(reply.get("gradients") or ()),
        parameters=reply.get("parameters"),
    )
