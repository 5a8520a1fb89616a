"""Carry out one request of the grader on the student's names: the few verbs that a check has.

`call` a function (with tensors and a backward pass where asked), `read` a name, or build a `module`, set its weights,
call it and run backward. A request carries plain data and so does the reply; what goes wrong is text in the reply.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

import numpy as np

Names = dict[str, Any]


class Missing(Exception):
    """The student's notebook defines no such name."""


def perform(names: Names, request: dict[str, Any]) -> dict[str, Any]:
    """The reply to `request`: `value`, `arguments` and `gradients`, or an `error` with its type, message and line."""
    verb = {"call": _call, "read": _read, "module": _module}[request["op"]]
    try:
        return verb(names, request)
    except BaseException as error:  # student code raises SystemExit and KeyboardInterrupt too
        return {"error": describe(error)}


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as text, with the last line of the student's own cells that it passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame for frame in frames if "ipykernel" in frame.filename or "<ipython" in frame.filename]
    try:
        message = str(error)[:2000]
    except BaseException:  # a student's __str__ may do anything, exit included
        message = ""
    line = (lines[-1].line or "")[:200] if lines else ""
    return {"type": type(error).__name__[:80], "message": message, "line": line}


def _lookup(names: Names, name: str) -> Any:
    if name not in names:
        raise Missing(name)
    return names[name]


def _read(names: Names, request: dict[str, Any]) -> dict[str, Any]:
    return {"value": _lookup(names, request["name"])}


def _writable(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else value


def _call(names: Names, request: dict[str, Any]) -> dict[str, Any]:
    function = _lookup(names, request["name"])
    arguments = [_writable(argument) for argument in request["args"]]
    keywords = {name: _writable(argument) for name, argument in request["kwargs"].items()}
    leaves = [arguments[index].requires_grad_() for index in request["gradients_of"]]
    value = function(*arguments, **keywords)
    reply = {"value": value, "arguments": arguments}
    if leaves:
        reply["gradients"] = _backward(_first(value, request["upstream"]), request["upstream"], leaves)
    return reply


def _first(value: Any, upstream: Any) -> Any:
    """The first of a sequence; of a mapping or a record, whose order is its author's, what has `upstream`'s shape."""
    named = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(named, (tuple, list)):
        return named[0]
    parts = named if isinstance(named, Mapping) else getattr(named, "__dict__", {})
    return next((part for part in parts.values() if getattr(part, "shape", None) == np.shape(upstream)), value)


def _backward(output: Any, upstream: Any, leaves: list[Any]) -> list[Any]:
    """The gradient of each leaf, or of the parameter that holds a copy of it; None where the graph is cut."""
    import torch

    if not isinstance(output, torch.Tensor) or not output.requires_grad:
        return [None] * len(leaves)
    held = [leaf for leaf in _held(output) if not any(leaf is asked for asked in leaves)]
    # Of a sum: given a gradient to start from, torch loads SymPy to compare shapes, which takes longer than the checks.
    total = (output * torch.as_tensor(upstream).to(output.dtype)).sum()
    found = torch.autograd.grad(total, [*leaves, *held], allow_unused=True)
    gradients, others = found[: len(leaves)], list(zip(held, found[len(leaves) :], strict=True))
    return [
        gradient if gradient is not None else _of_copy(leaf, others)
        for leaf, gradient in zip(leaves, gradients, strict=True)
    ]


def _held(output: Any) -> list[Any]:
    """The leaves of `output`'s graph: what it was asked about, and parameters that the student's code made."""
    nodes, seen, leaves = [output.grad_fn], set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            leaves.append(node.variable)
        nodes += [parent for parent, _ in node.next_functions]
    return leaves


def _of_copy(leaf: Any, held: list[tuple[Any, Any]]) -> Any:
    """The gradient of columns that equal `leaf` in a parameter or its transpose: nn.Linear may take weights over."""
    import torch

    for parameter, gradient in held:
        if parameter.ndim != 2 or leaf.ndim != 2 or gradient is None:
            continue
        for matrix, slope in ((parameter.mT, gradient.mT), (parameter, gradient)):
            for start in range(matrix.shape[1] - leaf.shape[1] + 1):
                columns = slice(start, start + leaf.shape[1])
                if torch.equal(matrix[:, columns].to(leaf.dtype), leaf):
                    return slope[:, columns]
    return None


def _module(names: Names, request: dict[str, Any]) -> dict[str, Any]:
    import torch

    module = _lookup(names, request["name"])(*request["args"])
    parameters = dict(module.named_parameters())
    with torch.no_grad():
        for name, array in request["weights"].items():
            if name in parameters:
                parameters[name].copy_(torch.as_tensor(np.array(array)))
    output = module(torch.as_tensor(np.array(request["inputs"])))
    reply = {"value": output, "parameters": {name: tuple(value.shape) for name, value in parameters.items()}}
    if request["upstream"] is not None:
        chosen = [parameters[name] for name in request["weights"] if name in parameters]
        reply["gradients"] = _backward(output, request["upstream"], chosen)
    return reply
