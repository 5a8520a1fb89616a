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


@dataclass(frozen=True)
class Told:
    """What grading says of one hand-in, by cell: scores, and comments on answers."""

    scores: dict[str, float]
    texts: dict[str, str | None]


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
        self, verdict: Verdict, timestamp: datetime | None, answered: Collection[str]
    ) -> tuple[dict[str, str], float]:
        """One hand-in's marks, in one transaction; all comments on its answers by name, and the late penalty."""
        with _in_words(self.course):
            try:
                submission, notebook = self._submission(verdict.student, timestamp)
                told = self._told(verdict, answered)
                if notebook is None:
                    notebook, comments = self._new(submission, told), told.texts
                else:
                    self._update(notebook, told)
                    comments = self._comments(notebook)
                penalty = self._penalise(submission, notebook, verdict.student) if self._cells.due else 0.0
                self.gradebook.db.commit()
                return {self._cells.answered.get(id, id): text or "" for id, text in comments.items()}, penalty
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

    def _submission(self, student: str, timestamp: datetime | None) -> tuple[str, str | None]:
        """The ids of the submission, which is made if there is none, and of its notebook if there is one."""
        from nbgrader import api, utils

        table, known = api.SubmittedAssignment.__table__, self._cells
        when = {} if timestamp is None else {"timestamp": utils.parse_utc(timestamp)}
        row = {"assignment_id": known.assignment, "student_id": student}
        submission = self._execute(select(table.c.id).filter_by(**row)).scalar_one_or_none()
        if submission is None:
            people = api.Student.__table__
            if self._execute(select(people.c.id).filter_by(id=student)).scalar_one_or_none() is None:
                self._insert(api.Student, id=student)
            return self._insert(api.SubmittedAssignment, **row, **when), None
        if when:
            self._execute(update(table).where(table.c.id == submission).values(**when))
        row = {"notebook_id": known.notebook, "assignment_id": submission}
        notebooks = api.SubmittedNotebook.__table__
        return submission, self._execute(select(notebooks.c.id).filter_by(**row)).scalar_one_or_none()

    def _told(self, verdict: Verdict, answered: Collection[str]) -> Told:
        scores = {result.id: result.score for result in verdict.checks}
        return Told(
            {id: scores[name] for id, name in self._cells.graded.items() if name in scores},
            {id: None if name in answered else NO_RESPONSE for id, name in self._cells.answered.items()},
        )

    def _new(self, submission: str, told: Told) -> str:
        """The id of a new notebook, with a row for each cell."""
        from nbgrader import api

        notebook = self._insert(api.SubmittedNotebook, notebook_id=self._cells.notebook, assignment_id=submission)
        judged = {"notebook_id": notebook, "needs_manual_grade": False}
        marks = [{**judged, "cell_id": id, "auto_score": score} for id, score in told.scores.items()]
        texts = [{"notebook_id": notebook, "cell_id": id, "auto_comment": text} for id, text in told.texts.items()]
        by_hand = [{"notebook_id": notebook, "cell_id": id} for id in self._cells.graded.keys() - told.scores.keys()]
        for table, rows in ((api.Grade, marks), (api.Grade, by_hand), (api.Comment, texts)):
            if rows:
                self._execute(insert(table.__table__), rows)
        return notebook

    def _insert(self, table: Any, **row: Any) -> str:
        """The id of a new `row`."""
        return str(self._execute(insert(table.__table__).values(**row)).inserted_primary_key[0])

    def _update(self, notebook: str, told: Told) -> None:
        """The rows of a notebook that was graded before; nothing that a person wrote changes."""
        from nbgrader import api

        for table, cells in ((api.Grade, self._cells.graded), (api.Comment, self._cells.answered)):
            there = self._execute(select(table.cell_id).filter_by(notebook_id=notebook)).scalars()
            if missing := [{"cell_id": cell, "notebook_id": notebook} for cell in cells.keys() - set(there)]:
                self._execute(insert(table.__table__), missing)
        grade, comment, submitted = (table.__table__ for table in (api.Grade, api.Comment, api.SubmittedNotebook))
        by_hand = grade.c.manual_score.is_not(None)
        new: Any = bindparam("new")
        marks = [{"cell": id, "new": score} for id, score in told.scores.items()]
        texts = [{"cell": id, "new": text} for id, text in told.texts.items()]
        self._execute(_of(grade, notebook).values(auto_score=new, needs_manual_grade=by_hand), marks)
        self._execute(_of(comment, notebook).values(auto_comment=new), texts)
        self._execute(update(submitted).where(submitted.c.id == notebook).values(late_submission_penalty=None))

    def _comments(self, notebook: str) -> dict[str, str | None]:
        """What a person (or nbgrader) wrote, by cell."""
        from nbgrader import api

        written = select(api.Comment.cell_id, api.Comment.comment).where(api.Comment.notebook_id == notebook)
        return {cell: text for cell, text in self._execute(written)}

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
