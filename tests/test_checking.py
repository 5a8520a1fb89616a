"""Visible checks: what they let pass, and the words of every message."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from course import checking
from course.checking import NotYet


def message(check, *args, **kwargs):
    """The text of the NotYet that `check` raises."""
    with pytest.raises(NotYet) as raised:
        check(*args, **kwargs)
    return str(raised.value)


@pytest.mark.parametrize("got", [[1.0, 2.0], (1, 2), np.array([1, 2], dtype=np.float32), torch.tensor([1.0, 2.0])])
def test_close_accepts_any_kind_of_array(got, capsys):
    """Lists, tuples, arrays and tensors with the right numbers are right, and one line says so."""
    checking.close("the weights", got, [1, 2])
    assert capsys.readouterr().out == "✓ the weights\n"


def test_close_accepts_a_tensor_that_carries_gradients():
    """An answer that needs no detaching by the student is compared as it is."""
    checking.close("the weights", torch.tensor([1.0, 2.0], requires_grad=True), [1, 2])


def test_close_says_how_much_is_off_where_first_and_where_to_look():
    """The message holds the count, the first place, both numbers, and the hint."""
    assert message(checking.close, "the weights", [[1.0, 2.0], [3.0, 5.0]], [[1, 2], [3, 4]], hint="Which axis?") == (
        "✗ the weights: off in 1 of 4 entries, first at [1, 1]\n"
        "    expected   4\n"
        "    got        5\n"
        "    look at    Which axis?"
    )


def test_close_leaves_out_a_hint_that_nobody_wrote():
    """A message without a hint has no empty line in its place."""
    assert message(checking.close, "the weights", [1.0, 3.0], [1, 2]) == (
        "✗ the weights: off in 1 of 2 entries, first at [1]\n    expected   2\n    got        3"
    )


def test_close_speaks_of_a_single_number_without_a_place():
    """A number has no entries, so none are counted."""
    assert message(checking.close, "the sum", 3.0, 2.0) == "✗ the sum: off\n    expected   2\n    got        3"


def test_close_shows_four_significant_digits():
    """Numbers are shown as a person would write them down."""
    assert "expected   0.3333\n    got        1.235e-05" in message(checking.close, "it", [1.23456e-5], [1 / 3])


@pytest.mark.parametrize(("wrong", "shown"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")])
def test_close_rejects_what_is_not_finite(wrong, shown):
    """NaN is equal to nothing, so a comparison must not let it slip through."""
    assert f"got        {shown}" in message(checking.close, "the weights", [wrong, 1.0], [0.5, 1.0])


def test_close_compares_shapes_before_numbers():
    """(2, 1) is not (2,), although NumPy would compare them without complaint."""
    assert message(checking.close, "the row sums", [[1.0], [1.0]], [1, 1], hint="Is an axis kept?") == (
        "✗ the row sums: another shape\n    expected   (2,)\n    got        (2, 1)\n    look at    Is an axis kept?"
    )


def test_close_is_relative_to_the_largest_expected_entry():
    """One part in ten thousand of the largest entry is close, two parts are not."""
    checking.close("it", [100.009, 0.009], [100.0, 0.0])
    assert "1 of 2" in message(checking.close, "it", [100.0, 0.02], [100.0, 0.0])


def test_close_uses_the_tolerance_that_the_lesson_names():
    """Numbers copied from a page to two digits are compared to two digits."""
    checking.close("it", [0.91], [0.9094], tolerance=0.005)
    assert "it: off" in message(checking.close, "it", [0.92], [0.9094], tolerance=0.005)


def test_close_accepts_rounding_beside_an_expected_zero():
    """Where all entries are 0, the last bits of a float are not held against anybody."""
    checking.close("it", [1e-15], [0.0])


def test_missing_answer_is_none():
    """A function without a return is told so, whether or not the lesson has a hint of its own."""
    assert message(checking.close, "the output", None, [1]) == (
        "✗ the output: None\n    expected   an array\n    got        None\n    look at    Is there a return at the end?"
    )
    assert "look at    Return Q." in message(checking.shape, "Q", None, (2, 3), hint="Return Q.")


@pytest.mark.parametrize(("got", "shown"), [("0.5", "str"), ({"a": 1}, "dict"), ([[1, 2], [3]], "list")])
def test_what_is_no_array_of_numbers_is_named_by_its_type(got, shown):
    """Words, mappings and ragged lists are called what they are."""
    expected = f"✗ it: no array of numbers\n    expected   an array\n    got        {shown}"
    if got == "0.5":
        # NumPy reads this text as the number it holds, which is fine; other text it does not.
        got = "half"
    assert message(checking.close, "it", got, [0.5]) == expected


def test_shape_is_right(capsys):
    """The right shape passes, whatever the numbers."""
    checking.shape("the output", torch.zeros(2, 3), (2, 3))
    assert capsys.readouterr().out == "✓ the output\n"


def test_shape_is_wrong():
    """A wrong shape is shown beside the right one."""
    assert message(checking.shape, "the output", np.zeros((3, 2)), (2, 3), hint="Rows are tokens.") == (
        "✗ the output: another shape\n    expected   (2, 3)\n    got        (3, 2)\n    look at    Rows are tokens."
    )


def test_condition_holds(capsys):
    """A true condition is one line; NumPy's own truth values count."""
    checking.holds("X is unchanged", np.True_)
    assert capsys.readouterr().out == "✓ X is unchanged\n"


def test_condition_does_not_hold():
    """A false condition says what was expected and got, where the lesson says so."""
    assert message(checking.holds, "it is a tensor", False) == "✗ it is a tensor: not yet"
    assert message(checking.holds, "it is a tensor", False, expected="Tensor", got="list", hint="torch.tensor") == (
        "✗ it is a tensor: not yet\n    expected   Tensor\n    got        list\n    look at    torch.tensor"
    )


def test_long_hint_is_wrapped_below_its_first_word():
    """Validate cuts long lines; a hint is there to be read to its end."""
    lines = message(checking.close, "it", 3.0, 2.0, hint="word " * 40).splitlines()
    assert max(len(line) for line in lines) <= 83
    assert lines[-1].startswith(" " * 15 + "word")
    assert "\n".join(lines).count("word") == 40


def test_answer_is_asked():
    """What an answer returns comes through as it is, arguments by position or by name."""
    assert checking.ask(divmod, 7, 2) == (3, 1)
    assert checking.ask(dict, a=1) == {"a": 1}


def unwritten():
    """An answer cell as it was released."""
    raise NotImplementedError()


def test_answer_that_nobody_has_written_is_no_traceback():
    """An untouched notebook says what to do next, by the name of the answer."""
    assert message(checking.ask, unwritten) == (
        "✗ unwritten: no answer yet\n    look at    The cell above that says YOUR CODE HERE."
    )


def test_answer_that_returns_nothing_is_asked_for_a_return():
    """A forgotten return is found before somebody indexes None."""
    assert "✗ print: nothing comes back" in message(checking.ask, print)
    assert "Is there a return at the end?" in message(checking.ask, print)


def test_message_stands_alone_in_a_notebook(capsys):
    """A cell that fails shows the message and no traceback of the course's own code."""
    shell = InteractiveShell()
    shell.run_cell("from course import checking\nchecking.close('the sum', 3.0, 2.0)")
    shown = capsys.readouterr().out
    assert "✗ the sum: off" in shown
    assert "Traceback" not in shown
    assert "checking.py" not in shown


def test_not_yet_is_an_assertion_error():
    """nbgrader's Validate reports a failed assertion as a failed check, not as a broken notebook."""
    assert issubclass(NotYet, AssertionError)
