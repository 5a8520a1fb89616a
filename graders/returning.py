"""What lies beside a graded notebook and a page: what nbgrader needs to give it back, and no other file of a student's.

nbgrader copies whatever was handed in from folder to folder, follows links while it does, and gives out every page in
the last one.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Collection
from pathlib import Path

from graders.intake.reading import NotGradable, bytes_of

TIMESTAMP, SECRET = "timestamp.txt", "submission_secret.txt"
MOST_BYTES = 200
"""Of either file: a time, and 64 characters from which nbgrader makes the name of the page in the exchange."""


def found(folder: Path) -> tuple[str, str]:
    """The secret and the time in `folder`, each empty where there is no small file of text."""
    return _small_text(folder / SECRET), _small_text(folder / TIMESTAMP)


def keep(folder: Path, secret: str, time: str) -> None:
    """Write the secret and the time into `folder`, each if there is one."""
    for name, text in ((SECRET, secret), (TIMESTAMP, time)):
        if text:
            (folder / name).write_text(text, encoding="utf-8")


def lay_beside(page: Path, secret: str, time: str) -> None:
    """What `nbgrader release_feedback` reads beside `page`: it ends the class's run where one of the two is missing."""
    page.parent.mkdir(parents=True, exist_ok=True)
    for name in (SECRET, TIMESTAMP):
        page.with_name(name).unlink(missing_ok=True)
    page.with_name(TIMESTAMP).touch()
    # Without a secret nobody can ask for the page there, and no other page has the same name.
    keep(page.parent, secret or secrets.token_hex(32), time)


def clear(folder: Path, but: Collection[str] = ()) -> None:
    """Take away all that lies in `folder`, but the files named; no link is followed."""
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name not in but:
            path.unlink()


def _small_text(path: Path) -> str:
    try:
        return bytes_of(path, MOST_BYTES).decode("utf-8")
    except (NotGradable, ValueError):
        return ""
