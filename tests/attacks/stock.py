"""The same attacks on stock nbgrader: its own way to run cells, ordinary hidden tests, and a box that nothing leaves.

The box has its own processes, network and copy of the course, and limits that nbgrader itself does not set, so that an
attack that goes through hurts nobody on this machine.
"""

from __future__ import annotations

import compileall
import contextlib
import json
import os
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import course as students_package
from attacks.arena import lay
from attacks.assignments import Assignment
from attacks.casebook import Notebook, solve, test_cells
from attacks.outcome import FORGED, FORGED_YEAR, SHOWS_INPUTS, Outcome, State, changes, echoed, reached, states
from graders.sandbox import mounts
from graders.sandbox.inside import scratch

CELL_SECONDS, RUN_SECONDS = 8, 120
LIMITS = {"AS": 3 << 30, "FSIZE": 256 << 20, "NPROC": 300, "NOFILE": 1024, "CORE": 0}
CONFIG = f"""c = get_config()
c.CourseDirectory.course_id = "attacked"
c.ExecutePreprocessor.timeout = {CELL_SECONDS}
"""
COURSE, HOME = "/course", "/home/grader"
BEFORE, ME, AFTER = "neighbour", "me", "zoe"
MUCH_MEMORY, MUCH_SPACE = 1 << 30, 10 << 20


def _source(assignment: Assignment) -> Notebook:
    """The instructor's notebook."""
    notebook = assignment.released()
    solve(notebook, f"### BEGIN SOLUTION\n{assignment.honest.strip()}\n### END SOLUTION")
    for cell in test_cells(notebook):
        cell["source"] += f"\n### BEGIN HIDDEN TESTS\n{assignment.tests[cell['id']]}\n### END HIDDEN TESTS"
    return notebook


@dataclass(frozen=True)
class Report:
    """How a command in the box went: its exit code (None: it had to be ended), processes left, peak memory."""

    code: int | None
    left: int
    peak: int


@dataclass
class Stock:
    """A prepared course with one student graded, copied for each attack. `noise` is what every run changes."""

    assignment: Assignment
    template: Path
    deserved: frozenset[str] = frozenset()
    noise: frozenset[str] = field(default=frozenset())

    def attacked_by(self, name: str) -> Outcome:
        """What comes of it when the attack `name` is handed in and graded, between two honest students."""
        with self._copied() as folder:
            submitted = folder / "course" / "submitted"
            lay(name, self._released(), submitted / ME / "attacked", COURSE)
            return self._outcome(folder)

    def _released(self) -> Notebook:
        return json.loads((self.template / "course/release/attacked/attacked.ipynb").read_text())

    @contextmanager
    def _copied(self) -> Iterator[Path]:
        with _folder() as folder:
            shutil.copytree(self.template, folder, dirs_exist_ok=True, symlinks=True)
            _hand_in(folder, AFTER, self._released(), self.assignment.honest)
            yield folder

    def _outcome(self, folder: Path) -> Outcome:
        before = _files(folder)
        report = run(folder, "nbgrader", "autograde", "attacked")
        changed = [path for path in changes(before, _files(folder)) if path not in self.noise]
        marks = _marks(folder)
        mine = marks.get(ME, {}) if marks else {}
        harm = [
            *_reached(folder),
            *_to_others(report, marks, self.assignment.exercise.max_score),
            *_on_disk(folder, changed),
            *_used(folder, report),
        ]
        earned = frozenset(id for id, score in mine.items() if score > 0) - self.deserved
        end = "" if _graded(folder) else "not graded"
        return Outcome(earned, sum(mine.values()), self.assignment.exercise.max_score, tuple(dict.fromkeys(harm)), end)


@contextmanager
def open_stock(assignment: Assignment) -> Iterator[Stock]:
    """Stock nbgrader with the assignment released; RuntimeError where an honest student would not have full marks."""
    with _folder() as template:
        _lay_course(template, assignment)
        _expect(run(template, "nbgrader", "generate_assignment", "attacked"), template)
        stock = Stock(assignment, template)
        _hand_in(template, BEFORE, stock._released(), assignment.honest)
        _expect(run(template, "nbgrader", "autograde", "attacked"), template)
        with stock._copied() as folder:
            _hand_in(folder, ME, stock._released(), assignment.junk)
            before = _files(folder)
            _expect(run(folder, "nbgrader", "autograde", "attacked"), folder)
            stock.noise = frozenset(changes(before, _files(folder)))
            marks = _marks(folder) or {}
        if any(sum(marks[who].values()) != assignment.exercise.max_score for who in (BEFORE, AFTER)):
            raise RuntimeError(f"stock nbgrader does not give an honest student full marks: {marks}")
        stock.deserved = frozenset(id for id, score in marks[ME].items() if score > 0)
        yield stock


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="qkv-attacks-"))
    try:
        yield folder
    finally:
        scratch.clear(str(folder))  # shutil's would recurse into whatever an attack nested


def _lay_course(folder: Path, assignment: Assignment) -> None:
    """The instructor's files, and a home of the grader's whose packages the grader may write, as is usual."""
    source = folder / "course" / "source" / "attacked"
    source.mkdir(parents=True)
    (source / "attacked.ipynb").write_text(json.dumps(_source(assignment)))
    (folder / "course" / "nbgrader_config.py").write_text(CONFIG)
    package = Path(students_package.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", "lessons")
    shutil.copytree(package, folder / "home" / "lib" / "course", ignore=ignored)
    compileall.compile_dir(folder / "home" / "lib", quiet=1)  # else every import of it would look like a change


def _hand_in(folder: Path, student: str, notebook: Notebook, answer: str) -> None:
    path = folder / "course/submitted" / student / "attacked/attacked.ipynb"
    path.parent.mkdir(parents=True)
    solve(notebook, answer)
    path.write_text(json.dumps(notebook))


def _expect(report: Report, folder: Path) -> None:
    if report.code != 0:
        raise RuntimeError(f"stock nbgrader failed: {_log(folder)[-1000:]}")


def _log(folder: Path) -> str:
    return (folder / "home" / "log").read_text(errors="replace")


# --- the box ----------------------------------------------------------------------------------------------------------


def run(folder: Path, name: str, *words: str) -> Report:
    """A command of this environment on the course in `folder`, in the box."""
    scripts = str(Path(sys.executable).parent)
    command = [f"{scripts}/{name}", *words]
    told = json.dumps([COURSE, f"{HOME}/log", RUN_SECONDS, LIMITS, command])
    python = [*_as_somebody(folder), sys.executable, "-I", "/qkv/within.py", told]
    box = mounts.bwrap(python, 1 << 28, own_namespace=os.geteuid() != 0)
    binds = ["--bind", str(folder / "course"), COURSE, "--dir", "/home", "--bind", str(folder / "home"), HOME]
    binds += ["--perms", "1777", "--tmpfs", "/dev/shm"]  # open to all, as it is on every machine
    binds += ["--ro-bind", str(Path(__file__).with_name("within.py")), "/qkv/within.py", "--die-with-parent"]
    at = box.index("--chdir")
    box[at:at] = binds
    environment = {**mounts.environment(), "PATH": f"{scripts}:/usr/bin:/bin", "HOME": HOME, "USER": "grader"}
    environment |= {"PYTHONPATH": f"{HOME}/lib", "LOGNAME": "grader"}
    environment |= {"MPLCONFIGDIR": "/tmp/matplotlib", "XDG_CACHE_HOME": "/tmp/cache"}
    del environment["NBGRADER_EXECUTION"]
    done = subprocess.run(box, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS + 60, check=False)
    try:
        return Report(**json.loads(done.stdout))
    except ValueError:
        raise RuntimeError(f"the box did not report: {done.stderr[-1000:]}") from None


def _as_somebody(folder: Path) -> list[str]:
    """An ordinary user of its own, where we are root: the kernel counts no processes of root's."""
    if os.geteuid() != 0:
        return []
    user = str(0x70000000 + secrets.randbelow(1 << 27))
    subprocess.run(["chown", "-Rh", f"{user}:{user}", str(folder)], check=True)
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"]


# --- what is there afterwards -----------------------------------------------------------------------------------------


def _files(folder: Path) -> dict[str, State]:
    """All but the gradebook, whose marks are read, and what nbgrader writes for this hand-in and the next."""
    course = folder / "course"
    written = [course / "autograded" / student for student in (ME, AFTER)]
    return states(folder, but=[*written, course / "gradebook.db", course / "gradebook.db-journal"])


def _marks(folder: Path) -> dict[str, dict[str, float]] | None:
    """Each graded student's marks by check, as nbgrader's gradebook has them; None where it cannot be read."""
    from nbgrader.api import Gradebook, MissingEntry

    copy = folder / "gradebook-copy.db"
    marks = {}
    try:
        shutil.copyfile(folder / "course" / "gradebook.db", copy)
        with Gradebook(f"sqlite:///{copy}") as gradebook:
            for student in (BEFORE, ME, AFTER):
                try:
                    found = gradebook.find_submission_notebook("attacked", "attacked", student)
                except MissingEntry:
                    continue
                marks[student] = {grade.name: float(grade.score) for grade in found.grades}
    except Exception:  # whatever an attack has made of the file
        return None
    return marks


def _reached(folder: Path) -> list[str]:
    """What the attack says that it reached, hidden inputs that the student can read, and a forged time."""
    path = folder / "course/autograded" / ME / "attacked/attacked.ipynb"
    outputs = []
    if path.is_file() and path.stat().st_size < LIMITS["FSIZE"] // 4:
        outputs = [output for cell in json.loads(path.read_text())["cells"] for output in cell.get("outputs", [])]
    printed = "".join("".join(output["text"]) for output in outputs if output["output_type"] == "stream")
    raised = "".join(output["ename"] + output["evalue"] for output in outputs if output["output_type"] == "error")
    believed = _asked(folder, "select timestamp from submitted_assignment where student_id = ?", ME)
    forged = [FORGED] * any(str(FORGED_YEAR) in str(row) for row in believed)
    return [*reached(printed), *[SHOWS_INPUTS] * echoed(printed + raised), *forged]


def _to_others(report: Report, marks: dict[str, dict[str, float]] | None, whole: float) -> list[str]:
    """What became of the run, and of the others' marks."""
    hung = [f"hung until it was ended after {RUN_SECONDS} s"] if report.code is None else []
    if marks is None:
        return [*hung, "made the gradebook unreadable"]
    if BEFORE not in marks:
        hung.append("deleted the marks of a student graded before")
    elif sum(marks[BEFORE].values()) != whole:
        hung.append("changed the marks of a student graded before")
    if AFTER not in marks:
        hung.append("ended the class's run")
    elif sum(marks[AFTER].values()) != whole:
        hung.append("took marks from the next student")
    return hung


def _on_disk(folder: Path, changed: list[str]) -> list[str]:
    """Files of others, and of the grader's, that are not what they were."""
    harm = []
    files = [path for path in changed if not any(other.startswith(f"{path}/") for other in changed)]
    files.sort(key=lambda path: "__pycache__" in path)  # a source says more
    if files:
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        harm.append(f"changed {_named(files[0])}{more}")
    if _asked(folder, "select name from sqlite_master where type = 'trigger'"):
        harm.append("left a trigger in the gradebook")
    mine = folder / "course/autograded" / ME / "attacked"
    if any(_is_gradebook(path) for pattern in ("*", "*/*") for path in mine.glob(pattern)):
        harm.append("had the gradebook copied to where feedback is made")
    return harm


def _named(path: str) -> str:
    """A path as an instructor knows it."""
    return path.removeprefix("course/").replace("home/lib", "site-packages").replace("home/", "~/")


def _is_gradebook(path: Path) -> bool:
    if path.is_symlink() and str(path.readlink()).startswith(COURSE):
        return path.readlink().name == "gradebook.db"
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _used(folder: Path, report: Report) -> list[str]:
    """Processes left, memory and space taken."""
    mine = folder / "course/autograded" / ME / "attacked"
    entries = list(os.scandir(mine)) if mine.is_dir() else []
    size = sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    return [
        *["left processes"] * (report.left > 0),
        *[f"took {report.peak >> 30} GB of memory and more"] * (report.peak > MUCH_MEMORY),
        *["left more than a thousand files"] * (len(entries) > 1000),
        *[f"left {size >> 20} MB"] * (size > MUCH_SPACE),
    ]


def _graded(folder: Path) -> bool:
    """Whether stock nbgrader kept the hand-in, and came so far as to give it marks for some cell, if only zero."""
    of_me = "join submitted_notebook n on n.id = g.notebook_id join submitted_assignment a on a.id = n.assignment_id"
    rows = _asked(folder, f"select auto_score from grade g {of_me} where a.student_id = ?", ME)
    kept = (folder / "course/autograded" / ME / "attacked/attacked.ipynb").exists()
    return kept and any(score is not None for (score,) in rows)


def _asked(folder: Path, question: str, *values: str) -> list[Any]:
    """The gradebook's answer, none where it has become unreadable."""
    path = folder / "gradebook-copy.db"
    try:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return connection.execute(question, values).fetchall()
    except sqlite3.Error:
        return []
