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
