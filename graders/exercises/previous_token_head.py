"""A head written by hand that hands each position the token before it: keys read positions, values read tokens.

Infinitely many weights are right, so nothing here looks at their entries: a trial runs the head on a random sequence,
and the checks judge where each position looks and what it is handed. The same behaviour tells the wrong heads apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from graders.authoring import CheckFailed, Exercise, expect_array, fields
from graders.exercises._head_trial import (
    Trial,
    attend,
    mended,
    named_by_gaze,
    named_by_leads,
    named_by_shapes,
    named_by_values,
)
from graders.student import Student

exercise = Exercise("previous_token_head")

NAMES = ("W_Q", "W_K", "W_V")
WEIGHT, NEAR = 0.99, 0.01
# Weights of exactly 0.99 are right, and float32 entries move them by a few 1e-8.
SLACK = 1e-6


@exercise.reference
def previous_token_head(
    n_vocab: int, T: int
) -> tuple[Float[np.ndarray, "d d_k"], Float[np.ndarray, "d d_k"], Float[np.ndarray, "d n_vocab"]]:
    """The weights W_Q, W_K, W_V of a head that looks one position back and hands over the token it finds there.

    It serves sequences of exactly T tokens. Row j of its input X is [one-hot of token j | one-hot of position j],
    the first part n_vocab wide and the second T wide, so d = n_vocab + T. The head computes
    softmax((X W_Q)(X W_K)ᵀ) (X W_V); the scores are not divided by anything.

    For every row i ≥ 1 the weight on position i − 1 is at least 0.99, and the output is the one-hot of token i − 1
    within 0.01. Row 0 has no position before it and is free, and so is d_k. 2 ≤ n_vocab ≤ 64 and 2 ≤ T ≤ 64.

    Source: Elhage et al. (2021), previous-token heads.
    """
    # A lead of c over T − 1 scores of 0 leaves e^c / (e^c + T − 1), which is 0.99 at ln(99 (T − 1)); one more is safe.
    sharpness = np.log(99 * (T - 1)) + 1
    position = slice(n_vocab, n_vocab + T)
    W_Q, W_K, W_V = np.zeros((n_vocab + T, T)), np.zeros((n_vocab + T, T)), np.zeros((n_vocab + T, n_vocab))
    W_Q[position] = sharpness * np.eye(T, k=-1)
    W_K[position] = np.eye(T)
    W_V[:n_vocab] = np.eye(n_vocab)
    return W_Q, W_K, W_V


# --- how we can tell --------------------------------------------------------------------------------------------------


def matrices(student: Student, n_vocab: int, T: int) -> list[np.ndarray]:
    """The student's three matrices for these sizes, as arrays of whatever shape."""
    parts = fields(student.previous_token_head(n_vocab, T), NAMES, what=f"previous_token_head({n_vocab}, {T})")
    return [expect_array(parts[name], name=name) for name in NAMES]


def trials(
    student: Student,
    rng: np.random.Generator,
    asked: Sequence[tuple[int, int]],
    named_by: Callable[[Sequence[Trial]], str] = lambda _: "",
) -> list[Trial]:
    """Run the student's heads, whose shapes must be right, each on one random sequence.

    `named_by` finds what is wrong with heads beside their shapes.
    """
    heads = [matrices(student, n_vocab, T) for n_vocab, T in asked]
    sequences = [rng.integers(n_vocab, size=T) for n_vocab, T in asked]
    try:
        for (n_vocab, T), head in zip(asked, heads, strict=True):
            expect_shapes(n_vocab, T, head)
    except CheckFailed as failure:
        meant = [mended(*sizes, *run) for sizes, *run in zip(asked, sequences, heads, strict=True)]
        failure.misconception = named_by([done for done in meant if done]) if all(meant) else ""
        raise
    return [attend(tokens, n_vocab, head) for (n_vocab, _), tokens, head in zip(asked, sequences, heads, strict=True)]


def expect_shapes(n_vocab: int, T: int, head: Sequence[np.ndarray], misconception: str = "") -> None:
    """All three have n_vocab + T rows; W_Q and W_K share any width, W_V has n_vocab columns."""
    d, width = n_vocab + T, head[0].shape[1] if head[0].ndim == 2 else "d_k"
    for name, W, shape in zip(NAMES, head, [(d, width), (d, width), (d, n_vocab)], strict=True):
        if W.shape != shape:
            raise CheckFailed(
                f"{name} has the wrong shape for n_vocab = {n_vocab}, T = {T}",
                expected=shape,
                got=W.shape,
                public=True,
                expected_shape=shape if "d_k" not in shape else None,
                got_shape=W.shape,
                hint="One row for each entry of a row of X: n_vocab for the token, then T for the position.",
                misconception=misconception,
            )


def sizes(rng: np.random.Generator) -> list[tuple[int, int]]:
    """Two (n_vocab, T) of four distinct numbers: first more tokens than positions, then the other way round."""
    small, large = rng.permutation(np.arange(5, 9)), rng.permutation(np.arange(10, 14))
    return [(int(large[0]), int(small[0])), (int(small[1]), int(large[1]))]


@exercise.check(points=2)
def three_matrices(student: Student, rng: np.random.Generator) -> None:
    """W_Q, W_K and W_V have a row for each entry of a row of X, and W_V has a column for each token."""
    asked = sizes(rng)
    given = [matrices(student, n_vocab, T) for n_vocab, T in asked]
    for (n_vocab, T), head in zip(asked, given, strict=True):
        expect_shapes(n_vocab, T, head, named_by_shapes(asked, given))


@exercise.check(points=6)
def looks_one_back(student: Student, rng: np.random.Generator) -> None:
    """From row 1 on, each position gives its largest weight to the position before it."""
    for done in trials(student, rng, sizes(rng), lambda meant: named_by_gaze(meant[0])):
        T = done.length
        wrong = np.flatnonzero(done.looks[1:] != np.arange(T - 1)) + 1
        if wrong.size:
            row = int(wrong[0])
            raise CheckFailed(
                f"with T = {T}, {wrong.size} of {T - 1} rows do not look one back, first row {row}",
                expected=f"most weight on position {row - 1}",
                got=done.gaze(row),
                public=True,
                hint="Which query has to meet which key? Row i of Q and row i − 1 of K.",
                misconception=named_by_gaze(done),
            )


@exercise.check(points=5)
def sharp_at_every_length(student: Student, rng: np.random.Generator) -> None:
    """The weight on the position before is at least 0.99, in short and in long sequences."""
    run = trials(student, rng, [(6, 5), (11, 16), (9, 64)], named_by_leads)
    for done in run:
        expect_sharp(done, named_by_leads(run))


def expect_sharp(done: Trial, misconception: str = "") -> None:
    """Each row but the first has a weight of at least 0.99 on the position before it."""
    row, others, weight = done.softest, done.length - 1, float(done.on_previous.min())
    if weight < WEIGHT - SLACK:
        raise CheckFailed(
            f"with T = {done.length}, row {row} puts only {weight:.3f} of its weight on position {row - 1}",
            expected=f"at least 0.99: a lead of ln(99 · {others}) = {np.log(99 * others):.2f} over the other scores",
            got=f"a lead of {done.lead:.2f}" if done.lead > 0 else done.gaze(row),
            public=True,
            hint="The more keys share the rest, the further ahead the right score must be.",
            misconception=misconception,
        )


@exercise.check(points=5)
def hands_over_the_token(student: Student, rng: np.random.Generator) -> None:
    """What a position is handed by the one before it is the one-hot of the token there."""
    for done in trials(student, rng, sizes(rng), lambda meant: named_by_values(meant[0])):
        expect_handed(done)


def expect_handed(done: Trial) -> None:
    """Each output but the first is the one-hot of the token before, within 0.01."""
    # Looking elsewhere costs marks once: the values of such a head are judged as if it looked one back.
    sharp = done.on_previous.min() >= WEIGHT - SLACK
    handed = (done.weights @ done.values)[1:] if sharp else done.values[:-1]
    off = np.abs(handed - done.own[:-1])
    if off.max() > NEAR + SLACK:
        row, column = (int(index) for index in np.unravel_index(off.argmax(), off.shape))
        raise CheckFailed(
            f"with T = {done.length}, row {row + 1} is not handed the one-hot of token {row}",
            expected=f"{done.own[row, column]:.0f} in column {column}, within 0.01",
            got=f"{handed[row, column]:.3f}",
            public=True,
            hint="Which part of a row of X names the token, and what must W_V do with the other part?",
            misconception=named_by_values(done),
        )


@exercise.check(points=2)
def every_size(student: Student, rng: np.random.Generator) -> None:
    """The same function serves the smallest and the largest vocabulary and length, 2 and 64."""
    for done in trials(student, rng, [(2, 2), (64, 2), (2, 64), (64, 64)]):
        expect_sharp(done)
        expect_handed(done)


@exercise.accepts("previous_token_head")
def behaves(value: Any, n_vocab: int, T: int) -> bool:
    """Whether these matrices make a previous-token head, on a sequence of which each token is another if it can be."""
    head = [expect_array(part, name=name) for name, part in fields(value, NAMES, what="it").items()]
    expect_shapes(n_vocab, T, head)
    done = attend(np.arange(T) % n_vocab, n_vocab, head)
    expect_sharp(done)
    expect_handed(done)
    return True


# --- what people write instead ----------------------------------------------------------------------------------------


# A wrong head is the right one but for some of its parts, each a function of n_vocab and T.

Part = Callable[[int, int], Any]


def places(n_vocab: int, T: int) -> np.ndarray:
    """A column for each position (n_vocab + T, T), which reads it."""
    return np.eye(n_vocab + T, T, k=-n_vocab)


def tokens(n_vocab: int, T: int) -> np.ndarray:
    """A column for each token (n_vocab + T, n_vocab), which reads it."""
    return np.eye(n_vocab + T, n_vocab)


def asking(queries: Callable[[int], np.ndarray]) -> Part:
    """The W_Q whose positions ask as the rows of `queries` (T, T) say."""
    return lambda n_vocab, T: places(n_vocab, T) @ queries(T)


def back(T: int) -> np.ndarray:
    """Queries (T, T) that ask for the position before."""
    return np.eye(T, k=-1)


ask_back = asking(back)


def head(
    *,
    ask: Part = ask_back,
    keys: Part = places,
    factor: Part = lambda n_vocab, T: 20.0,
    values: Part = tokens,
    layout: Callable[..., Any] = lambda n_vocab, T, *head: head,
    length: int = 0,
) -> Callable[[int, int], Any]:
    """`previous_token_head` with these parts, for T positions, or for `length` of them whatever T is."""

    def answer(n_vocab: int, T: int) -> Any:
        T = length or T
        made = factor(n_vocab, T) * ask(n_vocab, T), keys(n_vocab, T), values(n_vocab, T)
        return layout(n_vocab, T, *made)

    return answer


exercise.family(replaces="previous_token_head", make=head)


def idea(first_fails: Callable[..., Any], name: str, sentence: str, **faults: Any) -> None:
    """Catalogue a wrong head."""
    exercise.add_misconception(
        name,
        replaces="previous_token_head",
        first_fails=first_fails.__name__,
        sentence=sentence,
        faults=faults,
    )


idea(
    three_matrices,
    "turns_the_matrices",
    "Your matrices are transposed: here X is multiplied from the right, so rows belong to the entries of X's rows.",
    layout=lambda n_vocab, T, *head: [W.T for W in head],
)
idea(
    three_matrices,
    "hands_over_the_position",
    "Your values are position codes, T wide, as your keys are: what is handed over must be the token, n_vocab wide.",
    values=places,
)
idea(
    three_matrices,
    "hands_over_the_whole_row",
    "Your values copy whole rows of X; W_V must keep the token part and drop the position part.",
    values=lambda n_vocab, T: np.eye(n_vocab + T),
)
idea(
    three_matrices,
    "leaves_out_the_token_rows",
    "Your matrices have rows for the positions only; the n_vocab token entries of X come first and need rows too.",
    layout=lambda n_vocab, T, W_Q, W_K, W_V: (W_Q[n_vocab:], W_K[n_vocab:], W_V),
)
idea(
    three_matrices,
    "writes_one_length",
    "You wrote one length down instead of using T, so your matrices fit sequences of that length only.",
    length=3,
)
idea(
    looks_one_back,
    "leaves_zeros",
    "Your head treats all positions alike: a query that matches nothing, or everything, spreads its weight evenly.",
    ask=lambda n_vocab, T: 0 * places(n_vocab, T),
    keys=lambda n_vocab, T: 0 * places(n_vocab, T),
    values=lambda n_vocab, T: 0 * tokens(n_vocab, T),
)
idea(
    looks_one_back,
    "puts_positions_first",
    "You read rows of X as [position | token]; here the token part comes first, and positions start at row n_vocab.",
    layout=lambda n_vocab, T, *head: [np.roll(W, T, axis=0) for W in head],
)
idea(
    looks_one_back,
    "looks_at_itself",
    "You find each position itself: query and key of a position are the same code, and nothing shifts one of them.",
    ask=places,
)
idea(
    looks_one_back,
    "looks_at_the_next",
    "You look one position ahead: the shift points the other way, or queries and keys have changed places.",
    ask=asking(lambda T: np.eye(T, k=1)),
)
idea(
    looks_one_back,
    "looks_two_back",
    "You look two positions back: the shift is one too long, or both queries and keys are shifted.",
    ask=asking(lambda T: np.eye(T, k=-2)),
)
idea(
    looks_one_back,
    "looks_at_one_place",
    "All your positions look at the same place: each position needs a query of its own.",
    ask=asking(lambda T: np.eye(T)[np.zeros(T, dtype=int)]),
)
idea(
    looks_one_back,
    "matches_tokens",
    "Your keys read the token, so a word is found wherever it stands; to find a place, keys must read positions.",
    ask=tokens,
    keys=tokens,
)
idea(
    looks_one_back,
    "asks_by_token",
    "Your queries read the token entries: W_Q[i, i − 1] is a token's row, and position i has row n_vocab + i.",
    ask=lambda n_vocab, T: np.roll(ask_back(n_vocab, T), -n_vocab, axis=0),
)
idea(
    looks_one_back,
    "stops_one_row_early",
    "Your last position asks for nothing: a loop over range(1, T − 1) leaves out row T − 1.",
    ask=asking(lambda T: back(T) * (np.arange(T) < T - 1)[:, None]),
)
idea(
    looks_one_back,
    "starts_one_row_late",
    "Position 1 asks for nothing: only row 0 is free, and a loop over range(2, T) leaves out row 1.",
    ask=asking(lambda T: back(T) * (np.arange(T) > 1)[:, None]),
)
idea(
    sharp_at_every_length,
    "uses_no_factor",
    "Your scores are 1 where they match: e against T − 1 ones is nearly an even spread, so multiply the queries.",
    factor=lambda n_vocab, T: 1.0,
)
idea(
    sharp_at_every_length,
    "copies_the_three",
    'You took the factor 3 of "the cat sat": 0.909 among three tokens, and far less among more.',
    factor=lambda n_vocab, T: 3.0,
)
idea(
    sharp_at_every_length,
    "solves_for_nine_tenths",
    "Your factor ln(9(T − 1)) makes the weight 0.9; 0.99 leaves a tenth of that to the others: ln(99(T − 1)).",
    factor=lambda n_vocab, T: np.log(9.0 * (T - 1)),
)
idea(
    sharp_at_every_length,
    "sets_one_factor_for_every_length",
    "Your factor is enough for short sequences only: the lead that is needed grows with T, as ln(99(T − 1)).",
    factor=lambda n_vocab, T: 6.0,
)
idea(
    hands_over_the_token,
    "sharpens_the_values",
    "You scaled the values too: the factor belongs to the scores, and values of 1 are handed over as 1.",
    values=lambda n_vocab, T: 20 * tokens(n_vocab, T),
)
idea(
    hands_over_the_token,
    "hands_over_a_place",
    "Your values read the position, so the same token is handed over differently at two places.",
    values=lambda n_vocab, T: np.roll(tokens(n_vocab, T), n_vocab, axis=0),
)
