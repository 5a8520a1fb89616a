"""Wrong but plausible SingleHead(d, d_k).

The comment above each class says what its author believed; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

NAMED = {
    "NoScale": "head_forgets_scale",
    "ModelWidth": "head_divides_by_root_d",
    "OverBatch": "head_softmax_over_batch",
    "OverQueries": "head_softmax_over_queries",
    "Interleaved": "head_cuts_interleaved",
    "KeysFirst": "head_swaps_queries_and_keys",
    "WeightUntransposed": "head_transposes_weights",
    "Causal": "head_masks_unasked",
    "Pair": "head_returns_weights_too",
    "NoBias": "head_leaves_out_bias",
    "Detached": "head_cuts_the_graph",
    "WithoutGradient": "head_cuts_the_graph",
    "Overflowing": "head_overflows",
    "ThreeLayers": "",
}


class _Head(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)


# The scale is left out.
class NoScale(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.softmax(q @ k.mT, -1) @ v


# The root of the model's width; the commonest bug in public code.
class ModelWidth(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.softmax(q @ k.mT / x.shape[-1] ** 0.5, -1) @ v


# dim=0 is the batch.
class OverBatch(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, 0) @ v


# dim=1 is right for one sequence and holds the queries of a batch.
class OverQueries(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, 1) @ v


# reshape(…, d_k, 3) takes every third column.
class Interleaved(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (-1, 3)).unbind(-1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v


# Names in another order.
class KeysFirst(_Head):
    def forward(self, x):
        k, q, v = self.qkv(x).chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v


# x @ weight, which a square weight lets through.
class WeightUntransposed(_Head):
    def forward(self, x):
        W = self.qkv.weight
        q, k, v = (x @ (W if W.shape[0] == W.shape[1] else W.T) + self.qkv.bias).chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v


# Causal by habit.
class Causal(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


# The weights as well, as the functions above return them.
class Pair(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1)
        return weights @ v, weights


# The weight is used and the bias forgotten.
class NoBias(_Head):
    def forward(self, x):
        q, k, v = F.linear(x, self.qkv.weight).chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v


# .detach() to be rid of an error from .numpy().
class Detached(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).detach().chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v


# A layer without bias, and an evaluation habit.
class WithoutGradient(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k, bias=False)

    @torch.no_grad()
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.softmax(q @ k.mT / k.shape[-1] ** 0.5, -1) @ v


# exp without a shift.
class Overflowing(_Head):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        weights = torch.exp(q @ k.mT / k.shape[-1] ** 0.5)
        return weights / weights.sum(-1, keepdim=True) @ v


# Three layers where one fused layer is asked for: the grader cannot set their weights. The message says so itself.
class ThreeLayers(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d, d_k) for _ in range(3))

    def forward(self, x):
        return F.scaled_dot_product_attention(self.q(x), self.k(x), self.v(x))
