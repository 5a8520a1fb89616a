"""What stands below a graded cell of the autograded notebook: the message for people and the score for nbgrader."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from graders.reports.message import SIGNS, WORDS, number, parts
from graders.reports.quote import printable
from graders.verdict import CheckResult, Status

# Each stands out by at least 3:1 from white and from JupyterLab's dark #111, so one colour serves both themes; the text
# itself keeps the colour of the page. Inline, because the formgrader and JupyterLab may drop a style element.
_EDGES: dict[Status, str] = {
    "passed": "#2e8b57",
    "failed": "#d1495b",
    "error": "#d1495b",
    "timeout": "#b7791f",
    "not_run": "#7a7f87",
}
_BOX = "border-left:4px solid {edge};padding:2px 0 2px 12px;margin:4px 0;line-height:1.5;overflow-wrap:anywhere"
_LIST = "display:grid;grid-template-columns:max-content 1fr;gap:2px 12px;margin:6px 0 2px"
_LABEL = "font-weight:normal;opacity:.8;margin:0;text-align:left"
_TEXT = "margin:0;white-space:pre-wrap"


def cell_html(result: CheckResult) -> str:
    """One check as HTML for the cell that carries its points; readable on light and dark, everything escaped."""
    shown = parts(result)
    sign = f'<strong><span aria-hidden="true">{SIGNS[result.status]}</span> {WORDS[result.status]}</strong>'
    marks = f"{number(result.score)} of {number(result.points)}"
    head = f"{sign} · <strong>{marks}</strong> · {_html(result.title)} <code>{_html(result.id)}</code>"
    what = "" if not shown.what or shown.what == result.title else f'<div style="{_TEXT}">{_html(shown.what)}</div>'
    rows = "".join(
        f'<dt style="{_LABEL}">{_html(label)}</dt><dd style="{_TEXT}">{_html(text)}</dd>' for label, text in shown.rows
    )
    facts = f'<dl style="{_LIST}">{rows}</dl>' if rows else ""
    return f'<div style="{_BOX.format(edge=_EDGES[result.status])}"><div>{head}</div>{what}{facts}</div>'


def cell_outputs(result: CheckResult) -> list[dict[str, Any]]:
    """The outputs of a graded cell: the message, then one plain float, which nbgrader takes for the score.

    A score that is no number, or negative, becomes 0 and one above the points becomes the points: nbgrader would give
    full marks for the former and stop the class's run at the latter.
    """
    shown = {
        "output_type": "display_data",
        "data": {"text/html": cell_html(result), "text/plain": printable(result.message or result.title, lines=True)},
        "metadata": {},
    }
    score = {
        "output_type": "execute_result",
        "data": {"text/plain": repr(_score(result))},
        "execution_count": None,
        "metadata": {},
    }
    return [shown, score]


def _score(result: CheckResult) -> float:
    score = float(result.score)
    return min(max(score, 0.0), float(result.points)) if math.isfinite(score) else 0.0


def _html(text: str) -> str:
    return escape(printable(text, lines=True))
