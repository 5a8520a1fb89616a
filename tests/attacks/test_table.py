"""The page on security shows every attack as it went, on both sides."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from attacks import ATTACKS
from attacks.outcome import Outcome, changes, reached, states
from attacks.table import BEGIN, END, NO_COUNTERPART, PAGE, STOCK, in_words, main, write
from graders.sandbox.mounts import BWRAP

needs_bubblewrap = pytest.mark.skipif(not shutil.which(BWRAP), reason="stock nbgrader is attacked in bubblewrap only")
ROWS = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]


def test_the_page_has_a_row_for_each_attack() -> None:
    """One each, in order, with the attack's own sentence: whoever adds or changes one runs `make attacks` again."""
    shown = [(name.strip("`"), tries) for name, tries, _, _ in ROWS]
    assert shown == [(attack.name, attack.tries) for attack in ATTACKS.values()]


def test_the_page_is_about_the_nbgrader_that_is_installed() -> None:
    """A newer one is tried anew."""
    assert f"| {STOCK} |" in PAGE.read_text()


def test_no_row_says_that_ours_gave_anything() -> None:
    """No marks, nothing reached, nobody harmed; at most how the attack ended."""
    assert [row for row in ROWS if not re.fullmatch(r"nothing(; stopped|; refused: [^;]*)?", row[3])] == []


def test_only_attacks_on_our_own_parts_do_not_apply() -> None:
    """All others were tried on stock nbgrader."""
    untried = [name.strip("`") for name, _, stock, _ in ROWS if stock == NO_COUNTERPART]
    assert untried == [attack.name for attack in ATTACKS.values() if attack.only_ours]


def test_marks_that_are_not_deserved_come_first() -> None:
    """What a cell of the table says, for each kind of outcome."""
    some = frozenset({"value"})
    assert in_words(Outcome(frozenset(), 1, 10)) == "nothing"
    assert in_words(Outcome(some, 5, 10)) == "**5 of 10**"
    assert in_words(Outcome(some, 10, 10, ("left processes",), "not graded")) == (
        "**full marks**; not graded; left processes"
    )


def test_what_an_attack_prints_of_its_reach_is_seen() -> None:
    """Once each, in its words, also where it says no more."""
    assert reached("x\nLEAK: read it; 1\nLEAK: read it; 2\nLEAK: more\n") == ["read it", "more"]


def test_changes_of_files_are_seen(tmp_path: Path) -> None:
    """New, gone, other and linked files, but for those left out."""
    for name in ("same", "gone", "other", "out"):
        (tmp_path / name).write_text(name)
    before = states(tmp_path, but=[tmp_path / "out"])
    (tmp_path / "gone").unlink()
    (tmp_path / "other").write_text("else")
    (tmp_path / "out").write_text("else")
    (tmp_path / "new").symlink_to("same")
    assert changes(before, states(tmp_path, but=[tmp_path / "out"])) == ["gone", "new", "other"]


def test_only_what_lies_between_the_marks_is_written(tmp_path: Path) -> None:
    """The rest of the page is people's."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\n\nnew\n\n{END}\nafter\n"


@needs_bubblewrap
def test_an_attack_on_our_own_parts_is_tried_on_us_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints the row of an attack that is named."""
    assert main(["sends_a_bomb"]) == 0
    (row,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\| `sends_a_bomb` \| .* \| does not apply \| nothing(; stopped)? \|", row)


@pytest.mark.slow
@needs_bubblewrap
def test_an_attack_is_tried_on_both_sides(capsys: pytest.CaptureFixture[str]) -> None:
    """Stock nbgrader believes an assertion that the student has replaced; ours does not."""
    assert main(["patches_numpys_comparisons"]) == 0
    assert capsys.readouterr().out.endswith("| **full marks** | nothing |\n")
