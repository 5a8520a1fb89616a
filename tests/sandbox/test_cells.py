"""Cells run here as they run in a kernel: one notebook of many features, both ways, outputs compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from graders.sandbox.box import Limits, Sandbox
from sandbox.conftest import printed, run
from sandbox.features import DIFFERENT, SAME

nbclient = pytest.importorskip("nbclient")

DOCS = Path(__file__).parents[2] / "docs" / "sandbox.md"
Outputs = list[dict[str, Any]]


@pytest.fixture(scope="module")
def patient() -> Iterator[Sandbox]:
    """A sandbox with time for the first plot, loaded as it is for a class."""
    with Sandbox(("numpy", "course.plotting"), Limits()) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def here(patient: Sandbox) -> dict[str, tuple[Outputs, int | None]]:
    """What each feature puts out in the sandbox, and its execution count."""
    cells = run(patient, *SAME.values(), *(source for source, _ in DIFFERENT.values()))
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
    """Without what differs between any two runs: addresses, times, pictures, colours, the order of streams."""
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
        return {
            key: "a picture" if key == "image/png" and len(item) > 50 else _plain(item) for key, item in value.items()
        }
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


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_on_purpose_is_written_down(name: str, here: dict) -> None:
    """Each difference is a row of the table in docs/sandbox.md, and is what the table says."""
    outputs, _ = here[name]
    wanted = DIFFERENT[name][1]
    text = "".join(_said(output) for output in outputs)
    assert wanted in text if wanted else not text
    assert f"| `{name}`" in DOCS.read_text() or f"| {name}" in DOCS.read_text()
    assert "\x1b" not in text


def _said(output: dict[str, Any]) -> str:
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    return output.get("text") or output["data"].get("text/plain", "")


def test_a_notebook_has_at_least_thirty_features() -> None:
    """The comparison is worth its name."""
    assert len(SAME) >= 30


def test_names_of_cells_look_like_a_kernels(sandbox: Sandbox) -> None:
    """A warning names a file as a kernel does, not one of ours."""
    assert re.match(
        r"/tmp/ipykernel_\d+/\d+\.py:1: UserWarning: x\n",
        printed(run(sandbox, "import warnings; warnings.warn('x')")[0]),
    )


def test_only_text_can_be_printed(sandbox: Sandbox) -> None:
    """A stream refuses what a kernel's refuses."""
    assert printed(run(sandbox, "import sys; sys.stdout.write(5)")[0]).startswith(
        "TypeError: write() argument must be str"
    )
