"""The verbs that a check has, carried out on a student's names."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from graders.sandbox.inside import calls


def call(function: Any, *args: Any, gradients_of: tuple[int, ...] = (), upstream: Any = None, **kwargs: Any) -> dict:
    """Perform a call of `function` with these arguments."""
    request = {"op": "call", "name": "f", "args": list(args), "kwargs": kwargs}
    return calls.perform({"f": function}, {**request, "gradients_of": list(gradients_of), "upstream": upstream})


def test_a_call_brings_back_value_and_arguments() -> None:
    """What the function returned, and what it did to what it was given."""

    def doubles(x: np.ndarray) -> float:
        x *= 2
        return float(x.sum())

    given = np.ones(2)
    reply = call(doubles, given)
    assert reply["value"] == 4
    np.testing.assert_array_equal(reply["arguments"][0], [2, 2])
    np.testing.assert_array_equal(given, [1, 1])


def test_a_student_may_write_into_what_was_sent() -> None:
    """Arrays arrive read-only from the wire; a right answer may use them as scratch space."""
    sent = np.ones(2)
    sent.flags.writeable = False
    assert "error" not in call(lambda x, y: x.__iadd__(y), sent, y=sent)


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(0), KeyboardInterrupt(), GeneratorExit(), RecursionError()]
)
def test_whatever_is_raised_is_a_reply(error: BaseException) -> None:
    """An exit is an error like any other."""

    def raises() -> None:
        raise error

    assert call(raises)["error"]["type"] == type(error).__name__


def test_an_error_says_type_message_and_line() -> None:
    """The line is the last of the student's own cells, not one in a library."""
    names: dict[str, Any] = {}
    exec(compile("def f(x):\n    return sum(x)", "/tmp/ipykernel_1/1.py", "exec"), names)
    reply = calls.perform(names, {"op": "call", "name": "f", "args": [1], "kwargs": {}, "gradients_of": []})
    assert reply["error"] == {"type": "TypeError", "message": "'int' object is not iterable", "line": ""}


def test_an_error_that_cannot_be_printed_is_still_one() -> None:
    """A student's __str__ may raise, return no text, or exit."""

    class Worst(Exception):
        def __str__(self) -> str:
            raise SystemExit

    def raises() -> None:
        raise Worst

    assert call(raises)["error"] == {"type": "Worst", "message": "", "line": ""}


def test_a_name_that_is_not_there_is_missing() -> None:
    """A call and a read of an undefined name say so."""
    assert calls.perform({}, {"op": "read", "name": "f"})["error"]["type"] == "Missing"
    assert calls.perform({"f": 3}, {"op": "read", "name": "f"}) == {"value": 3}


def test_what_cannot_be_called_is_an_error() -> None:
    """A name may hold anything."""
    assert call(None)["error"]["type"] == "TypeError"


def test_gradients_of_the_first_output() -> None:
    """Backward runs from `upstream` on the first of several outputs, in the output's own precision."""
    weights = torch.tensor([1.0, 2.0])
    reply = call(lambda w: (w * w, w), weights, gradients_of=(0,), upstream=np.array([1.0, 10.0]))
    torch.testing.assert_close(reply["gradients"][0], torch.tensor([2.0, 40.0]))


def test_gradients_of_the_output_in_a_record() -> None:
    """A dict or a named tuple has an order of its own: the part that `upstream` fits is the output."""
    pair = namedtuple("pair", "weights output")
    functions = (lambda w: {"weights": w[None], "output": w * w}, lambda w: pair(w[None], w * w))
    for function in functions:
        weights = torch.tensor([1.0, 2.0])
        reply = call(function, weights, gradients_of=(0,), upstream=np.array([1.0, 10.0]))
        torch.testing.assert_close(reply["gradients"][0], torch.tensor([2.0, 40.0]))


def test_a_cut_graph_has_no_gradient() -> None:
    """A detached output, one that is no tensor, and one that does not depend on an argument: None, no error."""
    used, unused = torch.ones(2), torch.ones(2)
    for function in (lambda a, b: a.detach(), lambda a, b: a.detach().numpy(), lambda a, b: a * 2):
        reply = call(function, used.clone(), unused.clone(), gradients_of=(0, 1), upstream=np.ones(2))
        assert reply["gradients"][1] is None


class Head(nn.Module):
    """A module with one named layer."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.qkv = nn.Linear(d, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.qkv(x)


def test_a_module_is_built_filled_and_called() -> None:
    """Weights that it has are set, those that it has not are left out, and gradients come in their order."""
    weights = {"qkv.weight": np.ones((2, 3), np.float32), "other": np.ones(1), "qkv.bias": np.zeros(2, np.float32)}
    request = {"op": "module", "name": "Head", "args": [3], "weights": weights}
    request |= {"inputs": np.ones((1, 3), np.float32), "upstream": np.ones((1, 2), np.float32)}
    reply = calls.perform({"Head": Head}, request)
    torch.testing.assert_close(reply["value"], torch.full((1, 2), 3.0))
    assert reply["parameters"] == {"qkv.weight": (2, 3), "qkv.bias": (2,)}
    assert [tuple(gradient.shape) for gradient in reply["gradients"]] == [(2, 3), (2,)]


def test_a_weight_of_the_wrong_shape_is_an_error() -> None:
    """The student's layer has another size than the contract says."""
    request = {"op": "module", "name": "Head", "args": [4], "weights": {"qkv.weight": np.ones((2, 3))}}
    reply = calls.perform({"Head": Head}, {**request, "inputs": np.ones((1, 4)), "upstream": None})
    assert reply["error"]["type"] == "RuntimeError"
