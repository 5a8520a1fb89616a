"""Intake: every kind of hand-in becomes a clean notebook or a finding with its reason."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nbformat
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from submissions import CASES
from submissions.casebook import (
    Notebook,
    code,
    dumps,
    first_answer,
    insert_after,
    insert_before,
    marks,
    place,
    put,
    save,
    text,
    twin,
)

from graders.intake import (
    HandIn,
    NotGradable,
    executable,
    find_notebook,
    grade_ids,
    read_notebook,
    rebuild,
    receive,
    submitted_at,
)
from graders.intake import folder as intake_folder
from graders.intake.reading import tidy

SLUG = "fused_self_attention"
RIGHT = {
    SLUG: '''def fused_self_attention(X, W_qkv, scale):
    """Attention of X with itself, through one matrix."""
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(axis=-1, keepdims=True))
    return E / E.sum(axis=-1, keepdims=True) @ V''',
    "head_width": "head_width = 64",
}
STUBS = {
    SLUG: '''def fused_self_attention(X, W_qkv, scale):
    """Attention of X with itself, through one matrix."""
    # YOUR CODE HERE
    raise NotImplementedError()''',
    "head_width": "# YOUR CODE HERE\nraise NotImplementedError()",
}


# --- a small released notebook, by hand -------------------------------------------------------------------------------


def marked(id: str, source: str, **nbgrader) -> dict:
    """A code cell with nbgrader's metadata."""
    about = {"grade": False, "grade_id": id, "locked": False, "schema_version": 3, "solution": False, "task": False}
    return {**code(source, id), "metadata": {"nbgrader": {**about, **nbgrader}, "deletable": False}}


def markdown(id: str, source: str, **metadata) -> dict:
    """A text cell."""
    return {"cell_type": "markdown", "id": id, "metadata": metadata, "source": source}


def graded(id: str, points: int) -> dict:
    """A test cell as it is released, without its hidden half."""
    words = f"# {id}.\n# {points} points, decided by a hidden check after you hand in.\n# Nothing to run here."
    return marked(id, words, grade=True, locked=True, points=points)


def build(answers: dict[str, str]) -> Notebook:
    """The notebook with `answers` in its answer cells."""
    explained = {"grade_id": "explain", "grade": True, "solution": True, "locked": False, "task": False, "points": 5}
    cells = [
        markdown("intro", "# Fused self-attention"),
        code("import numpy as np", "imports"),
        marked(SLUG, answers[SLUG], solution=True),
        marked("see-shape", "print(fused_self_attention(np.eye(3), np.ones((3, 6)), 1.0).shape)", locked=True),
        graded("rows_sum_to_one", 2),
        graded("large_scores", 3),
        markdown("width", "How wide is a head?"),
        marked("head_width", answers["head_width"], solution=True),
        graded("width_is_right", 1),
        markdown("explain", answers.get("explain", "*Your words here.*"), nbgrader=explained),
        code("width_twice = 2 * 8", "playground"),
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


RELEASED = build(STUBS)
SOLVED = build({**RIGHT, "explain": "A query asks."})


def solved() -> Notebook:
    """A solved notebook that may be changed."""
    return copy.deepcopy(SOLVED)


def take(notebook: Notebook) -> HandIn:
    """What `rebuild` makes of `notebook`, with what must hold for every hand-in."""
    tidied, repairs = tidy(notebook)
    handin = rebuild(tidied, RELEASED)
    handin = replace(handin, findings=(*repairs, *handin.findings))
    assert_clean(handin)
    return handin


def assert_clean(handin: HandIn) -> None:
    """Graded and locked cells are the released ones, all cells are there once, nbformat has nothing to say."""
    assert fixed_cells(handin.notebook) == fixed_cells(RELEASED)
    ids = [cell["id"] for cell in handin.notebook["cells"]]
    assert len(set(ids)) == len(ids)
    released = [cell["id"] for cell in RELEASED["cells"]]
    assert [id for id in ids if id in released] == released
    assert all(not cell.get("outputs") for cell in handin.notebook["cells"])
    json.dumps(handin.notebook, ensure_ascii=False).encode()
    nbformat.validate(nbformat.from_dict(handin.notebook), relax_add_props=False)


def fixed_cells(notebook: Notebook) -> list[tuple]:
    """Everything that counts of the cells that are not the student's."""
    return [
        (cell["cell_type"], cell["id"], cell["metadata"], text(cell))
        for cell in notebook["cells"]
        if marks(cell) and not marks(cell)["solution"]
    ]


def run(handin: HandIn) -> dict:
    """The names that the hand-in's cells leave behind, each cell run as IPython would: an error ends that cell only."""
    names: dict = {}
    for _, source in executable(handin.notebook):
        with contextlib.suppress(BaseException), contextlib.redirect_stdout(None):
            exec(source, names)
    return names


def mark(handin: HandIn) -> str:
    """`full` or `zero` for the first answer."""
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(2, 5, 7)), rng.normal(size=(7, 9))
    reference: dict = {"np": np}
    exec(RIGHT[SLUG], reference)
    try:
        right = np.allclose(run(handin)[SLUG](X, W, 0.3), reference[SLUG](X, W, 0.3))
    except Exception:
        return "zero"
    return "full" if right else "zero"


def codes(handin: HandIn, *severities: str) -> set[str]:
    """The codes of the findings, of all severities or of some."""
    return {finding.code for finding in handin.findings if not severities or finding.severity in severities}


def refusal(call, *args) -> str:
    """The message of the NotGradable that `call` raises."""
    with pytest.raises(NotGradable) as caught:
        call(*args)
    assert caught.value.finding.severity == "error"
    return caught.value.finding.message


def cell_of(handin: HandIn, id: str) -> dict:
    """The rebuilt cell with `id`."""
    return next(cell for cell in handin.notebook["cells"] if cell["id"] == id)


# --- the casebook -----------------------------------------------------------------------------------------------------


def hand_in(case, tmp_path: Path) -> Path:
    """The folder that the case's student hands in."""
    folder = tmp_path / case.student / SLUG
    case.make(copy.deepcopy(RELEASED), solved(), folder)
    return folder


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: f"{case.id}-{case.name}")
def test_case_is_refused_with_a_reason_or_rebuilt_clean(case, tmp_path):
    """Whatever is handed in: the released tests, or a reason that a person can read."""
    folder = hand_in(case, tmp_path)
    try:
        assert_clean(receive(folder, SLUG, RELEASED))
    except NotGradable:
        assert "flag" in case.expect


@pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if case.kind in ("files", "formats", "cells")],
    ids=lambda case: f"{case.id}-{case.name}",
)
def test_case_earns_what_it_should(case, tmp_path):
    """Right answers keep full marks, others earn none, and a person is called where and only where one is needed."""
    folder = hand_in(case, tmp_path)
    try:
        handin = receive(folder, SLUG, RELEASED)
    except NotGradable:
        assert case.expect == {"flag", "zero"}
        return
    assert mark(handin) in case.expect
    warned = codes(handin, "warning") or submitted_at(folder)[1]
    assert not warned or "flag" in case.expect


CALLS_FOR_A_PERSON = {
    "A01": "renamed",
    "A12": "encoding",
    "A35": "metadata-missing",
    "A37": "two-versions",
    "A43": "answer-elsewhere",
    "A44": "missing-answer",
    "A95": "link",
    "C01": "renamed",
    "C04": "other-version",
    "C10": "metadata-missing",
    "C11": "encoding",
    "C20": "answer-elsewhere",
    "C23": "code-in-locked-cell",
    "n1": "python-files",
    "n3": "link",
}


@pytest.mark.parametrize("id", CALLS_FOR_A_PERSON)
def test_case_calls_for_a_person(id, tmp_path):
    """What cannot be settled without guessing is a warning with its own code."""
    assert CALLS_FOR_A_PERSON[id] in codes(receive(hand_in(CASES[id], tmp_path), SLUG, RELEASED), "warning")


NOTED = {
    "A18": "repaired",
    "A23": "repaired",
    "A38": "copied",
    "A39": "copied",
    "A46": "moved",
    "A47": "changed-test",
    "A48": "changed-points",
    "A50": "changed-type",
    "A51": "changed-type",
    "A52": "changed-type",
    "C26": "changed-type",
    "C28": "copied",
    "h3": "restored",
    "h4": "copied",
    "h6": "ignored-tag",
    "h7": "changed-marks",
}


@pytest.mark.parametrize("id", NOTED)
def test_case_is_noted(id, tmp_path):
    """What was repaired is said, and calls nobody."""
    assert NOTED[id] in codes(receive(hand_in(CASES[id], tmp_path), SLUG, RELEASED), "info")


REFUSED = {
    "A03": "no notebook submitted: the folder holds answer.txt",
    "A08": "merge conflict markers at line ",
    "C03": "version 1.ipynb, version 2.ipynb",
    "C05": "no cell of this assignment",
    "C14": "empty",
    "C15": "web page",
    "C16": "ends early",
    "C17": "nbformat 3",
    "C18": "nested too deeply",
    "C30": "symbolic link",
}


@pytest.mark.parametrize("id", REFUSED)
def test_case_is_refused_in_words(id, tmp_path):
    """A hand-in that cannot be graded says why, and where."""
    assert REFUSED[id] in refusal(receive, hand_in(CASES[id], tmp_path), SLUG, RELEASED)


# --- find_notebook ----------------------------------------------------------------------------------------------------


def test_conflict_is_named_by_its_line(tmp_path):
    """The line is that of the first marker in the file."""
    folder = hand_in(CASES["A08"], tmp_path)
    lines = (folder / f"{SLUG}.ipynb").read_text().splitlines()
    expected = f"line {lines.index('<<<<<<< HEAD') + 1};"
    assert expected in refusal(read_notebook, folder / f"{SLUG}.ipynb")


@pytest.mark.parametrize("name", ["Fused Self-Attention (1)", "fused_self_atention", "FUSED_SELF_ATTENTION", "ada_x"])
def test_renamed_notebook_is_found_and_named(name, tmp_path):
    """A close name or the assignment's cells are enough, and a person is told."""
    save(SOLVED, tmp_path, name)
    path, findings = find_notebook(tmp_path, SLUG, grade_ids(RELEASED))
    assert path.name == f"{name}.ipynb"
    assert [(finding.severity, finding.code) for finding in findings] == [("warning", "renamed")]
    assert name in findings[0].message


def test_renamed_notebook_is_found_without_knowing_the_release(tmp_path):
    """The signature's two arguments suffice: any notebook with grade ids may be meant."""
    save(SOLVED, tmp_path, "mine")
    save({**SOLVED, "cells": [code("1")]}, tmp_path, "scratch")
    assert find_notebook(tmp_path, SLUG)[0].name == "mine.ipynb"


def test_two_equal_copies_are_no_ambiguity(tmp_path):
    """The same file twice can be graded: either is the same."""
    save(SOLVED, tmp_path, "copy a")
    save(SOLVED, tmp_path, "copy b")
    assert find_notebook(tmp_path, SLUG)[0].name == "copy a.ipynb"


def test_notebook_of_another_assignment_is_named(tmp_path):
    """A folder with only a strange notebook says what it holds."""
    save({**SOLVED, "cells": [code("1")]}, tmp_path, "homework3")
    message = refusal(find_notebook, tmp_path, SLUG)
    assert "no notebook submitted" in message
    assert "homework3.ipynb" in message


def test_scratch_notebook_beside_is_not_mentioned(tmp_path):
    """A notebook that only shares the assignment's metadata and its prose is nobody's second version."""
    ours = {"qkv": {"assignment": SLUG}}
    save({**SOLVED, "metadata": ours}, tmp_path, SLUG)
    save({**SOLVED, "metadata": ours, "cells": [*SOLVED["cells"][:1], code("1/0")]}, tmp_path, "scratch")
    assert find_notebook(tmp_path, SLUG, grade_ids(RELEASED))[1] == []


def test_renamed_notebook_without_ids_is_known_by_its_assignment(tmp_path):
    """The assignment's name in our metadata is enough where every cell lost its marks."""
    lost = [{"cell_type": "code", "source": RIGHT[SLUG]}]
    save({"cells": lost, "metadata": {"qkv": {"assignment": SLUG}}, "nbformat": 4}, tmp_path, "final")
    assert find_notebook(tmp_path, SLUG, grade_ids(RELEASED))[0].name == "final.ipynb"


def test_missing_and_empty_folders_are_refused(tmp_path):
    """No folder and an empty one are no hand-in."""
    assert "does not exist" in refusal(find_notebook, tmp_path / "nobody", SLUG)
    assert "the folder is empty" in refusal(find_notebook, tmp_path, SLUG)


def test_linked_folder_is_refused(tmp_path):
    """A folder that is a link leads out of the hand-in."""
    save(SOLVED, tmp_path / "elsewhere", SLUG)
    (tmp_path / SLUG).symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in refusal(find_notebook, tmp_path / SLUG, SLUG)


def test_links_below_the_folder_are_named_and_not_followed(tmp_path):
    """A link to a folder that holds a notebook offers none."""
    save(SOLVED, tmp_path / "elsewhere", "mine")
    folder = tmp_path / SLUG
    folder.mkdir()
    (folder / ".hidden").symlink_to(tmp_path / "elsewhere")
    refusal(find_notebook, folder, SLUG)
    save(SOLVED, folder)
    _, findings = find_notebook(folder, SLUG)
    assert [(finding.severity, finding.code) for finding in findings] == [("warning", "link")]
    assert ".hidden" in findings[0].message


def test_link_in_a_circle_ends(tmp_path):
    """A link to the folder itself is one entry."""
    save(SOLVED, tmp_path, SLUG)
    (tmp_path / "again").symlink_to(tmp_path)
    assert find_notebook(tmp_path, SLUG)[0].name == f"{SLUG}.ipynb"


def test_named_pipe_is_no_notebook(tmp_path):
    """Reading a pipe would wait for ever."""
    os.mkfifo(tmp_path / f"{SLUG}.ipynb")
    assert "no ordinary file" in refusal(find_notebook, tmp_path, SLUG)
    assert "not an ordinary file" in refusal(read_notebook, tmp_path / f"{SLUG}.ipynb")


def test_hard_link_is_only_a_note(tmp_path):
    """File systems make hard links on their own when they save space."""
    save(SOLVED, tmp_path, SLUG)
    os.link(tmp_path / f"{SLUG}.ipynb", tmp_path / "same.txt")
    _, findings = find_notebook(tmp_path, SLUG)
    assert [(finding.severity, finding.code) for finding in findings] == [("info", "hard-link")]


def test_oversized_notebook_is_refused_unread(tmp_path):
    """A sparse file of 100 GB costs nothing but a refusal."""
    with open(tmp_path / f"{SLUG}.ipynb", "wb") as file:
        file.truncate(100 * 2**30)
    assert "107374182400 bytes" in refusal(find_notebook, tmp_path, SLUG)
    assert "107374182400 bytes" in refusal(read_notebook, tmp_path / f"{SLUG}.ipynb")


def test_oversized_file_beside_is_a_warning(tmp_path):
    """Data that nobody reads cost no mark."""
    save(SOLVED, tmp_path, SLUG)
    with open(tmp_path / "data.bin", "wb") as file:
        file.truncate(2**30)
    _, findings = find_notebook(tmp_path, SLUG)
    assert [(finding.severity, finding.code) for finding in findings] == [("warning", "oversized")]


def test_thousands_of_files_hide_nothing(tmp_path):
    """The notebook is found beside a package folder that was handed in by mistake."""
    save(SOLVED, tmp_path, SLUG)
    (tmp_path / "a").mkdir()
    for number in range(5200):
        (tmp_path / "a" / f"{number}.js").touch()
    assert find_notebook(tmp_path, SLUG)[0].name == f"{SLUG}.ipynb"


def test_many_large_notebooks_are_not_all_read(tmp_path, monkeypatch):
    """Forty that take seconds each, handed in beside the right one, would hold up the class."""
    read: list[str] = []
    monkeypatch.setattr(intake_folder, "MOST_READ", 100_000)
    monkeypatch.setattr(intake_folder, "read_notebook", lambda path: read.append(path.stem) or read_notebook(path))
    save(SOLVED, tmp_path, SLUG)
    for name in ("a", "b", "c", "d"):
        save({**SOLVED, "padding": "x" * 40_000}, tmp_path, name)
    find_notebook(tmp_path, SLUG)
    (tmp_path / f"{SLUG}.ipynb").unlink()
    find_notebook(tmp_path, SLUG)

    assert read == ["a", "b", "a", "b"]


def test_odd_file_names_fit_one_line(tmp_path):
    """A name with a line break, an escape sequence or bytes that are no text does not break a report."""
    save(SOLVED, tmp_path, SLUG)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\n\x1b[31m\xff")).symlink_to("/etc/hostname")
    _, (finding,) = find_notebook(tmp_path, SLUG)
    assert finding.message.isprintable()
    finding.message.encode()


# --- read_notebook ----------------------------------------------------------------------------------------------------


def test_windows_byte_is_named_with_its_place():
    """The byte and its offset in the file, so that it can be found."""
    data = dumps(build({**RIGHT, "explain": "it@s"})).encode().replace(b"it@s", b"it\x92s")
    notebook, (finding,) = read_notebook(data)
    assert f"byte 0x92 at {data.index(0x92)} is not UTF-8" in finding.message
    assert any(text(cell) == "it’s" for cell in notebook["cells"])


def test_one_bad_byte_leaves_the_rest_utf8():
    """Only what is not UTF-8 is read otherwise."""
    data = dumps({"cells": [markdown("a", "√d @")]}).encode().replace(b"@", b"\x93")
    assert text(read_notebook(data)[0]["cells"][0]) == "√d “"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0" * 4000, "empty"),
        (b"[]", "holds a list"),
        (b"3", "holds a int"),
        (b"{}", "no list of cells"),
        (b'{"cells": null}', "no list of cells"),
        (b'{"cells": [}', "not JSON"),
        (b"PK\x03\x04", "not JSON"),
        (b'{"worksheets": [], "nbformat": 3}', "nbformat 3"),
    ],
)
def test_what_is_no_notebook_is_refused_in_words(data, words):
    """Each refusal says what was found."""
    assert words in refusal(read_notebook, data)


def test_limit_is_kept():
    """No more than `limit` bytes are taken."""
    assert "larger than 10 bytes" in refusal(read_notebook, b" " * 11, 10)


def test_source_may_be_a_list_or_anything():
    """Lists of lines are joined; what is no text becomes none, and is said."""
    cells = [
        {"cell_type": "code", "metadata": {}, "source": source} for source in (["a\n", "b"], ["a", 1], {}, None, 5)
    ]
    notebook, findings = read_notebook(json.dumps({"cells": cells}).encode())
    assert [cell["source"] for cell in notebook["cells"]] == ["a\nb", "a", "", "", ""]
    assert [finding.message for finding in findings] == ["cells 2, 3, 4, 5: source not text"]


def test_unknown_cell_types_and_strange_cells():
    """A cell with outputs was code; what is no cell is left out."""
    cells = [{"cell_type": "codde", "outputs": [], "source": "1"}, {"source": "x"}, None, "cell", 7]
    notebook, _ = read_notebook(json.dumps({"cells": cells}).encode())
    assert [(cell["cell_type"], cell["source"]) for cell in notebook["cells"]] == [("code", "1"), ("raw", "x")]


def test_reading_twice_changes_nothing():
    """A tidy notebook is tidy."""
    first, _ = read_notebook(dumps(SOLVED).encode())
    assert read_notebook(dumps(first).encode()) == (first, [])


def test_pasted_pictures_are_kept_and_drawings_that_can_run_are_not():
    """A photograph may be the answer; SVG may hold scripts."""
    notebook = solved()
    explain = notebook["cells"][place(notebook, notebook["cells"][9])]
    explain["attachments"] = {"a.png": {"image/png": "aGk="}, "b.svg": {"image/svg+xml": "<svg/>"}}
    assert cell_of(take(notebook), "explain")["attachments"] == {"a.png": {"image/png": "aGk="}}


def test_a_picture_that_is_no_base64_is_left_out():
    """Half a character in it is legal JSON, and could not be written again; nor is anything else of it a picture."""
    notebook = solved()
    explain = next(cell for cell in notebook["cells"] if cell["id"] == "explain")
    explain["attachments"] = {"a.png": {"image/png": "\ud800"}, "b.png": {"image/png": "<b>"}}
    assert "attachments" not in cell_of(take(notebook), "explain")


def test_a_file_of_too_many_parts_is_refused():
    """Each is a few bytes, and becomes many times as much when it is read."""
    notebook = {**solved(), "metadata": {"zz": [0] * 5_000_001}}
    assert "parts" in refusal(read_notebook, dumps(notebook).encode())


def test_a_cell_full_of_data_is_refused_and_a_photograph_in_a_text_is_not():
    """Every cell is read many times, and the class waits; some editors write a picture into the text."""
    notebook = solved()
    notebook["cells"].append({"cell_type": "markdown", "metadata": {}, "source": "x" * 3_000_000})
    tidy(notebook)
    notebook["cells"][-1]["source"] *= 6
    assert "text cells hold" in refusal(tidy, notebook)
    notebook["cells"][-1] = {"cell_type": "code", "metadata": {}, "source": "x = 1\n" * 400_000}
    assert "take out the data" in refusal(tidy, notebook)


# --- rebuild ----------------------------------------------------------------------------------------------------------


def test_solved_notebook_comes_back_as_it_is():
    """Nothing to repair: no finding, the same cells, all answered."""
    handin = take(solved())
    assert handin.findings == ()
    assert [text(cell) for cell in handin.notebook["cells"]] == [text(cell) for cell in SOLVED["cells"]]
    assert handin.answered == (SLUG, "head_width", "explain")


def test_untouched_release_is_unanswered():
    """The release itself is a hand-in without an answer, and no finding."""
    handin = take(copy.deepcopy(RELEASED))
    assert (handin.answered, handin.findings) == ((), ())
    assert handin.notebook["cells"] == RELEASED["cells"]


def test_arguments_are_left_alone():
    """Neither notebook is changed: the release serves the whole class."""
    submitted, released = solved(), copy.deepcopy(RELEASED)
    tidied, _ = tidy(submitted)
    before = copy.deepcopy(tidied)
    rebuild(tidied, released)
    assert (submitted, tidied, released) == (SOLVED, before, RELEASED)


def test_released_sources_may_be_lists():
    """The release as it lies on disk, lines in lists."""
    released = copy.deepcopy(RELEASED)
    for cell in released["cells"]:
        cell["source"] = text(cell).splitlines(keepends=True)
    assert rebuild(tidy(solved())[0], released).notebook == take(solved()).notebook


def test_nothing_but_source_is_taken():
    """Metadata, tags, counts, outputs and kernels of the hand-in leave no trace."""
    notebook = solved()
    notebook["metadata"] = {"kernelspec": {"name": "evil"}}
    for cell in notebook["cells"]:
        cell["metadata"] |= {"tags": ["raises-exception"], "extra": "evil"}
        cell |= {"evil": 1} | ({"execution_count": 66, "outputs": [{"evil": 1}]} if cell["cell_type"] == "code" else {})
    handin = take(notebook)
    assert "evil" not in json.dumps(handin.notebook)
    assert handin.notebook["metadata"] == RELEASED["metadata"]


def test_student_cells_stay_where_they_were():
    """Added code and text keep their neighbours."""
    notebook = solved()
    insert_after(notebook, first_answer(notebook), markdown("note", "mine"))
    insert_before(notebook, first_answer(notebook), "a = 1", "b = 2")
    handin = take(notebook)
    assert [cell["id"] for cell in handin.notebook["cells"]] == [cell["id"] for cell in notebook["cells"]]
    assert handin.findings == ()


def test_graded_cells_do_not_run():
    """What runs is the student's and the lesson's code, in order; never a graded cell."""
    sources = [source for _, source in executable(take(solved()).notebook)]
    assert [source.split("\n")[0] for source in sources] == [
        "import numpy as np",
        "def fused_self_attention(X, W_qkv, scale):",
        "print(fused_self_attention(np.eye(3), np.ones((3, 6)), 1.0).shape)",
        "head_width = 64",
        "width_twice = 2 * 8",
    ]


def test_magics_stay_as_they_are():
    """A cell magic is the student's text, in an answer as elsewhere."""
    notebook = solved()
    first_answer(notebook)["source"] = "%%time\n" + RIGHT[SLUG]
    insert_before(notebook, first_answer(notebook), "%%bash\nls")
    sources = [source for _, source in executable(take(notebook).notebook)]
    assert "%%bash\nls" in sources
    assert "%%time\n" + RIGHT[SLUG] in sources


def test_last_complete_copy_carries_the_grade_id():
    """Of two versions the later one counts, the earlier one runs before it."""
    notebook = solved()
    insert_before(notebook, first_answer(notebook), "")
    notebook["cells"][2] = twin(first_answer(notebook), f"def {SLUG}(*args):\n    return 'old'")
    handin = take(notebook)
    assert text(cell_of(handin, SLUG)) == RIGHT[SLUG]
    assert handin.notebook["cells"][2]["source"].endswith("'old'")


def test_helper_below_its_function_runs_too():
    """A split with the function above: it carries the grade id, the rest runs behind it."""
    notebook = solved()
    insert_after(notebook, first_answer(notebook), twin(first_answer(notebook), "helper = 1"))
    handin = take(notebook)
    assert text(cell_of(handin, SLUG)) == RIGHT[SLUG]
    assert [source for _, source in executable(handin.notebook)][2] == "helper = 1"


def test_missing_answer_leaves_a_comment():
    """No stub runs where the answer cell is gone, and it is not answered."""
    notebook = solved()
    del notebook["cells"][2]
    handin = take(notebook)
    assert text(cell_of(handin, SLUG)).startswith("#")
    assert SLUG not in run(handin)
    assert handin.answered == ("head_width", "explain")


def test_answer_typed_at_the_end_counts():
    """The answer cell is gone; its function stands in the last cell and is answered."""
    notebook = solved()
    cell = notebook["cells"].pop(2)
    notebook["cells"].append(code(text(cell)))
    handin = take(notebook)
    assert mark(handin) == "full"
    assert handin.notebook["cells"][-1]["source"] == RIGHT[SLUG]
    assert SLUG in handin.answered


def test_lesson_code_that_was_retyped_is_not_overwritten():
    """A deleted lesson cell comes back before what the student typed in its stead."""
    notebook = solved()
    notebook["cells"][-1] = code("width_twice = 'mine'")
    handin = take(notebook)
    assert run(handin)["width_twice"] == "mine"
    assert "restored" in codes(handin)


def test_edited_lesson_cell_keeps_the_edit():
    """Unlocked cells are the student's to change."""
    notebook = solved()
    notebook["cells"][-1]["source"] = "width_twice = 3"
    handin = take(notebook)
    assert run(handin)["width_twice"] == 3
    assert handin.findings == ()


def test_locked_cell_is_the_released_one():
    """A visible check that was changed is put back and noted."""
    notebook = solved()
    notebook["cells"][3]["source"] = "print('all fine')"
    assert codes(take(notebook)) == {"changed-test"}


def test_experiment_in_a_pasted_check_is_kept():
    """A visible check, pasted and changed, is the student's own cell."""
    notebook = solved()
    insert_after(notebook, notebook["cells"][3], twin(notebook["cells"][3], "tried = True"))
    handin = take(notebook)
    assert run(handin)["tried"]
    assert codes(handin, "warning") == set()


def test_moved_cells_come_back_in_released_order():
    """All cells reversed: the released order, and still the right answer."""
    notebook = solved()
    notebook["cells"].reverse()
    handin = take(notebook)
    assert [cell["id"] for cell in handin.notebook["cells"]] == [cell["id"] for cell in RELEASED["cells"]]
    assert mark(handin) == "full"
    assert "moved" in codes(handin)


def test_trailing_blanks_are_no_change():
    """Editors strip blanks; an untouched cell stays untouched."""
    notebook = copy.deepcopy(RELEASED)
    for cell in notebook["cells"]:
        cell["source"] = text(cell).replace("\n", "  \n") + "\n"
    handin = take(notebook)
    assert (handin.answered, handin.findings) == ((), ())


def test_conflict_inside_an_answer_is_said():
    """A notebook that is JSON can still hold a conflict in its code."""
    notebook = solved()
    first_answer(notebook)["source"] = f"<<<<<<< HEAD\n{RIGHT[SLUG]}\n=======\n>>>>>>> theirs"
    assert "conflict" in codes(take(notebook), "warning")


def test_grade_ids_of_another_assignment_are_named():
    """Who handed in the wrong notebook can see which one it was."""
    other = {"cells": [marked("causal_attention", "1", solution=True)]}
    assert "causal_attention" in refusal(rebuild, other, RELEASED)


def test_long_lists_of_cells_fit_a_line():
    """A hundred copies make one finding, not a hundred."""
    notebook = solved()
    for _ in range(100):
        notebook["cells"].append(twin(first_answer(notebook)))
    assert len(take(notebook).findings) < 5


# --- properties -------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**30) | st.floats() | st.text(max_size=8) | st.just(SLUG),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["set", "drop", "copy", "move", "type", "text"]), st.lists(st.integers(0, 40)), JSON),
    max_size=8,
)
KINDS = ("code", "markdown", "raw")
TEXTS = ["", RIGHT[SLUG], STUBS[SLUG], "head_width = 1", "%%time\nx = 1", "def helper():\n    pass", "pass"]
FUZZ = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def mutate(notebook: Notebook, step: tuple) -> None:
    """One thing that happens to notebooks: a value replaced or lost anywhere, a cell copied, moved, turned, retyped."""
    what, path, junk = step
    cells = notebook.get("cells")
    numbers = [*path, 0, 0]
    if what in ("set", "drop"):
        replace_somewhere(notebook, path, junk, drop=what == "drop")
    elif isinstance(cells, list) and cells:
        here, there = numbers[0] % len(cells), numbers[1] % len(cells)
        if what in ("copy", "move"):
            cell = copy.deepcopy(cells[here]) if what == "copy" else cells.pop(here)
            cells.insert(there, cell)
        elif isinstance(cells[here], dict):
            name, values = ("cell_type", KINDS) if what == "type" else ("source", TEXTS)
            cells[here][name] = values[numbers[1] % len(values)]


def replace_somewhere(node, path: list[int], junk, drop: bool) -> None:
    """Walk down `path` from `node` and replace, or drop, what lies at its end."""
    for number in path[:-1]:
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        if not keys or not isinstance(node[keys[number % len(keys)]], (dict, list)):
            break
        node = node[keys[number % len(keys)]]
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    if keys:
        key = keys[(path or [0])[-1] % len(keys)]
        if drop:
            del node[key]
        else:
            node[key] = junk


@FUZZ
@given(STEPS)
def test_any_mutation_is_rebuilt_clean_or_refused(steps):
    """Whatever happened to the notebook: NotGradable, or the released tests in a valid notebook."""
    notebook = solved()
    for step in steps:
        mutate(notebook, step)
    with contextlib.suppress(NotGradable):
        take(notebook)
        tidied, _ = read_notebook(json.dumps(notebook).encode())
        assert take(tidied).notebook == take(notebook).notebook


@FUZZ
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    """No file makes the reader fall over."""
    with contextlib.suppress(NotGradable):
        read_notebook(data)


@FUZZ
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=6), st.integers(0, 10**6))
def test_any_damage_to_the_file_is_read_or_refused(changes, end):
    """Bytes changed and the end cut off: read and rebuilt, or refused."""
    data = bytearray(dumps(SOLVED).encode())
    for offset, byte in changes:
        data[offset % len(data)] = byte
    with contextlib.suppress(NotGradable):
        take(read_notebook(bytes(data) if end % 3 else bytes(data[: end % len(data)]))[0])


@FUZZ
@given(st.permutations(range(len(SOLVED["cells"]))), st.sets(st.integers(0, 10)))
def test_moved_and_turned_cells_keep_full_marks(order, turned):
    """In any order, and whichever cells became text: the answers are all there, so they all count."""
    notebook = solved()
    notebook["cells"] = [notebook["cells"][index] for index in order]
    for index in turned:
        notebook["cells"][index]["cell_type"] = "markdown"
    handin = take(notebook)
    assert mark(handin) == "full"
    assert run(handin)["head_width"] == 64


# --- submitted_at -----------------------------------------------------------------------------------------------------


def stamped(folder: Path, stamp: str) -> tuple:
    """What `submitted_at` makes of a stamp."""
    put(folder, "timestamp.txt", stamp)
    return submitted_at(folder)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2025-02-03 04:05:06.700000 UTC", datetime(2025, 2, 3, 4, 5, 6, 700000)),
        ("2025-02-03 04:05:06 UTC\n", datetime(2025, 2, 3, 4, 5, 6)),
        ("2025-02-03 04:05:06", datetime(2025, 2, 3, 4, 5, 6)),
        ("2025-02-03T04:05:06+02:00", datetime(2025, 2, 3, 2, 5, 6)),
        ("2025-07-03 04:05:06 Europe/Zurich", datetime(2025, 7, 3, 2, 5, 6)),
    ],
)
def test_stamp_is_read_as_nbgrader_reads_it(stamp, expected, tmp_path):
    """The same time that nbgrader puts in the gradebook."""
    from nbgrader.utils import parse_utc

    assert stamped(tmp_path, stamp) == (expected, [])
    assert parse_utc(stamp.strip()) == expected


@pytest.mark.parametrize("stamp", ["last tuesday, I think", "\0\0", "9" * 500, "2025-02-30 00:00:00 UTC", "1 2 /etc/x"])
def test_bad_stamp_is_unknown_and_said(stamp, tmp_path):
    """One bad stamp ends nothing."""
    time, (finding,) = stamped(tmp_path, stamp)
    assert time is None
    assert (finding.severity, finding.code) == ("warning", "timestamp")


@pytest.mark.parametrize("stamp", ["2001-01-01 00:00:00.000000 UTC", "2999-01-01 00:00:00 UTC"])
def test_implausible_stamp_is_not_believed(stamp, tmp_path):
    """A student can write the file."""
    time, (finding,) = stamped(tmp_path, stamp)
    assert time is None
    assert "forged or wrong clock" in finding.message


def test_clock_may_be_some_hours_ahead(tmp_path):
    """Less than a day in the future is a zone, not a forgery."""
    time = (datetime.now(UTC) + timedelta(hours=20)).strftime("%Y-%m-%d %H:%M:%S UTC")
    assert stamped(tmp_path, time)[1] == []


def test_no_stamp_and_an_empty_one_are_unknown_without_a_finding(tmp_path):
    """Many ways to collect write no stamp."""
    assert submitted_at(tmp_path) == (None, [])
    assert stamped(tmp_path, " \n") == (None, [])


def test_linked_stamp_is_not_followed(tmp_path):
    """A link would read any file of the instructor's."""
    (tmp_path / "timestamp.txt").symlink_to("/etc/hostname")
    assert submitted_at(tmp_path)[1][0].severity == "warning"


@FUZZ
@given(st.text(max_size=40))
def test_any_stamp_is_a_time_or_unknown(tmp_path_factory, stamp):
    """No stamp makes the run fall over."""
    stamped(tmp_path_factory.getbasetemp(), stamp.encode("utf-8", "replace").decode())


# --- cost -------------------------------------------------------------------------------------------------------------


def test_import_needs_the_standard_library_only():
    """Intake is imported by every command; nbformat and NumPy would cost it seconds."""
    program = "import sys, graders.intake; print({'nbformat', 'numpy', 'dateutil', 'jsonschema'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"


def test_large_notebook_takes_no_time():
    """Thousands of copies of an answer cell are read and rebuilt within seconds; more are refused."""
    notebook = solved()
    notebook["cells"] += [{**twin(first_answer(notebook)), "id": f"twin-{n}"} for n in range(4_900)]
    started = datetime.now(UTC)
    rebuild(read_notebook(dumps(notebook).encode())[0], RELEASED)
    assert datetime.now(UTC) - started < timedelta(seconds=20)
    notebook["cells"] *= 2
    assert "cells" in refusal(tidy, notebook)
