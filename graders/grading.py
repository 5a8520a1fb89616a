"""Grade one hand-in: cells into the sandbox, checks out here, a verdict. Pure but for the process it asks.

No mark is given for what the student's process says of itself: each point is earned by a comparison made here.
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from graders.authoring import Check, CheckFailed, Exercise, Misconception
from graders.diagnosis import Earlier, explain
from graders.intake.cells import defined
from graders.invariants import broken
from graders.learned import behind
from graders.memory import bounded_memory
from graders.reports.message import message_for
from graders.reports.quote import shown_type
from graders.sandbox.box import Sandbox, Stopped
from graders.sandbox.session import CellRun, Session
from graders.student import Observation, Student, StudentError
from graders.verdict import CheckResult, Finding, Status, Verdict


@dataclass(frozen=True)
class Job:
    """All that grading one hand-in needs.

    `sources` are the cells to run, in order; no id is believed but the roster's and its `aliases`.
    """

    exercise: Exercise
    student: str
    sources: tuple[str, ...]
    findings: tuple[Finding, ...] = ()
    seed: int = field(default_factory=lambda: secrets.randbits(48))
    reveal: bool = False
    aliases: tuple[str, ...] = ()
    classmates: tuple[str, ...] = ()


DIAGNOSIS_SECONDS = 8.0
"""Work spent on explaining one hand-in's failures: an answer that nothing explains must not hold up a class."""

LEARNED_SECONDS = 20.0
"""Time for learned answers within that, which may sleep: they were students' once."""

MOST_AXES = 64
"""Of a shape in a verdict, as NumPy's arrays have at most; a student who is asked for shapes may name a longer one."""


@dataclass
class Told:
    """What the messages so far have said: the sentence of each idea that was given in full, with its check.

    `left` are the seconds that explaining may still take, `earlier` is what speaks for or against an idea. `raised` are
    the errors that ended cells, by the names that these should have defined.
    """

    ideas: dict[str, str] = field(default_factory=dict)
    left: float = DIAGNOSIS_SECONDS
    raised: Mapping[str, str] = field(default_factory=dict)
    earlier: Earlier = field(default_factory=Earlier)


def grade(job: Job, sandbox: Sandbox) -> tuple[Verdict, list[CellRun]]:
    """The verdict on `job`, and what each of its cells put out."""
    started = time.monotonic()
    with Session(sandbox, job.sources) as session, behind(sandbox, LEARNED_SECONDS), bounded_memory():
        runs = session.run()
        told = Told(raised=_raised(job.sources, runs))
        judged = [judge(job, check, session, told) for check in job.exercise.checks.values()]
    results = [result for result, _ in judged]
    noticed = dict.fromkeys(finding for _, found in judged for finding in found)
    findings = (*job.findings, *noticed, *_stopped_cells(runs))
    verdict = Verdict(
        student=job.student,
        assignment=job.exercise.slug,
        score=sum(result.score for result in results),
        max_score=job.exercise.max_score,
        sandbox=sandbox.kind,
        checks=tuple(results),
        findings=findings,
        seed=job.seed,
        seconds=round(time.monotonic() - started, 3),
        instances=job.exercise.instances,
    )
    return verdict, runs


def judge(job: Job, check: Check, session: Session, told: Told) -> tuple[CheckResult, list[Finding]]:
    """One check's result, whatever happens in it, and what a person should know besides.

    `told` is what earlier messages said; this one's ideas are added.
    """
    student = Student(
        session.perform, id=job.student, aliases=job.aliases, classmates=job.classmates, raised=told.raised
    )
    result, findings = _outcome(job, check, student, told)
    return result, [*findings, *(Finding(*noted) for noted in student.noted)]


def _outcome(job: Job, check: Check, student: Student, told: Told) -> tuple[CheckResult, list[Finding]]:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            remark = check(student, job.exercise.rng(check.id, job.seed))
    except CheckFailed as failure:
        findings = [Finding("warning", failure.finding, failure.what)] if failure.finding else []
        return _not_passed(job, check, student, failure, "failed", told), findings
    except StudentError as error:
        return _not_passed(job, check, student, error, "error", told), []
    except Stopped as stop:
        return _result(check, _STATUS.get(stop.cause, "error"), stop.reason, job=job), []
    except Exception as bug:
        # An author's check met something that it does not handle: no verdict is no marks, and a person is told.
        what = f"the check {check.id} could not judge this answer ({type(bug).__name__}: {bug})"[:300]
        reason = "this check could not judge your answer; your instructor is told"
        return _result(check, "error", reason, job=job), [Finding("warning", "check-broke", what)]
    told.earlier.note(check.id, None)
    return _result(check, "passed", remark or None, job=job, score=check.points), []


def _raised(sources: Sequence[str], runs: Sequence[CellRun]) -> dict[str, str]:
    """The type of the error that ended a cell, for each name that the cell was to define; a stub's says nothing."""
    ended = [
        (source, str(output["ename"]))
        for source, run in zip(sources, runs, strict=False)
        for output in run.outputs
        if output["output_type"] == "error" and output["ename"] != "NotImplementedError"
    ]
    # The name of an error is text of theirs, and may be made where hidden inputs are seen.
    typed = "\n".join(sources)
    return {name: shown_type(type, typed) for source, type in ended for name in defined(source)}


_STATUS: dict[str, Status] = {"timeout": "timeout", "not_run": "not_run"}


def _not_passed(
    job: Job,
    check: Check,
    student: Student,
    outcome: CheckFailed | StudentError,
    status: Status,
    told: Told,
) -> CheckResult:
    named, also = _explained(job, check, student, status, told)
    # By id: the answer of an idea about a value may be a dict, and then the idea has no hash.
    ids = dict.fromkeys(part.id for idea in named for part in (idea.parts or (idea,)))
    more: dict[str, Any] = {"misconceptions": tuple(ids)}
    if isinstance(outcome, CheckFailed):
        more |= {"expected_shape": _shape(outcome.expected_shape), "got_shape": _shape(outcome.got_shape)}
    spoken: dict[str, Any] = {"named": named, "also": also, "told": dict(told.ideas), "trace": student.trace}
    for idea in named[:1]:
        for part in idea.parts or (idea,):
            told.ideas.setdefault(part.sentence, check.id)
    return _result(check, status, outcome, job=job, **spoken, **more)


def _explained(
    job: Job, check: Check, student: Student, status: Status, told: Told
) -> tuple[list[Misconception], list[str]]:
    """The ideas that explain a failure, or which invariants fail; neither once the time for it is used up."""
    if told.left <= 0:
        return [], []
    started = time.thread_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            named = explain(job.exercise, check, job.seed, student.trace, told.earlier, told.left)
            told.earlier.note(check.id, [part.id for idea in named[:1] for part in idea.parts or (idea,)])
            return named, [] if named or status == "error" else list(broken(job.exercise, check, job.seed, student))
    except Exception:  # a diagnosis that fails costs the student its words, never their marks
        return [], []
    finally:
        told.left -= time.thread_time() - started


def _shape(shape: Sequence[int] | None) -> tuple[int, ...] | None:
    return None if shape is None or len(shape) > MOST_AXES else tuple(int(size) for size in shape)


def _result(
    check: Check,
    status: Status,
    outcome: CheckFailed | StudentError | str | None,
    *,
    job: Job,
    score: float = 0.0,
    named: Sequence[Misconception] = (),
    also: Sequence[str] = (),
    told: Mapping[str, str] | None = None,
    trace: Sequence[Observation] = (),
    **more: Any,
) -> CheckResult:
    source = "\n".join(job.sources)
    spoken: dict[str, Any] = {"misconceptions": named, "also": also, "told": told, "trace": trace}
    message = message_for(check, status, outcome, source=source, reveal=job.reveal, **spoken)
    return CheckResult(check.id, check.title, check.points, score, status, message, **more)


def _stopped_cells(runs: Sequence[CellRun]) -> list[Finding]:
    return [
        Finding("info", "cell-stopped", f"code cell {number}: {run.stopped}")
        for number, run in enumerate(runs, start=1)
        if run.stopped
    ]


def ungraded(exercise: Exercise, student: str, finding: Finding, findings: Sequence[Finding] = ()) -> Verdict:
    """The verdict on a hand-in that cannot be graded: zero, with the reason, for a person to see."""
    job = Job(exercise, student, ())
    results = [_result(check, "not_run", f"not run: {finding.message}", job=job) for check in exercise.checks.values()]
    return Verdict(student, exercise.slug, 0.0, exercise.max_score, "none", tuple(results), (finding, *findings))
