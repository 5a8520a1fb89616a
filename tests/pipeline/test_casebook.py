"""Every hand-in of the casebook through the whole pipeline, beside an honest student who must not be touched."""

from __future__ import annotations

import pytest
from submissions import CASES

from graders.authoring import load_exercise
from graders.classroom import grade_class
from graders.settings import Course
from pipeline.conftest import hand_in, released, solved

SLUG = "attention_shapes"
QUICK = {"call_seconds": 2.0, "cell_seconds": 3.0, "hand_in_seconds": 20.0}


def outcomes(verdict):
    """What came of a hand-in, in the casebook's words."""
    found = {"flag"} if verdict.needs_person else set()
    touched = [check for check in verdict.checks]
    if all(check.score == check.points for check in touched):
        found.add("full")
    if all(check.score == 0 for check in touched):
        found.add("zero")
    return found


def quick(course: Course) -> Course:
    """The course with deadlines short enough for a test."""
    config = course.config.copy()
    for name, seconds in QUICK.items():
        setattr(config.QKV, name, seconds)
    return Course(course.root, config)


@pytest.fixture(scope="module")
def verdicts(course_of):
    """All cases graded as one class, as they would come in; by case id."""
    course = quick(course_of(SLUG))
    students = {}
    for case in CASES.values():
        student = case.student if case.student != "student" else f"{case.id}-student"
        students[case.id] = student
        folder = course.folder("submitted") / student / SLUG
        folder.mkdir(parents=True, exist_ok=True)
        case.make(released(SLUG), solved(SLUG), folder)
    hand_in(course, "honest", SLUG, solved(SLUG))
    graded = {verdict.student: verdict for verdict in grade_class(course, load_exercise(SLUG))}
    return {id: graded[student] for id, student in students.items()} | {"honest": graded["honest"]}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: f"{case.id}-{case.name}")
def test_case_comes_out_as_it_should(verdicts, case):
    """Full marks, zero, or a person is told, as the casebook says; never anything silently else."""
    verdict = verdicts[case.id]
    found = outcomes(verdict)
    assert found & case.expect, f"{found} is none of {set(case.expect)}: {verdict.to_json()}"
    if "flag" not in case.expect:
        assert not verdict.needs_person, verdict.findings
    if "full" not in case.expect:
        assert "full" not in found


@pytest.mark.slow
def test_honest_student_among_them_has_full_marks(verdicts):
    """Whatever the others hand in, nobody else's grade changes."""
    assert (verdicts["honest"].score, verdicts["honest"].findings) == (20.0, ())
