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


# np.matrix, whose * is a matrix product.
def matrices(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = (X.view(np.matrix) * W.view(np.matrix) for W in (W_Q, W_K, W_V))
    S = Q * K.T / np.sqrt(K.shape[1])
    if causal:
        S[np.triu_indices(len(X), 1)] = -np.inf if S.dtype.kind == "f" else 0
    W = np.exp(S - S.max(axis=1))
    W = W / W.sum(axis=1)
    return W * V, W


# Four nested loops, lists of lists out.
def plain_python(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = (np.asarray(part, dtype=float).tolist() for part in _p(X, W_Q, W_K, W_V))
    weights, output = [], []
    for i, query in enumerate(Q):
        seen = [k for j, k in enumerate(K) if j <= i or not causal]
        scores = [sum(a * b for a, b in zip(query, key, strict=True)) / len(query) ** 0.5 for key in seen]
        parts = [np.exp(score - max(scores)) for score in scores]
        row = [part / sum(parts) for part in parts] + [0.0] * (len(K) - len(seen))
        weights.append(row)
        output.append([sum(w * v[c] for w, v in zip(row, V, strict=True)) for c in range(len(V[0]))])
    return output, weights


# einsum, and a mask that is subtracted.
def einsum_large_penalty(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = (np.einsum("td,dk->tk", X, W) for W in (W_Q, W_K, W_V))
    S = np.einsum("ik,jk->ij", Q, K) / K.shape[-1] ** 0.5
    S = S - 1e12 * np.triu(np.ones_like(S, dtype=float), 1) * bool(causal)
    W = _sm(S)
    return np.einsum("ij,jv->iv", W, V), W


# np.putmask on a copy, np.finfo's lowest number.
def lowest_number(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = np.array(Q @ K.T, dtype=np.float64) * K.shape[1] ** -0.5
    if causal:
        np.putmask(S, ~np.tri(*S.shape, dtype=bool), np.finfo(S.dtype).min)
    W = _sm(S)
    return W @ V, W


# np.ma: what is masked takes no part in maxima and sums.
def numpy_masked(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    hidden = np.triu(np.ones(S.shape, dtype=bool), 1) if causal else np.zeros(S.shape, dtype=bool)
    S = np.ma.array(S, mask=hidden)
    E = np.ma.exp(S - S.max(axis=1)[:, None])
    W = (E / E.sum(axis=1)[:, None]).filled(0.0)
    return W @ V, W


# Tokens one at a time, keys and values kept as they come: how a cache works.
def with_a_cache(X, W_Q, W_K, W_V, causal=True):
    if not causal:
        S = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_K.shape[1])
        return _sm(S) @ (X @ W_V), _sm(S)
    keys, values, output, W = [], [], [], np.zeros((len(X), len(X)))
    for t, x in enumerate(X):
        keys.append(x @ W_K)
        values.append(x @ W_V)
        s = np.array(keys) @ (x @ W_Q) / np.sqrt(W_K.shape[1])
        W[t, : t + 1] = _sm(s)
        output.append(W[t, : t + 1] @ np.array(values))
    return np.array(output), W


# float32 throughout, in Fortran's order.
def float32_fortran(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = (np.asfortranarray(np.float32(X) @ np.float32(W)) for W in (W_Q, W_K, W_V))
    S = Q @ K.T * np.float32(K.shape[1] ** -0.5)
    S = np.where(np.tril(np.ones_like(S)) > 0, S, np.float32("-inf")) if causal else S
    W = _sm(S)
    return np.asfortranarray(W @ V), np.asfortranarray(W)


# PyTorch inside, a batch of one around it.
def torch_inside(X, W_Q, W_K, W_V, causal=True):
    import torch

    X, W_Q, W_K, W_V = (torch.as_tensor(np.array(a, dtype=np.float64)) for a in (X, W_Q, W_K, W_V))
    S = (X @ W_Q)[None] @ (X @ W_K)[None].mT / W_K.size(1) ** 0.5
    if causal:
        S = S.masked_fill(torch.ones_like(S).tril() == 0, -torch.inf)
    W = S.softmax(-1)
    return (W @ (X @ W_V)).squeeze(0), W.squeeze(0)


# A dict with the two names.
def returns_dict(X, W_Q, W_K, W_V, causal=True):
    output, weights = additive_inf(X, W_Q, W_K, W_V, causal)
    return {"weights": weights, "output": output}


# One array of objects for both.
def list_of_both(X, W_Q, W_K, W_V, causal=True):
    return list(fourth_root(X, W_Q, W_K, W_V, causal))


# The keys of the past stand above each other, and a window slides over them.
def padded_windows(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    T = len(X)
    S = np.full((T, T), -np.inf)
    for back in range(-T + 1, T):
        if back >= 0 or not causal:
            rows = np.arange(max(back, 0), T + min(back, 0))
            S[rows, rows - back] = np.einsum("tk,tk->t", Q[rows], K[rows - back]) / np.sqrt(K.shape[1])
    W = _sm(S)
    return W @ V, W
