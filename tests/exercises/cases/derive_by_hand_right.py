"""Right but unusual derivations: each function of (Q, K, V) gives the names that a notebook defines."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np


def _derive(Q, K, V):
    raw = Q @ K.T
    scores = raw / math.sqrt(2)
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return {"raw_scores": raw, "scores": scores, "weights": weights, "output": weights @ V}


def _rounded(Q, K, V):
    digits = {"raw_scores": 0, "scores": 3, "weights": 3, "output": 2}
    return {name: np.round(matrix, digits[name]) for name, matrix in _derive(Q, K, V).items()}


# Typed with a pencil beside it: nested lists, three decimals and two.
def typed(Q, K, V):
    return {name: matrix.tolist() for name, matrix in _rounded(Q, K, V).items()}


# Weights to two decimals, and the output from these: it is carried.
def two_decimals_throughout(Q, K, V):
    weights = np.round(_derive(Q, K, V)["weights"], 2)
    return {**_rounded(Q, K, V), "weights": weights.tolist(), "output": np.round(weights @ V, 2).tolist()}


# The output from the weights as they were typed, to three decimals.
def output_from_typed_weights(Q, K, V):
    names = _rounded(Q, K, V)
    return {**names, "output": np.round(names["weights"] @ V, 2)}


# Tuples of tuples.
def tuples(Q, K, V):
    return {name: tuple(map(tuple, matrix.tolist())) for name, matrix in _rounded(Q, K, V).items()}


# Integers, and weights as fractions of a whole.
def fractions(Q, K, V):
    names = _rounded(Q, K, V)
    raw = [[int(entry) for entry in row] for row in names["raw_scores"].tolist()]
    shares = [[Fraction(round(1000 * entry), 1000) for entry in row] for row in names["weights"].tolist()]
    mixed = [[sum(a * int(v) for a, v in zip(row, column, strict=True)) for column in V.T] for row in shares]
    return {**names, "raw_scores": raw, "weights": shares, "output": mixed}


# Fractions in an array, which NumPy holds as objects.
def fractions_in_an_array(Q, K, V):
    return {name: np.array(matrix, dtype=object) for name, matrix in fractions(Q, K, V).items()}


# Decimals, as someone types who mistrusts floats.
def decimals(Q, K, V):
    names = _rounded(Q, K, V)
    return {name: [[Decimal(str(entry)) for entry in row] for row in names[name].tolist()] for name in names}


# float32.
def float32(Q, K, V):
    return {name: matrix.astype(np.float32) for name, matrix in _derive(Q, K, V).items()}


# Tensors, one of them with a gradient.
def tensors(Q, K, V):
    import torch

    names = {name: torch.tensor(np.array(matrix, dtype=float)) for name, matrix in _derive(Q, K, V).items()}
    names["output"].requires_grad_()
    return names


# Entries that are 0-d arrays, from a loop.
def scalars_from_a_loop(Q, K, V):
    names = _derive(Q, K, V)
    return {name: [[matrix[i, j] for j in range(matrix.shape[1])] for i in range(3)] for name, matrix in names.items()}


# A masked array in which nothing is masked.
def masked_arrays(Q, K, V):
    return {name: np.ma.MaskedArray(matrix) for name, matrix in _derive(Q, K, V).items()}


# Softmax with the row's maximum taken off.
def stable(Q, K, V):
    names = _derive(Q, K, V)
    shifted = np.exp(names["scores"] - names["scores"].max(1, keepdims=True))
    return {**names, "weights": shifted / shifted.sum(1, keepdims=True)}


# Every number as text would give it: rounded floats in nested tuples, -0.0 among them.
def negative_zeros(Q, K, V):
    names = _rounded(Q, K, V)
    return {name: np.where(matrix == 0, -0.0, matrix).tolist() for name, matrix in names.items()}


# np.matrix, whose sums keep both axes.
def matrices(Q, K, V):
    raw = Q.view(np.matrix) @ K.T
    scores = raw / np.sqrt(2)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1)
    return {"raw_scores": raw, "scores": scores, "weights": weights, "output": weights @ V}


# einsum, scipy's softmax.
def einsum_and_scipy(Q, K, V):
    from scipy.special import softmax

    raw = np.einsum("ik,jk->ij", Q, K)
    scores = raw * 2**-0.5
    weights = softmax(scores, axis=1)
    return {"raw_scores": raw, "scores": scores, "weights": weights, "output": np.einsum("ij,jv->iv", weights, V)}


# Powers of e to the power of rounded scores, as a pocket calculator has them.
def pocket_calculator(Q, K, V):
    raw = (Q @ K.T).astype(int).tolist()
    scores = [[round(score / 1.414214, 3) for score in row] for row in raw]
    powers = [[2.718282**score for score in row] for row in scores]
    weights = [[round(power / sum(row), 3) for power in row] for row in powers]
    output = [[round(sum(w * v for w, v in zip(row, column, strict=True)), 2) for column in V.T] for row in weights]
    return {"raw_scores": raw, "scores": scores, "weights": weights, "output": output}


# Four decimals where three were asked for.
def more_decimals(Q, K, V):
    return {name: np.round(matrix, 5) for name, matrix in _derive(Q, K, V).items()}


# Fortran's order, float32 and read-only views.
def views(Q, K, V):
    names = {name: np.asfortranarray(matrix, dtype=np.float32).T.T for name, matrix in _derive(Q, K, V).items()}
    for matrix in names.values():
        matrix.flags.writeable = False
    return names


# Long doubles and whole numbers in one notebook.
def mixed_dtypes(Q, K, V):
    names = _derive(Q, K, V)
    return {
        **names,
        "raw_scores": names["raw_scores"].astype(np.int8),
        "weights": names["weights"].astype(np.longdouble),
    }


# Arrays of rows that are lists of 0-d tensors.
def rows_of_tensors(Q, K, V):
    import torch

    return {name: [list(torch.as_tensor(row)) for row in np.array(matrix)] for name, matrix in _derive(Q, K, V).items()}
