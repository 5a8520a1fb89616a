"""The verdict's JSON form and its schema."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

import graders.verdict
from graders import history
from graders.verdict import CheckResult, Finding, Verdict

SCHEMA = json.loads(Path(graders.verdict.__file__).with_name("verdict.schema.json").read_text(encoding="utf-8"))
CHECK = CheckResult("shapes", "Shapes", 2, 0.5, "failed", "✗ shapes", ("transposes",), (2, 3), (3, 2))
VERDICT = Verdict(
    "ada", "attention_shapes", 0.5, 20, "process-only", (CHECK,), (Finding("info", "renamed", "x.ipynb"),), 7, 0.25
)


def errors(data: dict) -> list[str]:
    """Where `data` breaks the schema."""
    return [error.json_path for error in Draft202012Validator(SCHEMA).iter_errors(data)]


def changed(**values) -> dict:
    """The verdict's JSON form with other values at the top."""
    return {**json.loads(VERDICT.to_json()), **values}


def test_schema_is_a_schema():
    """The schema itself keeps the rules of its draft."""
    Draft202012Validator.check_schema(SCHEMA)


def test_verdict_keeps_its_schema():
    """What `to_json` writes is what the schema describes, a verdict without checks included."""
    assert errors(json.loads(VERDICT.to_json())) == []
    assert errors(json.loads(Verdict("ada", "x", 0, 0, "none", ()).to_json())) == []


def test_schema_names_every_field():
    """A field that is added to the dataclasses is added to the schema too."""
    written = json.loads(VERDICT.to_json())
    assert set(SCHEMA["properties"]) == set(written)
    assert set(SCHEMA["$defs"]["check"]["properties"]) == set(written["checks"][0])
    assert set(SCHEMA["$defs"]["finding"]["properties"]) == set(written["findings"][0])


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("$", {"grade": 3}),
        ("$.score", {"score": -1}),
        ("$.score", {"score": "1"}),
        ("$.sandbox", {"sandbox": "magic"}),
        ("$.findings[0].severity", {"findings": [{"severity": "fatal", "code": "x", "message": ""}]}),
        ("$.checks[0].status", {"checks": [{**json.loads(VERDICT.to_json())["checks"][0], "status": "ok"}]}),
        ("$.checks[0].got_shape[0]", {"checks": [{**json.loads(VERDICT.to_json())["checks"][0], "got_shape": [-1]}]}),
    ],
)
def test_schema_rejects(path, values):
    """Unknown fields, negative marks and words outside the lists are no verdict."""
    assert errors(changed(**values)) == [path]


def test_json_round_trip():
    """`from_json` gives back what `to_json` wrote, shapes as tuples."""
    assert Verdict.from_json(VERDICT.to_json()) == VERDICT


def test_json_can_always_be_written():
    """A file name that is no UTF-8 arrives with lone surrogates; the verdict can still be stored."""
    verdict = Verdict("ada", "x", 0, 0, "none", (), (Finding("warning", "name", "caf\udce9.ipynb"),))
    assert "caf?.ipynb" in verdict.to_json().encode("utf-8").decode("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "[]",
        "{}",
        *(json.dumps(changed(**{name: None})) for name in ("student", "score", "seconds", "checks", "findings")),
        json.dumps(changed(score="20")),
        json.dumps(changed(checks=[{**json.loads(VERDICT.to_json())["checks"][0], "score": None}])),
    ],
    ids=lambda text: text[:3] if len(text) < 1000 else "deep",
)
def test_file_that_was_edited_is_no_verdict(text, tmp_path):
    """Whoever reads it goes on without, and the hand-in is graded anew."""
    (tmp_path / "verdict.json").write_text(text)
    (tmp_path / "history.jsonl").write_text(f"{text}\n{json.dumps(json.loads(VERDICT.to_json()))}\n")
    assert history.verdict_in(tmp_path) is None
    assert history.earlier(tmp_path) == [VERDICT]
