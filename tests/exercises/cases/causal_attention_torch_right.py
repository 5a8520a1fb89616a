"""Right but unusual causal_attention_torch(X, W_Q, W_K, W_V, causal=True).

The comment above each function says what is unusual about it, and so what no check may assume.
"""

from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F


def _p(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


# F.linear with transposed weights.
def f_linear(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = F.linear(X, W_Q.T), F.linear(X, W_K.T), F.linear(X, W_V.T)
    S = torch.einsum("id,jd->ij", Q, K).mul(K.shape[1] ** -0.5)
    if causal:
        S = S + torch.full_like(S, float("-inf")).triu(1)
    W = torch.softmax(S, dim=-1)
    return torch.einsum("ij,jd->id", W, V), W


class _Head(nn.Module):
    def __init__(self, W_Q, W_K, W_V):
        super().__init__()
        self.qkv = nn.Linear(W_Q.shape[0], W_Q.shape[1] + W_K.shape[1] + W_V.shape[1], bias=False, dtype=W_Q.dtype)
        self.sizes = (W_Q.shape[1], W_K.shape[1], W_V.shape[1])
        with torch.no_grad():
            self.qkv.weight.copy_(torch.cat([W_Q, W_K, W_V], dim=1).T)

    def forward(self, x, causal):
        q, k, v = self.qkv(x).split(self.sizes, dim=-1)
        s = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
        if causal:
            s = s.masked_fill(torch.triu(torch.ones(s.shape[-2:], dtype=torch.bool), 1), float("-inf"))
        w = s.softmax(-1)
        return w @ v, w


# nn.Module with one fused nn.Linear.
# Not to assume: outputs carry grad_fn: .detach() before .numpy()
def module_fused(X, W_Q, W_K, W_V, causal=True):
    return _Head(W_Q, W_K, W_V)(X, causal)


# Identity trick: SDPA with V = eye gives W.
# Not to assume: two calls
def sdpa_identity(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = (t[None] for t in _p(X, W_Q, W_K, W_V))

    def f(v):
        return F.scaled_dot_product_attention(Q, K, v, is_causal=causal)[0]

    return f(V), f(torch.eye(len(X), dtype=X.dtype)[None])


# torch.vmap over query rows.
def vmapped(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    pos = torch.arange(len(X))

    def row(q, i):
        s = K @ q / K.shape[1] ** 0.5
        if causal:
            s = torch.where(pos <= i, s, torch.full_like(s, float("-inf")))
        return torch.softmax(s, 0)

    W = torch.vmap(row)(Q, pos)
    return W @ V, W
