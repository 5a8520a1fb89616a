"""Intake: a folder handed in becomes a clean notebook, rebuilt from the released one, or a finding with its reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from graders.intake.cells import grade_ids
from graders.intake.folder import find_notebook, submitted_at
from graders.intake.reading import MAX_BYTES, Notebook, NotGradable, read_notebook
from graders.intake.rebuilding import HandIn, executable, rebuild
from graders.verdict import Finding

__all__ = [
    "MAX_BYTES",
    "HandIn",
    "NotGradable",
    "executable",
    "find_notebook",
    "grade_ids",
    "read_notebook",
    "rebuild",
    "receive",
    "submitted_at",
]


def receive(folder: Path, slug: str, released: Notebook) -> HandIn:
    """What the student handed in for assignment `slug` in `folder`, ready to be run.

    Raises NotGradable where there is nothing to grade.
    """
    path, found = find_notebook(folder, slug, grade_ids(released))
    submitted, repairs = read_notebook(path)
    handin = rebuild(submitted, released)
    findings = [_weighed(finding, handin, path.parent) for finding in found]
    return replace(handin, findings=(*findings, *repairs, *handin.findings))


def _weighed(finding: Finding, handin: HandIn, folder: Path) -> Finding:
    """A note about the folder becomes a warning where the notebook needs what was left out."""
    left_out = finding.code == "other-version" and not handin.answered
    needed = finding.code == "python-files" and _imports_one_of(handin, {file.stem for file in folder.glob("*.py")})
    return replace(finding, severity="warning") if left_out or needed else finding


def _imports_one_of(handin: HandIn, modules: set[str]) -> bool:
    imported = r"^[ \t]*(?:from|import|%run)[ \t]+([\w]+)"
    return any(modules & set(re.findall(imported, source, re.MULTILINE)) for _, source in executable(handin.notebook))
