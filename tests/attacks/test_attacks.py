"""Every attack earns nothing that its code does not deserve, leaves nothing, and harms no other student."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from attacks import ATTACKS
from attacks.conftest import HONEST, LIMITS, Arena, earned, exercise, released
from graders.intake import NotGradable, executable, receive, submitted_at
from graders.sandbox.session import CellRun
from graders.verdict import Verdict

REPOSITORY = Path(__file__).parents[2]


def _handed_in(arena: Arena, name: str) -> tuple[str, ...]:
    """The cells that run of the attack's hand-in, or none where intake refuses it."""
    folder = arena.course / "submitted" / "me" / name / "attacked"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    notebook = released()
    ATTACKS[name].edit(notebook, folder)
    text = json.dumps(notebook).replace("COURSE_FOLDER", str(arena.course)).replace("GRADERS_FOLDER", str(REPOSITORY))
    (folder / "attacked.ipynb").write_text(text)
    try:
        received = receive(folder, "attacked", released())
    except NotGradable:
        return ()
    return tuple(source for _, source in executable(received.notebook))


def _soon(true: Callable[[], bool], seconds: float = 5) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


def _printed(runs: list[CellRun]) -> str:
    streams = [output["text"] for run in runs for output in run.outputs if output["output_type"] == "stream"]
    return "".join(streams)


def _told(verdict: Verdict) -> str:
    return "\n".join([*(result.message for result in verdict.checks), *(str(finding) for finding in verdict.findings)])


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_earns_and_leaves_nothing(name: str, arena: Arena, junk_earns: set[str]) -> None:
    """No check more than junk of the right shape, nothing left behind, and the next student has full marks."""
    files = arena.files()
    sources = _handed_in(arena, name)
    started = time.monotonic()
    verdict, runs = arena.judge(*sources)
    assert time.monotonic() - started < LIMITS.hand_in + 5
    assert earned(verdict) <= junk_earns, ATTACKS[name].tries
    _expect_nothing_told(verdict, runs)
    honest, after = arena.judge(HONEST, "print(sorted(__import__('os').listdir('.')))")
    assert honest.score == exercise.max_score, _told(honest)
    assert _printed(after) == "[]\n"
    assert not honest.findings
    assert _soon(lambda: arena.processes() == arena.idle)
    assert _soon(lambda: not arena.leftovers())
    assert arena.files() == files


def _expect_nothing_told(verdict: Verdict, runs: list[CellRun]) -> None:
    """No hidden input in what the student reads, nothing of ours in what the cells print, all of it writable."""
    assert "LEAK" not in _printed(runs)
    assert not re.search(r"ECHO ?\[*-?\d", _told(verdict))
    json.dumps([run.outputs for run in runs], ensure_ascii=False).encode()
    verdict.to_json().encode()


def test_a_forged_time_is_not_believed(arena: Arena) -> None:
    """A timestamp of 2001 and a pipe in its place are unknown times, with a finding."""
    for name in ("forges_its_time", "hands_in_a_pipe"):
        _handed_in(arena, name)
        at, findings = submitted_at(arena.course / "submitted" / "me" / name / "attacked")
        assert at is None
        assert findings


def test_there_are_many_attacks_of_each_kind() -> None:
    """At least sixty, of both kinds, each with a sentence."""
    assert len(ATTACKS) >= 60
    assert {attack.kind for attack in ATTACKS.values()} == {"cheat", "harm"}
    assert all(attack.tries.endswith(".") and "\n" not in attack.tries for attack in ATTACKS.values())


def test_junk_earns_its_shape_only(junk_earns: set[str]) -> None:
    """The yardstick of this module is a short one."""
    assert junk_earns == {"shape"}
