"""attention_shapes: every shape in one head, whatever the lengths (curriculum A23-A28, C8, C12, C13, M5, M7).

Hidden sizes are distinct primes, so that a number in the wrong place can be called by its symbol.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from graders.authoring import CheckFailed, Exercise, fields, kind_of
from graders.student import Structure, Student
from graders.symbols import difference, in_symbols, naming, written

exercise = Exercise("attention_shapes", uses=("numpy",))


# --- what a right answer is -------------------------------------------------------------------------------------------


@exercise.reference
def attention_shapes(B: int, T_q: int, T_k: int, d: int, d_k: int, d_v: int) -> dict[str, tuple[int, ...]]:
    """Every shape in one attention head, as a dict from name to tuple.

    A batch holds B pairs of sequences: X_q, T_q tokens long, makes the queries; X_kv, T_k tokens long, makes the keys
    and the values. Tokens have width d, queries and keys width d_k, values width d_v. The eleven names are

        X_q  X_kv  W_Q  W_K  W_V  Q  K  V  scores  weights  output

    Rows are tokens, so Q is X_q @ W_Q. The head ends where the values are mixed: no output projection follows.
    Any size may be any positive integer, and T_q may equal T_k.
    """
    return {
        "X_q": (B, T_q, d),
        "X_kv": (B, T_k, d),
        # No batch and no length in here: the same parameters serve every sequence.
        "W_Q": (d, d_k),
        "W_K": (d, d_k),
        "W_V": (d, d_v),
        "Q": (B, T_q, d_k),
        "K": (B, T_k, d_k),
        "V": (B, T_k, d_v),
        "scores": (B, T_q, T_k),
        "weights": (B, T_q, T_k),
        # T_k is summed over.
        "output": (B, T_q, d_v),
    }


# --- how we can tell --------------------------------------------------------------------------------------------------

SYMBOLS = ("B", "T_q", "T_k", "d", "d_k", "d_v")
LENGTHS = ("T_q", "T_k")
TABLE: dict[str, Any] = attention_shapes(*SYMBOLS)  # type: ignore[arg-type]
"""The right answer in symbols."""

# Small, because a student may build the arrays to look at their shapes; from 5, so that multiples have their own names.
PRIMES = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37)


@exercise.check(points=4, hint="A parameter is learned once. Can it know how long the next sentence will be?")
def parameters_serve_every_length(student, rng):
    """W_Q, W_K and W_V have the right shapes, the same for every B, T_q and T_k."""
    first = sizes(rng)
    unused = [prime for prime in PRIMES if prime not in first.values()]
    other_lengths = first | dict(zip(("B", "T_q", "T_k"), unused, strict=False))

    for given in (first, other_lengths):
        expect_shapes(student, given, ("W_Q", "W_K", "W_V"))


@exercise.check(points=4, hint="In (B, T, d) @ (d, width) one axis is summed over. Which axes are left?")
def projections_keep_the_tokens(student, rng):
    """In self-attention (T_q = T_k = T), X_q, X_kv, Q, K and V have the right shapes."""
    expect_shapes(student, own_sequence(rng), ("X_q", "X_kv", "Q", "K", "V"))


@exercise.check(points=4, hint="A score is one number for a pair of a query and a key. How are the pairs laid out?")
def scores_and_weights_are_pairs(student, rng):
    """In self-attention, scores and weights have the right shapes."""
    expect_shapes(student, own_sequence(rng), ("scores", "weights"))


@exercise.check(points=4, hint="The output is weights @ V. What is averaged, and how wide is one of them?")
def output_is_as_wide_as_a_value(student, rng):
    """In self-attention, the output has the right shape."""
    expect_shapes(student, own_sequence(rng), ("output",))


@exercise.check(points=4, hint="One sequence asks and the other answers. Whose tokens are the rows here?")
def cross_attention_keeps_both_lengths(student, rng):
    """In cross-attention (T_q ≠ T_k), each length stands where it belongs, whichever is the longer."""
    given = sizes(rng)

    for case in (given, given | {"T_q": given["T_k"], "T_k": given["T_q"]}):
        expect_lengths(student, case)


def sizes(rng: np.random.Generator) -> dict[str, int]:
    """A prime for each symbol, all distinct."""
    return dict(zip(SYMBOLS, (int(prime) for prime in rng.permutation(PRIMES)), strict=False))


def own_sequence(rng: np.random.Generator) -> dict[str, int]:
    """Distinct sizes, but for one sequence that attends to itself."""
    given = sizes(rng)
    return given | {"T_k": given["T_q"]}


def expect_shapes(student: Student, given: Mapping[str, int], names: Iterable[str]) -> None:
    """The entries `names` of the table that the student gives for these sizes are right."""
    found = entries(student, given, tuple(names))
    student.read_as(tuple(found.values()))
    wrong = [name for name in found if found[name] != right_shape(name, given)]
    if wrong:
        raise misplaced(wrong, found, given)


def expect_lengths(student: Student, given: Mapping[str, int]) -> None:
    """T_q and T_k stand where they belong; the widths beside them are judged by the other checks."""
    axes = {name: [i for i, symbol in enumerate(row) if symbol in LENGTHS] for name, row in TABLE.items()}
    found = entries(student, given, tuple(name for name in axes if axes[name]))
    flat = [name for name in found if len(found[name]) != len(TABLE[name])]
    if flat:
        raise misplaced(flat, found, given)
    student.read_as(tuple(tuple(found[name][i] for i in axes[name]) for name in found))
    wrong = [name for name in found if any(found[name][i] != given[TABLE[name][i]] for i in axes[name])]
    if wrong:
        raise misplaced(wrong, found, given)


def entries(student: Student, given: Mapping[str, int], names: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The entries `names` of the student's table, as tuples of plain integers; others may be missing from a dict."""
    table = student.attention_shapes(*(given[symbol] for symbol in SYMBOLS))
    named = isinstance(table, Mapping) or (isinstance(table, Structure) and table.items is None)
    found = fields(table, names if named else tuple(TABLE), what="the table that attention_shapes returns")
    return {name: as_shape(name, found[name]) for name in names}


def as_shape(name: str, entry: Any) -> tuple[int, ...]:
    """`entry` as plain integers: any sequence of them will do."""
    if isinstance(entry, Structure) and entry.items is not None:
        entry = entry.items
    try:
        return tuple(operator.index(size) for size in entry)
    except TypeError:
        got = entry if isinstance(entry, (int, float, str, list, tuple)) else kind_of(entry)
        raise CheckFailed(
            f"{name} is no tuple of integers", expected=written(TABLE[name]), got=got, public=True
        ) from None


def right_shape(name: str, given: Mapping[str, int]) -> tuple[int, ...]:
    """The entry `name` for these sizes."""
    return tuple(given[symbol] for symbol in TABLE[name])


def misplaced(wrong: list[str], found: Mapping[str, tuple[int, ...]], given: Mapping[str, int]) -> CheckFailed:
    """The first wrong entry in symbols, and the names of the others."""
    name = wrong[0]
    names = naming(given)
    if given["T_q"] == given["T_k"]:
        names = naming({symbol: size for symbol, size in given.items() if symbol not in LENGTHS} | {"T": given["T_q"]})
    right, got = in_symbols(right_shape(name, given), names), in_symbols(found[name], names)
    others = f"; not right either: {', '.join(wrong[1:])}" if wrong[1:] else ""
    return CheckFailed(
        f"{name} {difference(right, got)}{others}",
        expected=f"{name} {written(right)}",
        got=f"{name} {written(got)}",
        public=True,
        expected_shape=right_shape(name, given),
        got_shape=found[name],
    )


# --- what people write instead ----------------------------------------------------------------------------------------

# From the last check to the first: where two ideas look the same, the narrower one, which fails later, is named first.

Table = Callable[..., dict[str, Any]]


def patched(**entries: Table) -> Table:
    """The right table but for `entries`, each taken from a wrong table."""
    return lambda *sizes: attention_shapes(*sizes) | {name: wrong(*sizes)[name] for name, wrong in entries.items()}


def wrong_entries(wrong: Table) -> dict[str, Table]:
    """The entries in which a wrong table is wrong, so that two ideas about different entries can be combined."""
    table, right = wrong(*PRIMES[: len(SYMBOLS)]), attention_shapes(*PRIMES[: len(SYMBOLS)])
    return {name: wrong for name in right if table[name] != right[name]}


exercise.family(replaces="attention_shapes", make=patched, split=wrong_entries)


@exercise.misconception(replaces="attention_shapes", first_fails=cross_attention_keeps_both_lengths)
def thinks_of_self_attention_only(B, T_q, T_k, d, d_k, d_v):
    """You used T_q for both sequences; in cross-attention keys and values come from another one, T_k tokens long."""
    return attention_shapes(B, T_q, T_q, d, d_k, d_v)


@exercise.misconception(replaces="attention_shapes", first_fails=cross_attention_keeps_both_lengths)
def exchanges_the_sequences(B, T_q, T_k, d, d_k, d_v):
    """You exchanged the two sequences: X_q asks, so Q has T_q rows; X_kv answers, so K and V have T_k."""
    return attention_shapes(B, T_k, T_q, d, d_k, d_v)


@exercise.misconception(replaces="attention_shapes", first_fails=cross_attention_keeps_both_lengths)
def transposes_the_scores(B, T_q, T_k, d, d_k, d_v):
    """You laid the scores out with a row per key; a row belongs to a query, because it is the row that sums to 1."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"scores": (B, T_k, T_q), "weights": (B, T_k, T_q)}


@exercise.misconception(replaces="attention_shapes", first_fails=cross_attention_keeps_both_lengths)
def projects_only_the_asking_sequence(B, T_q, T_k, d, d_k, d_v):
    """You made K and V from X_q; the keys and the values are projections of X_kv."""
    own = attention_shapes(B, T_q, T_q, d, d_k, d_v)
    return own | {"X_kv": (B, T_k, d)}


@exercise.misconception(replaces="attention_shapes", first_fails=cross_attention_keeps_both_lengths)
def makes_values_from_the_asking_sequence(B, T_q, T_k, d, d_k, d_v):
    """You made V from X_q; a value is what a found token hands over, so it comes from X_kv like its key."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"V": (B, T_q, d_v)}


@exercise.misconception(replaces="attention_shapes", first_fails=cross_attention_keeps_both_lengths)
def keeps_a_row_per_key(B, T_q, T_k, d, d_k, d_v):
    """You gave the output a row per key; the weights sum over the keys, so T_k is gone and a row per query is left."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"output": (B, T_k, d_v)}


@exercise.misconception(replaces="attention_shapes", first_fails=output_is_as_wide_as_a_value)
def gives_the_output_the_key_width(B, T_q, T_k, d, d_k, d_v):
    """You gave the output the width d_k; it is an average of values, and an average is as wide as what it averages."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"output": (B, T_q, d_k)}


@exercise.misconception(replaces="attention_shapes", first_fails=output_is_as_wide_as_a_value)
def projects_the_output_back(B, T_q, T_k, d, d_k, d_v):
    """You gave the output the model width d; that takes an output projection W_O, which this table leaves out."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"output": (B, T_q, d)}


@exercise.misconception(replaces="attention_shapes", first_fails=output_is_as_wide_as_a_value)
def returns_weights_as_output(B, T_q, T_k, d, d_k, d_v):
    """You gave the output the shape of the weights; the weights still have to meet the values."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"output": (B, T_q, T_k)}


@exercise.misconception(replaces="attention_shapes", first_fails=output_is_as_wide_as_a_value)
def sums_over_the_queries(B, T_q, T_k, d, d_k, d_v):
    """You left one output per sequence; every query gets an output of its own."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"output": (B, d_v)}


@exercise.misconception(replaces="attention_shapes", first_fails=scores_and_weights_are_pairs)
def leaves_one_weight_per_query(B, T_q, T_k, d, d_k, d_v):
    """You let the softmax remove an axis; it turns each row of scores into a row of weights of the same length."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"weights": (B, T_q)}


@exercise.misconception(replaces="attention_shapes", first_fails=scores_and_weights_are_pairs)
def keeps_the_width_in_the_scores(B, T_q, T_k, d, d_k, d_v):
    """You kept d_k in the scores; a dot product sums over it and leaves one number per query and key."""
    kept = (B, T_q, d_k)
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"scores": kept, "weights": kept}


@exercise.misconception(replaces="attention_shapes", first_fails=scores_and_weights_are_pairs)
def shares_scores_across_the_batch(B, T_q, T_k, d, d_k, d_v):
    """You left the batch out of scores and weights; every sequence has its own square of pairs."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"scores": (T_q, T_k), "weights": (T_q, T_k)}


@exercise.misconception(replaces="attention_shapes", first_fails=projections_keep_the_tokens)
def forgets_the_batch(B, T_q, T_k, d, d_k, d_v):
    """You described one sequence; in a batch of B, all but the parameters have a leading axis B."""
    right = attention_shapes(B, T_q, T_k, d, d_k, d_v)
    return {name: shape[1:] if shape[0] == B and len(shape) == 3 else shape for name, shape in right.items()}


@exercise.misconception(replaces="attention_shapes", first_fails=projections_keep_the_tokens)
def puts_the_batch_second(B, T_q, T_k, d, d_k, d_v):
    """You put the length first and the batch second, as recurrent layers of PyTorch do; here the batch comes first."""
    right = attention_shapes(B, T_q, T_k, d, d_k, d_v)
    return right | {name: (shape[1], B, shape[2]) for name, shape in right.items() if len(shape) == 3}


@exercise.misconception(replaces="attention_shapes", first_fails=projections_keep_the_tokens)
def writes_tokens_as_columns(B, T_q, T_k, d, d_k, d_v):
    """You wrote tokens as columns; in this course a row is a token, so the length stands before the width."""
    right = attention_shapes(B, T_q, T_k, d, d_k, d_v)
    columns = {name: (B, shape[2], shape[1]) for name, shape in right.items() if len(shape) == 3}
    return right | columns | {"scores": (B, T_q, T_k), "weights": (B, T_q, T_k)}


@exercise.misconception(replaces="attention_shapes", first_fails=projections_keep_the_tokens)
def stores_keys_transposed(B, T_q, T_k, d, d_k, d_v):
    """You gave the shape of Kᵀ for K; the transpose happens inside the product Q @ Kᵀ, K itself has a row per token."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"K": (B, d_k, T_k)}


@exercise.misconception(replaces="attention_shapes", first_fails=projections_keep_the_tokens)
def takes_inputs_for_projected(B, T_q, T_k, d, d_k, d_v):
    """You took Q, K and V for three inputs of width d; each is X times its own matrix and has that matrix's width."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"Q": (B, T_q, d), "K": (B, T_k, d), "V": (B, T_k, d)}


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def stores_weights_as_linear_does(B, T_q, T_k, d, d_k, d_v):
    """You gave the weights as (out, in), as nn.Linear stores them; in X @ W_Q the input width d comes first."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"W_Q": (d_k, d), "W_K": (d_k, d), "W_V": (d_v, d)}


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def ties_weights_to_the_length(B, T_q, T_k, d, d_k, d_v):
    """You gave the parameters a row per token; they have a row per feature of a token, whatever the length."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"W_Q": (T_q, d_k), "W_K": (T_k, d_k), "W_V": (T_k, d_v)}


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def gives_each_sequence_its_weights(B, T_q, T_k, d, d_k, d_v):
    """You gave the parameters a batch axis; all sequences of a batch share one W_Q, one W_K and one W_V."""
    right = attention_shapes(B, T_q, T_k, d, d_k, d_v)
    return right | {name: (B, *right[name]) for name in ("W_Q", "W_K", "W_V")}


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def makes_square_projections(B, T_q, T_k, d, d_k, d_v):
    """You gave every projection the width d of its input, as if Q, K and V were copies of X; d_k and d_v are free."""
    return attention_shapes(B, T_q, T_k, d, d, d)


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def gives_values_the_key_width(B, T_q, T_k, d, d_k, d_v):
    """You gave W_V the width d_k; only queries and keys must agree, and values, which are averaged, may differ."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_k)


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def exchanges_the_widths(B, T_q, T_k, d, d_k, d_v):
    """You exchanged d_k and d_v: queries and keys have width d_k, values have width d_v."""
    return attention_shapes(B, T_q, T_k, d, d_v, d_k)


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def gives_keys_the_value_width(B, T_q, T_k, d, d_k, d_v):
    """You paired keys with values and gave K the width d_v; a key meets a query in a dot product, so both have d_k."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"W_K": (d, d_v), "K": (B, T_k, d_v)}


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def makes_values_from_keys(B, T_q, T_k, d, d_k, d_v):
    """You let W_V read the keys, (d_k, d_v); keys and values are two projections of the same X_kv, of width d."""
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"W_V": (d_k, d_v)}


@exercise.misconception(replaces="attention_shapes", first_fails=parameters_serve_every_length)
def fuses_the_projections(B, T_q, T_k, d, d_k, d_v):
    """You gave each parameter the width of all three side by side; the table lists W_Q, W_K and W_V one by one."""
    fused = (d, 2 * d_k + d_v)
    return attention_shapes(B, T_q, T_k, d, d_k, d_v) | {"W_Q": fused, "W_K": fused, "W_V": fused}
