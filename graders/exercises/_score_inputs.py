"""Hidden inputs for `break_sqrt_d`.

Most are written as the scores that they should have, with queries found to fit: so it is decided here which rows
saturate and which keys are popular, and each catalogued mistake shows whatever the seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """One call's arguments, in the order of the contract."""

    q: np.ndarray
    k: np.ndarray
    g: np.ndarray
    scaled: bool

    def single(self) -> Case:
        """The same in float32."""
        return Case(*(array.astype(np.float32) for array in self[:3]), self.scaled)

    def copy(self) -> Case:
        """The same in arrays of its own, for a function that changes its arguments."""
        return Case(*(array.copy() for array in self[:3]), self.scaled)


def plain(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """Normal queries and keys whose scores, after any division, have a standard deviation of about 2.5."""
    q, k, g = (rng.standard_normal(shape) for shape in ((T, d_k), (T, d_k), (T, T)))
    return Case(q * 2.5 / (1 if scaled else np.sqrt(d_k)), k, g, scaled)


def fresh(rng: np.random.Generator, *, scaled: bool) -> Case:
    """The experiment of the lesson: T = 64, d_k = 512, everything standard normal."""
    return Case(*(rng.standard_normal(shape) for shape in ((64, 512), (64, 512), (64, 64))), scaled)


def whole_numbers(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """Small integers, none of whose rows is so close to the bound 0.99 that rounding decides."""
    while True:
        q, k = rng.integers(-2, 3, size=(2, T, d_k))
        case = Case(q, k, rng.integers(-3, 4, size=(T, T)), scaled)
        largest = 1 / np.exp(_scores(case) - _scores(case).max(axis=-1, keepdims=True)).sum(axis=-1)
        if not np.any((largest > 0.985) & (largest < 0.995)):
            return case


def one_hot_rows(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """Four one-hot rows, three of which agree on a key; rows that reach 0.7, 0.94 and 0.97; and soft ones."""
    S = rng.uniform(-0.2, 0.2, size=(T, T))
    shared, alone, *others = rng.permutation(T)[:4]
    for row, key in enumerate([shared, shared, shared, alone]):
        S[row, key] = np.log(99 * (T - 1)) + rng.uniform(0.7, 1.5)
    for row, share in zip((4, 5, 6), (0.94, 0.97, 0.7), strict=True):
        S[row, others[row % 2]] = np.log(share / (1 - share) * (T - 1))
    return _with_scores(rng, rng.permutation(S), d_k, scaled)


def popular_keys(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """Rows that all prefer the same few keys: their entropies are far below those of the columns."""
    S = 0.8 * rng.standard_normal((T, T)) + rng.permutation(np.linspace(-2, 2, T))
    return _with_scores(rng, S, d_k, scaled)


def mixed_rows(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """T is odd; just over half of the rows have a weight of about 0.97, so the median row is one of these."""
    S = rng.uniform(-0.3, 0.3, size=(T, T))
    hot = np.arange(T // 2 + 1)
    S[hot, rng.integers(T, size=hot.size)] = np.log(30 * (T - 1)) + rng.uniform(-0.3, 0.3, size=hot.size)
    return _with_scores(rng, rng.permutation(S), d_k, scaled)


def saturated(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """Half of the rows have a winner that leads by 760 or more: the other weights underflow, but no score overflows."""
    S = rng.integers(-2, 3, size=(T, T))
    for row in range(T // 2):
        S[row] = rng.integers(-420, -379, size=T)
        S[row, rng.integers(T)] = rng.integers(380, 421)
    return _exactly(rng, rng.permutation(S), d_k, scaled)


def far_out(rng: np.random.Generator, T: int, d_k: int, *, scaled: bool) -> Case:
    """Rows around 1000, rows around −1000, and rows with both: exp overflows, or a whole row underflows."""
    levels = np.resize([998, -998, 0], T)
    S = levels[:, None] + rng.integers(-2, 3, size=(T, T))
    S[2] = np.where(np.arange(T) == rng.integers(T), 1000, -1000)
    return _exactly(rng, rng.permutation(S), d_k, scaled)


def _scores(case: Case) -> np.ndarray:
    return case.q @ case.k.T / (np.sqrt(case.q.shape[1]) if case.scaled else 1)


def _with_scores(rng: np.random.Generator, S: np.ndarray, d_k: int, scaled: bool) -> Case:
    """Random keys, and the queries that give them the scores S after any division; d_k is at least T."""
    k = rng.standard_normal((len(S), d_k))
    q = S * (np.sqrt(d_k) if scaled else 1) @ np.linalg.pinv(k).T
    return Case(q, k, rng.standard_normal(S.shape), scaled)


def _exactly(rng: np.random.Generator, S: np.ndarray, d_k: int, scaled: bool) -> Case:
    """Keys that each read one feature, so that float32 has the whole scores S exactly; d_k is a square, at least T."""
    features = rng.permutation(d_k)[: len(S)]
    q, k = rng.integers(-9, 10, size=(len(S), d_k)).astype(float), np.zeros((len(S), d_k))
    q[:, features] = S * (np.sqrt(d_k) if scaled else 1)
    k[np.arange(len(S)), features] = 1
    return Case(q, k, rng.standard_normal(S.shape), scaled)
