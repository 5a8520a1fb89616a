"""Wrong answers that an instructor met and named with `qkv learn`: entries of a catalogue that are data, not modules.

Each is a file, exercises/learned/<slug>/<id>.py: the answer as it came, below a comment that says what it is. The code
may be a student's, so nothing imports it: it runs behind the sandbox's walls, in grading as in the tests.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import math
import re
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graders.authoring import Exercise, ExerciseError, Misconception
from graders.sandbox.box import Limits, Sandbox, SandboxError, Stopped
from graders.sandbox.session import Session
from graders.student import Elsewhere

FOLDER = Path(__file__).parent / "exercises" / "learned"

_HEADER = re.compile(r"\A# /// idea\n(?P<toml>(?:#(?: .*)?\n)*?)# ///\n")
_DAY = 86_400.0


@dataclass(frozen=True)
class Learned:
    """One such answer: the fields of a misconception, and the `source` that is asked."""

    id: str
    replaces: str
    first_fails: str
    sentence: str
    hint: str
    source: str

    def idea(self, uses: Sequence[str]) -> Misconception:
        """It as an entry of a catalogue; `uses` are the modules that its exercise has loaded."""
        answer = Elsewhere(functools.partial(_perform, self.source, tuple(uses)))
        return Misconception(self.id, self.replaces, self.first_fails, self.sentence, self.hint, answer)

    def text(self) -> str:
        """What its file holds."""
        told = {name: value for name, value in asdict(self).items() if name not in ("id", "source")}
        # JSON's strings are TOML's too.
        lines = [f"# {name} = {json.dumps(value, ensure_ascii=False)}" for name, value in told.items()]
        return "\n".join(["# /// idea", *lines, "# ///", self.source.strip("\n"), ""])


def file_of(slug: str, id: str) -> Path:
    """Where the idea `id` of an exercise is kept."""
    return FOLDER / slug / f"{id}.py"


def read(path: Path) -> Learned:
    """The answer in `path`; ExerciseError where the comment at its head does not say what it is."""
    text = path.read_text(encoding="utf-8")
    header = _HEADER.match(text)
    try:
        told = tomllib.loads(re.sub("(?m)^# ?", "", header["toml"])) if header else {}
        return Learned(path.stem, source=text[header.end() if header else 0 :], **told)
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise ExerciseError(
            f"{shown(path)} does not say what it is ({error}); it begins with '# /// idea', a line each for"
            " replaces, first_fails, sentence and hint, and '# ///'"
        ) from None


def with_learned(exercise: Exercise) -> Exercise:
    """`exercise` with what was learned for it at the end of its catalogue, in alphabetical order."""
    known = [read(path) for path in sorted((FOLDER / exercise.slug).glob("*.py"))]
    for one in known:
        _refuse_misfit(exercise, one)
    ideas = {one.id: one.idea(exercise.uses) for one in known}
    return replace(exercise, misconceptions={**exercise.misconceptions, **ideas}) if ideas else exercise


def _refuse_misfit(exercise: Exercise, one: Learned) -> None:
    """An exercise may have changed since."""
    path = shown(file_of(exercise.slug, one.id))
    if one.id in exercise.misconceptions:
        raise ExerciseError(f"{path}: {exercise.slug} has an idea of that name of its own; rename or delete the file")
    for what, name, names in (
        ("replaces", one.replaces, exercise.references),
        ("first_fails", one.first_fails, exercise.checks),
    ):
        if name not in names:
            raise ExerciseError(f"{path}: {what} is {name!r}, which is none of: {', '.join(names)}")


def shown(path: Path) -> str:
    """Its place as people say it."""
    return f"graders/{path.relative_to(FOLDER.parent.parent)}"


# --- where they run ---------------------------------------------------------------------------------------------------


class Walls:
    """A process for each learned answer behind one sandbox, started when it is first asked.

    All of them together have `seconds`, waiting included.
    """

    def __init__(self, sandbox: Sandbox, seconds: float = math.inf) -> None:
        self._sandbox, self._left = sandbox, seconds
        self._sessions: dict[str, Session] = {}
        self._stopped: dict[str, str] = {}

    def perform(self, source: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer's reply; an error where it had to be stopped, once and for all, or where there are no walls."""
        if self._sandbox.kind == "none":
            return _error("it runs behind walls alone")
        if self._left <= 0:
            return _error("the time for learned answers was used up")
        started = time.monotonic()
        try:
            if source not in self._stopped:
                self._sessions.setdefault(source, Session(self._sandbox, [source]))
                return self._sessions[source].perform(request)
        except (Stopped, SandboxError) as stop:
            self._stopped[source] = str(stop)
        finally:
            self._left -= time.monotonic() - started
        return _error(self._stopped[source])

    def close(self) -> None:
        """End the processes."""
        for session in self._sessions.values():
            session.close()


def _error(message: str) -> dict[str, Any]:
    return {"error": {"type": "Stopped", "message": message}}


_walls: ContextVar[Walls | None] = ContextVar("_walls", default=None)


@contextlib.contextmanager
def behind(sandbox: Sandbox, seconds: float = math.inf) -> Iterator[None]:
    """Learned answers that are asked within run behind the walls of `sandbox`, for `seconds` together."""
    walls = Walls(sandbox, seconds)
    token = _walls.set(walls)
    try:
        yield
    finally:
        _walls.reset(token)
        walls.close()


def _perform(source: str, uses: tuple[str, ...], request: dict[str, Any]) -> dict[str, Any]:
    return (_walls.get() or _own(uses)).perform(source, request)


@functools.cache
def _own(uses: tuple[str, ...]) -> Walls:
    """Walls for whoever tries a catalogue without grading: an author's tests."""
    sandbox = Sandbox(uses, Limits(hand_in=_DAY))
    walls = Walls(sandbox)
    atexit.register(sandbox.close)
    return walls
