"""nbgrader's own generate_assignment on one exercise: source/ to release/, and the assignment into the gradebook."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from graders.authoring import Exercise, UsageError
from graders.build import expect_instances, load
from graders.settings import Course, prepare_nbgrader


def release(course: Course, exercise: Exercise) -> Path:
    """Release `exercise`: the notebook that students get, without any answer. Returns its path."""
    source = course.folder("source") / exercise.slug / f"{exercise.slug}.ipynb"
    if not source.exists():
        raise UsageError(
            f"{exercise.slug} is not built: there is no {source.relative_to(course.root)}; run qkv build"
            f" {exercise.slug}"
        )
    expect_instances(exercise, load(source), "the built")
    prepare_nbgrader()
    from nbgrader.converters import GenerateAssignment
    from nbgrader.converters.base import NbGraderException
    from nbgrader.coursedir import CourseDirectory

    here = Path.cwd()
    os.chdir(course.root)
    log = logging.getLogger("nbgrader.release")
    log.setLevel(logging.ERROR)
    try:
        coursedir = CourseDirectory(config=course.config, log=log)
        coursedir.root, coursedir.assignment_id = str(course.root), exercise.slug
        converter = GenerateAssignment(coursedir=coursedir, config=course.config, log=log)
        converter.force = True
        converter.start()
    except NbGraderException as error:
        raise UsageError(f"nbgrader could not release {exercise.slug}: {error}") from None
    finally:
        os.chdir(here)
    return course.released(exercise.slug)
