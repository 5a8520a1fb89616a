"""Which words out of a student's process a report may repeat.

Their code sees hidden inputs, so any text that it makes (an exception's message, a class's name, a dict's key) may hold
them. Repeated is only what the student typed before there were any, and what a library says in fixed words.
"""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graders.student import ModuleState, Observation, Other, Structure

HIDDEN = "…"
LONGEST_MESSAGE = 400
MOST_NUMBERS = 12


def _listed(file: str) -> list[str]:
    lines = Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


LIBRARY_NAMES = frozenset(_listed("library_names.txt"))

SAYINGS = _listed("library_messages.txt")

_NUMBER = r"-?[0-9]{1,6}(?![0-9])"
_PART = r"(?:[A-Za-z_]\w{0,59}|<locals>|<lambda>)"
_NAME = rf"{_PART}(?:\.{_PART}){{0,4}}"
_SIZE = rf"(?:{_NUMBER}|newaxis)"
_SHAPE = rf"(?:\((?:{_SIZE},? ?){{0,6}}\)|\[(?:{_SIZE},? ?){{0,6}}\]|{_NUMBER}x{_NUMBER})"
_PLACES = {
    "n": _NUMBER,
    "shape": _SHAPE,
    "shapes": rf"(?:{_SHAPE}(?:->{_SHAPE})?(?: +and requested shape)? *){{1,4}}",
    "sig": r"\(n\?,k\),\(k,m\?\)->\(n\?,m\?\)",
    "op": r"(?:[-+*/@%&|^<>=!~]{1,3}|\*\* or pow\(\)|divmod\(\))",
    "name": _NAME,
    "names": rf"'{_NAME}'(?:,? (?:and )?'{_NAME}'){{0,9}}",
}
_NAMED = {"name", "names"}


def _compile(saying: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", saying)
    pattern = "".join(_place(part) if index % 2 else re.escape(part) for index, part in enumerate(parts))
    return re.compile(pattern)


def _place(kind: str) -> str:
    return f"({_PLACES[kind]})" if kind in _NAMED else f"(?:{_PLACES[kind]})"


_PATTERNS = [_compile(saying) for saying in SAYINGS]


def library_message(message: str, source: str) -> str | None:
    """`message` if it is one of the libraries' fixed sentences on shapes, names or counts; None where it may hold data.

    Names in it must be a library's or stand in `source`, the code that the student handed in.
    """
    message = " ".join(message.split()) if len(message) <= LONGEST_MESSAGE else ""
    if not message or len(re.findall(r"\d+", message)) > MOST_NUMBERS:
        return None
    words = _words(source)
    for pattern in _PATTERNS:
        found = pattern.fullmatch(message)
        if found and all(known(name, words) for group in found.groups() for name in re.findall(r"\w+", group)):
            return message
    return None


def own_line(line: str, source: str) -> str:
    """`line` if it is one of the lines of `source`, typed before any hidden input existed; else ''."""
    line = line.strip()
    # The child sends at most 200 characters of a line.
    return line if line and any(typed.strip()[:200].strip() == line for typed in source.splitlines()) else ""


def own_type(name: str, source: str) -> str:
    """The name of an exception's type if it is Python's, a library's or in `source`; else ''."""
    return name if known(name, _words(source)) else ""


def shown_type(name: str, source: str) -> str:
    """What a report calls an exception's type: its name, where that may be repeated."""
    return own_type(name, source) or "an exception of its own"


def known(name: str, words: frozenset[str]) -> bool:
    """Whether `name` existed before the student's code ran on hidden inputs."""
    old = name in words or name in LIBRARY_NAMES or hasattr(builtins, name)
    return old or re.fullmatch("[A-Za-z]|__[a-z]{1,20}__", name) is not None


def _words(source: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", source))


MOST_COMPARED = 20_000_000
"""Characters of a text, times strings that are looked for in it."""


def without_foreign(text: str, trace: Sequence[Observation], typed: str) -> str:
    """`text` without the strings that came back from the student's process, except those that occur in `typed`.

    A check may say "your dict holds X, Y": the keys are the student's, and `{repr(inputs): 1}` is a dict too. Where
    there is too much to look through, nothing of it is repeated.
    """
    words, theirs = _words(typed), set(_texts(trace))
    if len(theirs) * len(text) > MOST_COMPARED:
        return HIDDEN
    for foreign in sorted(theirs, key=len, reverse=True):
        # A check may have written {key!r}, where line breaks and quotes look otherwise.
        for spelling in {foreign, repr(foreign)[1:-1]}:
            if spelling and spelling in text and not all(known(word, words) for word in re.findall(r"\w+", foreign)):
                text = _without(text, spelling)
    return text


def _without(text: str, foreign: str) -> str:
    """`text` without `foreign`; one of a few letters only where it stands alone, for it occurs in other words too."""
    pattern = re.escape(foreign)
    return re.sub(rf"(?<!\w){pattern}(?!\w)" if len(foreign) < 4 else pattern, HIDDEN, text)


def _texts(trace: Iterable[Observation]) -> Iterator[str]:
    for seen in trace:
        for tree in (seen.value, seen.arguments, seen.parameters):
            yield from _texts_in(tree)


def _texts_in(tree: Any) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, (Structure, Other, ModuleState)):
        yield from (tree.type, getattr(tree, "text", ""))
        yield from _texts_in([getattr(tree, name, None) for name in ("fields", "items", "parameters", "sizes")])
    elif isinstance(tree, Mapping):
        # Short integers are how people index; longer numbers could be data.
        yield from (str(key) for key in tree if not (isinstance(key, int) and abs(key) < 1000))
        yield from _texts_in(list(tree.values()))
    elif isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _texts_in(item)


_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"  # controls, line and paragraph separators, half characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""The latter let text read otherwise than it is stored; joiners, which scripts and emoji need, are not among them."""


def printable(text: str, *, lines: bool = False) -> str:
    """`text` without control, direction and escape characters, on one line unless `lines`."""
    text = _UNPRINTABLE.sub("\ufffd", text.replace("\r\n", "\n"))
    return text if lines else " ".join(text.split())
