"""Attacks on the checks that use PyTorch: its comparisons, gradients and modules replaced in the student's process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from attacks import ATTACKS
from attacks.arena import Arena, open_arena
from attacks.assignments import ASSIGNMENTS
from graders.sandbox.box import available_kinds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def torch_arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    """A course whose sandbox has torch loaded, and whose checks are those of the course that ask for it."""
    course = tmp_path_factory.mktemp("torch-course")
    with open_arena(course, available_kinds()[0], ASSIGNMENTS["torch"]) as arena:
        yield arena


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.assignment == "torch"])
def test_an_attack_on_torch_earns_and_leaves_nothing(name: str, torch_arena: Arena) -> None:
    """No check more than junk of the right shapes, nothing left behind, and the next student has full marks."""
    outcome = torch_arena.attacked_by(name)
    assert outcome.earned == frozenset(), ATTACKS[name].tries
    assert outcome.harm == ()


def test_junk_has_a_layer_without_a_bias_and_no_more(torch_arena: Arena) -> None:
    """The yardstick of this module is a short one."""
    assert torch_arena.deserved == {"linear_bias"}
