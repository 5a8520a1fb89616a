"""The one folder that a student's process may write: how much lies in it, and taking it away.

Whoever filled it may have been hostile: a hundred thousand files, folders a thousand deep, folders that nobody may read.
There are no links in it, since no child may make one.
"""

from __future__ import annotations

import os
import secrets

MAX_FILES = 5_000


def too_much(folder: str, most_bytes: int) -> bool:
    """Whether `folder` holds more than `MAX_FILES` entries or `most_bytes`, or hides what it holds."""
    count = size = 0
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    count, size = count + 1, size + _size(entry)
                    if count > MAX_FILES or size > most_bytes:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError:
            return True  # a path too long to name, or a folder closed to us
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
