"""The verdict on one hand-in, as data: what every report reads and nothing else writes.

Its JSON form is described by `graders/verdict.schema.json`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "error", "timeout", "not_run"]
Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Finding:
    """Something a person should know.

    `error`: could not be graded; `warning`: a person should look; `info`: repaired.
    """

    severity: Severity
    code: str
    message: str


INSTRUCTORS_ONLY = frozenset({"another-students-numbers"})
"""Codes of findings that are about someone else too, so that no student's page shows them."""


@dataclass(frozen=True)
class CheckResult:
    """One check's outcome.

    `message` is the whole text that a student reads; `misconceptions` are ids, likeliest first.
    """

    id: str
    title: str
    points: float
    score: float
    status: Status
    message: str = ""
    misconceptions: tuple[str, ...] = ()
    expected_shape: tuple[int, ...] | None = None
    got_shape: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Verdict:
    """All that grading found out about one hand-in.

    `seed` repeats its hidden inputs, `seconds` is what grading took, `fingerprint` tells the same hand-in again.
    `instances` holds the version and the term of the student's own numbers, None where all have the same.
    """

    student: str
    assignment: str
    score: float
    max_score: float
    sandbox: str
    checks: tuple[CheckResult, ...]
    findings: tuple[Finding, ...] = ()
    seed: int = 0
    seconds: float = 0.0
    fingerprint: str = ""
    instances: dict[str, Any] | None = None

    @property
    def graded(self) -> bool:
        """Whether the marks come from comparing numbers; False means zero because nothing could be compared."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def needs_person(self) -> bool:
        """Whether an instructor should look before the marks go out."""
        return any(finding.severity != "info" for finding in self.findings)

    def check(self, id: str) -> CheckResult:
        """The result of the check `id`."""
        return next(result for result in self.checks if result.id == id)

    def to_json(self) -> str:
        """The verdict as JSON text."""
        text = json.dumps(self, default=vars, indent=1, ensure_ascii=False) + "\n"
        # Names of files that are no UTF-8 reach Python with lone surrogates, which no file could hold.
        return text.encode("utf-8", "replace").decode("utf-8")

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """The verdict that `to_json` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Verdict:
        """The verdict whose JSON form is `data`; KeyError or TypeError where it is none."""
        checks = tuple(_check_from(check) for check in data["checks"])
        findings = tuple(Finding(**finding) for finding in data["findings"])
        verdict = cls(**{**data, "checks": checks, "findings": findings})
        _expect(verdict, str, "student", "assignment", "sandbox", "fingerprint")
        _expect(verdict, (int, float), "score", "max_score", "seed", "seconds")
        return verdict


def _check_from(data: dict[str, Any]) -> CheckResult:
    shapes = {name: None if data[name] is None else tuple(data[name]) for name in ("expected_shape", "got_shape")}
    result = CheckResult(**{**data, **shapes, "misconceptions": tuple(data["misconceptions"])})
    _expect(result, str, "id", "title", "status", "message")
    _expect(result, (int, float), "points", "score")
    return result


def _expect(told: object, kinds: type | tuple[type, ...], *names: str) -> None:
    """TypeError where a file that may have been edited holds something else."""
    for name in names:
        if not isinstance(getattr(told, name), kinds):
            raise TypeError(f"{name} is a {type(getattr(told, name)).__name__}")
