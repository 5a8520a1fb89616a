"""What holds of every attention: facts that a wrong one may break, told where no misconception explains it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graders.authoring import Exercise, expect_array
from graders.invariants import Call
from graders.student import Tensor

Array = np.ndarray

UNMASKED = ("fused_self_attention", "SingleHead")
MASKED = ("causal_attention", "causal_attention_torch")
PAIRS = (*MASKED, "cross_attention")

NEAR = 1e-3
"""Of the largest number: ten times the tolerance of a check, so that what is said here is true with room to spare."""


def register(exercise: Exercise) -> None:
    """Register the invariants of the attention functions of `exercise`."""
    exercise.invariant(*PAIRS)(rows_sum_to_one)
    exercise.invariant(*UNMASKED)(equal_tokens_keep_their_value)
    exercise.invariant(*UNMASKED, *PAIRS)(output_lies_among_the_values)
    exercise.invariant(*MASKED)(later_tokens_change_nothing_earlier)
    exercise.invariant(*UNMASKED)(order_of_tokens_is_kept)


def rows_sum_to_one(call: Call) -> str:
    """The weights of each query sum to 1."""
    weights = _output(call.value[1])
    return "" if _close(weights.sum(axis=-1), np.ones(weights.shape[:-1])) else "rows of your weights do not sum to 1"


def equal_tokens_keep_their_value(call: Call) -> str:
    """Where all tokens are equal, so are their values, and an average of equal values is that value."""
    X = np.zeros_like(_tokens(call)) + _tokens(call)[..., :1, :]
    output, values = _output(_with_tokens(call, X)), _values(call, X)
    factor = float(np.vdot(values, output) / np.vdot(values, values))
    if output.shape != values.shape or _close(output, values) or not _close(output, factor * values):
        return ""
    return f"where all tokens are equal, your output is their value times {factor:.4g}: rows of weights do not sum to 1"


def output_lies_among_the_values(call: Call) -> str:
    """An average of values lies between the smallest and the largest of them, column by column."""
    output, values = _output(call.value), _values(call, _tokens(call))
    room = NEAR * np.abs(values).max()
    low, high = values.min(axis=-2, keepdims=True) - room, values.max(axis=-2, keepdims=True) + room
    if output.shape[-1] != values.shape[-1] or np.all((low <= output) & (output <= high)):
        return ""
    return "your output lies outside the values, where no average of them can lie"


def later_tokens_change_nothing_earlier(call: Call) -> str:
    """With a causal mask, another last token leaves the rows before it as they were."""
    arguments = call.request["args"]
    if len(arguments) > 4 and not arguments[4]:
        return ""
    X = _tokens(call).copy()
    X[-1] = -X[-1] + 1
    before, after = (_output(value)[:-1] for value in (call.value, _with_tokens(call, X)))
    return "" if _close(after, before) else "another last token changes rows of your output before it"


def order_of_tokens_is_kept(call: Call) -> str:
    """Without a mask, tokens in another order give the same outputs in that order."""
    before, after = _output(call.value), _output(_with_tokens(call, _tokens(call)[..., ::-1, :]))
    return "" if _close(after[..., ::-1, :], before) else "turning the tokens round does not turn your output round"


# --- what a call was about --------------------------------------------------------------------------------------------


def _output(value: Any) -> Array:
    """The output, alone or first of a pair."""
    output = expect_array(value[0] if isinstance(value, (tuple, list)) else value, name="the output")
    if not np.isfinite(output).all():
        raise ValueError("nothing can be said of numbers that are not finite")
    return output


def _close(left: Array, right: Array) -> bool:
    return bool(left.shape == right.shape and np.all(np.abs(left - right) <= NEAR * np.abs(right).max(initial=0.0)))


def _array(argument: Any) -> Array:
    return argument.array if isinstance(argument, Tensor) else argument


def _tokens(call: Call) -> Array:
    """The sequence that asks: what the first argument is, or a head's input."""
    return _array(call.request["inputs"] if call.name == "SingleHead" else call.request["args"][0])


def _with_tokens(call: Call, X: Array) -> Any:
    X = np.ascontiguousarray(X)
    if call.name == "SingleHead":
        return call.again(inputs=X)
    first, *others = call.request["args"]
    return call.again(args=[replace(first, array=X) if isinstance(first, Tensor) else X, *others])


def _values(call: Call, X: Array) -> Array:
    """The values of the sequence that is asked."""
    if call.name == "SingleHead":
        weight, bias = (call.request["weights"][name] for name in ("qkv.weight", "qkv.bias"))
        if np.any(bias):
            raise ValueError("whether the head has a bias is not known here")
        return (X @ weight.T)[..., -(len(weight) // 3) :]
    arguments = [_array(argument) for argument in call.request["args"]]
    if call.name == "fused_self_attention":
        return (X @ arguments[1])[..., -(arguments[1].shape[1] // 3) :]
    return (arguments[1] if call.name == "cross_attention" else X) @ arguments[
        4 if call.name == "cross_attention" else 3
    ]
