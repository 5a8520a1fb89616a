"""Hand-ins whose file is odd: encodings, JSON, nbformat, kernels."""

from __future__ import annotations

import copy
from pathlib import Path

from submissions.casebook import Notebook, case, code, dumps, edit, first_answer, put, text


@case("A08", "flag zero")
def merge_conflict_markers(released: Notebook, solved: Notebook, folder: Path) -> None:
    """Git conflict markers inside the JSON."""
    lines = dumps(solved).splitlines(keepends=True)
    middle = len(lines) // 2
    sides = ["<<<<<<< HEAD\n", lines[middle], "=======\n", lines[middle], ">>>>>>> my-branch\n"]
    put(folder, f"{folder.name}.ipynb", "".join([*lines[:middle], *sides, *lines[middle + 1 :]]))


@case("A10", "full")
def utf8_bom(released: Notebook, solved: Notebook, folder: Path) -> None:
    """UTF-8 with a byte order mark."""
    put(folder, f"{folder.name}.ipynb", b"\xef\xbb\xbf" + dumps(solved).encode())


@case("A12", "flag full")
def windows_1252_quote(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A Windows-1252 quotation mark in a text cell."""
    note = {"cell_type": "markdown", "id": "note", "metadata": {}, "source": ["it's done"]}
    data = dumps({**solved, "cells": [*solved["cells"], note]}).encode()
    put(folder, f"{folder.name}.ipynb", data.replace(b"it's done", b"it\x92s done"))


@edit("A15", "full")
def nbformat_40_without_ids(notebook: Notebook) -> None:
    """Saved in nbformat 4.0, which knows no cell ids."""
    notebook["nbformat_minor"] = 0
    for cell in notebook["cells"]:
        del cell["id"]


@edit("A16", "full")
def nbformat_42_with_ids(notebook: Notebook) -> None:
    """Says nbformat 4.2 and has ids all the same."""
    notebook["nbformat_minor"] = 2


@edit("A18", "flag full")
def null_cell_id(notebook: Notebook) -> None:
    """One cell has the id null."""
    notebook["cells"][0]["id"] = None


@edit("A19", "full")
def duplicate_cell_ids(notebook: Notebook) -> None:
    """Two cells share one id."""
    notebook["cells"][0]["id"] = notebook["cells"][1]["id"] = "same-id"


@edit("A22", "flag full")
def cell_without_metadata(notebook: Notebook) -> None:
    """An added cell has no metadata."""
    cell = code("x = 1")
    del cell["metadata"]
    notebook["cells"].insert(1, cell)


@edit("A23", "flag full")
def metadata_null_or_list(notebook: Notebook) -> None:
    """Two added cells whose metadata is null and a list."""
    notebook["cells"][1:1] = [{**code("x = 1", "a"), "metadata": None}, {**code("y = 2", "b"), "metadata": []}]


@edit("A24", "flag full")
def execution_count_string(notebook: Notebook) -> None:
    """Execution counts are text."""
    for number, cell in enumerate(cell for cell in notebook["cells"] if cell["cell_type"] == "code"):
        cell["execution_count"] = str(number) if number else "In [1]"


@edit("A25", "flag full")
def invalid_outputs(notebook: Notebook) -> None:
    """Saved outputs that no schema allows."""
    first_answer(notebook)["outputs"] = [
        {"output_type": "execute_result", "execution_count": 1, "metadata": [], "data": {"text/plain": ["1"]}},
        {"output_type": "display_data", "metadata": {}, "data": {"application/x-odd": 5}},
        {"output_type": "hologram", "payload": 1},
    ]


@edit("A26", "full")
def huge_saved_output(notebook: Notebook) -> None:
    """Eight megabytes of saved output."""
    lines = ["x" * 99 + "\n"] * 80_000
    first_answer(notebook)["outputs"] = [{"output_type": "stream", "name": "stdout", "text": lines}]


@edit("A30", "full")
def no_kernelspec(notebook: Notebook) -> None:
    """No kernel and no language are named."""
    notebook["metadata"] = {}


@edit("A31", "flag full")
def null_kernelspec(notebook: Notebook) -> None:
    """Kernel and language are null."""
    notebook["metadata"] = {"kernelspec": None, "language_info": None}


@edit("A34", "full")
def saved_by_colab(notebook: Notebook) -> None:
    """Saved by Colab: its metadata, no cell ids, no edit flags; nbgrader's marks are kept."""
    notebook["nbformat_minor"] = 0
    notebook["metadata"] = {"colab": {"provenance": [], "gpuType": "T4"}, "accelerator": "GPU"}
    for number, cell in enumerate(notebook["cells"]):
        del cell["id"]
        kept = {name: value for name, value in cell["metadata"].items() if name == "nbgrader"}
        cell["metadata"] = {**kept, "id": f"{number:012d}", "outputId": f"{number:036d}"}


@edit("A35", "flag full")
def nbgrader_metadata_lost(notebook: Notebook) -> None:
    """All metadata of cells are lost."""
    for cell in notebook["cells"]:
        cell["metadata"] = {}


@edit("C10", "flag full")
def metadata_and_ids_lost(notebook: Notebook) -> None:
    """Metadata and ids of all cells are lost, so that only text tells what a cell is."""
    notebook.update(nbformat_minor=0, metadata={})
    for cell in notebook["cells"]:
        cell["metadata"] = {}
        del cell["id"]


@case("C11", "flag full")
def utf16(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A shell on Windows wrote the file in UTF-16."""
    put(folder, f"{folder.name}.ipynb", dumps(solved).encode("utf-16"))


@edit("C12", "full")
def windows_line_ends(notebook: Notebook) -> None:
    """Every line of the answers ends as on Windows."""
    for cell in notebook["cells"]:
        cell["source"] = text(cell).replace("\n", "\r\n")


@case("C13", "flag full")
def half_a_character(released: Notebook, solved: Notebook, folder: Path) -> None:
    """Half of a surrogate pair, as a broken emoji leaves it, in a comment of the answer."""
    notebook = copy.deepcopy(solved)
    first_answer(notebook)["source"] = text(first_answer(notebook)) + "\n# half a character"
    put(folder, f"{folder.name}.ipynb", dumps(notebook).replace("half a character", "\\ud83d"))


@case("C14", "flag zero")
def empty_file(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A file of zero bytes, as a full disk leaves it."""
    put(folder, f"{folder.name}.ipynb", b"")


@case("C15", "flag zero")
def web_page(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The page around the notebook was saved, not the notebook."""
    put(folder, f"{folder.name}.ipynb", "<!DOCTYPE html>\n<html></html>\n")


@case("C16", "flag zero")
def cut_off(released: Notebook, solved: Notebook, folder: Path) -> None:
    """An upload that ended half way."""
    data = dumps(solved)
    put(folder, f"{folder.name}.ipynb", data[: len(data) // 2])


@case("C17", "flag zero")
def nbformat_3(released: Notebook, solved: Notebook, folder: Path) -> None:
    """Saved in nbformat 3: worksheets, and code in `input`."""
    cells = copy.deepcopy(solved["cells"])
    for cell in cells:
        cell["input"] = cell.pop("source")
    old = {"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": cells}]}
    put(folder, f"{folder.name}.ipynb", dumps(old))


@case("C18", "flag zero")
def nested_too_deeply(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A hundred thousand lists, one in another."""
    put(folder, f"{folder.name}.ipynb", '{"cells": ' + "[" * 100_000 + "]" * 100_000 + "}")


@case("C19", "flag full")
def numbers_out_of_bounds(released: Notebook, solved: Notebook, folder: Path) -> None:
    """NaN, infinity, an integer of ten thousand digits, and one key twice."""
    data = dumps(solved).replace(
        '"nbformat": 4', '"nbformat": ' + "4" * 10_000 + ', "x": NaN, "y": 1e999, "nbformat": 4'
    )
    put(folder, f"{folder.name}.ipynb", data)
