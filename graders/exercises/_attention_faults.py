"""Attention with one fault at a time.

Every attention here is the same five choices: how the projections are cut, which block plays which role, what scales
the scores, what is masked, what turns scores into weights. A fault is one choice made wrongly, so each is written once
for NumPy and PyTorch, and serves every function that can suffer from it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

# --- the choices ------------------------------------------------------------------------------------------------------


def _library(array: Any) -> Any:
    return torch if isinstance(array, torch.Tensor) else np


def _swap(array: Any) -> Any:
    return array.swapaxes(-1, -2)


def _all_axes(array: Any) -> tuple[int, ...]:
    return tuple(range(array.ndim))


def _factor(choice: str, right: float, sizes: dict[str, int]) -> float:
    """What the scores are multiplied by before the softmax."""
    roots = {f"root_{name}": size**-0.5 for name, size in sizes.items()}
    others = {"none": 1.0, "inverse": 1 / right, "twice": right**2, "width": 1 / sizes["d_k"], "after": 1.0}
    return {"right": right, **roots, **others}[choice]


def _allowed(xp: Any, scores: Any, choice: str) -> Any:
    """Which keys each query may see, as a matrix of truth values."""
    ones = xp.ones(tuple(scores.shape[-2:]))
    if choice in ("anticausal", "strictly_anticausal"):
        return xp.triu(ones, 1 if choice.startswith("strictly") else 0) == 1
    if choice == "same_keys":
        return xp.cumsum(ones, axis=1) <= (scores.shape[-1] + 1) // 2
    return xp.tril(ones, {"strict": -1, "strict_finite": -1, "peeks": 1}.get(choice, 0)) == 1


_FILL = {"zero": 0.0, "hundred": -100.0, "strict_finite": -1e9}
_AFTER = ("after", "after_renormalised", "values", "never")


def _masked(xp: Any, scores: Any, choice: str) -> Any:
    if choice in _AFTER:
        return scores
    return xp.where(_allowed(xp, scores, choice), scores, _FILL.get(choice, -np.inf))


def _softmax(xp: Any, scores: Any, axis: Any = -1) -> Any:
    weights = xp.exp(scores - xp.amax(scores, axis, keepdims=True))
    return weights / xp.sum(weights, axis, keepdims=True)


def _hard(xp: Any, scores: Any) -> Any:
    best = xp.arange(scores.shape[-1]) == xp.argmax(scores, axis=-1)[..., None]
    return xp.where(best, xp.ones_like(scores), xp.zeros_like(scores))


def _even(xp: Any, scores: Any) -> Any:
    seen = xp.where(scores == -np.inf, xp.zeros_like(scores), xp.ones_like(scores))
    return seen / xp.sum(seen, -1, keepdims=True)


def _itself(xp: Any, scores: Any) -> Any:
    return xp.eye(scores.shape[-1]) + xp.zeros_like(scores)


def _overflowing(xp: Any, scores: Any) -> Any:
    weights = xp.exp(scores)
    return weights / xp.sum(weights, -1, keepdims=True)


def _one_shift(xp: Any, scores: Any) -> Any:
    weights = xp.exp(scores - xp.amax(scores, _all_axes(scores)))
    return weights / xp.sum(weights, -1, keepdims=True)


def _without_keepdims(xp: Any, scores: Any) -> Any:
    weights = xp.exp(scores)
    return weights / xp.sum(weights, -1)


def _log(xp: Any, scores: Any) -> Any:
    shifted = scores - xp.amax(scores, -1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), -1, keepdims=True))


_WEIGHTS: dict[str, Callable[[Any, Any], Any]] = {
    "softmax": _softmax,
    "over_queries": partial(_softmax, axis=-2),
    "over_first": partial(_softmax, axis=0),
    "over_second": partial(_softmax, axis=1),
    "over_everything": lambda xp, scores: _softmax(xp, scores, _all_axes(scores)),
    "raw": lambda xp, scores: scores,
    "hard": _hard,
    "even": _even,
    "itself": _itself,
    "overflowing": _overflowing,
    "one_shift": _one_shift,
    "without_keepdims": _without_keepdims,
    "rounded": lambda xp, scores: xp.round(_softmax(xp, scores), decimals=2),
    "log": _log,
    "shares": lambda xp, scores: scores / xp.sum(scores, -1, keepdims=True),
    "sigmoid": lambda xp, scores: 1 / (1 + xp.exp(-scores)),
}


def _across(Q: Any, K: Any) -> Any:
    """Each sequence of a batch against the keys of all."""
    return np.tensordot(Q, K, axes=(-1, -1)).sum(axis=-2) if Q.ndim > 2 else Q @ K.T


_PRODUCTS: dict[str, Callable[[Any, Any], Any]] = {
    "apart": lambda Q, K: Q @ _swap(K),
    # `.T` reverses every axis, the batch's as well.
    "reversed_axes": lambda Q, K: Q @ K.T,
    "compared": _across,
}


def _last_row_missing(output: Any, values: Any) -> Any:
    """A loop over range(T - 1)."""
    output = output.copy()
    output[..., -1, :] = 0
    return output


_FINISHES: dict[str, Callable[[Any, Any], Any]] = {
    "": lambda output, values: output,
    "pooled": lambda output, values: output.mean(axis=-2),
    "last_row_missing": _last_row_missing,
    # The output is written into an array of the values' dtype.
    "integers": lambda output, values: output.astype(values.dtype),
}


def attend(
    Q: Any,
    K: Any,
    V: Any,
    *,
    right: float,
    sizes: dict[str, int],
    causal: bool = False,
    roles: str = "QKV",
    scaling: str = "right",
    mask: str = "right",
    weigh: str = "softmax",
    batch: str = "apart",
) -> tuple[Any, Any]:
    """(output, weights) with the choices named; `right` is the contract's factor, `sizes` what others are made of."""
    xp = _library(Q)
    Q, K, V = (dict(Q=Q, K=K, V=V)[role] for role in roles)
    scores = _PRODUCTS[batch](Q, K) * _factor(scaling, right, sizes)
    masked = _masked(xp, scores, mask) if causal or mask == "always" else scores
    weights = _WEIGHTS[weigh](xp, masked)
    if scaling == "after":
        weights = weights * right
    if not causal or mask not in _AFTER or mask == "never":
        return weights @ V, weights
    kept = weights * _allowed(xp, scores, "right")
    if mask == "after_renormalised":
        kept = kept / xp.sum(kept, -1, keepdims=True)
    return kept @ V, weights if mask == "values" else kept


# --- the functions that can suffer from them --------------------------------------------------------------------------


def _blocks(P: Any) -> list[Any]:
    width = P.shape[-1] // 3
    return [P[..., :width], P[..., width : 2 * width], P[..., 2 * width :]]


def _blocks_of_model_width(X: Any, P: Any) -> list[Any]:
    d = X.shape[-1]
    return [P[..., :d], P[..., d : 2 * d], P[..., 2 * d :]]


def _blocks_from_scale(P: Any, scale: float) -> list[Any]:
    width = round(1 / scale**2)
    if not 0 < 2 * width < P.shape[-1]:
        width = P.shape[-1] // 3 + 1
    return [P[..., :width], P[..., width : 2 * width], P[..., 2 * width :]]


def _transposed_where_it_fits(X: Any, W: Any) -> Any:
    return X @ (W.T if W.shape[0] == W.shape[1] else W)


_CUTS: dict[str, Callable[..., Any]] = {
    "blocks": lambda X, W, scale: _blocks(X @ W),
    "interleaved": lambda X, W, scale: [(X @ W)[..., start::3] for start in range(3)],
    "three_first": lambda X, W, scale: (X @ W).reshape(3, *X.shape[:-1], -1),
    "model_width": lambda X, W, scale: _blocks_of_model_width(X, X @ W),
    "from_scale": lambda X, W, scale: _blocks_from_scale(X @ W, scale),
    "transposed": lambda X, W, scale: _blocks(_transposed_where_it_fits(X, W)),
    "tokens": lambda X, W, scale: [X, X, X[..., : W.shape[-1] // 3]],
    "scaled": lambda X, W, scale: _blocks(X @ W * scale**0.5),
}


def _sizes(X: Any, K: Any, V: Any) -> dict[str, int]:
    return {"d": X.shape[-1], "tokens": K.shape[-2], "d_k": K.shape[-1], "d_v": V.shape[-1]}


def fused(
    X: Any, W_qkv: Any, scale: float, *, cut: str = "blocks", pair: bool = False, finish: str = "", **fault: Any
) -> Any:
    """`fused_self_attention` with one fault, or several."""
    Q, K, V = _CUTS[cut](X, W_qkv, scale)
    right = 1.0 if cut == "scaled" else scale
    output, weights = attend(Q, K, V, right=right, sizes=_sizes(X, K, V), **fault)
    output = _FINISHES[finish](output, X @ W_qkv)
    return (output, weights) if pair else output


_seen: dict[Any, Any] = {}


def fused_remembering(X: Any, W_qkv: Any, scale: float) -> Any:
    """A cache whose key forgets the numbers."""
    return _seen.setdefault((X.shape, W_qkv.shape, scale), fused(X, W_qkv, scale))


def fused_in_place(X: Any, W_qkv: Any, scale: float) -> Any:
    """The scale is folded into W_Q, where the caller keeps it."""
    W_qkv[:, : W_qkv.shape[-1] // 3] *= scale
    return fused(X, W_qkv, 1.0)


def fused_scaling_in_place(X: Any, W_qkv: Any, scale: float) -> Any:
    """`scores *= scale` has to store fractions among integers."""
    Q, K, V = _blocks(X @ W_qkv)
    scores = Q @ _swap(K)
    scores *= scale
    return _softmax(np, scores) @ V


def fused_in_float16(X: Any, W_qkv: Any, scale: float) -> Any:
    """Half precision throughout."""
    return fused(X.astype(np.float16), W_qkv.astype(np.float16), np.float16(scale))


def separate(
    X: Any,
    W_Q: Any,
    W_K: Any,
    W_V: Any,
    causal: bool = True,
    *,
    returns: str = "pair",
    transposed: bool = False,
    detached: bool = False,
    **fault: Any,
) -> Any:
    """`causal_attention`, in NumPy or PyTorch, with one fault, or several."""
    # `F.linear` multiplies by the transpose, which a square matrix does not betray.
    project = _transposed_where_it_fits if transposed else operator.matmul
    Q, K, V = (project(X, W) for W in (W_Q, W_K, W_V))
    answer = attend(Q, K, V, right=K.shape[-1] ** -0.5, sizes=_sizes(X, K, V), causal=bool(causal), **fault)
    if detached:
        answer = answer[0].detach(), answer[1].detach()
    return {"pair": answer, "swapped": answer[::-1], "output": answer[0]}[returns]


def separate_in_place(X: Any, W_Q: Any, W_K: Any, W_V: Any, causal: bool = True) -> Any:
    """1/√d_k is folded into W_Q, where the caller keeps it."""
    W_Q /= W_K.shape[-1] ** 0.5
    return separate(X, W_Q, W_K, W_V, causal, scaling="none")


def separate_in_float16(X: Any, W_Q: Any, W_K: Any, W_V: Any, causal: bool = True) -> Any:
    """Half precision throughout."""
    half = torch.float16 if isinstance(X, torch.Tensor) else np.float16
    cast = (lambda array: array.to(half)) if isinstance(X, torch.Tensor) else (lambda array: array.astype(half))
    return separate(*(cast(array) for array in (X, W_Q, W_K, W_V)), causal)


def separate_scaled_before_sdpa(X: Any, W_Q: Any, W_K: Any, W_V: Any, causal: bool = True) -> Any:
    """PyTorch's attention scales once more what is scaled already."""
    Q, K, V = X @ W_Q / W_K.shape[-1] ** 0.5, X @ W_K, X @ W_V
    output = F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=bool(causal))[0]
    return output, separate(X, W_Q, W_K, W_V, causal)[1]


def cross(
    X_q: Any,
    X_kv: Any,
    W_Q: Any,
    W_K: Any,
    W_V: Any,
    *,
    sources: str = "qkk",
    returns: str = "pair",
    finish: str = "",
    **fault: Any,
) -> Any:
    """`cross_attention` with one fault; `sources` says which sequence queries, keys and values come from."""
    sequences = {"q": X_q, "k": X_kv}
    Q, K, V = (sequences[source] @ W for source, W in zip(sources, (W_Q, W_K, W_V), strict=True))
    answer = attend(Q, K, V, right=K.shape[-1] ** -0.5, sizes=_sizes(X_q, K, V), **fault)
    answer = _FINISHES[finish](answer[0], X_kv @ W_V), answer[1]
    return {"pair": answer, "swapped": answer[::-1], "output": answer[0]}[returns]


def cross_in_place(X_q: Any, X_kv: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    """1/√d_k is folded into W_Q, where the caller keeps it."""
    W_Q /= W_K.shape[-1] ** 0.5
    return cross(X_q, X_kv, W_Q, W_K, W_V, scaling="none")


def cross_in_float16(X_q: Any, X_kv: Any, W_Q: Any, W_K: Any, W_V: Any) -> Any:
    """Half precision throughout."""
    return cross(*(array.astype(np.float16) for array in (X_q, X_kv, W_Q, W_K, W_V)))


def head(
    *,
    cut: str = "blocks",
    transposed: bool = False,
    bias: float = 1.0,
    detached: bool = False,
    pair: bool = False,
    **fault: Any,
) -> type[nn.Module]:
    """`SingleHead` with one fault."""

    class SingleHead(nn.Module):
        def __init__(self, d: int, d_k: int) -> None:
            super().__init__()
            self.qkv = nn.Linear(d, 3 * d_k)

        def forward(self, x: torch.Tensor) -> Any:
            W = self.qkv.weight if transposed and self.qkv.weight.shape[0] == x.shape[-1] else self.qkv.weight.T
            # The bias as one more input that is always 1, so that every cut sees it.
            rows = torch.cat([W, bias * self.qkv.bias[None]])
            Q, K, V = _CUTS[cut](torch.cat([x, torch.ones_like(x[..., :1])], -1), rows, 1.0)
            output, weights = attend(Q, K, V, right=K.shape[-1] ** -0.5, sizes=_sizes(x, K, V), **fault)
            output = output.detach() if detached else output
            return (output, weights) if pair else output

    return SingleHead


def linear(*, how: str) -> Callable[[np.ndarray], Any]:
    """`to_linear` with one fault."""

    def to_linear(W_qkv: np.ndarray) -> Any:
        layer = nn.Linear(*W_qkv.shape)
        wrong = {"as_is": W_qkv, "reshaped": W_qkv.reshape(W_qkv.shape[::-1])}.get(how, W_qkv.T)
        layer.weight = nn.Parameter(torch.tensor(wrong, dtype=torch.float32))
        if how != "random_bias":
            layer.bias = None
        return W_qkv.T if how == "array" else layer

    return to_linear
