"""The notebook itself edited: cells removed, moved, doubled and relabelled, marks and outputs written by hand."""

from __future__ import annotations

import copy
from pathlib import Path

from attacks.casebook import FAIL, JUNK, Notebook, answer_cell, code, edit, marks, place, solve, test_cells


@edit("cheat")
def deletes_failing_tests(notebook: Notebook, folder: Path) -> None:
    """Deletes all test cells but the first."""
    solve(notebook, JUNK)
    dropped = [cell["id"] for cell in test_cells(notebook)[1:]]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] not in dropped]


@edit("harm")
def pastes_its_answer_twice(notebook: Notebook, folder: Path) -> None:
    """Pastes the answer cell twice: the same grade id, which ends a class's run elsewhere."""
    solve(notebook, JUNK)
    cell = answer_cell(notebook)
    notebook["cells"].insert(place(notebook, cell), {**copy.deepcopy(cell), "id": "pasted"})


@edit("harm")
def claims_a_newer_schema(notebook: Notebook, folder: Path) -> None:
    """Claims a version of nbgrader's schema that does not exist."""
    solve(notebook, JUNK)
    marks(answer_cell(notebook))["schema_version"] = 4


@edit("cheat")
def tags_tests_to_be_skipped(notebook: Notebook, folder: Path) -> None:
    """Tags every test so that nbclient does not run it, and so finds no error in it."""
    solve(notebook, FAIL)
    for cell in test_cells(notebook):
        cell["metadata"]["tags"] = ["skip-execution"]


@edit("cheat")
def turns_tests_into_answers(notebook: Notebook, folder: Path) -> None:
    """Marks the test cells as answers of its own and empties them."""
    solve(notebook, JUNK)
    for cell in test_cells(notebook):
        cell["source"] = "pass"
        marks(cell).update(grade=True, solution=True, locked=False)


@edit("cheat")
def patches_between_tests(notebook: Notebook, folder: Path) -> None:
    """Puts cells between the tests that patch NumPy again and again."""
    solve(notebook, JUNK)
    for number, cell in enumerate(test_cells(notebook)):
        patch = "np.testing.assert_allclose = lambda *a, **k: None; np.allclose = lambda *a, **k: True"
        notebook["cells"].insert(place(notebook, cell), code(patch, f"patch-{number}"))


@edit("cheat")
def rewrites_tests(notebook: Notebook, folder: Path) -> None:
    """Replaces each test by one that passes."""
    solve(notebook, JUNK)
    for cell in test_cells(notebook):
        cell["source"] = "assert True\n100.0"


@edit("cheat")
def writes_its_own_points(notebook: Notebook, folder: Path) -> None:
    """Gives the tests a thousand points each, and their outputs the full score."""
    solve(notebook, JUNK)
    for cell in test_cells(notebook):
        marks(cell).update(points=1000, score=1000, extra_credit=1000)
        data = {"text/plain": "1000.0"}
        cell["outputs"] = [{"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}]


@edit("cheat")
def gives_a_cell_the_id_of_a_test(notebook: Notebook, folder: Path) -> None:
    """Adds a cell of its own, unlocked, with the grade id of each test."""
    solve(notebook, JUNK)
    for number, cell in enumerate(test_cells(notebook)):
        mine = code("100.0", f"mine-{number}", nbgrader={**marks(cell), "locked": False, "solution": True})
        notebook["cells"].insert(0, mine)


@edit("harm")
def asks_for_another_kernel(notebook: Notebook, folder: Path) -> None:
    """Names a kernel that would run a command."""
    solve(notebook, FAIL)
    spec = {"name": "../../bin/sh", "display_name": "sh", "language": "bash", "argv": ["sh", "-c", "touch pwned"]}
    notebook["metadata"] = {"kernelspec": spec, "language_info": {"name": "bash"}, "qkv": {"digest": "forged"}}


@edit("harm")
def nests_its_metadata(notebook: Notebook, folder: Path) -> None:
    """Nests metadata five hundred deep and makes types of cells up."""
    solve(notebook, FAIL)
    deep: dict = {}
    for _ in range(500):
        deep = {"deep": deep}
    answer_cell(notebook)["metadata"]["deep"] = deep
    notebook["cells"].append({"cell_type": "evil", "id": "evil", "metadata": {}, "source": ""})


@edit("cheat")
def puts_code_into_markdown(notebook: Notebook, folder: Path) -> None:
    """Puts its marks and scripts into markdown, attachments and outputs of ordinary cells."""
    solve(notebook, JUNK)
    script = "<script>document.querySelectorAll('.score').forEach(e => e.innerText = '100')</script>"
    notebook["cells"].append({"cell_type": "markdown", "id": "script", "metadata": {}, "source": script})
    html = {"output_type": "display_data", "data": {"text/html": script}, "metadata": {}}
    notebook["cells"].append({**code("pass", "shown"), "outputs": [html]})


@edit("cheat")
def unlocks_by_position(notebook: Notebook, folder: Path) -> None:
    """Moves the tests above the answer and a redefinition of the answer's name below them."""
    solve(notebook, FAIL)
    tests = test_cells(notebook)
    rest = [cell for cell in notebook["cells"] if not any(cell is test for test in tests)]
    notebook["cells"] = [*tests, *rest, code("fused_self_attention = lambda *a: 100.0", "late")]
