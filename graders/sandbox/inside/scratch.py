"""The one folder that a student's process may write: how much lies in it, and taking it away.

Whoever filled it may have been hostile: a hundred thousand files, folders a thousand deep, or closed to all.
There are no links in it, since no child may make one.
"""

from __future__ import annotations

import os
import secrets

MAX_FILES = 5_000
MAX_DEPTH = 50


def too_much(folder: str, most_bytes: int, most_files: int = MAX_FILES) -> bool:
    """Whether `folder` holds more than that, nests deeper than `MAX_DEPTH`, or hides what it holds."""
    count = size = 0
    waiting = [(folder, 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    count, size = count + 1, size + _size(entry)
                    if count > most_files or size > most_bytes or depth > MAX_DEPTH:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError:
            return True  # a folder that is closed to us
    return False


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0


def clear(folder: str) -> None:
    """Remove `folder` with all that is in it; what cannot be removed stays, and no other child may read it."""
    try:
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        _empty(top)
        os.rmdir(folder)
    except OSError:
        pass
    finally:
        os.close(top)


def _empty(top: int) -> None:
    """Lift what lies in folders up into `top` until there is none: no path grows long, and nothing recurses."""
    while folders := [name for name in os.listdir(top) if not _unlinked(name, top)]:
        for name in folders:
            os.chmod(name, 0o700, dir_fd=top)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
            try:
                _lift(inner, top)
            finally:
                os.close(inner)
            os.rmdir(name, dir_fd=top)


def _lift(inner: int, top: int) -> None:
    for name in os.listdir(inner):
        if not _unlinked(name, inner):
            os.chmod(name, 0o700, dir_fd=inner)  # a folder that nobody may write does not move
            os.rename(name, f"lifted-{secrets.token_hex(8)}", src_dir_fd=inner, dst_dir_fd=top)


def _unlinked(name: str, folder: int) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # a folder, on Linux and elsewhere
        return False
    return True
