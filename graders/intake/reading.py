"""From the bytes of a file handed in to a tidy notebook: tolerant where nothing is lost, a reason where something is.

Saved outputs, execution counts, kernel names and versions are not evidence, so nothing here looks at them.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from graders.verdict import Finding

Cell = dict[str, Any]
Notebook = dict[str, Any]
Repairs = dict[str, list[int]]
Note = Callable[[str], tuple[()]]

MAX_BYTES = 64 * 2**20
MAX_PARTS = 5_000_000
"""Lists, objects and commas in a file: an empty list is 3 bytes of JSON and 70 in memory, so bytes bound little."""

MAX_CELLS = 5000
MAX_CODE, MAX_PROSE = 2 * 2**20, 16 * 2**20
"""Characters in all code cells and in all others together, each of which is read many times, here and for messages. The
course's notebooks have at most 50,000; prose may hold a photograph, as some editors write it. A cell of 4 MB could not
be sent to the sandbox anyway."""

CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7})(?=[ \r\n]|\Z)", re.MULTILINE)
IMAGES = ("image/png", "image/jpeg", "image/gif")
BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*", re.ASCII)
# Bytes that are not UTF-8 come out of "surrogateescape" as U+DC80…U+DCFF; Windows-1252 leaves five of them undefined.
WINDOWS_1252 = {0xDC00 + byte: bytes([byte]).decode("cp1252", "replace") for byte in range(0x80, 0x100)}


class NotGradable(Exception):
    """A hand-in that cannot be graded; `finding` says why, with severity `error`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.finding = Finding("error", code, message)


def shown(text: object, width: int = 80) -> str:
    """`text` fit for a line of a report: nothing unprintable, no reversed reading direction, at most `width` long."""
    plain = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text)[: width + 1])
    return plain if len(plain) <= width else plain[: width - 1] + "…"


def listed(names: list[str], most: int = 8) -> str:
    """`names` in one line, however many there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown(name) for name in names[:most]) + more


def read_notebook(path_or_bytes: Path | str | bytes, limit: int = MAX_BYTES) -> tuple[Notebook, list[Finding]]:
    """The tidy notebook in a file (or its bytes), and what had to be repaired.

    Each cell of it has `cell_type`, a unique `id`, `source` as one string and, of `metadata`, what nbgrader wrote.
    Nothing is executed, no link is followed, at most `limit` bytes are read.

    Raises NotGradable where there is no notebook in it.
    """
    if isinstance(path_or_bytes, bytes):
        return _read(path_or_bytes, limit)
    path = Path(path_or_bytes)
    try:
        return _read(bytes_of(path, limit), limit)
    except NotGradable as problem:
        raise NotGradable(problem.finding.code, f"{shown(path.name)}: {problem.finding.message}") from None


def _read(data: bytes, limit: int) -> tuple[Notebook, list[Finding]]:
    if len(data) > limit:
        raise NotGradable("oversized", f"larger than {limit} bytes; clear its outputs and hand it in again")
    text, findings = _decode(data)
    notebook, repairs = tidy(_parse(text))
    return notebook, findings + repairs


def bytes_of(path: Path, limit: int) -> bytes:
    """The bytes of an ordinary file; NotGradable where it is a link, no file, larger than `limit` or unreadable."""
    try:
        if path.is_symlink():
            raise NotGradable("link", "a symbolic link; links are not followed")
        # Opening a named pipe would wait for a writer for ever, hence O_NONBLOCK.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        linked = error.errno == errno.ELOOP
        raise NotGradable("link" if linked else "unreadable", f"cannot be read: {error.strerror}") from None
    try:
        return _bytes_from(descriptor, limit)
    finally:
        os.close(descriptor)


def _bytes_from(descriptor: int, limit: int) -> bytes:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise NotGradable("not-a-file", "not an ordinary file")
    if status.st_size > limit:
        raise NotGradable("oversized", f"{status.st_size} bytes, of which {limit} would be read; clear its outputs")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(limit + 1)


def _decode(data: bytes) -> tuple[str, list[Finding]]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        found = Finding("warning", "encoding", "the file is UTF-16, not UTF-8; it was read as such")
        return data.decode("utf-16", "replace"), [found]
    body = data.removeprefix(b"\xef\xbb\xbf")
    try:
        return body.decode("utf-8"), []
    except UnicodeDecodeError as error:
        byte, offset = body[error.start], error.start + len(data) - len(body)
    found = Finding("warning", "encoding", f"byte 0x{byte:02x} at {offset} is not UTF-8; it was read as Windows-1252")
    return body.decode("utf-8", "surrogateescape").translate(WINDOWS_1252), [found]


def _parse(text: str) -> Any:
    if not text.strip("\0 \t\r\n"):
        raise NotGradable("empty", "the file is empty")
    if text.count("[") + text.count("{") + text.count(",") > MAX_PARTS:
        raise NotGradable("oversized", f"more than {MAX_PARTS} parts; clear its outputs")
    try:
        # strict=False: a bare line break inside a string is no reason to lose the rest.
        return json.loads(text, strict=False, parse_int=_int, parse_constant=lambda name: None)
    except RecursionError:
        raise NotGradable("nesting", "lists or objects are nested too deeply for a notebook") from None
    except json.JSONDecodeError as error:
        _refuse(text, error)


def _int(digits: str) -> int:
    # int() raises from 4,300 digits and is slow below; no number in a notebook that means anything is this large.
    return int(digits) if len(digits) < 20 else 0


def _refuse(text: str, error: json.JSONDecodeError) -> NoReturn:
    marker = CONFLICT.search(text)
    if marker:
        line = text.count("\n", 0, marker.start()) + 1
        raise NotGradable("conflict", f"merge conflict markers at line {line}; resolve the conflict and hand in again")
    if text.lstrip()[:1] == "<":
        raise NotGradable("not-json", "a web page, perhaps an export; the notebook itself is what counts")
    cut_off = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    where = "the file ends early" if cut_off else error.msg
    raise NotGradable("not-json", f"not JSON: {where}, in line {error.lineno}, column {error.colno}")


# --- from any JSON to cells that can be relied on ---------------------------------------------------------------------


def tidy(notebook: Any) -> tuple[Notebook, list[Finding]]:
    """`notebook` with what a grader may rely on, and nothing else of it; tidying twice changes nothing.

    Raises NotGradable where there is no list of cells.
    """
    _check_shape(notebook)
    repaired: Repairs = {}
    cells: list[Cell] = []
    for number, cell in enumerate(notebook["cells"], start=1):
        note = partial(_note, repaired, number)
        cells += [_tidy_cell(cell, note)] if isinstance(cell, dict) else note("not a cell, left out")
    _check_size([cell for cell in cells if cell["cell_type"] == "code"], MAX_CODE, "code")
    _check_size([cell for cell in cells if cell["cell_type"] != "code"], MAX_PROSE, "text")
    _unique_ids(cells, repaired)
    tidied = {"cells": cells, "metadata": _course(notebook), "nbformat": 4, "nbformat_minor": 5}
    return tidied, [_repair(words, numbers) for words, numbers in repaired.items()]


def _note(repaired: Repairs, number: int, words: str) -> tuple[()]:
    repaired.setdefault(words, []).append(number)
    return ()


def _check_shape(notebook: Any) -> None:
    if not isinstance(notebook, dict):
        raise NotGradable("not-a-notebook", f"the file holds a {type(notebook).__name__}, not a notebook")
    if isinstance(notebook.get("cells"), list):
        if len(notebook["cells"]) > MAX_CELLS:
            raise NotGradable(
                "oversized", f"the notebook has {len(notebook['cells'])} cells; {MAX_CELLS} would be read"
            )
        return
    if "worksheets" in notebook or notebook.get("nbformat") in (1, 2, 3):
        raise NotGradable("nbformat-3", "saved in nbformat 3, from before 2015; open it in JupyterLab and save it")
    raise NotGradable("not-a-notebook", "the file has no list of cells, so it is not a notebook")


def _check_size(cells: list[Cell], most: int, kind: str) -> None:
    size = sum(len(cell["source"]) for cell in cells)
    if size > most:
        words = f"its {kind} cells hold {size} characters, of which {most} would be read; take out the data in them"
        raise NotGradable("oversized", words)


def _course(notebook: Notebook) -> dict[str, Any]:
    """The assignment's name that our notebooks carry: it helps to recognise a renamed file and decides nothing."""
    metadata = notebook.get("metadata")
    ours = metadata.get("qkv") if isinstance(metadata, dict) else None
    name = ours.get("assignment") if isinstance(ours, dict) else None
    return {"qkv": {"assignment": name}} if isinstance(name, str) else {}


def _repair(words: str, numbers: list[int]) -> Finding:
    where = listed([str(number) for number in numbers])
    return Finding("info", "repaired", f"cell{'s' if len(numbers) > 1 else ''} {where}: {words}")


def _tidy_cell(cell: Cell, note: Note) -> Cell:
    tidied = {"cell_type": _kind(cell, note), "id": _id(cell, note), "metadata": _metadata(cell, note)}
    tidied["source"] = _source(cell, note)
    if tidied["cell_type"] == "code":
        return {**tidied, "execution_count": None, "outputs": []}
    attachments = _images(cell.get("attachments"))
    return {**tidied, "attachments": attachments} if attachments else tidied


def _kind(cell: Cell, note: Note) -> str:
    kind = cell.get("cell_type")
    if kind in ("code", "markdown", "raw"):
        return str(kind)
    note("type not one of code, markdown, raw")
    return "code" if "outputs" in cell or "execution_count" in cell else "raw"


def _id(cell: Cell, note: Note) -> str:
    given = cell.get("id", "")
    if isinstance(given, str) and (given == "" or CELL_ID.fullmatch(given)):
        return given
    note("id not valid")
    return ""


def _metadata(cell: Cell, note: Note) -> dict[str, Any]:
    """What nbgrader and the skip tag say: enough to recognise a cell and to tell what was changed."""
    metadata = cell.get("metadata")
    if not isinstance(metadata, dict):
        note("metadata missing or not an object")
        return {}
    about, tags = metadata.get("nbgrader"), metadata.get("tags")
    kept: dict[str, Any] = {}
    if isinstance(about, dict) and isinstance(about.get("grade_id"), str):
        names = ("grade_id", "grade", "solution", "locked", "task", "points")
        kept["nbgrader"] = {name: about[name] for name in names if isinstance(about.get(name), (str, bool, int, float))}
    if isinstance(tags, list) and "skip-execution" in tags:
        kept["tags"] = ["skip-execution"]
    return kept


def _source(cell: Cell, note: Note) -> str:
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    if not isinstance(source, str):
        note("source not text")
        source = "".join(line for line in source if isinstance(line, str)) if isinstance(source, list) else ""
    whole = re.sub("[\ud800-\udfff]", "\N{REPLACEMENT CHARACTER}", source)
    if whole != source:
        note("half a character in the source")  # An unpaired surrogate: legal JSON, but no file can hold it.
    return whole.replace("\r\n", "\n").replace("\r", "\n")


def _images(attachments: Any) -> dict[str, dict[str, str]]:
    """Pictures pasted into a text cell: a written answer may be a photograph of a derivation. Never SVG: it can run."""
    if not isinstance(attachments, dict):
        return {}
    kept = {
        name: {mime: bundle[mime] for mime in IMAGES if _is_base64(bundle.get(mime))}
        for name, bundle in attachments.items()
        if isinstance(bundle, dict) and name.isprintable()
    }
    return {name: bundle for name, bundle in kept.items() if bundle}


def _is_base64(value: Any) -> bool:
    return isinstance(value, str) and BASE64.fullmatch(value) is not None


def _unique_ids(cells: list[Cell], repaired: Repairs) -> None:
    """Give every cell an id of its own; the first with an id keeps it."""
    taken: set[str] = set()
    for number, cell in enumerate(cells, start=1):
        if cell["id"] in taken:
            _note(repaired, number, "id used twice")
            cell["id"] = ""
        taken.add(cell["id"])
        taken.discard("")
    for number, cell in enumerate(cells, start=1):
        cell["id"] = cell["id"] or fresh_id(taken, number)


def fresh_id(taken: set[str], number: int) -> str:
    """An id that is not in `taken`, which it joins."""
    id = f"handed-in-{number}"
    while id in taken:
        id += "-x"
    taken.add(id)
    return id
