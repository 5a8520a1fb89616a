"""The walls that a child puts round itself before any student code runs: an own user, limits, Landlock, seccomp.

Each is prepared once in the zygote and applied in the child; a layer that cannot be applied raises, and the child ends
without running anything.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import secrets
import struct
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 22, 24, 38
SIGKILL = 9
SECCOMP_MODE_FILTER = 2
FIRST_UID = 0x70000000
"""Above every range that distributions, containers and systemd give out, so that nobody else owns anything there."""
_libc = ctypes.CDLL(None, use_errno=True)

# Calls that numeric Python needs, by what they serve. Everything else is refused: a call that is not known here, or
# that a later kernel adds, fails with ENOSYS, which the C library takes as "not there".
ALLOWED = """
read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 lseek close close_range dup dup2 dup3
flock fsync fdatasync ftruncate fallocate fadvise64 copy_file_range sendfile splice tee
creat access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs readlink
readlinkat getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 umask
mmap munmap mprotect mremap madvise brk msync mincore mlock munlock membarrier get_mempolicy
pipe pipe2 poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd
eventfd2 timerfd_create timerfd_settime timerfd_gettime
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack signalfd signalfd4
pause alarm setitimer getitimer timer_create timer_settime timer_gettime timer_delete timer_getoverrun
nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times
futex futex_waitv set_robust_list get_robust_list set_tid_address rseq sched_yield sched_getaffinity sched_getparam
sched_getscheduler sched_get_priority_max sched_get_priority_min getcpu restart_syscall
getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid uname sysinfo
getrandom getrlimit getrusage arch_prctl capget getpriority exit exit_group
sendto recvfrom sendmsg recvmsg shutdown getsockname getpeername getsockopt wait4 waitid
""".split()  # noqa: SIM905 - words read better than a hundred quoted strings

# Pretended, since library code calls them on its own files and would otherwise fail for no gain.
PRETENDED = """
chmod fchmod fchmodat fchmodat2 utime utimes utimensat futimesat chown fchown lchown fchownat
""".split()  # noqa: SIM905 - as above

# Refused with EPERM rather than ENOSYS, so that Python says "Operation not permitted" to a curious student.
REFUSED = """
fork vfork execve execveat socket connect bind listen accept accept4 ptrace process_vm_readv process_vm_writev
mount umount2 unshare setns chroot pivot_root pidfd_open pidfd_getfd pidfd_send_signal tkill rt_sigqueueinfo
rt_tgsigqueueinfo link linkat symlink symlinkat mknod mknodat memfd_create shmget shmat shmctl shmdt semget semop semctl
msgget msgsnd mq_open setuid setgid setreuid setregid setresuid setresgid setgroups setsid setpgid capset setrlimit
setsockopt inotify_init inotify_init1 fanotify_init truncate
""".split()  # noqa: SIM905 - as above

# Of calls that serve many ends, only those that numeric Python needs, by the position of the argument that says which.
# fcntl's F_SETOWN and F_SETSIG send signals to others, ioctl's TIOCSTI types into a terminal.
CHOSEN = {
    "fcntl": (1, [0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032]),  # descriptors, flags, locks, the size of a pipe
    "ioctl": (1, [0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451]),  # a terminal? its size? bytes to read; flags
    "prctl": (0, [3, 15, 16, 23, 0x53564D41]),  # names of threads and of mappings, and reads
    "prlimit64": (0, [0]),
}

CLONE_THREAD = 0x00010000
CLONE_NEW = 0x7E020000  # any new namespace
AF_UNIX, SOCK_STREAM, SOCK_TYPE_MASK = 1, 1, 0xF
ANY_PID = 0x3ABCDEF1
"""Stands for the child's own pid in the filter that the zygote prepares; past the largest pid there can be."""


class LayerMissing(RuntimeError):
    """A wall cannot be put up on this system; the message says which and why."""


def prctl(option: int, value: Any = 0, more: Any = 0) -> None:
    """prctl(2), raising OSError."""
    if _libc.prctl(option, value, more, 0, 0) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def limits(bounds: Mapping[str, int]) -> None:
    """Resource limits: `memory` above what is mapped now, `cpu` seconds, `file` bytes, `files`, `processes`."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    hard = {
        resource.RLIMIT_AS: mapped + bounds["memory"],
        resource.RLIMIT_FSIZE: bounds["file"],
        resource.RLIMIT_NOFILE: bounds["files"],
        resource.RLIMIT_NPROC: bounds["processes"],
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 1 << 20,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_SIGPENDING: 256,
    }
    for kind, bound in hard.items():
        resource.setrlimit(kind, (bound, bound))
    # The soft limit first, by a signal that has a name; whoever ignores it is killed two seconds later.
    resource.setrlimit(resource.RLIMIT_CPU, (bounds["cpu"], bounds["cpu"] + 2))


class OwnUser:
    """A user id that nobody else has, where the grader is root: the kernel holds root to no number of threads.

    Where only root may read this Python, the child stays root in what it may open, without root's capabilities, and
    another in what it may use up (`whole` is then false).
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self.possible = os.geteuid() == 0 and self._try([])
        self.whole = self.possible and self._try(paths)

    def _try(self, paths: Iterable[str]) -> bool:
        """Whether a process that becomes another user can, and may read `paths`."""
        pid = os.fork()
        if pid == 0:
            try:
                become(FIRST_UID, whole=True)
                os._exit(0 if all(os.access(path, os.R_OK) for path in paths) else 1)
            finally:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    def choose(self, folder: str) -> int | None:
        """A user id for the next child, who is given `folder`; None where it stays who we are."""
        if not self.possible:
            return None
        uid = FIRST_UID + secrets.randbelow(1 << 27)
        if self.whole:
            os.chown(folder, uid, uid)
        return uid


def threads_of(uid: int) -> int:
    """How many threads `uid` has now: without a namespace they count towards what its children may have."""
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat(f"/proc/{pid}").st_uid == uid:
                count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            continue  # it has ended meanwhile
    return count


def become(uid: int, whole: bool) -> None:
    """Give up root for `uid`; unless `whole`, only as whoever is counted."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    seen = uid if whole else 0
    os.setresuid(uid, seen, seen)


def drop_capabilities() -> None:
    """Nothing that a uid 0 could do with capabilities remains, now or after an exec."""
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    empty = (ctypes.c_uint32 * 6)()
    if _libc.capset(header, empty) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"capset: {os.strerror(code)}")


class Landlock:
    """Which files a child may read, and the one folder that it may write."""

    def __init__(self, readable: Iterable[str]) -> None:
        import landlockpy

        if not landlockpy.supported():
            raise LayerMissing("this kernel has no Landlock (Linux 5.13 and newer have it, if it is switched on)")
        self._landlock = landlockpy
        self._readable = [path for path in readable if os.path.exists(path)]

    def apply(self, folder: str) -> None:
        """Restrict this process and all that it starts; a ruleset per child, since each may write another folder."""
        rights, scope = self._landlock.AccessFS, self._landlock.Scope
        read = rights.READ_FILE | rights.READ_DIR | rights.EXECUTE
        special = rights.MAKE_CHAR | rights.MAKE_BLOCK | rights.MAKE_SOCK | rights.MAKE_SYM | rights.IOCTL_DEV
        with self._landlock.Ruleset(scoped=scope.SIGNAL | scope.ABSTRACT_UNIX_SOCKET) as rules:
            for path in self._readable:
                rules.allow_path(path, read if os.path.isdir(path) else rights.READ_FILE)
            for path in ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"):
                if os.path.exists(path):
                    rules.allow_path(path, rights.READ_FILE | rights.WRITE_FILE)
            rules.allow_path(folder, rules.handled_fs & ~(rights.EXECUTE | special))
            rules.restrict()


class Seccomp:
    """Which system calls a child may make: an allow-list, no new processes, no sockets, signals to itself only.

    The filter is compiled once: libseccomp takes longer for it than all the rest of a child's start.
    """

    def __init__(self) -> None:
        try:
            import pyseccomp
        except (ImportError, OSError, RuntimeError) as error:
            raise LayerMissing(
                f"libseccomp cannot be loaded ({error}); on Debian: apt-get install libseccomp2"
            ) from None
        self._seccomp = pyseccomp
        self._rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.ENOSYS))
        self._add_rules()
        with tempfile.TemporaryFile() as file:
            self._rules.export_bpf(file)
            file.seek(0)
            self._program = [struct.unpack("=HBBI", instruction) for instruction in iter(lambda: file.read(8), b"")]

    def apply(self) -> None:
        """Load the filter into this process."""
        me = os.getpid()
        code = b"".join(struct.pack("=HBBI", *head, me if k == ANY_PID else k) for *head, k in self._program)
        buffer = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("@HP", len(self._program), ctypes.addressof(buffer))
        prctl(PR_SET_NO_NEW_PRIVS, 1)
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program)

    def _add_rules(self) -> None:
        allow, refuse = self._seccomp.ALLOW, self._seccomp.ERRNO(errno.EPERM)
        for names, action in ((ALLOWED, allow), (PRETENDED, self._seccomp.ERRNO(0)), (REFUSED, refuse)):
            for name in names:
                self._add(action, name)
        for name, (position, values) in CHOSEN.items():
            for value in values:
                self._add(allow, name, self._argument(position, "EQ", value))
        for name in ("kill", "tgkill"):
            self._add(allow, name, self._argument(0, "EQ", ANY_PID))
            self._add(refuse, name, self._argument(0, "NE", ANY_PID))
        self._add(allow, "clone", self._argument(0, "MASKED_EQ", CLONE_THREAD | CLONE_NEW, CLONE_THREAD))
        self._add(refuse, "clone", self._argument(0, "MASKED_EQ", CLONE_THREAD, 0))
        for name, position in (("open", 1), ("openat", 2)):
            self._add_open(name, position)
        # A pair of streams, as asyncio's loop has one; a datagram socket could send to anyone's address.
        stream = self._argument(1, "MASKED_EQ", SOCK_TYPE_MASK, SOCK_STREAM)
        self._add(allow, "socketpair", self._argument(0, "EQ", AF_UNIX), stream)

    def _add_open(self, name: str, position: int) -> None:
        """Landlock keeps a file that may be read from being emptied only since Linux 6.2: so does this."""
        self._add(self._seccomp.ALLOW, name, self._argument(position, "MASKED_EQ", os.O_TRUNC, 0))
        for mode in (os.O_WRONLY, os.O_RDWR):
            writing = os.O_TRUNC | mode
            self._add(
                self._seccomp.ALLOW, name, self._argument(position, "MASKED_EQ", os.O_TRUNC | os.O_ACCMODE, writing)
            )
        reading = self._argument(position, "MASKED_EQ", os.O_TRUNC | os.O_ACCMODE, os.O_TRUNC)
        self._add(self._seccomp.ERRNO(errno.EPERM), name, reading)

    def _argument(self, position: int, comparison: str, *data: int) -> object:
        return self._seccomp.Arg(position, getattr(self._seccomp, comparison), *data)

    def _add(self, action: object, name: str, *arguments: object) -> None:
        try:
            self._rules.add_rule(action, name, *arguments)
        except (ValueError, OSError, KeyError) as error:
            # Not a call of this machine's architecture (aarch64 has no `open`, say): nothing to allow.
            if getattr(error, "errno", None) not in (None, errno.EINVAL, errno.EDOM, errno.EFAULT):
                raise
