"""`qkv grade --scheduler`: a real scheduler and real workers on loopback, some of which are killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graders.authoring import UsageError, load_exercise
from graders.classroom import grade_class
from graders.gradebook import Marks
from graders.settings import Course
from graders.verdict import Verdict
from pipeline.conftest import hand_in, one_line, released, run, solved

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
pytestmark = pytest.mark.slow

SLUG = "attention_shapes"
EXERCISE = load_exercise(SLUG)

# Loaded by each worker: it tells which job it begins, takes its time over it, and notes each file of the course that is
# asked for. What `misbehave` adds makes it fail.
PRELOAD = """
import json, os, sys, time
from graders import cluster

if "real" not in globals():  # dask loads a preload twice
    real = cluster.grade_there

def note(name, *what):
    with open(os.path.join({notes!r}, name), "a") as file:
        file.write(json.dumps([os.getpid(), *what]) + "\\n")

def grade_there(job, setup):
    note("begun", job.student)
    time.sleep(0.3)
    {misbehave}
    return real(job, setup)

def watch(event, arguments):
    if event.startswith(("open", "os.", "subprocess.")) and {course!r} in repr(arguments):
        os.write(watched, (event + "\\n").encode())

watched = os.open(os.path.join({notes!r}, "asked"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
if cluster.grade_there is real:
    cluster.grade_there = grade_there
    sys.addaudithook(watch)
"""


class Cluster:
    """A scheduler and its workers, in a folder of their own."""

    def __init__(self, folder: Path, course: Course) -> None:
        self.folder, self.course = folder, course
        self.processes: list[subprocess.Popen[bytes]] = []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{port}"
        options = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard", "--idle-timeout", "10 minutes"]
        self.scheduler = self._start("scheduler", *options)
        self._await(lambda: socket.create_connection(("127.0.0.1", port), 1).close())

    def worker(self, *, nanny: bool = False, misbehave: str = "pass") -> subprocess.Popen[bytes]:
        """One more worker; without a nanny nobody starts it again."""
        preload = self.folder / f"preload{len(self.processes)}.py"
        preload.write_text(PRELOAD.format(notes=str(self.folder), course=str(self.course.root), misbehave=misbehave))
        options = ["--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--preload", str(preload)]
        options += ["--death-timeout", "60"]  # nobody is left behind when a test run is killed
        return self._start("worker", self.address, *options, "--nanny" if nanny else "--no-nanny")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        with open(self.folder / f"{words[0]}{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(_made(self.folder / "tmp"))},
            )
        self.processes.append(process)
        return process

    def _await(self, attempt: Callable[[], None]) -> None:
        for _ in range(300):
            with contextlib.suppress(OSError):
                return attempt()
            time.sleep(0.1)
        raise AssertionError(self.logs())

    def notes(self, name: str) -> list[list[object]]:
        """What workers noted: process id, and the student whose job it began."""
        path = self.folder / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def logs(self) -> str:
        """What all of them printed, for a test that fails."""
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """Workers first, since they wait for a scheduler that is gone."""
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def course(course_of) -> Course:
    """Ten students: every other one is right, the rest have done nothing."""
    course = course_of(SLUG)
    for number in range(10):
        hand_in(course, f"s{number}", SLUG, released(SLUG) if number % 2 else solved(SLUG))
    return course


@pytest.fixture
def cluster(course, tmp_path_factory) -> Iterator[Cluster]:
    """A scheduler without workers."""
    cluster = Cluster(tmp_path_factory.mktemp("dask"), course)
    yield cluster
    cluster.stop()


def expected(count: int = 10) -> dict[str, float]:
    """The marks of `course`."""
    return {f"s{number}": 0.0 if number % 2 else 20.0 for number in range(count)}


def rows(course: Course) -> dict[str, tuple[int, float]]:
    """For each student in the gradebook, how many rows of grades, and the score."""
    with Marks(course, EXERCISE) as marks:
        submissions = marks.gradebook.assignment_submissions(SLUG)
        assert len({s.student_id for s in submissions}) == len(submissions)
        return {s.student_id: (sum(len(n.grades) for n in s.notebooks), s.score) for s in submissions}


def check_once(course: Course, told: list[Verdict], marks: dict[str, float]) -> None:
    """Each student was graded once: one verdict, one set of rows, the right marks."""
    assert sorted(verdict.student for verdict in told) == sorted(marks)
    assert {verdict.student: verdict.score for verdict in told} == marks
    assert rows(course) == {student: (len(EXERCISE.checks), score) for student, score in marks.items()}
    for student in marks:
        path = course.folder("autograded") / student / SLUG / "verdict.json"
        assert Verdict.from_json(path.read_text()).student == student


def test_worker_killed_in_the_middle_costs_nobody(cluster, course):
    """Of two workers one gets SIGKILL while it grades: every hand-in is graded exactly once, the course unseen."""
    workers = {process.pid: process for process in (cluster.worker(), cluster.worker())}
    told: list[Verdict] = []
    killed: list[object] = []

    def kill_one_that_grades(verdict: Verdict, kept: bool) -> None:
        told.append(verdict)
        busy = [(pid, student) for pid, student in cluster.notes("begun") if student not in {v.student for v in told}]
        if len(told) >= 3 and not killed and busy:
            killed.append(busy[-1][1])
            workers[busy[-1][0]].send_signal(signal.SIGKILL)

    verdicts = grade_class(course, EXERCISE, scheduler=cluster.address, progress=kill_one_that_grades)
    assert killed, cluster.logs()
    check_once(course, told, expected())
    assert [v.student for v in verdicts] == sorted(expected())
    assert all(v.graded and not v.findings and v.sandbox != "none" for v in verdicts)
    begun = cluster.notes("begun")
    assert len({pid for pid, _ in begun}) == 2
    assert [student for _, student in begun].count(killed[0]) >= 2
    assert (cluster.folder / "asked").read_text() == ""


def test_workers_leave_nothing_behind(cluster, course):
    """A worker that is told to end takes its sandbox with it: no process, no folder."""
    worker = cluster.worker()
    grade_class(course, EXERCISE, scheduler=cluster.address, students=["s0"])
    assert list((cluster.folder / "tmp").glob("qkv-*"))
    worker.terminate()
    assert worker.wait(20) is not None
    assert not list((cluster.folder / "tmp").glob("qkv-*"))


def test_hand_in_that_kills_its_workers_is_reported_and_costs_no_other(cluster, course):
    """Nannies start the workers again; the others get their marks, and the culprit zero with a finding for a person."""
    for _ in range(2):
        cluster.worker(nanny=True, misbehave="job.student == 's4' and os._exit(9)")
    told: list[Verdict] = []
    verdicts = grade_class(course, EXERCISE, scheduler=cluster.address, progress=lambda v, kept: told.append(v))
    check_once(course, told, expected() | {"s4": 0.0})
    (culprit,) = [verdict for verdict in verdicts if not verdict.graded]
    assert culprit.student == "s4"
    (finding,) = culprit.findings
    assert (finding.code, "workers died" in finding.message) == ("worker", True)


def test_lost_scheduler_says_so_and_what_is_written_stays(cluster, course):
    """The run ends with one line; the next one, on this machine, grades the rest."""
    cluster.worker()
    told: list[Verdict] = []

    def lose_it(verdict: Verdict, kept: bool) -> None:
        told.append(verdict)
        if len(told) == 3:
            cluster.scheduler.kill()

    began = time.monotonic()
    with pytest.raises(UsageError, match="was lost; what is graded is written"):
        grade_class(course, EXERCISE, scheduler=cluster.address, progress=lose_it)
    assert time.monotonic() - began < 60
    assert 3 <= len(told) < 10
    kept: list[str] = []
    grade_class(
        course, EXERCISE, progress=lambda verdict, was: kept.append(verdict.student) if was else told.append(verdict)
    )
    assert set(kept) == {verdict.student for verdict in told[: len(kept)]}
    check_once(course, told, expected())


def test_ctrl_c_says_how_to_go_on_and_keeps_what_is_done(cluster, course):
    """The command ends soon, in words; the next run on the same cluster skips what the first one wrote."""
    cluster.worker()
    command = [str(Path(sys.executable).parent / "qkv"), "grade", SLUG, "--scheduler", cluster.address]
    with subprocess.Popen(
        command, cwd=course.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as grading:
        late = threading.Timer(240, grading.kill)
        late.start()
        lines = [grading.stderr.readline() for _ in range(3)]
        grading.send_signal(signal.SIGINT)
        said = "".join(lines) + grading.communicate()[1]
        late.cancel()
    assert grading.returncode == 130, said
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    again = run(course.root, *("qkv", *command[1:]))
    assert again.returncode == 0, again.stderr
    assert "unchanged since an earlier run" in again.stderr
    assert {student: score for student, (_, score) in rows(course).items()} == expected()


def test_worker_with_other_graders_is_named_and_nothing_is_graded_by_it(cluster, course):
    """Marks by another version of the exercises would be wrong without anybody's noticing."""
    cluster.worker(misbehave="cluster.code_digest = lambda: 'older'")
    done = run(course.root, "qkv", "grade", SLUG, "--scheduler", cluster.address)
    line = [line for line in done.stderr.splitlines() if line.startswith("qkv:")]
    assert done.returncode == 2, done.stderr
    assert "has another version" in line[0]
    assert "tcp://127.0.0.1" in line[0]
    assert rows(course) == {}


def test_worker_that_can_wall_nobody_in_is_named(cluster, course):
    """Without any sandbox there, the run ends with the reason and the worker's address."""
    cluster.worker(misbehave="from graders.sandbox import box; box.available_kinds = lambda: []")
    with pytest.raises(UsageError, match=r"worker tcp://127.0.0.1:\d+ cannot grade: student code cannot be run safely"):
        grade_class(course, EXERCISE, scheduler=cluster.address)
    assert rows(course) == {}


def test_scheduler_without_workers_says_that_it_waits(cluster, course, capfd):
    """A queue may give a node in an hour: grading begins when the first worker comes."""
    late = threading.Timer(7, cluster.worker)
    late.start()
    grade_class(course, EXERCISE, scheduler=cluster.address, students=["s0"])
    late.join()
    assert "has no workers now; waiting for one" in capfd.readouterr().err
    assert rows(course)["s0"][1] == 20.0


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "127.0.0.1:1", "tcp://no.such.host.invalid:8786", "carrier-pigeon"]
)
def test_scheduler_that_cannot_be_reached_is_named_within_ten_seconds(course, address):
    """One line, exit code 2, nothing graded, nothing written; timed without the start of Python."""
    line = one_line(run(course.root, "qkv", "grade", SLUG, "--scheduler", address), 2)
    assert f"no dask scheduler can be reached at {address}" in line
    began = time.monotonic()
    with pytest.raises(UsageError, match="no dask scheduler"):
        grade_class(course, EXERCISE, scheduler=address)
    assert time.monotonic() - began < 10
    assert rows(course) == {}
    assert not course.folder("autograded").exists()


def test_port_where_something_else_listens_is_no_scheduler(course):
    """A server that takes connections and says nothing is given up, where dask alone would wait without end."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        line = one_line(run(course.root, "qkv", "grade", SLUG, "--scheduler", address), 2)
    assert address in line
    assert "does not answer as dask does" in line


def test_jobs_and_scheduler_together_make_no_sense(course):
    """--jobs counts processes of this machine."""
    done = run(course.root, "qkv", "grade", SLUG, "--scheduler", "tcp://127.0.0.1:1", "--jobs", "2")
    assert done.returncode == 2
    assert "--jobs is for this machine" in done.stderr
