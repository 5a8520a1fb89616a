"""Which file of a folder handed in is the notebook, and when it came. Links are named and never followed."""

from __future__ import annotations

import collections
import difflib
import itertools
import os
import re
import stat
import warnings
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from graders.intake.reading import MAX_BYTES, Notebook, NotGradable, listed, read_notebook, shown
from graders.verdict import Finding

MAX_ENTRIES, MAX_DEPTH, MAX_CANDIDATES = 5000, 8, 40
MOST_READ = 2 * MAX_BYTES
"""Bytes of notebooks that are read to find out which is the hand-in: each may take seconds, and the class waits."""

IGNORED_FOLDERS = ("__MACOSX", "__pycache__")
FIRST_YEAR = 2015


def find_notebook(folder: Path, slug: str, grade_ids: Collection[str] = ()) -> tuple[Path, list[Finding]]:
    """The notebook of assignment `slug` in `folder`, and what else a person should know of the folder.

    `<slug>.ipynb` if it is there; else the only notebook that carries `grade_ids` (without them: the assignment's name
    in its metadata, or any grade id), or else the only one with a name close to the slug.

    Raises NotGradable where there is none, where there are two, and where it is a link, oversized or no file.
    """
    folder = Path(folder)
    if folder.is_symlink() or not folder.is_dir():
        what = "the folder is a symbolic link" if folder.is_symlink() else "the folder does not exist"
        raise NotGradable("no-notebook", f"no notebook submitted: {what}")
    exact = folder / f"{slug}.ipynb"
    _refuse_unsafe(exact)
    files, findings = _survey(folder)
    notebooks = [file for file in files if _is_notebook(folder, file)]
    if exact in notebooks:
        return exact, findings + _others(exact, notebooks, slug, grade_ids)
    chosen = _choose(folder, slug, grade_ids, notebooks, files)
    renamed = f"renamed: {shown(chosen.relative_to(folder))} was graded; its name should be {slug}.ipynb"
    return chosen, [Finding("warning", "renamed", renamed), *findings]


def _refuse_unsafe(exact: Path) -> None:
    try:
        status = exact.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise NotGradable("unreadable", f"{exact.name} cannot be read: {error.strerror}") from None
    kind = _oddity(exact, status)
    if kind == "link":
        raise NotGradable("link", f"{exact.name} is a symbolic link; links are not followed")
    if kind == "not-a-file":
        raise NotGradable("not-a-file", f"{exact.name} is no ordinary file")
    if kind == "oversized":
        raise NotGradable("oversized", f"{exact.name} has {status.st_size} bytes; at most {MAX_BYTES} are read")


# --- what lies in the folder ------------------------------------------------------------------------------------------


def _survey(folder: Path) -> tuple[list[Path], list[Finding]]:
    """The ordinary files of `folder` in order of name, and findings about everything that is not one."""
    files: list[Path] = []
    odd: dict[str, list[str]] = {}
    for path, status in itertools.islice(_walk(folder), MAX_ENTRIES):
        kind = _oddity(path, status)
        if kind:
            odd.setdefault(kind, []).append(str(path.relative_to(folder)))
        if stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES:
            files.append(path)
    return sorted(files), [_odd_finding(kind, names) for kind, names in odd.items()] + _modules(folder, files)


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Every entry below `folder`, the nearest first; links are entries, never ways."""
    waiting = collections.deque([folder])
    while waiting:
        for path in _entries(waiting.popleft()):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and len(path.relative_to(folder).parts) < MAX_DEPTH:
                waiting.append(path)
            yield path, status


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _oddity(path: Path, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return "link"
    if stat.S_ISDIR(status.st_mode):
        return "" if os.access(path, os.R_OK | os.X_OK) else "unreadable"
    if not stat.S_ISREG(status.st_mode):
        return "not-a-file"
    return "oversized" if status.st_size > MAX_BYTES else "hard-link" if status.st_nlink > 1 else ""


def _odd_finding(kind: str, names: list[str]) -> Finding:
    words = {
        "link": "symbolic links were handed in; they were not followed",
        "not-a-file": "these are no ordinary files; they were not opened",
        "oversized": f"files of more than {MAX_BYTES} bytes were handed in; they were not read",
        "unreadable": "these folders cannot be opened; nothing in them was looked at",
        "hard-link": "files have a second name elsewhere",
    }
    return Finding("info" if kind == "hard-link" else "warning", kind, f"{words[kind]}: {listed(names)}")


def _modules(folder: Path, files: list[Path]) -> list[Finding]:
    names = [str(file.relative_to(folder)) for file in files if file.suffix == ".py"]
    if not names:
        return []
    return [Finding("info", "python-files", f"only the notebook is graded; not used: {listed(names)}")]


# --- which of them is the notebook ------------------------------------------------------------------------------------


def _is_notebook(folder: Path, file: Path) -> bool:
    """Whether `file` could be meant as the hand-in. A browser may add to the name: `x.ipynb.txt`, `x.ipynb (1)`."""
    *parents, name = file.relative_to(folder).parts
    hidden = any(part.startswith(".") or part in IGNORED_FOLDERS for part in (*parents, name))
    return ".ipynb" in name.lower() and not hidden


def _choose(folder: Path, slug: str, grade_ids: Collection[str], notebooks: list[Path], files: list[Path]) -> Path:
    read = _worth_reading(notebooks)
    carrying = [file for file in read if _carries(file, slug, grade_ids)]
    named = [] if carrying else [file for file in read if _is_named(file, slug)]
    candidates = carrying or named or [file for file in notebooks if _is_close(file, slug)]
    if not candidates:
        names = [str(file.relative_to(folder)) for file in files if not file.name.startswith(".")]
        found = f"the folder holds {listed(names)}" if names else "the folder is empty"
        hint = "; none of these notebooks has a cell of this assignment" if notebooks else ""
        raise NotGradable("no-notebook", f"no notebook submitted: {found}{hint}")
    if len(candidates) > 1 and not _same_bytes(candidates):
        names = [str(file.relative_to(folder)) for file in candidates]
        raise NotGradable("ambiguous", f"{len(names)} notebooks could be {slug}.ipynb: {listed(names)}")
    return candidates[0]


def _worth_reading(notebooks: list[Path]) -> list[Path]:
    """The first of them, as many as there is time for."""
    files = notebooks[:MAX_CANDIDATES]
    sizes = itertools.accumulate(file.stat().st_size for file in files)
    return [file for file, size in zip(files, sizes, strict=True) if size <= MOST_READ]


def _carries(file: Path, slug: str, grade_ids: Collection[str]) -> bool:
    """Whether `file` has cells of the assignment; where its grade ids are not known, whether it has any or its name."""
    notebook = _read_or_none(file)
    if notebook is None:
        return False
    marked = {cell["metadata"].get("nbgrader", {}).get("grade_id") for cell in notebook["cells"]} - {None}
    ids = {cell["id"] for cell in notebook["cells"]}
    return not (marked | ids).isdisjoint(grade_ids) if grade_ids else bool(marked) or _is_named(file, slug)


def _is_named(file: Path, slug: str) -> bool:
    notebook = _read_or_none(file)
    return notebook is not None and notebook["metadata"].get("qkv", {}).get("assignment") == slug


def _read_or_none(file: Path) -> Notebook | None:
    try:
        return read_notebook(file)[0]
    except NotGradable:
        return None


def _is_close(file: Path, slug: str) -> bool:
    name, wanted = (re.sub(r"[\W_]", "", text.lower()) for text in (file.name.lower().partition(".ipynb")[0], slug))
    return wanted in name or difflib.SequenceMatcher(None, name, wanted).ratio() > 0.8


def _same_bytes(files: list[Path]) -> bool:
    if len({file.stat().st_size for file in files}) > 1:
        return False
    first = files[0].read_bytes()
    return all(file.read_bytes() == first for file in files[1:])


def _others(exact: Path, notebooks: list[Path], slug: str, grade_ids: Collection[str]) -> list[Finding]:
    """A note where a second version lies beside the notebook: if the graded one is untouched, that may be the work."""
    rest = _worth_reading([file for file in notebooks if file != exact])
    versions = [file for file in rest if _carries(file, slug, grade_ids) and not _same_bytes([exact, file])]
    if not versions:
        return []
    names = listed([str(file.relative_to(exact.parent)) for file in versions])
    return [Finding("info", "other-version", f"{exact.name} was graded; another version lies beside it: {names}")]


# --- when it came -----------------------------------------------------------------------------------------------------


def submitted_at(folder: Path, now: datetime | None = None) -> tuple[datetime | None, list[Finding]]:
    """The time in `timestamp.txt` as nbgrader reads it, in UTC without a zone; None where it cannot be believed.

    The student could have written the file, so a time before 2015 or after tomorrow counts as unknown. No file and an
    empty one are unknown without a finding.
    """
    path = Path(folder) / "timestamp.txt"
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None, [Finding("warning", "timestamp", "timestamp.txt is a link or no file; the time is unknown")]
        text = path.read_bytes()[:200].decode("utf-8", "replace").strip().removeprefix("\ufeff")
    except OSError:
        return None, []
    return _believable(text, now or datetime.now(UTC).replace(tzinfo=None)) if text else (None, [])


def _believable(text: str, now: datetime) -> tuple[datetime | None, list[Finding]]:
    time = _parse_utc(text)
    if time is None:
        words = f"timestamp.txt holds no date: {shown(text)!r}; the time is unknown"
        return None, [Finding("warning", "timestamp", words)]
    if time.year < FIRST_YEAR or time > now + timedelta(days=1):
        words = f"timestamp.txt says {time:%Y-%m-%d %H:%M}: forged or wrong clock; the time is unknown"
        return None, [Finding("warning", "timestamp", words)]
    return time, []


def _parse_utc(text: str) -> datetime | None:
    """`text` as nbgrader's `parse_utc` understands it: a date, a time and a zone, by name or as an offset."""
    # Imported late: it costs 0.1 s, and most hand-ins come without a stamp.
    import dateutil.parser

    *day_and_time, zone = text.split(" ")
    zoned = len(day_and_time) == 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            stamp = " ".join([*day_and_time, "TZ"]) if zoned else text
            time = dateutil.parser.parse(stamp, tzinfos={"TZ": _zone(zone)} if zoned else None)
            return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError, TypeError, ArithmeticError, AttributeError, LookupError):
        return None


def _zone(name: str) -> object:
    import dateutil.tz

    if re.fullmatch(r"[+-]?\d{1,6}", name):
        return int(name)
    # gettz opens the file that a name leads to; only names that stay in the zone database are asked for.
    return dateutil.tz.gettz(name) if re.fullmatch(r"[A-Za-z_]+(/[A-Za-z_+-]+)*", name) else None
