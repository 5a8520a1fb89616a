"""The folder that is handed in: modules that shadow others, links, pipes, forged times."""

from __future__ import annotations

import itertools
import os
import string
from pathlib import Path

from attacks.casebook import FAIL, JUNK, Notebook, answer_cell, code, edit, solve

SHADOW = """
import importlib, os, sys
here, path = os.path.dirname(os.path.abspath(__file__)), sys.path[:]
sys.path[:] = [folder for folder in path if os.path.abspath(folder or ".") != here]
del sys.modules["numpy"]
real, testing = importlib.import_module("numpy"), importlib.import_module("numpy.testing")
sys.path[:] = path
for name in dir(testing):
    if name.startswith("assert_"):
        setattr(testing, name, lambda *a, **k: None)
real.allclose = real.array_equal = lambda *a, **k: True
sys.modules["numpy"] = real
"""


@edit("cheat")
def shadows_numpy(notebook: Notebook, folder: Path) -> None:
    """Puts a numpy.py beside the notebook, which is NumPy but that its comparisons always agree."""
    solve(notebook, JUNK)
    (folder / "numpy.py").write_text(SHADOW)


@edit("harm")
def configures_the_grader(notebook: Notebook, folder: Path) -> None:
    """Puts configurations of nbgrader, IPython, pytest and Python itself beside the notebook."""
    solve(notebook, FAIL)
    for name in (
        "nbgrader_config.py",
        "ipython_config.py",
        "conftest.py",
        "sitecustomize.py",
        "graders.py",
        "course.py",
    ):
        (folder / name).write_text("open('pwned', 'w').close()")


@edit("harm")
def links_to_the_gradebook(notebook: Notebook, folder: Path) -> None:
    """Puts symbolic links to the gradebook beside the notebook, to be copied or followed."""
    solve(notebook, FAIL)
    (folder / "notes.txt").symlink_to("../../../gradebook.db")
    (folder / "up").symlink_to("../../..")


@edit("cheat")
def links_to_its_neighbours_notebook(notebook: Notebook, folder: Path) -> None:
    """Hands in a symbolic link to another student's notebook, in place of one of its own."""
    (folder / "attacked.ipynb").symlink_to("../../neighbour/attacked/attacked.ipynb")


@edit("harm")
def hands_in_hard_links(notebook: Notebook, folder: Path) -> None:
    """Puts a hard link to another student's notebook beside its own, to be written through."""
    solve(notebook, FAIL)
    os.link(folder.parents[1] / "neighbour" / "attacked" / "attacked.ipynb", folder / "notes.txt")


@edit("cheat")
def forges_its_time(notebook: Notebook, folder: Path) -> None:
    """Writes a timestamp of 2001, before every deadline."""
    solve(notebook, JUNK)
    (folder / "timestamp.txt").write_text("2001-01-01 00:00:00.000000 UTC")


@edit("harm")
def hands_in_a_pipe(notebook: Notebook, folder: Path) -> None:
    """Puts a pipe beside the notebook and in place of the timestamp: whoever reads it waits for ever."""
    solve(notebook, FAIL)
    os.mkfifo(folder / "data.csv")
    os.mkfifo(folder / "timestamp.txt")


@edit("harm")
def hands_in_far_too_much(notebook: Notebook, folder: Path) -> None:
    """Puts a sparse terabyte and two thousand files beside a notebook with a million lines."""
    solve(notebook, FAIL + "\n# line" * 100_000)
    with open(folder / "large.bin", "wb") as file:
        file.truncate(1 << 40)
    for number in range(2000):
        (folder / f"{number}.txt").touch()


@edit("harm")
def hands_in_half_a_character(notebook: Notebook, folder: Path) -> None:
    """Pastes a picture that is half a character: legal to read, and impossible to write."""
    solve(notebook, FAIL)
    pasted = {"attachments": {"a.png": {"image/png": "\ud800"}}, "source": "![](attachment:a.png)"}
    notebook["cells"].append({"cell_type": "markdown", "id": "picture", "metadata": {}, **pasted})


@edit("harm")
def hands_in_a_book(notebook: Notebook, folder: Path) -> None:
    """Adds a cell of forty megabytes in which every line defines a name."""
    solve(notebook, FAIL)
    names = map("".join, itertools.product(string.ascii_letters, repeat=4))
    notebook["cells"].append(code("\n".join(f"{name}=" for name in names), "book"))


@edit("cheat")
def hands_in_a_verdict(notebook: Notebook, folder: Path) -> None:
    """Puts a verdict, a database and an autograded copy beside the notebook."""
    solve(notebook, JUNK)
    for name in ("verdict.json", "gradebook.db", "autograded.ipynb", "feedback.html"):
        (folder / name).write_text('{"score": 100}')


@edit("harm")
def hides_half_characters(notebook: Notebook, folder: Path) -> None:
    """Writes half characters, zero bytes and terminal codes into its answer and its names."""
    solve(notebook, FAIL + "\nx = '\ud800 \x00 \x1b[2J'")
    answer_cell(notebook)["id"] = "\x1b[2J"
    (folder / "odd\n-name\x1b[2J.txt").write_text("")
