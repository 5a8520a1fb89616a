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


# Four nested loops, nested lists out.
def plain_python(X_q, X_kv, W_Q, W_K, W_V):
    outputs, weights = [], []
    for asking, asked in zip(X_q @ W_Q, X_kv @ np.concatenate([W_K, W_V], axis=1), strict=True):
        outputs.append([])
        weights.append([])
        for query in asking.tolist():
            scores = [sum(a * b for a, b in zip(query, key, strict=False)) / len(query) ** 0.5 for key in asked]
            parts = [float(np.exp(score - max(scores))) for score in scores]
            row = [part / sum(parts) for part in parts]
            weights[-1].append(row)
            columns = asked[:, len(query) :].T.tolist()
            outputs[-1].append([sum(w * v for w, v in zip(row, column, strict=True)) for column in columns])
    return outputs, weights


# scipy's softmax, scores divided before the product.
def scipy_softmax(X_q, X_kv, W_Q, W_K, W_V):
    from scipy.special import softmax

    Q = (X_q @ W_Q) / np.sqrt(W_Q.shape[1])
    W = softmax(Q @ (X_kv @ W_K).mT, axis=2)
    return np.matmul(W, X_kv @ W_V), W


# scipy's log_softmax, the same container for both.
def log_softmax_list(X_q, X_kv, W_Q, W_K, W_V):
    from scipy.special import log_softmax

    W = np.exp(log_softmax((X_q @ W_Q) @ (X_kv @ W_K).transpose(0, 2, 1) / W_K.shape[1] ** 0.5, axis=-1))
    return [W @ (X_kv @ W_V), W]


# In place, on arrays of its own.
def in_place_on_copies(X_q, X_kv, W_Q, W_K, W_V):
    W_Q = np.array(W_Q, dtype=np.float64)
    W_Q /= np.sqrt(W_Q.shape[-1])
    S = (X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, 1, 2)
    S -= np.max(S, axis=2, keepdims=True)
    S = np.exp(S, out=S)
    S /= S.sum(axis=2, keepdims=True)
    return S @ (X_kv @ W_V), S


# Keys never formed: scores by the product of the two projections.
def bilinear(X_q, X_kv, W_Q, W_K, W_V):
    S = np.einsum("bid,de,bje->bij", X_q, W_Q @ W_K.T, X_kv, optimize=True) / np.sqrt(W_K.shape[1])
    W = _sm(S)
    return (W @ X_kv) @ W_V, W


# All sequences in one long product, other sequences masked out afterwards.
def one_long_sequence(X_q, X_kv, W_Q, W_K, W_V):
    B, T_q, _ = X_q.shape
    T_k = X_kv.shape[1]
    Q, K, V = X_q.reshape(B * T_q, -1) @ W_Q, X_kv.reshape(B * T_k, -1) @ W_K, X_kv.reshape(B * T_k, -1) @ W_V
    same = np.kron(np.eye(B), np.ones((T_q, T_k))) == 1
    W = _sm(np.where(same, Q @ K.T / np.sqrt(K.shape[1]), -np.inf))
    rows = W.reshape(B, T_q, B, T_k)
    return (W @ V).reshape(B, T_q, -1), np.stack([rows[b, :, b] for b in range(B)])


# PyTorch's own attention; the weights by mixing an identity.
def sdpa_identity(X_q, X_kv, W_Q, W_K, W_V):
    import torch

    X_q, X_kv, W_Q, W_K, W_V = (torch.tensor(np.asarray(a, dtype=np.float64)) for a in (X_q, X_kv, W_Q, W_K, W_V))
    Q, K = X_q @ W_Q, X_kv @ W_K
    eye = torch.eye(X_kv.shape[1], dtype=torch.float64).expand(len(X_kv), -1, -1)
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(Q, K, X_kv @ W_V).numpy(), attend(Q, K, eye).numpy()


# Values mixed first, and divided by the sums afterwards.
def normalises_last(X_q, X_kv, W_Q, W_K, W_V):
    S = np.einsum("bik,bjk->bij", X_q @ W_Q, X_kv @ W_K) * W_K.shape[1] ** -0.5
    E = np.exp(S - S.max(-1)[..., None])
    sums = E.sum(-1)[..., None]
    return E @ (X_kv @ W_V) / sums, E / sums


# A dict with the two names and a third.
def returns_dict(X_q, X_kv, W_Q, W_K, W_V):
    S = (X_q @ W_Q) @ (X_kv @ W_K).mT / np.sqrt(W_K.shape[1])
    return {"scores": S, "weights": _sm(S), "output": _sm(S) @ (X_kv @ W_V)}


# Long doubles inside and out.
def long_doubles(X_q, X_kv, W_Q, W_K, W_V):
    X_q, X_kv, W_Q, W_K, W_V = (np.asarray(a, dtype=np.longdouble) for a in (X_q, X_kv, W_Q, W_K, W_V))
    W = _sm(np.matmul(X_q @ W_Q, (X_kv @ W_K).swapaxes(1, 2)) / np.sqrt(np.longdouble(W_K.shape[1])))
    return W @ (X_kv @ W_V), W
