"""Every attack earns nothing that its code does not deserve, leaves nothing, and harms no other student."""

from __future__ import annotations

import pytest

from attacks import ATTACKS
from attacks.arena import Arena
from graders.intake import submitted_at


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if attack.assignment == "numpy"])
def test_an_attack_earns_and_leaves_nothing(name: str, arena: Arena) -> None:
    """No check more than junk of the right shape, nothing left behind, and the next student has full marks."""
    outcome = arena.attacked_by(name)
    assert outcome.earned == frozenset(), ATTACKS[name].tries
    assert outcome.harm == ()


def test_a_forged_time_is_not_believed(arena: Arena) -> None:
    """A timestamp of 2001 and a pipe in its place are unknown times, with a finding."""
    for name in ("forges_its_time", "hands_in_a_pipe"):
        at, findings = submitted_at(arena.hand_in(name))
        assert at is None
        assert findings


def test_there_are_many_attacks_of_each_kind() -> None:
    """At least sixty, of both kinds, each with a sentence."""
    assert len(ATTACKS) >= 60
    assert {attack.kind for attack in ATTACKS.values()} == {"cheat", "harm"}
    assert all(attack.tries.endswith(".") and "\n" not in attack.tries for attack in ATTACKS.values())


def test_junk_earns_its_shape_only(arena: Arena) -> None:
    """The yardstick of this module is a short one."""
    assert arena.deserved == {"shape"}
