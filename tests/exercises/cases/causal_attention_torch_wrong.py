"""Wrong but plausible causal_attention_torch(X, W_Q, W_K, W_V, causal=True).

The comment above each function says what its author believed and where it was seen; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

NAMED = {
    "softmax_dim0": "torch_softmax_over_queries",
    "masked_fill_inverted": "torch_masks_the_past",
    "sdpa_double_scale": "torch_scales_before_sdpa",
    "tril_scores": "torch_masks_with_zero",
    "tril_weights": "torch_masks_after_softmax",
    "detached": "torch_cuts_the_graph",
    "linear_layout": "torch_transposes_weights",
}


def _p(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


def _mask(S):
    return torch.tril(torch.ones_like(S)) == 0


# dim=0.
# Seen: PetrochukM/PyTorch-NLP#2
def softmax_dim0(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / K.shape[1] ** 0.5
    if causal:
        S = S.masked_fill(_mask(S), float("-inf"))
    W = F.softmax(S, dim=0)
    return W @ V, W


# masked_fill where the mask is ONE (keeps the future).
# Seen: karpathy/nanoGPT#170 ('I missed the == 0')
def masked_fill_inverted(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / K.shape[1] ** 0.5
    if causal:
        S = S.masked_fill(torch.tril(torch.ones_like(S), diagonal=-1) == 1, float("-inf"))
    W = F.softmax(S, dim=-1)
    return W @ V, W


# Scales before SDPA, which scales again.
# Seen: huggingface/diffusers#929 (square root twice)
def sdpa_double_scale(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    Q = Q / math.sqrt(K.shape[1])
    out = F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=causal)[0]
    S = Q @ K.T
    W = F.softmax(S.masked_fill(_mask(S), float("-inf")) if causal else S, dim=-1)
    return out, W


# torch.tril(scores): zeros, not -inf.
# Seen: rasbt/LLMs-from-scratch#279 (tril applied to weights, here to scores)
def tril_scores(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / K.shape[1] ** 0.5
    W = F.softmax(torch.tril(S) if causal else S, dim=-1)
    return W @ V, W


# Tril on the weights, not renormalised.
# Seen: rasbt/LLMs-from-scratch#279
def tril_weights(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    W = F.softmax(Q @ K.T / K.shape[1] ** 0.5, dim=-1)
    W = torch.tril(W) if causal else W
    return W @ V, W


# Values right, graph cut by detach / no_grad: no gradient to the weights.
# Seen: source lesson exercise 4 needs gradients
def detached(X, W_Q, W_K, W_V, causal=True):
    with torch.no_grad():
        Q, K, V = _p(X, W_Q, W_K, W_V)
        S = Q @ K.T / K.shape[1] ** 0.5
        if causal:
            S = S.masked_fill(_mask(S), float("-inf"))
        W = F.softmax(S, dim=-1)
    return W @ V.detach(), W


# F.linear(X, W) multiplies by W^T: silent when W is square (here W.T is used when shapes do not fit).
# Seen: source lesson 'In PyTorch'; skyzh/tiny-llm PR#60
def linear_layout(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = (F.linear(X, W if W.shape[1] == X.shape[1] else W.T) for W in (W_Q, W_K, W_V))
    S = Q @ K.T / K.shape[1] ** 0.5
    if causal:
        S = S.masked_fill(_mask(S), float("-inf"))
    W = F.softmax(S, dim=-1)
    return W @ V, W
