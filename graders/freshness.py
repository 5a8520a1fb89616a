"""`make fresh`: the committed source/ and release/ are what the lessons and exercises give now."""

from __future__ import annotations

import copy
import sys
import tempfile
from pathlib import Path

from graders.authoring import slugs
from graders.build import differences, dumps, fresh, load
from graders.releasing import release
from graders.settings import Course, open_course


def stale(course: Course) -> list[str]:
    """One line per generated file that differs from a fresh build."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        config = copy.deepcopy(course.config)
        config.CourseDirectory.db_url = f"sqlite:///{folder}/gradebook.db"
        config.CourseDirectory.root = folder
        scratch = Course(Path(folder), config)
        for slug in slugs():
            exercise = course.settings.exercise(slug)
            source = scratch.folder("source") / slug / f"{slug}.ipynb"
            source.parent.mkdir(parents=True)
            source.write_text(dumps(fresh(exercise)), encoding="utf-8")
            release(scratch, exercise)
            found += [
                line
                for name in ("source", "release")
                if (
                    line := _compare(
                        course.folder(name) / slug / f"{slug}.ipynb", scratch.folder(name) / slug / f"{slug}.ipynb"
                    )
                )
            ]
    return found


def _compare(committed: Path, made: Path) -> str:
    if not committed.exists():
        return f"{committed} is missing; run qkv build and qkv release"
    if committed.read_bytes() != made.read_bytes():
        what = differences(load(committed), load(made))
        return f"{committed} is not what a fresh build gives ({what}); run qkv build and qkv release, or qkv adopt"
    return ""


def main() -> int:
    """Print what is stale; 1 if anything is."""
    lines = stale(open_course())
    print("\n".join(lines) or "source/ and release/ are fresh")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
