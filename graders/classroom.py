"""Grade a class: a map over hand-ins, each in a worker; only this process writes notebooks, marks and pages.

One hand-in never stops the class, and nothing that is done is lost when a run is interrupted: what is graded is
written at once, and the next run goes on from there.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, as_completed, wait
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from graders import history, returning
from graders.ahead import SandboxAhead, modules_for
from graders.authoring import Exercise, UsageError
from graders.build import dumps_by_cell, expect_instances, load, write_whole
from graders.gradebook import Marks
from graders.hand_in import Graded, HandInJob, Notebook, grade_hand_in, job_for, not_graded, with_seed_of
from graders.intake import NotGradable, receive, submitted_at
from graders.sandbox.box import Sandbox
from graders.sandbox.inside import layers
from graders.settings import HISTORY, VERDICT, Course
from graders.verdict import Finding, Verdict


@dataclass(frozen=True)
class Received:
    """One student's folder, as intake found it: a job, or the finding that says why there is none.

    `before` is the verdict of an earlier run, `secret` what nbgrader gives the page back by.
    """

    student: str
    timestamp: datetime | None
    findings: tuple[Finding, ...]
    before: Verdict | None = None
    job: HandInJob | None = None
    problem: Finding | None = None
    secret: str = ""


Progress = Callable[[Verdict, bool], None]
"""Told of each verdict as it is written, and whether it was there from an earlier run."""


def grade_class(
    course: Course,
    exercise: Exercise,
    *,
    students: Sequence[str] = (),
    jobs: int = 0,
    scheduler: str = "",
    force: bool = False,
    ahead: SandboxAhead | None = None,
    progress: Progress = lambda verdict, kept: None,
    started: Callable[[int], None] = lambda total: None,
) -> list[Verdict]:
    """Grade every hand-in of `exercise` in the course (or of `students`), in order of id; the verdicts.

    In `jobs` processes here, whose sandbox may have been started `ahead`, or on the dask cluster whose `scheduler` is
    at that address. Writes autograded/<student>/<slug>/ (notebook and verdict.json), the gradebook, and
    feedback/<student>/<slug>/.
    """
    scheduler = course.settings.scheduler_for(jobs, scheduler)
    if scheduler:
        from graders.cluster import reach

        reach(scheduler)
    released = _released(course, exercise)
    folders = _folders(course, exercise.slug, students)
    # Where everyone has numbers of their own, those of another on the roster may have been copied.
    roster = [student for student, _ in course.hand_ins(exercise.slug)] if exercise.notebook else []
    verdicts: list[Verdict] = []
    unexpected = functools.partial(_unexpected, exercise, released)

    with contextlib.ExitStack() as stack:
        marks = stack.enter_context(_marks(course, exercise))
        known = set() if force else marks.graded()
        begin = functools.cache(lambda: started(len(folders)))

        @functools.cache
        def workers() -> Workers:  # where nothing is new, none are wanted
            opened = stack.enter_context(_workers(course, exercise, len(folders), jobs, scheduler, ahead))
            begin()
            return opened

        def note(verdict: Verdict, kept: bool) -> None:
            begin()
            verdicts.append(verdict)
            progress(verdict, kept)

        def write(found: Received, graded: Graded) -> None:
            try:
                _write(course, exercise, marks, found, graded)
            except (UsageError, OSError):  # no hand-in's fault: it would be the same for all
                raise
            except Exception as bug:  # one hand-in never stops the class
                graded = unexpected(found, bug)
                _write(course, exercise, marks, found, graded)
            note(graded.verdict, False)

        def received() -> Iterator[Received]:
            """Whom the workers are to grade; all others are dealt with here."""
            for student, folder in folders:
                found = _receive(course, exercise, released, student, folder, roster)
                done = _done(found) if student in known else None
                if done is not None:
                    note(done, True)
                elif found.problem is not None:
                    write(found, not_graded(exercise, student, released, found.problem, found.findings))
                else:
                    yield found

        ready = ahead.is_ready if ahead is not None else lambda: False
        for found, graded in _results(received(), workers, ready, unexpected):
            write(found, graded)
    return sorted(verdicts, key=lambda verdict: verdict.student)


# --- before -----------------------------------------------------------------------------------------------------------


def _released(course: Course, exercise: Exercise) -> Notebook:
    path = course.released(exercise.slug)
    if not path.exists():
        raise UsageError(
            f"{exercise.slug} is not released: there is no {path.relative_to(course.root)}; run qkv release"
            f" {exercise.slug}"
        )
    notebook = load(path)
    expect_instances(exercise, notebook, "the released")
    points = {
        settings["grade_id"]: settings["points"]
        for cell in notebook["cells"]
        if (settings := cell["metadata"].get("nbgrader", {})).get("grade") and not settings.get("solution")
    }
    if points != {check.id: check.points for check in exercise.checks.values()}:
        raise UsageError(
            f"the released {exercise.slug} has other checks or points than the exercise now; "
            f"run qkv build {exercise.slug} and qkv release {exercise.slug}"
        )
    return notebook


def _folders(course: Course, slug: str, students: Sequence[str]) -> list[tuple[str, Path]]:
    submitted = course.folder("submitted")
    chosen = [(student, folder) for student, folder in course.hand_ins(slug) if not students or student in students]
    missing = sorted(set(students) - {student for student, _ in chosen})
    if missing:
        raise UsageError(
            f"nothing handed in by {', '.join(missing)}: there is no {submitted.name}/<student>/{slug} of theirs"
        )
    if not chosen:
        raise UsageError(
            f"no hand-ins for {slug}: {submitted.name}/<student>/{slug}/ is where nbgrader collect and"
            " zip_collect put them"
        )
    return chosen


@contextlib.contextmanager
def _marks(course: Course, exercise: Exercise) -> Iterator[Marks]:
    """The gradebook. A fresh clone has a release and none; nbgrader's own generate_assignment registers it."""
    with Marks(course, exercise) as marks:
        if not marks.check_assignment():
            from graders.releasing import release

            release(course, exercise)
        if not marks.check_assignment():
            raise UsageError(
                f"the gradebook does not know {exercise.slug} with these points; run qkv release {exercise.slug}"
            )
        yield marks


def _receive(
    course: Course,
    exercise: Exercise,
    released: Notebook,
    student: str,
    folder: Path,
    roster: Sequence[str],
) -> Received:
    timestamp, findings = submitted_at(folder)
    before = history.verdict_in(course.folder("autograded") / student / exercise.slug)
    secret, _ = returning.found(folder)
    found = Received(student, timestamp, tuple(findings), before, secret=secret)
    try:
        hand_in = receive(folder, exercise.slug, released)
    except NotGradable as problem:
        return replace(found, problem=problem.finding)
    except Exception as bug:
        finding = Finding("error", "intake", f"the hand-in could not be read ({type(bug).__name__}: {bug})"[:300])
        return replace(found, problem=finding)
    hand_in = replace(hand_in, findings=(*findings, *hand_in.findings))
    job = job_for(course.settings, exercise.slug, student, hand_in)
    job = replace(job, classmates=tuple(other for other in roster if other != student))
    return replace(found, job=with_seed_of(before, job))


def _done(found: Received) -> Verdict | None:
    """The verdict of an earlier run, if it is on this very hand-in."""
    before = found.before
    if before is None or found.job is None or not before.fingerprint:
        return None
    return before if before.fingerprint == found.job.fingerprint else None


# --- the map ----------------------------------------------------------------------------------------------------------

_sandbox: Sandbox

ENOUGH = 16
"""Hand-ins that wait for a worker, so that there is time to write those that are done; or that wait to be written."""

MOST_WAITING = 128 << 20
"""Characters in hand-ins that wait for a worker: photographs of a whole class would fill this process's memory."""


def _set_sandbox(sandbox: Sandbox, parent: int) -> None:
    """A worker's start: it ends when the process that grades the class does, however that ends."""
    global _sandbox
    _sandbox = sandbox
    layers.prctl(layers.PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent not in (os.getppid(), 0):
        os._exit(1)


def _work(job: HandInJob) -> Graded:
    return grade_hand_in(job, _sandbox)


class Workers(Protocol):
    """Those who grade: processes of this machine, or of a cluster."""

    def submit(self, job: HandInJob) -> Future[Graded]:
        """The result of `job`, as it comes; it raises BrokenExecutor where the worker was lost."""

    def alone(self, job: HandInJob) -> Graded:
        """`job` again, with no other beside it."""

    def recover(self, lost: int) -> int:
        """Take jobs again after `lost` came to nothing; how many of these, the first, may have ended a worker."""

    def close(self) -> None:
        """Drop what has not begun."""


@dataclass
class LocalWorkers:
    """`count` processes of this machine that share one sandbox. When one of them dies, they all do."""

    sandbox: Sandbox
    count: int
    pool: ProcessPoolExecutor

    def submit(self, job: HandInJob) -> Future[Graded]:
        """A worker's result."""
        return self.pool.submit(_work, job)

    def alone(self, job: HandInJob) -> Graded:
        """The result of a worker of its own, so that only its own fault counts."""
        with _pool(1, self.sandbox, "spawn") as pool:
            return pool.submit(_work, job).result()

    def recover(self, lost: int) -> int:
        """Jobs are begun in order, so the first were under way; new workers for the others, where there are any."""
        if lost > self.count:
            self.pool.shutdown()
            with contextlib.suppress(BrokenExecutor):  # the old one takes nothing: the next are suspected
                self.pool = _pool(self.count, self.sandbox, "spawn")
        return self.count

    def close(self) -> None:
        """Drop what has not begun."""
        self.pool.shutdown(wait=False, cancel_futures=True)


@contextlib.contextmanager
def _workers(
    course: Course, exercise: Exercise, many: int, jobs: int, scheduler: str, ahead: SandboxAhead | None
) -> Iterator[Workers]:
    """Those who grade at most `many` hand-ins; they drop what has not begun when the class's run is given up."""
    settings = course.settings
    with contextlib.ExitStack() as stack:
        workers: Workers
        if scheduler:
            from graders.cluster import ClusterWorkers, Setup, code_digest

            setup = Setup(modules_for(exercise.slug), settings.limits(), settings.sandbox, code_digest())
            workers = stack.enter_context(ClusterWorkers(scheduler, setup))
        else:
            count = min(jobs or settings.jobs or os.cpu_count() or 1, many)
            sandbox = (ahead or stack.enter_context(SandboxAhead(course, exercise.slug))).ready()
            gc.freeze()  # what is loaded stays: no collection need look through it, in the workers or at the end
            workers = here = LocalWorkers(sandbox, count, _pool(count, sandbox, "fork"))
            stack.callback(lambda: here.pool.shutdown())  # which may be another one by then
        try:
            yield workers
        except BaseException:
            workers.close()
            raise


def _results(
    received: Iterable[Received],
    workers: Callable[[], Workers],
    ready: Callable[[], bool],
    unexpected: Callable[[Received, Exception], Graded],
) -> Iterator[tuple[Received, Graded]]:
    """Results as they are done, while `received` is read; none is handed out before the workers are `ready`.

    Where a worker is lost, the hand-ins that may have ended it are tried again, each by itself, and then all others.
    """
    lost = yield from _first_results(received, workers, ready, unexpected)
    while lost:
        suspects = workers().recover(len(lost))
        for found in lost[:suspects]:
            yield found, _alone(workers(), found, unexpected)
        lost = yield from _first_results(lost[suspects:], workers, lambda: True, unexpected)


def _first_results(
    received: Iterable[Received],
    workers: Callable[[], Workers],
    ready: Callable[[], bool],
    unexpected: Callable[[Received, Exception], Graded],
) -> Generator[tuple[Received, Graded], None, list[Received]]:
    """Results as they are done; in the end, the hand-ins that came to nothing, in the order of being handed out."""
    waiting: list[Received] = []
    given: dict[Future[Graded], tuple[int, Received]] = {}
    lost: list[tuple[int, Received]] = []
    numbers = itertools.count()

    def hand_out() -> None:
        for found in waiting:
            assert found.job is not None
            number = next(numbers)
            try:
                given[workers().submit(found.job)] = number, found
            except BrokenExecutor:
                lost.append((number, found))
        waiting.clear()

    def taken(future: Future[Graded]) -> Iterator[tuple[Received, Graded]]:
        number, found = given.pop(future)
        try:
            yield found, future.result()
        except BrokenExecutor:
            lost.append((number, found))
        except UsageError:  # no hand-in's fault: it would be the same for all
            raise
        except Exception as bug:  # one hand-in never stops the class
            yield found, unexpected(found, bug)

    for found in received:
        waiting.append(found)
        large = sum(map(_weight, waiting)) > MOST_WAITING
        if large or ready():
            hand_out()
        while sum(_weight(found) for _, found in given.values()) > MOST_WAITING:
            for future in wait(given, return_when=FIRST_COMPLETED).done:
                yield from taken(future)
        done = [future for future in given if future.done()]
        if len(done) >= ENOUGH or len(given) - len(done) >= ENOUGH:
            for future in done:
                yield from taken(future)
    hand_out()
    for future in as_completed(list(given)):
        yield from taken(future)
    return [found for _, found in sorted(lost, key=lambda one: one[0])]


def _weight(found: Received) -> int:
    """Characters of a hand-in: pictures, for the most part."""
    assert found.job is not None
    return found.job.weight


def _unexpected(exercise: Exercise, released: Notebook, found: Received, bug: BaseException) -> Graded:
    problem = f"grading it failed ({type(bug).__name__}: {bug})"[:300]
    return not_graded(exercise, found.student, released, Finding("error", "worker", problem), found.findings)


def _pool(workers: int, sandbox: Sandbox, method: str) -> ProcessPoolExecutor:
    """Workers that share `sandbox`. Forked while this process has one thread, so that modules are loaded once."""
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(workers, context, initializer=_set_sandbox, initargs=(sandbox, os.getpid()))
    pool.submit(int).result()
    return pool


def _alone(workers: Workers, found: Received, unexpected: Callable[[Received, Exception], Graded]) -> Graded:
    """A hand-in whose worker died, perhaps of another one."""
    assert found.job is not None
    try:
        return workers.alone(found.job)
    except UsageError:
        raise
    except Exception as bug:
        return unexpected(found, bug)


# --- after ------------------------------------------------------------------------------------------------------------


def _write(course: Course, exercise: Exercise, marks: Marks, found: Received, graded: Graded) -> None:
    """The notebook, the marks and the page; the verdict last, since it says that all is done."""
    student, slug = found.student, exercise.slug
    folder = course.folder("autograded") / student / slug
    history.keep(folder, graded.verdict)
    _emptied(folder)
    write_whole(folder / f"{slug}.ipynb", dumps_by_cell(graded.notebook))
    time = "" if found.timestamp is None else found.timestamp.strftime("%Y-%m-%d %H:%M:%S.%f %Z").strip() + "\n"
    returning.keep(folder, found.secret, time)
    comments, penalty = marks.write(graded.verdict, found.timestamp, graded.answered)
    page = write_feedback(course, graded, comments, penalty)
    returning.lay_beside(page, found.secret, time)
    write_whole(folder / VERDICT, graded.verdict.to_json())


def _emptied(folder: Path) -> None:
    """Take away what an earlier grading left, but for the lines on earlier hand-ins."""
    if not folder.exists():
        folder.mkdir(parents=True)
        return
    for path in folder.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o644)  # nbgrader makes its files read-only
    returning.clear(folder, but=(HISTORY,))


def write_feedback(course: Course, graded: Graded, comments: Mapping[str, str], penalty: float) -> Path:
    """The student's page at feedback/<student>/<slug>/<slug>.html."""
    from graders.reports.feedback import feedback_page  # whose colours load while the workers grade

    verdict, slug = graded.verdict, graded.verdict.assignment
    folder = course.folder("feedback") / verdict.student / slug
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{slug}.html"
    path.unlink(missing_ok=True)
    write_whole(path, feedback_page(verdict, answers_in(graded.notebook), comments, penalty))
    return path


def answers_in(notebook: Notebook) -> list[tuple[str, str]]:
    """The answer cells of a notebook: grade id and source, in order."""
    return [
        (cell["metadata"]["nbgrader"]["grade_id"], "".join(cell["source"]))
        for cell in notebook["cells"]
        if cell["metadata"].get("nbgrader", {}).get("solution")
    ]
