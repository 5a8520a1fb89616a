"""Wrong but plausible causal_attention(X, W_Q, W_K, W_V, causal=True).

The comment above each function says what its author believed and where it was seen; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import numpy as np

NAMED = {
    "sqrt_model_width": "causal_divides_by_root_d",
    "divides_by_dk": "causal_divides_by_d_k",
    "multiplies_by_sqrt": "causal_inverts_scale",
    "sqrt_value_width": "causal_divides_by_root_d_v",
    "mask_inverted": "causal_masks_the_past",
    "masks_itself": "causal_masks_itself",
    "peeks_one_ahead": "causal_peeks_one_ahead",
    "mask_minus_hundred": "causal_masks_with_a_small_number",
    "flag_ignored_never": "causal_never_masks",
    "softmax_columns": "causal_softmax_over_queries",
    "pair_swapped": "causal_returns_weights_first",
    "masks_values": "causal_masks_values",
    "key_padding_like": "causal_masks_the_same_keys_for_all",
    "shared_query_key": "causal_compares_keys",
    "float16_inside": "causal_works_in_float16",
    "uniform_past": "causal_weighs_evenly",
}


def _p(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


def _sm(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def _low(T):
    return np.tril(np.ones((T, T), dtype=bool))


# Sqrt of the model width instead of d_k.
# Seen: karpathy/ng-video-lecture PR#6; Graylab/DL4Proteins-notebooks#12; FareedKhan-dev/train-llm-from-scratch PR#3
def sqrt_model_width(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(X.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Divides by d_k, not by its root.
# Seen: delzac/cntkx#10
def divides_by_dk(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / K.shape[1]
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Multiplies by sqrt(d_k).
# Seen: esceptico/perceiver-io#9
def multiplies_by_sqrt(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T * np.sqrt(K.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Sqrt of the value width (same when d_v = d_k).
# Seen: juho-lee/set_transformer#18 (dim_V)
def sqrt_value_width(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(V.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Keeps the future instead of the past.
# Seen: karpathy/nanoGPT#170 (tril or triu?)
def mask_inverted(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.triu(np.ones_like(S)) == 1, S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Diagonal masked too: first row all -inf, NaN.
# Seen: pbloem/former#10; pytorch/pytorch#143287; facebookresearch/fairseq#1495
def masks_itself(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    with np.errstate(all="ignore"):
        if causal:
            S = np.where(np.tril(np.ones_like(S), k=-1) == 1, S, -np.inf)
        W = _sm(S)
    return W @ V, W


# Sees one token ahead.
# Seen: RVC-Boss/GPT-SoVITS#965; TransformerLensOrg/TransformerLens#284
def peeks_one_ahead(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.tril(np.ones_like(S), k=1) == 1, S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Finite fill -100: leaks when real scores are below it.
# Seen: huggingface/transformers#12109 (-10000); own bound
def mask_minus_hundred(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -100.0)
    W = _sm(S)
    return W @ V, W


# Never causal.
# Seen: ttsugriy.github.io 'Stage 5: Common Mistakes' (Forgetting the Causal Mask)
def flag_ignored_never(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    W = _sm(Q @ K.T / np.sqrt(K.shape[1]))
    return W @ V, W


# Columns sum to 1.
# Seen: source lesson 'Applying the softmax over the wrong axis'; rasbt/machine-learning-book#97
def softmax_columns(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S, axis=0)
    return W @ V, W


# Returns (W, out).
# Seen: order of the returned pair
def pair_swapped(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S)
    return W, W @ V


# Zeroes future VALUES, weights untouched.
# Seen: lsdefine/attention-is-all-you-need-keras#16 (what the mask is added to)
def masks_values(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    W = _sm(Q @ K.T / np.sqrt(K.shape[1]))
    M = _low(len(X)).astype(float) if causal else np.ones((len(X), len(X)))
    return np.einsum("ij,ij,jd->id", W, M, V), W


# Mask built for keys only: same columns hidden from every query.
# Seen: lsdefine/attention-is-all-you-need-keras#16
def key_padding_like(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(np.arange(len(X)) < (len(X) + 1) // 2, S, -np.inf)
    W = _sm(S)
    return W @ V, W


# One projection used for queries and keys.
# Seen: source lesson 'Relevance is forced to be symmetric'
def shared_query_key(X, W_Q, W_K, W_V, causal=True):
    K, V = X @ W_K, X @ W_V
    S = K @ K.T / np.sqrt(K.shape[1])
    if causal:
        S = np.where(_low(len(X)), S, -np.inf)
    W = _sm(S)
    return W @ V, W


# Works in float16 inside.
# Seen: mixed-precision habit; tenstorrent/tt-metal PR#56789 (low precision gap)
def float16_inside(X, W_Q, W_K, W_V, causal=True):
    with np.errstate(all="ignore"):
        Q, K, V = _p(*(a.astype(np.float16) for a in (X, W_Q, W_K, W_V)))
        S = Q @ K.T / np.sqrt(np.float16(K.shape[1]))
        if causal:
            S = np.where(_low(len(X)), S, np.float16(-np.inf))
        W = _sm(S)
        return (W @ V).astype(float), W.astype(float)


# Uniform average of the past (first step of the bag-of-words lecture).
# Seen: teaching step kept as the answer
def uniform_past(X, W_Q, W_K, W_V, causal=True):
    V, T = X @ W_V, len(X)
    W = np.tril(np.ones((T, T))) if causal else np.ones((T, T))
    W = W / W.sum(-1, keepdims=True)
    return W @ V, W
