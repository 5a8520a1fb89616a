"""Wrong derivations, as functions of (Q, K, V) that give the names of a notebook; above each its idea and its source.

`EARNED` holds the marks of the four stages: what follows from a wrong step is right for that step, and is carried.
`NAMED` holds the idea that is called by its name at the first stage that fails; empty where there is none.
"""

from __future__ import annotations

import numpy as np

EARNED = {
    "no_scale": (5, 0, 5, 5),
    "divided_by_d_k": (5, 0, 5, 5),
    "multiplied_by_root": (5, 0, 5, 5),
    "root_of_tokens": (5, 0, 5, 5),
    "queries_and_keys_swapped": (0, 5, 5, 5),
    "keys_are_queries": (0, 5, 5, 5),
    "columns": (5, 5, 0, 5),
    "everything": (5, 5, 0, 5),
    "columns_and_no_scale": (5, 0, 0, 5),
    "linear_weights": (5, 5, 0, 5),
    "no_softmax": (5, 5, 0, 5),
    "hard_maximum": (5, 5, 0, 5),
    "uniform": (5, 5, 0, 0),
    "exp_only": (5, 5, 0, 5),
    "values_are_keys": (5, 5, 5, 0),
    "values_for_keys": (0, 5, 5, 5),
    "weights_read_by_columns": (5, 5, 5, 0),
    "swapped_unscaled_and_keys_mixed": (0, 0, 5, 0),
    "rounded_to_two": (5, 5, 5, 0),
    "features_compared": (0, 0, 0, 0),
    "typing_slip": (5, 5, 0, 5),
    "zeros_everywhere": (0, 0, 0, 0),
    "almost_nothing": (0, 0, 0, 0),
    "far_apart": (0, 5, 0, 0),
    "tied_for_two": (0, 5, 0, 0),
    "the_worked_example": (0, 0, 0, 0),
    "copies_downwards": (0, 0, 0, 0),
    "copies_values": (5, 5, 0, 0),
    "infinite_scores": (5, 0, 0, 0),
    "half_done": (5, 5, 0, 0),
    "starts_in_the_middle": (0, 0, 5, 5),
}

NAMED = {
    "no_scale": "forgets_to_scale",
    "divided_by_d_k": "divides_by_d_k",
    "multiplied_by_root": "multiplies_by_root_d_k",
    "root_of_tokens": "divides_by_root_of_tokens",
    "queries_and_keys_swapped": "exchanges_queries_and_keys",
    "keys_are_queries": "takes_queries_for_keys",
    "columns": "softmax_over_columns",
    "everything": "softmax_over_everything",
    "columns_and_no_scale": "forgets_to_scale",
    "linear_weights": "divides_without_exp",
    "no_softmax": "leaves_scores_as_weights",
    "hard_maximum": "takes_only_the_best",
    "uniform": "shares_equally",
    "exp_only": "exp_without_dividing",
    "values_are_keys": "takes_keys_for_values",
    "values_for_keys": "compares_with_values",
    "weights_read_by_columns": "mixes_by_columns",
    "swapped_unscaled_and_keys_mixed": "exchanges_queries_and_keys",
    "rounded_to_two": "rounds_too_early",
    "features_compared": "multiplies_columns_of_queries",
    "copies_values": "looks_only_at_itself",
}


def _softmax(scores, axis=1):
    exponentials = np.exp(scores)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _from_raw(raw, V, *, scores=None, weights=None, output=None):
    """The four stages as they are typed, each wrong where it is given and right for what precedes it elsewhere."""
    scores = raw / np.sqrt(2) if scores is None else scores
    weights = _softmax(scores) if weights is None else weights
    output = weights @ V if output is None else output
    typed = {"raw_scores": raw, "scores": np.round(scores, 3), "weights": np.round(weights, 3)}
    return {**typed, "output": np.round(output, 2)}


# No scale | M1, the step that is left out most often
def no_scale(Q, K, V):
    return _from_raw(Q @ K.T, V, scores=Q @ K.T)


# Divided by d_k instead of its root | the classic variants
def divided_by_d_k(Q, K, V):
    return _from_raw(Q @ K.T, V, scores=Q @ K.T / 2)


# Multiplied where division belongs | ours
def multiplied_by_root(Q, K, V):
    return _from_raw(Q @ K.T, V, scores=Q @ K.T * np.sqrt(2))


# The root of the number of tokens | M11
def root_of_tokens(Q, K, V):
    return _from_raw(Q @ K.T, V, scores=Q @ K.T / np.sqrt(3))


# Queries and keys exchanged | M13; invisible in the printed example, where Q = K
def queries_and_keys_swapped(Q, K, V):
    return _from_raw(K @ Q.T, V)


# K = Q | the classic variants
def keys_are_queries(Q, K, V):
    return _from_raw(Q @ Q.T, V)


# Softmax over the columns | M2
def columns(Q, K, V):
    return _from_raw(Q @ K.T, V, weights=_softmax(Q @ K.T / np.sqrt(2), axis=0))


# Softmax over all nine entries | the classic variants
def everything(Q, K, V):
    return _from_raw(Q @ K.T, V, weights=_softmax(Q @ K.T / np.sqrt(2), axis=(0, 1)))


# Two ideas at once, each named at its own stage | ours
def columns_and_no_scale(Q, K, V):
    return _from_raw(Q @ K.T, V, scores=Q @ K.T, weights=_softmax(Q @ K.T, axis=0))


# Scores divided by their sum | M14
def linear_weights(Q, K, V):
    scores = Q @ K.T / np.sqrt(2)
    return _from_raw(Q @ K.T, V, weights=scores / scores.sum(1, keepdims=True))


# Scores as weights: a copy, so that the weights earn nothing, and the output that follows does | M14
def no_softmax(Q, K, V):
    return _from_raw(Q @ K.T, V, weights=Q @ K.T / np.sqrt(2))


# All weight on the best match | M14
def hard_maximum(Q, K, V):
    raw = Q @ K.T
    return _from_raw(raw, V, weights=(raw == raw.max(1, keepdims=True)) * 1.0)


# The same weight for all: nothing is carried from a matrix whose entries are equal | M14
def uniform(Q, K, V):
    return _from_raw(Q @ K.T, V, weights=np.full((3, 3), 1 / 3))


# Numbers from which every step gives what it gives without computing, up to rounding | ours
def almost_nothing(Q, K, V):
    raw_scores = [[0.0101, 0, 0]] * 3
    weights = [[0.3405, 0.3273, 0.3322]] * 3
    return {"raw_scores": raw_scores, "scores": raw_scores, "weights": weights, "output": [V.mean(axis=0)] * 3}


# Numbers whose softmax anybody can say | ours
def far_apart(Q, K, V):
    return _from_raw(np.array([[1000.0, 0, 0]] * 3), V)


def tied_for_two(Q, K, V):
    return _from_raw(np.array([[0, 0, -200.0]] * 3), V)


# The numbers that stand in the lesson | ours
def the_worked_example(Q, K, V):
    return _from_raw(np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 2]]), V)


# Exponentials that were not divided | ours
def exp_only(Q, K, V):
    return _from_raw(Q @ K.T, V, weights=np.exp(Q @ K.T / np.sqrt(2)))


# V = K | M4
def values_are_keys(Q, K, V):
    return _from_raw(Q @ K.T, V, output=_softmax(Q @ K.T / np.sqrt(2)) @ K)


# Queries compared with values | M4
def values_for_keys(Q, K, V):
    return _from_raw(Q @ V.T, V)


# Weights read down their columns | ours
def weights_read_by_columns(Q, K, V):
    return _from_raw(Q @ K.T, V, output=_softmax(Q @ K.T / np.sqrt(2)).T @ V)


# Three ideas: the first is told first, and what follows from it is carried | ours
def swapped_unscaled_and_keys_mixed(Q, K, V):
    return _from_raw(K @ Q.T, V, scores=K @ Q.T, output=_softmax(K @ Q.T) @ K)


# The printed two decimals used for the last step, three typed | ours
def rounded_to_two(Q, K, V):
    return _from_raw(Q @ K.T, V, output=np.round(_softmax(Q @ K.T / np.sqrt(2)), 2) @ V)


# Features compared instead of tokens, 2 × 2: nothing after it has the right shape | ours
def features_compared(Q, K, V):
    raw = Q.T @ K
    return {"raw_scores": raw, "scores": raw / np.sqrt(2), "weights": _softmax(raw / np.sqrt(2)), "output": raw @ V.T}


# One digit wrong in the weights, and the output that follows from it | ours
def typing_slip(Q, K, V):
    weights = _softmax(Q @ K.T / np.sqrt(2))
    weights[1, 2] += 0.1
    return _from_raw(Q @ K.T, V, weights=weights)


# Zeros typed everywhere: each follows from the one before, and earns nothing | ours
def zeros_everywhere(Q, K, V):
    return {name: np.zeros((3, 2 if name == "output" else 3)) for name in ("raw_scores", "scores", "weights", "output")}


# One matrix typed four times | ours
def copies_downwards(Q, K, V):
    same = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9]])
    return {"raw_scores": same, "scores": same, "weights": same, "output": same[:, :2]}


# The identity for the weights and V for the output: it follows, and is a copy | ours
def copies_values(Q, K, V):
    return _from_raw(Q @ K.T, V, weights=np.eye(3))


# Minus infinity above the diagonal, and NaN from there on | ours
def infinite_scores(Q, K, V):
    scores = np.where(np.tri(3) == 1, Q @ K.T / np.sqrt(2), np.inf)
    return {"raw_scores": Q @ K.T, "scores": scores, "weights": np.full((3, 3), np.nan), "output": V * np.nan}


# The last two are left empty | ours
def half_done(Q, K, V):
    names = _from_raw(Q @ K.T, V)
    return {"raw_scores": names["raw_scores"], "scores": names["scores"], "weights": ..., "output": []}


# The first two are left empty, which does not hurt the others | ours
def starts_in_the_middle(Q, K, V):
    names = _from_raw(Q @ K.T, V)
    return {"raw_scores": None, "weights": names["weights"], "output": names["output"]}
