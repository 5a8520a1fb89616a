"""The fork server: imports once, then forks a walled child for every hand-in.

Started by path under bubblewrap (or alone), with the numbers of a listening socket and of a lifeline, and a JSON
configuration on standard input. Stays single-threaded. Each connection carries one request, with the child's end of a
socket pair, and is answered with the child's pid, a pidfd, and, when the child ends, how it ended.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import warnings
from dataclasses import dataclass
from typing import Any

CONTROL_BYTES = 1 << 16
WATCH_SECONDS = 0.25
"""How often the children's folders are measured. No kernel limit counts files, or bytes over all files of a folder."""
A_FEW = 8
"""Children after which it pays to make forking cheaper."""
LITTLE = 100
"""Files that are cleared away while others wait."""


def main() -> None:
    """Serve until the control socket's other end says `exit`, or until whoever started us is gone."""
    gc.disable()  # while all is loaded, collections find nothing and take a tenth of the time
    listening, lifeline, config = int(sys.argv[1]), int(sys.argv[2]), json.load(sys.stdin)
    sys.argv[:] = [""]  # what a notebook may read; a student's argparse finds no arguments there
    _settle(config["scratch"])
    preload(config["modules"])
    from . import cells

    shell = cells.make_shell()
    shell.compile_ahead(config["sources"])
    cells.COLLECTOR.most = config["output"]
    server = Server(socket.socket(fileno=listening), config, Walls(config), shell)
    server.selector.register(lifeline, selectors.EVENT_READ, server.end)
    threads = os.listdir("/proc/self/task")
    if len(threads) != 1:
        raise RuntimeError(f"the zygote has {len(threads)} threads; forking would copy locks in an unknown state")
    gc.freeze()
    gc.enable()
    server.serve()


def _settle(scratch: str) -> None:
    """Libraries write their caches below HOME: here, and not in that of whoever grades."""
    home = tempfile.mkdtemp(prefix="zygote-", dir=scratch)
    _live_in(home)


def _live_in(home: str) -> None:
    tempfile.tempdir = home
    os.environ.update(HOME=home, TMPDIR=home, IPYTHONDIR=f"{home}/.ipython", MPLCONFIGDIR=f"{home}/.matplotlib")


def preload(modules: list[str]) -> None:
    """Import what hand-ins will need, so that children need not, and pay for what is imported lazily."""
    os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
    for name in ("IPython", "IPython.core.completer", "numpy.random", "course", *modules):
        importlib.import_module(name)
    from . import calls, cells, wire  # noqa: F401 - imported for the children

    if "torch" in modules:
        _warm_torch()


def _warm_torch() -> None:
    """A step back through a layer, and one number shown: what torch does once, at the first time."""
    import torch

    torch.set_num_threads(1)
    torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()
    repr(torch.ones(2))


class Walls:
    """The layers that this configuration asks for, prepared."""

    def __init__(self, config: dict[str, Any]) -> None:
        from . import layers

        self.limits = dict(config["limits"])
        self.strict = config["strict"]
        if self.strict:
            self.user = layers.OwnUser([*config["readable"], *filter(os.path.exists, sys.path)])
            self.landlock = layers.Landlock(config["readable"])
            self.seccomp = layers.Seccomp()
            if not self.user.possible and config["shared"]:
                self.limits["processes"] += layers.threads_of(os.getuid())

    def choose_user(self, folder: str) -> int | None:
        """The user id of the child that may write `folder`, or None for our own."""
        return self.user.choose(folder) if self.strict else None

    def apply(self, folder: str, uid: int | None) -> list[str]:
        """Put up every wall, leaving only `folder` writable; the names of those that stand."""
        from . import layers

        standing = ["limits"]
        if uid is not None:
            layers.become(uid, self.user.whole)
            standing.append("user")
            if not self.user.whole:  # it asks what the other user may, which is not what opening a file will find
                os.access = functools.partial(os.access, effective_ids=True)
        # After the change of user, which forgets it.
        layers.prctl(layers.PR_SET_PDEATHSIG, layers.SIGKILL)
        layers.limits(self.limits)
        if self.strict:
            layers.drop_capabilities()
            self.landlock.apply(folder)
            self.seccomp.apply()
            standing += ["capabilities", "landlock", "seccomp"]
        return standing


@dataclass
class Running:
    """One child, and whom to tell of its end."""

    pid: int
    pidfd: int
    folder: str
    connection: socket.socket
    stopped: str = ""


class Server:
    """Accepts connections, forks children, watches what they write, reports their ends."""

    def __init__(self, listening: socket.socket, config: dict[str, Any], walls: Walls, shell: Any) -> None:
        from . import memory

        self.listening, self.config, self.walls, self.shell = listening, config, walls, shell
        self.running: dict[int, Running] = {}
        self.forks = 0
        self.gathering = memory.gathering()
        self.selector = selectors.DefaultSelector()
        self.selector.register(listening, selectors.EVENT_READ, self.accept)

    def serve(self) -> None:
        while True:
            for key, _ in self.selector.select(WATCH_SECONDS if self.running else None):
                key.data(key.fileobj)
            self.watch()

    def end(self, _lifeline: int) -> None:
        """Whoever started us is gone without a word: leave nothing of a student's behind."""
        from . import scratch

        for running in self.running.values():
            signal.pidfd_send_signal(running.pidfd, signal.SIGKILL)
            os.waitpid(running.pid, 0)
        scratch.clear(self.config["scratch"])
        os._exit(0)

    def accept(self, listening: socket.socket) -> None:
        connection, _ = listening.accept()
        self.selector.register(connection, selectors.EVENT_READ, self.request)

    def request(self, connection: socket.socket) -> None:
        self.selector.unregister(connection)
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, CONTROL_BYTES, 1)
            if data == b"exit":
                os._exit(0)
            if descriptors:
                self.fork(connection, descriptors[0])
            elif data:
                connection.sendall(b"{}")
        except OSError:
            connection.close()  # whoever asked has gone, or there is no room for another process: it is asked again

    def fork(self, connection: socket.socket, channel: int) -> None:
        folder = tempfile.mkdtemp(dir=self.config["scratch"])
        try:
            uid = self.walls.choose_user(folder)
            pid = os.fork()
            if pid == 0:
                child(channel, self.walls, folder, uid, self.shell)
        except OSError:
            os.rmdir(folder)
            raise
        finally:
            os.close(channel)
        running = Running(pid, os.pidfd_open(pid), folder, connection)
        self.running[running.pidfd] = running
        self.selector.register(running.pidfd, selectors.EVENT_READ, self.reap)
        socket.send_fds(connection, [json.dumps({"pid": pid}).encode()], [running.pidfd])
        self.forks += 1
        if self.forks > A_FEW:
            next(self.gathering, None)

    def watch(self) -> None:
        """End a child whose folder has grown past what it may hold."""
        from . import scratch

        for running in self.running.values():
            if not running.stopped and scratch.too_much(running.folder, self.config["scratch_bytes"]):
                running.stopped = "scratch"
                signal.pidfd_send_signal(running.pidfd, signal.SIGKILL)

    def reap(self, pidfd: int) -> None:
        from . import scratch

        running = self.running.pop(pidfd)
        self.selector.unregister(pidfd)
        os.close(pidfd)
        _, status, usage = os.wait4(running.pid, 0)
        report = {"code": os.waitstatus_to_exitcode(status), "stopped": running.stopped}
        report |= {"cpu": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss * 1024}
        with contextlib.suppress(OSError):  # whoever asked may have gone; the child is reaped all the same
            running.connection.sendall(json.dumps(report).encode())
        running.connection.close()
        if scratch.too_much(running.folder, self.config["scratch_bytes"], LITTLE):
            self.clear_beside(running.folder)
        else:
            scratch.clear(running.folder)

    def clear_beside(self, folder: str) -> None:
        """Clear `folder` in a process of its own: others should not wait for what one student left."""
        from . import layers, scratch

        pid = os.fork()
        if pid == 0:
            try:
                os.closerange(0, os.sysconf("SC_OPEN_MAX"))
                layers.prctl(layers.PR_SET_PDEATHSIG, layers.SIGKILL)
                scratch.clear(folder)
            finally:
                os._exit(0)
        self.selector.register(os.pidfd_open(pid), selectors.EVENT_READ, lambda pidfd: self.cleared(pidfd, pid))

    def cleared(self, pidfd: int, pid: int) -> None:
        self.selector.unregister(pidfd)
        os.close(pidfd)
        os.waitpid(pid, 0)


def child(channel: int, walls: Walls, folder: str, uid: int | None, shell: Any) -> None:
    """The life of a child: walls, then cells and calls as the grader asks, then the end. Never returns."""
    code = 1
    try:
        _leave_everything(channel)
        link = Link(channel)
        try:
            _settle_child(folder, shell)
            standing = walls.apply(folder, uid)
        except Exception as error:
            link.send({"layers": [], "problem": f"{type(error).__name__}: {error}"})
            return
        link.send({"layers": standing})
        serve_requests(link, shell)
        code = 0
    finally:
        os._exit(code)


def _settle_child(folder: str, shell: Any) -> None:
    from . import cells

    os.chdir(folder)
    _live_in(folder)
    _reseed()
    cells.attach(shell)


def _leave_everything(channel: int) -> None:
    """Keep nothing that is open but `channel`: no other child's socket, not the zygote's own."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.closerange(3, channel)
    os.closerange(channel + 1, os.sysconf("SC_OPEN_MAX"))


def _reseed() -> None:
    """A fork shares its parent's generators; students expect fresh ones."""
    import random

    import numpy as np

    random.seed()
    np.random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.seed()  # torch.seed() looks for every kind of accelerator first


class Link:
    """Frames over the one inherited socket."""

    def __init__(self, descriptor: int) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._file = self._socket.makefile("rb")

    def send(self, tree: Any) -> None:
        from . import wire

        try:
            frame = wire.encode(tree)
        except BaseException as error:  # a student's object may do anything while it is read, exit included
            why = str(error) if isinstance(error, wire.BadFrame) else "the value cannot be sent as data"
            problem = {"type": type(error).__name__[:80], "message": why, "line": ""}
            frame = wire.encode({"nonce": tree.get("nonce"), "error": problem})
        self._socket.sendall(frame)

    def receive(self) -> Any:
        from . import wire

        prefix = self._file.read(wire.LENGTHS.size)
        if len(prefix) < wire.LENGTHS.size:
            return None
        header, payload = wire.check_lengths(prefix)
        return wire.decode(self._file.read(header), self._file.read(payload), tensors=True)


def serve_requests(link: Link, shell: Any) -> None:
    """Cells and calls, one at a time, until the grader hangs up."""
    from . import calls, cells

    while (request := link.receive()) is not None:
        if request["op"] == "cell":
            reply = cells.run_cell(shell, request["source"], request["seconds"])
        else:
            reply = _timed_call(calls, cells, shell, request)
        link.send({**reply, "nonce": request["nonce"]})


def _timed_call(calls: Any, cells: Any, shell: Any, request: dict[str, Any]) -> dict[str, Any]:
    cells.COLLECTOR.reset()
    try:
        cells.deadline(request["seconds"])
        with warnings.catch_warnings():
            return calls.perform(shell.user_ns, request)
    except cells.CellTimeout as error:
        return {"error": calls.describe(error)}
    finally:
        cells.deadline(0)
