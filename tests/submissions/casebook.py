"""What a fake student is, and the tools that the generators share. Plain JSON: nbformat would mend what we break."""

from __future__ import annotations

import copy
import json
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
Cell = dict[str, Any]
Make = Callable[[Notebook, Notebook, Path], None]


@dataclass(frozen=True)
class Case:
    """One hand-in and what is right for it.

    `make(released, solved, folder)` writes it into `folder`, which is named after the assignment. `expect` is the set
    of acceptable outcomes: `full` marks; `zero` for the answer that it touches, the notebook's first; `flag`, that a
    person is told why. Without `flag` nobody needs to look. `student` is the id to hand it in under, `slow` says that
    it runs into limits of time or size.
    """

    id: str
    name: str
    title: str
    kind: str
    expect: frozenset[str]
    make: Make
    student: str = "student"
    slow: bool = False


CASES: dict[str, Case] = {}


def case(id: str, expect: str, *, student: str = "student", slow: bool = False) -> Callable[[Make], Make]:
    """Register a generator; its docstring says what the student hands in."""

    def register(make: Make) -> Make:
        title, kind = str(make.__doc__).rstrip("."), make.__module__.rpartition(".")[2]
        CASES[id] = Case(id, make.__name__, title, kind, frozenset(expect.split()), make, student, slow)
        return make

    return register


def edit(id: str, expect: str, *, slow: bool = False) -> Callable[[Callable[[Notebook], None]], Callable]:
    """Register a generator that only changes a solved notebook, in place, before it is saved under its right name."""

    def register(change: Callable[[Notebook], None]) -> Callable[[Notebook], None]:
        def make(released: Notebook, solved: Notebook, folder: Path) -> None:
            notebook = copy.deepcopy(solved)
            change(notebook)
            save(notebook, folder)

        make.__name__, make.__doc__, make.__module__ = change.__name__, change.__doc__, change.__module__
        case(id, expect, slow=slow)(make)
        return change

    return register


# --- reading a notebook -----------------------------------------------------------------------------------------------


def text(cell: Cell) -> str:
    """The source of `cell` as one string."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def marks(cell: Cell) -> dict[str, Any]:
    """What nbgrader's metadata say of `cell`."""
    return cell["metadata"].get("nbgrader", {})


def answers(notebook: Notebook) -> list[Cell]:
    """The code cells that the student fills in."""
    return [cell for cell in notebook["cells"] if marks(cell).get("solution") and cell["cell_type"] == "code"]


def first_answer(notebook: Notebook) -> Cell:
    """The cell that most cases touch."""
    return answers(notebook)[0]


def tests(notebook: Notebook) -> list[Cell]:
    """The graded cells that are not the student's."""
    return [cell for cell in notebook["cells"] if marks(cell).get("grade") and not marks(cell).get("solution")]


def place(notebook: Notebook, cell: Cell) -> int:
    """Where `cell` itself stands; a copy of it elsewhere does not count."""
    return next(index for index, other in enumerate(notebook["cells"]) if other is cell)


def function_of(cell: Cell) -> str:
    """The function that the answer in `cell` defines."""
    return re.findall(r"^def (\w+)\(", text(cell), re.MULTILINE)[-1]


# --- changing it ------------------------------------------------------------------------------------------------------


def code(source: str, id: str = "typed-in") -> Cell:
    """A new code cell."""
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": id,
        "metadata": {},
        "outputs": [],
        "source": textwrap.dedent(source).strip("\n"),
    }


def insert_before(notebook: Notebook, cell: Cell, *sources: str) -> None:
    """New code cells right above `cell`."""
    start = place(notebook, cell)
    notebook["cells"][start:start] = [code(source, f"typed-in-{n}") for n, source in enumerate(sources)]


def insert_after(notebook: Notebook, cell: Cell, new: Cell) -> None:
    """`new` right below `cell`."""
    notebook["cells"].insert(place(notebook, cell) + 1, new)


def twin(cell: Cell, source: str | None = None) -> Cell:
    """A copy of `cell` as copy and paste makes it: the same metadata, another id."""
    return {**copy.deepcopy(cell), "id": "pasted", "source": text(cell) if source is None else source}


def turn_into(cell: Cell, kind: str) -> None:
    """Another type for `cell`, as the keys M and R in JupyterLab give it."""
    cell["cell_type"] = kind
    for name in ("outputs", "execution_count"):
        cell.pop(name, None)


def stub(notebook: Notebook, body: str, head: str = "") -> None:
    """Another body for the function of the first answer, and lines above it; the other answers stay right."""
    cell = first_answer(notebook)
    function = f"def {function_of(cell)}(*args):\n{_indented(body)}"
    cell["source"] = f"{textwrap.dedent(head)}\n{function}".strip("\n")


def wrap(notebook: Notebook, *, before: str = "", after: str = "", head: str = "") -> None:
    """The right function, with statements around each of its calls."""
    cell = first_answer(notebook)
    name = function_of(cell)
    lines = [textwrap.dedent(head).strip("\n"), text(cell), f"_right = {name}", f"def {name}(*args, **kwargs):"]
    lines += [_indented(before), "    result = _right(*args, **kwargs)", _indented(after), "    return result"]
    cell["source"] = "\n".join(line for line in lines if line)


def _indented(source: str) -> str:
    return textwrap.indent(textwrap.dedent(source).strip("\n"), "    ")


# --- handing it in ----------------------------------------------------------------------------------------------------


def dumps(notebook: Notebook) -> str:
    """`notebook` as Jupyter writes it to disk."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def put(folder: Path, name: str, data: str | bytes) -> None:
    """A file in the hand-in."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def save(notebook: Notebook, folder: Path, name: str = "") -> None:
    """`notebook` in the hand-in, by default under its right name."""
    put(folder, (name or folder.name) + ".ipynb", dumps(notebook))
