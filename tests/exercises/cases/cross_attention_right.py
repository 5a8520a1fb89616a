"""Right but unusual cross_attention(X_q, X_kv, W_Q, W_K, W_V).

The comment above each function says what is unusual about it, and so what no check may assume.
"""

from __future__ import annotations

import dataclasses

import numpy as np


def _sm(S):
    E = np.exp(S - S.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True)


# A loop over the batch, and lists of arrays as results.
def loop_and_lists(X_q, X_kv, W_Q, W_K, W_V):
    outputs, weights = [], []
    for asking, asked in zip(X_q, X_kv, strict=True):
        W = _sm((asking @ W_Q) @ (asked @ W_K).T / np.sqrt(W_K.shape[1]))
        outputs.append(W @ (asked @ W_V))
        weights.append(W)
    return outputs, weights


# einsum all the way; float32 inside, as graphics cards do it.
def einsum_float32(X_q, X_kv, W_Q, W_K, W_V):
    X_q, X_kv, W_Q, W_K, W_V = (np.asarray(a, np.float32) for a in (X_q, X_kv, W_Q, W_K, W_V))
    Q, K, V = (np.einsum("btd,dk->btk", X, W) for X, W in ((X_q, W_Q), (X_kv, W_K), (X_kv, W_V)))
    S = np.einsum("bik,bjk->bij", Q, K) / np.float32(np.sqrt(K.shape[-1]))
    W = _sm(S)
    return np.einsum("bij,bjd->bid", W, V), W


# PyTorch inside, tensors as results: NumPy was meant, numbers are numbers.
def returns_tensors(X_q, X_kv, W_Q, W_K, W_V):
    import torch

    X_q, X_kv, W_Q, W_K, W_V = (torch.tensor(a, dtype=torch.float64) for a in (X_q, X_kv, W_Q, W_K, W_V))
    W = torch.softmax((X_q @ W_Q) @ (X_kv @ W_K).mT / W_K.shape[1] ** 0.5, dim=-1)
    return W @ (X_kv @ W_V), W


@dataclasses.dataclass
class _Result:
    output: np.ndarray
    weights: np.ndarray


# A record with the two names instead of a pair.
def returns_record(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2) / np.sqrt(W_K.shape[1]))
    return _Result(W @ (X_kv @ W_V), W)


# Masked and read-only arrays that are no copies of their own.
def returns_views(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2) / np.sqrt(W_K.shape[1]))
    output = np.moveaxis(np.asfortranarray(np.moveaxis(W @ (X_kv @ W_V), -1, 0)), 0, -1)
    W.flags.writeable = False
    return np.ma.masked_array(output), W
