"""The derivation by hand: what follows from a mistake is carried, each mistake is named, and copies earn nothing."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from cases import derive_by_hand_right, derive_by_hand_wrong

from course.instances import instance
from graders.authoring import CheckFailed, load_exercise
from graders.diagnosis import explain
from graders.exercises.derive_by_hand import STAGES, attempts, notebook
from graders.student import LocalStudent, StudentError

EXERCISE = load_exercise("derive_by_hand")
CHECKS = dict(zip(STAGES, EXERCISE.checks.values(), strict=True))
IDS = [f"student-{i}" for i in range(20)]
RIGHT = dict(EXERCISE.references)


def cases(module) -> list:
    """The public functions of a module of cases, by name."""
    return [
        pytest.param(function, id=name)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]


def written_by(case, id: str) -> dict:
    """The notebook of student `id` who derives as `case` does."""
    return {"STUDENT": id, **case(*(matrix.astype(float) for matrix in instance(id)))}


def outcome(names: dict, stage: str, id: str = "", aliases=()) -> CheckFailed | StudentError | str:
    """How the check of `stage` judges these names for student `id`: how it fails, or what it remarks."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return CHECKS[stage](LocalStudent(names, id=id, aliases=aliases), EXERCISE.rng(CHECKS[stage].id, 0))
        except (CheckFailed, StudentError) as found:
            return found


def earned(names: dict, id: str = "", aliases=()) -> tuple[int, ...]:
    """The marks of the four stages."""
    return tuple(5 if isinstance(outcome(names, stage, id, aliases), str) else 0 for stage in STAGES)


def named(names: dict, stage: str, id: str = "") -> list[str]:
    """The ids that the diagnosis gives for these names at `stage`."""
    student, check = LocalStudent(names, id=id), CHECKS[stage]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with pytest.raises((CheckFailed, StudentError)):
            check(student, EXERCISE.rng(check.id, 0))
        return [found.id for found in explain(EXERCISE, check, 0, student.trace)]


@pytest.mark.parametrize("case", cases(derive_by_hand_right))
def test_right_derivation_in_any_notation_earns_everything(case):
    """Lists, fractions, decimals, tensors and the decimals that were asked for cost nobody a mark."""
    for id in IDS:
        assert earned(written_by(case, id), id) == (5, 5, 5, 5), id


@pytest.mark.parametrize("case", cases(derive_by_hand_wrong))
def test_wrong_derivation_earns_what_follows_and_is_named(case):
    """A mistake costs its own stage once, whoever makes it, and is called by its name where it has one."""
    wanted = derive_by_hand_wrong.NAMED.get(case.__name__, "")
    for id in IDS:
        names = written_by(case, id)
        marks = earned(names, id)
        assert marks == derive_by_hand_wrong.EARNED[case.__name__], id
        assert named(names, STAGES[marks.index(0)], id)[:1] == ([wanted] if wanted else []), id


def test_two_ideas_are_named_each_at_its_stage():
    """Later ideas are found on the student's own earlier stages, so that they do not hide one another."""
    names = written_by(derive_by_hand_wrong.columns_and_no_scale, "ada")
    three = written_by(derive_by_hand_wrong.swapped_unscaled_and_keys_mixed, "ada")

    assert named(names, "weights")[:1] == ["softmax_over_columns"]
    assert [named(three, stage)[:1] for stage in ("raw_scores", "scores", "output")] == [
        ["exchanges_queries_and_keys"],
        ["forgets_to_scale"],
        ["takes_keys_for_values"],
    ]


def test_message_says_which_step_went_wrong_first():
    """A stage that fails beside an earlier one says where the trouble began."""
    names = written_by(derive_by_hand_wrong.columns_and_no_scale, "ada")

    assert "this is the step that went wrong first" in outcome(names, "scores").what
    assert (
        "scores went wrong first, and this is not what follows from your own scores" in outcome(names, "weights").what
    )


def test_entry_is_called_as_the_lesson_calls_it():
    """Rows and columns are counted from 1: query and key, and in the output token and column."""
    names = notebook(RIGHT, "ada")
    for stage in STAGES:
        index, words = ((1, 0), "token 2, column 1") if stage == "output" else ((1, 2), "query 2, key 3")
        for wrong in (names[stage][index] + 1, np.inf):
            entered = names[stage].copy()
            entered[index] = wrong
            assert f"first at {words}" in outcome({**names, stage: entered}, stage, "ada").what


def test_remark_says_what_was_carried():
    """Points earned by carrying say so, with the step that they are right for and the one that went wrong."""
    names = written_by(derive_by_hand_wrong.no_scale, "ada")

    assert outcome(names, "raw_scores") == ""
    assert (
        outcome(names, "weights") == "full marks, carried: this is right for your own scores (scores went wrong first)"
    )
    assert "your own weights" in outcome(names, "output")


def test_rounded_weights_are_no_mistake():
    """Weights to two decimals are near enough, and the output that follows from them is carried."""
    names = written_by(derive_by_hand_right.two_decimals_throughout, "ada")

    assert outcome(names, "output") == "full marks, carried: this is right for your own weights (they are rounded)"


def test_stage_of_many_entries_is_no_start_for_a_later_one():
    """What is tried on it may be many times as large: 15 million numbers would become gigabytes."""
    names = written_by(derive_by_hand_wrong.no_scale, "ada") | {"scores": np.zeros((200, 1, 1), np.int8)}
    assert "the shape of scores is wrong" in outcome(names, "scores").what
    assert named({**names, "weights": np.full((3, 3), 7.0)}, "weights") == []
    student = LocalStudent(names, id="ada")
    assert set(attempts(student, "weights")) == {"raw_scores", "weights"}


@pytest.mark.parametrize("strange", [3.0, [1.0, 2.0], [[[1.0]]]])
def test_stage_of_another_shape_breaks_no_later_check(strange):
    """A later stage is judged without it, whatever ideas are tried on it."""
    names = written_by(derive_by_hand_wrong.no_scale, "ada") | {"scores": strange, "weights": np.full((3, 3), 7.0)}
    for stage in ("scores", "weights", "output"):
        assert isinstance(outcome(names, stage), (CheckFailed, str))


@pytest.mark.parametrize("case", ["uniform", "copies_values"])
def test_guarded_stage_is_given_no_false_name(case):
    """What follows from the stage before and is barred by a guard is no misconception, although some look alike."""
    assert named(written_by(getattr(derive_by_hand_wrong, case), "ada"), "output") == []


@pytest.mark.parametrize(
    ("case", "stage", "words"),
    [
        ("zeros_everywhere", "scores", "nothing is carried because your raw_scores are all equal"),
        ("uniform", "output", "nothing is carried because your weights are all equal"),
        ("almost_nothing", "scores", "nothing is carried because your raw_scores are almost zero"),
        ("almost_nothing", "weights", "because from your scores, each row of weights is shared equally among its best"),
        ("almost_nothing", "output", "because from your scores, each row of weights is shared equally among its best"),
        ("far_apart", "weights", "from your scores, each row of weights is shared equally among its best"),
        ("tied_for_two", "weights", "from your scores, each row of weights is shared equally among its best"),
        ("tied_for_two", "output", "from your scores, each row of weights is shared equally among its best"),
        ("the_worked_example", "scores", "nothing is carried because your raw_scores are those of the worked example"),
        ("the_worked_example", "output", "nothing is carried because your scores are those of the worked example"),
        ("copies_downwards", "weights", "nothing is carried because weights is a copy of scores"),
        ("copies_values", "output", "nothing is carried because output is a copy of V"),
        ("infinite_scores", "weights", "weights is not finite"),
        ("half_done", "weights", "weights is not attempted"),
        ("features_compared", "raw_scores", "the shape of raw_scores is wrong"),
    ],
)
def test_guard_says_why_nothing_is_carried(case, stage, words):
    """Whoever gets no marks for what follows from an empty or copied stage reads the reason."""
    assert words in outcome(written_by(getattr(derive_by_hand_wrong, case), "ada"), stage).what


def test_numbers_of_a_hidden_answer_are_not_shown():
    """The right entry is data of the failure and not public: the message shows only what the student wrote."""
    failure = outcome(written_by(derive_by_hand_wrong.no_scale, "ada"), "scores")

    assert not failure.public
    assert failure.expected != failure.got


@pytest.mark.parametrize("declared", ["ada", " ADA ", "Ａｄａ", None])
def test_roster_decides_whose_numbers_count(declared):
    """Spaces and capitals in STUDENT do not matter, nor does a cell that is gone."""
    names = {**notebook(RIGHT, "ada"), "STUDENT": declared}

    assert earned(names, "ada") == (5, 5, 5, 5)


@pytest.mark.parametrize("declared", ["your-id", "someone.else", 123])
def test_numbers_of_another_id_are_no_silent_zero(declared):
    """A right derivation for the id in the notebook is told apart from a wrong one, and a person is asked to look."""
    names = {**notebook(RIGHT, str(declared)), "STUDENT": declared}
    failed = [found for stage in STAGES if isinstance(found := outcome(names, stage, "ada"), CheckFailed)]

    assert [failure.finding for failure in failed] == ["another-id", "another-id"]
    assert all("another id" in failure.what and "a person should look" in failure.what for failure in failed)


def test_wrong_numbers_with_another_id_are_simply_wrong():
    """Another id explains nothing where the numbers fit neither."""
    names = {**written_by(derive_by_hand_wrong.queries_and_keys_swapped, "eve"), "STUDENT": "bob"}

    assert outcome(names, "raw_scores", "ada").finding == ""


def test_right_numbers_earn_marks_whatever_id_is_declared():
    """The roster's numbers are right, even if STUDENT was changed afterwards."""
    names = {**notebook(RIGHT, "ada"), "STUDENT": "eve"}

    assert earned(names, "ada") == (5, 5, 5, 5)


def test_alias_has_its_own_numbers():
    """An id that is listed counts as the roster's does; what a mistake costs and is called stays the same."""
    right, wrong = notebook(RIGHT, "a.lovelace"), written_by(derive_by_hand_wrong.no_scale, "a.lovelace")

    assert earned(right, "ada", {"a.lovelace"}) == (5, 5, 5, 5)
    assert earned({**right, "STUDENT": "A.Lovelace "}, "ada", {"a.lovelace"}) == (5, 5, 5, 5)
    assert earned(wrong, "ada", {"a.lovelace"}) == (5, 0, 5, 5)
    assert earned({**notebook(RIGHT, "ada"), "STUDENT": "a.lovelace"}, "ada", {"a.lovelace"}) == (5, 5, 5, 5)
    student, check = LocalStudent(wrong, id="ada", aliases={"a.lovelace"}), CHECKS["scores"]
    with pytest.raises(CheckFailed, match="scores is off"):
        check(student, EXERCISE.rng(check.id, 0))
    assert [idea.id for idea in explain(EXERCISE, check, 0, student.trace)][:1] == ["forgets_to_scale"]


def test_alias_of_somebody_else_is_none():
    """What a notebook declares counts where the table lists it for this very student."""
    names = notebook(RIGHT, "a.lovelace")

    assert earned(names, "ada", {"a.turing"}) == earned(names, "ada")
    assert outcome(names, "raw_scores", "ada", {"a.turing"}).finding == "another-id"


def test_without_roster_the_declared_id_counts():
    """An author who runs the notebook alone needs no roster; without any id the check says what is missing."""
    names = notebook(RIGHT, "ada")

    assert earned(names) == (5, 5, 5, 5)
    assert "STUDENT is not set" in outcome({**names, "STUDENT": ""}, "raw_scores").what


@pytest.mark.parametrize(
    "value", [None, ..., [], "", "1 2 3", 5, [[1, 2], [3]], {"a": 1}, np.zeros(9), [[None] * 3] * 3]
)
@pytest.mark.parametrize("stage", STAGES)
def test_what_is_no_matrix_fails_in_words(stage, value):
    """Whatever was typed, the check says what was found, and the stages beside it keep their marks."""
    names = {**notebook(RIGHT, "ada"), stage: value}

    assert earned(names, "ada") == tuple(0 if name == stage else 5 for name in STAGES)
    assert outcome(names, stage, "ada").what


def test_solution_in_the_notebook_is_the_reference():
    """What `qkv solution` shows earns everything: the cells' code, run in their order."""
    names: dict = {"np": np, "STUDENT": "ada", **dict(zip("QKV", instance("ada"), strict=True))}
    for stage in STAGES:
        exec(EXERCISE.answers[stage].solution, names)

    assert earned({stage: names[stage] for stage in STAGES}, "ada") == (5, 5, 5, 5)
