"""`qkv report`: what a class misunderstood, as one page that needs no network, and as CSV and JSON.

Reads verdicts (and the lines on earlier ones), and the exercise for its sentences and counter-examples; nothing else.
"""

from __future__ import annotations

import csv
import io
import json
import math
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from statistics import fmean, median
from typing import Any

from graders import history
from graders.authoring import Exercise, Misconception, UsageError
from graders.build import write_whole
from graders.reports import class_figures as figures
from graders.reports.class_figures import Idea
from graders.reports.counter_example import CounterExample, counter_example
from graders.reports.feedback import pages
from graders.reports.message import number
from graders.settings import VERDICT, Course
from graders.verdict import Finding, Verdict

TOP = 3
"""Ideas that the page to reteach from holds."""


@dataclass(frozen=True)
class HandIn:
    """One student's latest verdict, the earlier ones, and what the report calls the student."""

    name: str
    verdict: Verdict
    earlier: tuple[Verdict, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """One idea to teach again; without an example, the check that shows it stands in for one."""

    idea: Idea
    example: CounterExample | None
    check: str


@dataclass(frozen=True)
class ClassReport:
    """All that the page, the CSV and the JSON say."""

    exercise: Exercise
    hand_ins: tuple[HandIn, ...]
    unreadable: tuple[str, ...] = ()
    anonymous: bool = False

    @cached_property
    def graded(self) -> list[Verdict]:
        """The verdicts whose marks come from comparing numbers; shares are shares of these."""
        return [hand_in.verdict for hand_in in self.hand_ins if hand_in.verdict.graded]

    @cached_property
    def ideas(self) -> list[Idea]:
        """The commonest first."""
        return figures.ideas(self.exercise, self.graded)

    @cached_property
    def lessons(self) -> list[Lesson]:
        """The top ideas with an example each, found now."""
        return [_lesson(self.exercise, idea) for idea in self.ideas[:TOP]]

    @cached_property
    def checks(self) -> list[figures.CheckFigures]:
        """Every check with its index, or nothing where the class is too small."""
        return figures.discrimination(self.graded)

    @cached_property
    def versions(self) -> figures.Versions:
        """Before and after."""
        return figures.versions(self.exercise, [(h.verdict, h.earlier) for h in self.hand_ins])

    def people(self) -> list[tuple[str, list[Finding], str]]:
        """Who needs a person: name, what was found, marks."""
        needing = [hand_in for hand_in in self.hand_ins if hand_in.verdict.needs_person]
        return [(h.name, self._findings(h.verdict), _marks(h.verdict)) for h in needing]

    def _findings(self, verdict: Verdict) -> list[Finding]:
        found = [finding for finding in verdict.findings if finding.severity != "info"]
        if not self.anonymous:
            return found
        # A message may hold a file's name, and a file's name a student's.
        return [Finding(finding.severity, finding.code, finding.code.replace("-", " ")) for finding in found]


def report(course: Course, slug: str, *, anonymous: bool = False) -> list[Path]:
    """Write reports/<slug>/: report.html, hand_ins.csv, ideas.csv and report.json; their paths, the page first."""
    found = gather(course, slug, anonymous=anonymous)
    folder = course.root / "reports" / slug
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.html": page(found),
        "hand_ins.csv": hand_ins_csv(found),
        "ideas.csv": ideas_csv(found),
        "report.json": json.dumps(as_data(found), indent=1, ensure_ascii=False) + "\n",
    }
    for name, text in texts.items():
        write_whole(folder / name, text.encode("utf-8", "replace").decode("utf-8"))
    return [folder / name for name in texts]


def gather(course: Course, slug: str, *, anonymous: bool = False) -> ClassReport:
    """The verdicts on `slug`; names, or numbers in an order that says nothing, drawn anew each time."""
    exercise = course.settings.exercise(slug)
    read, unreadable = [], []
    for path in sorted(course.folder("autograded").glob(f"*/{slug}/{VERDICT}")):
        try:
            verdict = Verdict.from_json(path.read_text(encoding="utf-8"))
        except history.Broken:
            unreadable.append(path.parent.parent.name)
            continue
        read.append(HandIn(verdict.student, verdict, tuple(history.earlier(path.parent))))
    if not read:
        raise UsageError(f"no verdicts on {slug} to report on; run qkv grade {slug} first")
    if anonymous:
        secrets.SystemRandom().shuffle(read)
        read = [HandIn(f"student {i}", hand_in.verdict, hand_in.earlier) for i, hand_in in enumerate(read, 1)]
        unreadable = ["a student"] * len(unreadable)
    return ClassReport(exercise, tuple(read), tuple(unreadable), anonymous)


def _lesson(exercise: Exercise, idea: Idea) -> Lesson:
    """An example for the id that most students have, or for another that says the same of a simpler function."""
    if idea.entry is None:
        return Lesson(idea, None, "")
    same = [entry for entry in exercise.misconceptions.values() if entry.sentence == idea.sentence]

    def rank(entry: Misconception) -> tuple[bool, int]:
        place = idea.ids.index(entry.id) if entry.id in idea.ids else len(idea.ids)
        return entry.replaces in exercise.trials, place

    examples = (counter_example(exercise, entry) for entry in sorted(same, key=rank))
    example = next((example for example in examples if example), None)
    return Lesson(idea, example, exercise.checks[idea.entry.first_fails].title)


def _marks(verdict: Verdict) -> str:
    return f"{number(verdict.score)} of {number(verdict.max_score)}"


# --- the page ---------------------------------------------------------------------------------------------------------


def page(found: ClassReport) -> str:
    """The page: no script, no other file, light and dark, and a sheet to reteach from when printed."""
    scores = [verdict.score for verdict in found.graded]
    attempted = sum(figures.attempted(verdict) for verdict in found.graded)
    slowest = sorted(found.hand_ins, key=lambda hand_in: -hand_in.verdict.seconds)[:TOP]
    return (
        pages()
        .get_template("class_report.html.j2")
        .render(
            report=found,
            title=found.exercise.slug.replace("_", " "),
            today=date.today().isoformat(),
            of=len(found.graded),
            most=number(found.exercise.max_score),
            bars=figures.distribution(found.graded),
            mean=number(round(fmean(scores), 1)) if scores else "",
            median=number(median(scores)) if scores else "",
            titles={id: check.title for id, check in found.exercise.checks.items()},
            unexplained=figures.unexplained(found.graded),
            pairs=figures.pairs(found.ideas, len(found.graded)),
            attempted=attempted,
            fewest=figures.FEWEST,
            weak=figures.WEAK,
            uncertain=f"{1 / math.sqrt(attempted - 1):.2f}" if attempted > 1 else "",
            seconds={name: number(round(value, 1)) for name, value in figures.seconds(_verdicts(found)).items()},
            slowest=[(hand_in.name, number(round(hand_in.verdict.seconds, 1))) for hand_in in slowest],
            number=number,
        )
    )


def _verdicts(found: ClassReport) -> list[Verdict]:
    return [hand_in.verdict for hand_in in found.hand_ins]


# --- as data ----------------------------------------------------------------------------------------------------------


def as_data(found: ClassReport) -> dict[str, Any]:
    """The same figures for a program; students by the names that the page uses."""
    names = [hand_in.name for hand_in in found.hand_ins if hand_in.verdict.graded]
    return {
        "assignment": found.exercise.slug,
        "anonymous": found.anonymous,
        "hand_ins": len(found.hand_ins),
        "graded": len(found.graded),
        "max_score": found.exercise.max_score,
        "marks": [asdict(bar) for bar in figures.distribution(found.graded)],
        "ideas": [_idea_data(idea, names) for idea in found.ideas],
        "pairs": [
            {"ideas": [pair.first.ids[0], pair.second.ids[0]], "together": pair.together, "expected": pair.expected}
            for pair in figures.pairs(found.ideas, len(found.graded))
        ],
        "versions": asdict(found.versions),
        "checks": [{**asdict(check), "remark": check.remark} for check in found.checks],
        "needs_a_person": [
            {"student": name, "findings": [asdict(finding) for finding in findings]}
            for name, findings, _ in found.people()
        ],
        "not_read": list(found.unreadable),
        "seconds": dict(figures.seconds(_verdicts(found))),
        "reteach": [
            {"idea": lesson.idea.ids[0], "example": asdict(lesson.example) if lesson.example else None}
            for lesson in found.lessons
        ],
    }


def _idea_data(idea: Idea, names: Sequence[str]) -> dict[str, Any]:
    return {
        "ids": list(idea.ids),
        "sentence": idea.sentence,
        "hint": idea.hint,
        "students": [names[student] for student in idea.students],
        "share": len(idea.students) / len(names),
        "checks": dict(idea.checks),
    }


def hand_ins_csv(found: ClassReport) -> str:
    """A row a student: marks, marks in each check, ideas, what needs a person, seconds, versions before this one."""
    ids = list(dict.fromkeys(result.id for verdict in _verdicts(found) for result in verdict.checks))
    rows = [["student", "marks", "of", "graded", *ids, "ideas", "needs a person", "seconds", "earlier versions"]]
    rows += [_row(found, hand_in, ids) for hand_in in found.hand_ins]
    return _csv(rows)


def _row(found: ClassReport, hand_in: HandIn, ids: Sequence[str]) -> list[str]:
    verdict = hand_in.verdict
    marks = {result.id: number(result.score) for result in verdict.checks}
    return [
        hand_in.name,
        number(verdict.score),
        number(verdict.max_score),
        "yes" if verdict.graded else "no",
        *(marks.get(id, "") for id in ids),
        " ".join(figures.named(verdict)),
        "; ".join(finding.message for finding in found._findings(verdict)),
        number(round(verdict.seconds, 1)),
        str(len(hand_in.earlier)),
    ]


def ideas_csv(found: ClassReport) -> str:
    """A row for each idea and each check in which it showed."""
    rows = [["idea", "sentence", "students", "of", "check", "students in this check"]]
    for idea in found.ideas:
        students, of = str(len(idea.students)), str(len(found.graded))
        rows += [[" ".join(idea.ids), idea.sentence, students, of, id, str(count)] for id, count in idea.checks]
    return _csv(rows)


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[_cell(value) for value in row] for row in rows])
    # Excel takes a file for Latin-1 unless it begins with this mark, and names are of any alphabet.
    return "\ufeff" + text.getvalue()


def _cell(value: str) -> str:
    """Spreadsheets run what begins like a formula; a student may choose the name of a file."""
    return f"'{value}" if value[:1] in tuple("=+-@\t\r") else value
