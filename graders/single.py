"""One hand-in at a time, without a gradebook: a notebook, or answers in plain Python files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graders.ahead import modules_for
from graders.authoring import Exercise, UsageError, load_exercise, slugs
from graders.build import expect_instances, load
from graders.grading import Job, grade, ungraded
from graders.hand_in import Notebook, grade_hand_in, job_for
from graders.intake import NotGradable, grade_ids, read_notebook, rebuild
from graders.sandbox.box import Limits, Sandbox
from graders.settings import Course
from graders.verdict import Finding, Verdict

MAX_ANSWER_BYTES = 1 << 20


def check_notebook(course: Course, path: Path, student: str, seed: int | None, kind: Any = "auto") -> Verdict:
    """The verdict on the notebook at `path`, for the assignment whose cells it has."""
    if not path.exists():
        raise UsageError(f"there is no file {path}")
    try:
        submitted, repairs = read_notebook(path)
    except NotGradable as problem:
        if path.stem not in slugs():
            raise
        return ungraded(course.settings.exercise(path.stem), student, problem.finding)
    slug, released = _assignment(course, submitted, path)
    exercise = course.settings.exercise(slug)
    expect_instances(exercise, released, "the released")
    try:
        hand_in = rebuild(submitted, released)
    except NotGradable as problem:
        return ungraded(exercise, student, problem.finding, repairs)
    findings = (*repairs, *hand_in.findings)
    settings = course.settings
    job = job_for(settings, slug, student, replace(hand_in, findings=findings))
    job = job if seed is None else replace(job, seed=seed)
    with Sandbox(modules_for(exercise.slug), settings.limits(), kind) as sandbox:
        return grade_hand_in(job, sandbox).verdict


def _assignment(course: Course, submitted: Notebook, path: Path) -> tuple[str, Notebook]:
    """The released notebook that shares most cells with `submitted`; its own name only breaks ties."""
    theirs = {str(cell.get("id")) for cell in submitted["cells"]} | set(grade_ids(submitted))
    shared: dict[str, int] = {}
    releases: dict[str, Notebook] = {}
    for slug in slugs():
        if course.released(slug).exists():
            releases[slug] = load(course.released(slug))
            shared[slug] = len(theirs & set(grade_ids(releases[slug]))) * 2 + (slug == path.stem)
    if not releases:
        raise UsageError("nothing is released here: release/ holds no notebook; run qkv build and qkv release")
    best = max(shared, key=lambda slug: shared[slug])
    if shared[best] == 0:
        raise UsageError(f"{path} has no cell of any released assignment ({', '.join(releases)}) and no name of one")
    return best, releases[best]


def judge_files(
    slug: str, paths: Sequence[Path], student: str, seed: int | None, kind: Any = "auto", limits: Limits | None = None
) -> list[Verdict]:
    """The verdicts on answers in plain Python files, in the order given."""
    exercise = load_exercise(slug)
    for path in paths:
        if not path.is_file():
            raise UsageError(f"there is no file {path}; give answers as Python files")
    with Sandbox(exercise.uses, limits, kind) as sandbox:
        return [_judge_file(exercise, path, student, seed, sandbox) for path in paths]


def read_answer(path: Path) -> str:
    """The text of an answer in a Python file; UsageError where it cannot be read."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ANSWER_BYTES + 1)
        if len(data) > MAX_ANSWER_BYTES:
            raise ValueError(f"it has more than the {MAX_ANSWER_BYTES} bytes that are read")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None


def _judge_file(exercise: Exercise, path: Path, student: str, seed: int | None, sandbox: Sandbox) -> Verdict:
    try:
        source = read_answer(path)
    except UsageError as error:
        return ungraded(exercise, student, Finding("error", "unreadable", str(error)))
    job = Job(exercise, student, (source,)) if seed is None else Job(exercise, student, (source,), seed=seed)
    verdict, _ = grade(job, sandbox)
    return verdict if student else replace(verdict, student=path.stem)
