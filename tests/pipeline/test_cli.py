"""The `qkv` command: exit codes, JSON, and bad input told in one line."""

from __future__ import annotations

import json
import shutil

import pytest
from jsonschema import validate

from graders.ahead import needs_sandbox
from graders.authoring import load_exercise
from graders.build import adopt, digest, load
from pipeline.conftest import ROOT, hand_in, one_line, released, run, solved

SLUG = "attention_shapes"
SCHEMA = json.loads((ROOT / "graders" / "verdict.schema.json").read_text())


@pytest.fixture(scope="module")
def course(course_of):
    """One course for commands that change nothing in it."""
    return course_of(SLUG)


@pytest.mark.parametrize("command", ["build", "release", "grade", "judge", "learn", "solution", "adopt"])
def test_unknown_slug_is_one_line_that_lists_the_known(course, command):
    """A slug that does not exist: what was found, what would be right."""
    more = [str(ROOT / "pyproject.toml")] if command in ("judge", "learn") else []
    line = one_line(run(course.root, "qkv", command, "atention", *more), 2)
    assert "'atention'" in line
    assert SLUG in line


@pytest.mark.parametrize("command", [("build",), ("grade", SLUG), ("check", "x.ipynb")])
def test_folder_that_is_no_course_says_which_is(tmp_path, command):
    """Outside of a course folder every command says where to go, and writes nothing."""
    line = one_line(run(tmp_path, "qkv", *command), 2)
    assert "nbgrader_config.py" in line
    assert list(tmp_path.iterdir()) == []


def test_check_of_a_file_that_is_no_notebook(course, tmp_path):
    """Not JSON: one line, exit code 3."""
    path = tmp_path / "notes.ipynb"
    path.write_text("dear instructor,")
    assert "JSON" in one_line(run(course.root, "qkv", "check", str(path)), 3)
    assert "no file" in one_line(run(course.root, "qkv", "check", str(tmp_path / "none.ipynb")), 2)


def test_check_writes_a_verdict_that_fits_the_schema(course, tmp_path):
    """Full marks is 0, less is 1, and the JSON is what the schema says, for the student who was named."""
    for notebook, code, score in ((solved(SLUG), 0, 20.0), (released(SLUG), 1, 0.0)):
        path, out = tmp_path / "a.ipynb", tmp_path / "verdict.json"
        path.write_text(json.dumps(notebook), encoding="utf-8")
        done = run(course.root, "qkv", "check", str(path), "--student", "ada", "--json", str(out))
        verdict = json.loads(out.read_text())
        validate(verdict, SCHEMA)
        assert (done.returncode, verdict["score"], verdict["student"]) == (code, score, "ada"), done.stderr
        assert not (course.folder("autograded") / "ada").exists()


def test_judge_takes_many_files_and_lists_verdicts_in_their_order(tmp_path):
    """Plain Python files, no notebook and no course folder."""
    right = tmp_path / "right.py"
    right.write_text("".join(line for c in solved(SLUG)["cells"] if c["id"] == SLUG for line in c["source"]))
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def attention_shapes(*sizes):\n    return {}\n")
    broken = tmp_path / "broken.py"
    broken.write_text("def attention_shapes(:\n")
    out = tmp_path / "verdicts.json"
    done = run(tmp_path, "qkv", "judge", SLUG, str(wrong), str(right), str(broken), "--json", str(out))
    verdicts = json.loads(out.read_text())
    assert done.returncode == 1, done.stderr
    assert [v["student"] for v in verdicts] == ["wrong", "right", "broken"]
    assert [v["score"] for v in verdicts] == [0.0, 20.0, 0.0]
    for verdict in verdicts:
        validate(verdict, SCHEMA)
    assert run(tmp_path, "qkv", "judge", SLUG, str(right)).returncode == 0
    assert "no file" in one_line(run(tmp_path, "qkv", "judge", SLUG, "nowhere.py"), 2)


def test_sandbox_none_must_be_asked_for_twice(tmp_path):
    """Walls come off only by a second word, and the verdict says so."""
    answer = tmp_path / "a.py"
    answer.write_text("def attention_shapes(*sizes):\n    return {}\n")
    done = run(tmp_path, "qkv", "judge", SLUG, str(answer), "--sandbox", "none")
    assert done.returncode == 2
    assert "--i-trust-this-code" in done.stderr
    words = ("--sandbox", "none", "--i-trust-this-code", "--json", "-")
    done = run(tmp_path, "qkv", "judge", SLUG, str(answer), *words)
    assert json.loads(done.stdout)[0]["sandbox"] == "none"


def test_no_hand_ins_and_no_release_say_what_to_do(course_of):
    """Grading before collecting, and before releasing."""
    course = course_of(SLUG)
    assert "submitted/<student>/attention_shapes" in one_line(run(course.root, "qkv", "grade", SLUG), 2)
    shutil.rmtree(course.folder("release"))
    assert "qkv release attention_shapes" in one_line(run(course.root, "qkv", "grade", SLUG), 2)
    hand_in(course, "a", SLUG, solved(SLUG))
    assert "qkv release attention_shapes" in one_line(run(course.root, "qkv", "grade", SLUG), 2)
    assert not needs_sandbox(course, SLUG)


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        (
            "nbgrader_config.py",
            "c = get_config()\nc.QKV.memory = 'large'\n",
            "in nbgrader_config.py, The 'memory' trait",
        ),
        ("gradebook.db", "nothing that SQLite wrote", "file is not a database"),
    ],
    ids=["configuration", "gradebook"],
)
def test_file_of_the_course_that_is_broken_is_named(course_of, file, text, words):
    """Neither is a fault of ours, and neither takes a traceback to say."""
    course = course_of(SLUG)
    hand_in(course, "a", SLUG, solved(SLUG))
    (course.root / file).write_text(text)
    assert words in one_line(run(course.root, "qkv", "grade", SLUG), 2)


def test_build_never_overwrites_a_hand_edit_and_adopt_keeps_it(course_of, tmp_path):
    """An edited source notebook stops the build with the cell's name; its text goes back into the lesson."""
    course = course_of(SLUG)
    path = course.folder("source") / SLUG / f"{SLUG}.ipynb"
    notebook = load(path)
    cell = next(c for c in notebook["cells"] if c["cell_type"] == "markdown")
    cell["source"] = ["# My own heading\n", "\n", "And my own words.\n"]
    path.write_text(json.dumps(notebook))
    line = one_line(run(course.root, "qkv", "build", SLUG), 2)
    assert cell["id"] in line
    assert "qkv adopt" in line
    assert load(path) == notebook
    lesson = tmp_path / "lesson.md"
    shutil.copy(ROOT / "course" / "lessons" / f"{SLUG}.md", lesson)
    assert adopt(load_exercise(SLUG), notebook, lesson) == [f"cell {cell['id']}"]
    assert "And my own words." in lesson.read_text()


def test_adopt_brings_back_what_build_made(tmp_path):
    """A notebook that nobody edited changes nothing; one that JupyterLab saved, with outputs and versions, neither."""
    exercise = load_exercise(SLUG)
    lesson = tmp_path / "lesson.md"
    shutil.copy(ROOT / "course" / "lessons" / f"{SLUG}.md", lesson)
    before = lesson.read_text()
    notebook = load(ROOT / "source" / SLUG / f"{SLUG}.ipynb")
    made = digest(notebook)
    notebook["metadata"]["language_info"] = {"name": "python", "version": "3.13.1"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["execution_count"] = 7
    assert digest(notebook) == made
    assert adopt(exercise, notebook, lesson) == []
    assert lesson.read_text() == before


def test_exercise_with_an_error_is_the_authors_one_line(tmp_path):
    """An exercise file that does not load names the file and the line."""
    for name in ("graders", "course"):
        shutil.copytree(ROOT / name, tmp_path / name)
    path = tmp_path / "graders" / "exercises" / f"{SLUG}.py"
    path.write_text(path.read_text() + "\nraise ValueError('half-finished')\n")
    shutil.copy(ROOT / "nbgrader_config.py", tmp_path)
    done = run(tmp_path, "python", "-m", "graders.cli", "build", SLUG)
    line = one_line(done, 2)
    assert f"graders/exercises/{SLUG}.py" in line
    assert "half-finished" in line
    assert not (tmp_path / "source").exists()


def test_solution_is_a_notebook_with_answers_and_without_marks(course, tmp_path):
    """The worked notebook has every answer, no hidden check and no metadata of nbgrader."""
    out = tmp_path / "worked.ipynb"
    assert run(course.root, "qkv", "solution", SLUG, "--output", str(out)).returncode == 0
    text = out.read_text()
    assert "X_kv" in text
    for word in ("HIDDEN", "BEGIN SOLUTION", "NotImplementedError", "grade_id"):
        assert word not in text


def test_help_names_every_command_and_each_has_examples(tmp_path):
    """`qkv --help` and each command's help answer without a course folder."""
    done = run(tmp_path, "qkv", "--help")
    for command in ("build", "release", "grade", "check", "judge", "learn", "adopt", "solution", "new"):
        assert command in done.stdout
        text = run(tmp_path, "qkv", command, "--help").stdout
        assert f"qkv {command}" in text
        assert "Reads" in text or "Writes" in text


def test_check_of_a_broken_hand_in_is_a_verdict_with_the_reason(course, tmp_path):
    """A file named as an assignment that cannot be read gives zero with a finding, for CI to report; exit code 3."""
    path, out = tmp_path / f"{SLUG}.ipynb", tmp_path / "verdict.json"
    path.write_text("<<<<<<< HEAD\n{}", encoding="utf-8")
    done = run(course.root, "qkv", "check", str(path), "--json", str(out))
    verdict = json.loads(out.read_text())
    validate(verdict, SCHEMA)
    assert (done.returncode, verdict["score"]) == (3, 0.0), done.stderr
    assert "merge conflict" in verdict["findings"][0]["message"]


def test_answer_file_is_not_read_beyond_its_bound(tmp_path):
    """Three gigabytes of nothing cost no memory."""
    answer = tmp_path / "answer.py"
    with answer.open("wb") as file:
        file.truncate(3 << 30)
    done = run(tmp_path, "qkv", "judge", SLUG, str(answer))
    assert done.returncode == 3
    assert "more than the 1048576 bytes" in done.stdout
