"""Right but unusual to_linear(W_qkv).

The comment above each function says what is unusual about it, and so what no check may assume.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn


# A bias of zeros instead of none.
def zero_bias(W_qkv):
    layer = nn.Linear(*W_qkv.shape)
    nn.init.zeros_(layer.bias)
    layer.weight.data = torch.from_numpy(W_qkv.T.astype(np.float32))
    return layer


# float64, the matrix's own type.
def double_precision(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False, dtype=torch.float64)
    layer.weight = nn.Parameter(torch.tensor(W_qkv, dtype=torch.float64).T)
    return layer


# load_state_dict, and a weight that no training may change.
def loads_state(W_qkv):
    layer = nn.Linear(W_qkv.shape[0], W_qkv.shape[1], bias=False).requires_grad_(False)
    layer.load_state_dict({"weight": torch.as_tensor(W_qkv.T.copy())})
    return layer


class _Projection(nn.Linear):
    pass


# A subclass of nn.Linear.
def subclass(W_qkv):
    layer = _Projection(*W_qkv.shape, bias=False)
    with torch.no_grad():
        layer.weight[:] = torch.tensor(W_qkv).T
    return layer


# Contiguous memory, given to the parameter's data.
def contiguous_data(W_qkv):
    layer = nn.Linear(W_qkv.shape[0], W_qkv.shape[1], bias=False)
    layer.weight.data.copy_(torch.from_numpy(np.ascontiguousarray(np.transpose(W_qkv))))
    return layer


# Row by row.
def entry_by_entry(W_qkv):
    d, width = W_qkv.shape
    layer = nn.Linear(d, width)
    with torch.no_grad():
        layer.bias.fill_(0)
        for i in range(width):
            for j in range(d):
                layer.weight[i, j] = float(W_qkv[j, i])
    return layer


# Made on no device, and given its weight as a new parameter.
def from_nothing(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False, device="meta")
    layer.weight = nn.Parameter(torch.tensor(np.array(W_qkv)).T.contiguous())
    return layer


# The weights by the answer to an identity: what each feature becomes.
def by_identity(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False)
    state = layer.state_dict()
    state["weight"] = torch.einsum("ij->ji", torch.as_tensor(np.array(W_qkv, dtype=np.float32)))
    layer.load_state_dict(state)
    return layer


# A bias of negative zeros, set by hand.
def negative_zeros(W_qkv):
    layer = nn.Linear(*W_qkv.shape)
    layer.weight = nn.Parameter(torch.FloatTensor(W_qkv.T.tolist()))
    layer.bias = nn.Parameter(-torch.zeros(W_qkv.shape[1]))
    return layer


# In evaluation mode, without gradients.
def frozen(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False).eval()
    nn.init.zeros_(layer.weight)
    layer.weight.data += torch.tensor(W_qkv.T, dtype=layer.weight.dtype)
    layer.weight.requires_grad = False
    return layer
