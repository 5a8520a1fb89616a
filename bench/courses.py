"""Course folders full of solved hand-ins, made anew: one for our grader, one that stock nbgrader knows how to grade."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from graders.authoring import load_exercise
from graders.build import Notebook, dumps, load, write_whole
from graders.demo import assignment_of
from graders.releasing import release
from graders.settings import CONFIG_FILE, open_course

SLUG = "fused_self_attention"
PROJECT = Path(__file__).parents[1]
STOCK_CONFIG = 'c = get_config()\nc.CourseDirectory.course_id = "qkv"\n'


def command(name: str) -> str:
    """A command of this environment, such as `qkv`."""
    return str(Path(sys.executable).parent / name)


def ours(folder: Path) -> Path:
    """A course with this project's configuration, released, that has no hand-in yet."""
    folder.mkdir(parents=True)
    shutil.copy(PROJECT / CONFIG_FILE, folder)
    shutil.copytree(PROJECT / "source" / SLUG, folder / "source" / SLUG)
    release(open_course(folder), load_exercise(SLUG))
    return folder


def stock(folder: Path) -> Path:
    """The same assignment for nbgrader alone, without any plug-in of ours.

    Its graded cells hold no hidden region: nbgrader would put back a call of our grader, which refuses to run beside a
    student's code. So stock nbgrader grades less than we do, and only the time that it takes is compared.
    """
    (folder / "source" / SLUG).mkdir(parents=True)
    (folder / CONFIG_FILE).write_text(STOCK_CONFIG, encoding="utf-8")
    notebook = _without_hidden(load(PROJECT / "source" / SLUG / f"{SLUG}.ipynb"))
    write_whole(folder / "source" / SLUG / f"{SLUG}.ipynb", dumps(notebook))
    words = [command("nbgrader"), "generate_assignment", SLUG]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder


def _without_hidden(notebook: Notebook) -> Notebook:
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade"):
            cell["source"] = [line for line in cell["source"] if line.startswith("# ")]
    return notebook


def hand_in(course: Path, many: int) -> list[Path]:
    """`many` students hand in the worked notebook; the files."""
    released = load(course / "release" / SLUG / f"{SLUG}.ipynb")
    paths = []
    for number in range(1, many + 1):
        path = course / "submitted" / f"student-{number:03}" / SLUG / f"{SLUG}.ipynb"
        path.parent.mkdir(parents=True)
        solved = assignment_of(SLUG, released, path.parts[-3]).solved()
        path.write_text(json.dumps(solved, indent=1), encoding="utf-8")
        paths.append(path)
    return paths
