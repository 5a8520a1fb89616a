"""A trial of a hand-written head on one sequence, and the mistakes of `previous_token_head` that its behaviour shows.

Infinitely many weights make the same head, right or wrong, so mistakes are recognised by behaviour, never by entries.
Each `named_by_…` returns the id of a misconception, or "" where the behaviour shows none of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graders.authoring import CheckFailed


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

    def gaze(self, row: int) -> str:
        """Where `row` looks, in words."""
        place = int(self.looks[row])
        if place < 0:
            return f"no single largest weight (at most {self.weights[row].max():.3f})"
        return f"most weight ({self.weights[row, place]:.3f}) on position {place}"


def attend(tokens: np.ndarray, n_vocab: int, matrices: Sequence[np.ndarray], positions_first: bool = False) -> Trial:
    """Run the head on X = [one-hot token | one-hot position], or on X with the two parts exchanged."""
    parts = [np.eye(n_vocab)[tokens], np.eye(len(tokens))]
    X = np.concatenate(parts[::-1] if positions_first else parts, axis=1)
    with np.errstate(all="ignore"):
        Q, K, V = (X @ W for W in matrices)
        scores = Q @ K.T
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = exponentials / exponentials.sum(axis=1, keepdims=True)
    if not (np.isfinite(weights).all() and np.isfinite(V).all()):
        raise CheckFailed("your head's weights or values are not finite", hint="Is every entry a finite number?")
    return Trial(n_vocab, tokens, matrices, weights, V)


def named_by_shapes(asked: Sequence[tuple[int, int]], given: Sequence[Sequence[np.ndarray]]) -> str:
    """The mistake that the shapes of `given` show for all (n_vocab, T) of `asked`."""
    answers = [([W.shape for W in matrices], n, T) for (n, T), matrices in zip(asked, given, strict=True)]
    rows = [(shapes[0][0] if shapes[0] else 0, n, T) for shapes, n, T in answers]
    return _first({
        "turns_the_matrices": all(shapes[2] == (n, n + T) for shapes, n, T in answers),
        "hands_over_the_position": all(shapes[2] == (n + T, T) for shapes, n, T in answers),
        "hands_over_the_whole_row": all(shapes[2] == (n + T, n + T) for shapes, n, T in answers),
        "leaves_out_the_token_rows": all(count == T for count, _, T in rows),
        "writes_one_length": len({count - n for count, n, _ in rows}) == 1,
    })  # fmt: skip


def named_by_gaze(done: Trial) -> str:
    """The mistake that shows in where the rows look."""
    T, looks, places = done.length, done.looks, np.arange(done.length)
    back = looks[1:] == places[:-1]
    same, counted = _weights(done, _repeated(done)), _weights(done, _counted(done))
    return _first({
        "leaves_zeros": _flat(counted, axis=2),
        "puts_positions_first": _reads_positions_first(done),
        "looks_at_one_place": _flat(counted[:, 1:], axis=1),
        # Where all tokens are the same, keys that read tokens cannot be told apart, nor can such queries.
        "matches_tokens": _flat(same, axis=2),
        "asks_by_token": _flat(same, axis=1),
        "looks_at_itself": (looks == places)[1:].all(),
        "looks_at_the_next": (looks[1:-1] == places[2:]).all(),
        "looks_two_back": (looks[2:] == places[:-2]).all(),
        "stops_one_row_early": back[:-1].all() and looks[T - 1] < 0,
        "starts_one_row_late": back[1:].all() and looks[1] < 0,
    })  # fmt: skip


def _repeated(done: Trial) -> np.ndarray:
    """Every token, alone, at all T positions: (n_vocab, T)."""
    return np.repeat(np.arange(done.n_vocab)[:, None], done.length, axis=1)


def _counted(done: Trial) -> np.ndarray:
    """Sequences that count up from each token, so that every token comes to every position: (n_vocab, T)."""
    return (_repeated(done) + np.arange(done.length)) % done.n_vocab


def _weights(done: Trial, sequences: np.ndarray) -> np.ndarray:
    """The head's weights on other sequences: (sequences, T, T)."""
    return np.stack([attend(tokens, done.n_vocab, done.matrices).weights for tokens in sequences])


def _flat(weights: np.ndarray, axis: int) -> bool:
    return bool(np.ptp(weights, axis=axis).max() < 1e-6)


def _reads_positions_first(done: Trial) -> bool:
    other = attend(done.tokens, done.n_vocab, done.matrices, positions_first=True)
    return bool((other.looks[1:] == np.arange(done.length - 1)).all())


def named_by_leads(trials: Sequence[Trial]) -> str:
    """The mistake that shows in how far the right score leads, at several lengths."""
    leads = np.array([done.lead for done in trials])
    nine = np.log([9.0 * (done.length - 1) for done in trials])
    return _first({
        "uses_no_factor": np.allclose(leads, 1, atol=0.02),
        "copies_the_three": np.allclose(leads, 3, atol=0.02),
        "solves_for_nine_tenths": np.allclose(leads, nine, atol=0.02),
        "sets_one_factor_for_every_length": np.allclose(leads, leads[0], atol=0.02) and leads[0] > 0,
    })  # fmt: skip


def named_by_values(done: Trial) -> str:
    """The mistake that shows in what the positions have to hand over."""
    factor = float((done.values * done.own).sum(axis=1).mean())
    repeated = attend(_repeated(done)[0], done.n_vocab, done.matrices).values
    return _first({
        "sharpens_the_values": factor > 1 and np.allclose(done.values, factor * done.own),
        "hands_over_a_place": not np.allclose(repeated, repeated[0]),
    })  # fmt: skip


def _first(signs: Mapping[str, bool]) -> str:
    return next((name for name, seen in signs.items() if seen), "")
