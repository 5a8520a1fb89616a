"""Hand-ins that try to earn marks without an answer, or to hurt the grading. None may earn a mark."""

from __future__ import annotations

import copy
from pathlib import Path

from submissions.casebook import (
    Notebook,
    case,
    code,
    edit,
    first_answer,
    insert_before,
    marks,
    place,
    put,
    save,
    stub,
    tests,
    twin,
)

# The right shape and harmless values, so that only comparing numbers can tell.
JUNK = "return np.full((*args[0].shape[:-1], args[1].shape[-1] // 3), 0.123)"


@edit("A87", "zero")
def patched_numpy_testing(notebook: Notebook) -> None:
    """NumPy's comparisons are replaced by ones that always agree."""
    head = """
    import numpy as np
    np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
    np.allclose = np.array_equal = lambda *a, **k: True
    np.isclose = lambda a, b, **k: np.ones_like(a, dtype=bool)
    """
    stub(notebook, JUNK, head)


@edit("A90", "zero")
def strips_asserts(notebook: Notebook) -> None:
    """A transformer takes every assert out of later cells."""
    head = """
    import ast
    class NoAssert(ast.NodeTransformer):
        def visit_Assert(self, node):
            return ast.copy_location(ast.Pass(), node)
        def visit_Expr(self, node):
            return ast.copy_location(ast.Pass(), node) if "assert" in ast.dump(node) else node
    get_ipython().ast_transformers.append(NoAssert())
    """
    stub(notebook, "return None", head)


@edit("A91", "flag zero")
def reads_the_reference_from_frames(notebook: Notebook) -> None:
    """The function looks for a reference in the frames and globals of its callers."""
    stub(
        notebook,
        """
        import sys
        frame = sys._getframe(1)
        while frame is not None:
            for names in (frame.f_locals, frame.f_globals):
                for name in ("_ref", "reference", "expected", "exercise"):
                    if callable(names.get(name)):
                        return names[name](*args)
            frame = frame.f_back
        return args[0]
        """,
    )


@edit("A92", "zero")
def echoes_hidden_inputs(notebook: Notebook) -> None:
    """The function raises an error whose text shows its arguments and the cell that called it."""
    history = "get_ipython().history_manager.input_hist_raw[-1]"
    stub(notebook, f'raise ValueError("args were %r / cell: %s" % (args, {history}))')


@edit("A94", "flag zero")
def hard_coded_answer(notebook: Notebook) -> None:
    """The function returns a stored answer."""
    stub(notebook, "return np.full((*args[0].shape[:-1], args[1].shape[-1] // 3), 0.1)")


@case("A95", "flag full")
def symbolic_link_beside(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A right answer, and a symbolic link out of the folder."""
    save(solved, folder)
    (folder / "helper_data.txt").symlink_to("/etc/hostname")


@edit("h3", "flag zero")
def deletes_tests(notebook: Notebook) -> None:
    """All tests but the first are deleted."""
    stub(notebook, JUNK)
    dropped = [test["id"] for test in tests(notebook)[1:]]
    notebook["cells"] = [cell for cell in notebook["cells"] if cell["id"] not in dropped]


@edit("h4", "flag zero")
def duplicates_the_answer(notebook: Notebook) -> None:
    """A wrong answer, pasted twice."""
    stub(notebook, JUNK)
    cell = first_answer(notebook)
    notebook["cells"].insert(place(notebook, cell), twin(cell))


@edit("h5", "flag zero")
def schema_version_4(notebook: Notebook) -> None:
    """A version of nbgrader's schema that does not exist."""
    stub(notebook, JUNK)
    marks(first_answer(notebook))["schema_version"] = 4


@edit("h6", "flag zero")
def skips_tests_by_tag(notebook: Notebook) -> None:
    """Every test is tagged so that nbclient does not run it."""
    stub(notebook, "raise NotImplementedError()")
    for test in tests(notebook):
        test["metadata"]["tags"] = ["skip-execution"]


@edit("h7", "flag zero")
def unmarks_tests(notebook: Notebook) -> None:
    """Tests are emptied and marked as answers."""
    stub(notebook, JUNK)
    for test in tests(notebook):
        test["source"] = "pass"
        marks(test).update(grade=True, solution=True, locked=False)


@edit("h9", "flag zero")
def patches_between_tests(notebook: Notebook) -> None:
    """A cell above each test replaces NumPy's comparisons."""
    stub(notebook, JUNK)
    patch = "np.testing.assert_allclose = lambda *a, **k: None; np.allclose = lambda *a, **k: True"
    for number, test in enumerate(tests(notebook)):
        notebook["cells"].insert(place(notebook, test), code(patch, f"patch-{number}"))


@case("n1", "flag zero")
def shadows_numpy(released: Notebook, solved: Notebook, folder: Path) -> None:
    """A file numpy.py beside the notebook, whose comparisons always agree."""
    junk = copy.deepcopy(solved)
    stub(junk, JUNK)
    save(junk, folder)
    put(
        folder,
        "numpy.py",
        "import sys\nsys.path.pop(0)\ndel sys.modules['numpy']\nimport numpy\nnumpy.allclose = lambda *a, **k: True\n",
    )


@case("n3", "flag zero")
def link_to_the_gradebook(released: Notebook, solved: Notebook, folder: Path) -> None:
    """No answer, and a symbolic link to the gradebook."""
    unsolved = copy.deepcopy(solved)
    stub(unsolved, "raise NotImplementedError()")
    save(unsolved, folder)
    (folder / "notes.txt").symlink_to("../../../gradebook.db")


@case("C30", "flag zero")
def notebook_is_a_link(released: Notebook, solved: Notebook, folder: Path) -> None:
    """The notebook itself is a symbolic link to another student's."""
    neighbour = folder.parent / "neighbour"
    save(solved, neighbour, folder.name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{folder.name}.ipynb").symlink_to(neighbour / f"{folder.name}.ipynb")


@edit("C31", "flag zero")
def answer_carries_a_test(notebook: Notebook) -> None:
    """A cell of the student's has the grade id of a test, twice, and full points in its text."""
    stub(notebook, JUNK)
    test = tests(notebook)[0]
    insert_before(notebook, first_answer(notebook), "100.0")
    notebook["cells"][place(notebook, first_answer(notebook)) - 1]["metadata"] = copy.deepcopy(test["metadata"])
