"""The page that a student gets back: one HTML file that needs no network, no script and no other file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from graders.reports.colours import coloured, style_sheet
from graders.reports.message import SIGNS, WORDS, Parts, number, parts
from graders.reports.quote import printable
from graders.verdict import INSTRUCTORS_ONLY, CheckResult, Finding, Severity, Verdict

LONGEST_ANSWER = 20_000
"""Characters of one answer that a page shows; a pasted data set would make it unreadable."""

LONGEST_COLOURED = 5_000
"""Characters of an answer that is shown in colours: on some texts Pygments takes time as the square of their length."""

SEVERITIES: dict[Severity, str] = {
    "error": "could not be graded",
    "warning": "to be looked at",
    "info": "for your information",
}

Manual = Mapping[str, tuple[float | None, float]]


@dataclass(frozen=True)
class Row:
    """One line of the table of checks."""

    result: CheckResult
    sign: str
    word: str
    marks: str
    message: Parts
    by_person: bool


@dataclass(frozen=True)
class AnswerCell:
    """One of the student's own cells with what the instructor wrote about it."""

    name: str
    code: Markup
    marks: str
    comment: str
    cut: bool


@dataclass(frozen=True)
class Total:
    """The sum at the top: `marks` as `17 of 20`, and what entered it besides the checks."""

    marks: str
    before_penalty: str
    penalty: str
    pending: str


def feedback_page(
    verdict: Verdict,
    answers: Sequence[tuple[str, str]],
    comments: Mapping[str, str] | None = None,
    late_penalty: float = 0,
    manual: Manual | None = None,
) -> str:
    """The page for one student: total, a row per check, findings, their answers and the instructor's comments.

    `answers` are (name, source) of their cells in order; the keys of `comments` and `manual` are the same names.
    `manual` holds marks and points given by a person, None for marks still to come; under a check's id they replace
    its marks. `late_penalty` is in marks.
    """
    comments, manual = comments or {}, dict(manual or {})
    changed = {result.id: manual.pop(result.id)[0] for result in verdict.checks if result.id in manual}
    verdict = _with_marks(verdict, changed)
    cells = [_answer(name, source, comments.get(name, ""), manual.get(name)) for name, source in answers]
    named = {name for name, _ in answers}
    return (
        pages()
        .get_template("feedback.html.j2")
        .render(
            verdict=verdict,
            title=verdict.assignment.replace("_", " "),
            total=_total(verdict, late_penalty, manual),
            passed=sum(result.status == "passed" for result in verdict.checks),
            rows=[_row(result, changed.get(result.id) is not None) for result in verdict.checks],
            manual={name: _manual_marks(marks) for name, marks in manual.items()},
            findings=[(SEVERITIES[finding.severity], finding) for finding in _sorted(verdict.findings)],
            answers=cells,
            comments={name: text for name, text in comments.items() if name not in named and text.strip()},
            number=number,
            code_css=Markup(style_sheet()),
        )
    )


def _with_marks(verdict: Verdict, changed: Mapping[str, float | None]) -> Verdict:
    """The verdict with the marks that a person gave in place of a check's own; its status and message stay."""
    marks = {id: score for id, score in changed.items() if score is not None}
    checks = tuple(replace(result, score=marks.get(result.id, result.score)) for result in verdict.checks)
    gained = sum(new.score - old.score for new, old in zip(checks, verdict.checks, strict=True))
    return replace(verdict, checks=checks, score=verdict.score + gained)


def _total(verdict: Verdict, late_penalty: float, manual: Manual) -> Total:
    given = [marks for marks in manual.values() if marks[0] is not None]
    score = verdict.score + sum(float(marks[0] or 0.0) for marks in given)
    most = verdict.max_score + sum(marks[1] for marks in given)
    pending = sum(marks[1] for marks in manual.values() if marks[0] is None)
    return Total(
        marks=f"{number(max(score - late_penalty, 0.0))} of {number(most)}",
        before_penalty=number(score),
        penalty=number(late_penalty) if late_penalty else "",
        pending=number(pending) if pending else "",
    )


def _manual_marks(marks: tuple[float | None, float] | None) -> str:
    if marks is None:
        return ""
    return f"still to come, of {number(marks[1])}" if marks[0] is None else f"{number(marks[0])} of {number(marks[1])}"


def _row(result: CheckResult, by_person: bool) -> Row:
    marks = f"{number(result.score)} of {number(result.points)}"
    shown = parts(result)
    what = "" if shown.what.strip() == result.title.strip() else shown.what
    return Row(result, SIGNS[result.status], WORDS[result.status], marks, Parts(what, shown.rows), by_person)


def _sorted(findings: Sequence[Finding]) -> list[Finding]:
    theirs = [finding for finding in findings if finding.code not in INSTRUCTORS_ONLY]
    return sorted(theirs, key=lambda finding: list(SEVERITIES).index(finding.severity))


def _answer(name: str, source: str, comment: str, marks: tuple[float | None, float] | None) -> AnswerCell:
    text = printable(source[:LONGEST_ANSWER], lines=True)
    # What a person marks is prose as often as code, and prose coloured as Python misleads.
    code = Markup.escape(text) if marks or len(text) > LONGEST_COLOURED else coloured(text)
    return AnswerCell(name, code, _manual_marks(marks), comment, cut=len(source) > LONGEST_ANSWER)


@cache
def pages() -> Environment:
    """Where pages come from: all have the same escapes, the filter `ticks`, and no way to hide a character."""
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Every value passes here, so no text from a hand-in can turn the page's direction or hide a control character.
        finalize=lambda value: printable(value, lines=True) if type(value) is str else value,
    )
    environment.filters["ticks"] = _ticks
    return environment


def _ticks(text: str) -> Markup:
    """Text in which `names` in backticks stand as code; an odd backtick stays what it is."""
    pieces = re.split(r"`([^`\n]+)`", printable(text, lines=True))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(p) if i % 2 else Markup.escape(p) for i, p in enumerate(pieces))
