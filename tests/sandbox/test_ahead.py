"""Cells that are compiled before they are handed in: faster, and in nothing else different."""

from __future__ import annotations

import warnings

import pytest

from graders.sandbox.box import Limits, Sandbox
from graders.sandbox.inside import cells
from sandbox.conftest import run

LESSON = ["import numpy as np\nx = np.arange(3)\nx", "def double(y):\n    return 2 * y\nprint(double(4))", "double(5)"]
WARNS = [r"print('\d')", "print(1 is 1)"]
BROKEN = ["def half(:", "return 3", "'\0'", "if True:\n        a = 1\n    b = 2\n"]
FUTURE = "from __future__ import annotations"
ENDLESS = "!true\n" * 501  # more than IPython rewrites
LONG = "total = " + " + ".join("1" for _ in range(600))
MAGIC = ["%time 1 + 1", "%%time\n1 + 1", "x?", "!ls", "await_ = 1"]


@pytest.fixture(scope="module")
def ahead():
    """A sandbox that was told all of these cells."""
    with Sandbox(("numpy",), Limits(), sources=[FUTURE, *LESSON, *WARNS, *BROKEN, *MAGIC, ENDLESS, LONG]) as sandbox:
        yield sandbox


def shown(sandbox, *sources):
    """What each cell puts out, and whether it came to its end."""
    return [(cell.outputs, cell.ok, cell.count) for cell in run(sandbox, *sources)]


def test_cells_that_were_known_put_out_what_others_do(ahead, sandbox):
    """Values, prints, warnings and errors with their lines are those of a sandbox that never saw the cells."""
    sources = [*LESSON, *WARNS, *BROKEN]
    assert shown(ahead, *sources) == shown(sandbox, *sources)


def test_known_cells_are_not_compiled_again(ahead):
    """Told to keep what it compiles, a child that runs the lesson keeps nothing but the statement that counts."""
    watch = "compiler = get_ipython().compile; before = len(compiler.compiled); compiler.keeps = True"
    *_, (outputs, _, _) = shown(ahead, watch, *LESSON, "print(before, len(compiler.compiled) - before)")
    assert outputs[0]["text"] == "9 1\n"  # six of the lesson, LONG, `await_`, and what %%time becomes


def test_a_students_own_transformers_change_known_cells_too(ahead):
    """What was compiled ahead is not run where the notebook asked for every tree to be changed."""
    change = (
        "import ast\n"
        "class Ten(ast.NodeTransformer):\n"
        "    def visit_Constant(self, node):\n"
        "        return ast.Constant(10) if node.value == 4 else node\n"
        "get_ipython().ast_transformers.append(Ten())"
    )
    *_, (outputs, ok, _) = shown(ahead, change, *LESSON[:2])
    assert ok
    assert outputs[0]["text"] == "20\n"


def test_a_future_import_changes_how_known_cells_are_read(ahead, sandbox):
    """Flags that a cell turns on hold for all later ones, known or not, and for nobody who did not run it."""
    annotated = "def f(x: nowhere): return x\nprint(f.__annotations__)"
    for sources in ([FUTURE, annotated, *LESSON], [annotated, *LESSON]):
        assert shown(ahead, *sources) == shown(sandbox, *sources)


def test_a_known_cell_may_be_too_deep_for_a_students_transformer(ahead, sandbox):
    """IPython goes on without a transformer that fails, and the cell runs."""
    change = "import ast\nget_ipython().ast_transformers.append(ast.NodeTransformer())"
    for walls in (ahead, sandbox):
        *_, (outputs, ok, _) = shown(walls, change, LONG, "print(total)")
        assert ok
        assert outputs[-1]["text"] == "600\n"


def test_the_same_known_cell_twice_is_the_same_cell(ahead, sandbox):
    """A mode in which the shell adds to what it runs leaves no trace in what is kept."""
    mode = "get_ipython().ast_node_interactivity = '{}'"
    sources = [mode.format("last_expr_or_assign"), "await_ = 1", mode.format("last_expr"), "await_ = 1"]
    assert shown(ahead, *sources) == shown(sandbox, *sources)


def test_what_is_known_may_be_long():
    """A released notebook is longer than what a command line can hold."""
    many = [f"name_{number} = '{'x' * 1000}'" for number in range(300)]
    with Sandbox((), Limits(), sources=many) as sandbox:
        ((outputs, _, _),) = shown(sandbox, "print(len(get_ipython().compile.compiled))")
    assert outputs[0]["text"] == "300\n"


def test_reading_a_cell_warns_once_it_runs_and_not_before():
    """The text of a cell is kept as read only where reading it says nothing."""
    cells.PARSED.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert cells._is_python("x = 1")
        assert cells._is_python(r"x = '\d'")
        assert not cells._is_python("x = (")
    assert list(cells.PARSED) == ["x = 1"]


@pytest.mark.slow
def test_torch_is_loaded_as_far_as_notebooks_use_it(make_sandbox):
    """Training is for whoever trains: the zygote has no compiler of torch, and an optimiser still works in a child."""
    sandbox = make_sandbox(("torch",), Limits())
    train = (
        "import sys, torch\n"
        "print('torch._dynamo' in sys.modules)\n"
        "layer = torch.nn.Linear(2, 1)\n"
        "optimiser = torch.optim.Adam(layer.parameters(), lr=0.1)\n"
        "before = layer(torch.ones(1, 2)).sum().item()\n"
        "layer(torch.ones(1, 2)).sum().backward()\n"
        "optimiser.step()\n"
        "print(layer(torch.ones(1, 2)).sum().item() < before)"
    )
    ((outputs, ok, _),) = shown(sandbox, train)
    assert ok, outputs
    assert outputs[0]["text"] == "False\nTrue\n"
