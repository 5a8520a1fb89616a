"""The thin skin between nbgrader and the grader: what nbgrader_config.py names.

With it, `nbgrader autograde`, `nbgrader generate_feedback` and the formgrader's buttons give the same marks and pages
as `qkv grade`: intake reads the hand-in in place of nbgrader's exporter, `Grade` takes the place of Execute, and
`FeedbackExporter` that of the HTML export.
"""

from __future__ import annotations

import atexit
import re
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import Exporter, NotebookExporter
from nbgrader.converters.base import NbGraderException
from nbgrader.preprocessors import NbGraderPreprocessor

from graders import history, returning
from graders.ahead import modules_for
from graders.authoring import ExerciseError, UsageError
from graders.build import expect_instances, load
from graders.classroom import answers_in
from graders.hand_in import Graded, grade_hand_in, job_for, not_graded, with_seed_of
from graders.intake import HandIn, NotGradable, receive
from graders.reports.feedback import feedback_page
from graders.sandbox.box import Sandbox
from graders.settings import QKV, VERDICT, settings_of
from graders.verdict import Finding, Verdict

KEY = "qkv_hand_in"
"""Notebook metadata in which intake hands its findings to grading, between nbgrader's two passes; the student's own
metadata never gets so far."""


class IntakeExporter(NotebookExporter):
    """Reads a hand-in through intake when nbgrader sanitises it; an ordinary notebook exporter otherwise.

    `past` holds what is known of earlier versions, by student and assignment: nbgrader makes an exporter before it
    deletes what an earlier grading left.
    """

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self.past = {}
        for student, slug in _assigned(self.parent):
            self.past[student, slug] = history.past(_directory(self.parent, "autograded", student, slug))
        for slug in {slug for _, slug in self.past}:
            _refuse_other_numbers(self.parent, slug)

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        """Rebuild the hand-in in `filename`, unless nbgrader is past sanitising."""
        if not getattr(self.parent, "_sanitizing", False):
            return super().from_filename(filename, resources, **kw)
        student, slug = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        copied = _directory(self.parent, "autograded", student, slug)
        beside = returning.found(copied)
        returning.clear(copied)
        returning.keep(copied, *beside)
        released = load(_directory(self.parent, "release", ".", slug) / f"{slug}.ipynb")
        notebook = _rebuilt(Path(filename).parent, slug, released)
        return self.from_notebook_node(notebook, resources, **kw)


def _assigned(converter: Any) -> list[tuple[str, str]]:
    """Student and assignment of each hand-in that `converter` is about to grade."""
    folders = getattr(converter, "assignments", None) or {}
    if not folders:
        return []
    pattern = converter._format_source("(?P<assignment>.*)", "(?P<student>.*)", escape=True)
    found = [re.match(pattern, folder) for folder in folders]
    return [(match["student"], match["assignment"]) for match in found if match]


def _refuse_other_numbers(converter: Any, slug: str) -> None:
    """Nothing is graded where students drew other numbers than the grader would; nbgrader ends in one line."""
    try:
        released = load(_directory(converter, "release", ".", slug) / f"{slug}.ipynb")
        expect_instances(settings_of(converter).exercise(slug), released, "the released")
    except (UsageError, ExerciseError) as error:
        converter.log.error(str(error))
        raise NbGraderException(str(error)) from None


def _rebuilt(folder: Path, slug: str, released: dict[str, Any]) -> nbformat.NotebookNode:
    """The clean notebook, with intake's findings in its metadata; the released one where nothing can be graded."""
    try:
        hand_in = receive(folder, slug, released)
        noted = {"findings": [vars(finding) for finding in hand_in.findings], "answered": list(hand_in.answered)}
        notebook = hand_in.notebook
    except NotGradable as problem:
        notebook, noted = released, {"problem": vars(problem.finding)}
    except Exception as bug:
        finding = Finding("error", "intake", f"the hand-in could not be read ({type(bug).__name__}: {bug})"[:300])
        notebook, noted = released, {"problem": vars(finding)}
    node = nbformat.from_dict({**notebook, "metadata": {**notebook["metadata"], KEY: noted}})
    for cell in node.cells:
        cell.source = "".join(cell.source)
    return node


class Grade(NbGraderPreprocessor):
    """Takes Execute's place: the cells run in the sandbox, the checks judge, and every graded cell gets its verdict."""

    _sandboxes: dict[tuple[str, ...], Sandbox] = {}  # noqa: RUF012 - one zygote for all hand-ins of this process

    def preprocess(self, nb: Any, resources: Any) -> Any:
        """Grade `nb`, write verdict.json beside it, and leave the released text in the graded cells."""
        student, slug = resources["nbgrader"]["student"], resources["nbgrader"]["assignment"]
        settings = settings_of(self)
        folder = _directory(self.parent.parent, "autograded", student, slug)
        past = self.parent.past.get((student, slug), history.Past())
        graded = self._graded(nb, student, slug, settings, past)
        nb.metadata.pop(KEY, None)
        for cell, made in zip(nb.cells, graded.notebook["cells"], strict=True):
            if cell.cell_type == "code":
                cell.source = "".join(made["source"])
                cell.outputs = [nbformat.from_dict(output) for output in made["outputs"]]
                cell.execution_count = made["execution_count"]
        folder.mkdir(parents=True, exist_ok=True)
        history.keep(folder, graded.verdict, past)
        (folder / VERDICT).write_text(graded.verdict.to_json(), encoding="utf-8")
        return nb, resources

    def _graded(self, nb: Any, student: str, slug: str, settings: QKV, past: history.Past) -> Graded:
        exercise = settings.exercise(slug)
        released = load(_directory(self.parent.parent, "release", ".", slug) / f"{slug}.ipynb")
        notebook = _with_released_tests(_as_dict(nb), released)
        noted = notebook["metadata"].pop(KEY, None)
        if noted is None:
            noted = {"problem": {"severity": "error", "code": "intake", "message": "intake did not read this notebook"}}
        if "problem" in noted:
            return not_graded(exercise, student, notebook, Finding(**noted["problem"]))
        hand_in = HandIn(notebook, tuple(Finding(**f) for f in noted["findings"]), tuple(noted["answered"]))
        job = with_seed_of(past.verdict, job_for(settings, slug, student, hand_in))
        return grade_hand_in(job, self._sandbox(modules_for(exercise.slug), settings))

    def _sandbox(self, modules: tuple[str, ...], settings: QKV) -> Sandbox:
        if modules not in self._sandboxes:
            self._sandboxes[modules] = Sandbox(modules, settings.limits(), settings.sandbox)
            atexit.register(self._sandboxes[modules].close)
        return self._sandboxes[modules]


class FeedbackExporter(Exporter):
    """The student's page, from the verdict and what a person wrote in the formgrader."""

    def _file_extension_default(self) -> str:
        return ".html"

    def from_notebook_node(self, nb: Any, resources: Any = None, **kw: Any) -> Any:
        """Run nbgrader's preprocessors (they fetch comments and scores), then write our page."""
        nb, resources = super().from_notebook_node(nb, resources, **kw)
        told = resources["nbgrader"]
        path = _directory(self.parent, "autograded", told["student"], told["assignment"]) / VERDICT
        try:
            verdict = Verdict.from_json(path.read_text(encoding="utf-8"))
        except OSError:
            raise FileNotFoundError(f"{path} is missing: this hand-in was not graded by this course's grader") from None
        folder = _directory(self.parent, "feedback", told["student"], told["assignment"])
        beside = returning.found(folder)
        returning.clear(folder)
        returning.lay_beside(folder / f"{told['assignment']}.html", *beside)
        comments, manual = _by_hand(nb)
        page = feedback_page(verdict, answers_in(_as_dict(nb)), comments, told.get("late_penalty") or 0.0, manual)
        return page, resources


def _by_hand(nb: Any) -> tuple[dict[str, str], dict[str, tuple[float | None, float]]]:
    """What a person gave: comments by cell, and marks and points of the cells that only a person can grade."""
    comments, manual = {}, {}
    for cell in nb.cells:
        settings = cell.metadata.get("nbgrader", {})
        if settings.get("solution") and settings.get("comment"):
            comments[settings["grade_id"]] = settings["comment"]
        if settings.get("solution") and settings.get("grade"):
            manual[settings["grade_id"]] = (settings.get("score"), float(settings.get("points") or 0.0))
    return comments, manual


def _as_dict(nb: Any) -> dict[str, Any]:
    """A notebook as plain dictionaries, each source a list of lines as in a file."""
    import json

    plain = json.loads(json.dumps(nb))
    for cell in plain["cells"]:
        if isinstance(cell["source"], str):
            cell["source"] = cell["source"].splitlines(keepends=True)
    return plain


def _with_released_tests(notebook: dict[str, Any], released: dict[str, Any]) -> dict[str, Any]:
    """nbgrader puts the hidden regions back; what is kept and shown in feedback is what students were given."""
    sources = {cell["id"]: cell["source"] for cell in released["cells"]}
    for cell in notebook["cells"]:
        settings = cell["metadata"].get("nbgrader", {})
        if settings.get("grade") and not settings.get("solution"):
            cell["source"] = sources.get(settings["grade_id"], cell["source"])
    return notebook


def _directory(converter: Any, name: str, student: str, slug: str) -> Path:
    coursedir = converter.coursedir
    return Path(coursedir.format_path(getattr(coursedir, f"{name}_directory"), student, slug))
