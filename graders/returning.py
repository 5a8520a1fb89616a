"""What lies beside a graded notebook and a page: what nbgrader needs to give it back, and no other file of a student's.

nbgrader copies whatever was handed in from folder to folder, follows links while it does, and gives out every page in
the last one.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
MOST_BYTES = 200
"""Of either file: a time, and 64 characters from which nbgrader makes the name of the page in the exchange."""


def lay_beside(page: Path, secret: str, time: str) -> None:
    """What `nbgrader release_feedback` reads beside `page`: it ends the class's run where one of the two is missing."""
    page.parent.mkdir(parents=True, exist_ok=True)
    _write(page.with_name(TIMESTAMP), time)
    # Without one nobody can ask for the page there, and no other page has the same name.
    _write(page.with_name(SECRET), secret or secrets.token_hex(32))


def clear(folder: Path, keep: Collection[str] = ()) -> None:
    """Take away all that nbgrader copied into `folder`, but the small files named in `keep`; no link is followed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name not in keep or not _is_small(path):
            path.unlink()


def small_text(path: Path) -> str:
    """The text of one of those files; empty where it is anything else."""
    try:
        if not _is_small(path):
            return ""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(descriptor, encoding="utf-8") as file:
            return file.read(MOST_BYTES)
    except (OSError, ValueError):
        return ""


def _is_small(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISREG(status.st_mode) and status.st_size <= MOST_BYTES


def _write(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(text, encoding="utf-8")
