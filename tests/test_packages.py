"""What leaves the house: students' wheel, released notebooks, and the arrows between the rooms."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from graders.authoring import load_exercise, slugs

ROOT = Path(__file__).parents[1]
RELEASED = [ROOT / "release" / slug / f"{slug}.ipynb" for slug in slugs()]


def bodies(slug: str) -> list[str]:
    """The lines of a right answer that are long enough to give it away."""
    lines = [line.strip() for answer in load_exercise(slug).answers.values() for line in answer.solution.splitlines()]
    return [
        line for line in lines if len(line) > 30 and not line.endswith(":") and not line.startswith(("#", "import"))
    ]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, zipfile.ZipFile]:
    """Both distributions, built."""
    out = tmp_path_factory.mktemp("wheels")
    for project in (ROOT, ROOT / "course"):
        command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(out), str(project)]
        subprocess.run(command, check=True, capture_output=True)
    return {path.name.split("-")[0]: zipfile.ZipFile(path) for path in out.glob("*.whl")}


@pytest.mark.slow
def test_students_wheel_holds_the_course_and_no_answer(wheels):
    """Only course/ is in it, and no line of a reference."""
    wheel = wheels["qkv_course"]
    names = wheel.namelist()
    assert "course/lessons/fused_self_attention.md" in names
    assert all(name.startswith(("course/", "qkv_course-")) for name in names)
    text = "\n".join(wheel.read(name).decode("utf-8", "replace") for name in names)
    for slug in slugs():
        assert [line for line in bodies(slug) if line in text] == []


@pytest.mark.slow
def test_graders_wheel_holds_what_grading_needs(wheels):
    """Templates, schema and the sandbox's inside travel with it; lessons and tests do not."""
    names = wheels["qkv_graders"].namelist()
    for name in (
        "graders/verdict.schema.json",
        "graders/sandbox/inside/zygote.py",
        "graders/exercises/attention_shapes.py",
    ):
        assert name in names
    assert not [name for name in names if name.startswith(("course/", "tests/"))]


@pytest.mark.parametrize("path", RELEASED, ids=lambda path: path.stem)
def test_release_holds_no_answer_and_no_hidden_check(path):
    """No line of a reference, no hidden region, no output."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    text = "\n".join("".join(cell["source"]) for cell in notebook["cells"])
    assert [line for line in bodies(path.stem) if line in text] == []
    for word in ("HIDDEN", "BEGIN SOLUTION", "graders.instructor"):
        assert word not in text
    assert not [cell for cell in notebook["cells"] if cell.get("outputs")]


def test_release_and_source_hold_nothing_but_notebooks():
    """nbgrader copies every other file in source/ to students."""
    for name in ("source", "release"):
        found = {str(path.relative_to(ROOT / name)) for path in (ROOT / name).rglob("*") if path.is_file()}
        visible = {path for path in found if ".ipynb_checkpoints" not in path}
        assert visible == {f"{slug}/{slug}.ipynb" for slug in slugs()}


@pytest.mark.slow
def test_committed_notebooks_are_fresh():
    """source/ and release/ are, byte for byte, what the lessons and exercises give."""
    from graders.freshness import stale
    from graders.settings import open_course

    assert stale(open_course(ROOT)) == []


def test_arrows_point_one_way():
    """course never imports graders, the sandbox no exercise, and what runs beside students nothing of ours."""
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_sandboxed_process_cannot_name_an_answer():
    """Imported as it is in the child, the code inside pulls in neither graders nor an exercise."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'graders' / 'sandbox')!r})\n"
        "import inside.zygote, inside.cells, inside.calls, inside.wire, inside.layers\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'graders'])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_dependency_admits_the_oldest_python_that_we_promise():
    """`requires-python` of all that `make` installed lets in the first 3.11: Debian 12 has 3.11.2."""
    wanted = {found.metadata["Name"]: found.metadata.get("Requires-Python") for found in distributions()}
    newer = {name: told for name, told in wanted.items() if told and not SpecifierSet(told).contains("3.11.0")}
    assert newer == {}
