"""The text that a student reads about one check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from graders.authoring import CheckFailed, fields
from graders.reports.message import Parts, message_for, parts, value_text
from graders.student import LocalStudent, StudentError
from graders.verdict import CheckResult
from tests.reports.samples import NO_SCALE, OFF, OVER_BATCH, SOURCE, SWAPPED, check, idea

HIDDEN = CheckFailed("softmax(scores) is off in 3 of 6 entries, first at [0, 1]", expected=0.731, got=0.25)


def told(outcome, status="failed", **options) -> str:
    """The message about the usual check."""
    return message_for(check(), status, outcome, **{"source": SOURCE, **options})


def test_failure_reads_as_in_the_style_guide():
    """Sign, id, marks and what differs; then expected, got, the idea and where to look."""
    assert told(OFF, misconceptions=[OVER_BATCH]) == "\n".join([
        "✗ rows_sum_to_one (0 of 2)   the sum of each row is off in 4 of 4 rows, first at [0]",
        "    expected   1",
        "    got        2.27014",
        "    you may have   Your columns sum to 1 instead of your rows: the softmax runs over the wrong axis.",
        "    look at        Which axis holds the keys?",
    ])  # fmt: skip


def test_expected_value_of_a_hidden_input_is_not_shown():
    """What a hidden input should have given stays with the instructor."""
    assert "0.731" not in told(HIDDEN)
    assert "got        0.25" in told(HIDDEN)


def test_instructor_may_reveal_expected_values():
    """`reveal` shows expected values of hidden inputs."""
    assert "expected   0.731" in told(HIDDEN, reveal=True)


def test_hint_of_a_check_does_not_follow_an_error_that_is_not_about_it():
    """A name that is not defined is not mended where a check's hint says to look."""
    advised = replace(check(), hint="Which axis?")
    forgotten, divided = (
        message_for(advised, "error", StudentError("softmax", type, "", ""), source=SOURCE)
        for type in ("NameError", "ZeroDivisionError")
    )
    assert "defined or imported" in forgotten
    assert "Which axis?" not in forgotten
    assert "Which axis?" in divided


def test_further_ideas_are_folded():
    """The likeliest idea comes first, two others in their own words after it, and no id is shown."""
    fourth = idea("fourth_idea", "You do a fourth thing.")
    text = told(OFF, misconceptions=[OVER_BATCH, NO_SCALE, SWAPPED, fourth])
    assert "you may have   Your columns" in text
    assert f"or:            {NO_SCALE.sentence}" in text
    assert f"or:            {SWAPPED.sentence}" in text
    assert "fourth" not in text
    assert "forgets" not in text


def test_pair_is_told_in_two_sentences():
    """Two ideas that only together explain an answer are two lines, and the first says where to look."""
    both = replace(OVER_BATCH, id="a+b", parts=(OVER_BATCH, NO_SCALE))
    assert told(OFF, misconceptions=[both]).splitlines()[3:] == [
        f"    you may have   {OVER_BATCH.sentence}",
        f"    and            {NO_SCALE.sentence}",
        f"    look at        {OVER_BATCH.hint}",
    ]


def test_idea_that_was_told_is_referred_to():
    """Several checks fail for one reason: the reason is read once, and later messages say where."""
    text = told(OFF, misconceptions=[OVER_BATCH, NO_SCALE], told={OVER_BATCH.sentence: "fused_values"})
    assert text.splitlines()[3:] == ["    you may have   the same idea as in fused_values"]


def test_pair_with_one_new_idea_is_told_in_full():
    """Half of an explanation elsewhere would be a riddle."""
    both = replace(OVER_BATCH, id="a+b", parts=(OVER_BATCH, NO_SCALE))
    assert NO_SCALE.sentence in told(OFF, misconceptions=[both], told={OVER_BATCH.sentence: "fused_values"})
    known = {OVER_BATCH.sentence: "fused_values", NO_SCALE.sentence: "fused_two_scales"}
    text = told(OFF, misconceptions=[both], told=known)
    assert "the same ideas as in fused_values and fused_two_scales" in text


def test_unexplained_answer_reads_what_else_is_true_of_it():
    """Facts stand in one line, before the place to look."""
    text = message_for(
        check(hint="Here."), "failed", OFF, source="", also=["rows do not sum to 1", "later tokens leak"]
    )
    assert text.splitlines()[3:] == [
        "    also:          rows do not sum to 1; later tokens leak",
        "    look at        Here.",
    ]


def test_hint_is_the_ideas_then_the_failures_then_the_checks():
    """The most particular place to look wins."""
    with_hint = CheckFailed("off", hint="the failure's")
    plain = check(hint="the check's")
    assert "look at        the failure's" in message_for(plain, "failed", with_hint, source="")
    assert "look at        the check's" in message_for(plain, "failed", CheckFailed("off"), source="")
    ideas = [idea("x", "You x.", "the idea's")]
    assert "look at        the idea's" in message_for(plain, "failed", with_hint, source="", misconceptions=ideas)


def test_error_shows_the_students_line_and_the_librarys_words():
    """A shape mismatch is quoted in full: it holds sizes and no data."""
    message = "operands could not be broadcast together with shapes (3,4) (5,) "
    text = told(StudentError("softmax", "ValueError", message, "    return weights @ V"), source="return weights @ V")
    assert text.splitlines() == [
        "✗ rows_sum_to_one (0 of 2)   your `softmax` raised ValueError",
        "    in line    return weights @ V",
        "    it says    operands could not be broadcast together with shapes (3,4) (5,)",
    ]


def test_error_that_could_print_hidden_inputs_is_withheld():
    """Case A92: an exception's text, its type's name and its line can all be made of hidden inputs."""
    text = told(StudentError("softmax", "X0_123", "args were (array([[0.123]]),) / cell: grade(1)", "0.123"))
    assert "0.123" not in text
    assert "0_123" not in text
    assert "grade(" not in text
    assert "your `softmax` raised an exception of its own" in text
    assert "withheld" in text
    assert "visible check" in text


def test_error_without_text_says_no_more():
    """Nothing is said to be withheld where there is nothing."""
    assert told(StudentError("f", "MemoryError", "", "")) == "✗ rows_sum_to_one (0 of 2)   your `f` raised MemoryError"


def test_missing_answer_is_named():
    """A notebook without the function is told its name."""
    assert "your notebook defines no `softmax`" in told(StudentError("softmax", "Missing", "softmax", ""))


def test_students_own_missing_is_no_missing_answer():
    """A class of theirs that is called Missing is an error like any other."""
    text = told(StudentError("softmax", "Missing", "0.123", ""))
    assert "defines no" not in text
    assert "0.123" not in text


def test_untouched_answer_is_not_attempted_yet():
    """The stub raises NotImplementedError, which is no fault."""
    text = told(StudentError("softmax", "NotImplementedError", "0.123", "raise NotImplementedError"))
    assert text == "✗ rows_sum_to_one (0 of 2)   `softmax` is not attempted yet"


@pytest.mark.parametrize(
    ("status", "reason", "first"),
    [
        ("passed", None, "✓ rows_sum_to_one (2 of 2)   Each row of weights sums to 1"),
        ("timeout", "still running after 10 s", "✗ rows_sum_to_one (0 of 2)   still running after 10 s"),
        ("timeout", None, "✗ rows_sum_to_one (0 of 2)   your code was still running when its time was over"),
        ("not_run", None, "– rows_sum_to_one (0 of 2)   not run, because something before it stopped the grading"),
        ("error", None, "✗ rows_sum_to_one (0 of 2)   could not be judged"),
    ],
)
def test_status_is_told_in_words(status, reason, first):
    """Each status has a sign and words; no message is empty."""
    assert told(reason, status) == first


def test_students_keys_are_not_repeated():
    """A dict may have the inputs as its keys, and a check that lists them would print them."""
    student = LocalStudent({"f": lambda: {"0.123": 1}})
    value = student.f()
    with pytest.raises(CheckFailed) as caught:
        fields(value, ["Q"], what="f()")
    text = told(caught.value, trace=student.trace)
    assert "0.123" not in text
    assert "got        … (text that your code made is not repeated" in text
    assert "expected   Q" in text


def test_message_stays_within_its_lines():
    """Text with line breaks cannot pose as another row."""
    text = told(CheckFailed("off", got="1\n    expected   7\x1b[0m"))
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (np.float32(0.5), "0.5"),
        (float("nan"), "nan"),
        (3, "3"),
        ((3, 4), "(3, 4)"),
        ((3,), "(3,)"),
        (np.array([[0.123456789, 1]]), "[[0.123457, 1]]"),
        (np.ones((5, 5)), "an array of shape (5, 5)"),
        ("None", "None"),
    ],
    ids=str,
)
def test_values_are_short(value, text):
    """Six digits, and a shape where an array is too large to read."""
    assert value_text(value) == text


def test_parts_take_a_message_apart():
    """Pages lay out the same message in other ways."""
    message = told(OFF, misconceptions=[OVER_BATCH, NO_SCALE])
    assert parts(CheckResult("rows_sum_to_one", "", 2, 0, "failed", message)) == Parts(
        "the sum of each row is off in 4 of 4 rows, first at [0]",
        (
            ("expected", "1"),
            ("got", "2.27014"),
            ("you may have", OVER_BATCH.sentence),
            ("or:", NO_SCALE.sentence),
            ("look at", OVER_BATCH.hint),
        ),
    )


def test_parts_keep_a_message_of_another_form():
    """A verdict from elsewhere loses no words."""
    assert parts(CheckResult("x", "", 2, 0, "failed", "plain\nwords")) == Parts("plain\nwords", ())
