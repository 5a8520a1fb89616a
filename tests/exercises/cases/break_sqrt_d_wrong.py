"""Wrong but plausible score_statistics(q, k, g, scaled).

The comment above each function says what its author believed and where it was seen; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import numpy as np

NAMED = {
    "std_of_weights": "std_of_the_weights",
    "share_of_entries": "share_of_entries",
    "entropy_bits": "entropy_in_bits",
    "entropy_sign": "forgets_the_sign",
    "entropy_columns": "entropy_of_columns",
    "entropy_nan": "zero_times_log_of_zero",
    "diagonal_jacobian": "diagonal_of_the_jacobian",
    "loss_without_g": "loss_without_g",
    "gradient_into_q": "gradient_into_the_queries",
    "mean_not_median": "mean_of_the_rows",
    "median_of_entries": "median_of_the_entries",
    "squared_norm": "squares_without_a_root",
    "unit_vectors": "normalises_to_unit_length",
    "bits_and_a_tuple": "entropy_in_bits",
    "sign_and_the_lower_median": "forgets_the_sign",
    "bits_and_the_mean": "entropy_in_bits",
    "no_division_anywhere": "never_divides",
    "axis_nought_throughout": "works_by_columns",
    "torch_softmax_over_queries": "softmax_over_queries",
    "loses_the_maximum": "exponential_overflows",
    "halves_in_place": "divides_in_place",
    "threshold_of_half": "",
    "missing_entry": "",
    "returns_nothing": "",
}


def _scores(q, k, scaled):
    return q @ k.T / (np.sqrt(q.shape[-1]) if scaled else 1.0)


def _softmax(S, axis=-1):
    E = np.exp(S - S.max(axis=axis, keepdims=True))
    return E / E.sum(axis=axis, keepdims=True)


def _grad(W, g):
    return W * (g - (W * g).sum(-1, keepdims=True))


def _pack(S, W, G, **change):
    right = {
        "std": S.std(ddof=1),
        "one_hot": (W.max(-1) > 0.99).mean(),
        "entropy": -(W * np.log(W + 1e-300)).sum(-1).mean(),
        "grad_median": np.median(np.linalg.norm(G, axis=-1)),
    }
    return {**right, **change}


def _right(q, k, g, scaled):
    S = _scores(q, k, scaled)
    W = _softmax(S)
    return S, W, _grad(W, g)


# "Score std" misread: the standard deviation of the weights.
def std_of_weights(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, std=W.std(ddof=1))


# Rows and entries confused: the share of entries above 0.99.
def share_of_entries(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, one_hot=(W > 0.99).mean())


# Entropy in bits. joshyZhou/AST#17 does not state its base either.
def entropy_bits(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, entropy=-(W * np.log2(W + 1e-300)).sum(-1).mean())


# The minus sign forgotten.
def entropy_sign(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, entropy=(W * np.log(W + 1e-300)).sum(-1).mean())


# Entropy over the wrong axis.
def entropy_columns(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    C = W / W.sum(0, keepdims=True)
    return _pack(S, W, G, entropy=-(C * np.log(C + 1e-300)).sum(0).mean())


# 0 · log 0 is NaN. huggingface/trl PR 7263, huggingface/transformers#19944, joshyZhou/AST#17
def entropy_nan(q, k, g, scaled):
    S = _scores(q, k, scaled) * 1.0
    with np.errstate(all="ignore"):
        W = _softmax(S).astype(np.float32)
        return _pack(S, W, _grad(W, g), entropy=-(W * np.log(W)).sum(-1).mean())


# Softmax treated as if it worked entry by entry: w (1 − w) g.
def diagonal_jacobian(q, k, g, scaled):
    S, W, _ = _right(q, k, g, scaled)
    return _pack(S, W, W * (1 - W) * g)


# The loss is weights.sum(), whose gradient is exactly 0: g forgotten.
def loss_without_g(q, k, g, scaled):
    S, W, _ = _right(q, k, g, scaled)
    return _pack(S, W, _grad(W, np.ones_like(g)))


# The gradient into q, which is the larger one without the division.
def gradient_into_q(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G @ k / (np.sqrt(q.shape[-1]) if scaled else 1.0))


# The mean, which a few rows decide, instead of the median.
def mean_not_median(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, grad_median=np.linalg.norm(G, axis=-1).mean())


# The median of all entries.
def median_of_entries(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, grad_median=np.median(np.abs(G)))


# The square root forgotten.
def squared_norm(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, grad_median=np.median((G**2).sum(-1)))


# Queries and keys of unit length: a habit from cosine attention.
def unit_vectors(q, k, g, scaled):
    q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    return _pack(*_right(q, k, g, scaled))


# Bits, returned as a tuple: named although no entry of the catalogue returns one.
def bits_and_a_tuple(q, k, g, scaled):
    return tuple(entropy_bits(q, k, g, scaled).values())


# The sign forgotten beside the other median and the other degrees of freedom, both of which are right.
def sign_and_the_lower_median(q, k, g, scaled):
    S, _, G = _right(q, k, g, scaled)
    lower = np.sort(np.linalg.norm(G, axis=-1))[(len(G) - 1) // 2]
    return {**entropy_sign(q, k, g, scaled), "std": S.std(), "grad_median": lower}


# Two mistakes in two numbers: each is named where it shows.
def bits_and_the_mean(q, k, g, scaled):
    return {**mean_not_median(q, k, g, scaled), "entropy": entropy_bits(q, k, g, scaled)["entropy"]}


# M1: √d_k forgotten.
def no_division_anywhere(q, k, g, scaled):
    return _pack(*_right(q, k, g, False))


# M2: everything along axis 0, consistently.
def axis_nought_throughout(q, k, g, scaled):
    S = _scores(q, k, scaled)
    W = _softmax(S, axis=0)
    G = W * (g - (W * g).sum(0))
    return _pack(
        S,
        W,
        G,
        one_hot=(W.max(0) > 0.99).mean(),
        entropy=-(W * np.log(W + 1e-300)).sum(0).mean(),
        grad_median=np.median(np.linalg.norm(G, axis=0)),
    )


# M2: torch.softmax(scores, dim=0), with the rest by row and the gradient from autograd.
def torch_softmax_over_queries(q, k, g, scaled):
    import torch

    s = torch.as_tensor(np.asarray(_scores(q, k, scaled))).requires_grad_()
    w = torch.softmax(s, 0)
    (w * torch.as_tensor(np.asarray(g))).sum().backward()
    return _pack(s.detach().numpy(), w.detach().numpy(), s.grad.numpy())


# M15: no maximum taken off before the exponential.
def loses_the_maximum(q, k, g, scaled):
    S = _scores(q, k, scaled)
    with np.errstate(all="ignore"):
        W = np.exp(S) / np.exp(S).sum(-1, keepdims=True)
    return _pack(S, W, _grad(W, g))


# M16: the division written into the caller's array.
def halves_in_place(q, k, g, scaled):
    if scaled:
        q /= np.sqrt(q.shape[-1])
    return _pack(*_right(q, k, g, False))


# "Nearly one-hot" read as "more than half of the weight".
def threshold_of_half(q, k, g, scaled):
    S, W, G = _right(q, k, g, scaled)
    return _pack(S, W, G, one_hot=(W.max(-1) > 0.5).mean())


# A name of one's own for one of the four.
def missing_entry(q, k, g, scaled):
    statistics = _pack(*_right(q, k, g, scaled))
    statistics["median"] = statistics.pop("grad_median")
    return statistics


# Printed instead of returned.
def returns_nothing(q, k, g, scaled):
    _pack(*_right(q, k, g, scaled))
