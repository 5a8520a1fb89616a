"""What judging may take: a check computes with arrays of the size that came back, which an author may not think of."""

from __future__ import annotations

import contextlib
import resource
import threading
from collections.abc import Iterator

MOST = 2 << 30
"""Bytes beyond what a process has when it begins to judge."""

_changing = threading.Lock()
_judging = 0
_before = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


@contextlib.contextmanager
def bounded_memory() -> Iterator[None]:
    """Within, too much is a MemoryError of one check, and not the end of whatever the kernel chooses.

    The bound is the whole process's: the first thread to judge sets it, and the last one takes it away.
    """
    global _judging, _before
    with _changing:
        if _judging == 0:
            _before = resource.getrlimit(resource.RLIMIT_DATA)
            bounds = [bound for bound in (_data() + MOST, *_before) if bound != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), _before[1]))
        _judging += 1
    try:
        yield
    finally:
        with _changing:
            _judging -= 1
            if _judging == 0:
                resource.setrlimit(resource.RLIMIT_DATA, _before)


def _data() -> int:
    """Bytes that this process has for itself, as the kernel counts them for the bound."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[5]) * resource.getpagesize()
