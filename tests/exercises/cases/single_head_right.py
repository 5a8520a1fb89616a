"""Right but unusual SingleHead(d, d_k).

The comment above each class says what is unusual about it, and so what no check may assume.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


# No bias.
class WithoutBias(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1) @ v


# PyTorch's own attention.
class WithSdpa(nn.Module):
    def __init__(self, width, head_width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * head_width)

    def forward(self, inputs):
        return F.scaled_dot_product_attention(*self.qkv(inputs).chunk(3, dim=-1))


# einsum, a stored size, dropout of nothing, another parameter that is not used, and prints.
class Chatty(nn.Module):
    def __init__(self, d, d_k, dropout=0.0):
        super().__init__()
        self.d_k = d_k
        self.qkv = nn.Linear(d, 3 * d_k)
        self.unused = nn.Parameter(torch.ones(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = torch.split(self.qkv(x), self.d_k, dim=-1)
        weights = F.softmax(torch.einsum("bik,bjk->bij", q, k) * self.d_k**-0.5, dim=2)
        print(weights.shape)
        return torch.einsum("bij,bjk->bik", self.dropout(weights), v)


# F.linear on slices of the weight, so that no fused output exists.
class OnSlices(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)

    def forward(self, x):
        rows, biases = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        q, k, v = (F.linear(x, W, b) for W, b in zip(rows, biases, strict=True))
        return (q @ k.transpose(1, 2) / k.shape[-1] ** 0.5).softmax(-1) @ v


# A function that makes the module: calling it gives a head, and that is all that is asked.
def factory(d, d_k):
    return WithSdpa(d, d_k)
