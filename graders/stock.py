"""Choose the stock of numbers in course/instances.py, from which `derive_by_hand` deals to each student.

Which numbers tell all known wrong procedures apart cannot be found out without carrying those procedures out, and no
student may have them. So the choice is made here, once, and `course` ships its outcome. After a new misconception,
tests/test_instances.py says whether the stock still does; if not, `python -m graders.stock` prints another.
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator

import numpy as np

from graders.exercises.derive_by_hand import STAGES, Matrices, exercise, take

APART = 0.05
"""What any two procedures must differ by, somewhere in the matrix of the step in which they differ."""

ROUNDED = 0.0255
"""The same for weights rounded to two decimals: outside ±0.02 even when the output is rounded to two decimals too."""

PAIRS, VALUES = 2048, 128
"""262,144 instances: in a class of 100 two students share all numbers with a probability of 2 %."""


def separation(numbers: Matrices) -> np.ndarray:
    """For each of a stack of instances the distance of the two closest procedures, as a multiple of what is needed."""
    known = dict(numbers)
    closest = np.full(numbers["Q"].shape[:-2], np.inf)
    for stage in STAGES:
        made = _procedures(stage, known)
        for (first, a), (second, b) in itertools.combinations(made.items(), 2):
            if a.shape == b.shape:
                needed = ROUNDED if {first, second} == {"right", "rounds_too_early"} else APART
                closest = np.minimum(closest, np.abs(a - b).max(axis=(-2, -1)) / needed)
        known[stage] = made["right"]
    return closest


def _procedures(stage: str, known: Matrices) -> Matrices:
    """The matrix of `stage` by the right step and by every wrong one, on right matrices before it."""
    steps = {wrong.id: wrong.answer for wrong in exercise.misconceptions.values() if wrong.replaces == stage}
    return {name: take(step, known) for name, step in {"right": exercise.references[stage], **steps}.items()}


def comfortable(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Which of a stack of Q and K are pleasant by hand: small scores, a clear winner per row, no weight near zero."""
    raw = take(exercise.references["raw_scores"], {"Q": Q, "K": K})
    scores = take(exercise.references["scores"], {"raw_scores": raw, "K": K})
    weights = take(exercise.references["weights"], {"scores": scores})
    ordered, winners = np.sort(raw, axis=-1), raw.argmax(axis=-1)
    clear = (ordered[..., 2] > ordered[..., 1]).all(axis=-1) & (np.ptp(winners, axis=-1) > 0)
    return clear & (raw.max(axis=(-2, -1)) <= 7) & (weights.min(axis=(-2, -1)) >= 0.02)


def matrices(largest: int) -> Iterator[np.ndarray]:
    """Every 3 × 2 matrix with entries up to `largest` whose rows differ, are not zero and do not lie on one line."""
    for entries in itertools.product(range(largest + 1), repeat=6):
        matrix = np.array(entries, dtype=float).reshape(3, 2)
        if len(np.unique(matrix, axis=0)) == 3 and matrix.any(axis=1).all() and np.linalg.matrix_rank(matrix) == 2:
            yield matrix


def choose(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A stock: PAIRS of (Q, K) and VALUES of V, each of which may be dealt with each."""
    pairs = _distinct_pairs(rng)
    varied = [V for V in matrices(4) if all(len(set(column)) == 3 and max(column) >= 3 for column in V.T)]
    values = rng.permutation(np.array(varied))[: 5 * VALUES]
    fits = np.array([separation({"Q": pairs[:, 0], "K": pairs[:, 1], "V": V}) >= 1 for V in values])
    # Values that go with most pairs first, then the pairs that go with all of these.
    generous = np.flatnonzero(fits.mean(axis=1) >= np.quantile(fits.mean(axis=1), 0.8))
    dealt = rng.choice(generous, VALUES, replace=False)
    return rng.choice(pairs[fits[dealt].all(axis=0)], PAIRS, replace=False), values[dealt]


def _distinct_pairs(rng: np.random.Generator) -> np.ndarray:
    """Comfortable pairs of Q and K, no two with the same raw scores."""
    some = np.array(list(matrices(2)))
    pairs = np.array(list(itertools.product(some, some)))
    pairs = rng.permutation(pairs[comfortable(pairs[:, 0], pairs[:, 1])])
    raw = take(exercise.references["raw_scores"], {"Q": pairs[:, 0], "K": pairs[:, 1]})
    return pairs[np.unique(raw.reshape(len(raw), -1), axis=0, return_index=True)[1]]


def written(stack: np.ndarray, base: int, width: int) -> str:
    """A stack of integers below `base` as text: the entries of each in reading order as one number, in base 36."""
    numbers = [int("".join(str(int(entry)) for entry in matrices.ravel()), base) for matrices in stack]
    return textwrap.fill(
        "".join(np.base_repr(number, 36).rjust(width, "0") for number in numbers), 112 // width * width
    )


if __name__ == "__main__":
    drawn_pairs, drawn_values = choose(np.random.default_rng(1))
    print(f'_PAIRS = """\n{written(drawn_pairs, 3, 4)}\n"""\n\n_VALUES = """\n{written(drawn_values, 5, 3)}\n"""')
