"""What a terminal and a log file show while a class is graded."""

from __future__ import annotations

import io
import re

from graders.reports.progress import ClassProgress
from tests.reports.class_samples import verdict

NO_SCALE = "fused_forgets_scale"


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_live_line_has_rate_and_counts():
    """How many of how many, how fast, and what became of them."""
    shown = Terminal()
    with ClassProgress("some_slug", shown) as progress:
        progress.started(3)
        progress.graded(verdict("ada"), False)
        progress.graded(verdict("ben", [NO_SCALE]), False)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.getvalue())
    assert re.search(r"some_slug .* 2/3 .* [\d.]+ a second 1 full marks {2}1 partial", text)


def test_log_has_a_plain_line_for_each():
    """No escape sequence, no line drawn twice; what an earlier run did is only counted."""
    shown = io.StringIO()
    with ClassProgress("some_slug", shown) as progress:
        progress.started(2)
        progress.graded(verdict("ada"), True)
        progress.graded(verdict("ben", [NO_SCALE]), False)
    first, line, last = shown.getvalue().splitlines()
    assert "\x1b" not in shown.getvalue()
    assert first == "some_slug: 2 hand-ins"
    assert line.startswith("2/2 ben: 28 of 30 in ")
    assert last.startswith("some_slug: 2 hand-ins, 1 full marks  1 partial (")
    assert last.endswith(" a second; 1 unchanged since an earlier run)")


def test_name_of_a_folder_cannot_draw_on_the_terminal():
    """A student's id is the name of a folder, which may hold escape sequences and a line of its own."""
    shown = io.StringIO()
    with ClassProgress("some_slug", shown) as progress:
        progress.started(1)
        progress.graded(verdict("\x1b[2Jada\n2/1 eve"), False)
    assert "\x1b" not in shown.getvalue()
    assert len(shown.getvalue().splitlines()) == 3


def test_run_that_had_nothing_to_do_says_so():
    """No rate is made up."""
    shown = io.StringIO()
    with ClassProgress("some_slug", shown) as progress:
        progress.started(1)
        progress.graded(verdict("ada"), True)
    assert shown.getvalue().splitlines()[-1].endswith("(nothing to do; 1 unchanged since an earlier run)")
