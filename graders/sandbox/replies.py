"""What a child said, as what the rest of the grader may rely on: known fields, of known types, of bounded size.

A student's process may have sent any tree that the wire can carry. Nothing here judges; what is not well-formed is left
out, or is an error of the student's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

Output = dict[str, Any]
MAX_OUTPUTS = 600
MAX_JSON_DEPTH = 30
JSON = re.compile(r"application/(.*\+)?json")
"""The MIME types whose value is no text in nbformat's schema."""
CUT: Output = {"output_type": "stream", "name": "stderr", "text": "[the rest of this cell's output was cut]\n"}


def outputs(reply: Mapping[str, Any], most: int) -> list[Output]:
    """A cell's outputs as nbformat has them: every value text, or JSON where its MIME type says so.

    The child keeps to `most` characters by itself; one that does not is cut off at twice as many.
    """
    found = reply.get("outputs")
    kept: list[Output] = []
    left = 2 * most
    for output in found[:MAX_OUTPUTS] if isinstance(found, list) else []:
        clean = _OUTPUTS.get(_string(output, "output_type"), _nothing)(output)
        left -= size(clean)
        if left < 0:
            return [*kept, CUT]
        kept += [clean] if clean else []
    return kept


def count(reply: Mapping[str, Any]) -> int | None:
    """A cell's execution count, if it is one."""
    number = reply.get("count")
    return number if type(number) is int and 0 <= number < 1 << 31 else None


def answer(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The reply to a call: `error` as three texts, or `value`, `arguments`, `gradients` and `parameters`."""
    if reply.get("error") is not None:
        error = reply["error"]
        return {"error": {name: _string(error, name) for name in ("type", "message", "line")}}
    gradients, parameters = reply.get("gradients"), reply.get("parameters")
    return {
        "value": reply.get("value"),
        "arguments": _listed(reply.get("arguments")),
        "gradients": [item if type(item) is np.ndarray else None for item in _listed(gradients)],
        "parameters": _shapes(parameters) if isinstance(parameters, dict) else None,
    }


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _shapes(parameters: dict[Any, Any]) -> dict[str, tuple[int, ...]]:
    return {
        name: tuple(shape)
        for name, shape in parameters.items()
        if isinstance(name, str) and isinstance(shape, tuple) and all(type(size) is int for size in shape)
    }


def _string(tree: Any, name: str) -> str:
    value = tree.get(name) if isinstance(tree, dict) else None
    return value if isinstance(value, str) else ""


def _nothing(output: Any) -> None:
    return None


def _stream(output: dict[str, Any]) -> Output:
    name = "stderr" if output.get("name") == "stderr" else "stdout"
    return {"output_type": "stream", "name": name, "text": _string(output, "text")}


def _error(output: dict[str, Any]) -> Output:
    lines = [line for line in _listed(output.get("traceback")) if isinstance(line, str)]
    texts = {name: _string(output, name) for name in ("ename", "evalue")}
    return {"output_type": "error", **texts, "traceback": lines}


def _shown(output: dict[str, Any]) -> Output:
    data = output.get("data")
    shown = {mime: _datum(mime, value) for mime, value in data.items()} if isinstance(data, dict) else {}
    kept = {mime: value for mime, value in shown.items() if isinstance(mime, str) and value is not None}
    metadata = _json(output.get("metadata"))
    metadata = metadata if isinstance(metadata, dict) else {}
    result: Output = {"output_type": output["output_type"], "data": kept, "metadata": metadata}
    if result["output_type"] == "execute_result":
        result["execution_count"] = count({"count": output.get("execution_count")})
    return result


_OUTPUTS = {"stream": _stream, "error": _error, "display_data": _shown, "execute_result": _shown}


def _datum(mime: Any, value: Any) -> Any:
    if isinstance(value, str):
        return value
    return _json(value) if isinstance(mime, str) and JSON.fullmatch(mime) else None


def _json(value: Any, depth: int = 0) -> Any:
    """`value` with all that JSON cannot hold left out."""
    if depth > MAX_JSON_DEPTH:
        return None
    if isinstance(value, dict):
        return {key: _json(item, depth + 1) for key, item in value.items() if isinstance(key, str)}
    if isinstance(value, (list, tuple)):
        return [_json(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (str, bool, int, float)) else None


def size(tree: Any) -> int:
    """About as many bytes as `tree` takes: its text in a notebook, and what holds it together in memory."""
    if isinstance(tree, dict):
        return 64 + sum(16 + len(key) + size(value) for key, value in tree.items())
    if isinstance(tree, list):
        return 64 + sum(8 + size(item) for item in tree)
    return len(tree) if isinstance(tree, str) else 8
