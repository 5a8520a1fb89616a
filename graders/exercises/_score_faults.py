"""Wrong `score_statistics`: one run of the experiment with one part of it replaced.

Each is a fault with the check that it fails first and the sentence that its author reads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np


@dataclass
class Run:
    """The parts of a right answer: scores `S`, weights `W`, and the gradient `G` of Σ W · g with respect to S."""

    q: np.ndarray
    k: np.ndarray
    g: np.ndarray
    scaled: bool

    @property
    def divisor(self) -> float:
        """√d_k where the scores are divided, else 1."""
        return float(np.sqrt(self.q.shape[-1])) if self.scaled else 1.0

    @cached_property
    def S(self) -> np.ndarray:
        """The scores after any division."""
        return self.q @ self.k.T / self.divisor

    @cached_property
    def W(self) -> np.ndarray:
        """The weights."""
        return softmax(self.S)

    @cached_property
    def G(self) -> np.ndarray:
        """The gradient that the scores receive."""
        return self.W * (self.g - (self.W * self.g).sum(axis=-1, keepdims=True))

    def statistics(self) -> dict[str, float]:
        """The four numbers of this run's parts."""
        return {
            "std": self.S.std(),
            "one_hot": (self.W.max(axis=-1) > 0.99).mean(),
            "entropy": entropies(self.W).mean(),
            "grad_median": np.median(norms(self.G)),
        }


def softmax(S: np.ndarray, axis: int | None = -1) -> np.ndarray:
    """Weights that sum to 1 over `axis`."""
    weights = np.exp(S - S.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def entropies(W: np.ndarray, axis: int = -1) -> np.ndarray:
    """The entropies over `axis`, with 0 · ln 0 = 0."""
    return -(W * np.log(np.where(W > 0, W, 1))).sum(axis=axis)


def norms(G: np.ndarray) -> np.ndarray:
    """The norms of the rows."""
    return np.linalg.norm(G, axis=-1)


def unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return vectors / norms(vectors)[:, None]


Part = Callable[[Run], Any]
Answer = Callable[..., dict[str, float]]


def with_parts(**parts: Part) -> Answer:
    """`score_statistics` with these parts replaced: the scores S, the weights W, or single numbers by their names.

    What follows from a replaced part follows rightly.
    """

    def answer(q: np.ndarray, k: np.ndarray, g: np.ndarray, scaled: bool) -> dict[str, float]:
        run = Run(q, k, g, scaled)
        for letter in ("S", "W"):
            if letter in parts:
                setattr(run, letter, parts[letter](run))
        return {name: parts[name](run) if name in parts else value for name, value in run.statistics().items()}

    return answer


@dataclass(frozen=True)
class Fault:
    """A wrong answer, the check that it fails first, and what its author reads: made of `faults`, or given whole."""

    name: str
    first_fails: str
    sentence: str
    faults: dict[str, Part] | None = None
    answer: Answer | None = None


def wrong(part: str, first_fails: str) -> Callable[[str, str, Part], Fault]:
    """Makes faults in which one part is wrong."""
    return lambda name, sentence, made: Fault(name, first_fails, sentence, {part: made})


def _in_place(run: Run) -> np.ndarray:
    if run.scaled:
        run.q /= np.sqrt(run.q.shape[-1])
    return run.q @ run.k.T


std = wrong("std", "std_of_the_scores")
one_hot = wrong("one_hot", "share_of_one_hot_rows")
entropy = wrong("entropy", "mean_row_entropy")
saturated_entropy = wrong("entropy", "saturated_rows_have_an_entropy")
gradient = wrong("grad_median", "median_row_gradient")
scores = wrong("S", "std_of_the_scores")
transposed_scores = wrong("S", "share_of_one_hot_rows")
changing_scores = wrong("S", "arguments_stay_as_they_are")
weights = wrong("W", "share_of_one_hot_rows")
large_weights = wrong("W", "scores_of_a_thousand")

FAULTS = [
    std(
        "std_of_the_weights",
        "You took the standard deviation of the weights; it is asked of the scores, before the softmax.",
        lambda run: run.W.std(),
    ),
    scores("never_divides", "You never divide by √d_k, whatever `scaled` says.", lambda run: run.q @ run.k.T),
    scores(
        "always_divides",
        "You divide by √d_k even where `scaled` is False.",
        lambda run: run.q @ run.k.T / np.sqrt(run.q.shape[-1]),
    ),
    scores(
        "divides_the_other_way_round",
        "You divide where `scaled` is False and leave the scores alone where it is True.",
        lambda run: run.q @ run.k.T / (1 if run.scaled else np.sqrt(run.q.shape[-1])),
    ),
    scores(
        "divides_by_the_width",
        "You divide by d_k instead of its root: the scores become too small, and the weights nearly even.",
        lambda run: run.S / run.divisor,
    ),
    scores(
        "divides_by_root_of_length",
        "You divide by √T, the number of tokens; what grows the scores is the width of queries and keys, d_k.",
        lambda run: run.S * run.divisor / (np.sqrt(len(run.q)) if run.scaled else 1),
    ),
    scores(
        "multiplies_by_the_root", "You multiply by √d_k instead of dividing by it.", lambda run: run.S * run.divisor**2
    ),
    std(
        "std_before_the_division",
        "Your `std` is that of q kᵀ before the division; it is asked of the scores that the softmax gets.",
        lambda run: (run.q @ run.k.T).std(),
    ),
    std(
        "variance",
        "You returned the variance of the scores; the standard deviation is its root.",
        lambda run: run.S.var(),
    ),
    std(
        "mean_of_the_rows_stds",
        "You averaged the rows' standard deviations; it is asked of all scores together.",
        lambda run: run.S.std(axis=-1).mean(),
    ),
    scores(
        "normalises_to_unit_length",
        "You made queries and keys unit vectors first: that is cosine similarity, and no longer these scores.",
        lambda run: unit(run.q) @ unit(run.k).T / run.divisor,
    ),
    one_hot(
        "share_of_entries",
        "You counted entries above 0.99; asked is the share of rows that have one, T times as large.",
        lambda run: (run.W > 0.99).mean(),
    ),
    one_hot(
        "counts_rows",
        "You returned how many rows are one-hot; asked is their share, between 0 and 1.",
        lambda run: (run.W.max(axis=-1) > 0.99).sum(),
    ),
    one_hot(
        "percentage",
        "You returned a percentage; asked is a share between 0 and 1.",
        lambda run: 100 * (run.W.max(axis=-1) > 0.99).mean(),
    ),
    one_hot(
        "calls_nine_tenths_one_hot",
        "You count rows whose largest weight is above 0.9; the bound is 0.99.",
        lambda run: (run.W.max(axis=-1) > 0.9).mean(),
    ),
    one_hot(
        "one_hot_columns",
        "You took the largest weight of each column; each row is one query's, so the maximum runs over its keys.",
        lambda run: (run.W.max(axis=0) > 0.99).mean(),
    ),
    weights(
        "softmax_over_queries",
        "Your columns sum to 1 instead of your rows: the softmax runs over the queries.",
        lambda run: softmax(run.S, axis=0),
    ),
    weights(
        "softmax_over_everything",
        "All your weights together sum to 1: the softmax runs over the whole matrix instead of each row.",
        lambda run: softmax(run.S, axis=None),
    ),
    Fault(
        "works_by_columns",
        "share_of_one_hot_rows",
        "You work column by column: each row holds one query's scores, so softmax, entropy and norm run over its keys.",
        answer=lambda q, k, g, scaled: Run(k, q, g.T, scaled).statistics(),
    ),
    transposed_scores(
        "swaps_queries_and_keys",
        "You computed k qᵀ: rows belong to queries, so the scores are q kᵀ.",
        lambda run: run.S.T,
    ),
    entropy(
        "entropy_in_bits",
        "You used the logarithm to base 2; nats take the natural one.",
        lambda run: entropies(run.W).mean() / np.log(2),
    ),
    entropy(
        "forgets_the_sign",
        "Your entropy is negative: the logarithm of a weight is, and the minus sign makes up for that.",
        lambda run: -entropies(run.W).mean(),
    ),
    entropy(
        "entropy_of_columns",
        "You took the entropy of columns; each row is one query's distribution over the keys.",
        lambda run: entropies(run.W / run.W.sum(axis=0), axis=0).mean(),
    ),
    entropy(
        "sums_the_entropies",
        "You added the rows' entropies up; asked is their mean.",
        lambda run: entropies(run.W).sum(),
    ),
    entropy(
        "averages_over_entries",
        "You averaged −w ln w over all entries: sum it over the keys first, and then take the mean over the rows.",
        lambda run: entropies(run.W).mean() / len(run.k),
    ),
    entropy(
        "entropy_as_a_fraction",
        "You divided the entropy by its largest possible value, ln T; asked is the entropy itself.",
        lambda run: entropies(run.W).mean() / np.log(len(run.k)),
    ),
    entropy(
        "entropy_of_the_mean",
        "You averaged the rows first and took the entropy of that: many sharp rows look spread out together.",
        lambda run: entropies(run.W.mean(axis=0)),
    ),
    gradient(
        "diagonal_of_the_jacobian",
        "You took w (1 − w) g, as if a weight depended on its own score only; each score moves all weights of its row.",
        lambda run: np.median(norms(run.W * (1 - run.W) * run.g)),
    ),
    gradient(
        "forgets_the_mean_of_g",
        "You took w · g and left out the −Σ w g of its row: raising all scores of a row changes no weight.",
        lambda run: np.median(norms(run.W * run.g)),
    ),
    gradient(
        "loss_without_g",
        "Your loss is the sum of the weights, which is 1 in each row whatever the scores: its gradient is 0. Use g.",
        lambda run: 0.0,
    ),
    gradient(
        "gradient_into_the_queries",
        "You took the gradient with respect to q; asked is that of the scores, before it is multiplied by k.",
        lambda run: np.median(norms(run.G @ run.k / run.divisor)),
    ),
    gradient(
        "gradient_before_the_division",
        "You took the gradient with respect to q kᵀ; asked is that of the scores after the division, √d_k times that.",
        lambda run: np.median(norms(run.G / run.divisor)),
    ),
    gradient(
        "mean_of_the_rows",
        "You averaged the rows' gradients: a few rows decide that number, and the median is asked for because of them.",
        lambda run: norms(run.G).mean(),
    ),
    gradient(
        "median_of_the_entries",
        "You took the median over single entries; take each row's norm first, and then the median over the rows.",
        lambda run: np.median(np.abs(run.G)),
    ),
    gradient(
        "squares_without_a_root",
        "You summed the squares of a row and took no root: that is the norm squared.",
        lambda run: np.median(norms(run.G) ** 2),
    ),
    gradient(
        "norms_of_columns",
        "You took the norms of columns; a row holds one query's gradient.",
        lambda run: np.median(norms(run.G.T)),
    ),
    saturated_entropy(
        "zero_times_log_of_zero",
        "Your entropy is NaN once a weight underflows: 0 · ln 0 is 0 · −∞. Its share of the entropy is 0.",
        lambda run: -(run.W * np.log(run.W)).sum(axis=-1).mean(),
    ),
    large_weights(
        "exponential_overflows",
        "Your exponentials overflow: exp(710) is infinite. Take each row's maximum off its scores first.",
        lambda run: np.exp(run.S) / np.exp(run.S).sum(axis=-1, keepdims=True),
    ),
    changing_scores(
        "divides_in_place",
        "You divide the queries in place, so the caller's q is changed and the next call gets smaller queries.",
        _in_place,
    ),
]
