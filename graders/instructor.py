"""What the hidden region of a graded cell calls when an instructor runs a source notebook from top to bottom."""

from __future__ import annotations

import os

from graders.authoring import CheckFailed, load_exercise
from graders.student import LocalStudent, StudentError


class NotPassed(AssertionError):
    """A check that the notebook's own answers do not pass."""


def grade(slug: str, check_id: str) -> float:
    """Judge this kernel's names by one check, and return its points. For an instructor's own kernel only.

    In a stock kernel that autogrades (NBGRADER_EXECUTION=autograde) it raises: marks come from the trusted process
    alone, so if that was not configured, nothing may be earned.
    """
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        raise RuntimeError("hidden checks do not run inside a student's kernel; is nbgrader_config.py in this folder?")
    from IPython import get_ipython

    shell = get_ipython()
    exercise = load_exercise(slug)
    check = exercise.checks[check_id]
    try:
        check(LocalStudent(shell.user_ns if shell else {}), exercise.rng(check_id, seed=0))
    except (CheckFailed, StudentError) as failure:
        raise NotPassed(f"{check.title}: {failure}") from None
    return check.points
