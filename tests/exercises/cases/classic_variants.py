"""The 22 classic wrong variants of attention, by the names that the curriculum gives them.

Written apart from the catalogue, on tensors and one after the other, so that a fault of the catalogue shows.
"""

from __future__ import annotations

import torch

INF = float("inf")
MASKS = (
    "after the softmax un-renormalised",
    "with 0 for −∞",
    "anti-causal",
    "strictly causal",
    "causal when not asked",
)
VARIANTS = (
    *("no scale", "1/d_k", "1/√T", "1/√d_v", "scale after the softmax"),
    *("softmax over queries", "softmax over everything"),
    *("Q and K swapped", "K = Q", "V = K", "K and V swapped"),
    *("no softmax", "hard maximum", "uniform", "identity", "naive exp", "in-place change"),
    *MASKS,
)


def _roles(variant, Q, K, V):
    swapped = {"Q and K swapped": (K, Q, V), "K = Q": (Q, Q, V), "V = K": (Q, K, K), "K and V swapped": (Q, V, K)}
    return swapped.get(variant, (Q, K, V))


def _factor(variant, K, V, scale):
    factors = {
        "no scale": 1.0,
        "1/d_k": 1 / K.shape[-1],
        "1/√T": K.shape[-2] ** -0.5,
        "1/√d_v": V.shape[-1] ** -0.5,
        "scale after the softmax": 1.0,
    }
    return factors.get(variant, scale)


def _mask(variant, S, causal):
    ones = torch.ones(S.shape[-2:])
    if variant == "causal when not asked":
        causal = True
    if not causal or variant == "after the softmax un-renormalised":
        return S
    hidden = {"anti-causal": ones.tril(-1), "strictly causal": ones.triu(0)}.get(variant, ones.triu(1)) == 1
    return S.masked_fill(hidden, 0.0 if variant == "with 0 for −∞" else -INF)


def _weights(variant, S):
    if variant == "softmax over everything":
        return torch.softmax(S.flatten(), 0).reshape(S.shape)
    if variant == "naive exp":
        return S.exp() / S.exp().sum(-1, keepdim=True)
    if variant == "hard maximum":
        return S.ge(S.amax(-1, keepdim=True)).to(S.dtype)
    if variant == "uniform":
        return torch.full_like(S, 1 / S.shape[-1])
    if variant == "identity":
        return torch.eye(*S.shape[-2:], dtype=S.dtype).expand(S.shape)
    return S if variant == "no softmax" else torch.softmax(S, -2 if variant == "softmax over queries" else -1)


def attention(variant, Q, K, V, scale, causal=False):
    """(output, weights) of one variant."""
    Q, K, V = _roles(variant, Q, K, V)
    W = _weights(variant, _mask(variant, Q @ K.mT * _factor(variant, K, V, scale), causal))
    if variant == "scale after the softmax":
        W = W * scale
    if causal and variant == "after the softmax un-renormalised":
        W = W.tril()
    return W @ V, W


def fused(variant, X, W_qkv, scale):
    """The variant as `fused_self_attention`."""
    Q, K, V = (torch.tensor(X, dtype=torch.float64) @ torch.tensor(W_qkv, dtype=torch.float64)).chunk(3, -1)
    output = attention(variant, Q, K, V, scale)[0].numpy()
    if variant == "in-place change":
        X += 1
    return output


def causal(variant, X, W_Q, W_K, W_V, causal=True):
    """The variant as `causal_attention`."""
    X_, *weights = (torch.tensor(array, dtype=torch.float64) for array in (X, W_Q, W_K, W_V))
    output, W = attention(variant, *(X_ @ weight for weight in weights), W_K.shape[1] ** -0.5, causal)
    if variant == "in-place change":
        X += 1
    return output.numpy(), W.numpy()


def cross(variant, X_q, X_kv, W_Q, W_K, W_V):
    """The variant as `cross_attention`."""
    X_q_, X_kv_, *weights = (torch.tensor(array, dtype=torch.float64) for array in (X_q, X_kv, W_Q, W_K, W_V))
    Q, K, V = (X @ weight for X, weight in zip((X_q_, X_kv_, X_kv_), weights, strict=True))
    output, W = attention(variant, Q, K, V, W_K.shape[1] ** -0.5)
    if variant == "in-place change":
        X_kv += 1
    return output.numpy(), W.numpy()


def causal_torch(variant, X, W_Q, W_K, W_V, causal=True):
    """The variant as `causal_attention_torch`."""
    answer = attention(variant, X @ W_Q, X @ W_K, X @ W_V, W_K.shape[1] ** -0.5, causal)
    if variant == "in-place change":
        X.add_(1)
    return answer
