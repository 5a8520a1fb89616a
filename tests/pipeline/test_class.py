"""`qkv grade` on a class: right marks, every student, nothing lost."""

from __future__ import annotations

import json
import os
import resource
import sys
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import nbformat
import pytest
from nbgrader.api import SubmittedAssignment

from course import instances
from graders import classroom, grading, memory
from graders.authoring import UsageError, load_exercise, slugs
from graders.build import load, write_source
from graders.classroom import grade_class
from graders.gradebook import Marks
from graders.hand_in import job_for
from graders.intake import receive
from graders.releasing import release
from graders.single import check_notebook
from graders.verdict import Verdict
from pipeline.conftest import hand_in, released, run, solved

SHAPES = "attention_shapes"
DERIVE = "derive_by_hand"


def marks_in(course, slug):
    """Each student's score for `slug` as nbgrader's own Gradebook reports it."""
    with Marks(course, load_exercise(slug)) as marks:
        return {s.student_id: s.score for s in marks.gradebook.assignment_submissions(slug)}


@pytest.mark.slow
@pytest.mark.parametrize("slug", slugs())
def test_solved_notebook_earns_full_marks_and_untouched_none(course_of, slug):
    """Through the whole pipeline a right notebook gets everything, the released one nothing; neither is flagged."""
    course = course_of(slug)
    hand_in(course, "student", slug, solved(slug))
    hand_in(course, "untouched", slug, released(slug))
    right, nothing = grade_class(course, load_exercise(slug))
    assert (right.score, right.needs_person) == (right.max_score, False), right.to_json()
    assert (nothing.score, nothing.graded) == (0.0, True)
    assert marks_in(course, slug) == {"student": right.max_score, "untouched": 0.0}
    assert (course.folder("feedback") / "untouched" / slug / f"{slug}.html").exists()


def test_one_broken_hand_in_stops_nobody(course_of):
    """Students before and after a hand-in that is no notebook get their marks; it gets zero, a reason and a page."""
    course = course_of(SHAPES)
    for student in ("a", "z"):
        hand_in(course, student, SHAPES, solved(SHAPES))
    (hand_in(course, "m", SHAPES, {}) / f"{SHAPES}.ipynb").write_text("no JSON {", encoding="utf-8")
    first, broken, last = grade_class(course, load_exercise(SHAPES))
    assert [first.score, broken.score, last.score] == [first.max_score, 0.0, first.max_score]
    assert [first.graded, broken.graded, last.graded] == [True, False, True]
    for student in ("a", "m", "z"):
        folder = course.folder("autograded") / student / SHAPES
        assert Verdict.from_json((folder / "verdict.json").read_text()).student == student
        assert (folder / f"{SHAPES}.ipynb").exists()
        assert (course.folder("feedback") / student / SHAPES / f"{SHAPES}.html").exists()
    assert marks_in(course, SHAPES)["m"] == 0.0


def test_import_that_fails_in_a_lesson_cell_is_told_to_a_person(course_of):
    """It may be the grader's own environment that lacks the module, and then everyone's marks suffer."""
    course = course_of(SHAPES)
    notebook = solved(SHAPES)
    lesson = next(cell for cell in notebook["cells"] if "from course import" in "".join(cell["source"]))
    lesson["source"] = "import no_such_module\n" + "".join(lesson["source"])
    hand_in(course, "a", SHAPES, notebook)
    hand_in(course, "b", SHAPES, solved(SHAPES))
    found, nothing = grade_class(course, load_exercise(SHAPES))
    assert "import-failed" in {finding.code for finding in found.findings}
    assert found.needs_person
    assert "import-failed" not in {finding.code for finding in nothing.findings}


@pytest.mark.parametrize(
    ("slug", "name", "words"),
    [(DERIVE, "scores", "scores has no value: its cell raised NameError"),
     (SHAPES, "attention_shapes", "your notebook defines no `attention_shapes`: its cell raised NameError")],
)  # fmt: skip
def test_answer_cell_that_raises_is_told_from_one_that_is_empty(course_of, slug, name, words):
    """Who forgot an import wrote something, and reads what became of it."""
    course = course_of(slug)
    notebook = solved(slug, "ada")
    (answer,) = (cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == name)
    answer["source"] = f"{name} = maths.sqrt(2)"
    hand_in(course, "ada", slug, notebook)
    (verdict,) = grade_class(course, load_exercise(slug))
    assert any(words in check.message for check in verdict.checks)
    assert "not attempted" not in verdict.to_json()


def test_name_of_an_error_that_was_made_at_run_time_is_not_repeated(course_of):
    """It is text of the student's code, which sees hidden inputs."""
    course = course_of(DERIVE)
    notebook = solved(DERIVE, "ada")
    (answer,) = (cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("grade_id") == "scores")
    answer["source"] = "def fail():\n    raise type('<i>' + 'ma' + 'de', (Exception,), {})\nscores = fail()"
    hand_in(course, "ada", DERIVE, notebook)
    (verdict,) = grade_class(course, load_exercise(DERIVE))
    assert "its cell raised an exception of its own" in verdict.to_json()
    assert "<i>" not in verdict.to_json()


def test_shape_of_many_axes_is_not_kept(course_of):
    """Asked for shapes, one may name any: the report is for people."""
    course = course_of(SHAPES)
    notebook = solved(SHAPES)
    (answer,) = (cell for cell in notebook["cells"] if cell["metadata"].get("nbgrader", {}).get("solution"))
    names = "X_q X_kv W_Q W_K W_V Q K V scores weights output"
    answer["source"] = f"def {SHAPES}(*sizes): return dict.fromkeys({names!r}.split(), (7,) * 9000)"
    hand_in(course, "a", SHAPES, notebook)
    (verdict,) = grade_class(course, load_exercise(SHAPES))
    assert verdict.score == 0
    assert len(verdict.to_json()) < 20_000


def test_folder_whose_name_is_no_text_stops_nobody(course_of):
    """An archive may name a student's folder by bytes that are no UTF-8; a gradebook holds text."""
    course = course_of(SHAPES)
    for student in ("a", os.fsdecode(b"m\xff"), os.fsdecode(b"m\xfe"), "z"):
        hand_in(course, student, SHAPES, solved(SHAPES))
    verdicts = grade_class(course, load_exercise(SHAPES))
    assert [verdict.student for verdict in verdicts] == ["a", r"m\udcfe", r"m\udcff", "z"]
    assert set(marks_in(course, SHAPES).values()) == {verdicts[0].max_score}


def test_hand_in_that_cannot_be_written_stops_nobody(course_of, monkeypatch):
    """What is wrong with one is found at the very end at the latest: it is not graded, and the class goes on."""
    course = course_of(SHAPES)
    for student in ("a", "b", "c"):
        hand_in(course, student, SHAPES, solved(SHAPES))
    real = classroom.write_feedback

    def write_unless_graded(course, graded, *rest):
        if graded.verdict.student == "b" and graded.verdict.graded:
            "\ud800".encode()
        return real(course, graded, *rest)

    monkeypatch.setattr(classroom, "write_feedback", write_unless_graded)
    verdicts = {v.student: v for v in grade_class(course, load_exercise(SHAPES))}
    assert {name: v.score for name, v in verdicts.items()} == {"a": 20.0, "b": 0.0, "c": 20.0}
    assert marks_in(course, SHAPES) == {"a": 20.0, "b": 0.0, "c": 20.0}
    assert "UnicodeEncodeError" in verdicts["b"].findings[0].message
    again = grade_class(course, load_exercise(SHAPES))
    assert [v.graded for v in again] == [True, False, True]


def test_a_disk_that_is_full_ends_the_run(course_of, monkeypatch):
    """It is no hand-in's fault, and nobody gets a zero for it."""
    course = course_of(SHAPES)
    hand_in(course, "a", SHAPES, solved(SHAPES))

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(classroom, "write_feedback", full)
    with pytest.raises(OSError, match="No space"):
        grade_class(course, load_exercise(SHAPES))


def test_second_run_skips_what_is_done_and_force_does_not(course_of):
    """An unchanged hand-in is kept; a changed one, or --force, is graded again, on the same hidden inputs."""
    course = course_of(SHAPES)
    hand_in(course, "a", SHAPES, solved(SHAPES))
    hand_in(course, "b", SHAPES, released(SHAPES))
    kept: list[tuple[str, bool]] = []

    def note(verdict, was_kept):
        kept.append((verdict.student, was_kept))

    first = grade_class(course, load_exercise(SHAPES))
    hand_in(course, "b", SHAPES, solved(SHAPES))
    again = grade_class(course, load_exercise(SHAPES), progress=note)
    assert sorted(kept) == [("a", True), ("b", False)]
    assert [v.seed for v in again] == [v.seed for v in first]
    assert marks_in(course, SHAPES) == {"a": 20.0, "b": 20.0}
    kept.clear()
    grade_class(course, load_exercise(SHAPES), force=True, progress=note)
    assert [was_kept for _, was_kept in kept] == [False, False]


def test_worker_that_dies_costs_only_the_hand_in_that_ended_it(course_of, monkeypatch):
    """When a worker process itself is lost, the others are graded and the culprit is reported.

    Only those that were under way are tried by themselves: a process each would hold up a class.
    """
    course = course_of(SHAPES)
    others = ("a", "b", "l", "m", "n", "o")
    for student in (*others, "killer"):
        hand_in(course, student, SHAPES, solved(SHAPES, student))
    monkeypatch.setattr(classroom, "_work", _work_unless_killer)
    alone, real = [], classroom.LocalWorkers.alone
    monkeypatch.setattr(classroom.LocalWorkers, "alone", lambda self, job: alone.append(job.student) or real(self, job))
    verdicts = {v.student: v for v in grade_class(course, load_exercise(SHAPES), jobs=2)}
    assert [verdicts[s].score for s in others] == [20.0] * len(others)
    assert "killer" in alone
    assert len(alone) <= 2
    assert verdicts["killer"].score == 0.0
    assert "worker" in [finding.code for finding in verdicts["killer"].findings]


_real_work = classroom._work


def _work_unless_killer(job):
    if job.student == "killer":
        import os

        os._exit(9)
    return _real_work(job)


def test_check_that_asks_for_all_memory_costs_only_itself(course_of, monkeypatch):
    """What a student sent may have a size that an author did not think of: the check breaks, and a person is told."""
    course, exercise = course_of(SHAPES), load_exercise(SHAPES)
    hand_in(course, "a", SHAPES, solved(SHAPES))
    first, *others = exercise.checks.values()
    monkeypatch.setattr(memory, "MOST", 256 << 20)
    monkeypatch.setitem(exercise.checks, first.id, replace(first, run=lambda student, *_: bytes(1 << 30)))
    (verdict,) = grade_class(course, exercise)
    assert [result.status for result in verdict.checks] == ["error", *["passed"] * len(others)]
    assert [finding.code for finding in verdict.findings] == ["check-broke"]


@pytest.mark.parametrize("command", [["nbgrader", "autograde", SHAPES], ["qkv", "grade", SHAPES], ["qkv", "check"]])
def test_no_command_is_ended_by_a_check_that_asks_for_all_memory(course_of, command):
    """The formgrader's button grades in the process of JupyterLab itself."""
    course = course_of(SHAPES)
    folder = hand_in(course, "a", SHAPES, solved(SHAPES))
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + GREEDY)
    done = run(course.root, *command, *([str(folder / f"{SHAPES}.ipynb")] if command[-1] == "check" else []))
    said = done.stdout
    if command[-1] != "check":
        said = (course.folder("autograded") / "a" / SHAPES / "verdict.json").read_text()
    assert "could not judge this answer (MemoryError" in said, done.stderr[-2000:]


GREEDY = """
from dataclasses import replace
from multiprocessing import get_context
from graders import memory
from graders.authoring import load_exercise
memory.MOST = 256 << 20
checks = load_exercise("attention_shapes").checks
first = next(iter(checks))
checks[first] = replace(checks[first], run=lambda student, *_: bytes(1 << 30))
"""


def test_bound_on_memory_is_as_before_once_judging_is_done():
    """A bound of the user's own stays the smaller one, and nothing is left of ours."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with memory.bounded_memory():
        bounded, hard = resource.getrlimit(resource.RLIMIT_DATA)
        with memory.bounded_memory():
            assert resource.getrlimit(resource.RLIMIT_DATA) == (bounded, hard)
        assert 0 < bounded < 1 << 50
        assert hard == before[1]
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_manual_marks_survive_grading_again(course_of):
    """What a person gave in the formgrader stays, and asks for another look, as nbgrader does it."""
    course = course_of(SHAPES)
    hand_in(course, "a", SHAPES, solved(SHAPES))
    exercise = load_exercise(SHAPES)
    grade_class(course, exercise)
    check = next(iter(exercise.checks))
    with Marks(course, exercise) as marks:
        grade = marks.gradebook.find_grade(check, SHAPES, SHAPES, "a")
        grade.manual_score = 1.5
        marks.gradebook.db.commit()
    grade_class(course, exercise, force=True)
    with Marks(course, exercise) as marks:
        grade = marks.gradebook.find_grade(check, SHAPES, SHAPES, "a")
        assert (grade.manual_score, grade.needs_manual_grade) == (1.5, True)


def test_score_of_nobody_comes_from_the_notebook_they_wrote(course_of):
    """Raised points, edited tests and outputs that claim success earn nothing."""
    course = course_of(SHAPES)
    notebook = released(SHAPES)
    for cell in notebook["cells"]:
        settings = cell["metadata"].get("nbgrader", {})
        if settings.get("grade"):
            settings["points"] = 100
            cell["source"] = ["100.0\n"]
            result = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
            cell["outputs"] = [result | {"data": {"text/plain": "100.0"}}]
    hand_in(course, "a", SHAPES, notebook)
    (verdict,) = grade_class(course, load_exercise(SHAPES))
    assert (verdict.score, verdict.max_score) == (0.0, 20.0)


def test_graded_cells_hold_the_released_text_and_a_plain_score(course_of):
    """Nothing of a hidden region gets into autograded/, and nbgrader reads the same score that the verdict has."""
    from nbformat import from_dict
    from nbgrader.utils import determine_grade, is_grade

    course = course_of(SHAPES)
    hand_in(course, "a", SHAPES, solved(SHAPES))
    (verdict,) = grade_class(course, load_exercise(SHAPES))
    text = (course.folder("autograded") / "a" / SHAPES / f"{SHAPES}.ipynb").read_text()
    assert "HIDDEN" not in text
    notebook = from_dict(json.loads(text))
    scores = {c.metadata.nbgrader.grade_id: determine_grade(c)[0] for c in notebook.cells if is_grade(c)}
    assert scores == {check.id: check.score for check in verdict.checks}


@pytest.mark.slow
def test_interrupted_run_goes_on_where_it_stopped(course_of):
    """After a run that was killed half-way, the next one grades the rest and everyone has one row of marks."""
    course = course_of(SHAPES)
    for number in range(6):
        hand_in(course, f"s{number}", SHAPES, solved(SHAPES))
    with pytest.raises(KeyboardInterrupt):
        grade_class(course, load_exercise(SHAPES), progress=_interrupt_at_third())
    verdicts = grade_class(course, load_exercise(SHAPES))
    assert [v.score for v in verdicts] == [20.0] * 6
    assert marks_in(course, SHAPES) == {f"s{number}": 20.0 for number in range(6)}


def _interrupt_at_third():
    seen = []

    def progress(verdict, kept):
        seen.append(verdict)
        if len(seen) == 3:
            raise KeyboardInterrupt

    return progress


def test_command_prints_a_line_per_student_and_says_where_things_are(course_of):
    """Without a terminal, progress is plain lines; the exit code says whether everyone was graded."""
    course = course_of(SHAPES)
    hand_in(course, "a", SHAPES, solved(SHAPES))
    done = run(course.root, "qkv", "grade", SHAPES)
    assert done.returncode == 0, done.stderr
    assert "1/1 a: 20 of 20" in done.stderr
    assert "feedback/*/attention_shapes/attention_shapes.html" in done.stdout
    (hand_in(course, "b", SHAPES, {}) / f"{SHAPES}.ipynb").write_text("<<<<<<< HEAD", encoding="utf-8")
    assert run(course.root, "qkv", "grade", SHAPES).returncode == 3


@pytest.mark.slow
def test_idea_about_a_dict_is_named(course_of):
    """Claims in bits are a wrong value, not a wrong function, and are named like any other idea."""
    course = course_of("break_sqrt_d")
    notebook = solved("break_sqrt_d")
    (claims,) = [cell for cell in notebook["cells"] if cell["id"] == "claims"]
    source = "".join(claims["source"]) + '\nclaims["entropy_scaled"] = float(claims["entropy_scaled"]) / np.log(2)'
    claims["source"] = source.splitlines(keepends=True)
    hand_in(course, "a", "break_sqrt_d", notebook)
    (verdict,) = grade_class(course, load_exercise("break_sqrt_d"))
    assert {check.id: check.misconceptions for check in verdict.checks if check.status != "passed"} == {
        "claim_entropy_scaled": ("claims_bits",)
    }


@pytest.mark.parametrize(
    ("aliases", "score", "findings"),
    [
        ({}, 10.0, [("warning", "another-id"), ("warning", "another-id")]),
        ({"a.lovelace": "eve"}, 10.0, [("warning", "another-id"), ("warning", "another-id")]),
        ({"A.Lovelace": "ada"}, 20.0, [("info", "alias")]),
    ],
    ids=["no table", "another's", "listed"],
)
def test_declared_id_counts_where_the_table_says_so(course_of, aliases, score, findings):
    """Numbers of another id need a person's eyes, unless the instructor has listed that id for this student."""
    course = course_of(DERIVE)
    course.config.QKV.aliases = aliases
    hand_in(course, "ada", DERIVE, solved(DERIVE, "a.lovelace"))
    (verdict,) = grade_class(course, load_exercise(DERIVE))
    assert (verdict.score, verdict.max_score) == (score, 20.0)
    assert [(finding.severity, finding.code) for finding in verdict.findings] == findings
    assert verdict.needs_person == (score < 20)


def test_copied_numbers_are_shown_to_the_instructor_alone(course_of):
    """Ben hands in ada's numbers: a finding names her, and neither his page nor hers says a word of it."""
    course = course_of(DERIVE)
    hand_in(course, "ada", DERIVE, solved(DERIVE, "ada"))
    copy = solved(DERIVE, "ben")
    (first,) = (c for c in copy["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == "raw_scores")
    first["source"] = ["Q, K, V = instance('ada')\n", *first["source"]]
    hand_in(course, "ben", DERIVE, copy)
    ada, ben = grade_class(course, load_exercise(DERIVE))
    assert (ada.score, ada.findings) == (ada.max_score, ())
    (found,) = (finding for finding in ben.findings if finding.code == "another-students-numbers")
    assert found.severity == "warning"
    assert "numbers of ada" in found.message
    for student in ("ada", "ben"):
        page = (course.folder("feedback") / student / DERIVE / f"{DERIVE}.html").read_text(encoding="utf-8")
        assert "numbers of ada" not in page
        assert "another-students" not in page


def test_table_of_aliases_that_changed_grades_again(course_of):
    """Whoever lists an id need not know of --force: a verdict from before is none on this hand-in."""
    course = course_of(DERIVE)
    hand_in(course, "ada", DERIVE, solved(DERIVE, "a.lovelace"))
    (before,) = grade_class(course, load_exercise(DERIVE))
    course.config.QKV.aliases = {"a.lovelace": "ada"}
    (after,) = grade_class(course, load_exercise(DERIVE))
    assert (before.score, after.score) == (10.0, 20.0)


def test_verdict_says_which_numbers_were_drawn(course_of):
    """Version and term stand in the release and in the verdict, where students have numbers of their own."""
    course = course_of(DERIVE, SHAPES)
    frozen = {"version": instances.VERSION, "term": instances.TERM}
    for slug, drawn in ((DERIVE, frozen), (SHAPES, None)):
        hand_in(course, "ada", slug, solved(slug, "ada"))
        grade_class(course, load_exercise(slug))
        written = json.loads((course.folder("autograded") / "ada" / slug / "verdict.json").read_text())
        assert written["instances"] == drawn
        assert load(course.released(slug))["metadata"]["qkv"].get("instances") == drawn


@pytest.mark.parametrize(
    ("frozen", "words"),
    [
        ({"version": 2, "term": ""}, "has numbers of version 2, term '', but the installed course draws"),
        ({"version": 1, "term": "spring"}, "has numbers of version 1, term 'spring', but"),
        (None, "has no numbers of one's own, but"),
    ],
    ids=["version", "term", "nothing"],
)
def test_release_with_other_numbers_is_not_graded(course_of, frozen, words):
    """Marks on numbers that nobody had would all be wrong: one line, before anything is written."""
    course = course_of(DERIVE)
    path = hand_in(course, "ada", DERIVE, solved(DERIVE, "ada")) / f"{DERIVE}.ipynb"
    notebook = load(course.released(DERIVE))
    notebook["metadata"]["qkv"]["instances"] = frozen
    course.released(DERIVE).write_text(json.dumps(notebook))
    with pytest.raises(UsageError, match=f"^the released derive_by_hand {words}"):
        grade_class(course, load_exercise(DERIVE))
    with pytest.raises(UsageError, match=words):
        check_notebook(course, path, "ada", None)
    assert not course.folder("autograded").exists()


def test_another_term_must_be_built_before_it_is_released(course_of, monkeypatch):
    """Whoever sets TERM and forgets to build would hand out notebooks that nobody could grade."""
    course = course_of(DERIVE)
    monkeypatch.setattr(instances, "TERM", "autumn")
    with pytest.raises(UsageError, match=r"the built derive_by_hand has numbers of .*, term '', but .* 'autumn'"):
        release(course, load_exercise(DERIVE))
    assert write_source(load_exercise(DERIVE), course.folder("source"))
    release(course, load_exercise(DERIVE))
    assert load(course.released(DERIVE))["metadata"]["qkv"]["instances"]["term"] == "autumn"


def test_diagnosis_that_fails_costs_nobody_a_mark(course_of, monkeypatch):
    """A fault of ours in explaining one check's failure leaves all marks as they are."""
    course = course_of(SHAPES)
    notebook = solved(SHAPES)
    for cell in notebook["cells"]:
        if cell["id"] == SHAPES:
            cell["source"] = "".join(cell["source"]).replace('"output": (B, T_q, d_v)', '"output": (B, T_q, d_k)')
    hand_in(course, "a", SHAPES, notebook)
    monkeypatch.setattr(grading, "explain", _broken_explain)
    (verdict,) = grade_class(course, load_exercise(SHAPES))
    assert verdict.graded
    assert 0 < verdict.score < verdict.max_score


def _broken_explain(*_args):
    raise RuntimeError("a fault in the diagnosis")


class Pool:
    """Workers that are done at once, but for those whose jobs they lose when they are given them."""

    def __init__(self, loses=(), recovers=9):
        self.loses, self.recovers, self.given, self.again = loses, recovers, [], []

    def submit(self, job):
        """The student's name as the result."""
        if job in self.loses:
            raise BrokenExecutor
        self.given.append(job)
        future = Future()
        future.set_result(job)
        return future

    def alone(self, job):
        """The same, noted."""
        self.again.append(job)
        return job

    def recover(self, lost):
        """As many as it is told."""
        return self.recovers


class Named(str):
    """A job that is a name."""

    weight = 1


def received(*students):
    return [classroom.Received(student, None, (), job=Named(student)) for student in students]


def test_no_more_is_handed_out_than_memory_holds(monkeypatch):
    """Pictures of a whole class would not fit: the next folder is read when a hand-in before it is done."""
    monkeypatch.setattr(classroom, "MOST_WAITING", 2)
    pool, futures, read = Pool(), [], []

    def submit(job):
        futures.append(Future())
        if len(futures) == 3:
            futures[0].set_result(pool.given[0])
        pool.given.append(job)
        return futures[-1]

    def reading():
        for found in received(*"abcd"):
            read.append(found.student)
            yield found

    pool.submit = submit
    results = classroom._results(reading(), lambda: pool, lambda: True, lambda found, bug: bug)
    assert next(results)[1] == "a"
    assert read == ["a", "b", "c"]


def test_job_weighs_what_its_cells_and_pictures_do(course_of):
    """What waits is bounded by it."""
    notebook = solved(SHAPES)
    plain = _job(course_of(SHAPES), notebook)
    notebook["cells"].append(
        {
            "cell_type": "markdown",
            "id": "p",
            "metadata": {},
            "source": "abc",
            "attachments": {"a.png": {"image/png": "x" * 999}},
        }
    )
    assert _job(course_of(SHAPES), notebook).weight == plain.weight + 1002
    assert plain.weight > 10_000


def _job(course, notebook):
    folder = hand_in(course, "a", SHAPES, notebook)
    return job_for(course.settings, SHAPES, "a", receive(folder, SHAPES, released(SHAPES)))


def test_a_worker_that_is_lost_while_hand_ins_are_read_stops_nobody():
    """A pool that is broken takes no more jobs: whom it should have graded is graded alone, after all others."""
    pool = Pool(loses={"b", "c"})
    found = classroom._results(received("a", "b", "c"), lambda: pool, lambda: True, lambda found, bug: bug)
    assert [graded for _, graded in found] == ["a", "b", "c"]
    assert (pool.given, pool.again) == (["a"], ["b", "c"])


def test_after_a_loss_only_those_under_way_are_suspected():
    """The others are handed out again; whoever is among them and ends the workers too is found in the next round."""
    pool = Pool(loses={"b", "c", "d"}, recovers=1)
    results = classroom._results(received(*"abcd"), lambda: pool, lambda: True, lambda found, bug: bug)
    assert [graded for _, graded in results] == ["a", "b", "c", "d"]
    assert (pool.given, pool.again) == (["a"], ["b", "c", "d"])
    pool = Pool(loses={"b", "c", "d"})
    pool.recover = lambda lost: pool.loses.clear() or 1
    results = classroom._results(received(*"abcd"), lambda: pool, lambda: True, lambda found, bug: bug)
    assert sorted(graded for _, graded in results) == ["a", "b", "c", "d"]
    assert (pool.given, pool.again) == (["a", "c", "d"], ["b"])


def test_where_no_new_workers_can_be_had_the_next_ones_are_suspected(monkeypatch):
    """A machine that has no memory left for them may have it later; what is broken says so at once."""
    workers = classroom.LocalWorkers(None, 1, ProcessPoolExecutor(1, get_context("fork")))
    with pytest.raises(BrokenExecutor):
        workers.pool.submit(os._exit, 9).result()
    monkeypatch.setattr(classroom, "_pool", lambda *_: workers.submit(None))
    assert workers.recover(5) == 1
    with pytest.raises(BrokenExecutor):
        workers.submit(None)


def test_what_is_done_is_written_while_the_rest_is_read(monkeypatch):
    """With enough given to the workers, a verdict does not wait for the last folder of a large class."""
    monkeypatch.setattr(classroom, "ENOUGH", 0)
    read = []

    def reading():
        for found in received(*"abcd"):
            read.append(found.student)
            yield found

    results = classroom._results(reading(), Pool, lambda: True, lambda found, bug: bug)
    assert next(results)[1] == "a"
    assert read == ["a"]
    assert [graded for _, graded in results] == ["b", "c", "d"]


def test_workers_faster_than_intake_do_not_hold_back_what_is_done(monkeypatch):
    """Where none is outstanding, what is done is written after a few, and not at the end of a class."""
    monkeypatch.setattr(classroom, "ENOUGH", 2)
    students = iter(received(*"abcdef"))
    pool = Pool()
    results = classroom._results(students, lambda: pool, lambda: True, lambda found, bug: bug)
    assert next(results)[1] == "a"
    assert pool.given == ["a", "b"]


def test_nothing_is_handed_out_before_the_workers_are_ready():
    """While the sandbox starts hand-ins are read, and all of them are graded when it is there."""
    pool, ready = Pool(), iter([False, False, True, True])
    results = classroom._results(received(*"abcd"), lambda: pool, lambda: next(ready), lambda found, bug: bug)
    assert sorted(graded for _, graded in results) == ["a", "b", "c", "d"]
    assert pool.given == ["a", "b", "c", "d"]


def test_a_submission_that_has_no_notebook_yet_gets_one(course_of):
    """A row that nbgrader or a person made before is filled, and no second one appears."""
    course = course_of(SHAPES)
    hand_in(course, "ada", SHAPES, solved(SHAPES))
    with Marks(course, load_exercise(SHAPES)) as marks:
        marks.gradebook.add_student("ada")
        marks.gradebook.db.add(
            SubmittedAssignment(assignment_id=marks.gradebook.find_assignment(SHAPES).id, student_id="ada")
        )
        marks.gradebook.db.commit()
    (verdict,) = grade_class(course, load_exercise(SHAPES))
    assert marks_in(course, SHAPES) == {"ada": verdict.max_score}
    grade_class(course, load_exercise(SHAPES), force=True)
    assert marks_in(course, SHAPES) == {"ada": verdict.max_score}


def test_the_graded_notebook_is_one_that_jupyter_reads(course_of):
    """A line for each cell, and valid by nbformat's own schema."""
    course = course_of(SHAPES)
    hand_in(course, "ada", SHAPES, solved(SHAPES))
    grade_class(course, load_exercise(SHAPES))
    text = (course.folder("autograded") / "ada" / SHAPES / f"{SHAPES}.ipynb").read_text()
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    assert len(text.splitlines()) == len(notebook.cells) + 3


def test_a_gradebook_needs_nothing_of_jupyterlab(course_of):
    """nbgrader imports its server extensions with itself; for a class that is half a second for nothing."""
    program = (
        "import sys\n"
        "from graders.authoring import load_exercise\n"
        "from graders.gradebook import Marks\n"
        "from graders.settings import open_course\n"
        f"with Marks(open_course(), load_exercise({SHAPES!r})) as marks: assert marks.check_assignment()\n"
        "print(sorted({'jupyter_server', 'nbconvert', 'nbclient', 'torch'} & set(sys.modules)))"
    )
    done = run(course_of(SHAPES).root, sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("[]\n", "")
