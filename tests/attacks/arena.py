"""The course that attacks on us meet: a gradebook, answers, other students, a sandbox and a small exercise."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from attacks.casebook import ATTACKS, FAIL, JUNK, Notebook, code, solve
from attacks.outcome import FORGED, FORGED_YEAR, SHOWS_INPUTS, Outcome, State, echoed, reached, states
from graders.authoring import Exercise, expect_array, expect_close, expect_unchanged
from graders.grading import Job, grade
from graders.intake import NotGradable, executable, receive, submitted_at
from graders.sandbox import child as child_module
from graders.sandbox.box import Kind, Limits, Sandbox
from graders.sandbox.session import CellRun
from graders.student import Student
from graders.verdict import Verdict

REPOSITORY = Path(__file__).parents[2]
GRADEBOOK = """
create table grade_cells (id text, max_score real);
create table submitted_assignment (id text, student_id text);
create table submitted_notebook (id text, assignment_id text);
create table grade (cell_id text, notebook_id text, auto_score real, extra_credit real);
insert into grade_cells values ('value', 4);
insert into submitted_assignment values ('a', 'me');
insert into submitted_notebook values ('n', 'a');
insert into grade values ('value', 'n', 0, 0);
"""
LIMITS = Limits(call=1.0, cell=3.0, hand_in=15.0, memory=512 << 20, file=1 << 20, processes=32, scratch=8 << 20)

HONEST = """
def fused_self_attention(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    scores = Q @ np.swapaxes(K, -1, -2) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V
"""

exercise = Exercise("attacked")
exec(HONEST, names := {"np": np})
right = names["fused_self_attention"]


def _inputs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    return rng.normal(size=(5, 7)), rng.normal(size=(7, 12)), 0.6


@exercise.check(points=1)
def shape(student: Student, rng: np.random.Generator) -> None:
    """The output has a row for every token."""
    expect_array(student.fused_self_attention(*_inputs(rng)), shape=(5, 4), name="the output")


@exercise.check(points=2)
def unchanged(student: Student, rng: np.random.Generator) -> None:
    """What the function is given stays as it is, and the output is a number in every place."""
    X, W, scale = _inputs(rng)
    seen = student.observe("fused_self_attention", X, W, scale)
    expect_unchanged([X, W], seen.arguments, names=("X", "W_qkv"))
    expect_close(seen.value, right(X, W, scale), name="the output")


@exercise.check(points=4)
def value(student: Student, rng: np.random.Generator) -> None:
    """The output is that of the formula, twice."""
    for X, W, scale in (_inputs(rng), _inputs(rng)):
        expect_close(student.fused_self_attention(X, W, scale), right(X, W, scale), name="the output")


@exercise.check(points=3)
def batched(student: Student, rng: np.random.Generator) -> None:
    """A batch is a batch."""
    X, W, scale = rng.normal(size=(3, 5, 7)), rng.normal(size=(7, 12)), 0.6
    expect_close(student.fused_self_attention(X, W, scale), right(X, W, scale), name="the output")


def released() -> Notebook:
    """The notebook that students get."""

    def marked(id: str, source: str, **nbgrader: object) -> dict:
        about = {"grade": False, "grade_id": id, "locked": False, "schema_version": 3, "solution": False, "task": False}
        return code(source, id, nbgrader={**about, **nbgrader})

    checks = [
        marked(check.id, f"# {check.title}", grade=True, locked=True, points=check.points)
        for check in exercise.checks.values()
    ]
    answer = marked("fused_self_attention", FAIL.strip(), solution=True)
    cells = [code("import numpy as np", "imports"), answer, *checks, code("x = 1", "scratch")]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


@dataclass
class Arena:
    """Where attacks happen, and how to see what they did."""

    sandbox: Sandbox
    course: Path
    deserved: frozenset[str] = field(init=False)
    """The checks that an answer of the right shape passes, whatever its numbers; no attack may pass another."""
    idle: frozenset[int] = field(init=False)
    """The processes of a sandbox in which nobody is graded: an attack must leave them alive, and no other."""

    def __post_init__(self) -> None:
        self.deserved = earned(self.judge(JUNK)[0])
        time.sleep(0.5)  # the children so far are gone by then
        self.idle = frozenset(self.processes())

    def attacked_by(self, name: str) -> Outcome:
        """What comes of it when the attack `name` is handed in and graded, and after it an honest student."""
        files = self.files()
        folder = self.hand_in(name)
        sources, refusal = _received(folder)
        started = time.monotonic()
        verdict, runs = self.judge(*sources)
        late = time.monotonic() - started > LIMITS.hand_in + 5
        harm = [*_told(folder, verdict, runs), *(["took longer than it may"] if late else []), *self._left(files)]
        return Outcome(
            earned(verdict) - self.deserved, verdict.score, verdict.max_score, tuple(harm), refusal or _end(verdict)
        )

    def hand_in(self, name: str) -> Path:
        """The attack's folder, as collected."""
        folder = self.course / "submitted" / "me" / "attacked"
        shutil.rmtree(folder, ignore_errors=True)
        lay(name, released(), folder, str(self.course))
        return folder

    def judge(self, *sources: str) -> tuple[Verdict, list[CellRun]]:
        """Grade a notebook with these cells."""
        return grade(Job(exercise, "me", ("import numpy as np", *sources), seed=7), self.sandbox)

    def _left(self, files: dict[str, State]) -> list[str]:
        """What the attack before this left for an honest student, and for us, in words."""
        honest, runs = self.judge(HONEST, "print(sorted(__import__('os').listdir('.')))")
        good = {
            "took marks from the next student": honest.score == exercise.max_score and not honest.findings,
            "left files for the next student": printed(runs) == "[]\n",
            "left processes": _soon(lambda: self.processes() == self.idle),
            "left files in the sandbox": _soon(lambda: not self.leftovers()),
            "changed files of the course": self.files() == files,
        }
        return [words for words, well in good.items() if not well]

    def processes(self) -> set[int]:
        """The sandbox's processes, as this machine numbers them."""
        assert self.sandbox._process is not None
        found, waiting = set(), [self.sandbox._process.pid]
        while waiting:
            pid = waiting.pop()
            found.add(pid)
            with contextlib.suppress(OSError):  # it has ended meanwhile
                for task in Path(f"/proc/{pid}/task").glob("*/children"):
                    waiting += map(int, task.read_text().split())
        return found

    def files(self) -> dict[str, State]:
        """All that an attack should not have touched."""
        return states(self.course, but=[self.course / "submitted" / "me"])

    def leftovers(self) -> list[str]:
        """What children left in the scratch folder, where it can be seen from here."""
        return [path.name for path in Path(self.sandbox.address).parent.glob("scratch/tmp*")]


def lay(name: str, notebook: Notebook, folder: Path, course: str) -> None:
    """Hand the attack `name` on `notebook` in, in `folder`; it is graded where the course is called `course`."""
    folder.mkdir(parents=True)
    ATTACKS[name].edit(notebook, folder)
    text = json.dumps(notebook).replace("COURSE_FOLDER", course).replace("GRADERS_FOLDER", str(REPOSITORY))
    path = folder / "attacked.ipynb"
    if not path.is_symlink():
        path.write_text(text)


def _received(folder: Path) -> tuple[tuple[str, ...], str]:
    """The cells that run of the hand-in in `folder`; none, and why not, where intake refuses it."""
    try:
        hand_in = receive(folder, "attacked", released())
    except NotGradable as problem:
        return (), f"refused: {problem.finding.message.partition(';')[0]}"
    return tuple(source for _, source in executable(hand_in.notebook)), ""


def _told(folder: Path, verdict: Verdict, runs: list[CellRun]) -> list[str]:
    """What the attack saw or had us believe. All of it must be writable as text."""
    json.dumps([run.outputs for run in runs], ensure_ascii=False).encode()
    verdict.to_json().encode()
    at, _ = submitted_at(folder)
    believed = at is not None and at.year == FORGED_YEAR
    shown = echoed("\n".join([*(result.message for result in verdict.checks), *map(str, verdict.findings)]))
    return [*reached(printed(runs)), *[SHOWS_INPUTS] * shown, *[FORGED] * believed]


def _end(verdict: Verdict) -> str:
    """How the attack ended, where it did not end by itself."""
    stopped = [finding for finding in verdict.findings if finding.code == "cell-stopped"]
    unfinished = [result for result in verdict.checks if result.status in ("timeout", "not_run")]
    return "stopped" if stopped or unfinished else ""


def _soon(true: Callable[[], bool], seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


def printed(runs: list[CellRun]) -> str:
    """All that the cells printed."""
    return "".join(output["text"] for run in runs for output in run.outputs if output["output_type"] == "stream")


def earned(verdict: Verdict) -> frozenset[str]:
    """The checks that brought points."""
    return frozenset(result.id for result in verdict.checks if result.score > 0)


def _lay_course(course: Path) -> None:
    """A gradebook with the tables of nbgrader's that attacks know, and its folders, with an answer in them."""
    connection = sqlite3.connect(course / "gradebook.db")
    connection.executescript(GRADEBOOK)
    connection.close()
    notebook = released()
    solve(notebook, HONEST)
    for folder in ("source/attacked", "submitted/neighbour/attacked", "autograded/neighbour/attacked"):
        (course / folder).mkdir(parents=True)
        (course / folder / "attacked.ipynb").write_text(json.dumps(notebook))


@contextlib.contextmanager
def open_arena(course: Path, kind: Kind) -> Iterator[Arena]:
    """An arena in the empty folder `course`. It listens on two sockets, at which no attack may knock."""
    _lay_course(course)
    grace, child_module.GRACE_SECONDS = child_module.GRACE_SECONDS, 0.4
    with contextlib.chdir(course), listening(str(course)), Sandbox(("numpy",), LIMITS, kind) as sandbox:
        try:
            yield Arena(sandbox, course)
        finally:
            child_module.GRACE_SECONDS = grace


@contextlib.contextmanager
def listening(course: str) -> Iterator[None]:
    """A unix socket by path in the folder `course`, and an abstract one with the folder's name."""
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract:
        by_path.bind(f"{course}/socket")
        abstract.bind(f"\0{course}")
        for door in (by_path, abstract):
            door.listen()
        yield
