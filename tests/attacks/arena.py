"""The course that attacks on us meet: a gradebook, answers, other students and a sandbox."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from attacks.assignments import Assignment
from attacks.casebook import ATTACKS, Notebook, solve
from attacks.outcome import FORGED, FORGED_YEAR, SHOWS_INPUTS, Outcome, State, echoed, reached, states
from graders.build import dumps_by_cell
from graders.grading import Job, grade
from graders.intake import NotGradable, executable, receive, submitted_at
from graders.sandbox import child as child_module
from graders.sandbox.box import Kind, Sandbox
from graders.sandbox.session import CellRun
from graders.verdict import Verdict

REPOSITORY = Path(__file__).parents[2]
GRADEBOOK = """
create table grade_cells (id text, max_score real);
create table submitted_assignment (id text, student_id text);
create table submitted_notebook (id text, assignment_id text);
create table grade (cell_id text, notebook_id text, auto_score real, extra_credit real);
insert into grade_cells values ('value', 4);
insert into submitted_assignment values ('a', 'me');
insert into submitted_notebook values ('n', 'a');
insert into grade values ('value', 'n', 0, 0);
"""


@dataclass
class Arena:
    """Where attacks happen, and how to see what they did."""

    assignment: Assignment
    sandbox: Sandbox
    course: Path
    deserved: frozenset[str] = field(init=False)
    """The checks that an answer of the right shape passes, whatever its numbers; no attack may pass another."""
    idle: frozenset[int] = field(init=False)
    """The processes of a sandbox in which nobody is graded: an attack must leave them alive, and no other."""

    def __post_init__(self) -> None:
        self.deserved = earned(self.judge(self.assignment.junk)[0])
        time.sleep(0.5)  # the children so far are gone by then
        self.idle = frozenset(self.processes())

    def attacked_by(self, name: str) -> Outcome:
        """What comes of it when the attack `name` is handed in and graded, and after it an honest student."""
        files = self.files()
        folder = self.hand_in(name)
        started = time.monotonic()
        sources, refusal = self._received(folder)
        verdict, runs = self.judge(*sources)
        late = time.monotonic() - started > self.assignment.limits.hand_in + 5
        harm = [*_told(folder, verdict, runs), *(["took longer than it may"] if late else []), *self._left(files)]
        return Outcome(
            earned(verdict) - self.deserved, verdict.score, verdict.max_score, tuple(harm), refusal or _end(verdict)
        )

    def hand_in(self, name: str) -> Path:
        """The attack's folder, as collected."""
        folder = self.course / "submitted" / "me" / "attacked"
        shutil.rmtree(folder, ignore_errors=True)
        lay(name, self.assignment.released(), folder, str(self.course))
        return folder

    def judge(self, *sources: str) -> tuple[Verdict, list[CellRun]]:
        """Grade a notebook with these cells."""
        job = Job(self.assignment.exercise, "me", (self.assignment.imports, *sources), seed=7)
        return grade(job, self.sandbox)

    def _received(self, folder: Path) -> tuple[tuple[str, ...], str]:
        """The cells that run of the hand-in in `folder`; none, and why not, where intake refuses it."""
        try:
            hand_in = receive(folder, "attacked", self.assignment.released())
        except NotGradable as problem:
            return (), f"refused: {problem.finding.message.partition(';')[0]}"
        dumps_by_cell(hand_in.notebook).encode()  # as it is written
        return tuple(source for _, source in executable(hand_in.notebook)), ""

    def _left(self, files: dict[str, State]) -> list[str]:
        """What the attack before this left for an honest student, and for us, in words."""
        honest, runs = self.judge(self.assignment.honest, "print(sorted(__import__('os').listdir('.')))")
        good = {
            "took marks from the next student": honest.score == honest.max_score and not honest.findings,
            "left files for the next student": printed(runs) == "[]\n",
            "left processes": _soon(lambda: self.processes() == self.idle),
            "left files in the sandbox": _soon(lambda: not self.leftovers()),
            "changed files of the course": self.files() == files,
        }
        return [words for words, well in good.items() if not well]

    def processes(self) -> set[int]:
        """The sandbox's processes, as this machine numbers them."""
        assert self.sandbox._process is not None
        found, waiting = set(), [self.sandbox._process.pid]
        while waiting:
            pid = waiting.pop()
            found.add(pid)
            with contextlib.suppress(OSError):  # it has ended meanwhile
                for task in Path(f"/proc/{pid}/task").glob("*/children"):
                    waiting += map(int, task.read_text().split())
        return found

    def files(self) -> dict[str, State]:
        """All that an attack should not have touched."""
        return states(self.course, but=[self.course / "submitted" / "me"])

    def leftovers(self) -> list[str]:
        """What children left in the scratch folder, where it can be seen from here."""
        return [path.name for path in Path(self.sandbox.address).parent.glob("scratch/tmp*")]


def lay(name: str, notebook: Notebook, folder: Path, course: str) -> None:
    """Hand the attack `name` on `notebook` in, in `folder`; it is graded where the course is called `course`."""
    folder.mkdir(parents=True)
    ATTACKS[name].edit(notebook, folder)
    text = json.dumps(notebook).replace("COURSE_FOLDER", course).replace("GRADERS_FOLDER", str(REPOSITORY))
    path = folder / "attacked.ipynb"
    if not path.is_symlink():
        path.write_text(text)


def _told(folder: Path, verdict: Verdict, runs: list[CellRun]) -> list[str]:
    """What the attack saw or had us believe. All of it must be writable as text."""
    json.dumps([run.outputs for run in runs], ensure_ascii=False).encode()
    verdict.to_json().encode()
    at, _ = submitted_at(folder)
    believed = at is not None and at.year == FORGED_YEAR
    shown = echoed("\n".join([*(result.message for result in verdict.checks), *map(str, verdict.findings)]))
    return [*reached(printed(runs)), *[SHOWS_INPUTS] * shown, *[FORGED] * believed]


def _end(verdict: Verdict) -> str:
    """How the attack ended, where it did not end by itself."""
    stopped = [finding for finding in verdict.findings if finding.code == "cell-stopped"]
    unfinished = [result for result in verdict.checks if result.status in ("timeout", "not_run")]
    return "stopped" if stopped or unfinished else ""


def _soon(true: Callable[[], bool], seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while not true() and time.monotonic() < until:
        time.sleep(0.02)
    return true()


def printed(runs: list[CellRun]) -> str:
    """All that the cells printed."""
    return "".join(output["text"] for run in runs for output in run.outputs if output["output_type"] == "stream")


def earned(verdict: Verdict) -> frozenset[str]:
    """The checks that brought points."""
    return frozenset(result.id for result in verdict.checks if result.score > 0)


def _lay_course(course: Path, assignment: Assignment) -> None:
    """A gradebook with the tables of nbgrader's that attacks know, and its folders, with an answer in them."""
    connection = sqlite3.connect(course / "gradebook.db")
    connection.executescript(GRADEBOOK)
    connection.close()
    notebook = assignment.released()
    solve(notebook, assignment.honest)
    for folder in ("source/attacked", "submitted/neighbour/attacked", "autograded/neighbour/attacked"):
        (course / folder).mkdir(parents=True)
        (course / folder / "attacked.ipynb").write_text(json.dumps(notebook))


@contextlib.contextmanager
def open_arena(course: Path, kind: Kind, assignment: Assignment) -> Iterator[Arena]:
    """An arena in the empty folder `course`. It listens on two sockets, at which no attack may knock."""
    _lay_course(course, assignment)
    grace, child_module.GRACE_SECONDS = child_module.GRACE_SECONDS, 0.4
    sandbox = Sandbox(assignment.modules, assignment.limits, kind)
    with contextlib.chdir(course), listening(str(course)), sandbox:
        try:
            yield Arena(assignment, sandbox, course)
        finally:
            child_module.GRACE_SECONDS = grace


@contextlib.contextmanager
def listening(course: str) -> Iterator[None]:
    """A unix socket by path in the folder `course`, and an abstract one with the folder's name."""
    with socket.socket(socket.AF_UNIX) as by_path, socket.socket(socket.AF_UNIX) as abstract:
        by_path.bind(f"{course}/socket")
        abstract.bind(f"\0{course}")
        for door in (by_path, abstract):
            door.listen()
        yield
