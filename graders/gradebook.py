"""Marks into nbgrader's gradebook, through its own tables: one connection for a class, one transaction for a hand-in.

The rows are those that `nbgrader autograde` makes with our plug-ins; a test compares them. Nothing that a person wrote
in the formgrader (manual scores, extra credit, comments) is touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, insert, select, update

from graders.authoring import Exercise, UsageError
from graders.settings import Course, prepare_nbgrader
from graders.verdict import Verdict

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

NO_RESPONSE = "No response."


@dataclass(frozen=True)
class Cells:
    """A released notebook in the gradebook: ids, the names of cells by id, whether there is a time to be late for."""

    assignment: str
    notebook: str
    graded: dict[str, str]
    answered: dict[str, str]
    due: bool


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

    def write(self, verdict: Verdict, timestamp: datetime | None, answered: Collection[str]) -> float:
        """One hand-in's marks, in one transaction; the late penalty that was set."""
        with _in_words(self.course):
            try:
                submission, notebook = self._submission(verdict.student, timestamp)
                self._fill(notebook, verdict, answered)
                penalty = self._penalise(submission, notebook, verdict.student) if self._cells.due else 0.0
                self.gradebook.db.commit()
                return penalty
            except BaseException:
                self.gradebook.db.rollback()
                raise

    @cached_property
    def _cells(self) -> Cells:
        """What every submission has rows for. `generate_assignment` does not change ids, so they are read once."""
        notebook = self.gradebook.find_notebook(self.exercise.slug, self.exercise.slug)
        tasks = {cell.id: cell.name for cell in notebook.task_cells}
        return Cells(
            notebook.assignment_id,
            notebook.id,
            {cell.id: cell.name for cell in notebook.grade_cells} | tasks,
            {cell.id: cell.name for cell in notebook.solution_cells} | tasks,
            notebook.assignment.duedate is not None,
        )

    def _submission(self, student: str, timestamp: datetime | None) -> tuple[str, str]:
        """The ids of the submission and of its notebook, with all the rows below it."""
        from nbgrader import api, utils

        self._ensure(api.Student, id=student)
        submission = self._ensure(api.SubmittedAssignment, assignment_id=self._cells.assignment, student_id=student)
        notebook = self._ensure(api.SubmittedNotebook, notebook_id=self._cells.notebook, assignment_id=submission)
        for table, cells in ((api.Grade, self._cells.graded), (api.Comment, self._cells.answered)):
            found = self._execute(select(table.cell_id).where(table.notebook_id == notebook)).scalars()
            if missing := [{"cell_id": cell, "notebook_id": notebook} for cell in cells.keys() - set(found)]:
                self._execute(insert(table.__table__), missing)
        if timestamp is not None:
            table = api.SubmittedAssignment.__table__
            told = update(table).where(table.c.id == submission).values(timestamp=utils.parse_utc(timestamp))
            self._execute(told)
        return submission, notebook

    def _ensure(self, table: Any, **row: str) -> str:
        """The id of `row`, which is made if it is not there."""
        found = self._execute(select(table.id).filter_by(**row)).scalar_one_or_none()
        made = found or self._execute(insert(table.__table__).values(**row)).inserted_primary_key[0]
        return str(made)

    def _fill(self, notebook: str, verdict: Verdict, answered: Collection[str]) -> None:
        from nbgrader import api

        scores = {result.id: result.score for result in verdict.checks}
        marks = [{"cell": id, "new": scores[name]} for id, name in self._cells.graded.items() if name in scores]
        texts = [
            {"cell": id, "new": None if name in answered else NO_RESPONSE} for id, name in self._cells.answered.items()
        ]
        grade, comment, submitted = (table.__table__ for table in (api.Grade, api.Comment, api.SubmittedNotebook))
        by_hand = grade.c.manual_score.is_not(None)
        new: Any = bindparam("new")
        self._execute(_of(grade, notebook).values(auto_score=new, needs_manual_grade=by_hand), marks)
        self._execute(_of(comment, notebook).values(auto_comment=new), texts)
        self._execute(update(submitted).where(submitted.c.id == notebook).values(late_submission_penalty=None))

    def _execute(self, statement: Any, rows: list[dict[str, Any]] | None = None) -> Any:
        return self.gradebook.db.execute(statement, rows)

    def _penalise(self, submission_id: str, notebook_id: str, student: str) -> float:
        from nbgrader import api

        db = self.gradebook.db
        db.expire_all()  # it does not see what was written past it
        submission, notebook = (
            db.get(api.SubmittedAssignment, submission_id),
            db.get(api.SubmittedNotebook, notebook_id),
        )
        late = submission.total_seconds_late
        penalty = self._late.late_submission_penalty(student, notebook.score, late) if late > 0 else None
        if penalty is None:
            return 0.0
        notebook.late_submission_penalty = min(max(float(penalty), 0.0), notebook.score)
        return notebook.late_submission_penalty

    def comments(self, student: str) -> tuple[dict[str, str], float]:
        """What a person (or nbgrader) wrote beside the answers, and the late penalty, for the feedback page."""
        from nbgrader import api

        submitted = select(api.SubmittedNotebook.id, api.SubmittedNotebook.late_submission_penalty)
        submitted = submitted.join(api.SubmittedAssignment).where(
            api.SubmittedNotebook.notebook_id == self._cells.notebook, api.SubmittedAssignment.student_id == student
        )
        with _in_words(self.course):
            notebook, penalty = self._execute(submitted).one()
            written = select(api.Comment.cell_id, api.Comment.comment).where(api.Comment.notebook_id == notebook)
            texts = {self._cells.answered.get(cell, cell): text or "" for cell, text in self._execute(written)}
            return texts, float(penalty or 0.0)

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


def _of(table: Any, notebook: str) -> Any:
    """An update of the rows of a submitted notebook in `table`, one for each `cell`."""
    return update(table).where(table.c.notebook_id == notebook, table.c.cell_id == bindparam("cell"))


def _late_plugin(course: Course) -> Any:
    """The late-submission plug-in that nbgrader would use."""
    from nbgrader.plugins import LateSubmissionPlugin
    from traitlets.utils.importstring import import_item

    told = course.config.AssignLatePenalties.get("plugin_class", LateSubmissionPlugin)
    plugin = import_item(told) if isinstance(told, str) else told
    return plugin(config=course.config)


@contextmanager
def _in_words(course: Course) -> Iterator[None]:
    """A database that is locked, missing, older or none says so in one line, and keeps its password to itself."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import DatabaseError

    try:
        yield
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the gradebook {make_url(course.db_url)!r} needs {error.name}; for PostgreSQL write postgresql+psycopg://…"
            " and pip install 'qkv-graders[postgres]'"
        ) from None
    except DatabaseError as error:
        shown = repr(make_url(course.db_url))
        if "locked" in str(error):
            raise UsageError(
                f"the gradebook {shown} is locked by another program (the formgrader, say); "
                "what was graded is kept: run the same command again when it is free"
            ) from None
        reason = " ".join(str(error.orig).split())
        raise UsageError(f"the gradebook {shown} cannot be used: {reason}") from None
