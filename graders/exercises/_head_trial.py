"""A trial of a hand-written head on one sequence, and the mistakes of `previous_token_head` that its behaviour shows.

Infinitely many weights make the same head, right or wrong, so mistakes are recognised by behaviour, never by entries.
Each `named_by_…` returns the id of a misconception, two of them joined by "+", or "" where the behaviour shows none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graders.authoring import CheckFailed

LONGEST = 64
"""Tokens of the longest trial: a head may have been written for another length, but its weights are length squared."""


@dataclass(frozen=True)
class Trial:
    """What the head `matrices` did with `tokens`: its weights (T, T) and the values (T, n_vocab) that they mix."""

    n_vocab: int
    tokens: np.ndarray
    matrices: Sequence[np.ndarray]
    weights: np.ndarray
    values: np.ndarray

    @property
    def length(self) -> int:
        """The number of tokens, T."""
        return len(self.tokens)

    @property
    def own(self) -> np.ndarray:
        """The one-hots (T, n_vocab) of the tokens."""
        return np.eye(self.n_vocab)[self.tokens]

    @property
    def looks(self) -> np.ndarray:
        """The position that gets most of each row's weight; −1 where two share the lead."""
        ordered = np.sort(self.weights, axis=1)
        return np.where(ordered[:, -1] > ordered[:, -2] * (1 + 1e-6), self.weights.argmax(axis=1), -1)

    @property
    def on_previous(self) -> np.ndarray:
        """The weights that rows 1, 2, … give to the position before them."""
        return np.diagonal(self.weights, offset=-1)

    @property
    def softest(self) -> int:
        """The row, not 0, with the least weight on the position before it."""
        return int(self.on_previous.argmin()) + 1

    @property
    def lead(self) -> float:
        """By how much the softest row's score of the position before leads the best of its other scores."""
        with np.errstate(divide="ignore"):
            logarithms = np.log(self.weights[self.softest])
        return float(logarithms[self.softest - 1] - np.delete(logarithms, self.softest - 1).max())

    @property
    def usual_lead(self) -> float:
        """By how much the best score of a row, not row 0, leads its second best, in the median row."""
        with np.errstate(divide="ignore"):
            best = np.sort(np.log(self.weights[1:]), axis=1)
        return float(np.median(best[:, -1] - best[:, -2]))

    def gaze(self, row: int) -> str:
        """Where `row` looks, in words."""
        place = int(self.looks[row])
        if place < 0:
            return f"no single largest weight (at most {self.weights[row].max():.3f})"
        return f"most weight ({self.weights[row, place]:.3f}) on position {place}"


def attend(tokens: np.ndarray, n_vocab: int, matrices: Sequence[np.ndarray]) -> Trial:
    """Run the head on X = [one-hot token | one-hot position]."""
    X = np.concatenate([np.eye(n_vocab)[tokens], np.eye(len(tokens))], axis=1)
    with np.errstate(all="ignore"):
        Q, K, V = (X @ W for W in matrices)
        scores = Q @ K.T
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = exponentials / exponentials.sum(axis=1, keepdims=True)
    if not (np.isfinite(weights).all() and np.isfinite(V).all()):
        raise CheckFailed("your head's weights or values are not finite", hint="Is every entry a finite number?")
    return Trial(n_vocab, tokens, matrices, weights, V)


# --- mistakes ---------------------------------------------------------------------------------------------------------


def named_by_shapes(asked: Sequence[tuple[int, int]], given: Sequence[Sequence[np.ndarray]]) -> str:
    """The mistakes that the shapes of `given` show for all (n_vocab, T) of `asked`, joined by "+"."""
    told = [_signs_of_shapes(n_vocab, T, head) for (n_vocab, T), head in zip(asked, given, strict=True)]
    same = set.intersection(*told)
    if len({head[0].shape[0] - n for head, (n, _) in zip(map(_upright, given, asked), asked, strict=True)}) == 1:
        same = (same | {"writes_one_length"}) - {"leaves_out_the_token_rows"}
    return "+".join(sorted(same)[:2])


def _signs_of_shapes(n_vocab: int, T: int, head: Sequence[np.ndarray]) -> set[str]:
    """The mistakes that the shapes of one head show; which length it was written for is seen in several."""
    if not all(W.ndim == 2 for W in head):
        return set()
    upright = _upright(head, (n_vocab, T))
    rows, width = upright[0].shape[0], upright[2].shape[-1]
    length = T if rows == T else rows - n_vocab
    signs = {
        "turns_the_matrices": upright is not head,
        "leaves_out_the_token_rows": rows == T,
        "hands_over_the_position": width == length,
        "hands_over_the_whole_row": width == n_vocab + length,
    }
    return {name for name, seen in signs.items() if seen}


def _upright(head: Sequence[np.ndarray], sizes: tuple[int, int]) -> Sequence[np.ndarray]:
    """The matrices with a row for each entry of X's rows, turned if they have a column for each instead."""
    if not all(W.ndim == 2 for W in head):
        return [np.zeros((0, 0))] * 3
    heights, widths = ({W.shape[axis] for W in head} for axis in (0, 1))
    turned = heights != {sum(sizes)} and len(widths) == 1 and max(widths) > sizes[0]
    return [W.T for W in head] if turned else head


def mended(n_vocab: int, T: int, tokens: np.ndarray, head: Sequence[np.ndarray]) -> Trial | None:
    """A trial of a head of wrong shapes, once turned and filled up, at the length that it was written for, if any."""
    Q, K, V = _upright(head, (n_vocab, T))
    if Q.shape != K.shape:
        return None
    if len(Q) == T:
        Q, K = (np.concatenate([np.zeros((n_vocab, W.shape[1])), W]) for W in (Q, K))
    length = len(Q) - n_vocab
    if not 2 <= length <= LONGEST or len(V) != len(Q):
        return None
    return attend(np.resize(tokens, length), n_vocab, [Q, K, V])


def named_by_gaze(done: Trial) -> str:
    """The mistakes that show in where the rows look, joined by "+"."""
    read = _read(done)
    if _flat(read, None):
        return "leaves_zeros"
    return _named_as_positions_first(done) or _named_by_reading(done, read) or _named_by_direction(done)


def _named_by_direction(done: Trial) -> str:
    T, looks, places = done.length, done.looks, np.arange(done.length)
    back = looks[1:] == places[:-1]
    return _first({
        "looks_at_itself": (looks == places)[1:].all(),
        "looks_at_the_next": T > 2 and (looks[1:-1] == places[2:]).all(),
        "looks_two_back": T > 3 and (looks[2:] == places[:-2]).all(),
        "stops_one_row_early": T > 2 and back[:-1].all() and looks[T - 1] < 0,
        "starts_one_row_late": T > 2 and back[1:].all() and looks[1] < 0,
    })  # fmt: skip


def _named_as_positions_first(done: Trial) -> str:
    """Where X with its two parts exchanged gives sense: that mistake, and the one that is left."""
    left = _named_by_direction(_exchanged(done))
    if left == "looks_at_itself":  # it may as well be a head that matches tokens
        return ""
    sense = left or _looks_back(_exchanged(done))
    return "+".join(filter(None, ["puts_positions_first", left])) if sense else ""


def _exchanged(done: Trial) -> Trial:
    """The same head on X with its two parts exchanged."""
    return attend(done.tokens, done.n_vocab, [np.roll(W, done.n_vocab, axis=0) for W in done.matrices])


def _looks_back(done: Trial) -> bool:
    return bool((done.looks[1:] == np.arange(done.length - 1)).all())


def _read(done: Trial) -> np.ndarray:
    """What each entry of X adds to a query's score for each entry of a key's (d, d), whatever W_Q and W_K hold.

    A softmax does not see what all keys have in common, so that each half has a mean of 0.
    """
    scores = done.matrices[0] @ done.matrices[1].T
    halves = scores[:, : done.n_vocab], scores[:, done.n_vocab :]
    return np.concatenate([half - half.mean(axis=1, keepdims=True) for half in halves], axis=1)


def _named_by_reading(done: Trial, read: np.ndarray) -> str:
    """The mistakes that show in which part of X queries and keys read."""
    n, shared = done.n_vocab, min(done.n_vocab, done.length)
    by_token, by_place = read[:, :n], read[:, n:]
    back = by_place[1:shared].argmax(axis=1) == np.arange(shared - 1)
    return _first({
        # Row 0 is free to look elsewhere.
        "looks_at_one_place": _flat(by_token, None) and _flat(by_place[:n], 0) and _flat(by_place[n + 1 :], 0),
        "matches_tokens": _flat(by_place, None),
        "asks_by_token": _flat(read[n:], 0) and not _flat(read[:n], 0) and back.all(),
    })  # fmt: skip


def _flat(numbers: np.ndarray, axis: int | None) -> bool:
    return bool(np.ptp(numbers, axis=axis).max() < 1e-6)


def named_by_leads(trials: Sequence[Trial]) -> str:
    """The mistake that shows in how far the winning score leads, at several lengths."""
    leads = np.array([_lead(done) for done in trials])
    nine = np.log([9.0 * (done.length - 1) for done in trials])
    return _first({
        "uses_no_factor": np.allclose(leads, 1, atol=0.02),
        "copies_the_three": np.allclose(leads, 3, atol=0.02),
        "solves_for_nine_tenths": np.allclose(leads, nine, atol=0.02),
        "sets_one_factor_for_every_length": np.allclose(leads, leads[0], atol=0.02) and 0 < leads[0] < ENOUGH,
    })  # fmt: skip


ENOUGH = float(np.log(99 * 63))
"""The lead that is enough at every length up to 64."""


def _lead(done: Trial) -> float:
    """How far the winning score leads, wherever the head looks."""
    if _looks_back(done):
        return done.lead
    if _named_as_positions_first(done):
        done = _exchanged(done)
        return done.lead if _looks_back(done) else done.usual_lead
    read, n = _read(done), done.n_vocab
    how = _named_by_reading(done, read)
    if how not in ("matches_tokens", "asks_by_token"):
        return done.usual_lead
    # Tokens that stand in several places, or in none, share a lead or have none: what is read knows of no places.
    best = np.sort(read[1 : min(n, done.length), :n] if how == "matches_tokens" else read[1 : min(n, done.length), n:])
    return float(np.median(best[:, -1] - best[:, -2]))


def named_by_values(done: Trial) -> str:
    """The mistake that shows in what the positions have to hand over."""
    if done.values.shape != done.own.shape:
        return ""
    exchanged = _named_as_positions_first(done)
    if exchanged:
        done = _exchanged(done)
    factor = float((done.values * done.own).sum(axis=1).mean())
    repeated = attend(np.full(done.length, done.tokens[0]), done.n_vocab, done.matrices).values
    return _first({
        "sharpens_the_values": factor > 1 and np.allclose(done.values, factor * done.own),
        "hands_over_a_place": not np.allclose(repeated, repeated[0]),
        "puts_positions_first": bool(exchanged),
    })  # fmt: skip


def _first(signs: Mapping[str, bool]) -> str:
    return next((name for name, seen in signs.items() if seen), "")
