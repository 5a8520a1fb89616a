"""Courses in temporary folders, made from the committed source/ and release/."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graders.authoring import load_exercise
from graders.build import load
from graders.demo import assignment_of
from graders.releasing import release
from graders.settings import CONFIG_FILE, Course, open_course

ROOT = Path(__file__).parents[2]
Notebook = dict[str, Any]


def make_course(folder: Path, *slugs: str) -> Course:
    """A course folder with this project's configuration and its source/ and release/ of `slugs`, in the gradebook."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / CONFIG_FILE, folder)
    for name in ("source", "release"):
        for slug in slugs:
            shutil.copytree(ROOT / name / slug, folder / name / slug)
    course = open_course(folder)
    for slug in slugs:
        release(course, load_exercise(slug))
    return course


@pytest.fixture(scope="session")
def course_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Course]:
    """Makes a course; the gradebook is prepared once per set of slugs and copied."""
    prepared: dict[tuple[str, ...], Path] = {}

    def make(*slugs: str) -> Course:
        if slugs not in prepared:
            prepared[slugs] = make_course(tmp_path_factory.mktemp("prepared"), *slugs).root
        folder = tmp_path_factory.mktemp("course") / "course"
        shutil.copytree(prepared[slugs], folder)
        return open_course(folder)

    return make


def released(slug: str) -> Notebook:
    """What students are given."""
    return load(ROOT / "release" / slug / f"{slug}.ipynb")


def solved(slug: str, student: str = "student") -> Notebook:
    """The released notebook with every answer right."""
    return assignment_of(slug, released(slug), student).solved()


def hand_in(course: Course, student: str, slug: str, notebook: Notebook) -> Path:
    """Put `notebook` where collect would; its folder."""
    folder = course.folder("submitted") / student / slug
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{slug}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    return folder


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of this environment (qkv, nbgrader, jupyter), in `folder`."""
    scripts = Path(sys.executable).parent
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(scripts / words[0]), *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PATH": path, "NO_COLOR": "1", **environment},
        check=False,
    )


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    """What the command said on stderr, which is one line and no traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line
