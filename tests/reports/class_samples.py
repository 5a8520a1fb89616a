"""A made-up class: `python -m tests.reports.class_samples FOLDER` makes a course folder of 60 for the eye."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from graders import history
from graders.authoring import load_exercise
from graders.settings import CONFIG_FILE, VERDICT, Course, open_course
from graders.verdict import CheckResult, Finding, Verdict

ROOT = Path(__file__).parents[2]
SLUG = "fused_self_attention"
EXERCISE = load_exercise(SLUG)

COMMON = {
    "fused_softmax_over_queries": 0.25, "causal_softmax_over_queries": 0.2, "fused_forgets_scale": 0.2,
    "cross_forgets_scale": 0.15, "causal_masks_after_softmax": 0.3, "torch_masks_after_softmax": 0.2,
    "fused_overflows": 0.15, "head_transposes_weights": 0.1, "torch_cuts_the_graph": 0.1,
    "linear_keeps_random_bias": 0.1,
}  # fmt: skip


def verdict(student: str, ideas: Sequence[str] = (), *, failed: Sequence[str] = (), **more) -> Verdict:
    """The verdict on a hand-in with these ideas: each shows in its own check; the checks `failed` fail unexplained."""
    shown: dict[str, tuple[str, ...]] = {id: () for id in failed}
    for idea in ideas:
        shown.setdefault(EXERCISE.misconceptions[idea].first_fails, (idea,))
    checks = tuple(
        CheckResult(
            id, check.title, check.points, 0.0 if id in shown else check.points, "failed" if id in shown else "passed",
            f"secret words to {student}", shown.get(id, ()),
        )
        for id, check in EXERCISE.checks.items()
    )  # fmt: skip
    told = {"seconds": 1.0, "fingerprint": f"{student}-{'-'.join(ideas)}", **more}
    score = sum(check.score for check in checks)
    return Verdict(student, SLUG, score, EXERCISE.max_score, "bwrap+strict", checks, **told)


def not_graded(student: str, file: str) -> Verdict:
    """Zero, because of what is told about `file`."""
    finding = Finding("error", "conflict", f"{file}: merge conflict markers at line 88")
    checks = tuple(replace(c, status="not_run", score=0.0, misconceptions=()) for c in verdict(student).checks)
    return replace(verdict(student), score=0.0, checks=checks, findings=(finding,), fingerprint="")


def course_in(folder: Path, verdicts: Sequence[Sequence[Verdict]]) -> Course:
    """A course folder that holds, for each student, what was graded in this order."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / CONFIG_FILE, folder)
    course = open_course(folder)
    for versions in verdicts:
        for each in versions:
            place = course.folder("autograded") / each.student / SLUG
            place.mkdir(parents=True, exist_ok=True)
            history.keep(place, each)
            (place / VERDICT).write_text(each.to_json(), encoding="utf-8")
    return course


def made_up(size: int) -> list[list[Verdict]]:
    """A class of `size` with common ideas, some of whom hand in again with one idea less."""
    rng = np.random.default_rng(1)
    return [_versions(f"student-name-{number}", rng) for number in range(size)]


def _versions(name: str, rng: np.random.Generator) -> list[Verdict]:
    ideas = [idea for idea, share in COMMON.items() if rng.random() < share]
    seconds = float(rng.gamma(3, 0.4))
    if rng.random() < 0.06:
        return [not_graded(name, f"{name} final.ipynb")]
    renamed = Finding("warning", "renamed", f"renamed: {name} (2).ipynb was graded; its name should be {SLUG}.ipynb")
    more = {"seconds": seconds, "findings": (renamed,) if rng.random() < 0.08 else ()}
    # A check that chance decides, and one that better students fail.
    failed = [id for id, odds in (("head_bias", 0.5), ("torch_flag", 0.1 if ideas else 0.6)) if rng.random() < odds]
    versions = [verdict(name, ideas, failed=failed, **more)]
    if ideas and rng.random() < 0.4:
        versions.append(verdict(name, ideas[1:], failed=failed, **more))
    return versions


if __name__ == "__main__":
    course_in(Path(sys.argv[1]), made_up(60))
