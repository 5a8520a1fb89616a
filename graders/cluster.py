"""Grade a class on a dask cluster: jobs go to its workers, verdicts come back, and only this process writes.

Workers (and the scheduler, which unpacks jobs) need the installed package and nothing else: no course folder, no
gradebook. Each worker process starts its own sandbox with its first job and keeps it for the next ones.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import logging
import secrets
import socket
import sys
import threading
from concurrent.futures import BrokenExecutor, CancelledError, Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from graders.authoring import UsageError
from graders.hand_in import Graded, HandInJob, grade_hand_in
from graders.sandbox.box import Kind, Limits, Sandbox, SandboxError

if TYPE_CHECKING:
    import distributed

REACH_SECONDS, CONNECT_SECONDS = 2, 4
LOOK_SECONDS = 5.0
KEPT = "what is graded is written, and the same command goes on from there"


@dataclass(frozen=True)
class Setup:
    """What a worker needs besides the job: the sandbox to run it in, and which code it should be graded by."""

    modules: tuple[str, ...]
    limits: Limits
    kind: Kind | Literal["auto"]
    code: str


# --- in the worker ----------------------------------------------------------------------------------------------------

_opening = threading.Lock()


def grade_there(job: HandInJob, setup: Setup) -> Graded:
    """Grade `job` in this worker process. UsageError, with the worker's address, where no job can be graded here."""
    if setup.code != code_digest():
        raise UsageError(
            f"the worker {_address()} has another version of the course or its graders than this machine; install the"
            " same on both and start the worker again"
        )
    try:
        with _opening:  # a worker may have several threads
            sandbox = _sandbox(setup.modules, setup.limits, setup.kind)
    except SandboxError as error:
        raise UsageError(f"the worker {_address()} cannot grade: {error}") from None
    return grade_hand_in(job, sandbox)


@functools.cache
def _sandbox(modules: tuple[str, ...], limits: Limits, kind: Kind | Literal["auto"]) -> Sandbox:
    sandbox = Sandbox(modules, limits, kind)
    atexit.register(sandbox.close)
    return sandbox


@functools.cache
def code_digest() -> str:
    """Of all Python code that marks depend on: two machines with the same digest judge in the same way."""
    import course
    import graders

    found = hashlib.sha256()
    for package in (course, graders):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            if not any(part.startswith(".") for part in path.relative_to(folder).parts):
                found.update(f"{package.__name__}/{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return found.hexdigest()[:20]


def _address() -> str:
    from distributed import get_worker

    return str(get_worker().address)


# --- here -------------------------------------------------------------------------------------------------------------


class ClusterWorkers:
    """The workers of the dask scheduler at an address. Use as a context manager.

    A job whose worker dies runs again elsewhere: dask does that. BrokenExecutor for one that several workers died of,
    UsageError where the scheduler cannot be reached or is lost.
    """

    def __init__(self, address: str, setup: Setup) -> None:
        self.address, self.setup = address, setup
        self._run = secrets.token_hex(4)
        self._closed = threading.Event()
        self._client = _client(address)
        self._executor = self._client.get_executor(pure=False)
        threading.Thread(target=self._look_for_workers, daemon=True).start()

    def submit(self, job: HandInJob, attempt: str = "") -> Future[Graded]:
        """The verdict on `job`, as it comes. Its key is the hand-in's, so that nothing is graded for two."""
        key = f"qkv-{self._run}-{job.slug}-{job.student}{attempt}"
        try:
            theirs = self._executor.submit(grade_there, job, self.setup, key=key)
        except Exception as error:  # whatever dask raises for a client that has closed itself meanwhile
            raise self._lost() from error
        ours: Future[Graded] = Future()
        ours.set_running_or_notify_cancel()
        theirs.add_done_callback(functools.partial(self._hand_over, ours))
        return ours

    def alone(self, job: HandInJob) -> Graded:
        """`job` once more, when no other is there that its worker could have died of."""
        return self.submit(job, attempt="-alone").result()

    def recover(self, lost: int) -> int:
        """Each of the `lost` has seen several workers die; what waited goes on elsewhere by itself."""
        return lost

    def close(self) -> None:
        """Drop what is not done and leave; the cluster goes on."""
        self._closed.set()
        # A scheduler that is gone cannot say goodbye.
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)

    def _hand_over(self, ours: Future[Graded], theirs: Future[Graded]) -> None:
        try:
            ours.set_result(theirs.result())
        except (Exception, CancelledError) as error:
            ours.set_exception(self._in_words(error))

    def _in_words(self, error: BaseException) -> BaseException:
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return BrokenExecutor(f"{error.allowed_failures + 1} workers died while they graded it")
        # dask cancels all that it was given when its connection breaks.
        return self._lost() if isinstance(error, CancelledError) else error

    def _lost(self) -> UsageError:
        return UsageError(f"the scheduler at {self.address} was lost; {KEPT} when it is back, or without --scheduler")

    def _look_for_workers(self) -> None:
        """Say once, each time that it happens, that nobody is there to work: a queue may take hours to give a node."""
        missing = False
        while not self._closed.wait(LOOK_SECONDS):
            with contextlib.suppress(Exception):  # a scheduler that is lost is found elsewhere
                none = not self._client.scheduler_info()["workers"]
                if none and not missing:
                    text = f"qkv: {self.address} has no workers now; waiting for one (Ctrl-C stops: {KEPT})"
                    print(text, file=sys.stderr, flush=True)
                missing = none

    def __enter__(self) -> ClusterWorkers:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def reach(address: str) -> None:
    """UsageError, soon, where nothing listens at `address`: dask would try again and again."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        if not parts.hostname or not parts.port:
            raise ValueError("an address is a host and a port, as tcp://10.0.0.7:8786")
        if parts.scheme in ("tcp", "tls"):
            socket.create_connection((parts.hostname, parts.port), REACH_SECONDS).close()
    except (OSError, ValueError) as error:
        raise _unreachable(address, error) from None


def _unreachable(address: str, error: Exception) -> UsageError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return UsageError(
        f"no dask scheduler can be reached at {address} ({reason}); start one with dask scheduler, or grade without"
        " --scheduler"
    )


def _client(address: str) -> distributed.Client:
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "--scheduler needs dask: pip install 'qkv-graders[cluster]', here and on the workers"
        ) from None
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what goes wrong is said once, by us
    made: Future[distributed.Client] = Future()
    # In a thread, since dask waits without end for a server that accepts and then says nothing.
    threading.Thread(target=_connect, args=(distributed.Client, address, made), daemon=True).start()
    try:
        return made.result(CONNECT_SECONDS)
    except TimeoutError:
        raise _unreachable(address, OSError("what listens there does not answer as dask does")) from None
    except (OSError, ValueError, TypeError) as error:
        raise _unreachable(address, error) from None


def _connect(client: type[distributed.Client], address: str, made: Future[distributed.Client]) -> None:
    try:
        made.set_result(client(address, timeout=CONNECT_SECONDS, set_as_default=False))
    except BaseException as error:  # else the one who waits would not know
        made.set_exception(error)
