"""Visible checks: they compare an answer with a small worked example, carry no points, and say in words what is off.

A lesson cell calls `close`, `shape` or `holds`. Each prints one line that starts with ✓, or raises `NotYet`, which
shows as a short message instead of a traceback. `ask` calls an answer, and says so where there is none yet. Passing
them is not full marks: hidden checks decide those after hand-in.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np

TOLERANCE = 1e-4
"""Relative to the largest expected entry, as in the hidden checks."""


class NotYet(AssertionError):
    """An answer is not there yet; the message says what was found, what was expected and where to look."""

    def _render_traceback_(self) -> list[str]:
        return str(self).splitlines()


def ask(answer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `answer` returns for these arguments; raises NotYet while it is unwritten, or where it returns nothing."""
    name = getattr(answer, "__name__", "the answer")
    try:
        told = answer(*args, **kwargs)
    except NotImplementedError:
        raise NotYet(_lines(name, "no answer yet", "", "", "The cell above that says YOUR CODE HERE.")) from None
    if told is None:
        raise NotYet(_lines(name, "nothing comes back", "a result", "None", "Is there a return at the end?"))
    return told


def close(what: str, got: Any, expected: Any, *, hint: str = "", tolerance: float | None = None) -> None:
    """`got` is `expected` (any shape), within `tolerance`, by default 1e-4 of the largest expected entry."""
    wanted = _array(what, expected, hint)
    array = _array(what, got, hint)
    if array.shape != wanted.shape:
        raise NotYet(_lines(what, "another shape", wanted.shape, array.shape, hint))
    bound = TOLERANCE * np.max(np.abs(wanted), initial=0.0) if tolerance is None else tolerance
    off = ~(np.abs(array - wanted) <= max(bound, 1e-12))
    if off.any():
        first = tuple(int(i) for i in np.argwhere(off)[0])
        place = f"off in {int(off.sum())} of {off.size} entries, first at {list(first)}" if first else "off"
        raise NotYet(_lines(what, place, f"{wanted[first]:.4g}", f"{array[first]:.4g}", hint))
    print(f"✓ {what}")


def shape(what: str, got: Any, expected: tuple[int, ...], *, hint: str = "") -> None:
    """`got` is an array of the shape `expected`."""
    found = _array(what, got, hint).shape
    if found != tuple(expected):
        raise NotYet(_lines(what, "another shape", tuple(expected), found, hint))
    print(f"✓ {what}")


def holds(what: str, condition: Any, *, expected: str = "", got: str = "", hint: str = "") -> None:
    """`condition` is true."""
    if not bool(condition):
        raise NotYet(_lines(what, "not yet", expected, got, hint))
    print(f"✓ {what}")


def _array(what: str, got: Any, hint: str) -> np.ndarray:
    if got is None:
        raise NotYet(_lines(what, "None", "an array", "None", hint or "Is there a return at the end?"))
    if hasattr(got, "detach"):
        got = got.detach().cpu().numpy()
    try:
        return np.asarray(got, dtype=float)
    except (TypeError, ValueError):
        raise NotYet(_lines(what, "no array of numbers", "an array", type(got).__name__, hint)) from None


def _lines(what: str, finding: str, expected: Any, got: Any, hint: str) -> str:
    rows = [("expected", expected), ("got", got), ("look at", hint)]
    return "\n".join([f"✗ {what}: {finding}", *(_row(label, str(text)) for label, text in rows if str(text) != "")])


def _row(label: str, text: str) -> str:
    # nbgrader's Validate cuts lines at 87 characters, four of them its own indent.
    return textwrap.fill(text, 82, initial_indent=f"    {label:<10} ", subsequent_indent=" " * 15)
