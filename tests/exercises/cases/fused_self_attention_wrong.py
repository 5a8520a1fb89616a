"""Wrong but plausible fused_self_attention(X, W_qkv, scale).

The comment above each function says what its author believed and where it was seen; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import numpy as np

NAMED = {
    "softmax_over_queries": "fused_softmax_over_queries",
    "softmax_axis0": "fused_softmax_over_batch",
    "softmax_axis1": "fused_softmax_over_axis_1",
    "softmax_no_keepdims": "fused_forgets_keepdims",
    "divides_by_scale": "fused_inverts_scale",
    "ignores_scale_sqrt_dk": "fused_divides_by_root_d_k",
    "scale_on_projection": "fused_scales_projection",
    "order_kqv": "fused_swaps_queries_and_keys",
    "order_vkq": "fused_reverses_blocks",
    "interleaved_columns": "fused_cuts_interleaved",
    "reshape_three_first": "fused_cuts_across_tokens",
    "block_width_is_d": "fused_cuts_blocks_d_wide",
    "linear_convention": "fused_transposes_weights",
    "mixes_keys": "fused_mixes_keys",
    "naive_no_projection": "fused_skips_projection",
    "global_max": "fused_shifts_by_one_maximum",
    "causal_by_habit": "fused_masks_unasked",
    "tensordot_all_pairs": "fused_scores_across_the_batch",
    "plain_normalisation": "fused_divides_by_plain_sums",
    "sigmoid_weights": "fused_uses_sigmoid",
    "hard_argmax": "fused_takes_only_the_best",
    "log_weights": "fused_keeps_log_weights",
    "mutates_weights": "fused_changes_its_weights",
    "caches_by_shape": "fused_remembers_earlier_input",
    "rounds_weights": "fused_rounds_weights",
    "last_row_missing": "fused_leaves_out_last_row",
    "pooled_output": "fused_pools_tokens",
    "dk_from_scale": "fused_guesses_width_from_scale",
}


def _sm(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def _qkv(X, W):
    return np.split(X @ W, 3, axis=-1)


def _t(K):
    return np.swapaxes(K, -1, -2)


# Normalises over the queries (columns sum to 1).
# Seen: source lesson 'Common mistakes'; labmlai/annotated_deep_learning_paper_implementations#146
def softmax_over_queries(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale, axis=-2) @ V


# axis=0 hard-coded: queries in 2-D, the BATCH in 3-D.
# Seen: PetrochukM/PyTorch-NLP#2; jadore801120/attention-is-all-you-need-pytorch#52
def softmax_axis0(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale, axis=0) @ V


# axis=1 hard-coded: right in 2-D, over queries in 3-D.
# Seen: nerminnuraydogan/vision-transformer#1; FudanNLP/fastNLP#254
def softmax_axis1(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale, axis=1) @ V


# Keepdims forgotten: silently divides along the wrong axis when the matrix is square.
# Seen: triton-lang/triton#11406; DeNA/HandyRL PR#209
def softmax_no_keepdims(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    E = np.exp(Q @ _t(K) * scale)
    return (E / E.sum(-1)) @ V


# Divides by scale instead of multiplying.
# Seen: esceptico/perceiver-io#9
def divides_by_scale(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) / scale) @ V


# Argument ignored, 1/sqrt(d_k) hard-coded.
# Seen: source lesson step 6 read as the only scale
def ignores_scale_sqrt_dk(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) / np.sqrt(K.shape[-1])) @ V


# Applied to the whole packed projection, V included.
# Seen: misread 'scale the projection'
def scale_on_projection(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv * np.sqrt(scale), 3, axis=-1)
    return _sm(Q @ _t(K)) @ V


# Order K, Q, V (scores transposed).
# Seen: keyvank/femtoGPT#30 (k q^T instead of q k^T)
def order_kqv(X, W_qkv, scale):
    K, Q, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale) @ V


# Order V, K, Q.
# Seen: source lesson 'Mixing up the roles of keys and values'
def order_vkq(X, W_qkv, scale):
    V, K, Q = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale) @ V


# Columns taken interleaved (q0 k0 v0 q1 ...) instead of as three blocks.
# Seen: pytorch/pytorch PR#93234 (3,E versus E,3); NVIDIA/apex#1131
def interleaved_columns(X, W_qkv, scale):
    P = X @ W_qkv
    Q, K, V = P[..., 0::3], P[..., 1::3], P[..., 2::3]
    return _sm(Q @ _t(K) * scale) @ V


# reshape(3, ..., d_k) instead of splitting the last axis.
# Seen: hyunwoongko/transformer#15; zhouhaoyi/Informer2020#59
def reshape_three_first(X, W_qkv, scale):
    P = X @ W_qkv
    Q, K, V = P.reshape(3, *P.shape[:-1], P.shape[-1] // 3)
    return _sm(Q @ _t(K) * scale) @ V


# Width of the blocks taken from d (only right when the packed width is 3d).
# Seen: Khaliladib11/Transformer-from-scratch#3; karpathy/nanoGPT#629
def block_width_is_d(X, W_qkv, scale):
    d, P = X.shape[-1], X @ W_qkv
    Q, K, V = P[..., :d], P[..., d : 2 * d], P[..., 2 * d :]
    return _sm(Q @ _t(K) * scale) @ V


# nn.Linear convention: X @ W_qkv.T (silent when W is square).
# Seen: source lesson 'frequent source of shape errors'; skyzh/tiny-llm PR#60
def linear_convention(X, W_qkv, scale):
    P = X @ W_qkv.T if W_qkv.shape[0] == W_qkv.shape[1] else X @ W_qkv
    Q, K, V = np.split(P, 3, axis=-1)
    return _sm(Q @ _t(K) * scale) @ V


# Output mixes the keys instead of the values.
# Seen: source lesson 'Mixing up the roles'; cneuralnetwork/solving-ml-papers#1 (Q*V scaled)
def mixes_keys(X, W_qkv, scale):
    Q, K, _V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale) @ K


# Naive version: token vectors are their own Q, K, V, cut to width.
# Seen: source lesson 'The naive version'
def naive_no_projection(X, W_qkv, scale):
    w = W_qkv.shape[-1] // 3
    return (_sm(X @ _t(X) * scale) @ X)[..., :w]


# One global max: rows far below it become 0/0.
# Seen: keras-team/keras PR#10027 (max per vector, not of the whole tensor)
def global_max(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    S = Q @ _t(K) * scale
    with np.errstate(all="ignore"):
        E = np.exp(S - S.max())
        return (E / E.sum(-1, keepdims=True)) @ V


# Adds a causal mask nobody asked for.
# Seen: source lesson (mask belongs to 4.4)
def causal_by_habit(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    S = Q @ _t(K) * scale
    S = np.where(np.tril(np.ones(S.shape[-2:])) == 1, S, -np.inf)
    return _sm(S) @ V


# Einsum keeps two batch axes and takes the wrong diagonal.
# Seen: ai.stackexchange.com 40400 (extra batch dimension)
def tensordot_all_pairs(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    if X.ndim == 2:
        return _sm(Q @ K.T * scale) @ V
    S = np.tensordot(Q, K, axes=(-1, -1)).sum(axis=-2)
    return _sm(S * scale) @ V


# Divides by the sum of raw scores instead of a softmax.
# Seen: 'normalise so that rows sum to 1'
def plain_normalisation(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    S = Q @ _t(K) * scale
    with np.errstate(all="ignore"):
        return (S / S.sum(-1, keepdims=True)) @ V


# Sigmoid instead of softmax.
# Seen: joshyZhou/AST#17 (ReLU versus softmax scores)
def sigmoid_weights(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    with np.errstate(all="ignore"):
        return (1 / (1 + np.exp(-(Q @ _t(K) * scale)))) @ V


# Hard lookup: argmax row only.
# Seen: source lesson 'soft lookup' read as a dictionary
def hard_argmax(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    j = (Q @ _t(K) * scale).argmax(-1)
    return np.take_along_axis(V, j[..., None], axis=-2)


# Log-softmax used as weights (exp forgotten).
# Seen: huggingface/trl PR#7263 (exp(logps) * logps mix-ups)
def log_weights(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    S = Q @ _t(K) * scale
    L = S - S.max(-1, keepdims=True)
    return (L - np.log(np.exp(L).sum(-1, keepdims=True))) @ V


# Folds the scale into W_qkv IN PLACE: first call right, second wrong.
# Seen: pyoceans/python-oceans PR#41; numpy/numpy PR#8061
def mutates_weights(X, W_qkv, scale):
    w = W_qkv.shape[-1] // 3
    if W_qkv.dtype.kind == "f" and W_qkv.flags.writeable:
        W_qkv[:, :w] *= scale
        scale = 1.0
    Q, K, V = _qkv(X, W_qkv)
    return _sm(Q @ _t(K) * scale) @ V


# Caches by shape: a second input of the same shape gets the first answer.
# Seen: state kept between cells; ucbds-infra/otter-grader#793
def caches_by_shape(X, W_qkv, scale, _memo={}):
    if (X.shape, W_qkv.shape, scale) not in _memo:
        Q, K, V = _qkv(X, W_qkv)
        _memo[X.shape, W_qkv.shape, scale] = _sm(Q @ _t(K) * scale) @ V
    return _memo[X.shape, W_qkv.shape, scale]


# Rounds the weights to 2 decimals.
# Seen: source lesson prints W.round(2)
def rounds_weights(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return np.round(_sm(Q @ _t(K) * scale), 2) @ V


# Off by one: last query row left at zero.
# Seen: range(T - 1)
def last_row_missing(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    out = np.zeros(V.shape)
    for i in range(X.shape[-2] - 1):
        out[..., i, :] = (_sm(Q[..., i : i + 1, :] @ _t(K) * scale) @ V)[..., 0, :]
    return out


# Drops a batch axis of size 1 / averages over tokens (squeeze, mean).
# Seen: pooled-output habit
def pooled_output(X, W_qkv, scale):
    Q, K, V = _qkv(X, W_qkv)
    return (_sm(Q @ _t(K) * scale) @ V).mean(axis=-2)


# d_k guessed from the scale (1/scale^2): right only while every test uses scale = 1/sqrt(d_k).
# Seen: own: reading of source lesson (signature has no d_k) with source lesson (scale is 1/sqrt(d))
def dk_from_scale(X, W_qkv, scale):
    w, P = W_qkv.shape[-1], X @ W_qkv
    dk = round(1 / scale**2) if scale else w // 3
    if not 0 < 2 * dk < w:
        dk = w // 3 + 1
    Q, K, V = P[..., :dk], P[..., dk : 2 * dk], P[..., 2 * dk :]
    return _sm(Q @ _t(K) * scale) @ V
