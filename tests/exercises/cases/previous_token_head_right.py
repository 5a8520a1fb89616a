"""Right but unusual previous_token_head(n_vocab, T): each function's comment names what a check must not assume."""

from __future__ import annotations

from collections import namedtuple

import numpy as np


def _head(n_vocab, T, ask, answer):
    """W_Q and W_K with the position parts `ask` and `answer` (T, d_k), and values that read the token."""
    W_Q, W_K = np.zeros((n_vocab + T, ask.shape[1])), np.zeros((n_vocab + T, answer.shape[1]))
    W_Q[n_vocab:], W_K[n_vocab:] = ask, answer
    return W_Q, W_K, np.eye(n_vocab + T, n_vocab)


# The sharpness may stand in the keys: entries of W_Q prove nothing.
def factor_on_keys(n_vocab, T):
    return _head(n_vocab, T, np.eye(T, k=-1), 40 * np.eye(T))


# Or be shared: 7 · 7 = 49.
def factor_shared(n_vocab, T):
    return _head(n_vocab, T, 7 * np.eye(T, k=-1), 7 * np.eye(T))


# The shift may stand in the keys: "I come before j + 1".
def shift_on_keys(n_vocab, T):
    return _head(n_vocab, T, 30 * np.eye(T), np.eye(T, k=1))


# Queries and keys in another basis, W_Q R and W_K R⁻ᵀ, make the same scores (A19).
def sheared(n_vocab, T):
    R = np.eye(T) + 0.3 * np.triu(np.ones((T, T)), 1) / T
    return _head(n_vocab, T, 30 * np.eye(T, k=-1) @ R, np.linalg.inv(R).T)


# d_k = 2: positions on a circle, with a factor that grows with T².
def two_dimensions(n_vocab, T):
    angle = 2 * np.pi * np.arange(T) / (T + 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _head(n_vocab, T, np.concatenate([np.zeros((1, 2)), 20 * (T + 1) ** 2 * circle[:-1]]), circle)


# Row 0 is free: with np.roll the first position looks at the last.
def wraps_around(n_vocab, T):
    return _head(n_vocab, T, 30 * np.roll(np.eye(T), -1, axis=1), np.eye(T))


# Any float dtype.
def single_precision(n_vocab, T):
    return tuple(W.astype(np.float32) for W in factor_shared(n_vocab, T))


# Whole numbers are numbers.
def integers(n_vocab, T):
    return tuple(W.astype(int) for W in factor_shared(n_vocab, T))


# A factor chosen from T, as small as the contract lets it be.
def smallest_factor(n_vocab, T):
    return _head(n_vocab, T, np.log(99 * (T - 1)) * np.eye(T, k=-1), np.eye(T))


# A penalty on every other key, where most people write a reward for the right one.
def punishes_the_others(n_vocab, T):
    return _head(n_vocab, T, 30 * (np.eye(T, k=-1) - 1), np.eye(T))


# Nested lists.
def lists(n_vocab, T):
    return tuple(W.tolist() for W in factor_shared(n_vocab, T))


# A list of three.
def list_of_three(n_vocab, T):
    return list(factor_shared(n_vocab, T))


# A mapping with the three names, in another order.
def mapping(n_vocab, T):
    W_Q, W_K, W_V = factor_shared(n_vocab, T)
    return {"W_V": W_V, "W_K": W_K, "W_Q": W_Q}


Head = namedtuple("Head", "W_V W_K W_Q")


# An object with the three names, in another order.
def named_tuple(n_vocab, T):
    return Head(**mapping(n_vocab, T))


# Tensors.
def tensors(n_vocab, T):
    import torch

    return tuple(torch.as_tensor(W) for W in factor_shared(n_vocab, T))


# The query may read the token too, where no key answers: zero rows in W_Q are not required.
def token_dependent_query(n_vocab, T):
    W_Q, W_K, W_V = _head(n_vocab, T, 30 * np.eye(T, T + 1, k=-1), np.eye(T, T + 1))
    W_Q[:n_vocab, T] = np.arange(n_vocab)
    return W_Q, W_K, W_V


# A parabola: the score −c (j − (i − 1))², but for what all keys of a row share; d_k = 2.
def parabola(n_vocab, T):
    places, c = np.arange(T), np.log(99 * T) + 2
    return _head(n_vocab, T, np.stack([2 * c * (places - 1), np.full(T, -c)], 1), np.stack([places, places**2.0], 1))


# Random codes for positions, as wide as they need to be, made orthogonal.
def random_codes(n_vocab, T):
    codes = np.linalg.qr(np.random.default_rng(3).normal(size=(T + 5, T)))[0].T
    return _head(n_vocab, T, 50 * np.roll(codes, 1, axis=0), codes)


# A width far larger than it need be.
def too_wide(n_vocab, T):
    wide = np.zeros((T, T + n_vocab))
    wide[:, n_vocab:] = np.eye(T)
    return _head(n_vocab, T, 40 * np.roll(wide, 1, axis=0), wide)


# Row 0 looks at itself.
def row_zero_at_itself(n_vocab, T):
    ask = np.eye(T, k=-1)
    ask[0, 0] = 1
    return _head(n_vocab, T, 25 * ask, np.eye(T))


# Entry by entry.
def by_loops(n_vocab, T):
    W_Q = [[0.0] * T for _ in range(n_vocab + T)]
    W_K = [[0.0] * T for _ in range(n_vocab + T)]
    W_V = [[0.0] * n_vocab for _ in range(n_vocab + T)]
    for i in range(T):
        W_K[n_vocab + i][i] = 1.0
        if i:
            W_Q[n_vocab + i][i - 1] = 100.0
    for token in range(n_vocab):
        W_V[token][token] = 1.0
    return W_Q, W_K, W_V


# np.matrix.
def matrices(n_vocab, T):
    return tuple(W.view(np.matrix) for W in factor_shared(n_vocab, T))


# Values a little off, within the 0.01 that the contract leaves.
def nearly_one_hot(n_vocab, T):
    W_Q, W_K, W_V = factor_on_keys(n_vocab, T)
    return W_Q, W_K, W_V * 0.995


# A penalty for every step away, and a larger one ahead: distances instead of codes.
def by_distance(n_vocab, T):
    i, j = np.indices((T, T))
    return _head(n_vocab, T, -30.0 * np.abs(i - 1 - j), np.eye(T))


# Keys and queries both shifted, so that one step is left.
def both_shifted(n_vocab, T):
    return _head(n_vocab, T, 30 * np.eye(T, T + 3, k=1), np.eye(T, T + 3, k=2))


# Zero matrices stacked on codes.
def stacked(n_vocab, T):
    top = np.zeros((n_vocab, T))
    W_Q, W_K = np.vstack([top, 30 * np.tri(T, T, -1) - 30 * np.tri(T, T, -2)]), np.vstack([top, np.identity(T)])
    return W_Q, W_K, np.vstack([np.identity(n_vocab), np.zeros((T, n_vocab))])
