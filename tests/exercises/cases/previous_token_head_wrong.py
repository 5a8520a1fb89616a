"""Wrong but plausible previous_token_head(n_vocab, T).

The comment above each function says what its author believed and where it was seen; `NAMED` maps it to the catalogue.
"""

from __future__ import annotations

import numpy as np

NAMED = {
    "next_token": "looks_at_the_next",
    "keys_and_queries_swapped": "looks_at_the_next",
    "next_token_but_soft": "looks_at_the_next",
    "same_token": "looks_at_itself",
    "factor_one": "uses_no_factor",
    "factor_three": "copies_the_three",
    "factor_five": "sets_one_factor_for_every_length",
    "factor_eight": "sets_one_factor_for_every_length",
    "matches_tokens": "matches_tokens",
    "key_reads_the_token_and_is_found_anywhere": "matches_tokens",
    "offset_forgotten": "asks_by_token",
    "scaled_values": "sharpens_the_values",
    "placeholder": "leaves_zeros",
    "two_back": "looks_two_back",
    "last_position_missing": "stops_one_row_early",
    "keys_are_values": "hands_over_the_position",
    "values_read_everything": "hands_over_a_place",
    "written_for_five_tokens": "writes_one_length",
    "averages_all_before": "",
    "first_token": "looks_at_one_place",
    "infinite_factor": "",
}


def _w(n_vocab, T):
    d = n_vocab + T
    return np.zeros((d, T)), np.zeros((d, T)), np.zeros((d, n_vocab))


def _shifted(n_vocab, T, ask, factor=50.0):
    Q, K, V = _w(n_vocab, T)
    Q[n_vocab:], K[n_vocab:], V[:n_vocab] = factor * ask, np.eye(T), np.eye(n_vocab)
    return Q, K, V


# Attends to the next token: the sign of np.eye(k) or np.roll. numpy/numpy#12959
def next_token(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=1))


# Returns W_K, W_Q, W_V: who asks and who answers have changed places.
def keys_and_queries_swapped(n_vocab, T):
    Q, K, V = _shifted(n_vocab, T, np.eye(T, k=-1))
    return K, Q, V


# Two mistakes at once: the direction is named first, because it costs more.
def next_token_but_soft(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=1), factor=3.0)


# Attends to itself: no shift. "Every token mostly finds itself"
def same_token(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T))


# Factor 1: almost uniform.
def factor_one(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=-1), factor=1.0)


# Factor 3, copied from the worked example: 0.909 at T = 3, 0.24 at T = 64.
def factor_three(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=-1), factor=3.0)


# One factor for all lengths, too small for any of them.
def factor_five(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=-1), factor=5.0)


# One factor for all lengths, enough up to T = 31.
def factor_eight(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=-1), factor=8.0)


# Matches tokens instead of positions: a lookup by content.
def matches_tokens(n_vocab, T):
    token = np.zeros((n_vocab + T, n_vocab))
    token[:n_vocab] = np.eye(n_vocab)
    return 50 * token, token, token


# Keys read the token and position i asks for token i − 1, as if tokens were numbered by where they stand.
def key_reads_the_token_and_is_found_anywhere(n_vocab, T):
    Q, K, V = np.zeros((n_vocab + T, n_vocab)), np.zeros((n_vocab + T, n_vocab)), np.zeros((n_vocab + T, n_vocab))
    Q[n_vocab:] = 50 * np.eye(T, n_vocab, k=-1)
    K[:n_vocab] = V[:n_vocab] = np.eye(n_vocab)
    return Q, K, V


# Written into the token rows: W_Q[i, i − 1] instead of W_Q[n_vocab + i, i − 1].
def offset_forgotten(n_vocab, T):
    Q, K, V = _w(n_vocab, T)
    for i in range(1, T):
        Q[i, i - 1] = 50
    K[n_vocab:], V[:n_vocab] = np.eye(T), np.eye(n_vocab)
    return Q, K, V


# The sharpness factor applied to all three matrices.
def scaled_values(n_vocab, T):
    Q, K, V = _shifted(n_vocab, T, np.eye(T, k=-1))
    return Q, K, 50 * V


# The zero matrices of a released stub: attends uniformly.
def placeholder(n_vocab, T):
    return _w(n_vocab, T)


# Two back, i − 2: off by one.
def two_back(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T, k=-2))


# The loop stops one row early: range(1, T − 1).
def last_position_missing(n_vocab, T):
    Q, K, V = _shifted(n_vocab, T, np.zeros((T, T)))
    for i in range(1, T - 1):
        Q[n_vocab + i, i - 1] = 50
    return Q, K, V


# K = V: the head delivers the position code that it matched with (E2, why keys and values differ).
def keys_are_values(n_vocab, T):
    Q, K, _ = _shifted(n_vocab, T, np.eye(T, k=-1))
    return Q, K, K


# Values that read the token and the position: T columns of the position folded onto the tokens.
def values_read_everything(n_vocab, T):
    Q, K, V = _shifted(n_vocab, T, np.eye(T, k=-1))
    V[n_vocab + np.arange(T), np.arange(T) % n_vocab] = 1
    return Q, K, V


# Sizes written down from the example: five tokens, whatever T is.
def written_for_five_tokens(n_vocab, T):
    return _shifted(n_vocab, 5, np.eye(5, k=-1))


# Looks at all positions before, evenly: a causal mask without a shift.
def averages_all_before(n_vocab, T):
    return _shifted(n_vocab, T, np.tri(T, k=-1))


# Looks at position 0 from everywhere.
def first_token(n_vocab, T):
    return _shifted(n_vocab, T, np.eye(T)[np.zeros(T, dtype=int)])


# "As sharp as possible": an infinite factor times 0 is NaN.
def infinite_factor(n_vocab, T):
    with np.errstate(invalid="ignore"):
        return _shifted(n_vocab, T, np.eye(T, k=-1), factor=np.inf)
