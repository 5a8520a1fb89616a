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


# A loop over rows, each over its own past.
def loop_over_the_past(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    rows = []
    for t in range(len(X)):
        end = t + 1 if causal else len(X)
        weights = torch.softmax(K[:end] @ Q[t] / K.shape[1] ** 0.5, 0)
        rows.append(F.pad(weights, (0, len(X) - end)))
    W = torch.stack(rows)
    return W @ V, W


# log_softmax, and a list for both.
def log_softmax_list(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q.matmul(K.t()).div(K.size(1) ** 0.5)
    if causal:
        S = S.where(torch.ones_like(S).tril().bool(), torch.tensor(-1e30, dtype=S.dtype))
    W = F.log_softmax(S, dim=1).exp()
    return [W.mm(V), W]


# The softmax by hand, shifted by a maximum that no gradient passes through.
def softmax_by_hand(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / K.shape[1] ** 0.5
    if causal:
        S = S.masked_fill(~torch.ones_like(S, dtype=torch.bool).tril(), -torch.inf)
    E = torch.exp(S - S.detach().amax(-1, keepdim=True))
    W = E / E.sum(-1, keepdim=True)
    return W @ V, W


# logsumexp.
def logsumexp(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = torch.einsum("ik,jk->ij", Q, K) * K.shape[-1] ** -0.5
    S = S + torch.triu(torch.full_like(S, -torch.inf), 1) if causal else S
    W = torch.exp(S - torch.logsumexp(S, 1, keepdim=True))
    return W @ V, W


# The three projections in one product, then cut.
def concatenated(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = torch.split(X @ torch.cat([W_Q, W_K, W_V], 1), [W_Q.shape[1], W_K.shape[1], W_V.shape[1]], dim=1)
    S = Q / Q.shape[1] ** 0.5 @ K.T
    if causal:
        S = torch.tril(S) + torch.triu(torch.full_like(S, -torch.inf), 1)
    W = S.softmax(1)
    return W @ V, W


# In place, on tensors of its own.
def in_place_on_copies(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = (Q @ K.T).clone()
    S.mul_(K.shape[1] ** -0.5)
    if causal:
        S[torch.triu_indices(len(X), len(X), 1).unbind()] = -torch.inf
    W = torch.nn.Softmax(dim=-1)(S)
    return W @ V, W


# PyTorch's own attention with a mask of truth values; weights apart.
def sdpa_with_mask(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    seen = torch.ones(len(X), len(X), dtype=torch.bool)
    seen = seen.tril() if causal else seen
    output = F.scaled_dot_product_attention(Q[None, None], K[None, None], V[None, None], attn_mask=seen)[0, 0]
    S = torch.where(seen, Q @ K.T / K.shape[1] ** 0.5, -torch.inf)
    return output, S.softmax(-1)


# A dict with the two names.
def returns_dict(X, W_Q, W_K, W_V, causal=True):
    output, weights = f_linear(X, W_Q, W_K, W_V, causal)
    return {"output": output, "weights": weights}


# float64 inside, whatever came.
def double_inside(X, W_Q, W_K, W_V, causal=True):
    return f_linear(*(part.double() for part in (X, W_Q, W_K, W_V)), causal)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, S):
        W = torch.softmax(S, -1)
        ctx.save_for_backward(W)
        return W

    @staticmethod
    def backward(ctx, upstream):
        (W,) = ctx.saved_tensors
        return W * (upstream - (W * upstream).sum(-1, keepdim=True))


# A softmax whose backward pass was written by hand.
def own_backward(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = _p(X, W_Q, W_K, W_V)
    S = Q @ K.T / K.shape[1] ** 0.5
    S = S.masked_fill(torch.ones_like(S).triu(1) > 0, -torch.inf) if causal else S
    W = _Softmax.apply(S)
    return W @ V, W
