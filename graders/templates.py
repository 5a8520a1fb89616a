"""`qkv new`: a lesson, an exercise and a test to start from, small and whole."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template

from graders.authoring import UsageError
from graders.build import lessons_folder, write_source, write_whole
from graders.settings import Course

FOLDER = Path(__file__).parent / "exercise_template"


def start(course: Course, slug: str, title: str = "") -> list[Path]:
    """Write the three files for `slug`, build and release it; the paths. Nothing is written if one is there already."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{1,40}", slug):
        raise UsageError(f"{slug!r} is no slug: use small letters, digits and _, as in soft_lookup")
    graders = Path(__file__).parent
    targets = {
        "lesson.md": lessons_folder() / f"{slug}.md",
        "exercise.py.txt": graders / "exercises" / f"{slug}.py",
        "test.py.txt": graders.parent / "tests" / "exercises" / f"test_{slug}.py",
    }
    present = [path for path in targets.values() if path.exists()]
    if present:
        raise UsageError(f"{present[0]} is there already; nothing was written")
    names = {"slug": slug, "title": title or slug.replace("_", " ").capitalize()}
    for template, path in targets.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, Template((FOLDER / template).read_text(encoding="utf-8")).substitute(names))
    return [*targets.values(), *_build(course, slug)]


def _build(course: Course, slug: str) -> list[Path]:
    from graders.releasing import release

    exercise = course.settings.exercise(slug)
    write_source(exercise, course.folder("source"))
    return [course.folder("source") / slug / f"{slug}.ipynb", release(course, exercise)]
