"""The folder that a child may write: what counts as too much, and that everything in it goes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graders.sandbox.inside import scratch


def _nest(folder: Path, depth: int) -> None:
    """Folders within folders, without ever naming a path that is too long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_little_is_not_too_much(tmp_path: Path) -> None:
    """A few files and folders are what notebooks write."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "data.csv").write_text("1,2")
    assert not scratch.too_much(str(tmp_path), 1 << 20)


@pytest.mark.parametrize("kind", ["files", "folders", "bytes", "depth"])
def test_too_much_of_anything_is_seen(tmp_path: Path, kind: str) -> None:
    """Many empty files, many folders, many bytes, and a path that no call could name."""
    if kind == "files":
        for number in range(30):
            (tmp_path / f"{number}").touch()
    elif kind == "folders":
        for number in range(30):
            (tmp_path / f"{number % 5}" / f"{number}").mkdir(parents=True)
    elif kind == "bytes":
        (tmp_path / "large").write_bytes(b"x" * 100_000)
    else:
        _nest(tmp_path, scratch.MAX_DEPTH + 5)
    most_files = 1000 if kind == "depth" else 20
    assert scratch.too_much(str(tmp_path), 50_000, most_files)


def test_a_sparse_file_counts_as_what_it_takes(tmp_path: Path) -> None:
    """A terabyte of nothing is nothing."""
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(1 << 40)
    assert not scratch.too_much(str(tmp_path), 1 << 20)


def test_everything_is_cleared(tmp_path: Path) -> None:
    """Deep folders, odd names, closed folders and links go; what a link points to stays."""
    (kept := tmp_path / "kept").write_text("kept")
    top = tmp_path / "scratch"
    top.mkdir()
    _nest(top, 1500)
    for name in (b"\n", b"-rf", b"\xff", b"x" * 255, b"lifted-0", b"d\x1b"):
        os.makedirs(os.path.join(os.fsencode(top), b"odd", name, b"below"))
    (top / "link").symlink_to(kept)
    (top / "up").symlink_to(tmp_path)
    (top / "odd" / "shut").mkdir(mode=0o000)
    scratch.clear(str(top))
    assert not top.exists()
    assert kept.read_text() == "kept"


def test_clearing_what_is_gone_is_nothing(tmp_path: Path) -> None:
    """A folder that is not there, and one that is a link, are left alone."""
    (tmp_path / "link").symlink_to(tmp_path)
    scratch.clear(str(tmp_path / "gone"))
    scratch.clear(str(tmp_path / "link"))
    assert (tmp_path / "link").is_symlink()
