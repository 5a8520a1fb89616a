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


# einsum, the softmax by hand, two bmm's.
class ByHand(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)

    def forward(self, x):
        q, k, v = torch.tensor_split(self.qkv(x), 3, dim=-1)
        s = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(k.size(-1))
        e = torch.exp(s - s.amax(dim=-1, keepdim=True))
        return torch.bmm(e / e.sum(dim=-1, keepdim=True), v)


# Heads as an axis of their own, one of them.
class OneOfManyHeads(nn.Module):
    def __init__(self, d, d_k, heads=1):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d_k * heads)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, T, -1)


# The projection inherited, the forward pass another.
class Inherited(ByHand):
    def forward(self, x):
        q, k, v = self.qkv(x).split(self.qkv.out_features // 3, dim=-1)
        weights = nn.Softmax(dim=-1)(q.matmul(k.mT).mul(k.shape[-1] ** -0.5))
        return weights.matmul(v).contiguous()


# A buffer beside the parameters, and a registered scale.
class WithBuffers(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(in_features=d, out_features=d_k * 3, bias=True)
        self.register_buffer("scale", torch.tensor(float(d_k)).rsqrt())
        self.register_buffer("mask", torch.zeros(1))

    def forward(self, x, mask=None):
        q, k, v = (self.qkv(x)[..., i::1][..., : self.qkv.out_features // 3] for i in self._starts())
        return torch.softmax(torch.einsum("bik,bjk->bij", q, k) * self.scale, -1) @ v

    def _starts(self):
        third = self.qkv.out_features // 3
        return 0, third, 2 * third


# One sequence after the other.
class OneAfterTheOther(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k, bias=False)

    def forward(self, x):
        return torch.stack([self._attend(*self.qkv(sequence).chunk(3, -1)) for sequence in x])

    @staticmethod
    def _attend(q, k, v):
        return torch.log_softmax(q @ k.T / len(q[0]) ** 0.5, -1).exp() @ v


# float64 inside, float32 out.
class DoubleInside(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)

    def forward(self, x):
        q, k, v = self.qkv(x).double().chunk(3, dim=2)
        return (torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, 2) @ v).float()
