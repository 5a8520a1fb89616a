"""One hand-in as a pure job: a clean notebook in, a verdict and the autograded notebook out.

A job is small, can be pickled, and needs the installed package alone, so it runs in a worker process or on another
machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graders.authoring import Exercise, load_exercise
from graders.grading import Job, grade, ungraded
from graders.intake import HandIn, executable
from graders.intake.cells import role
from graders.reports.cell import cell_outputs
from graders.sandbox.box import Sandbox
from graders.sandbox.session import CellRun
from graders.settings import QKV
from graders.verdict import Finding, Verdict

Notebook = dict[str, Any]


@dataclass(frozen=True)
class HandInJob:
    """What a worker is given: a hand-in that intake has rebuilt, and how to grade it."""

    slug: str
    student: str
    hand_in: HandIn
    points: Mapping[str, float] = field(default_factory=dict)
    seed: int = field(default_factory=lambda: secrets.randbits(48))
    reveal: bool = False
    aliases: tuple[str, ...] = ()
    classmates: tuple[str, ...] = ()

    @functools.cached_property
    def weight(self) -> int:
        """Characters in it, those of pictures included."""
        cells = self.hand_in.notebook["cells"]
        pictures = [data for cell in cells for kinds in cell.get("attachments", {}).values() for data in kinds.values()]
        return sum(map(len, pictures)) + sum(len(cell["source"]) for cell in cells)

    @property
    def fingerprint(self) -> str:
        """What tells whether the same hand-in was graded in the same way before."""
        sources = [source for _, source in executable(self.hand_in.notebook)]
        findings = [finding.message for finding in self.hand_in.findings]
        release = self.hand_in.notebook["metadata"].get("qkv")
        told = [sorted(self.points.items()), self.reveal, self.aliases]
        parts = [self.slug, self.student, sources, findings, release, *told]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:20]


@dataclass(frozen=True)
class Graded:
    """What comes back: the verdict, the notebook to keep, and the answer cells that the student had changed."""

    verdict: Verdict
    notebook: Notebook
    answered: tuple[str, ...] = ()


def job_for(settings: QKV, slug: str, student: str, hand_in: HandIn) -> HandInJob:
    """The job that grades `hand_in` as this course's settings say."""
    points = dict(settings.points.get(slug, {}))
    aliases = tuple(settings.aliases_of(student))
    return HandInJob(slug, student, hand_in, points=points, reveal=settings.reveal_expected, aliases=aliases)


def with_seed_of(before: Verdict | None, job: HandInJob) -> HandInJob:
    """`job` on the hidden inputs of the verdict that was given before, if there was one."""
    return replace(job, seed=before.seed) if before is not None and before.seed else job


def grade_hand_in(job: HandInJob, sandbox: Sandbox) -> Graded:
    """Grade one hand-in; whatever is wrong with it is in the verdict."""
    exercise = load_exercise(job.slug).with_points(job.points)
    sources = tuple(source for _, source in executable(job.hand_in.notebook))
    plan = Job(exercise, job.student, sources, job.hand_in.findings, job.seed, job.reveal, job.aliases, job.classmates)
    verdict, runs = grade(plan, sandbox)
    findings = (*verdict.findings, *_failed_imports(job.hand_in.notebook, runs))
    verdict = replace(verdict, fingerprint=job.fingerprint, findings=findings)
    return Graded(verdict, with_outputs(job.hand_in.notebook, verdict, runs), job.hand_in.answered)


def _failed_imports(notebook: Notebook, runs: Sequence[CellRun]) -> list[Finding]:
    """Cells that are not the student's to write and cannot import: the fault may be the grader's environment."""
    failed = [
        number
        for number, ((index, _), run) in enumerate(zip(executable(notebook), runs, strict=False), start=1)
        if role(notebook["cells"][index]) != "answer"
        and any(output.get("ename") in ("ImportError", "ModuleNotFoundError") for output in run.outputs)
    ]
    if not failed:
        return []
    cells = f"code cell{'s' if failed[1:] else ''} {', '.join(map(str, failed))}"
    what = f"{cells}: an import failed; where it is not the student's own, qkv-course is not installed as it should be"
    return [Finding("warning", "import-failed", what)]


def not_graded(
    exercise: Exercise, student: str, released: Notebook, finding: Finding, findings: Sequence[Finding] = ()
) -> Graded:
    """Zero, with the reason, and the released notebook so that there is a page to read."""
    verdict = ungraded(exercise, student, finding, findings)
    return Graded(verdict, with_outputs(released, verdict, []))


def with_outputs(notebook: Notebook, verdict: Verdict, runs: Sequence[CellRun]) -> Notebook:
    """`notebook` with what its cells put out, and the verdict in every graded cell."""
    results = {result.id: result for result in verdict.checks}
    ran = {index: run for (index, _), run in zip(executable(notebook), runs, strict=False)}
    cells = []
    for index, cell in enumerate(notebook["cells"]):
        settings = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and settings.get("grade") and settings.get("grade_id") in results:
            result = results[settings["grade_id"]]
            cell = {**cell, "outputs": cell_outputs(result), "execution_count": None}
        elif cell["cell_type"] == "code":
            run = ran.get(index, CellRun())
            cell = {**cell, "outputs": _shown(run), "execution_count": run.count}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _shown(run: CellRun) -> list[dict[str, Any]]:
    if not run.stopped:
        return run.outputs
    note = {"output_type": "stream", "name": "stderr", "text": f"[this cell was {run.stopped}]\n"}
    return [*run.outputs, note]
