"""What an attack is, and the few tools that they share.

None solves the exercise, so none may earn a check that `JUNK` does not. What an attack does is harmless where the walls
stand, and as harmless as it can be where they do not: it signals with 0, waits a minute at most, writes small files.
What it reaches all the same it prints, as "LEAK: read the hidden tests;" and whatever more it likes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Notebook = dict[str, Any]
Cell = dict[str, Any]
Kind = Literal["cheat", "harm"]
AssignmentName = Literal["numpy", "torch"]

JUNK = """
def fused_self_attention(X, W_qkv, scale):
    return np.full((*X.shape[:-1], W_qkv.shape[1] // 3), 0.123)
"""
"""The right shape and harmless values, so that only comparing numbers can tell."""

TORCH_JUNK = """
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    out = X @ W_V * 0.5 + (W_Q.sum() + W_K.sum()) * 0
    return out, torch.full((len(X), len(X)), 0.1, dtype=X.dtype)
class SingleHead(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)
    def forward(self, x):
        return self.qkv(x).chunk(3, dim=-1)[2] * 0.5
def to_linear(W):
    return nn.Linear(*W.shape, bias=False)
"""
"""The same for PyTorch: a gradient for each matrix, a module that has its parameter, a layer."""

FAIL = """
def fused_self_attention(X, W_qkv, scale):
    raise NotImplementedError()
"""

TORCH_FAIL = """
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    raise NotImplementedError()
"""


@dataclass(frozen=True)
class Attack:
    """One hand-in that wants marks it did not earn (`cheat`) or to hurt the grading (`harm`).

    `edit(notebook, folder)` changes the released notebook of `assignment` in place and may put files beside it.
    `only_ours` says that it speaks to a part of our grader which stock nbgrader has not.
    """

    name: str
    tries: str
    kind: Kind
    theme: str
    edit: Callable[[Notebook, Path], None]
    only_ours: bool = False
    assignment: AssignmentName = "numpy"


ATTACKS: dict[str, Attack] = {}
Edit = Callable[[Notebook, Path], None]


def edit(kind: Kind, *, only_ours: bool = False, assignment: AssignmentName = "numpy") -> Callable[[Edit], Edit]:
    """Register an attack that changes the notebook or the folder; its docstring says what it tries."""

    def register(function: Edit) -> Edit:
        name, theme = function.__name__, function.__module__.rpartition(".")[2]
        assert name not in ATTACKS, name
        ATTACKS[name] = Attack(name, str(function.__doc__).strip(), kind, theme, function, only_ours, assignment)
        return function

    return register


def answer(
    kind: Kind, *, only_ours: bool = False, assignment: AssignmentName = "numpy"
) -> Callable[[Callable[[], str]], Callable[[], str]]:
    """Register an attack that is the text of the answer cell, which the function returns."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        def change(notebook: Notebook, folder: Path) -> None:
            solve(notebook, function())

        change.__name__, change.__doc__, change.__module__ = function.__name__, function.__doc__, function.__module__
        edit(kind, only_ours=only_ours, assignment=assignment)(change)
        return function

    return register


def body(source: str, head: str = "") -> str:
    """An answer whose function does `source`, after the lines `head`."""
    lines = textwrap.indent(textwrap.dedent(source).strip("\n"), "    ")
    return f"{textwrap.dedent(head)}\ndef fused_self_attention(X, W_qkv, scale):\n{lines}\n"


# --- reading and changing a notebook ----------------------------------------------------------------------------------


def marks(cell: Cell) -> dict[str, Any]:
    """What nbgrader's metadata say of `cell`."""
    return cell["metadata"].get("nbgrader", {})


def answer_cell(notebook: Notebook) -> Cell:
    """The cell that the student fills in."""
    return next(cell for cell in notebook["cells"] if marks(cell).get("solution"))


def test_cells(notebook: Notebook) -> list[Cell]:
    """The graded cells."""
    return [cell for cell in notebook["cells"] if marks(cell).get("grade")]


test_cells.__test__ = False  # type: ignore[attr-defined]


def solve(notebook: Notebook, source: str) -> None:
    """`source` in the answer cell."""
    answer_cell(notebook)["source"] = textwrap.dedent(source).strip("\n")


def place(notebook: Notebook, cell: Cell) -> int:
    """Where `cell` itself stands."""
    return next(index for index, other in enumerate(notebook["cells"]) if other is cell)


def code(source: str, id: str, **metadata: Any) -> Cell:
    """A code cell."""
    text = textwrap.dedent(source).strip("\n")
    about = {"cell_type": "code", "execution_count": None, "id": id, "outputs": []}
    return {**about, "metadata": metadata, "source": text}
