"""Sandboxes that the tests of this folder share: each is started once, with limits that are soon run into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from graders.sandbox.box import Kind, Limits, Sandbox, available_kinds
from graders.sandbox.session import CellRun, Session

LIMITS = Limits(
    call=3.0,
    cell=6.0,
    hand_in=40.0,
    memory=512 << 20,
    file=1 << 20,
    files=64,
    processes=24,
    scratch=8 << 20,
)

Said = Callable[..., list[str]]


@pytest.fixture(scope="session", params=available_kinds())
def walled(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox of each kind that has walls, where this machine can have it."""
    with Sandbox(("numpy",), LIMITS, request.param) as sandbox:
        yield sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The best sandbox that this machine has."""
    with Sandbox(("numpy",), LIMITS) as sandbox:
        yield sandbox


@pytest.fixture
def make_sandbox() -> Iterator[Callable[..., Sandbox]]:
    """Start a sandbox for one test only."""
    started: list[Sandbox] = []

    def make(
        modules: tuple[str, ...] = (), limits: Limits = LIMITS, kind: Kind | str = "strict-no-namespace"
    ) -> Sandbox:
        started.append(Sandbox(modules, limits, kind))  # type: ignore[arg-type]
        return started[-1]

    yield make
    for sandbox in started:
        sandbox.close()


def run(sandbox: Sandbox, *sources: str) -> list[CellRun]:
    """The runs of these cells as one notebook."""
    with Session(sandbox, sources) as session:
        return session.run()


def printed(cell: CellRun) -> str:
    """What a cell put out, as one text: streams, values and the last line of an error."""
    return "".join(_as_text(output) for output in cell.outputs)


def _as_text(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return output["text"]
    if output["output_type"] == "error":
        return f"{output['ename']}: {output['evalue']}"
    return str(output["data"].get("text/plain", ""))


def call(name: str, *args: Any) -> dict[str, Any]:
    """A request to call `name`."""
    return {"op": "call", "name": name, "args": list(args), "kwargs": {}, "gradients_of": [], "upstream": None}
