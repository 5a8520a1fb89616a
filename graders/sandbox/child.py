"""The grader's end of one student's process: ask it, believe none of it, and stop it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any, Literal, NoReturn

from graders.sandbox.inside import wire

Kind = Literal["bwrap+strict", "strict-no-namespace", "none"]
Cause = Literal["timeout", "died", "protocol", "lost", "not_run"]
START_SECONDS = 120.0
GRACE_SECONDS = 1.0
"""How long a child may take, past its own alarm, to say that its time was up; then it is killed."""

READ_AHEAD = 1 << 14
"""Bytes taken at a time: most replies come in one piece, and are read in one."""

LAYERS = {"limits", "capabilities", "landlock", "seccomp"}


class Stopped(Exception):
    """A child is no more, or may not be asked. `reason` says why in words.

    `cause` is `timeout`, `died` or `protocol`, which are the child's own doing, `lost` where the sandbox ended under
    it, or `not_run`.
    """

    def __init__(self, cause: Cause, reason: str) -> None:
        super().__init__(reason)
        self.cause, self.reason = cause, reason


class Child:
    """One student's process. `ask` it; after `Stopped` it is gone."""

    def __init__(self, control: socket.socket, kind: Kind) -> None:
        self._control = control
        self._channel, theirs = socket.socketpair()
        self._channel.setblocking(False)
        self._events = select.poll()  # select() cannot watch a descriptor past 1024
        self._read_ahead = bytearray()
        self._pidfd = -1
        self._nonce = 0
        try:
            with theirs:
                socket.send_fds(control, [b"child"], [theirs.fileno()])
            self._await_pid()
            self._check_layers(kind)
        except BaseException:
            self.kill()
            raise

    def _await_pid(self) -> None:
        self._control.settimeout(START_SECONDS)
        data, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        if not descriptors:
            raise Stopped("lost", "the sandbox gave no process")
        self._pidfd, self.pid = descriptors[0], json.loads(data)["pid"]

    def _check_layers(self, kind: Kind) -> None:
        """The child says which walls stand before any student code runs."""
        hello = self._receive(time.monotonic() + START_SECONDS)
        wanted = {"limits"} if kind == "none" else LAYERS
        if not isinstance(hello, dict) or not wanted <= set(hello.get("layers", [])):
            problem = hello.get("problem", "no report") if isinstance(hello, dict) else "no report"
            raise Stopped("lost", f"a wall is missing: {problem}")
        self.layers = frozenset(hello["layers"])

    def ask(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The reply to `request`; the child has `seconds` by its own clock and a little more by ours."""
        self._expect_silence()
        self._nonce += 1
        until = time.monotonic() + seconds + GRACE_SECONDS
        self._send(wire.encode({**request, "seconds": seconds, "nonce": self._nonce}), until)
        reply = self._receive(until)
        if not isinstance(reply, dict) or type(reply.get("nonce")) is not int or reply["nonce"] != self._nonce:
            self._breach("its reply belongs to another question")
        return reply

    def _expect_silence(self) -> None:
        """Nothing was asked, so nothing may have come but the end of the line: the sandbox may have ended meanwhile."""
        if not self._read_ahead and self._await(select.POLLIN, 0):
            with contextlib.suppress(BlockingIOError):
                self._read_ahead += self._received(1)
        if self._read_ahead:
            self._breach("it spoke without being asked")

    def _received(self, size: int) -> bytes:
        """What has come, at least a byte and at most `size`; BlockingIOError where nothing has."""
        try:
            piece = self._channel.recv(size)
        except BlockingIOError:
            raise
        except OSError:
            piece = b""
        return piece or self._died()

    def _send(self, frame: bytes, until: float) -> None:
        left = memoryview(frame)
        while left:
            try:
                left = left[self._channel.send(left) :]
            except BlockingIOError:
                self._await_until(select.POLLOUT, until, "it did not listen")
            except OSError:
                self._died()

    def _receive(self, until: float) -> Any:
        prefix = self._read(wire.LENGTHS.size, until)
        try:
            header, payload = wire.check_lengths(prefix)
            return wire.decode(self._read(header, until), self._read(payload, until))
        except wire.BadFrame as error:
            self._breach(str(error))

    def _read(self, size: int, until: float) -> bytes:
        while len(self._read_ahead) < size:
            self._await_until(select.POLLIN, until, "it did not answer in time")
            try:
                # Never much more than was asked for: what is read ahead is a part of the grader's own memory.
                self._read_ahead += self._received(min(max(size - len(self._read_ahead), READ_AHEAD), 1 << 20))
            except BlockingIOError:
                time.sleep(0.001)  # what woke us was no data; the deadline runs on
        data = bytes(self._read_ahead[:size])
        del self._read_ahead[:size]
        return data

    def _await_until(self, event: int, until: float, problem: str) -> None:
        left = until - time.monotonic()
        if left <= 0 or not self._await(event, left):
            self._end("timeout", problem)

    def _await(self, event: int, seconds: float) -> bool:
        self._events.register(self._channel, event)
        return bool(self._events.poll(max(seconds, 0) * 1000))

    def _died(self) -> NoReturn:
        report = self._report()
        if report is None:
            self._end("lost", "the sandbox ended under it")
        self._end("died", _how(report.get("code"), report.get("stopped")))

    def _report(self) -> dict[str, Any] | None:
        """What the zygote says of the child's end; None where the zygote itself has ended."""
        self._kill_process()  # it may have closed its channel and live on
        self._control.settimeout(5)
        try:
            report = json.loads(self._control.recv(4096))
        except (OSError, ValueError):
            return None
        return report if isinstance(report, dict) else None

    def _breach(self, what: str) -> NoReturn:
        self._end("protocol", f"its process broke the protocol: {what}")

    def _end(self, cause: Cause, reason: str) -> NoReturn:
        self.kill()
        raise Stopped(cause, reason)

    def _kill_process(self) -> None:
        if self._pidfd >= 0:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it may have ended by itself
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            os.close(self._pidfd)
            self._pidfd = -1

    def kill(self) -> None:
        """End the child now."""
        self._kill_process()
        self._channel.close()
        self._control.close()

    close = kill


def _how(code: int | None, stopped: str | None) -> str:
    if stopped == "scratch":
        return "its process wrote too many files, or too much into them"
    if code == -signal.SIGXCPU:
        return "its process used up its time"
    if code == -signal.SIGKILL:
        return "its process was killed (it may have run out of memory)"
    if code is None or code >= 0:
        return "its process ended itself"
    return f"its process crashed ({_signal_name(-code)})"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # a real-time signal has no name
