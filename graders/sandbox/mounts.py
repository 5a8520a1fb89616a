"""What a student's process may see of this machine: Python, the system's libraries, `course/`; never what grades it."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

import course

INSIDE = Path(__file__).parent / "inside"
BWRAP = "bwrap"
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/etc/ld.so.cache", "/etc/localtime")
OF_A_PREFIX = ("bin", "include", "lib", "lib64", "pyvenv.cfg", "share")
"""What Python needs of the folder that it is installed in: an environment may be made in the course's own folder."""

ROOTS_CAPABILITIES = ("SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL")
"""What the zygote needs, where it is root, to make a child another user's and to clear up after it."""


def environment() -> dict[str, str]:
    """The environment of the sandbox: nothing of ours but how to compute."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    kept = {name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ}
    who = {"USER": "student", "LOGNAME": "student", "NBGRADER_EXECUTION": "autograde"}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **who, **one_thread, **kept}


def readable() -> list[str]:
    """What Landlock lets a student's process read: every top, but for what is hidden in it."""
    hidden = _hidden()
    return [str(path) for top in _tops() for path in without(top, hidden)]


def _tops() -> list[Path]:
    prefixes = {sys.base_prefix, sys.prefix, str(Path(sys.executable).resolve().parent.parent)}
    parts = [os.path.join(prefix, part) for prefix in sorted(prefixes) for part in OF_A_PREFIX]
    return [Path(path) for path in dict.fromkeys([*SYSTEM, *parts, str(course_folder())]) if os.path.exists(path)]


def course_folder() -> Path:
    """Where `course/` lies, which students have too."""
    return Path(course.__file__).resolve().parent


def _hidden() -> list[Path]:
    """`graders`, wherever it lies, and the folder that we grade in, with its gradebook. A top within stays in sight."""
    installed = [Path(sysconfig.get_path(name)) / "graders" for name in ("purelib", "platlib")]
    ours = [INSIDE.parents[1].resolve(), Path.cwd().resolve(), *installed]
    return [path for path in dict.fromkeys(ours) if path.is_dir()]


def without(top: Path, hidden: Iterable[Path]) -> list[Path]:
    """`top`, or where something hidden lies in it, everything beside the way there."""
    inner = [path for path in hidden if top in path.parents]
    if not inner:
        return [top]
    return [path for entry in sorted(top.iterdir()) if entry not in inner for path in without(entry, inner)]


def bwrap(command: Sequence[str], scratch_bytes: int, own_namespace: bool) -> list[str]:
    """`command` under bubblewrap: own namespaces, no network, read-only Python and course, an empty small /tmp.

    Without an own user namespace, which takes root, each child can become a user of its own.
    """
    return [*_namespaces(own_namespace), *_devices(scratch_bytes), *_binds(), "--chdir", "/tmp", "--", *command]


def _namespaces(own: bool) -> list[str]:
    options = [BWRAP, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
    options += ["--new-session", "--hostname", "student", "--cap-drop", "ALL"]
    if own:
        return [*options, "--unshare-user", "--uid", "1000", "--gid", "1000"]
    return [*options, *(word for name in ROOTS_CAPABILITIES for word in ("--cap-add", f"CAP_{name}"))]


def _devices(scratch_bytes: int) -> list[str]:
    return ["--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--size", str(scratch_bytes), "--tmpfs", "/tmp"]


def _binds() -> list[str]:
    tops, options, made = _tops(), [], {Path("/"), Path("/tmp")}
    covers = [path for path in _hidden() if any(top in path.parents for top in tops)]
    for path in sorted({*tops, *covers}, key=lambda path: len(path.parts)):  # what lies within is mounted later
        if path in covers:
            options += ["--tmpfs", str(path)]
        elif path.is_symlink() and path.parent == Path("/"):
            options += ["--symlink", os.readlink(path), str(path)]
        else:
            options += [*_parents(path, made), "--ro-bind", str(path), str(path)]
    return [*options, *_parents(Path("/qkv/inside"), made), "--ro-bind", str(INSIDE), "/qkv/inside"]


def _parents(path: Path, made: set[Path]) -> list[str]:
    """The folders above `path`, open to all: bubblewrap 0.8 closes those that it makes by itself."""
    options = []
    for folder in reversed(path.parents):
        if folder not in made:
            made.add(folder)
            options += ["--dir", str(folder)]
    return options
