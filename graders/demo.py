"""`make demo`: build, release, hand in, grade, feedback, for a class of fake students in a folder of its own.

The students are made from the worked notebooks, so there is nothing stored that could go stale. Their wrong answers are
such as people write; the grader knows nothing of who is who.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graders.authoring import load_exercise, slugs
from graders.build import answer_source, load
from graders.reports.table import show_overview
from graders.settings import CONFIG_FILE
from graders.verdict import Verdict

Notebook = dict[str, Any]
Cell = dict[str, Any]
MARK = ".made-by-make-demo"

WRONG: dict[str, dict[str, str]] = {
    "attention_shapes": {
        "transposed": """
def attention_shapes(B, T_q, T_k, d, d_k, d_v):
    return {
        "X_q": (B, T_q, d), "X_kv": (B, T_k, d), "W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v),
        "Q": (B, T_q, d_k), "K": (B, T_k, d_k), "V": (B, T_k, d_v),
        "scores": (B, T_k, T_q), "weights": (B, T_k, T_q), "output": (B, T_q, d_v),
    }
""",
        "width": """
def attention_shapes(B, T_q, T_k, d, d_k, d_v):
    return {
        "X_q": (B, T_q, d), "X_kv": (B, T_k, d), "W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v),
        "Q": (B, T_q, d_k), "K": (B, T_k, d_k), "V": (B, T_k, d_v),
        "scores": (B, T_q, T_k), "weights": (B, T_q, T_k), "output": (B, T_q, d_k),
    }
""",
    },
    "derive_by_hand": {
        "transposed": "scores = raw_scores",
        "width": "weights = [[1 / 3] * 3] * 3",
    },
    "previous_token_head": {
        "transposed": """
def previous_token_head(n_vocab, T):
    d = n_vocab + T
    W_Q, W_K, W_V = np.zeros((d, T)), np.zeros((d, T)), np.zeros((d, n_vocab))
    W_Q[n_vocab:] = 50 * np.eye(T, k=1)
    W_K[n_vocab:] = np.eye(T)
    W_V[:n_vocab] = np.eye(n_vocab)
    return W_Q, W_K, W_V
""",
        "width": """
def previous_token_head(n_vocab, T):
    d = n_vocab + T
    W_Q, W_K, W_V = np.zeros((d, T)), np.zeros((d, T)), np.zeros((d, n_vocab))
    W_Q[n_vocab:] = 3 * np.eye(T, k=-1)
    W_K[n_vocab:] = np.eye(T)
    W_V[:n_vocab] = np.eye(n_vocab)
    return W_Q, W_K, W_V
""",
    },
    "fused_self_attention": {
        "transposed": """
def fused_self_attention(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    scores = Q @ np.swapaxes(K, -1, -2) * scale
    weights = np.exp(scores - scores.max(axis=-2, keepdims=True))
    return weights / weights.sum(axis=-2, keepdims=True) @ V
""",
        "width": """
def fused_self_attention(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V
""",
    },
    "break_sqrt_d": {
        "transposed": """
def score_statistics(q, k, g, scaled):
    scores = q @ k.T / (np.sqrt(q.shape[-1]) if scaled else 1.0)
    weights = np.exp(scores - scores.max(axis=0))
    weights = weights / weights.sum(axis=0)
    grad = weights * (g - (weights * g).sum(axis=-1, keepdims=True))
    return {
        "std": scores.std(), "one_hot": (weights.max(axis=-1) > 0.99).mean(),
        "entropy": -(weights * np.log(weights + 1e-300)).sum(axis=-1).mean(),
        "grad_median": np.median(np.linalg.norm(grad, axis=-1)),
    }
""",
        "width": """
def score_statistics(q, k, g, scaled):
    scores = q @ k.T / (np.sqrt(q.shape[-1]) if scaled else 1.0)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    grad = weights * (g - (weights * g).sum(axis=-1, keepdims=True))
    return {
        "std": scores.std(), "one_hot": (weights.max(axis=-1) > 0.99).mean(),
        "entropy": -(weights * np.log2(weights + 1e-300)).sum(axis=-1).mean(),
        "grad_median": np.median(np.linalg.norm(grad, axis=-1)),
    }
""",
    },
}
"""Two wrong answers per assignment: one for the student `transposed`, one for `width`."""


IMPATIENT = """
# leo's loop never ends; in the demo it costs less than the 10 and 30 seconds that it would cost in a class.
c.QKV.call_seconds, c.QKV.cell_seconds = 2, 3
"""


@dataclass(frozen=True)
class Assignment:
    """What a fake student starts from."""

    slug: str
    released: Notebook
    solutions: dict[str, str]

    def solved(self) -> Notebook:
        """The released notebook with every answer right."""
        notebook = copy.deepcopy(self.released)
        for cell in answer_cells(notebook):
            cell["source"] = self.solutions[cell["id"]]
        return notebook


def assignment_of(slug: str, released: Notebook, student: str) -> Assignment:
    """What `student` gets and would answer: the id that some notebooks ask for is filled in."""
    own = copy.deepcopy(released)
    for cell in own["cells"]:
        if "".join(cell["source"]).startswith("STUDENT = "):
            cell["source"] = f"STUDENT = {student!r}\n"
    answers = load_exercise(slug).answers.items()
    return Assignment(slug, own, {name: _without_marks(answer_source(answer)) for name, answer in answers})


def _without_marks(source: str) -> str:
    """A worked answer as a student would write it."""
    return "\n".join(line for line in source.splitlines() if line.strip()[:3] != "###") + "\n"


def answer_cells(notebook: Notebook) -> list[Cell]:
    """The cells that students fill in."""
    return [cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution")]


def main_answer(assignment: Assignment, notebook: Notebook) -> Cell:
    """The cell of the assignment's main function, or where the answers are values, the one that WRONG replaces."""
    cells = answer_cells(notebook)
    wrong = WRONG[assignment.slug]["transposed"].strip()
    names = [cell for cell in cells if wrong.startswith((f"def {cell['id']}(", f"{cell['id']} ="))]
    return (names or cells)[0]


# --- the class --------------------------------------------------------------------------------------------------------

Hand = Callable[[Assignment, Path], None]


def _save(assignment: Assignment, folder: Path, notebook: Notebook | str, name: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = notebook if isinstance(notebook, str) else json.dumps(notebook, indent=1)
    (folder / f"{name or assignment.slug}.ipynb").write_text(text, encoding="utf-8")


def everything_right(assignment: Assignment, folder: Path) -> None:
    _save(assignment, folder, assignment.solved())


def untouched(assignment: Assignment, folder: Path) -> None:
    _save(assignment, folder, assignment.released)


def _with_wrong(kind: str) -> Hand:
    def hand_in(assignment: Assignment, folder: Path) -> None:
        notebook = assignment.solved()
        answer = WRONG[assignment.slug][kind].strip()
        cells = {cell["id"]: cell for cell in answer_cells(notebook)}
        name = answer.removeprefix("def ").split("(")[0].split(" =")[0]
        cells.get(name, main_answer(assignment, notebook))["source"] = answer + "\n"
        _save(assignment, folder, notebook)

    return hand_in


def first_answer_only(assignment: Assignment, folder: Path) -> None:
    notebook = copy.deepcopy(assignment.released)
    cell = answer_cells(notebook)[0]
    cell["source"] = assignment.solutions[cell["id"]]
    _save(assignment, folder, notebook)


def _around_the_answer(lines: str) -> Hand:
    """The right answer, and `lines` at the top of its cell."""

    def hand_in(assignment: Assignment, folder: Path) -> None:
        notebook = assignment.solved()
        cell = main_answer(assignment, notebook)
        cell["source"] = lines + assignment.solutions[cell["id"]]
        _save(assignment, folder, notebook)

    return hand_in


CHATTY = "import warnings\nwarnings.warn('this is only a warning')\nprint('shapes, shapes, shapes')\n"


def in_torch(assignment: Assignment, folder: Path) -> None:
    notebook = assignment.solved()
    if assignment.slug == "fused_self_attention":
        main_answer(assignment, notebook)["source"] = (
            "import torch\n\ndef fused_self_attention(X, W_qkv, scale):\n"
            "    q, k, v = (torch.as_tensor(X) @ torch.as_tensor(W_qkv)).double().chunk(3, dim=-1)\n"
            "    return torch.softmax(q @ k.mT * scale, dim=-1) @ v\n"
        )
    _save(assignment, folder, notebook)


def _instead(body: str) -> Hand:
    """Functions whose body is `body`."""

    def hand_in(assignment: Assignment, folder: Path) -> None:
        notebook = assignment.solved()
        cell = main_answer(assignment, notebook)
        signature = cell["source"].split("(")[0]
        if signature.startswith("def "):
            cell["source"] = f"{signature}(*arguments):\n    {body}\n"
        else:
            cell["source"] = body.replace("    ", "") + "\n"
        _save(assignment, folder, notebook)

    return hand_in


def copied_cell(assignment: Assignment, folder: Path) -> None:
    notebook = assignment.solved()
    cell = main_answer(assignment, notebook)
    older = copy.deepcopy(cell)
    older["source"] = WRONG[assignment.slug]["transposed"].strip() + "\n"
    notebook["cells"].insert(notebook["cells"].index(cell), older)
    _save(assignment, folder, notebook)


def renamed_file(assignment: Assignment, folder: Path) -> None:
    _save(assignment, folder, assignment.solved(), f"{assignment.slug} final version (2)")


def merge_conflict(assignment: Assignment, folder: Path) -> None:
    lines = json.dumps(assignment.solved(), indent=1).splitlines()
    middle = len(lines) // 2
    lines[middle:middle] = ["<<<<<<< mine", lines[middle], "=======", lines[middle], ">>>>>>> theirs"]
    _save(assignment, folder, "\n".join(lines))


def edited_tests(assignment: Assignment, folder: Path) -> None:
    notebook = copy.deepcopy(assignment.released)
    for cell in notebook["cells"]:
        settings = cell["metadata"].get("nbgrader", {})
        if settings.get("grade"):
            cell["source"] = "assert True"
            settings["points"] = 100
    _save(assignment, folder, notebook)


CLASS: dict[str, Hand] = {
    "ada": everything_right,
    "ben": untouched,
    "chloe": _with_wrong("transposed"),
    "dev": _with_wrong("width"),
    "eli": in_torch,
    "fay": _around_the_answer(CHATTY),
    "gus": first_answer_only,
    "hana": copied_cell,
    "ivan": renamed_file,
    "jo": merge_conflict,
    "kim": edited_tests,
    "leo": _instead("while True: pass"),
    "mia": _instead("import os; os._exit(1)"),
}
"""Who hands in what."""

IN_EVERY_ASSIGNMENT = ("ada", "ben", "chloe", "dev", "gus")
"""The others hand in the one in MAIN only, so that the demo is short."""

MAIN = "fused_self_attention"


# --- the run ----------------------------------------------------------------------------------------------------------


def main() -> int:
    """Make the demo in ./demo; the exit code of the first command that fails in a way that a demo should not."""
    started = time.monotonic()
    folder = Path.cwd() / "demo"
    if folder.exists() and not (folder / MARK).exists():
        print(f"{folder} is there and was not made by make demo; move it away", file=sys.stderr)
        return 2
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / MARK).touch()
    config = (Path.cwd() / CONFIG_FILE).read_text(encoding="utf-8")
    (folder / CONFIG_FILE).write_text(config + IMPATIENT, encoding="utf-8")
    for command in ("build", "release"):
        if code := _qkv(folder, command):
            return code
    print(f"\n{len(CLASS)} students hand in …")
    for slug in slugs():
        _hand_in(folder, slug)
    for slug in slugs():
        code = _qkv(folder, "grade", slug)
        if code not in (0, 3) or not list((folder / "autograded").glob(f"*/{slug}/verdict.json")):
            return code
    if code := _qkv(folder, "report", MAIN):
        return code
    _close(folder, time.monotonic() - started)
    return 0


def _qkv(folder: Path, *words: str) -> int:
    print("\n$ qkv " + " ".join(words), flush=True)
    return subprocess.run([str(Path(sys.executable).parent / "qkv"), *words], cwd=folder, check=False).returncode


def _hand_in(folder: Path, slug: str) -> None:
    released = load(folder / "release" / slug / f"{slug}.ipynb")
    for student, hand in CLASS.items():
        if slug == MAIN or student in IN_EVERY_ASSIGNMENT:
            hand(assignment_of(slug, released, student), folder / "submitted" / student / slug)


def _close(folder: Path, seconds: float) -> None:
    verdicts = [
        Verdict.from_json(path.read_text(encoding="utf-8"))
        for path in sorted((folder / "autograded").glob("*/*/verdict.json"))
    ]
    print()
    show_overview(verdicts)
    page = next((folder / "feedback").glob("chloe/fused_self_attention/*.html"), folder / "feedback")
    print(
        f"\n{len(verdicts)} hand-ins of {len(CLASS)} students, from lessons to feedback in {seconds:.0f} s. Open"
        " in a browser"
    )
    print(f"  {page.relative_to(Path.cwd())}")
    print("for what a student reads,")
    print(f"  demo/reports/{MAIN}/report.html")
    print("for what the class misunderstood, and in JupyterLab (make lab)")
    print("  demo/release/fused_self_attention/fused_self_attention.ipynb   what students get")
    print("  demo/source/fused_self_attention/fused_self_attention.ipynb    what instructors see")
    print("Verdicts as data: demo/autograded/<student>/<assignment>/verdict.json; marks: demo/gradebook.db")


if __name__ == "__main__":
    sys.exit(main())
