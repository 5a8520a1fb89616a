"""Verdicts in a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from graders.reports.table import class_table, plain_table, verdict_text
from graders.verdict import Finding, Verdict
from tests.reports.samples import HALF, HOSTILE, PERFECT, UNGRADED

CLASS = [PERFECT, HALF, UNGRADED, HOSTILE]


def drawn(verdicts, width: int = 300) -> str:
    """The class table as a terminal without colour shows it."""
    console = Console(file=io.StringIO(), width=width, no_color=True)
    console.print(class_table(verdicts))
    return console.file.getvalue()


def test_class_table_names_students_marks_ideas_and_what_needs_a_person():
    """One line a student is enough to know whom to talk to, and about what."""
    line = next(line for line in drawn(CLASS).splitlines() if "grace-hopper" in line)
    assert "5 of 20" in line
    assert "normalises_over_the_batch, forgets_to_scale" in line
    assert "had been edited" in line
    assert "renamed" not in line


def test_brackets_are_no_markup():
    """rich would swallow [red] in a student's id or a file's name."""
    verdict = Verdict("[red]ada[/red]", "x", 0, 1, "none", (), (Finding("warning", "x", "[bold]file[/]"),))
    assert "[red]ada[/red]" in drawn([verdict])
    assert "[bold]file[/]" in drawn([verdict])


def test_plain_table_holds_the_same_in_one_line_each():
    """Logs get every word, none cut off."""
    lines = plain_table(CLASS).splitlines()
    assert len(lines) == 2 + len(CLASS)
    assert lines[0].split() == ["student", "marks", "named", "ideas", "needs", "a", "person"]
    assert lines[4].startswith("linus")
    assert lines[4].endswith("that you want graded.")


def test_findings_of_one_kind_are_told_once():
    """Two steps of one derivation may raise the same question; the line stays short, and nothing is lost silently."""
    found = [Finding("warning", code, f"{name} is odd") for code, name in (("a", "x"), ("b", "y"), ("a", "z"))]
    line = plain_table([Verdict("ada", "x", 0, 1, "none", (), tuple(found))]).splitlines()[-1]
    assert line.endswith("x is odd (and 1 more like it); y is odd")


def test_plain_table_of_nobody_is_its_heading():
    """An empty class is no error."""
    assert len(plain_table([]).splitlines()) == 2


def test_verdict_text_has_a_block_per_check_then_total_and_findings():
    """`qkv check` prints what the student reads, the sum, and what was found about the file."""
    text = verdict_text(HALF)
    assert "✗ rows_sum_to_one (0 of 2)   the sum of each row" in text
    assert "\ngrace-hopper, fused_self_attention: 5 of 20\n" in text
    assert text.endswith("(edited_check)")
    assert all(result.id in text for result in HALF.checks)


def test_verdict_text_wraps_below_the_text():
    """Long lines continue below their words, not below their label."""
    lines = verdict_text(HALF, width=60).splitlines()
    assert all(len(line) <= 60 for line in lines)
    start = next(index for index, line in enumerate(lines) if "you may have" in line)
    assert lines[start + 1].startswith(" " * 19)
    assert lines[start + 1][19] != " "


def test_terminal_obeys_no_text():
    """Escape sequences in messages do not reach the terminal."""
    assert "\x1b" not in verdict_text(HOSTILE) + plain_table(CLASS) + drawn(CLASS)
