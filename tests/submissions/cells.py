"""Hand-ins whose cells were copied, split, moved, deleted or changed."""

from __future__ import annotations

import copy
import re
from pathlib import Path

from submissions.casebook import (
    Notebook,
    answers,
    case,
    code,
    edit,
    first_answer,
    function_of,
    insert_after,
    insert_before,
    marks,
    place,
    save,
    stub,
    tests,
    text,
    turn_into,
    twin,
)


@edit("A37", "flag full")
def old_version_above_new(notebook: Notebook) -> None:
    """The answer cell was copied: the old, wrong version above, the new, right one below."""
    cell = first_answer(notebook)
    insert_after(notebook, cell, twin(cell))
    cell["source"] = f"def {function_of(cell)}(*args):\n    return None"


@edit("A38", "flag full")
def split_test(notebook: Notebook) -> None:
    """A test cell was split in two; both halves keep the metadata."""
    cell = tests(notebook)[0]
    lines = text(cell).splitlines(keepends=True)
    half = len(lines) // 2
    insert_after(notebook, cell, twin(cell, "".join(lines[half:])))
    cell["source"] = "".join(lines[:half])


@edit("A39", "flag full")
def split_answer(notebook: Notebook) -> None:
    """The answer cell was split: an import above, the function below; both keep the metadata."""
    cell = first_answer(notebook)
    insert_after(notebook, cell, twin(cell, text(cell).replace("np.", "_np.")))
    cell["source"] = "import numpy as _np"


@edit("A43", "flag full")
def answer_in_a_new_cell(notebook: Notebook) -> None:
    """The answer cell was deleted and the function typed into a new one."""
    cell = first_answer(notebook)
    notebook["cells"][place(notebook, cell)] = code(text(cell))


@edit("A44", "flag zero")
def answer_deleted(notebook: Notebook) -> None:
    """The answer cell was deleted, and nothing stands instead."""
    del notebook["cells"][place(notebook, first_answer(notebook))]


@edit("A46", "flag full")
def test_above_the_answer(notebook: Notebook) -> None:
    """The first test was moved above the answer."""
    test = tests(notebook)[0]
    del notebook["cells"][place(notebook, test)]
    notebook["cells"].insert(place(notebook, first_answer(notebook)), test)


@edit("A47", "zero")
def tests_that_always_pass(notebook: Notebook) -> None:
    """A wrong answer, and `assert True` in place of every test."""
    stub(notebook, "return None")
    for test in tests(notebook):
        test["source"] = "assert True"


@edit("A48", "full")
def points_raised(notebook: Notebook) -> None:
    """The points of a test were raised to 200."""
    marks(tests(notebook)[0])["points"] = 200


@edit("A50", "full")
def test_to_markdown(notebook: Notebook) -> None:
    """A test was turned into a text cell."""
    turn_into(tests(notebook)[0], "markdown")


@edit("A51", "full")
def answer_to_markdown(notebook: Notebook) -> None:
    """The answer was turned into a text cell, the code still in it."""
    turn_into(first_answer(notebook), "markdown")


@edit("A52", "flag full")
def answer_to_raw(notebook: Notebook) -> None:
    """The answer was turned into a raw cell."""
    turn_into(first_answer(notebook), "raw")


@case("C20", "flag full")
def answer_above_the_stub(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The answer was typed into a new cell above the answer cell, whose untouched stub would define it away."""
    notebook = copy.deepcopy(solved)
    cell = first_answer(notebook)
    insert_before(notebook, cell, text(cell))
    cell["source"] = text(first_answer(released))
    save(notebook, folder)


@edit("C21", "flag full")
def old_answer_as_notes(notebook: Notebook) -> None:
    """A copy of the answer cell below it, turned into text, holds an earlier try that must not run."""
    cell = first_answer(notebook)
    old = twin(cell, f"def {function_of(cell)}(*args):\n    return None")
    turn_into(old, "raw")
    insert_after(notebook, cell, old)


@edit("C22", "flag full")
def helper_before_a_moved_answer(notebook: Notebook) -> None:
    """The answer was moved to the end, behind a new cell with what it needs at once."""
    cell = first_answer(notebook)
    del notebook["cells"][place(notebook, cell)]
    cell["source"] = "assert needed_at_once\n" + text(cell)
    notebook["cells"] += [code("needed_at_once = True"), cell]


@edit("C23", "flag full")
def answer_in_a_test_cell(notebook: Notebook) -> None:
    """The answer was typed below the words of a test cell; the answer cell is blank."""
    cell, test = first_answer(notebook), tests(notebook)[0]
    test["source"] = f"{text(test)}\n{text(cell)}"
    cell["source"] = ""


@edit("C24", "flag full")
def everything_in_one_cell(notebook: Notebook) -> None:
    """All answers stand in the first answer cell; the others are blank."""
    first, *rest = answers(notebook)
    first["source"] = "\n\n".join(text(cell) for cell in [first, *rest])
    for cell in rest:
        cell["source"] = ""


@edit("C25", "flag full")
def imports_deleted_and_retyped(notebook: Notebook) -> None:
    """The first code cell of the lesson was deleted; its imports were typed into the answer cell."""
    index = next(i for i, cell in enumerate(notebook["cells"]) if cell["cell_type"] == "code" and not marks(cell))
    imports = re.findall(r"^(?:import|from) .+$", text(notebook["cells"].pop(index)), re.MULTILINE)
    cell = first_answer(notebook)
    cell["source"] = "\n".join([*imports, text(cell)])


@edit("C26", "full")
def imports_to_markdown(notebook: Notebook) -> None:
    """The first code cell of the lesson was turned into text by a slip of the finger."""
    turn_into(next(cell for cell in notebook["cells"] if cell["cell_type"] == "code" and not marks(cell)), "markdown")


@edit("C27", "flag full")
def every_cell_twice(notebook: Notebook) -> None:
    """Select all, copy, paste: every cell is there twice."""
    notebook["cells"] += [{**twin(cell), "id": f"twin-{n}"} for n, cell in enumerate(notebook["cells"])]


@case("C28", "full")
def stub_kept_below(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A copy of the untouched answer cell is kept below the worked one, where it would define it away."""
    notebook = copy.deepcopy(solved)
    insert_after(notebook, first_answer(notebook), twin(first_answer(released)))
    save(notebook, folder)
