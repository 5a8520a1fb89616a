"""Right but unusual causal_attention(X, W_Q, W_K, W_V, causal=True).

The comment above each function says what is unusual about it, and so what no check may assume.
"""

from __future__ import annotations

import collections

import numpy as np


def _p(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


def _sm(S):
    E = np.exp(S - S.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True)


# Additive mask built with np.triu(full(-inf), 1).
def additive_inf(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = S + np.triu(np.full(S.shape, -np.inf), k=1)
    W = _sm(S)
    return W @ V, W


# Softmax over each prefix, no mask at all.
# Not to assume: upper triangle is exact 0 by construction
def prefix_loop(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    T = len(X)
    W = np.zeros((T, T))
    for t in range(T):
        n = t + 1 if causal else T
        s = K[:n] @ Q[t] / np.sqrt(K.shape[1])
        W[t, :n] = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
    return W @ V, W


# Masked exp, then renormalised, max over the ALLOWED entries only.
# Not to assume: mask 'after' exp is right when renormalised
def mask_after_exp(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    M = np.tri(len(X), dtype=bool) if causal else np.ones(S.shape, bool)
    m = np.max(S, axis=-1, where=M, initial=-np.inf, keepdims=True)
    E = np.exp(S - m, where=M, out=np.zeros_like(S))
    W = E / E.sum(-1, keepdims=True)
    return W @ V, W


# Cumulative sums of exp-weighted values (linear in memory).
# Not to assume: order of summation
def running_sums(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.subtract.outer(np.arange(len(X)), np.arange(len(X))) >= 0, S, -np.inf)
    E = np.exp(S - S.max(-1, keepdims=True))
    num = np.cumsum(E[:, :, None] * V[None], axis=1)[:, -1]
    den = np.cumsum(E, axis=1)[:, -1:]
    return num / den, E / den


# Log-softmax then exp.
def log_space(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.tri(len(X), dtype=bool), S, -np.inf)
    W = np.exp(S - np.logaddexp.reduce(S, axis=-1, keepdims=True))
    return W @ V, W


# Divides Q and K by the fourth root.
# Not to assume: openai/guided-diffusion#38 asks exactly this: it is right
def fourth_root(X, W_Q, W_K, W_V, causal=True):
    r = W_K.shape[1] ** 0.25
    Q, K, V = (X @ W_Q) / r, (X @ W_K) / r, X @ W_V
    S = Q @ K.T
    if causal:
        S = np.where(np.tri(len(X), dtype=bool), S, -np.inf)
    W = _sm(S)
    return W @ V, W


# float32 in, float64 inside, float32 out.
# Not to assume: dtype of the result
def mixed_precision(X, W_Q, W_K, W_V, causal=True):
    t = X.dtype
    Q, K, V = _p(*(np.asarray(a, np.float64) for a in (X, W_Q, W_K, W_V)))
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.tri(len(X), dtype=bool), S, -np.inf)
    W = _sm(S)
    return (W @ V).astype(t), W.astype(t)


_Result = collections.namedtuple("Result", "out W")


# Namedtuple (out, W).
# Not to assume: unpacks like a tuple
def named_result(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.tri(len(X), dtype=bool), S, -np.inf)
    W = _sm(S)
    return _Result(W @ V, W)


# Extra keywords (scale=None, mask=None), causal as keyword or positional.
def extra_keywords(X, W_Q, W_K, W_V, causal=True, *, scale=None, mask=None):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T * (K.shape[1] ** -0.5 if scale is None else scale)
    if mask is None and causal:
        mask = np.tri(len(X), dtype=bool)
    if mask is not None:
        S = np.where(mask, S, -np.inf)
    W = _sm(S)
    return W @ V, W


class _Attention:
    def __init__(self, W_Q, W_K, W_V):
        self.W_Q, self.W_K, self.W_V = W_Q, W_K, W_V

    def mask(self, T):
        return np.tri(T, dtype=bool)

    def __call__(self, X, causal):
        Q, K, V = _p(X, self.W_Q, self.W_K, self.W_V)
        S = Q @ K.T / np.sqrt(K.shape[1])
        S = np.where(self.mask(len(X)), S, -np.inf) if causal else S
        W = _sm(S)
        return W @ V, W


# Class behind a thin function.
def class_based(X, W_Q, W_K, W_V, causal=True):
    return _Attention(W_Q, W_K, W_V)(X, causal)


# scipy.special.softmax, scipy.linalg.toeplitz mask.
# Not to assume: scipy must be installed on the grader, or be named as not available (needs scipy)
def scipy_parts(X, W_Q, W_K, W_V, causal=True):
    from scipy.linalg import toeplitz
    from scipy.special import softmax

    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(toeplitz(np.ones(len(X)), np.eye(1, len(X))[0]) > 0, S, -np.inf)
    W = softmax(S, axis=-1)
    return W @ V, W


# -inf handled with np.errstate, explicit nan_to_num on weights.
# Not to assume: right although NaN would be hidden; warnings are not failures
def nan_guard(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    with np.errstate(invalid="ignore", over="ignore"):
        S = Q @ K.T / np.sqrt(K.shape[1]) + (_log_mask(len(X)) if causal else 0.0)
        W = np.nan_to_num(_sm(S))
    return W @ V, W


def _log_mask(T):
    with np.errstate(divide="ignore"):
        return np.log(np.tri(T))
