"""Hidden inputs of the attention exercise: ordinary ones, and ones whose scores are given.

Source: the contracts and the 22 classic variants of the course's curriculum.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

Array = np.ndarray


def sequence(rng: np.random.Generator, *shape: int) -> Array:
    return rng.normal(size=shape)


def weights(rng: np.random.Generator, d: int, *widths: int) -> list[Array]:
    """One matrix per width; scores then spread by about 2 after 1/√d_k, enough to tell a rounded answer."""
    return [rng.normal(size=(d, width)) * np.sqrt(2.0 / d) for width in widths]


def scale(rng: np.random.Generator) -> float:
    # Away from 1, from 1/d_k and from every root of a size that a check has: 1/√T, 1/√d, 1/√d_k.
    return float(rng.uniform(0.55, 0.65))


def with_scores(
    scores: Float[Array, "T_q T_k"], factor: float, *, d: int, d_k: int, rng: np.random.Generator
) -> tuple[Array, Array, Array, Array]:
    """X_q, X_kv, W_Q and W_K whose scores, multiplied by `factor`, are `scores`: exactly so, even in float32.

    Tokens are one-hot, so X picks rows of the weights; a key is one-hot, so a query is a row of scores. Where T_q is
    T_k, both sequences are the same.
    """
    T_q, T_k = scores.shape
    order, columns = rng.permutation(d), rng.permutation(d_k)[:T_k]
    asking, asked = order[:T_q], order[:T_k]
    W_Q, W_K = np.zeros((d, d_k)), np.zeros((d, d_k))
    W_Q[asking[:, None], columns] = scores / factor
    W_K[asked, columns] = 1.0
    return np.eye(d)[asking], np.eye(d)[asked], W_Q, W_K


def _grid(values: Array) -> Array:
    """Sixty-fourths: as scores within ±1000 they are exact in float32."""
    return np.round(values * 64) / 64


def raised_scores(rng: np.random.Generator, T_q: int, T_k: int) -> Array:
    """Soft rows at a level that no softmax sees, where half precision has lost the second decimal."""
    return 40 + rng.uniform(-2, 2, (T_q, T_k))


def steep_scores(rng: np.random.Generator, T_q: int, T_k: int) -> Array:
    """Rows near 1000, near −1000 and near 0, and one that spans them all; softmax weights of each are soft or sharp."""
    level = np.resize([985.0, -985.0, 0.0], T_q)
    scores = level[:, None] + rng.uniform(-2, 2, (T_q, T_k))
    scores[T_q - 1] = rng.permutation(np.linspace(-985, 985, T_k))
    return _grid(scores)


def level_scores(rng: np.random.Generator, T: int) -> Array:
    """Rows at levels from −1000 to 1000 whose masked scores lie up to 15 above: each row's spread is at most 30."""
    seen = rng.uniform(-2, 2, (T, T))
    unseen = rng.uniform(5, 15, (T, T))
    level = np.resize([-970.0, 970.0, -500.0, 0.0, -200.0], T)
    return _grid(level[:, None] + np.where(np.tri(T, dtype=bool), seen, unseen))


def dwarfed_scores(rng: np.random.Generator) -> Array:
    """A masked score far above what its row may see; a seen one that overflows exp; quiet rows between them."""
    scores = rng.uniform(-2, 2, (5, 5))
    scores[0, 3] = 950.0
    scores[1, :2] += 950.0
    scores[3, 1] += 930.0
    return _grid(scores)


def causal(rng: np.random.Generator, T: int, d: int, d_k: int, d_v: int) -> list[Array]:
    return [sequence(rng, T, d), *weights(rng, d, d_k, d_k, d_v)]


def fused_with_scores(
    scores: Array, scale: float, *, d: int, d_k: int, rng: np.random.Generator
) -> tuple[Array, Array, float]:
    """Arguments of `fused_self_attention` with these scores after `scale`."""
    X, _, W_Q, W_K = with_scores(scores, scale, d=d, d_k=d_k, rng=rng)
    return X, np.concatenate([W_Q, W_K, rng.normal(size=(d, d_k))], axis=-1), scale


def causal_with_scores(scores: Array, rng: np.random.Generator) -> list[Array]:
    """Arguments of `causal_attention` with these scores after 1/√d_k, a power of two."""
    X, _, W_Q, W_K = with_scores(scores, 0.25, d=9, d_k=16, rng=rng)
    return [X, W_Q, W_K, rng.normal(size=(9, 3))]


def cross(rng: np.random.Generator, B: int, T_q: int, T_k: int, d: int, d_k: int, d_v: int) -> list[Array]:
    return [sequence(rng, B, T_q, d), sequence(rng, B, T_k, d), *weights(rng, d, d_k, d_k, d_v)]


def cross_with_scores(scores: Array, rng: np.random.Generator) -> list[Array]:
    """Arguments of `cross_attention`, a batch of one, with these scores after 1/√d_k, a power of two."""
    X_q, X_kv, W_Q, W_K = with_scores(scores, 0.25, d=11, d_k=16, rng=rng)
    return [X_q[None], X_kv[None], W_Q, W_K, rng.normal(size=(11, 3))]


def integers(rng: np.random.Generator, *shapes: tuple[int, ...]) -> list[Array]:
    return [rng.integers(-1, 2, size=shape) for shape in shapes]
