"""The walls of each kind of sandbox that this machine has, tried from inside by what a student's cell may do."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import socket
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from graders.sandbox import box, mounts
from graders.sandbox import child as child_module
from graders.sandbox.box import Limits, Sandbox, SandboxError, Stopped
from graders.sandbox.inside import layers
from graders.sandbox.session import Session
from sandbox.conftest import LIMITS, call, printed, run

MakeSandbox = Callable[..., Sandbox]


def _attempt(code: str) -> str:
    """A cell that prints the error that `code` ends in."""
    indented = textwrap.indent(code, "    ")
    refused = "except Exception as error:\n    print(type(error).__name__)"
    return f"try:\n{indented}\n{refused}\nelse:\n    print('NOT REFUSED')"


def refused(sandbox: Sandbox, code: str) -> str:
    """The name of the error that `code` ends in; a test fails where it ends in none."""
    cell = run(sandbox, _attempt(code))[0]
    assert "NOT REFUSED" not in printed(cell)
    return printed(cell).strip() or cell.stopped


IMPORTS = """
import concurrent.futures, fcntl, multiprocessing.shared_memory, os, resource, signal, socket, subprocess
"""

SYSCALL = """
import ctypes, ctypes.util, os
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    if libc.syscall(number, *map(ctypes.c_long, arguments)) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""

SOCKETS = [
    "socket.socket(socket.AF_INET, socket.SOCK_STREAM)",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_INET6)",
    "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "socket.socket(socket.AF_UNIX)",
    "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "socket.create_connection(('127.0.0.1', 80), timeout=1)",
    "socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)",
]

PROCESSES = [
    "os.fork()",
    "os.forkpty()",
    "os.execv('/usr/bin/true', ['true'])",
    "os.posix_spawn('/usr/bin/true', ['true'], {})",
    "subprocess.run(['true'])",
    "multiprocessing.get_context('fork').Process(target=print).start()",
    "multiprocessing.get_context('spawn').Pool(1)",
    "concurrent.futures.ProcessPoolExecutor(1).submit(print).result()",
]

REACHES = [
    "os.kill(os.getppid(), 0)",
    "os.kill(1, 0)",
    "os.kill(-1, 0)",
    "os.kill(0, 0)",
    "os.killpg(os.getpgrp(), 0)",
    "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0)",
    "fcntl.fcntl(os.pipe()[0], 8, os.getppid())",
    "fcntl.fcntl(os.pipe()[0], 10, 9)",
    "fcntl.ioctl(0, 0x5412, b'x')",
    "os.setuid(0)",
    "os.setresuid(0, 0, 0)",
    "os.setgroups([0])",
    "os.chroot('.')",
    "os.setpriority(os.PRIO_PROCESS, 0, -20)",
    "os.sched_setaffinity(os.getppid(), {0})",
    "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "resource.prlimit(os.getppid(), resource.RLIMIT_CPU)",
    "os.symlink('/etc/passwd', 'link')",
    "os.link('/usr/bin/env', 'link')",
    "os.mkfifo('fifo')",
    "os.mknod('node')",
    "os.memfd_create('memory')",
    "open('/dev/shm/x', 'w')",
    "multiprocessing.shared_memory.SharedMemory(create=True, size=10)",
    "os.listxattr('.')",
    "os.truncate(open('own', 'w').name, 0)",
    "os.open(open('own', 'w').name, os.O_RDONLY | os.O_TRUNC)",
    "os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)",
    "os.open(os.__file__, os.O_RDWR)",
]

# The numbers are those of x86_64.
SYSCALLS = {
    "ptrace": "101, 0, 0, 0, 0",
    "process_vm_readv of the parent": "310, os.getppid(), 0, 0, 0, 0, 0",
    "unshare a user namespace": "272, 0x10000000",
    "clone without thread": "56, 17, 0, 0, 0, 0",
    "clone a thread into a namespace": "56, 0x50010f00, 0, 0, 0, 0",
    "clone3": "435, 0, 88",
    "io_uring_setup": "425, 1, 0",
    "bpf": "321, 0, 0, 0",
    "keyctl": "250, 0, 0, 0, 0, 0",
    "userfaultfd": "323, 0",
    "perf_event_open": "298, 0, 0, 0, 0, 0",
    "name_to_handle_at": "303, 0, 0, 0, 0, 0",
    "inotify_init": "253",
    "openat2": "437, -100, 0, 0, 24",
    "a system call that no kernel has": "999",
    "prctl: change what kills it": "157, 1, 0, 0, 0, 0",
    "prctl: be dumped again": "157, 4, 1, 0, 0, 0",
    "prctl: another filter": "157, 22, 2, 0, 0, 0",
    "seccomp": "317, 1, 0, 0",
    "kill by a pid with high bits": "62, os.getppid() | (1 << 32), 0",
    "tgkill of the parent": "234, os.getppid(), os.getppid(), 0",
}


@pytest.fixture(scope="module")
def attempts(walled: Sandbox) -> dict[str, str]:
    """The error that each attempt ends in, all of them made by one child."""
    codes = {code: code for code in (*SOCKETS, *PROCESSES, *REACHES)}
    codes |= {name: f"syscall({arguments})" for name, arguments in SYSCALLS.items()}
    cells = run(walled, IMPORTS + SYSCALL, *map(_attempt, codes.values()))
    return {name: printed(cell).strip() or cell.stopped for name, cell in zip(codes, cells[1:], strict=True)}


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file of the grader's, as a gradebook is."""
    path = tmp_path / "gradebook.db"
    path.write_text("canary")
    return path


# --- what cannot be reached -------------------------------------------------------------------------------------------


def test_files_of_the_grader_cannot_be_read_or_written(walled: Sandbox, canary: Path) -> None:
    """Neither a file that we own nor one beside it, under any way to open it."""
    for code in (
        f"open({str(canary)!r}).read()",
        f"open({str(canary)!r}, 'a').write('x')",
        f"open({str(canary.parent / 'new')!r}, 'w')",
        f"import os; os.truncate({str(canary)!r}, 0)",
        f"import os; os.unlink({str(canary)!r})",
        f"import os; os.rename({str(canary)!r}, 'mine')",
        f"import os; os.mkdir({str(canary.parent / 'folder')!r})",
        f"import os; os.listdir({str(canary.parent)!r})",
        f"import os; os.open({str(canary.parent)!r}, os.O_TMPFILE | os.O_RDWR)",
        f"import sqlite3; sqlite3.connect({str(canary)!r}).execute('create table t (a)')",
    ):
        refused(walled, code)
    assert canary.read_text() == "canary"
    assert os.listdir(canary.parent) == [canary.name]


def test_nothing_of_the_graders_can_be_seen(walled: Sandbox) -> None:
    """The package that holds the answers, this repository, the home folder, other scratch folders."""
    graders = mounts.INSIDE.parents[1]
    for path in (graders, graders.parent, graders / "exercises" / "fused_self_attention.py", Path.home(), "/tmp", "/"):
        refused(
            walled, f"import os; os.listdir({str(path)!r}) if os.path.isdir({str(path)!r}) else open({str(path)!r})"
        )
    refused(walled, "import graders")
    refused(walled, "import graders.exercises.fused_self_attention")


def test_modules_of_a_child_hold_nothing_of_ours(walled: Sandbox) -> None:
    """No module of `graders` is loaded, no object names an exercise, and argv and environment tell nothing."""
    cell = run(
        walled,
        "import sys, os, gc\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'graders'], sys.argv,\n"
        "      [name for name in os.environ if name.startswith(('QKV', 'NBGRADER', 'PYTHON', 'JUPYTER', 'VIRTUAL'))],\n"
        "      [text for text in map(str, os.environ.values()) if 'graders' in text],\n"
        "      [o for o in gc.get_objects() if type(o).__name__ in ('Exercise', 'Check', 'Job', 'Misconception')])",
    )[0]
    assert printed(cell) == "[] [''] ['NBGRADER_EXECUTION'] [] []\n"


def test_processes_cannot_be_listed_or_read(walled: Sandbox) -> None:
    """Not /proc, not the parent's command line, memory or descriptors, not even its own."""
    pid = os.getpid()
    for path in ("/proc", "/proc/self", f"/proc/{pid}", "/proc/1/fd", "/sys", "/dev"):
        refused(walled, f"import os; os.listdir({path!r})")
    for path in (f"/proc/{pid}/environ", "/proc/1/mem", "/proc/self/mem", "/proc/self/environ", "/proc/self/cmdline"):
        refused(walled, f"open({path!r}, 'rb').read(1)")
    refused(walled, "import os; os.readlink(f'/proc/{os.getppid()}/cwd')")


@pytest.mark.parametrize("code", SOCKETS)
def test_no_socket_leads_outside(attempts: dict[str, str], code: str) -> None:
    """No network, no unix socket by path or name, no datagram pair that could send to an address."""
    assert attempts[code] in ("PermissionError", "OSError")


def test_a_unix_socket_of_the_graders_cannot_be_reached(walled: Sandbox, tmp_path: Path) -> None:
    """Neither by path nor by abstract name, not even from a pair that is allowed."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening, socket.socket(socket.AF_UNIX) as named:
        listening.bind(str(tmp_path / "log"))
        named.bind("\0qkv-test")
        for address in (str(tmp_path / "log"), walled.address, "\0qkv-test"):
            refused(walled, f"import socket; socket.socketpair()[0].sendto(b'x', {address!r})")
            refused(walled, f"import socket; socket.socketpair()[0].connect({address!r})")
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.recv(1)


@pytest.mark.parametrize("code", PROCESSES)
def test_no_process_can_be_started(attempts: dict[str, str], code: str) -> None:
    """Fork, exec, spawn and every library that uses them."""
    assert attempts[code] in ("PermissionError", "OSError", "ValueError")


@pytest.mark.parametrize("code", REACHES)
def test_what_reaches_past_the_own_process_is_refused(attempts: dict[str, str], code: str) -> None:
    """Signals to others, by number, group, descriptor or lease; other users; links; memory that outlives a process."""
    assert attempts[code] in ("PermissionError", "OSError", "ValueError")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
@pytest.mark.parametrize("name", SYSCALLS)
def test_a_system_call_by_number_is_refused(attempts: dict[str, str], name: str) -> None:
    """What Python has no name for is held by the same filter."""
    assert attempts[name] in ("PermissionError", "OSError")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="machine code")
def test_system_calls_of_another_architecture_end_the_process(walled: Sandbox) -> None:
    """The numbers of 32-bit calls mean other things; whoever tries them is killed."""
    code = "b8 14 00 00 00 cd 80 c3"  # mov eax, 20; int 0x80; ret
    cell = run(
        walled,
        "import mmap, ctypes\n"
        "memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        f"memory.write(bytes.fromhex('{code}'))\n"
        "address = ctypes.addressof(ctypes.c_char.from_buffer(memory))\n"
        "print('NOT REFUSED', ctypes.CFUNCTYPE(ctypes.c_int)(address)())",
    )[0]
    assert "NOT REFUSED" not in printed(cell)
    assert cell.stopped


# --- what a student may do all the same -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "import threading; t = threading.Thread(target=print, args=('done',)); t.start(); t.join()",
        "import asyncio; await asyncio.sleep(0.01); print('done')",
        "open('notes.txt', 'w').write('done'); print(open('notes.txt').read())",
        "import os; os.makedirs('a/b'); os.rename('a/b', 'c'); os.rmdir('c'); print('done')",
        "import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b'x'); print('done')",
        "import numpy as np; np.save('x.npy', np.ones(3)); np.load('x.npy'); print('done')",
        "import os; os.kill(os.getpid(), 0); os.chmod('.', 0o700); print('done')",
        "import zipfile, wave, sqlite3, decimal; print('done')",
        "import course.checking; print('done')",
        "import concurrent.futures as c; print(list(c.ThreadPoolExecutor(4).map(str, ['done']))[0])",
        "import sqlite3; sqlite3.connect('own.db').execute('create table t (a)'); print('done')",
        "import os, pathlib; print(pathlib.Path.home().exists() and os.access('.', os.W_OK) and 'done')",
        "import sys; print(sys.stdout.isatty() or 'done')",
    ],
)
def test_ordinary_code_runs(walled: Sandbox, code: str) -> None:
    """Threads, files of its own, asyncio, modules not loaded before, and the course's helpers."""
    cell = run(walled, code)[0]
    assert printed(cell) == "done\n", cell
    assert cell.ok


# --- what cannot be used up -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "b = bytearray(1 << 30)",
        "import mmap; mmap.mmap(-1, 1 << 30)",
        "import mmap, os; mmap.mmap(os.open('/dev/zero', os.O_RDWR), 1 << 30)",
        "import numpy as np; np.ones(1 << 28)",
        "x = []\nwhile True:\n    x.append(' ' * 1_000_000)",
    ],
)
def test_memory_ends_in_a_memory_error(walled: Sandbox, code: str) -> None:
    """However it is asked for, it comes out of the same bound, and the process lives on."""
    cells = run(
        walled, f"try:\n{textwrap.indent(code, '    ')}\nexcept (MemoryError, OSError):\n    print('full')", "print(1)"
    )
    assert printed(cells[0]) == "full\n"
    assert printed(cells[1]) == "1\n"


def test_one_large_file_ends_in_an_error(walled: Sandbox) -> None:
    """A file may grow to its limit, sparse ones included."""
    assert refused(walled, "open('a', 'wb').write(b'x' * (2 << 20))") == "OSError"
    assert refused(walled, "open('a', 'wb').truncate(2 << 20)") == "OSError"


def test_many_files_end_the_process(walled: Sandbox) -> None:
    """No kernel limit counts them, so they are counted; empty ones and folders too, and however deep they lie."""
    wide = "i = 0\nwhile True:\n    open(f'{i}', 'w').close(); i += 1"
    deep = "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d')"
    for source in (wide, deep):
        cells = run(walled, source, "print(1)")
        assert "too many files" in cells[0].stopped
        assert printed(cells[1]) == "1\n"
    assert _soon(lambda: not _left_in_scratch(walled))


def test_much_in_many_files_ends_the_process_or_fails(walled: Sandbox) -> None:
    """Files that are each allowed may not hold more together than the whole folder may."""
    source = "i = 0\nwhile True:\n    open(f'{i}', 'wb').write(b'x' * 1_000_000); i += 1"
    cell = run(walled, source)[0]
    assert "too many files" in cell.stopped or "No space left" in printed(cell)


def test_a_closed_folder_hides_nothing(walled: Sandbox) -> None:
    """A folder without permissions is counted, or ends the process, and goes with the rest."""
    run(
        walled,
        "import os; os.mkdir('shut', 0o700); open('shut/f', 'w'); os.umask(0o777); os.makedirs('x/y', exist_ok=True)",
    )
    assert _soon(lambda: not _left_in_scratch(walled))


def _left_in_scratch(sandbox: Sandbox) -> list[str]:
    """What earlier children left, where this test can see it."""
    folder = Path(sandbox.address).parent / "scratch"
    return [path.name for path in folder.glob("tmp*")]


def test_descriptors_end(walled: Sandbox) -> None:
    """Files held open are counted."""
    assert refused(walled, "import os\nwhile True:\n    os.pipe()") == "OSError"


def test_threads_end(walled: Sandbox) -> None:
    """Threads are counted, also where the grader is root, whom the kernel does not count."""
    code = "import _thread, threading\n_thread.stack_size(1 << 16)\nfor i in range(1000):\n"
    code += "    _thread.start_new_thread(threading.Event().wait, ())"
    assert refused(walled, code) == "RuntimeError"


@pytest.mark.slow
def test_processor_time_ends(make_sandbox: MakeSandbox) -> None:
    """A child that never answers for its deadline is out of time even if nobody watched it."""
    limits = Limits(call=30, cell=30, hand_in=-4, memory=512 << 20)
    sandbox = make_sandbox(limits=limits)
    child = sandbox.child()
    with pytest.raises(Stopped, match="used up its time"):
        child.ask({"op": "cell", "source": "while True: pass"}, 20)


# --- one student and the next -----------------------------------------------------------------------------------------


def test_children_share_nothing(walled: Sandbox) -> None:
    """What one did to its modules, files, environment and random numbers is not there for the next."""
    code = (
        "import os, random, numpy as np, builtins\n"
        "print(os.path.exists('trace'), hasattr(np, 'trace_of'), hasattr(builtins, 'trace_of'),\n"
        "      'TRACE' in os.environ)\n"
        "open('trace', 'w').close(); np.trace_of = builtins.trace_of = 1; os.environ['TRACE'] = '1'\n"
        "print(random.random(), np.random.rand())"
    )
    first, second = (printed(run(walled, code)[0]).splitlines() for _ in range(2))
    assert first[0] == second[0] == "False False False False"
    assert first[1] != second[1]


def test_children_cannot_reach_each_other(walled: Sandbox) -> None:
    """Two at a time: no common folder, no signal, no descriptor."""
    with Session(walled, ["import os; me = os.getpid(), os.getcwd()"]) as one:
        one.run()
        pid, folder = one.perform({"op": "read", "name": "me"})["value"]
        for code in (f"os.kill({pid}, 0)", f"os.listdir({folder!r})", f"open({folder + '/x'!r}, 'w')"):
            refused(walled, f"import os; {code}")
        found = printed(
            run(
                walled,
                "import os\nopened = []\nfor n in range(256):\n    try:\n        os.fstat(n)\n"
                "        opened.append(n)\n    except OSError:\n        pass\nprint(len(opened))",
            )[0]
        )
    assert int(found) <= 4  # three that lead nowhere, and the channel


def test_a_startup_file_of_one_student_is_not_run_for_the_next(walled: Sandbox) -> None:
    """IPython's startup folder belongs to nobody's child."""
    run(
        walled,
        "import pathlib; folder = pathlib.Path(get_ipython().profile_dir.startup_dir)\n"
        "(folder / '00.py').write_text('print(1)')",
        "import os; os.makedirs('.ipython/profile_default/startup')\n"
        "open('.ipython/profile_default/startup/00.py', 'w').write('print(1)')",
    )
    assert printed(run(walled, "pass")[0]) == ""


def test_layers_are_reported(walled: Sandbox) -> None:
    """A child names its walls before any student code; root's children are other users."""
    child = walled.child()
    child.kill()
    assert child.layers >= child_module.LAYERS
    assert "user" in child.layers or os.geteuid() != 0


def test_nobody_is_root(walled: Sandbox) -> None:
    """A child is another user, without capabilities, even where the grader is root."""
    status = printed(run(walled, "import os; print(os.getuid(), len(os.getgroups()))")[0])
    assert os.geteuid() != 0 or (not status.startswith("0 ") and status.endswith(" 0\n"))


# --- starting and ending ----------------------------------------------------------------------------------------------


def test_without_a_wall_nothing_runs(make_sandbox: MakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that reports a layer less than asked for is not used."""
    monkeypatch.setattr(child_module, "LAYERS", {*child_module.LAYERS, "moat"})
    with pytest.raises(SandboxError, match="a wall is missing"):
        make_sandbox()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a child another user")
def test_another_user_reaches_its_folder_and_sees_none_beside_it(make_sandbox: MakeSandbox) -> None:
    """Without namespaces the way to a child's folder leads through the sandbox's own, which stays closed to others."""
    top = Path(make_sandbox().address).parent
    folder = top / "scratch" / "child"
    folder.mkdir(0o700)
    os.chown(folder, layers.FIRST_UID, layers.FIRST_UID)
    pid = os.fork()
    if pid == 0:
        try:
            layers.become(layers.FIRST_UID, whole=True)
            os.chdir(folder)
            os._exit(1 + os.access(top, os.R_OK) + os.access(top / "scratch", os.R_OK))
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


@pytest.mark.slow
def test_a_layer_that_cannot_be_had_is_named(make_sandbox: MakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without libseccomp or Landlock there is no strict sandbox, and the message says what to install."""
    command = Sandbox._command

    def broken(self: Sandbox, *arguments: Any) -> list[str]:
        words = command(self, *arguments)
        where = next(i for i, word in enumerate(words) if word.startswith("import sys; "))
        words[where] = words[where].replace("import sys;", "import sys; sys.modules['pyseccomp'] = None;")
        return words

    monkeypatch.setattr(Sandbox, "_command", broken)
    with pytest.raises(SandboxError, match="apt-get install libseccomp2"):
        make_sandbox()


def test_the_probe_finds_an_open_wall(make_sandbox: MakeSandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start is refused where a real child gets out, whatever the child said of its layers; each wall is named."""
    told, wide = Sandbox._config, {"processes": 1000, "file": 1 << 40, "memory": 1 << 42}

    def weakened(self: Sandbox) -> dict[str, Any]:
        config = told(self)
        return {**config, "readable": ["/"], "limits": {**config["limits"], **wide}}

    monkeypatch.setattr(Sandbox, "_config", weakened)
    with pytest.raises(SandboxError, match="student code could get out") as refusal:
        make_sandbox()
    for wall in ("reads our files", "takes all memory", "fills the disk", "starts threads without end"):
        assert wall in str(refusal.value)


def test_the_probe_finds_every_wall_open_where_there_is_none(make_sandbox: MakeSandbox, tmp_path: Path) -> None:
    """Each question gets its answer from a child without walls: none of them is asked in vain."""
    sandbox = make_sandbox(kind="none")
    (tmp_path / "canary").write_text("")
    found = sandbox._probed(tmp_path / "canary")
    limited = {"it takes all memory", "it fills the disk", "it opens files without end"}
    questions = (mounts.INSIDE / "probe.py").read_text().partition("] = [")[2].partition("]")[0]
    asked = {"it " + line.strip(" ,").replace("_", " ") for line in questions.strip().splitlines()}
    if os.geteuid() != 0:
        limited.add("it starts threads without end")
    assert set(found) == asked - limited


def test_without_any_sandbox_the_reason_and_the_way_out_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a Mac nothing runs; the message says what is needed and what an author can do."""
    monkeypatch.setattr(box.sys, "platform", "darwin")
    with pytest.raises(SandboxError, match=r"this is no Linux.*--sandbox none --i-trust-this-code"):
        Sandbox(())


def test_without_bubblewrap_the_inner_walls_stand_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` falls back and says so in its kind; asked for by name, it says what to install."""
    monkeypatch.setattr(mounts, "BWRAP", "no-such-bubblewrap")
    with Sandbox((), LIMITS) as sandbox:
        assert sandbox.kind == "strict-no-namespace"
    with pytest.raises(SandboxError, match="apt-get install bubblewrap"):
        Sandbox((), LIMITS, "bwrap+strict")


def test_no_walls_only_by_name(make_sandbox: MakeSandbox) -> None:
    """`none` is never chosen by itself, and runs with limits only."""
    assert "none" not in box.available_kinds()
    child = make_sandbox(kind="none").child()
    child.kill()
    assert child.layers == {"limits"}


def _alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def _family(pid: int) -> list[int]:
    """`pid` and all that descend from it."""
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        with contextlib.suppress(OSError):  # it has ended meanwhile
            for task in Path(f"/proc/{found[-1]}/task").glob("*/children"):
                waiting += map(int, task.read_text().split())
    return found


@pytest.mark.parametrize("kind", box.available_kinds())
def test_nothing_survives_the_end(kind: str) -> None:
    """After close() no process of the sandbox is left, busy children included, and no file."""
    sandbox = Sandbox((), LIMITS, kind)  # type: ignore[arg-type]
    child = sandbox.child()
    child._send(
        child_module.wire.encode({"op": "cell", "source": "while True: pass", "seconds": 60, "nonce": 1}),
        time.monotonic() + 5,
    )
    assert sandbox._process is not None
    family = _family(sandbox._process.pid)
    assert len(family) >= 2
    sandbox.close()
    assert _soon(lambda: not _alive(family))
    assert not Path(sandbox.address).parent.exists()
    child.kill()


@pytest.mark.slow
@pytest.mark.parametrize("kind", box.available_kinds())
def test_nothing_survives_a_killed_grader(kind: str) -> None:
    """A grader that is killed takes its sandbox along, although nobody told it."""
    read, write = os.pipe()
    grader = os.fork()
    if grader == 0:
        sandbox = Sandbox((), LIMITS, kind)  # type: ignore[arg-type]
        child = sandbox.child()
        assert sandbox._process is not None
        os.write(write, json.dumps([_family(sandbox._process.pid), str(sandbox._folder)]).encode())
        time.sleep(60)
        child.kill()
        os._exit(0)
    os.close(write)
    family, folder = json.loads(os.read(read, 4096))
    os.close(read)
    os.kill(grader, signal.SIGKILL)
    os.waitpid(grader, 0)
    assert _soon(lambda: not _alive(family))
    assert not (Path(folder) / "scratch").exists()
    for path in sorted(Path(folder).rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    Path(folder).rmdir()


def _soon(true: Callable[[], bool], seconds: float = 5) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


def test_a_killed_child_is_gone(walled: Sandbox) -> None:
    """kill() ends the process, whatever it does."""
    with Session(walled, ["import os; folder = os.getcwd()"]) as session:
        session.run()
    assert _soon(lambda: not _left_in_scratch(walled))


def test_a_zygote_that_ended_is_started_again(make_sandbox: MakeSandbox) -> None:
    """A class goes on; what was asked of the lost child is asked again, and nobody is blamed."""
    sandbox = make_sandbox()
    with Session(sandbox, ["x = 1", "def f(): return x + 1"]) as session:
        assert all(cell.ok for cell in session.run())
        assert sandbox._process is not None
        os.kill(sandbox._process.pid, signal.SIGKILL)
        sandbox._process.wait()
        assert session._child is not None
        select.select([session._child._channel], [], [], 10)  # it has ended too, before it is asked
        assert session.perform(call("f"))["value"] == 2
        assert all(cell.ok for cell in session.run())


def test_a_copy_in_a_worker_asks_the_same_zygote(walled: Sandbox) -> None:
    """A pickled sandbox is an address and the limits."""
    copy = pickle.loads(pickle.dumps(walled))
    assert copy.limits == walled.limits
    assert printed(run(copy, "print(1)")[0]) == "1\n"


def test_a_client_that_leaves_does_not_harm_the_zygote(walled: Sandbox) -> None:
    """A worker may be killed between its question and the answer."""
    for words in (b"child", b"nonsense", b""):
        ours, theirs = socket.socketpair()
        with walled._connect() as connection, ours, theirs:
            if words:
                socket.send_fds(connection, [words], [theirs.fileno()] if words == b"child" else [])
    assert printed(run(walled, "print(1)")[0]) == "1\n"


@pytest.fixture
def course_inside_usr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A course whose folder lies within what is mounted, as /usr/src/app is in many containers."""
    top = tmp_path / "usr"
    for folder in ("bin", "src/app/graders", "src/app/course", "src/other"):
        (top / folder).mkdir(parents=True)
    monkeypatch.setattr(mounts, "SYSTEM", (str(top),))
    monkeypatch.setattr(mounts, "course_folder", lambda: top / "src/app/course")
    monkeypatch.chdir(top / "src/app")
    return top


def test_an_installed_graders_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `graders` lies in site-packages, all beside it may be read, and an empty folder is mounted over it."""
    site = tmp_path / "lib" / "site-packages"
    for package in ("graders", "numpy", "course"):
        (site / package).mkdir(parents=True)
    monkeypatch.setattr(mounts, "SYSTEM", (str(tmp_path),))
    monkeypatch.setattr(mounts.sysconfig, "get_path", lambda name: str(site))
    readable = {Path(path) for path in mounts.readable()}
    assert {site / "numpy", site / "course"} <= readable
    assert not any((site / "graders").is_relative_to(path) for path in readable)
    words = mounts.bwrap([], 1, own_namespace=True)
    assert words[words.index(str(site / "graders")) - 1] == "--tmpfs"


def test_a_course_within_a_mounted_folder_stays_hidden(course_inside_usr: Path) -> None:
    """The gradebook's folder is left out, the course in it is not."""
    top = course_inside_usr
    readable = {Path(path) for path in mounts.readable()}
    assert {top / "bin", top / "src/other", top / "src/app/course"} <= readable
    assert not any((top / "src/app").is_relative_to(path) for path in readable)
    words = mounts.bwrap([], 1, own_namespace=True)
    app, course = words.index(str(top / "src/app")), words.index(str(top / "src/app/course"))
    assert words[app - 1] == "--tmpfs"
    assert app < len(words) - 1 - words[::-1].index(str(top / "src/app/course"))
    assert course > app
