"""Laws over every lesson: it is readable, it can be run without a network, and no answer stands in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import jupytext
import pytest
from nbformat import NotebookNode

from graders.authoring import Answer, Exercise, load_exercise, slugs

LESSONS = {path.stem: path for path in sorted((Path(__file__).parents[1] / "course" / "lessons").glob("*.md"))}
INSTRUCTOR = (Path(__file__).parents[1] / "docs" / "instructor.md").read_text(encoding="utf-8")
SHORT = 20
"""Lines of up to this many characters, `return output` say, give nothing away."""

FETCHES = re.compile(
    r"""!\[[^\]]*\]\(\s*(https?:)?//          # a picture of another host
      | <(img|script|iframe|link|video|audio|source|embed|object)\b[^>]*(https?:)?//
      | @import\b""",
    re.VERBOSE | re.IGNORECASE,
)


def notebook(slug: str) -> NotebookNode:
    """The lesson as jupytext reads it."""
    return jupytext.reads(LESSONS[slug].read_text(encoding="utf-8"), fmt="md:myst")


def code(slug: str) -> list[NotebookNode]:
    """The code cells of a lesson that hold something."""
    return [cell for cell in notebook(slug).cells if cell.cell_type == "code" and cell.source.strip()]


def telling_lines(answer: Answer) -> Iterator[str]:
    """The lines of a solution that would give it away, spaces evened out.

    A line that only opens a block, such as `with torch.no_grad():`, gives nothing away.
    """
    for line in answer.solution.splitlines():
        line = " ".join(line.split())
        if len(line) > SHORT and not line.endswith(":"):
            yield line


def leaks(text: str, exercise: Exercise) -> list[str]:
    """The lines of the solutions of `exercise` that stand in `text`."""
    evened = " ".join(text.split())
    return [line for answer in exercise.answers.values() for line in telling_lines(answer) if line in evened]


def test_there_is_a_lesson_for_every_exercise():
    """The slug is the only key: a lesson without an exercise, or the reverse, is a slip of the pen."""
    assert set(LESSONS) == set(slugs())


@pytest.mark.parametrize("slug", LESSONS)
def test_lesson_is_read_as_a_notebook(slug):
    """Jupytext finds Markdown and code cells, and nothing of the format's own marks is left in them."""
    cells = notebook(slug).cells
    assert {cell.cell_type for cell in cells} == {"markdown", "code"}
    assert not [cell.source for cell in cells if "{code-cell}" in cell.source or cell.source.startswith("+++")]


@pytest.mark.parametrize("slug", LESSONS)
def test_lesson_says_once_what_earns_points(slug):
    """The table of points has one place, in a Markdown cell."""
    assert LESSONS[slug].read_text(encoding="utf-8").count("{{ points }}") == 1
    assert [cell.cell_type for cell in notebook(slug).cells if "{{ points }}" in cell.source] == ["markdown"]


@pytest.mark.parametrize("slug", LESSONS)
def test_instructors_read_the_same_minutes_and_points(slug):
    """The table for instructors promises what the lesson says and what the checks give."""
    (minutes,) = re.findall(r"About (\d+) minutes", LESSONS[slug].read_text(encoding="utf-8"))
    rows = [line for line in INSTRUCTOR.splitlines() if line.startswith(f"| `{slug}` |")]
    if not rows:
        pytest.skip("docs/instructor.md does not list it yet")
    (row,) = rows
    points = sum(check.points for check in load_exercise(slug).checks.values())
    assert row.endswith(f"| {minutes} | {points:g} |")


@pytest.mark.parametrize("slug", LESSONS)
def test_every_code_cell_compiles(slug):
    """No cell is broken before a student has touched it."""
    for cell in code(slug):
        compile(cell.source, f"{slug}:{cell.metadata.get('name', 'unnamed cell')}", "exec")


@pytest.mark.parametrize("slug", LESSONS)
def test_first_code_cell_imports(slug):
    """All that the answers need is there once the first cell has run."""
    first = notebook(slug).cells[[cell.cell_type for cell in notebook(slug).cells].index("code")]
    assert any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.parse(first.source).body)


@pytest.mark.parametrize("slug", LESSONS)
def test_answer_and_hidden_cells_are_empty(slug):
    """What stands in them comes from the exercise; text written there would be lost, or worse, released."""
    filled = [cell.metadata.get("name") for cell in code(slug) if cell.metadata.get("role") in ("answer", "hidden")]
    assert filled == []


@pytest.mark.parametrize("slug", LESSONS)
def test_cell_names_are_unique(slug):
    """A name becomes the id of its cell."""
    names = [cell.metadata["name"] for cell in notebook(slug).cells if "name" in cell.metadata]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("slug", LESSONS)
def test_no_answer_stands_in_the_lesson(slug):
    """No telling line of a reference is in the text that students get."""
    assert leaks(LESSONS[slug].read_text(encoding="utf-8"), load_exercise(slug)) == []


@pytest.mark.parametrize("slug", LESSONS)
def test_planted_answer_is_found(slug):
    """The law above has teeth: each telling line is found, however it is indented."""
    exercise = load_exercise(slug)
    for line in (line for answer in exercise.answers.values() for line in telling_lines(answer)):
        assert leaks(f"As you see:\n\n    {line.replace(' ', '  ')}\n", exercise) != []


@pytest.mark.parametrize("slug", LESSONS)
def test_lesson_needs_no_network(slug):
    """Code names no address, and no picture, script or frame comes from one; links to read later are fine."""
    cells = notebook(slug).cells
    assert [cell.source for cell in cells if cell.cell_type == "code" and re.search(r"https?://", cell.source)] == []
    assert [cell.source for cell in cells if cell.cell_type == "markdown" and FETCHES.search(cell.source)] == []


@pytest.mark.parametrize(
    "text",
    ["![a head](https://example.org/head.png)", '<img src="//example.org/a.svg">', "<script src='http://example.org'>"],
)
def test_fetching_is_recognised(text):
    """A picture, frame or script from another host is seen for what it is."""
    assert FETCHES.search(text)


@pytest.mark.parametrize("text", ["[a paper](https://arxiv.org/abs/1706.03762)", "![local](flow.png)", "1 // 2"])
def test_link_to_read_later_is_no_fetching(text):
    """A reference is not fetched when a cell runs."""
    assert not FETCHES.search(text)
