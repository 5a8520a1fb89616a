"""Cells run here as they run in a kernel: one notebook of many features, both ways, outputs compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from sandbox.conftest import printed, run
from sandbox.features import DIFFERENT, SAME

from graders.sandbox.box import Limits, Sandbox

nbclient = pytest.importorskip("nbclient")

DOCS = Path(__file__).parents[2] / "docs" / "sandbox.md"
Outputs = list[dict[str, Any]]


@pytest.fixture(scope="module")
def patient() -> Iterator[Sandbox]:
    """A sandbox with time for the first plot."""
    with Sandbox(("numpy",), Limits()) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def here(patient: Sandbox) -> dict[str, tuple[Outputs, int | None]]:
    """What each feature puts out in the sandbox, and its execution count."""
    cells = run(patient, *SAME.values(), *DIFFERENT.values())
    return {name: (cell.outputs, cell.count) for name, cell in zip([*SAME, *DIFFERENT], cells, strict=True)}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Outputs, int | None]]:
    """The same in a kernel, through nbclient."""
    cells = [nbformat.v4.new_code_cell(source) for source in SAME.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    folder = tmp_path_factory.mktemp("kernel")
    client = nbclient.NotebookClient(
        notebook, allow_errors=True, timeout=60, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute()
    return {name: (cell.outputs, cell.execution_count) for name, cell in zip(SAME, notebook.cells, strict=True)}


def comparable(outputs: Outputs) -> Outputs:
    """Without what differs between any two runs: addresses, times, the pictures' bytes, colours, the order of streams."""
    streams: dict[str, str] = {}
    others = []
    for output in outputs:
        if output["output_type"] == "stream":
            streams[output["name"]] = streams.get(output["name"], "") + output["text"]
        else:
            others.append(_plain(dict(output)))
    return [_plain(streams), *others]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: "a picture" if key == "image/png" and len(item) > 50 else _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return _steady(value) if isinstance(value, str) else value


def _steady(text: str) -> str:
    for pattern, word in (
        (r"\x1b\[[0-9;]*m", ""),
        (r"/tmp/ipykernel_\d+/\d+\.py", "CELL"),
        (r"\(\d+\.py,", "(CELL,"),
        (r"\d+(\.\d+)?(e\+\d+)? ?([mµμn]?s|min)\b", "TIME"),
        (r"0x[0-9a-f]+", "ADDRESS"),
        (r"Thread-\d+", "Thread-N"),
        (r"(?m)^(-{5,}|={5,})$", "-----"),
        (r"File .*/(site-packages|lib/python3)", r"File LIB/\1"),
    ):
        text = re.sub(pattern, word, text)
    return text


@pytest.mark.parametrize("name", SAME)
def test_a_cell_puts_out_what_it_does_in_a_kernel(name: str, here: dict, there: dict) -> None:
    """Streams, values, displays, errors and counts agree."""
    (ours, count), (theirs, expected) = here[name], there[name]
    assert comparable(ours) == comparable(theirs)
    assert count == expected
