"""Attention written by hand: fused self-attention, a causal and a cross-attention form, and both again in PyTorch.

Every hidden input gives each size of its signature another number, so that no axis can stand in for another; the probes
on large scores write their scores exactly, so that float32 work on ±1000 costs nobody a mark.

Source: Vaswani et al. (2017), section 3.2; GPT-2's fused `c_attn`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import nn

from graders.authoring import CheckFailed, Exercise, expect_array, expect_close, expect_unchanged, fields, kind_of
from graders.exercises import _attention_inputs as draw
from graders.exercises import _attention_invariants as invariants
from graders.exercises._attention_ideas import FAMILIES, IDEAS
from graders.student import ModuleState, Observation, Student, Tensor

exercise = Exercise("fused_self_attention", uses=("numpy", "torch"))

Array = np.ndarray


# --- what a right answer is -------------------------------------------------------------------------------------------


@exercise.reference
def fused_self_attention(
    X: Float[np.ndarray, "*batch T d"], W_qkv: Float[np.ndarray, "d 3*d_k"], scale: float
) -> Float[np.ndarray, "*batch T d_k"]:
    """Self-attention whose three projections lie side by side in one matrix.

    `X` holds one sequence, (T, d), or a batch of them, (B, T, d); rows are tokens. `W_qkv` holds W_Q, W_K and W_V in
    that order, each d_k columns wide. Every score is multiplied by `scale`, a positive number that varies between
    calls. There is no mask. The softmax runs over the keys. Returns the output alone.

    `X` and `W_qkv` are float32, float64 or integers and stay as they are. Finite for all scores within ±1000.

    Source: Vaswani et al. (2017), equation 1.
    """
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    scores = Q @ np.swapaxes(K, -1, -2) * scale
    # Shifting a row changes none of its weights, and float64's exp overflows from 710.
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V


@exercise.reference
def causal_attention(
    X: Float[np.ndarray, "T d"],
    W_Q: Float[np.ndarray, "d d_k"],
    W_K: Float[np.ndarray, "d d_k"],
    W_V: Float[np.ndarray, "d d_v"],
    causal: bool = True,
) -> tuple[Float[np.ndarray, "T d_v"], Float[np.ndarray, "T T"]]:
    """One sequence in which a token sees itself and what came before it; returns (output, weights).

    Scores are scaled by 1/√d_k; d_v may differ from d_k. With `causal=False` every token sees every token.

    The arrays are float32, float64 or integers and stay as they are. Finite for all scores within ±1000, also where a
    score that is masked is far above those that are not.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    if causal:
        # Before the softmax: a weight that is taken away afterwards has already taken from the others.
        scores = np.where(np.tri(len(X), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@exercise.reference
def cross_attention(
    X_q: Float[np.ndarray, "B T_q d"],
    X_kv: Float[np.ndarray, "B T_k d"],
    W_Q: Float[np.ndarray, "d d_k"],
    W_K: Float[np.ndarray, "d d_k"],
    W_V: Float[np.ndarray, "d d_v"],
) -> tuple[Float[np.ndarray, "B T_q d_v"], Float[np.ndarray, "B T_q T_k"]]:
    """Queries from one batch of sequences look up keys and values of another; returns (output, weights).

    Scores are scaled by 1/√d_k. There is no mask. d_v may differ from d_k, and T_q from T_k.

    The arrays are float32, float64 or integers and stay as they are. Finite for all scores within ±1000.

    Source: Vaswani et al. (2017), section 3.2.3, "encoder-decoder attention".
    """
    Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@exercise.reference
def causal_attention_torch(
    X: Float[torch.Tensor, "T d"],
    W_Q: Float[torch.Tensor, "d d_k"],
    W_K: Float[torch.Tensor, "d d_k"],
    W_V: Float[torch.Tensor, "d d_v"],
    causal: bool = True,
) -> tuple[Float[torch.Tensor, "T d_v"], Float[torch.Tensor, "T T"]]:
    """`causal_attention` on float32 or float64 tensors; returns (output, weights) as tensors.

    Gradients of the output reach W_Q, W_K and W_V. Scores are scaled by 1/√d_k; d_v may differ from d_k; with
    `causal=False` every token sees every token. Agrees with `F.scaled_dot_product_attention`, and is finite for all
    scores within ±1000.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = Q @ K.T / K.shape[-1] ** 0.5
    if causal:
        future = torch.ones(scores.shape, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ V, weights


@exercise.reference
class SingleHead(nn.Module):
    """One attention head with a fused projection: `SingleHead(d, d_k)`, called on (B, T, d), returns (B, T, d_k).

    `__init__(self, d, d_k)` makes an attribute `qkv`, an `nn.Linear(d, 3 * d_k)`, bias or not; its output holds the
    queries, keys and values in that order. `forward(self, x)` scales the scores by 1/√d_k, masks nothing, and returns
    the output alone, as float32. The grader sets `qkv.weight`, and `qkv.bias` if there is one, and then calls the head;
    gradients reach both. Finite for all scores within ±1000.

    Source: Vaswani et al. (2017), equation 1.
    """

    def __init__(self, d: int, d_k: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)

    def forward(self, x: Float[torch.Tensor, "B T d"]) -> Float[torch.Tensor, "B T d_k"]:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
        return torch.softmax(scores, dim=-1) @ v


@exercise.reference
def to_linear(W_qkv: Float[np.ndarray, "d 3*d_k"]) -> nn.Linear:
    """An `nn.Linear` that projects as `X @ W_qkv` does.

    `W_qkv` is a float32 or float64 NumPy array. The layer's `weight` is the transpose, (3·d_k, d), because PyTorch
    stores a linear layer as (out, in); its `bias` is None or zero.

    Source: the documentation of `torch.nn.Linear`.
    """
    d, width = W_qkv.shape
    layer = nn.Linear(d, width, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(W_qkv.T))
    return layer


# --- how we can tell --------------------------------------------------------------------------------------------------


def _exact(arguments: Sequence[Any]) -> list[Any]:
    """The same numbers in float64, for the reference."""
    return [value.astype(np.float64) if isinstance(value, Array) else value for value in arguments]


def _pair(value: Any, call: str) -> tuple[Any, Any]:
    """(output, weights) of any kind of pair."""
    if isinstance(value, Array):
        found = f"an array of shape {value.shape}"
        raise CheckFailed(f"{call} is one array", expected="a pair (output, weights)", got=found, public=True)
    pair = fields(value, ("output", "weights"), what=call)
    return pair["output"], pair["weights"]


def _observe_pair(student: Student, name: str, *arguments: Any) -> Observation:
    """What a call brought back; the diagnosis compares the two arrays of a pair, whatever container they came in."""
    seen = student.observe(name, *arguments)
    with contextlib.suppress(CheckFailed):
        student.read_as(_pair(seen.value, name))
    return seen


def _ask_pair(student: Student, name: str, *arguments: Any) -> Any:
    return _observe_pair(student, name, *arguments).value


def _expect_output(value: Any, expected: Array, name: str, *, family: str, hint: str = "") -> None:
    """`value` is the output alone, and right; an answer that half precision explains is told so."""
    if isinstance(value, tuple) and len(value) == 2 and _shape(value[0]) != _shape(value[1]):
        raise CheckFailed(f"{name} comes with something else", expected="the output alone", got="2 values", public=True)
    try:
        expect_close(value, expected, name=name, hint=hint)
    except CheckFailed as failure:
        if _is_half_precision(value, expected.shape):
            failure.misconception = f"{family}_works_in_float16"
        raise


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape, or None where rows are of different lengths."""
    try:
        return np.shape(value)
    except ValueError:
        return None


def _is_half_precision(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether every entry is a float16 number: beyond whole numbers, no other answer has 15 of those by chance."""
    try:
        array = expect_array(value, shape=shape, name="the output")
    except CheckFailed:
        return False
    with np.errstate(over="ignore"):
        fits = np.array_equal(array.astype(np.float16).astype(np.float64), array)
    return fits and not np.array_equal(np.round(array), array)


def _expect_pair(value: Any, expected: tuple[Array, Array], call: str, *, family: str, hint: str = "") -> None:
    output, weights = _pair(value, call)
    _expect_output(output, expected[0], f"the output of {call}", family=family, hint=hint)
    expect_close(weights, expected[1], name=f"the weights of {call}", hint=hint)


# --- fused_self_attention ----------------------------------------------------------------------------


@exercise.check(points=2, hint="Which axis holds the keys, and is it the same axis once a batch stands in front?")
def fused_values(student: Student, rng: np.random.Generator) -> None:
    """One sequence, and a batch of sequences, get the output of the formula."""
    (W,), scales = draw.weights(rng, 10, 21), [draw.scale(rng) for _ in range(3)]
    inputs = [
        (draw.sequence(rng, 6, 10), W, scales[0]),
        (draw.sequence(rng, 4, 5, 10), W, scales[1]),
        draw.fused_with_scores(draw.raised_scores(rng, 6, 6), scales[2], d=9, d_k=8, rng=rng),
    ]
    answers = [student.fused_self_attention(*arguments) for arguments in inputs]
    for what, arguments, answer in zip(("one sequence", "a batch", "raised scores"), inputs, answers, strict=True):
        _expect_output(answer, fused_self_attention(*arguments), f"the output for {what}", family="fused")


@exercise.check(points=1, hint="Work through the steps for one (T, d) sequence: project, split, score, softmax, mix.")
def fused_one_sequence(student: Student, rng: np.random.Generator) -> None:
    """One sequence alone, without a batch, gets the output of the formula."""
    X, (W,), scale = draw.sequence(rng, 7, 9), draw.weights(rng, 9, 12), draw.scale(rng)
    answer = student.fused_self_attention(X, W, scale)
    _expect_output(answer, fused_self_attention(X, W, scale), "the output for one sequence", family="fused")


@exercise.check(points=1, hint="Where does your function take the scale from, and does it remember an earlier one?")
def fused_two_scales(student: Student, rng: np.random.Generator) -> None:
    """Two calls in a row with different scales each use their own."""
    X, (W,) = draw.sequence(rng, 2, 6, 8), draw.weights(rng, 8, 15)
    scales = [float(scale) for scale in rng.permutation([rng.uniform(0.05, 0.1), rng.uniform(0.8, 0.95)])]
    answers = [student.fused_self_attention(X, W, scale) for scale in scales]
    for nth, scale, answer in zip(("first", "second"), scales, answers, strict=True):
        _expect_output(answer, fused_self_attention(X, W, scale), f"the output of the {nth} call", family="fused")


@exercise.check(points=1, hint="Does anything that your function keeps outlive a call?")
def fused_fresh_numbers(student: Student, rng: np.random.Generator) -> None:
    """A second input of the same shape gets an answer of its own."""
    (W,), scale = draw.weights(rng, 11, 18), draw.scale(rng)
    inputs = [draw.sequence(rng, 3, 5, 11), draw.sequence(rng, 3, 5, 11)]
    answers = [student.fused_self_attention(X, W, scale) for X in inputs]
    for nth, X, answer in zip(("first", "second"), inputs, answers, strict=True):
        _expect_output(answer, fused_self_attention(X, W, scale), f"the output for the {nth} input", family="fused")


@exercise.check(points=1, hint="X @ W_qkv needs no transpose; nn.Linear stores (out, in), this matrix is (in, out).")
def fused_square_weights(student: Student, rng: np.random.Generator) -> None:
    """A W_qkv that happens to be square is still multiplied from the right, untransposed."""
    X, (W,), scale = draw.sequence(rng, 2, 5, 12), draw.weights(rng, 12, 12), draw.scale(rng)
    answer = student.fused_self_attention(X, W, scale)
    _expect_output(answer, fused_self_attention(X, W, scale), "the output with a square W_qkv", family="fused")


@exercise.check(points=1)
def fused_arguments(student: Student, rng: np.random.Generator) -> None:
    """X and W_qkv are the same after the call as before it."""
    X, (W,), scale = draw.sequence(rng, 2, 6, 7), draw.weights(rng, 7, 12), draw.scale(rng)
    seen = student.observe("fused_self_attention", X, W, scale)
    expect_array(seen.value, shape=(2, 6, 4), name="the output")
    expect_unchanged((X, W), seen.arguments, names=("X", "W_qkv"))


@exercise.check(points=1, hint="Which dtype do your intermediate arrays have when X holds integers?")
def fused_number_types(student: Student, rng: np.random.Generator) -> None:
    """Integers and float32 give the same output as float64."""
    whole, scale = draw.integers(rng, (3, 6, 5), (5, 12)), draw.scale(rng)
    single = [draw.sequence(rng, 7, 8).astype(np.float32), draw.weights(rng, 8, 15)[0].astype(np.float32)]
    answers = student.fused_self_attention(*whole, scale), student.fused_self_attention(*single, scale)
    for what, arguments, answer in zip(("integers", "float32"), (whole, single), answers, strict=True):
        expected = fused_self_attention(*_exact(arguments), scale)
        _expect_output(answer, expected, f"the output for {what}", family="fused")


@exercise.check(points=1, hint="What is exp(1000) in float64, and exp(−1000)? What may be subtracted from each row?")
def fused_large_scores(student: Student, rng: np.random.Generator) -> None:
    """Scores as large as ±1000 still give the output of the formula."""
    arguments = draw.fused_with_scores(draw.steep_scores(rng, 5, 5), 0.25, d=8, d_k=6, rng=rng)
    answer = student.fused_self_attention(*arguments)
    _expect_output(answer, fused_self_attention(*arguments), "the output for large scores", family="fused")


# --- causal_attention -------------------------------------------------------------------------------------------------


@exercise.check(points=1, hint="Which numbers divide the scores, which keys may row i see, and what sums to 1?")
def causal_values(student: Student, rng: np.random.Generator) -> None:
    """Output and weights are those of the formula, with equal widths and with different ones."""
    inputs = [
        draw.causal(rng, 5, 6, 6, 6),
        draw.causal(rng, 7, 11, 4, 5),
        draw.causal_with_scores(draw.raised_scores(rng, 6, 6), rng),
    ]
    # Once by default and twice when asked: who never masks is told apart from who has to be asked.
    flags: list[tuple[bool, ...]] = [(), (True,), (True,)]
    answers = [
        _ask_pair(student, "causal_attention", *arguments, *flag) for arguments, flag in zip(inputs, flags, strict=True)
    ]
    for arguments, answer in zip(inputs, answers, strict=True):
        _expect_pair(answer, causal_attention(*arguments), "causal_attention(X, W_Q, W_K, W_V)", family="causal")


@exercise.check(points=1, hint="The last argument decides whether anything is masked; who reads it?")
def causal_flag(student: Student, rng: np.random.Generator) -> None:
    """With causal=False every token sees every token."""
    arguments = draw.causal(rng, 6, 9, 5, 3)
    answer = _ask_pair(student, "causal_attention", *arguments, False)
    _expect_pair(answer, causal_attention(*arguments, False), "causal_attention(…, False)", family="causal")


@exercise.check(points=1, hint="Change the last token of a small X: which rows of the output may move?")
def causal_future(student: Student, rng: np.random.Generator) -> None:
    """What comes later changes nothing that came before it."""
    arguments, since = draw.causal(rng, 7, 8, 5, 3), 4
    other = arguments[0].copy()
    other[since:] += rng.choice([-3.0, 3.0], size=other[since:].shape)
    answers = [_ask_pair(student, "causal_attention", X, *arguments[1:], True) for X in (arguments[0], other)]
    outputs = []
    for output, weights in (_pair(answer, "causal_attention(…, True)") for answer in answers):
        outputs.append(expect_array(output, shape=(7, 3), name="the output"))
        weights = expect_array(weights, shape=(7, 7), name="the weights")
        expect_close(np.triu(weights, 1), np.zeros((7, 7)), name="the weight on later tokens", tolerance=1e-6)
        expect_close(weights.sum(axis=-1), np.ones(7), name="the sum of each row of weights")
    expect_close(outputs[1][:since], outputs[0][:since], name="the output before the tokens that were changed")
    if np.allclose(outputs[1][since:], outputs[0][since:]):
        raise CheckFailed("the output does not depend on X: later tokens were changed, and it is the same for them too")


@exercise.check(points=1)
def causal_arguments(student: Student, rng: np.random.Generator) -> None:
    """X, W_Q, W_K and W_V are the same after the call as before it."""
    arguments = draw.causal(rng, 6, 8, 3, 5)
    seen = student.observe("causal_attention", *arguments, True)
    expect_array(_pair(seen.value, "causal_attention(…, True)")[0], shape=(6, 5), name="the output")
    expect_unchanged(arguments, seen.arguments, names=("X", "W_Q", "W_K", "W_V"))


@exercise.check(points=1, hint="Which dtype do your intermediate arrays have when the weights hold integers?")
def causal_number_types(student: Student, rng: np.random.Generator) -> None:
    """Integer weights, and float32 throughout, give the same output as float64."""
    # X stays in floats: whoever returns X's own dtype is right wherever that dtype holds fractions.
    whole = [draw.sequence(rng, 6, 7), *draw.integers(rng, (7, 4), (7, 4), (7, 3))]
    single = [value.astype(np.float32) for value in draw.causal(rng, 5, 8, 3, 4)]
    answers = [_ask_pair(student, "causal_attention", *arguments) for arguments in (whole, single)]
    for what, arguments, answer in zip(("integers", "float32"), (whole, single), answers, strict=True):
        _expect_pair(answer, causal_attention(*_exact(arguments)), f"causal_attention on {what}", family="causal")


@exercise.check(
    points=1,
    hint="A masked score far above the others takes all of the softmax; what it leaves behind is 0, and 0/0 is no "
    "weight. Mask before the softmax, and shift each row by the largest score that it may see.",
)
def causal_large_scores(student: Student, rng: np.random.Generator) -> None:
    """A masked score that dwarfs the rest, and scores near 1000, still give the weights of the formula."""
    arguments = draw.causal_with_scores(draw.dwarfed_scores(rng), rng)
    answer = _ask_pair(student, "causal_attention", *arguments, True)
    _expect_pair(answer, causal_attention(*arguments), "causal_attention on large scores", family="causal")


@exercise.check(points=1, hint="Which number did you write where −∞ belongs, and may a real score lie below it?")
def causal_mask_levels(student: Student, rng: np.random.Generator) -> None:
    """The mask holds at every level of the scores, from −1000 to 1000."""
    arguments = draw.causal_with_scores(draw.level_scores(rng, 6), rng)
    answer = _ask_pair(student, "causal_attention", *arguments, True)
    _expect_pair(answer, causal_attention(*arguments), "causal_attention on scores at many levels", family="causal")


# --- cross_attention --------------------------------------------------------------------------------------------------


@exercise.check(points=1, hint="Who asks (X_q) and who is asked (X_kv)? Which axis of the scores holds the keys?")
def cross_values(student: Student, rng: np.random.Generator) -> None:
    """Output and weights are those of the formula, for sequences of equal and of different length."""
    inputs = [
        draw.cross(rng, 3, 5, 5, 6, 6, 6),
        draw.cross(rng, 2, 4, 7, 10, 5, 3),
        draw.cross_with_scores(draw.raised_scores(rng, 4, 6), rng),
    ]
    answers = [_ask_pair(student, "cross_attention", *arguments) for arguments in inputs]
    for arguments, answer in zip(inputs, answers, strict=True):
        _expect_pair(answer, cross_attention(*arguments), "cross_attention(X_q, X_kv, W_Q, W_K, W_V)", family="cross")


@exercise.check(points=1)
def cross_arguments(student: Student, rng: np.random.Generator) -> None:
    """All five arguments are the same after the call as before it."""
    arguments = draw.cross(rng, 2, 4, 6, 7, 3, 5)
    seen = student.observe("cross_attention", *arguments)
    expect_array(_pair(seen.value, "cross_attention(…)")[0], shape=(2, 4, 5), name="the output")
    expect_unchanged(arguments, seen.arguments, names=("X_q", "X_kv", "W_Q", "W_K", "W_V"))


@exercise.check(points=1, hint="What is exp(1000) in float64, and exp(−1000)? What may be subtracted from each row?")
def cross_large_scores(student: Student, rng: np.random.Generator) -> None:
    """Large scores, integers and float32 still give the weights of the formula."""
    steep = draw.cross_with_scores(draw.steep_scores(rng, 5, 6), rng)
    whole = draw.integers(rng, (2, 4, 7), (2, 6, 7), (7, 5), (7, 5), (7, 3))
    single = [value.astype(np.float32) for value in draw.cross(rng, 2, 6, 4, 8, 3, 5)]
    inputs = {"large scores": steep, "integers": whole, "float32": single}
    answers = [_ask_pair(student, "cross_attention", *arguments) for arguments in inputs.values()]
    for (what, arguments), answer in zip(inputs.items(), answers, strict=True):
        _expect_pair(answer, cross_attention(*_exact(arguments)), f"cross_attention on {what}", family="cross")


# --- causal_attention_torch -------------------------------------------------------------------------------------------


def _tensors(arguments: Sequence[Array]) -> list[Tensor]:
    return [Tensor(value) for value in arguments]


def _in_numpy(*results: torch.Tensor) -> tuple[Array, ...]:
    return tuple(result.detach().numpy() for result in results)


def _sdpa(X: Array, W_Q: Array, W_K: Array, W_V: Array, *, causal: bool = False) -> Array:
    """PyTorch's own attention on the same projections, in float64."""
    Q, K, V = (torch.tensor(X @ W) for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=causal)[0].numpy()


@exercise.check(points=1, hint="Compare each line with your causal_attention: what changed its axis, sign or order?")
def torch_values(student: Student, rng: np.random.Generator) -> None:
    """On tensors, output and weights are those of the formula, and the tensors stay as they are."""
    inputs = [
        [value.astype(np.float32) for value in draw.causal(rng, 5, 6, 6, 6)],
        draw.causal(rng, 7, 11, 4, 5),
        draw.causal_with_scores(draw.raised_scores(rng, 6, 6), rng),
    ]
    flags: list[tuple[bool, ...]] = [(), (True,), (True,)]  # as in causal_values
    answers = [
        _observe_pair(student, "causal_attention_torch", *_tensors(arguments), *flag)
        for arguments, flag in zip(inputs, flags, strict=True)
    ]
    for arguments, seen in zip(inputs, answers, strict=True):
        expected = causal_attention(*_exact(arguments))
        _expect_pair(seen.value, expected, "causal_attention_torch(X, W_Q, W_K, W_V)", family="torch")
        expect_unchanged(arguments, seen.arguments, names=("X", "W_Q", "W_K", "W_V"))


@exercise.check(points=1, hint="The last argument decides whether anything is masked; who reads it?")
def torch_flag(student: Student, rng: np.random.Generator) -> None:
    """On tensors too, with causal=False every token sees every token."""
    arguments = draw.causal(rng, 6, 9, 5, 3)
    answer = _ask_pair(student, "causal_attention_torch", *_tensors(arguments), False)
    _expect_pair(answer, causal_attention(*arguments, False), "causal_attention_torch(…, False)", family="torch")


@exercise.check(points=1, hint="Where might a large score overflow, a masked one leak, or a row become 0/0?")
def torch_sdpa(student: Student, rng: np.random.Generator) -> None:
    """Agrees with F.scaled_dot_product_attention, at every level of the scores."""
    inputs = [draw.causal_with_scores(scores, rng) for scores in (draw.dwarfed_scores(rng), draw.level_scores(rng, 6))]
    answers = [_ask_pair(student, "causal_attention_torch", *_tensors(arguments), True) for arguments in inputs]
    for arguments, answer in zip(inputs, answers, strict=True):
        output, _ = _pair(answer, "causal_attention_torch(…, True)")
        expect_close(output, _sdpa(*arguments, causal=True), name="the output beside F.scaled_dot_product_attention")


@exercise.check(
    points=2, hint="Does .detach(), .numpy(), torch.no_grad() or torch.tensor(…) cut W off from the output?"
)
def torch_gradients(student: Student, rng: np.random.Generator) -> None:
    """Gradients of the output reach W_Q, W_K and W_V, and are right."""
    arguments = draw.causal(rng, 6, 8, 5, 3)
    upstream = rng.normal(size=(6, 3))
    seen = student.gradients("causal_attention_torch", *_tensors(arguments), of=(1, 2, 3), upstream=upstream)
    leaves = [torch.tensor(value, requires_grad=True) for value in arguments[1:]]
    output, _ = causal_attention_torch(torch.tensor(arguments[0]), *leaves)
    expected = _slopes(output, upstream, leaves)
    _expect_gradients(seen.gradients, _in_numpy(*expected), names=("W_Q", "W_K", "W_V"), family="torch")


def _slopes(output: torch.Tensor, upstream: Array, leaves: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """d(sum(output * upstream)) by each leaf, as the sandbox takes it of the student's output."""
    return torch.autograd.grad((output * torch.tensor(upstream)).sum(), leaves)


def _expect_gradients(got: Sequence[Any], expected: Sequence[Array], names: Sequence[str], *, family: str) -> None:
    for nth, (name, right) in enumerate(zip(names, expected, strict=False)):
        gradient = got[nth] if nth < len(got) else None
        if gradient is None:
            raise CheckFailed(
                f"no gradient reaches {name}",
                expected=f"an output that autograd can follow back to {name}",
                public=True,
                misconception=f"{family}_cuts_the_graph",
            )
        expect_close(gradient, right, name=f"the gradient of {name}")


# --- SingleHead -------------------------------------------------------------------------------------------------------


def _layer(rng: np.random.Generator, d: int, d_k: int, *, bias: float = 0.0) -> dict[str, Array]:
    """Numbers for `qkv`, with a bias of zero or one that matters."""
    weight = np.concatenate(draw.weights(rng, d, d_k, d_k, d_k), axis=-1).T
    numbers = {"qkv.weight": weight, "qkv.bias": bias * rng.normal(size=3 * d_k)}
    return {name: value.astype(np.float32) for name, value in numbers.items()}


def _head(student: Student, layer: dict[str, Array], X: Array, upstream: Array | None = None) -> Observation:
    """The student's head with `layer` as its `qkv`, called on `X`."""
    width, d = layer["qkv.weight"].shape
    seen = student.module("SingleHead", d, width // 3, weights=layer, inputs=X.astype(np.float32), upstream=upstream)
    found = {name: tuple(shape) for name, shape in (seen.parameters or {}).items()}
    if found.get("qkv.weight") != (width, d):
        raise CheckFailed(
            "SingleHead(d, d_k) has no parameter qkv.weight of shape (3·d_k, d)",
            expected="self.qkv = nn.Linear(d, 3 * d_k)",
            got=", ".join(f"{name} {shape}" for name, shape in list(found.items())[:8]) or "no parameters",
            public=True,
        )
    return seen


def _right_head(layer: dict[str, Array], seen: Observation) -> SingleHead:
    """The reference with the same numbers; its bias is zero where the student's head has none."""
    width, d = layer["qkv.weight"].shape
    head = SingleHead(d, width // 3).double()
    bias = layer["qkv.bias"] if "qkv.bias" in (seen.parameters or {}) else np.zeros(width)
    with torch.no_grad():
        head.qkv.weight.copy_(torch.tensor(layer["qkv.weight"]))
        head.qkv.bias.copy_(torch.tensor(bias))
    return head


def _expect_head(seen: Observation, layer: dict[str, Array], X: Array, name: str) -> None:
    with torch.no_grad():
        expected = _right_head(layer, seen)(torch.tensor(X.astype(np.float32)).double()).numpy()
    _expect_output(seen.value, expected, name, family="head")


@exercise.tries("SingleHead")
def head_on(
    student: Student,
    x: Float[np.ndarray, "B T d"],
    weight: Float[np.ndarray, "3*d_k d"],
    bias: Float[np.ndarray, "3*d_k"],  # noqa: UP037 - an axis, and no expression
) -> tuple[Any, Array]:
    """What the student's head gives on `x` with these numbers in `qkv`, and what a right one gives."""
    layer = {"qkv.weight": weight.astype(np.float32), "qkv.bias": bias.astype(np.float32)}
    seen = _head(student, layer, x)
    with torch.no_grad():
        return seen.value, _right_head(layer, seen)(torch.tensor(x, dtype=torch.float64)).numpy()


@exercise.check(
    points=1, hint="What does self.qkv(x) hold in which columns, and which of its axes are keys afterwards?"
)
def head_values(student: Student, rng: np.random.Generator) -> None:
    """With the weight that it is given, the head computes the formula, also where that weight is square."""
    layers = _layer(rng, 12, 4), _layer(rng, 10, 7)
    inputs = draw.sequence(rng, 3, 5, 12), draw.sequence(rng, 2, 6, 10)
    answers = [_head(student, layer, X) for layer, X in zip(layers, inputs, strict=True)]
    for layer, X, seen in zip(layers, inputs, answers, strict=True):
        _expect_head(seen, layer, X, "the output of SingleHead")


@exercise.check(points=1, hint="Calling self.qkv(x) adds the bias; multiplying by self.qkv.weight alone does not.")
def head_bias(student: Student, rng: np.random.Generator) -> None:
    """If qkv has a bias, the head adds it to queries, keys and values."""
    layer, X = _layer(rng, 8, 5, bias=1.0), draw.sequence(rng, 3, 6, 8)
    _expect_head(_head(student, layer, X), layer, X, "the output of SingleHead with its bias set")


@exercise.check(points=1, hint="Does .detach(), .numpy(), .data or torch.no_grad() stand between qkv and the output?")
def head_gradients(student: Student, rng: np.random.Generator) -> None:
    """Gradients of the output reach the weight of qkv, and its bias if it has one."""
    layer, X, upstream = _layer(rng, 9, 4), draw.sequence(rng, 2, 5, 9), rng.normal(size=(2, 5, 4))
    seen = _head(student, layer, X, upstream)
    head = _right_head(layer, seen)
    output = head(torch.tensor(X.astype(np.float32)).double())
    expected = _slopes(output, upstream, [head.qkv.weight, head.qkv.bias])
    names = [name for name in layer if name in seen.parameters]
    _expect_gradients(seen.gradients, _in_numpy(*expected), names=names, family="head")


@exercise.check(points=1, hint="What is exp(1000) in float32, and exp(−1000)? torch.softmax shifts each row for you.")
def head_sdpa(student: Student, rng: np.random.Generator) -> None:
    """Agrees with F.scaled_dot_product_attention, large scores included."""
    X, _, W_Q, W_K = draw.with_scores(draw.steep_scores(rng, 5, 5), 0.25, d=9, d_k=16, rng=rng)
    W_V = rng.normal(size=W_K.shape)
    weight = np.concatenate([W_Q, W_K, W_V], axis=-1).T.astype(np.float32)
    layer = {"qkv.weight": weight, "qkv.bias": np.zeros(len(weight), dtype=np.float32)}
    seen = _head(student, layer, X[None])
    expect_close(seen.value, _sdpa(X, W_Q, W_K, W_V)[None], name="the output beside F.scaled_dot_product_attention")


# --- to_linear --------------------------------------------------------------------------------------------------------


def _parameters(value: Any) -> dict[str, Array]:
    if not isinstance(value, ModuleState):
        raise CheckFailed("to_linear(W_qkv) is no nn.Linear", expected="an nn.Linear", got=kind_of(value), public=True)
    if "weight" not in value.parameters:
        found = ", ".join(value.parameters) or "no parameters"
        raise CheckFailed("to_linear(W_qkv) has no weight", expected="weight, as nn.Linear has", got=found, public=True)
    return value.parameters


@exercise.check(
    points=1, hint="nn.Linear computes x @ weight.T: which shape must weight have, and which entry goes where?"
)
def linear_weight(student: Student, rng: np.random.Generator) -> None:
    """The layer's weight is the transpose of W_qkv."""
    inputs = [draw.sequence(rng, 12, 12), draw.sequence(rng, 8, 15).astype(np.float32)]
    answers = [student.to_linear(W) for W in inputs]
    for W, answer in zip(inputs, answers, strict=True):
        expect_close(_parameters(answer)["weight"], W.T, name="the weight of to_linear(W_qkv)")


@exercise.check(points=1, hint="A new nn.Linear starts with a random bias unless you say bias=False or set it to zero.")
def linear_bias(student: Student, rng: np.random.Generator) -> None:
    """The layer adds nothing: its bias is None or zero."""
    parameters = _parameters(student.to_linear(draw.sequence(rng, 7, 12)))
    expect_array(parameters["weight"], shape=(12, 7), name="the weight of to_linear(W_qkv)")
    if np.any(parameters.get("bias", 0.0)):
        raise CheckFailed(
            "the bias of to_linear(W_qkv) is not zero",
            expected="None or zeros",
            public=True,
            misconception="linear_keeps_random_bias",
        )


# --- what people write instead ----------------------------------------------------------------------------------------

invariants.register(exercise)

for replaced, make in FAMILIES.values():
    exercise.family(replaces=replaced, make=make)

for idea in IDEAS:
    exercise.add_misconception(**vars(idea))
