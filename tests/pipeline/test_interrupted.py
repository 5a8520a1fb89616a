"""A class whose run is ended from outside: nothing is lost, and the same command finishes the rest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.conftest import hand_in, run, solved
from pipeline.test_class import SHAPES, marks_in

STUDENTS = [f"s{number:02}" for number in range(12)]


def start(course) -> subprocess.Popen:
    """`qkv grade` in a process of its own."""
    command = [str(Path(sys.executable).parent / "qkv"), "grade", SHAPES, "--jobs", "1"]
    return subprocess.Popen(command, cwd=course.root, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def wait_for_some(course, number: int) -> None:
    """Until `number` verdicts are written."""
    until = time.monotonic() + 90
    while len(list(course.folder("autograded").glob("*/*/verdict.json"))) < number:
        assert time.monotonic() < until
        time.sleep(0.05)


def leftovers(course) -> list[str]:
    """Processes that still work on this course, by command line; they have a moment to end."""
    found: list[str] = []
    for _ in range(50):
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                command = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
                inside = os.readlink(folder / "cwd") == str(course.root)
            except OSError:
                continue
            if inside and folder.name != str(os.getpid()):
                found.append(command[:100])
        if not found:
            break
        time.sleep(0.1)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_run_that_is_ended_loses_nothing(course_of, how):
    """What was graded stays; a second run grades the rest once; no process of the first is left."""
    course = course_of(SHAPES)
    for student in STUDENTS:
        hand_in(course, student, SHAPES, solved(SHAPES))
    process = start(course)
    wait_for_some(course, 3)
    process.send_signal(how)
    said = process.communicate(timeout=30)[1]
    assert process.returncode != 0
    assert "Traceback" not in said
    done = {
        path.parent.parent.name: path.stat().st_mtime_ns
        for path in course.folder("autograded").glob("*/*/verdict.json")
    }
    assert 3 <= len(done) < len(STUDENTS)
    again = run(course.root, "qkv", "grade", SHAPES)
    assert again.returncode == 0, again.stderr
    after = {
        path.parent.parent.name: path.stat().st_mtime_ns
        for path in course.folder("autograded").glob("*/*/verdict.json")
    }
    assert {student: after[student] for student in done} == done
    assert marks_in(course, SHAPES) == dict.fromkeys(STUDENTS, 20.0)
    assert leftovers(course) == []
