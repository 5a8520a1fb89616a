"""Wrong but plausible to_linear(W_qkv).

The comment above each function says what its author believed; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

NAMED = {
    "untransposed": "linear_keeps_weight_as_it_is",
    "reshaped": "linear_reshapes_weight",
    "random_bias": "linear_keeps_random_bias",
    "the_matrix": "linear_returns_the_array",
    "forgets_to_copy": "",
    "blocks_reversed": "",
}


# (in, out) as in NumPy.
def untransposed(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False)
    layer.weight = nn.Parameter(torch.tensor(W_qkv))
    return layer


# The error about shapes goes away, the entries are shuffled.
def reshaped(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False)
    layer.weight = nn.Parameter(torch.tensor(W_qkv).reshape(layer.weight.shape))
    return layer


# The bias that nn.Linear starts with.
def random_bias(W_qkv):
    layer = nn.Linear(*W_qkv.shape)
    layer.weight = nn.Parameter(torch.tensor(W_qkv.T))
    return layer


# "Transpose it" taken at its word.
def the_matrix(W_qkv):
    return torch.tensor(W_qkv).T


# The layer is made, the weights stay random.
def forgets_to_copy(W_qkv):
    return nn.Linear(*W_qkv.shape, bias=False)


# Blocks in another order: an idea that the catalogue does not hold.
def blocks_reversed(W_qkv):
    layer = nn.Linear(*W_qkv.shape, bias=False)
    layer.weight = nn.Parameter(torch.tensor(np.concatenate(np.split(W_qkv, 3, axis=1)[::-1], axis=1).T))
    return layer
