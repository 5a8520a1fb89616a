"""The sandbox of a class, started while this process does what comes before grading: on two cores it costs nothing."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from graders.sandbox.box import Sandbox
from graders.settings import QKV


class SandboxAhead:
    """A sandbox that may be starting still. Use as a context manager; `ready` waits for it."""

    def __init__(self, modules: tuple[str, ...], settings: QKV) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._starting: Future[Sandbox] = self._thread.submit(Sandbox, modules, settings.limits(), settings.sandbox)

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
