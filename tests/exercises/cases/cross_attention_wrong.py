"""Wrong but plausible cross_attention(X_q, X_kv, W_Q, W_K, W_V).

The comment above each function says what its author believed; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import numpy as np

NAMED = {
    "values_from_the_asking": "cross_values_from_queries",
    "self_attention": "cross_attends_to_own_sequence",
    "sequences_swapped": "cross_swaps_sequences",
    "softmax_over_queries": "cross_softmax_over_queries",
    "model_width": "cross_divides_by_root_d",
    "decoder_mask": "cross_masks_unasked",
    "output_alone": "cross_returns_output_alone",
    "roles_swapped": "cross_swaps_queries_and_keys",
    "overflowing": "cross_overflows",
    "scores_from_means": "",
}


def _sm(S, axis=-1):
    E = np.exp(S - S.max(axis, keepdims=True))
    return E / E.sum(axis, keepdims=True)


def _t(K):
    return np.swapaxes(K, -1, -2)


# Values come from the sequence that asks: runs only while both are equally long.
def values_from_the_asking(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ _t(X_kv @ W_K) / np.sqrt(W_K.shape[1]))
    return W @ (X_q @ W_V), W


# The self-attention from above with another name: X_kv is never read.
def self_attention(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ _t(X_q @ W_K) / np.sqrt(W_K.shape[1]))
    return W @ (X_q @ W_V), W


# The second sequence asks and the first one answers.
def sequences_swapped(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_kv @ W_Q) @ _t(X_q @ W_K) / np.sqrt(W_K.shape[1]))
    return W @ (X_q @ W_V), W


# Each key's column sums to 1.
def softmax_over_queries(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ _t(X_kv @ W_K) / np.sqrt(W_K.shape[1]), axis=1)
    return W @ (X_kv @ W_V), W


# The root of the model's width; the commonest bug in public code.
def model_width(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ _t(X_kv @ W_K) / np.sqrt(X_q.shape[-1]))
    return W @ (X_kv @ W_V), W


# A decoder's habit: later keys are hidden, although the other sequence lies there whole.
def decoder_mask(X_q, X_kv, W_Q, W_K, W_V):
    S = (X_q @ W_Q) @ _t(X_kv @ W_K) / np.sqrt(W_K.shape[1])
    W = _sm(np.where(np.tri(*S.shape[1:], dtype=bool), S, -np.inf))
    return W @ (X_kv @ W_V), W


# Returns what the fused function returns.
def output_alone(X_q, X_kv, W_Q, W_K, W_V):
    return _sm((X_q @ W_Q) @ _t(X_kv @ W_K) / np.sqrt(W_K.shape[1])) @ (X_kv @ W_V)


# K Qᵀ instead of Q Kᵀ: the shapes agree only where both sequences are equally long.
def roles_swapped(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_kv @ W_K) @ _t(X_q @ W_Q) / np.sqrt(W_K.shape[1]))
    return W @ (X_kv @ W_V), W


# exp without a shift.
def overflowing(X_q, X_kv, W_Q, W_K, W_V):
    with np.errstate(all="ignore"):
        E = np.exp((X_q @ W_Q) @ _t(X_kv @ W_K) / np.sqrt(W_K.shape[1]))
        W = E / E.sum(-1, keepdims=True)
        return W @ (X_kv @ W_V), W


# All tokens of a batch are asked as one: a mistake that the catalogue has no name for.
def scores_from_means(X_q, X_kv, W_Q, W_K, W_V):
    W = _sm((X_q @ W_Q) @ _t((X_kv - X_kv.mean(1, keepdims=True) * 0.5) @ W_K) / np.sqrt(W_K.shape[1]))
    W = np.where(W < 0.02, 0, W)
    return W @ (X_kv @ W_V), W
