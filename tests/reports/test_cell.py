"""What stands below a graded cell of the autograded notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade

from graders.reports.cell import cell_html, cell_outputs
from graders.verdict import CheckResult
from tests.reports.samples import HALF, HOSTILE, PERFECT


def graded_cell(result: CheckResult):
    """The cell as nbgrader reads it."""
    cell = new_code_cell("", outputs=cell_outputs(result))
    cell.metadata["nbgrader"] = {"grade": True, "solution": False, "points": result.points, "grade_id": result.id}
    return nbformat.from_dict(cell)


@pytest.mark.parametrize("result", [*PERFECT.checks, *HALF.checks], ids=lambda result: f"{result.id}-{result.status}")
def test_nbgrader_reads_the_verdicts_score(result):
    """nbgrader's own reading of the outputs gives the marks of the verdict, whatever the status."""
    assert determine_grade(graded_cell(result)) == (result.score, result.points)


@pytest.mark.parametrize(
    ("score", "read"), [(float("nan"), 0), (float("inf"), 0), (-1, 0), (99, 2), (0.5, 0.5), (1e-9, 1e-9), (2, 2)]
)
def test_impossible_score_earns_nothing_extra(score, read):
    """nbgrader would give full marks for nan and -1, and stop at a value above the maximum."""
    assert determine_grade(graded_cell(CheckResult("x", "X", 2, score, "failed"))) == (read, 2)


def test_outputs_are_one_display_and_one_result():
    """The message comes first, then one plain float; a stream on stderr would cost the marks."""
    shown, score = cell_outputs(HALF.checks[0])
    assert (shown["output_type"], score["output_type"]) == ("display_data", "execute_result")
    assert shown["data"]["text/plain"] == HALF.checks[0].message
    assert score["data"] == {"text/plain": "0.0"}


def test_outputs_are_valid_in_a_notebook():
    """nbformat accepts them."""
    notebook = new_notebook(cells=[new_code_cell("", outputs=cell_outputs(result)) for result in HALF.checks])
    nbformat.validate(notebook)


def test_sign_has_a_word_beside_it():
    """Nothing is told by colour or sign alone."""
    assert "not yet" in cell_html(HALF.checks[0])
    assert "passed" in cell_html(HALF.checks[1])
    assert "timed out" in cell_html(HALF.checks[3])


@pytest.mark.parametrize("result", HOSTILE.checks, ids=["script", "long"])
def test_hostile_text_stays_text(result):
    """Ids, titles and messages cannot add an element or close ours."""
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: tags.append(tag)
    parser.feed(cell_html(result))
    assert set(tags) <= {"div", "strong", "span", "code", "dl", "dt", "dd"}
    assert "\x1b" not in cell_html(result)
    assert "\u202e" not in cell_html(result)
