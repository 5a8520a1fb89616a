"""The parts of a proof: each measures one thing about one answer of one exercise, and comes back as plain data."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from graders import diagnosis
from graders.authoring import Exercise
from proof import faults, mutants, rights
from proof.faults import Wrong
from proof.judging import (
    SEED,
    Failure,
    Ids,
    TimedOut,
    exercise_of,
    failures,
    limited,
    passes,
    quiet,
    same_function,
)

PAIRS = 250
"""Of so many pairs at most for each answer the names are looked at; whether it is killed, of all."""
COMPOSITIONS = 50
"""Random compositions for each answer that has faults."""
CHECKS = 2
"""Of how many failing checks the names of a random wrong answer are looked at."""

Data = dict[str, Any]


def singles(exercise: Exercise, about: str) -> Data:
    """Each misconception alone: killed, and named exactly at the first check that fails."""
    tally: Data = {"of": 0, "killed": 0, "exact": 0, "off": []}
    for wrong in faults.singles(exercise, about):
        first = next(failures(exercise, wrong.names, about=about), None)
        exact = first is not None and _exactly(exercise, first, wrong)
        tally["of"] += 1
        tally["killed"] += first is not None
        tally["exact"] += exact
        if not exact:
            tally["off"].append(_told(wrong, [] if first is None else [first]))
    return tally


def together(exercise: Exercise, about: str) -> Data:
    """Each two misconceptions together: killed; and of a fixed sample, both named by the checks that fail."""
    tally: Data = {"of": 0, "killed": 0, "tried": 0, "exact": 0, "alone": 0, "off": []}
    pairs = list(faults.together(exercise, about))
    sample = set(np.linspace(0, len(pairs) - 1, min(PAIRS, len(pairs))).round().astype(int).tolist())
    for nth, wrong in enumerate(pairs):
        tally["of"] += 1
        tally["killed"] += not passes(exercise, wrong.names, about=about)
        if nth in sample:
            _tally_pair(exercise, wrong, tally)
    return tally


def _tally_pair(exercise: Exercise, wrong: Wrong, tally: Data) -> None:
    seen, alone = _until_both_are_named(exercise, wrong)
    tally["tried"] += 1
    tally["alone"] += alone
    if _all_named(seen) == wrong.ids:
        tally["exact"] += 1
    elif not alone:
        tally["off"].append(_told(wrong, seen))


def _until_both_are_named(exercise: Exercise, wrong: Wrong) -> tuple[list[Failure], bool]:
    """The failures up to where both faults are named, and whether all that shows is what one idea does alone."""
    seen: list[Failure] = []
    for failure in failures(exercise, wrong.names, about=wrong.about):
        seen.append(failure)
        if _all_named(seen) >= wrong.ids:
            return seen, False
        first = failure.explanations[:1]
        if any(not idea.parts and same_function(exercise, idea, wrong.names, [SEED]) for idea in first):
            return seen, True
    return seen, False


def company(exercise: Exercise, about: str) -> Data:
    """Random compositions, disturbed: how often a name is given, and which names nobody put in."""
    tally: Data = {"of": 0, "named": 0, "unasked": []}
    for wrong in faults.company(exercise, about, COMPOSITIONS):
        _tally_names(exercise, wrong, tally)
    return tally


def mutations(exercise: Exercise, about: str) -> Data:
    """Automatic mutants of one solution: killed or not, and the names that those get that are killed."""
    tally: Data = {"of": 0, "killed": 0, "timed_out": 0, "survived": [], "named": 0, "unasked": []}
    for mutant in mutants.mutants(exercise, about):
        tally["of"] += 1
        try:
            with quiet(), limited():
                names = mutants.run(exercise, mutant)
            if passes(exercise, names, about=about):
                tally["survived"].append(mutant.key)
                continue
            _tally_names(exercise, Wrong(about, frozenset(), names, mutant.key), tally, count=False)
        except TimedOut:
            tally["timed_out"] += 1
        except Exception:  # a notebook that does not run earns nothing
            pass
        tally["killed"] += 1
    return tally


def right(exercise: Exercise, about: str) -> Data:
    """Right answers of every make: each keeps every mark."""
    tally: Data = {"of": 0, "accepted": 0, "off": []}
    for answer, case, names in rights.right_answers(exercise):
        if answer == about:
            tally["of"] += 1
            failed = [failure.check for failure in failures(exercise, names, about=about)]
            tally["accepted"] += not failed
            tally["off"] += [f"{case}: {', '.join(failed)}"] if failed else []
    return tally


PARTS: dict[str, Callable[[Exercise, str], Data]] = {
    "singles": singles,
    "pairs": together,
    "mutants": mutations,
    "right": right,
    "company": company,
}


def jobs(slug: str) -> Iterator[tuple[str, str, str]]:
    """(slug, part, answer) of all that is to be measured."""
    exercise = exercise_of(slug)
    for part in PARTS:
        yield from ((slug, part, answer) for answer in exercise.answers)


def done(job: tuple[str, str, str]) -> Data:
    """One job's data."""
    slug, part, answer = job
    return PARTS[part](exercise_of(slug), answer)


def patient() -> None:
    """Let no search end by the clock: what is named must not depend on the machine's pace."""
    diagnosis.PATIENCE = float("inf")


def merged(tallies: Iterable[Data]) -> Data:
    """The sum of tallies: numbers added, lists one after the other."""
    total: Data = {}
    for tally in tallies:
        for name, value in tally.items():
            total[name] = total[name] + value if name in total else value
    return total


def _exactly(exercise: Exercise, failure: Failure, wrong: Wrong) -> bool:
    """Whether what is named is what was put in; a further name is none where it is the same function."""
    if failure.named[:1] != [wrong.ids]:
        return False
    return all(same_function(exercise, idea, wrong.names) for idea in failure.explanations[1:])


def _all_named(seen: Iterable[Failure]) -> Ids:
    return frozenset(id for failure in seen for named in failure.named[:1] for id in named)


def _tally_names(exercise: Exercise, wrong: Wrong, tally: Data, count: bool = True) -> None:
    """Look at the first name of the first checks that fail: whether it was put in, or is what the answer does."""
    tally["of"] += count
    seen = itertools.islice(failures(exercise, wrong.names, about=wrong.about), CHECKS)
    given = [failure for failure in seen if failure.explanations]
    mistaken = [
        failure
        for failure in given
        if not failure.named[0] <= wrong.ids and not same_function(exercise, failure.explanations[0], wrong.names)
    ]
    tally["named"] += bool(given)
    tally["unasked"] += [[_told(wrong, [failure]) for failure in mistaken]] if mistaken else []


def _told(wrong: Wrong, seen: Iterable[Failure]) -> str:
    """A wrong answer and what was said of it, in one line."""
    said = "; ".join(
        f"{failure.check}: {' or '.join(' + '.join(sorted(ids)) for ids in failure.named) or 'no name'}"
        for failure in seen
    )
    return f"{wrong.label} → {said or 'passes'}"
