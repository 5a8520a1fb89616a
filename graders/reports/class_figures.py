"""What the verdicts on a class say together: marks, ideas, pairs of ideas, versions, and checks that tell little."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from graders.authoring import Exercise, Misconception
from graders.reports.message import number
from graders.verdict import Verdict

FEWEST = 8
"""Hand-ins below which a correlation is chance."""

WEAK = 0.2
"""Ebel and Frisbie (1991), Essentials of Educational Measurement: below it, a question is poor or wants work."""

BARS = 10


@dataclass(frozen=True)
class Bar:
    """How many have marks in one interval."""

    label: str
    count: int


@dataclass(frozen=True)
class Idea:
    """One idea of the class. Ids whose sentence is the same are one idea, met in several functions."""

    ids: tuple[str, ...]
    sentence: str
    hint: str
    students: tuple[int, ...]
    checks: tuple[tuple[str, int], ...]
    entry: Misconception | None

    def share(self, of: int) -> int:
        """In percent of the class."""
        return round(100 * len(self.students) / of) if of else 0


@dataclass(frozen=True)
class Pair:
    """Two ideas that come together more often than they would if one had nothing to do with the other."""

    first: Idea
    second: Idea
    together: int
    expected: float


@dataclass(frozen=True)
class CheckFigures:
    """How a check parts the class; `index` is None where everyone, or no one, passed it."""

    id: str
    title: str
    passed: int
    attempted: int
    index: float | None

    @property
    def error(self) -> float:
        """The standard error of an index near 0."""
        return 1 / math.sqrt(self.attempted - 1)

    @property
    def remark(self) -> str:
        """What the index says, in plain words; empty where the check does its work."""
        if self.index is None:
            return "everyone passed it" if self.passed else "nobody passed it"
        if self.index < -self.error:
            return "those who did better elsewhere failed it more often: read the check and its text again"
        return "passing it says little about the rest of the hand-in" if self.index < WEAK else ""


@dataclass(frozen=True)
class Versions:
    """What changed from the first graded version to the latest, for those who handed in more than one."""

    students: int
    before: float
    after: float
    ideas: tuple[tuple[str, int, int, int], ...]
    ungraded_first: int
    left_out: int


# --- marks ------------------------------------------------------------------------------------------------------------


def distribution(verdicts: Sequence[Verdict]) -> list[Bar]:
    """At most eleven bars from no marks to full marks, which has one of its own."""
    most = max((verdict.max_score for verdict in verdicts), default=0.0)
    width = max(math.ceil(most / BARS), 1)
    whole = all(float(verdict.score).is_integer() for verdict in verdicts)
    bars = []
    for start in range(0, math.ceil(most), width):
        end = min(start + width, most)
        count = sum(start <= verdict.score < end for verdict in verdicts)
        bars.append(Bar(_interval(start, end, whole), count))
    return [*bars, Bar(number(most), sum(verdict.score >= most for verdict in verdicts))]


def _interval(start: float, end: float, whole: bool) -> str:
    if whole:
        return number(start) if end - start <= 1 else f"{number(start)}–{number(end - 1)}"
    return f"{number(start)} to under {number(end)}"


# --- ideas ------------------------------------------------------------------------------------------------------------


def named(verdict: Verdict) -> dict[str, list[str]]:
    """The likeliest idea of each check that has one, and the checks in which it showed."""
    found: dict[str, list[str]] = defaultdict(list)
    for result in verdict.checks:
        if result.misconceptions:
            found[result.misconceptions[0]].append(result.id)
    return dict(found)


def sentence(exercise: Exercise, id: str) -> str:
    """What the catalogue says of an idea; its id where the catalogue knows it no more."""
    entry = exercise.misconceptions.get(id)
    return entry.sentence if entry else id.replace("_", " ")


def ideas(exercise: Exercise, verdicts: Sequence[Verdict]) -> list[Idea]:
    """The ideas of a class, those of most students first."""
    students: dict[str, set[int]] = defaultdict(set)
    shown: dict[str, Counter[str]] = defaultdict(Counter)
    ids: dict[str, Counter[str]] = defaultdict(Counter)
    for student, verdict in enumerate(verdicts):
        for id, checks in named(verdict).items():
            key = sentence(exercise, id)
            students[key].add(student)
            shown[key].update(checks)
            ids[key][id] += 1
    found = [_idea(exercise, key, ids[key], students[key], shown[key]) for key in students]
    return sorted(found, key=lambda idea: (-len(idea.students), idea.ids))


def _idea(exercise: Exercise, text: str, ids: Counter[str], students: Iterable[int], shown: Counter[str]) -> Idea:
    ordered = tuple(id for id, _ in ids.most_common())
    entry = exercise.misconceptions.get(ordered[0])
    hint = entry.hint or exercise.checks[entry.first_fails].hint if entry else ""
    return Idea(ordered, text, hint, tuple(sorted(students)), tuple(shown.most_common()), entry)


def unexplained(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """How many failed comparisons no idea explains, and how many there are."""
    failed = [result for verdict in verdicts for result in verdict.checks if result.status == "failed"]
    return sum(not result.misconceptions for result in failed), len(failed)


def pairs(found: Sequence[Idea], of: int, most: int = 8) -> list[Pair]:
    """Ideas that at least two students have together, and more than chance would give, the commonest first."""
    together = []
    for first, second in itertools.combinations(found, 2):
        both = len(set(first.students) & set(second.students))
        expected = len(first.students) * len(second.students) / of if of else 0.0
        if both >= 2 and both > expected:
            together.append(Pair(first, second, both, expected))
    return sorted(together, key=lambda pair: (-pair.together, pair.expected))[:most]


# --- versions ---------------------------------------------------------------------------------------------------------


def versions(exercise: Exercise, hand_ins: Sequence[tuple[Verdict, Sequence[Verdict]]]) -> Versions:
    """Each latest verdict beside the first that was graded by the same checks for the same points."""
    again = [(latest, earlier) for latest, earlier in hand_ins if earlier and latest.graded]
    graded = [(latest, [v for v in earlier if v.graded]) for latest, earlier in again]
    same = [(latest, [v for v in earlier if _points(v) == _points(latest)]) for latest, earlier in graded if earlier]
    compared = [(earlier[0], latest) for latest, earlier in same if earlier]
    return Versions(
        len(compared),
        fmean(first.score for first, _ in compared) if compared else 0.0,
        fmean(latest.score for _, latest in compared) if compared else 0.0,
        tuple(_changes(exercise, compared)),
        ungraded_first=sum(not earlier[0].graded for _, earlier in again),
        left_out=len(same) - len(compared),
    )


def _points(verdict: Verdict) -> dict[str, float]:
    return {result.id: result.points for result in verdict.checks}


def _changes(exercise: Exercise, compared: Sequence[tuple[Verdict, Verdict]]) -> list[tuple[str, int, int, int]]:
    """(sentence, had it at first, have it still, have it only now) of each idea, the commonest first."""
    rows: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for first, latest in compared:
        before, now = ({sentence(exercise, id) for id in named(verdict)} for verdict in (first, latest))
        for text in before | now:
            rows[text][0] += text in before
            rows[text][1] += text in before and text in now
            rows[text][2] += text not in before
    ordered = sorted(rows.items(), key=lambda row: (-row[1][0], row[0]))
    return [(text, before, still, new) for text, (before, still, new) in ordered]


# --- checks -----------------------------------------------------------------------------------------------------------


def attempted(verdict: Verdict) -> bool:
    """Whether any check had something to compare; an untouched notebook would make every check look telling."""
    return any(result.status in ("passed", "failed") for result in verdict.checks)


def discrimination(verdicts: Sequence[Verdict]) -> list[CheckFigures]:
    """How well each check tells those who did better on the others; empty where there are too few hand-ins.

    The index is the point-biserial correlation of passing with the marks on the other checks.

    Source: Crocker and Algina (1986), Introduction to Classical and Modern Test Theory, chapter 14; that a check is
    taken out of the marks it is held against: Henrysson (1963), Psychometrika 28.
    """
    tried = [verdict for verdict in verdicts if attempted(verdict)]
    if len(tried) < FEWEST:
        return []
    titles = {result.id: result.title for verdict in tried for result in verdict.checks}
    return [_figures(id, title, tried) for id, title in titles.items()]


def _figures(id: str, title: str, verdicts: Sequence[Verdict]) -> CheckFigures:
    marks = [({r.id: r for r in verdict.checks}, verdict.score) for verdict in verdicts]
    seen = [(results[id], score) for results, score in marks if id in results]
    passed = np.array([result.status == "passed" for result, _ in seen])
    rest = np.array([score - result.score for result, score in seen])
    return CheckFigures(id, title, int(passed.sum()), len(seen), point_biserial(passed, rest))


def point_biserial(passed: np.ndarray, rest: np.ndarray) -> float | None:
    """(M₁ − M₀) / s · √(pq), which is Pearson's correlation with a yes or no; None where either is constant."""
    p, s = float(passed.mean()), float(rest.std())
    if p in (0.0, 1.0) or s == 0.0:
        return None
    return float((rest[passed].mean() - rest[~passed].mean()) / s * math.sqrt(p * (1 - p)))


# --- time -------------------------------------------------------------------------------------------------------------


def seconds(verdicts: Sequence[Verdict]) -> Mapping[str, float]:
    """What grading took: altogether, the middle one, and the slowest."""
    taken = [verdict.seconds for verdict in verdicts]
    return {
        "total": sum(taken),
        "median": float(np.median(taken)) if taken else 0.0,
        "slowest": max(taken, default=0.0),
    }
