"""Reaching other processes, starting some, and living on after the end. Signals are 0: they are counted, not felt."""

from __future__ import annotations

from attacks.casebook import FAIL, JUNK, answer, body


@answer("harm")
def kills_its_parent() -> str:
    """Signals the process that started it, and every other that it can name."""
    return f"""
import os
for pid in {{os.getppid(), 1, -1, 0, os.getpgid(0), os.getsid(0)}} - {{os.getpid()}}:
    try:
        os.kill(pid, 0)
        print("LEAK: could signal other processes;", pid)
    except OSError:
        pass
{FAIL}"""


@answer("harm")
def multiplies() -> str:
    """Forks and forks again; each would wait a while and write a file."""
    return f"""
import os, time
for _ in range(3):
    try:
        if os.fork() == 0:
            open("forked", "w").close()
            time.sleep(30)
            os._exit(0)
        print("LEAK: started a process;")
    except OSError as error:
        print(error)
{FAIL}"""


@answer("harm")
def becomes_a_shell() -> str:
    """Becomes another program, which outlives it if it can."""
    return """
import os
os.execv("/bin/sh", ["sh", "-c", "sleep 30"])
"""


@answer("harm")
def starts_programs() -> str:
    """Starts other programs, by system, spawn, popen and in a terminal of their own."""
    return f"""
import os, subprocess
for act in (lambda: os.system("sleep 30 &") and os.listdir("/nonexistent"),
            lambda: os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 30"], {{}}), lambda: os.popen("sleep 30"),
            lambda: subprocess.Popen(["sleep", "30"], start_new_session=True)):
    try:
        act()
        print("LEAK: started a program;")
    except OSError as error:
        print(error)
{FAIL}"""


@answer("harm")
def starts_a_pool() -> str:
    """Starts worker processes inside its function."""
    return body(
        """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(abs, [-1, -2])
        print("LEAK: started a process;")
        """
    )


@answer("harm")
def acts_at_exit() -> str:
    """Registers what runs when the process ends: a file, a print, another exit code."""
    return f"""
import atexit, os, weakref, threading
atexit.register(lambda: open("COURSE_FOLDER/at_exit", "w"))
atexit.register(os._exit, 0)
class Last:
    def __del__(self): open("COURSE_FOLDER/at_exit", "w")
last = Last()
weakref.finalize(last, print, "gone")
threading._register_atexit(print, "late")
{JUNK}"""


@answer("harm")
def goes_on_in_a_thread() -> str:
    """Goes on printing, writing and computing in threads while it is graded and after."""
    return f"""
import threading, time, itertools
def busy(n):
    for i in itertools.count():
        print("tick", i)
        open(f"tick{{n}}", "a").write("x")
        time.sleep(0.001)
for n in range(4):
    threading.Thread(target=busy, args=(n,)).start()
{JUNK}"""


@answer("harm")
def reads_other_processes() -> str:
    """Reads memory, environment and descriptors of its parent, by /proc, ptrace and process_vm_readv."""
    return f"""
import ctypes, os
pid, libc = os.getppid(), ctypes.CDLL(None, use_errno=True)
for name in ("environ", "cmdline", "mem", "maps", "fd", "root/etc/passwd", "task"):
    for process in (pid, 1, "self"):
        try:
            path = f"/proc/{{process}}/{{name}}"
            found = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)
            print("LEAK: read of other processes;", path, found)
        except OSError:
            pass
if libc.ptrace(16, pid, 0, 0) == 0 or libc.process_vm_readv(pid, 0, 0, 0, 0, 0) == 0:
    print("LEAK: attached to the process that started it;")
{FAIL}"""


@answer("harm")
def signals_by_descriptor() -> str:
    """Sends signals by the owner of a descriptor, by a pidfd and by a lease."""
    return f"""
import fcntl, os, signal
reading, writing = os.pipe()
for act in (lambda: fcntl.fcntl(reading, fcntl.F_SETOWN, os.getppid()), lambda: fcntl.fcntl(reading, 10, 9),
            lambda: signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 0), lambda: fcntl.fcntl(reading, 1024, 1)):
    try:
        act()
        print("LEAK: could signal other processes;")
    except (OSError, ValueError):
        pass
fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
os.write(writing, b"x")
{FAIL}"""


@answer("harm")
def connects_to_sockets() -> str:
    """Connects to unix sockets by path and by abstract name, and to the network."""
    return f"""
import glob, socket
for family, address in ((socket.AF_UNIX, "\\0COURSE_FOLDER"), (socket.AF_UNIX, "COURSE_FOLDER/socket"),
                        (socket.AF_UNIX, "/run/dbus/system_bus_socket"),
                        *((socket.AF_UNIX, path) for path in glob.glob("/tmp/qkv-*/zygote")),
                        (socket.AF_UNIX, "/dev/log"), (socket.AF_INET, ("127.0.0.1", 8888)),
                        (socket.AF_INET, ("192.0.2.1", 53))):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(family, kind).connect(address)
            print("LEAK: connected to another process;")
        except OSError:
            pass
{FAIL}"""


@answer("harm")
def writes_to_every_descriptor() -> str:
    """Writes to, locks, and keeps open every descriptor that it has, and opens as many as it can."""
    return f"""
import os, fcntl
held = []
try:
    while True:
        held += os.pipe()
except OSError:
    pass
for descriptor in range(2000):
    try:
        os.set_blocking(descriptor, False)
        os.write(descriptor, b"x" * 100)
    except OSError:
        pass
{JUNK}"""


@answer("harm")
def reads_what_was_left_open() -> str:
    """Looks through every descriptor that it was started with for a file, a folder or a door of the grader's."""
    return f"""
import os, socket, stat
for descriptor in range(256):
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            print("LEAK: found an open folder;", os.listdir(descriptor))
        elif stat.S_ISREG(mode):
            print("LEAK: read an open file;", os.pread(descriptor, 1, 0))
        elif stat.S_ISSOCK(mode):
            found = socket.socket(fileno=os.dup(descriptor))
            if found.family == socket.AF_UNIX and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                print("LEAK: found a door that others knock at;")
    except OSError:
        pass
{FAIL}"""


@answer("harm")
def becomes_somebody_else() -> str:
    """Becomes root, joins groups, changes root, mounts, and asks for capabilities."""
    return f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for act in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([0]), lambda: os.chroot("."),
            lambda: os.setgid(0), lambda: os.nice(-20)):
    try:
        act()
        print("LEAK: became somebody else;", act)
    except OSError:
        pass
if libc.unshare(0x10000000) == 0 or libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 or libc.setns(0, 0) == 0:
    print("LEAK: made a namespace;")
{FAIL}"""


@answer("harm")
def shares_memory() -> str:
    """Leaves memory behind that outlives a process: shared memory, message queues, semaphores, keys."""
    return f"""
import ctypes, os
from multiprocessing import shared_memory
libc = ctypes.CDLL(None, use_errno=True)
for act in (lambda: shared_memory.SharedMemory("qkv-left", create=True, size=10), lambda: os.memfd_create("left"),
            lambda: open("/dev/shm/qkv-left", "w")):
    try:
        act()
        print("LEAK: made shared memory;", act)
    except OSError:
        pass
if any(found >= 0 for found in (libc.shmget(99, 4096, 0o1666), libc.semget(99, 1, 0o1666), libc.msgget(99, 0o1666))):
    print("LEAK: made shared memory;")
{FAIL}"""
