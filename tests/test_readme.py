"""README's commands are run, and its demo output is what the demo prints."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pipeline.conftest import run

from graders.authoring import load_exercise
from graders.build import answer_source

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [line.split("#")[0].strip().removeprefix("$ ") for line in README.splitlines() if line.startswith("$ ")]


def block_after(text: str) -> str:
    """The fenced block that follows `text` in the README."""
    return README.split(text, 1)[1].split("```\n", 2)[1]


def without_chance(line: str) -> str:
    """A line without what differs from run to run."""
    return re.sub(r"break sqrt d \d+", "break sqrt d N", re.sub(r"in \d+ s", "in N s", line))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """`make demo` in an empty folder that has only the configuration: the folder, and what was printed."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copy(ROOT / "nbgrader_config.py", folder)
    command = [sys.executable, "-m", "graders.demo"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "demo", done.stdout


def test_readme_is_short():
    """It is read by people who have never seen the project."""
    assert len(README.splitlines()) <= 100


def test_make_targets_exist():
    """Every `make` command of README and CONTRIBUTING is a target."""
    makefile = (ROOT / "Makefile").read_text()
    text = README + (ROOT / "CONTRIBUTING.md").read_text() + (ROOT / "docs" / "instructor.md").read_text()
    for target in set(re.findall(r"`?make ([a-z]+)`", text)) | {c.split()[1] for c in COMMANDS if c.startswith("make")}:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.slow
def test_demo_prints_what_readme_shows(demo):
    """Line for line, but for the seconds, and for a claim that a wrong function may meet by the luck of its draws."""
    shown = [without_chance(line) for line in block_after("It ends like this").strip().splitlines()]
    printed = [without_chance(line) for line in demo[1].splitlines()]
    assert [line for line in shown if line not in printed] == []


@pytest.mark.slow
def test_demo_leaves_verdicts_and_pages_for_everyone(demo):
    """Also for those whose hand-in could not be graded."""
    folder, _ = demo
    verdicts = sorted(path.parent for path in folder.glob("autograded/*/*/verdict.json"))
    pages = sorted(path.parent for path in folder.glob("feedback/*/*/*.html"))
    handed_in = sorted(path for path in folder.glob("submitted/*/*"))
    assert [p.relative_to(folder / "autograded") for p in verdicts] == [
        p.relative_to(folder / "submitted") for p in handed_in
    ]
    assert [p.relative_to(folder / "feedback") for p in pages] == [
        p.relative_to(folder / "submitted") for p in handed_in
    ]


@pytest.mark.slow
def test_grading_commands_of_readme_run_as_they_stand(demo):
    """Each `qkv` line, word for word, in the demo's course folder."""
    folder, _ = demo
    shutil.copy(folder / "submitted/ada/fused_self_attention/fused_self_attention.ipynb", folder / "homework.ipynb")
    answer = load_exercise("attention_shapes").answers["attention_shapes"]
    (folder / "answer.py").write_text(answer_source(answer), encoding="utf-8")
    commands = [command for command in COMMANDS if command.startswith("qkv ")]
    assert len(commands) >= 3
    for command in commands:
        done = run(folder, *command.split())
        assert done.returncode in (0, 3 if " grade " in command else 0), f"{command}\n{done.stderr}"
    assert json.loads((folder / "v.json").read_text())["score"] == 30.0
