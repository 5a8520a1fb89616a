"""Marks into nbgrader's gradebook, through its own tables: one connection for a class, one transaction for a hand-in.

The rows are those that `nbgrader autograde` makes with our plug-ins; a test compares them. Nothing that a person wrote
in the formgrader (manual scores, extra credit, comments) is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graders.authoring import Exercise, UsageError
from graders.settings import Course, prepare_nbgrader
from graders.verdict import Verdict

if TYPE_CHECKING:
    from nbgrader.api import Gradebook, SubmittedAssignment

NO_RESPONSE = "No response."


class Marks:
    """The gradebook of one course. Use as a context manager."""

    def __init__(self, course: Course, exercise: Exercise) -> None:
        prepare_nbgrader()
        from nbgrader.api import Gradebook

        self.course, self.exercise = course, exercise
        with _in_words(course):
            self.gradebook: Gradebook = Gradebook(course.db_url, course.course_id)
        self._late = _late_plugin(course)

    def check_assignment(self) -> bool:
        """Whether the gradebook knows this assignment with these checks and points."""
        from nbgrader.api import MissingEntry

        with _in_words(self.course):
            try:
                notebook = self.gradebook.find_notebook(self.exercise.slug, self.exercise.slug)
            except MissingEntry:
                return False
            cells = {cell.name: cell.max_score for cell in notebook.grade_cells}
            self.gradebook.db.rollback()  # generate_assignment may write before we look again
        return cells == {check.id: check.points for check in self.exercise.checks.values()}

    def write(
        self, verdict: Verdict, timestamp: datetime | None, answered: Collection[str], penalise: bool = True
    ) -> float:
        """One hand-in's marks, in one transaction; the late penalty that was set."""
        with _in_words(self.course):
            try:
                submission = self._submission(verdict.student, timestamp)
                penalty = self._fill(submission, verdict, answered)
                self.gradebook.db.commit()
                return penalty
            except BaseException:
                self.gradebook.db.rollback()
                raise

    def _submission(self, student_id: str, timestamp: datetime | None) -> SubmittedAssignment:
        """The submission with all its rows, made if it is not there, without committing."""
        from nbgrader import api, utils

        db = self.gradebook.db
        student = db.query(api.Student).filter(api.Student.id == student_id).one_or_none()
        if student is None:
            student = api.Student(id=student_id)
            db.add(student)
        assignment = self.gradebook.find_assignment(self.exercise.slug)
        found = db.query(api.SubmittedAssignment).filter_by(assignment_id=assignment.id, student_id=student_id)
        submission = found.one_or_none()
        if submission is None:
            with db.no_autoflush:
                submission = api.SubmittedAssignment(assignment=assignment, student=student)
                db.add(submission)
                for notebook in assignment.notebooks:
                    db.add_all(_rows(api, submission, notebook))
        if timestamp is not None:
            submission.timestamp = utils.parse_utc(timestamp)
        db.flush()
        return submission

    def _fill(self, submission: Any, verdict: Verdict, answered: Collection[str]) -> float:
        notebook = next(notebook for notebook in submission.notebooks if notebook.name == self.exercise.slug)
        scores = {result.id: result.score for result in verdict.checks}
        for grade in notebook.grades:
            if grade.name in scores:
                grade.auto_score = scores[grade.name]
                grade.needs_manual_grade = grade.manual_score is not None
        for comment in notebook.comments:
            comment.auto_comment = None if comment.name in answered else NO_RESPONSE
        notebook.late_submission_penalty = None
        self.gradebook.db.flush()
        self.gradebook.db.expire(notebook)
        return self._penalise(notebook, submission, verdict.student)

    def _penalise(self, notebook: Any, submission: Any, student: str) -> float:
        late = submission.total_seconds_late
        if late <= 0:
            return 0.0
        penalty = self._late.late_submission_penalty(student, notebook.score, late)
        if penalty is None:
            return 0.0
        notebook.late_submission_penalty = min(max(float(penalty), 0.0), notebook.score)
        return notebook.late_submission_penalty

    def comments(self, student: str) -> tuple[dict[str, str], float]:
        """What a person (or nbgrader) wrote beside the answers, and the late penalty, for the feedback page."""
        with _in_words(self.course):
            notebook = self.gradebook.find_submission_notebook(self.exercise.slug, self.exercise.slug, student)
            texts = {comment.name: comment.comment or "" for comment in notebook.comments}
            return texts, float(notebook.late_submission_penalty or 0.0)

    def graded(self) -> set[str]:
        """The students who have a submission of this assignment in the gradebook."""
        with _in_words(self.course):
            return {submission.student_id for submission in self.gradebook.assignment_submissions(self.exercise.slug)}

    def __enter__(self) -> Marks:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.gradebook.close()


def _rows(api: Any, submission: Any, notebook: Any) -> list[Any]:
    """The rows that nbgrader's `add_submission` makes, without its commit."""
    submitted = api.SubmittedNotebook(notebook=notebook, assignment=submission)
    graded = [*notebook.grade_cells, *notebook.task_cells]
    answered = [*notebook.solution_cells, *notebook.task_cells]
    grades = [api.Grade(cell_id=cell.id, notebook=submitted) for cell in graded]
    return [submitted, *grades, *(api.Comment(cell_id=cell.id, notebook=submitted) for cell in answered)]


def _late_plugin(course: Course) -> Any:
    """The late-submission plug-in that nbgrader would use."""
    from nbgrader.plugins import LateSubmissionPlugin
    from traitlets.utils.importstring import import_item

    told = course.config.AssignLatePenalties.get("plugin_class", LateSubmissionPlugin)
    plugin = import_item(told) if isinstance(told, str) else told
    return plugin(config=course.config)


@contextmanager
def _in_words(course: Course) -> Iterator[None]:
    """A database that is locked, missing or older says so in one line."""
    from sqlalchemy.exc import OperationalError

    try:
        yield
    except OperationalError as error:
        if "locked" in str(error):
            raise UsageError(
                f"the gradebook {course.db_url} is locked by another program (the formgrader, say); "
                "what was graded is kept: run the same command again when it is free"
            ) from None
        raise UsageError(f"the gradebook {course.db_url} cannot be used: {error.orig}") from None
