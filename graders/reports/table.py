"""Verdicts in a terminal: one hand-in check by check, a class as a table."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from graders.reports.message import heading, number
from graders.reports.quote import printable
from graders.verdict import CheckResult, Finding, Verdict

HEADINGS = ("student", "marks", "named ideas", "needs a person")
WIDTH = 100
NOTHING = "—"


def class_table(verdicts: Sequence[Verdict], title: str | None = None) -> Table:
    """A class as a table for rich: student, marks, named ideas, and what a person should look at."""
    table = Table(title=None if title is None else Text(title), title_justify="left")
    for name in HEADINGS:
        table.add_column(name, justify="right" if name == "marks" else "left", overflow="fold")
    for verdict in verdicts:
        # Text, not str: rich would read [brackets] in a student's id as markup.
        table.add_row(*(Text(cell) for cell in _cells(verdict)))
    return table


def plain_table(verdicts: Sequence[Verdict]) -> str:
    """The same table as plain text, one line a student and nothing cut off, for logs and files."""
    rows = [HEADINGS, *(_cells(verdict) for verdict in verdicts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(_line(row, widths) for row in [rows[0], rule, *rows[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    student, marks, ideas, person = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return f"{student}  {marks.strip():>{widths[1]}}  {ideas}  {person}".rstrip()


def _cells(verdict: Verdict) -> tuple[str, str, str, str]:
    ideas = dict.fromkeys(idea for result in verdict.checks for idea in result.misconceptions[:1])
    person = printable("; ".join(_needs(verdict.findings)))
    return printable(verdict.student), marks(verdict), printable(", ".join(ideas)), person


def _needs(findings: Sequence[Finding]) -> list[str]:
    """What a person should look at: of findings of one kind the first, and how many more there are."""
    messages: dict[str, list[str]] = {}
    for finding in findings:
        if finding.severity != "info":
            messages.setdefault(finding.code, []).append(finding.message)
    return [first + (f" (and {len(more)} more like it)" if more else "") for first, *more in messages.values()]


def marks(verdict: Verdict) -> str:
    """The total as people say it: `17 of 20`."""
    return f"{number(verdict.score)} of {number(verdict.max_score)}"


def verdict_text(verdict: Verdict, width: int = WIDTH) -> str:
    """One hand-in for the terminal: a block per check, then the total and what was found about the hand-in."""
    blocks = [_wrapped(_block(result), width) for result in verdict.checks]
    total = f"{printable(verdict.student)}, {printable(verdict.assignment)}: {marks(verdict)}"
    findings = [f"{finding.severity}: {printable(finding.message)} ({finding.code})" for finding in verdict.findings]
    lines = [*blocks, "", _wrapped(total, width), *(_wrapped(finding, width) for finding in findings)]
    return "\n".join(lines).lstrip("\n")


def _block(result: CheckResult) -> str:
    plain = heading(result.id, result.score, result.points, result.status) + result.title
    return printable(result.message or plain, lines=True)


def _wrapped(text: str, width: int) -> str:
    """Long lines continue below their text, not below their label."""
    return "\n".join(_wrap_line(line, width) for line in text.split("\n"))


def _wrap_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    label = line.rfind("   ", 0, min(40, len(line)))
    indent = 8 if label < 0 or not line.startswith("    ") else label + 3
    return "\n".join(textwrap.wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False))


def show_class(verdicts: Sequence[Verdict]) -> None:
    """Print the class's table: boxes in a terminal, plain columns elsewhere."""
    console = Console()
    if console.is_terminal:
        console.print(class_table(verdicts))
    else:
        print(plain_table(verdicts))


def overview_rows(verdicts: Sequence[Verdict]) -> list[tuple[str, ...]]:
    """A row a student: marks in each assignment (— where nothing was handed in), ideas named, what needs a person."""
    slugs = sorted({verdict.assignment for verdict in verdicts})
    rows = [("student", *(slug.replace("_", " ") for slug in slugs), "named ideas", "needs a person")]
    for student in sorted({verdict.student for verdict in verdicts}):
        mine = {verdict.assignment: verdict for verdict in verdicts if verdict.student == student}
        scores = (f"{number(mine[s].score)}/{number(mine[s].max_score)}" if s in mine else NOTHING for s in slugs)
        cells = [_cells(verdict) for verdict in mine.values()]
        ideas = dict.fromkeys(idea for cell in cells for idea in cell[2].split(", ") if idea)
        needs = dict.fromkeys(cell[3] for cell in cells if cell[3])
        rows.append((printable(student), *scores, ", ".join(ideas), "; ".join(needs)))
    return rows


def show_overview(verdicts: Sequence[Verdict]) -> None:
    """Print a class over several assignments; as plain columns where there is no terminal."""
    heading, *rows = overview_rows(verdicts)
    console = Console()
    if console.is_terminal and console.width >= WIDTH:
        table = Table(*heading)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
        return
    for row in rows:
        scores = zip(heading[1:-2], row[1:-2], strict=True)
        print(f"{row[0]}: " + ", ".join(f"{name} {score}" for name, score in scores if score != NOTHING))
        for label, text in (("named ideas", row[-2]), ("needs a person", row[-1])):
            if text:
                print(textwrap.fill(f"{label}: {text}", WIDTH, initial_indent="    ", subsequent_indent="        "))
