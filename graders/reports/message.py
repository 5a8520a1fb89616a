"""The text that a student reads about one check, and its parts again for a page.

✗ rows_sum_to_one (0 of 2)   the sum of each row is off in 4 of 4 rows, first at [0]
    expected   1
    got        2.27014
    you may have   Your columns sum to 1 instead of your rows: the softmax runs over the wrong axis.
    look at        Which axis holds the keys?
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graders.authoring import Check, CheckFailed, Misconception
from graders.reports.quote import HIDDEN, library_message, own_line, printable, shown_type, without_foreign
from graders.student import Observation, StudentError
from graders.verdict import CheckResult, Status

SIGNS: dict[Status, str] = {"passed": "✓", "failed": "✗", "error": "✗", "timeout": "✗", "not_run": "–"}
WORDS: dict[Status, str] = {
    "passed": "passed",
    "failed": "not yet",
    "error": "error",
    "timeout": "timed out",
    "not_run": "not run",
}
"""Every sign has a word beside it wherever there is room: a screen reader may skip the sign."""

FACTS = ("expected", "got", "in line", "it says")
ADVICE = ("you may have", "and", "or:", "also:", "look at")
_WIDTHS = {**dict.fromkeys(FACTS, 11), **dict.fromkeys(ADVICE, 15)}
_INDENT = " " * 4
_LONGEST = 300
_MOST_OTHERS = 2
"""Further ideas that a message names: more are a list to guess from."""

WITHHELD = "(withheld: it could show hidden inputs; run the visible check in your notebook to read it)"

NOT_REPEATED = f"{HIDDEN} (text that your code made is not repeated: it could show hidden inputs)"

Rows = list[tuple[str, str]]
Told = Mapping[str, str]
"""Which check's message has told an idea in full, by the idea's sentence."""

NOT_FOUND = "Is it in the course's environment? What the notebook imports is enough for every answer."
ELSEWHERE = {
    "NameError": "Is that name spelled right, and is it defined or imported in a cell that runs before?",
    "ImportError": NOT_FOUND,
    "ModuleNotFoundError": NOT_FOUND,
}
"""Where to look after errors that say nothing about what a check is about, so that its own hint would mislead."""


def message_for(
    check: Check,
    status: Status,
    outcome: CheckFailed | StudentError | str | None = None,
    *,
    source: str,
    misconceptions: Sequence[Misconception] = (),
    trace: Sequence[Observation] = (),
    also: Sequence[str] = (),
    told: Told | None = None,
    reveal: bool = False,
) -> str:
    """What the student reads about `check`, whatever came of it.

    `outcome` is what the check raised, or for `timeout`, `not_run` and `error` the reason in words. `source` is the
    code that the student handed in and `trace` what came back from it: of text that their code made, only words that
    they typed are repeated. `misconceptions` come likeliest first; what was `told` in an earlier message is only
    referred to. `also` are facts beside what differs. `reveal` shows expected values of hidden inputs too.
    """
    if isinstance(outcome, CheckFailed):
        advice = _advice(misconceptions, outcome.hint or check.hint, also, told or {})
        return render_failure(check, outcome, status=status, source=source, trace=trace, advice=advice, reveal=reveal)
    if isinstance(outcome, StudentError):
        advice = _advice(misconceptions, ELSEWHERE.get(outcome.type, check.hint), also, told or {})
        return render_error(check, outcome, status=status, source=source, advice=advice)
    return _lay_out(check, status, outcome or _reason(check, status), [])


def render_failure(
    check: Check,
    failure: CheckFailed,
    *,
    source: str,
    status: Status = "failed",
    trace: Sequence[Observation] = (),
    advice: Rows | None = None,
    reveal: bool = False,
) -> str:
    """The message of a check that compared and found a difference; arguments as for `message_for`."""
    shown = failure.expected is not None and (failure.public or reveal)
    typed = " ".join([source, check.id, check.title, failure.hint, value_text(failure.expected) if shown else ""])
    rows: Rows = [("expected", value_text(failure.expected))] if shown else []
    if failure.got is not None:
        got = without_foreign(value_text(failure.got), trace, typed)
        rows.append(("got", NOT_REPEATED if got == HIDDEN else got))
    rows += advice or []
    return _lay_out(check, status, without_foreign(failure.what, trace, typed), rows)


def render_error(
    check: Check,
    error: StudentError,
    *,
    source: str,
    status: Status = "error",
    advice: Rows | None = None,
) -> str:
    """The message where the student's code raised, so that nothing was compared; arguments as for `message_for`."""
    # Only our lookup raises Missing with exactly the name that was asked for; a student's own class is told apart so.
    if error.type == "Missing" and error.message == error.name:
        hint = "Is it spelled like this, and does its cell run without an error?"
        why = f": its cell raised {shown_type(error.cell, source)}" if error.cell else ""
        return _lay_out(check, status, f"your notebook defines no `{error.name}`{why}", [("look at", hint)])
    if error.type == "NotImplementedError":
        return _lay_out(check, status, f"`{error.name}` is not attempted yet", [])
    rows = [("in line", own_line(error.line, source))]
    if error.message.strip():
        rows.append(("it says", library_message(error.message, source) or WITHHELD))
    rows += advice or []
    return _lay_out(check, status, f"your `{error.name}` raised {shown_type(error.type, source)}", rows)


def _reason(check: Check, status: Status) -> str:
    return {
        "passed": check.title,
        "timeout": "your code was still running when its time was over",
        "not_run": "not run, because something before it stopped the grading",
        "error": "could not be judged",
    }.get(status, check.title)


def _advice(misconceptions: Sequence[Misconception], hint: str, also: Sequence[str], told: Told) -> Rows:
    """The likeliest idea in full, the others after it, what else is known, and one place to look: the idea's own."""
    facts: Rows = [("also:", "; ".join(also))] if also else []
    if not misconceptions:
        return [*facts, ("look at", hint)]
    first, *others = misconceptions
    sentences = [part.sentence for part in first.parts or (first,)]
    if all(sentence in told for sentence in sentences):
        checks = " and ".join(dict.fromkeys(told[sentence] for sentence in sentences))
        return [("you may have", f"the same {'ideas' if sentences[1:] else 'idea'} as in {checks}"), *facts]
    rows = list(zip(("you may have", "and"), sentences, strict=False))
    # Two functions have ideas of one sentence, and two ideas may differ in what is not told here.
    further = dict.fromkeys(other.sentence for other in others if other.sentence != first.sentence)
    rows += [("or:", sentence) for sentence in list(further)[:_MOST_OTHERS]]
    return [*rows, *facts, ("look at", first.hint or hint)]


def _lay_out(check: Check, status: Status, what: str, rows: Rows) -> str:
    score = check.points if status == "passed" else 0.0
    lines = [heading(check.id, score, check.points, status) + _short(what)]
    lines += [f"{_INDENT}{label:<{_WIDTHS[label]}}{_short(text)}" for label, text in rows if text.strip()]
    return "\n".join(lines)


def heading(id: str, score: float, points: float, status: Status) -> str:
    """The start of a message's first line: sign, id and marks."""
    return f"{SIGNS[status]} {id} ({number(score)} of {number(points)})   "


def _short(text: str) -> str:
    # Cut before and after: a value may be megabytes of text, and most of the work is per character.
    text = printable(text[: 4 * _LONGEST])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def number(value: float) -> str:
    """A mark or an entry as a person writes it: `2`, `0.5`, `2.27014`."""
    return f"{float(value):.6g}"


def value_text(value: Any) -> str:
    """A value that a check compared, in at most a few entries."""
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.size <= 16 else f"an array of shape {value.shape}"
    if isinstance(value, (float, np.floating)):
        return number(float(value))
    if isinstance(value, (list, tuple)):
        inside = ", ".join(value_text(item) for item in value)
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return str(value)


@dataclass(frozen=True)
class Parts:
    """A message taken apart for a page: what was found, and (label, text) for each line below it."""

    what: str
    rows: tuple[tuple[str, str], ...]


def parts(result: CheckResult) -> Parts:
    """The parts of `result.message`; text that has another form stands whole in `what`."""
    first, *others = result.message.split("\n")
    # The marks may have been changed by a person since the message was written.
    what = re.sub(rf"^\S {re.escape(result.id)} \([^()]*\)   ", "", first)
    rows = [_row(line) for line in others]
    if None in rows:
        return Parts(result.message, ())
    return Parts(what, tuple(row for row in rows if row is not None))


def _row(line: str) -> tuple[str, str] | None:
    for label, width in _WIDTHS.items():
        if line.startswith(f"{_INDENT}{label:<{width}}"):
            return label, line[len(_INDENT) + width :]
    return None
