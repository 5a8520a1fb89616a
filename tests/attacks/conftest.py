"""The course that the attacks meet: a gradebook, answers, other students, a sandbox and a small exercise."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from attacks.casebook import FAIL, JUNK, Notebook, code, solve
from graders.authoring import Exercise, expect_array, expect_close, expect_unchanged
from graders.grading import Job, grade
from graders.sandbox import child as child_module
from graders.sandbox.box import Limits, Sandbox, available_kinds
from graders.sandbox.session import CellRun
from graders.student import Student
from graders.verdict import Verdict

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
    idle: frozenset[int] = frozenset()
    """The processes of a sandbox in which nobody is graded: an attack must leave them alive, and no other."""

    def judge(self, *sources: str) -> tuple[Verdict, list[CellRun]]:
        """Grade a notebook with these cells."""
        return grade(Job(exercise, "me", ("import numpy as np", *sources), seed=7), self.sandbox)

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

    def files(self) -> dict[str, tuple[str, int, int]]:
        """Digest, time and mode of all that an attack should not have touched."""
        return {str(path): _state(path) for path in self.course.rglob("*") if "me" not in path.parts}

    def leftovers(self) -> list[str]:
        """What children left in the scratch folder, where it can be seen from here."""
        return [path.name for path in Path(self.sandbox.address).parent.glob("scratch/tmp*")]


def _state(path: Path) -> tuple[str, int, int]:
    found = path.lstat()
    digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
    return digest, found.st_mtime_ns if path.is_file() else 0, found.st_mode


def _lay_course(course: Path) -> None:
    """A gradebook and the folders that nbgrader has, with an answer in them."""
    connection = sqlite3.connect(course / "gradebook.db")
    connection.execute("create table grade (student text, score real)")
    connection.executemany("insert into grade values (?, ?)", [("me", 0.0), ("neighbour", 9.0)])
    connection.commit()
    connection.close()
    notebook = released()
    solve(notebook, HONEST)
    for folder in ("source/attacked", "submitted/neighbour/attacked", "autograded/neighbour/attacked"):
        (course / folder).mkdir(parents=True)
        (course / folder / "attacked.ipynb").write_text(json.dumps(notebook))


SANDBOXES = [
    pytest.param(kind, marks=[pytest.mark.slow] if number else []) for number, kind in enumerate(available_kinds())
]


@pytest.fixture(scope="session", params=SANDBOXES)
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A course with a sandbox; the best one in every run, the weaker one in slow runs."""
    course, here = tmp_path_factory.mktemp("course"), Path.cwd()
    _lay_course(course)
    grace, child_module.GRACE_SECONDS = child_module.GRACE_SECONDS, 0.4
    os.chdir(course)
    try:
        with Sandbox(("numpy",), LIMITS, request.param) as sandbox:
            time.sleep(0.5)  # the child that probed the walls is gone by then
            arena = Arena(sandbox, course)
            arena.idle = frozenset(arena.processes())
            yield arena
    finally:
        os.chdir(here)
        child_module.GRACE_SECONDS = grace


def earned(verdict: Verdict) -> set[str]:
    """The checks that brought points."""
    return {result.id for result in verdict.checks if result.score > 0}


@pytest.fixture(scope="session")
def junk_earns(arena: Arena) -> set[str]:
    """What an answer of the right shape earns, and therefore nobody else more than that."""
    return earned(arena.judge(JUNK)[0])
