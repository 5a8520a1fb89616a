"""The arena in each kind of sandbox that this machine has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attacks.arena import Arena, open_arena
from attacks.assignments import ASSIGNMENTS
from graders.sandbox.box import available_kinds

SANDBOXES = [
    pytest.param(kind, marks=[pytest.mark.slow] if number else []) for number, kind in enumerate(available_kinds())
]


@pytest.fixture(scope="session", params=SANDBOXES)
def arena(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A course with a sandbox; the best one in every run, the weaker one in slow runs."""
    with open_arena(tmp_path_factory.mktemp("course"), request.param, ASSIGNMENTS["numpy"]) as arena:
        yield arena
