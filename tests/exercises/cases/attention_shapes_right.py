"""Right but unusual attention_shapes(B, T_q, T_k, d, d_k, d_v): what the checks must not assume is above each."""

from __future__ import annotations

import array
import collections
import dataclasses
import types
import typing

import numpy as np


def _table(B, T_q, T_k, d, d_k, d_v):
    keys = {"W_K": (d, d_k), "K": (B, T_k, d_k), "X_kv": (B, T_k, d)}
    values = {"W_V": (d, d_v), "V": (B, T_k, d_v), "output": (B, T_q, d_v)}
    queries = {"Q": (B, T_q, d_k), "W_Q": (d, d_k), "X_q": (B, T_q, d)}
    return values | keys | queries | dict.fromkeys(("weights", "scores"), (B, T_q, T_k))


ORDER = ("X_q", "X_kv", "W_Q", "W_K", "W_V", "Q", "K", "V", "scores", "weights", "output")


# A dict in another order: the order of the names.
def any_order(*sizes):
    return _table(*sizes)


# A tuple in the order of the contract (RS02): names.
def plain_tuple(*sizes):
    return tuple(_table(*sizes)[name] for name in ORDER)


# A list of lists in that order: tuples.
def lists_in_order(*sizes):
    return [list(_table(*sizes)[name]) for name in ORDER]


Named = collections.namedtuple("Named", ORDER)


# A named tuple: a plain dict or tuple.
def named_tuple(*sizes):
    return Named(**_table(*sizes))


Unlike = collections.namedtuple("Unlike", [f"{name}_shape" for name in ORDER])


# A named tuple with names of the student's own: that they are ours.
def named_tuple_with_other_names(*sizes):
    return Unlike(*(_table(*sizes)[name] for name in ORDER))


class Typed(typing.NamedTuple):
    rows: int
    columns: int


# A shape that is a named tuple: plain tuples inside.
def named_shapes(*sizes):
    return {name: Typed(*shape) if len(shape) == 2 else shape for name, shape in _table(*sizes).items()}


# NumPy's integers (RS05): type(x) is int.
def numpy_ints(*sizes):
    return {name: tuple(np.int64(size) for size in shape) for name, shape in _table(*sizes).items()}


# 0-d arrays as sizes (RS13): anything but operator.index.
def zero_d_arrays(*sizes):
    return {name: tuple(np.array(size) for size in shape) for name, shape in _table(*sizes).items()}


# Arrays as shapes: that shapes compare with ==.
def arrays_as_shapes(*sizes):
    return {name: np.array(shape) for name, shape in _table(*sizes).items()}


# Other sequences of integers as shapes: lists and tuples only.
def other_sequences(*sizes):
    makers = [collections.deque, list, lambda shape: array.array("l", shape), collections.UserList]
    table = _table(*sizes).items()
    return {name: makers[i % len(makers)](shape) for i, (name, shape) in enumerate(table)}


# Shapes of arrays that were really multiplied (RS07): small sizes, or the memory runs out.
def by_computing(B, T_q, T_k, d, d_k, d_v):
    X_q, X_kv, W_Q, W_K, W_V = (np.zeros(s) for s in ((B, T_q, d), (B, T_k, d), (d, d_k), (d, d_k), (d, d_v)))
    Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
    scores = Q @ K.mT
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    made = (X_q, X_kv, W_Q, W_K, W_V, Q, K, V, scores, weights, weights @ V)
    return {name: matrix.shape for name, matrix in zip(ORDER, made, strict=True)}


# torch.Size (RS08): exactly tuple.
def torch_sizes(*sizes):
    import torch

    return {name: torch.Size(shape) for name, shape in _table(*sizes).items()}


@dataclasses.dataclass
class Head:
    X_q: tuple
    X_kv: tuple
    W_Q: tuple
    W_K: tuple
    W_V: tuple
    Q: tuple
    K: tuple
    V: tuple
    scores: tuple
    weights: tuple
    output: tuple


# A dataclass (RS09): that names are keys.
def data_class(*sizes):
    return Head(**_table(*sizes))


# A namespace with more in it than was asked for: the same, and that names are known.
def namespace(*sizes):
    return types.SimpleNamespace(**_table(*sizes), heads=1)


# More entries than were asked for (RS10): equality of keys.
def extra_names(*sizes):
    return _table(*sizes) | {"parameters": 12, "mask": (3, 4), "note": "see the lesson"}


# A chain of dicts (RS12): dict rather than Mapping.
def chain_map(*sizes):
    table = _table(*sizes)
    return collections.ChainMap({"X_q": table["X_q"]}, table)


# A read-only view of a dict: the same.
def mapping_proxy(*sizes):
    return types.MappingProxyType(_table(*sizes))


# Shapes written out as einsum would name them.
def by_letters(B, T_q, T_k, d, d_k, d_v):
    size = dict(b=B, q=T_q, t=T_k, d=d, k=d_k, v=d_v)
    letters = ["bqd", "btd", "dk", "dk", "dv", "bqk", "btk", "btv", "bqt", "bqt", "bqv"]
    return {name: tuple(size[letter] for letter in word) for name, word in zip(ORDER, letters, strict=True)}


# Shapes as NumPy broadcasts them.
def by_broadcasting(B, T_q, T_k, d, d_k, d_v):
    table = _table(B, T_q, T_k, d, d_k, d_v)
    pairs = np.broadcast_shapes((B, T_q, 1), (1, 1, T_k))
    return table | {"scores": pairs, "weights": pairs}


# A dict of one's own kind.
class _Table(dict):
    def __missing__(self, name):
        return ()


def own_dict(*sizes):
    return _Table(_table(*sizes))


# Meta tensors, which have a shape and no memory.
def meta_tensors(B, T_q, T_k, d, d_k, d_v):
    import torch

    X_q, X_kv, W_Q, W_K, W_V = (
        torch.empty(s, device="meta") for s in ((B, T_q, d), (B, T_k, d), (d, d_k), (d, d_k), (d, d_v))
    )
    Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
    scores = Q @ K.mT
    made = (X_q, X_kv, W_Q, W_K, W_V, Q, K, V, scores, scores.softmax(-1), scores.softmax(-1) @ V)
    return {name: tensor.shape for name, tensor in zip(ORDER, made, strict=True)}


# Integers of different makes side by side.
def mixed_integers(*sizes):
    kinds = [int, np.int32, np.uint16, np.int64]
    table = _table(*sizes).items()
    return {name: [kinds[i % 4](size) for i, size in enumerate(shape)] for name, shape in table}


# An ordered dict, filled as the head computes.
def ordered(*sizes):
    table = _table(*sizes)
    return collections.OrderedDict((name, table[name]) for name in reversed(ORDER))
