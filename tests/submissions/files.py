"""Hand-ins whose folder is odd: names, neighbours, time stamps."""

from __future__ import annotations

import copy
from pathlib import Path

from submissions.casebook import Notebook, case, code, dumps, put, save, stub


@case("A01", "flag full")
def renamed_notebook(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The only notebook is renamed, with words around the name."""
    save(solved, folder, f"My Work {folder.name} final")


@case("A03", "flag zero")
def missing_notebook(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A folder without any notebook."""
    put(folder, "answer.txt", "see my e-mail\n")


@case("A04", "full")
def extra_files_and_checkpoints(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The right notebook beside a scratch notebook, a checkpoint and what file managers leave."""
    scratch = {**copy.deepcopy(solved), "cells": [*copy.deepcopy(solved["cells"][:1]), code("1/0")]}
    save(solved, folder)
    save(scratch, folder, "scratch")
    put(folder, f".ipynb_checkpoints/{folder.name}-checkpoint.ipynb", dumps(released))
    put(folder, ".DS_Store", b"\0\0\0\1Bud1")
    put(folder, "desktop.ini", "[.ShellClassInfo]\n")


@case("A05", "full")
def html_export_beside(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The notebook and its HTML export with the same stem."""
    save(solved, folder)
    put(folder, f"{folder.name}.html", "<html><body>export</body></html>")


@case("A97", "flag full", student="a+b (sec[2])")
def student_id_with_brackets(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A student id with plus, blanks, parentheses and brackets."""
    save(solved, folder)


@case("A102", "flag full")
def bad_timestamp(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A time stamp that is no date."""
    put(folder, "timestamp.txt", "last tuesday, I think\n")
    save(solved, folder)


@case("A103", "full")
def empty_timestamp(released: Notebook, solved: Notebook, folder: Path) -> None:
    """An empty time stamp."""
    put(folder, "timestamp.txt", "")
    save(solved, folder)


@case("n4", "flag zero")
def forged_timestamp(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A time stamp from 2001, and no answer."""
    unsolved = copy.deepcopy(solved)
    stub(unsolved, "raise NotImplementedError")
    put(folder, "timestamp.txt", "2001-01-01 00:00:00.000000 UTC")
    save(unsolved, folder)


@case("C01", "flag full")
def folder_in_the_folder(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A zipped folder was handed in, so that the notebook lies one level too deep, beside what macOS adds."""
    put(folder, f"{folder.name}/{folder.name}.ipynb", dumps(solved))
    put(folder, f"__MACOSX/{folder.name}/._{folder.name}.ipynb", b"\0\5\26\7\0\2\0\0Mac OS X")


@case("C02", "flag full")
def browser_added_txt(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The browser that downloaded the notebook added .txt to its name."""
    put(folder, f"{folder.name}.ipynb.txt", dumps(solved))


@case("C03", "flag zero")
def two_versions_renamed(released: Notebook, solved: Notebook, folder: Path) -> None:
    """Two renamed notebooks, both of this assignment: nobody can know which one counts."""
    unsolved = copy.deepcopy(solved)
    stub(unsolved, "raise NotImplementedError")
    save(solved, folder, "version 1")
    save(unsolved, folder, "version 2")


@case("C04", "flag zero")
def worked_in_a_copy(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The notebook is as it was released; the work is in JupyterLab's copy of it."""
    save(released, folder)
    save(solved, folder, f"{folder.name}-Copy1")


@case("C05", "flag zero")
def notebook_of_another_assignment(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A notebook under the right name that holds nothing of this assignment."""
    save({**solved, "cells": [code("print('homework 3')")]}, folder)
