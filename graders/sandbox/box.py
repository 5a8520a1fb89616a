"""Start a fork server behind its walls, prove that they stand, and get a child for each hand-in.

A `Sandbox` is one zygote. A `Child` is one process for one hand-in, asked over a socket pair; whatever goes wrong in it
ends it, and `Stopped` says why.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from graders.sandbox import mounts
from graders.sandbox.child import START_SECONDS, Child, Kind, Stopped
from graders.sandbox.inside import scratch
from graders.sandbox.mounts import INSIDE

__all__ = ["Child", "Kind", "Limits", "Sandbox", "SandboxError", "Stopped", "available_kinds"]

BWRAP_HINT = "apt-get install bubblewrap (Debian, Ubuntu) adds namespaces round the other walls"
PROBE_SECONDS = 20.0
AT_ONCE = 32
"""Hand-ins that can each fill what they may write without any other's missing it, in the folder that they share."""


@dataclass(frozen=True)
class Limits:
    """What one hand-in may use: seconds for a call, a cell and the whole; bytes of memory above the start.

    `file` is bytes in one file, `files` open descriptors, `processes` threads, `scratch` bytes in all files, and
    `output` characters that one cell may show.
    """

    call: float = 10.0
    cell: float = 30.0
    hand_in: float = 120.0
    memory: int = 2 << 30
    file: int = 16 << 20
    files: int = 128
    processes: int = 256
    scratch: int = 64 << 20
    output: int = 1_000_000

    def for_child(self) -> dict[str, int]:
        """The part that the kernel enforces in the child."""
        kernel = {"memory": self.memory, "file": self.file, "files": self.files, "processes": self.processes}
        return kernel | {"cpu": int(self.hand_in) + 5}


class SandboxError(RuntimeError):
    """No sandbox can be had here; the message says why and what to do."""


class Sandbox:
    """A zygote behind its walls; `kind` says which. Use as a context manager.

    `modules` are imported once, before any hand-in, and `sources` compiled, the cells that notebooks will have in
    common; both save time and change nothing. `kind="auto"` takes bubblewrap where it works and the inner walls
    alone where it does not; it never runs anything without walls. A pickled copy (in a worker process) asks the same
    zygote, and starts it again if it has ended; the one that made it closes it.
    """

    def __init__(
        self,
        modules: Sequence[str] = ("numpy",),
        limits: Limits | None = None,
        kind: Kind | Literal["auto"] = "auto",
        sources: Sequence[str] = (),
    ) -> None:
        self.modules, self.sources, self.limits = tuple(modules), tuple(sources), limits or Limits()
        self._folder = Path(tempfile.mkdtemp(prefix="qkv-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = -1
        kinds: list[Kind] = available_kinds() if kind == "auto" else [kind]
        try:
            self._start_first([(kind, own) for kind in kinds for own in _namespaces(kind)])
        except BaseException:
            self.close()
            raise

    def _start_first(self, ways: Sequence[tuple[Kind, bool]]) -> None:
        problems = []
        for self.kind, self._own_namespace in ways:
            try:
                self._start()
                return
            except SandboxError as error:
                problems.append(f"{self.kind}: {error}")
        raise SandboxError(
            "student code cannot be run safely here, so nothing was graded: "
            + "; ".join(problems or ["this is no Linux"])
            + ". A Linux machine or container with Landlock (kernel 5.13+) and libseccomp2 is needed;"
            + " --sandbox none --i-trust-this-code runs an author's own notebook without walls"
        )

    @property
    def address(self) -> str:
        """The control socket's path; it lies outside of what a student's process can name."""
        return str(self._folder / "zygote")

    def _start(self) -> None:
        self._end_process()
        with self._listening() as listening, tempfile.TemporaryFile(dir=self._folder) as log:
            lifeline, self._lifeline = os.pipe()
            try:
                self._process = self._popen(listening.fileno(), lifeline, log)
            finally:
                os.close(lifeline)
                listening.close()  # so that a zygote that ends at once is not waited for
            self._await_start(log)
        self.probe()

    def _listening(self) -> socket.socket:
        Path(self.address).unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        listening.bind(self.address)
        listening.listen(64)
        return listening

    def _popen(self, listening: int, lifeline: int, log: BinaryIO) -> subprocess.Popen[bytes]:
        try:
            with tempfile.TemporaryFile(dir=self._folder) as config:
                config.write(json.dumps(self._config()).encode())
                config.seek(0)
                return subprocess.Popen(
                    self._command(listening, lifeline),
                    pass_fds=[listening, lifeline],
                    env=mounts.environment(),
                    stdin=config,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                )
        except FileNotFoundError as error:
            raise SandboxError(f"{error.filename} is not installed; {BWRAP_HINT}") from None

    def _await_start(self, log: BinaryIO) -> None:
        problem = "it ended at once"
        try:
            with self._connect() as connection:
                connection.settimeout(START_SECONDS)
                connection.send(b"ping")
                if connection.recv(16):
                    return
        except OSError as error:
            problem = str(error)
        self._end_process()
        log.seek(0)
        last = log.read().decode(errors="replace").strip().splitlines()[-1:] or [problem]
        raise SandboxError(f"the sandbox did not start: {last[0][:300]}")

    def probe(self) -> None:
        """Try, in a real child, what a student might; a SandboxError names the wall that stands open."""
        if self.kind == "none":
            return
        canary = self._folder / "canary"
        canary.write_text(secrets.token_hex())
        try:
            found = self._probed(canary)
        except (OSError, Stopped) as error:
            found = [str(error)]
        if found:
            self._end_process()
            raise SandboxError("student code could get out: " + ", ".join(found))

    def _probed(self, canary: Path) -> list[str]:
        child = Child(self._connect(), self.kind)
        try:
            child.ask({"op": "cell", "source": (INSIDE / "probe.py").read_text()}, PROBE_SECONDS)
            # Nothing of a student's has run in this process: what it says of itself can be believed.
            arguments = [str(canary), self.address, self.limits.for_child()]
            request = {"op": "call", "name": "open_walls", "args": arguments, "kwargs": {}}
            reply = child.ask({**request, "gradients_of": [], "upstream": None}, PROBE_SECONDS)
        finally:
            child.kill()
        if "error" in reply:
            return [f"the probe itself failed ({reply['error']})"]
        return list(reply["value"])

    @property
    def _outer(self) -> bool:
        return self.kind == "bwrap+strict"

    @property
    def _home(self) -> str:
        """The folder, as the zygote sees it, that holds its code."""
        return "/qkv" if self._outer else str(INSIDE.parent)

    def _config(self) -> dict[str, Any]:
        return {
            "modules": self.modules,
            "sources": self.sources,
            "limits": self.limits.for_child(),
            "strict": self.kind != "none",
            "shared": not self._outer,  # with all else that this user runs
            "scratch": "/tmp" if self._outer else str(_made(self._folder / "scratch")),
            "scratch_bytes": self.limits.scratch,
            "output": self.limits.output,
            "readable": [*mounts.readable(), f"{self._home}/inside"],
        }

    def _command(self, listening: int, lifeline: int) -> list[str]:
        path = f"sys.path.insert(0, {self._home!r})"
        start = f"import sys; {path}; from inside.zygote import main; del sys.path[0]; main()"
        python = [sys.executable, "-I", "-c", start, str(listening), str(lifeline)]
        return mounts.bwrap(python, AT_ONCE * self.limits.scratch, self._own_namespace) if self._outer else python

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(self.address)
        except OSError:
            connection.close()
            raise
        return connection

    def child(self) -> Child:
        """A new child with its walls standing. Starts the zygote again if it has ended; SandboxError if that fails."""
        problem: Exception | None = None
        for _ in range(3):
            try:
                return Child(self._connect(), self.kind)
            except (OSError, Stopped) as error:
                problem = error
                self._start_again()
        raise SandboxError(f"the sandbox gives no process any more: {problem}")

    def _start_again(self) -> None:
        with open(self._folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not self._answers():  # another worker may have started it meanwhile
                self._start()

    def _answers(self) -> bool:
        try:
            with self._connect() as connection:
                connection.settimeout(START_SECONDS)
                connection.send(b"ping")
                return bool(connection.recv(16))
        except OSError:
            return False

    def close(self) -> None:
        """End the zygote and all its children."""
        try:
            with self._connect() as connection:
                connection.send(b"exit")
        except OSError:
            pass  # it has ended already
        self._end_process()
        scratch.clear(str(self._folder))  # shutil's would recurse into whatever a student nested

    def _end_process(self) -> None:
        """Let go of the lifeline, at whose end the zygote ends itself."""
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if self._process is not None:
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_process": None, "_lifeline": -1}

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def available_kinds() -> list[Kind]:
    """The kinds of sandbox to try here, the strongest first."""
    if not sys.platform.startswith("linux"):
        return []
    return ["bwrap+strict", "strict-no-namespace"] if shutil.which(mounts.BWRAP) else ["strict-no-namespace"]


def _namespaces(kind: Kind) -> list[bool]:
    """With an own user namespace or without: root can do better without, where it is allowed to."""
    return [False, True] if kind == "bwrap+strict" and os.geteuid() == 0 else [True]


def _made(folder: Path) -> Path:
    """A folder that a child may pass through as another user, without seeing what lies in or beside it."""
    folder.mkdir(exist_ok=True)
    for passed in (folder.parent, folder):
        passed.chmod(0o711)
    return folder
