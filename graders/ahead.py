"""The sandbox of a class, started while this process does what comes before grading: on two cores it costs nothing.

Nothing slow is imported here, an exercise least of all: the earlier it starts, the earlier the first hand-in is graded.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from graders.authoring import declared_uses
from graders.build import load
from graders.intake import executable
from graders.sandbox.box import Sandbox
from graders.settings import VERDICT, Course


def modules_for(slug: str) -> tuple[str, ...]:
    """What the sandbox should have loaded before it runs notebooks of the exercise `slug`."""
    return (*declared_uses(slug), "jaxtyping", "course.checking", "course.plotting")


def released_sources(course: Course, slug: str) -> tuple[str, ...]:
    """The code of the released notebook of `slug`, most of which every hand-in runs as it is."""
    return tuple(source for _, source in executable(load(course.released(slug))))


def needs_sandbox(course: Course, slug: str, students: Sequence[str] = (), *, force: bool = False) -> bool:
    """Whether a hand-in of `slug` (by one of `students`) has no verdict yet, or all are to be graded again.

    Where nothing is released nothing will be graded, and whoever asked need not wait for a sandbox to hear so.
    """
    if not course.released(slug).exists():
        return False
    hand_ins = [student for student, _ in course.hand_ins(slug) if not students or student in students]
    done = [(course.folder("autograded") / student / slug / VERDICT).exists() for student in hand_ins]
    return bool(done) and (force or not all(done))


class SandboxAhead:
    """A sandbox that may be starting still. Use as a context manager; `ready` waits for it."""

    def __init__(self, course: Course, slug: str) -> None:
        self._thread = ThreadPoolExecutor(1)
        limits, kind, sources = course.settings.limits(), course.settings.sandbox, released_sources(course, slug)
        self._starting: Future[Sandbox] = self._thread.submit(Sandbox, modules_for(slug), limits, kind, sources)

    def is_ready(self) -> bool:
        """Whether `ready` would not wait."""
        return self._starting.done()

    def ready(self) -> Sandbox:
        """The sandbox, with no thread left beside the caller's, which may fork; raises what its start raised."""
        self._thread.shutdown()
        return self._starting.result()

    def __enter__(self) -> SandboxAhead:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        if self._starting.exception() is None:
            self._starting.result().close()
