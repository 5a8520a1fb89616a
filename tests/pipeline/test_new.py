"""`qkv new`: an exercise from the template is whole from its first minute."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from pipeline.conftest import ROOT, one_line, run

SLUG = "rotary_positions"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project in which `qkv new` has been run; the environment's packages are found there first."""
    folder = tmp_path_factory.mktemp("project")
    for name in ("graders", "course", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".hypothesis"))
    for name in ("nbgrader_config.py", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    done = run(folder, "python", "-m", "graders.cli", "new", SLUG, "--title", "Rotary positions")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_new_exercise_passes_the_laws_and_its_own_test(project):
    """The template's lesson, exercise and test pass as they are."""
    tests = ["tests/exercises/test_laws.py", f"tests/exercises/test_{SLUG}.py", "tests/test_lessons.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", SLUG, *tests]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
def test_new_exercise_is_formatted_linted_built_and_released(project):
    """Nothing is left to tidy, and the notebooks are there."""
    files = [f"graders/exercises/{SLUG}.py", f"tests/exercises/test_{SLUG}.py"]
    for words in (("ruff", "format", "--check"), ("ruff", "check")):
        done = run(project, *words, *files)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("source", "release"):
        assert (project / name / SLUG / f"{SLUG}.ipynb").exists()


@pytest.mark.slow
def test_new_never_overwrites_and_wants_a_slug(project):
    """A second time, or with a name that is no slug: one line, nothing written."""
    before = (project / "graders" / "exercises" / f"{SLUG}.py").read_text()
    assert "nothing was written" in one_line(run(project, "python", "-m", "graders.cli", "new", SLUG), 2)
    assert "is no slug" in one_line(run(project, "python", "-m", "graders.cli", "new", "Rotary Positions!"), 2)
    assert (project / "graders" / "exercises" / f"{SLUG}.py").read_text() == before
