"""nbgrader's own commands in a course folder: the same marks as `qkv grade`, and no way round our grader."""

from __future__ import annotations

import csv
import json
import shutil

import pytest
from nbgrader.utils import notebook_hash
from submissions import CASES

from graders import history
from graders.authoring import load_exercise
from graders.classroom import grade_class
from graders.gradebook import Marks
from graders.verdict import Verdict
from pipeline.conftest import hand_in, released, run, solved

SLUG = "attention_shapes"
WRONG = """def attention_shapes(B, T_q, T_k, d, d_k, d_v):
    return {"X_q": (B, T_q, d), "X_kv": (B, T_k, d), "W_Q": (d, d_k), "W_K": (d, d_k), "W_V": (d, d_v),
            "Q": (B, T_q, d_k), "K": (B, T_k, d_k), "V": (B, T_k, d_v),
            "scores": (B, T_k, T_q), "weights": (B, T_k, T_q), "output": (B, T_q, d_v)}
"""


def rows(course):
    """Every grade and comment of SLUG, without generated ids."""
    found = {}
    with Marks(course, load_exercise(SLUG)) as marks:
        for submission in marks.gradebook.assignment_submissions(SLUG):
            (notebook,) = submission.notebooks
            for grade in notebook.grades:
                found[submission.student_id, "grade", grade.name] = (
                    grade.auto_score,
                    grade.manual_score,
                    grade.max_score,
                    grade.needs_manual_grade,
                )
            for comment in notebook.comments:
                found[submission.student_id, "comment", comment.name] = comment.auto_comment
            found[submission.student_id, "late"] = notebook.late_submission_penalty
            found[submission.student_id, "time"] = submission.timestamp
    return found


def a_class(course):
    """A few hand-ins that reach nbgrader: files named as the notebook."""
    notebook = solved(SLUG)
    hand_in(course, "right", SLUG, notebook)
    hand_in(course, "untouched", SLUG, released(SLUG))
    for cell in notebook["cells"]:
        if cell["id"] == SLUG:
            cell["source"] = [WRONG]
    hand_in(course, "wrong", SLUG, notebook)
    (course.folder("submitted") / "wrong" / SLUG / "timestamp.txt").write_text("2026-01-02 03:04:05 UTC")
    for id in ("A19", "A37", "A47", "A50", "A51", "A08"):
        folder = course.folder("submitted") / f"case-{id}" / SLUG
        folder.mkdir(parents=True)
        CASES[id].make(released(SLUG), solved(SLUG), folder)


@pytest.mark.slow
def test_autograde_and_qkv_grade_give_the_same_rows_cell_by_cell(course_of):
    """Marks, comments, late penalties and times are equal for every hand-in, and so is what the verdicts say."""
    ours, theirs = course_of(SLUG), course_of(SLUG)
    a_class(ours)
    shutil.copytree(ours.folder("submitted"), theirs.folder("submitted"))
    grade_class(ours, load_exercise(SLUG))
    done = run(theirs.root, "nbgrader", "autograde", SLUG)
    assert done.returncode == 0, done.stderr[-2000:]
    assert rows(ours) == rows(theirs)
    for path in sorted(ours.folder("autograded").glob("*/*/verdict.json")):
        mine = Verdict.from_json(path.read_text())
        other = Verdict.from_json((theirs.root / path.relative_to(ours.root)).read_text())
        assert [c.status for c in mine.checks] == [c.status for c in other.checks], path
        assert {f.code for f in mine.findings} == {f.code for f in other.findings}, path


@pytest.mark.slow
def test_autograde_keeps_what_was_before(course_of):
    """nbgrader deletes a student's folder before it grades again; hidden inputs and earlier verdicts outlive that."""
    course = course_of(SLUG)
    exercise, folder = load_exercise(SLUG), course.folder("autograded") / "ada" / SLUG
    hand_in(course, "ada", SLUG, released(SLUG))
    (first,) = grade_class(course, exercise)
    hand_in(course, "ada", SLUG, solved(SLUG))
    for force in ((), ("--force",)):  # the first finds nothing to do: both hand-ins have no time
        done = run(course.root, "nbgrader", "autograde", SLUG, *force)
        assert done.returncode == 0, done.stderr[-2000:]
    second = Verdict.from_json((folder / "verdict.json").read_text())
    assert (first.score, second.score, second.seed) == (0.0, 20.0, first.seed)
    assert [before.fingerprint for before in history.earlier(folder)] == [first.fingerprint]

    assert run(course.root, "nbgrader", "autograde", SLUG, "--force").returncode == 0
    assert [before.fingerprint for before in history.earlier(folder)] == [first.fingerprint]

    hand_in(course, "ada", SLUG, released(SLUG) | {"cells": released(SLUG)["cells"][:-1]})
    (third,) = grade_class(course, exercise)
    assert third.seed == first.seed
    assert history.earlier(folder)[-1].fingerprint == second.fingerprint


@pytest.mark.slow
def test_autograde_stops_where_other_numbers_were_released(course_of):
    """The same line as qkv's, and nothing is graded."""
    course = course_of("derive_by_hand")
    hand_in(course, "ada", "derive_by_hand", solved("derive_by_hand", "ada"))
    path = course.released("derive_by_hand")
    notebook = json.loads(path.read_text())
    notebook["metadata"]["qkv"]["instances"]["version"] += 1
    path.write_text(json.dumps(notebook))
    done = run(course.root, "nbgrader", "autograde", "derive_by_hand")
    assert done.returncode != 0
    assert "the released derive_by_hand has numbers of version 2" in done.stderr
    assert "Traceback" not in done.stderr
    assert not course.folder("autograded").exists()


@pytest.mark.slow
def test_generate_feedback_writes_our_page_and_nothing_for_the_instructor_only(course_of):
    """The page is the one that `qkv grade` writes; verdict.json stays with the instructor; export has the marks."""
    course = course_of(SLUG)
    a_class(course)
    grade_class(course, load_exercise(SLUG))
    page = course.folder("feedback") / "wrong" / SLUG / f"{SLUG}.html"
    ours = page.read_text()
    shutil.rmtree(course.folder("feedback"))
    done = run(course.root, "nbgrader", "generate_feedback", SLUG)
    assert done.returncode == 0, done.stderr[-2000:]
    assert page.read_text() == ours
    assert not list(course.folder("feedback").rglob("verdict.json"))
    assert run(course.root, "nbgrader", "export").returncode == 0
    with open(course.root / "grades.csv", newline="") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert (scores["right"], scores["untouched"], scores["case-A08"]) == (20.0, 0.0, 0.0)


@pytest.mark.slow
def test_exchange_inside_the_course_serves_a_whole_round(course_of):
    """Release, fetch, submit, collect and grade work on one machine without any system path."""
    course = course_of(SLUG)
    root, home = course.root, {"JUPYTER_DATA_DIR": str(course.root / "jupyter"), "USER": "ann", "LOGNAME": "ann"}
    for words in (("release_assignment", SLUG), ("fetch_assignment", SLUG)):
        done = run(root, "nbgrader", *words, **home)
        assert done.returncode == 0, done.stderr[-2000:]
    fetched = root / "qkv" / SLUG / f"{SLUG}.ipynb"
    fetched.write_text(json.dumps(solved(SLUG)), encoding="utf-8")
    for words in (("submit", SLUG), ("collect", SLUG)):
        done = run(root, "nbgrader", *words, **home)
        assert done.returncode == 0, done.stderr[-2000:]
    (verdict,) = grade_class(course, load_exercise(SLUG))
    assert verdict.score == verdict.max_score
    assert verdict.findings == ()


@pytest.mark.slow
def test_configuration_that_does_not_load_stops_nbgrader_too(course_of):
    """nbgrader would log the error and go on with its stock executor; here nothing is graded at all."""
    course = course_of(SLUG)
    hand_in(course, "a", SLUG, solved(SLUG))
    (course.root / "nbgrader_config.py").write_text("c = get_config()\nc.QKV.jobs = = 3\n")
    done = run(course.root, "qkv", "grade", SLUG)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nbgrader_config.py does not load: SyntaxError" in done.stderr
    done = run(course.root, "nbgrader", "autograde", SLUG, TRAITLETS_APPLICATION_RAISE_CONFIG_FILE_ERROR="1")
    assert done.returncode != 0
    assert not (course.folder("autograded") / "a").exists()


@pytest.mark.slow
def test_stock_executor_earns_nothing(course_of):
    """Even with nbgrader's own executor in place of ours, a hidden region refuses to run, so nobody gets marks."""
    course = course_of(SLUG)
    hand_in(course, "a", SLUG, solved(SLUG))
    (course.root / "nbgrader_config.py").write_text("c = get_config()\n")
    done = run(course.root, "nbgrader", "autograde", SLUG)
    assert done.returncode == 0, done.stderr[-2000:]
    with Marks(course, load_exercise(SLUG)) as marks:
        (submission,) = marks.gradebook.assignment_submissions(SLUG)
        assert submission.score == 0.0


@pytest.mark.slow
def test_late_penalty_follows_the_due_date(course_of):
    """Late by nbgrader's plug-in costs what it says; with a later due date the penalty is gone after grading again."""
    course = course_of(SLUG)
    course.config.LateSubmissionPlugin.penalty_method = "zero"
    folder = hand_in(course, "a", SLUG, solved(SLUG))
    (folder / "timestamp.txt").write_text("2026-01-02 00:00:00 UTC")
    exercise = load_exercise(SLUG)
    for due, score in (("2026-01-01", 0.0), ("2026-01-03", 20.0)):
        with Marks(course, exercise) as marks:
            marks.gradebook.update_or_create_assignment(SLUG, duedate=due)
        grade_class(course, exercise, force=True)
        with Marks(course, exercise) as marks:
            notebook = marks.gradebook.find_submission_notebook(SLUG, SLUG, "a")
            assert notebook.score - (notebook.late_submission_penalty or 0.0) == score


@pytest.mark.slow
@pytest.mark.parametrize("grading", [("qkv", "grade", SLUG), ("nbgrader", "autograde", SLUG)])
def test_nothing_but_the_page_is_given_back(course_of, grading):
    """Links that were handed in lead to the gradebook and the solution, and nbgrader gives out every page it finds."""
    course = course_of(SLUG)
    folder = hand_in(course, "eve", SLUG, solved(SLUG))
    (folder / "submission_secret.txt").write_text("s3cret")
    (folder / "timestamp.txt").write_text("2026-11-30 10:00:00.000000 UTC")
    (folder / "grades.html").symlink_to("../../../gradebook.db")
    shutil.copy(course.folder("source") / SLUG / f"{SLUG}.ipynb", folder / "solution.html")
    (folder / f"{SLUG}.html").mkdir()
    (folder / f"{SLUG}.html" / "page").write_text("")
    hand_in(course, "zoe", SLUG, solved(SLUG))  # by zip_collect: without a time and a secret
    for words in (grading, *(("nbgrader", step, SLUG, *more) for step, *more in RETURNING)):
        done = run(course.root, *words)
        assert done.returncode == 0, done.stderr[-2000:]
    page = course.folder("feedback") / "eve" / SLUG / f"{SLUG}.html"
    assert sorted(path.name for path in page.parent.iterdir()) == [page.name, "submission_secret.txt", "timestamp.txt"]
    (given,) = (path for path in course.root.glob("exchange/*/feedback/*") if path.read_bytes() == page.read_bytes())
    assert given.name == f"{notebook_hash(secret='s3cret', notebook_id=SLUG)}.html"
    assert len(list(given.parent.iterdir())) == 2
    copied = [path for name in ("autograded", "feedback") for path in course.folder(name).rglob("*") if path.is_file()]
    assert not any(path.read_bytes().startswith(b"SQLite") or b"BEGIN SOLUTION" in path.read_bytes() for path in copied)


RETURNING = [("generate_feedback", "--force"), ("release_feedback",)]
