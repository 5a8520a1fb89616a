"""What a report may repeat of text from a student's process."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from graders.reports.quote import library_message, own_line, own_type, printable, without_foreign
from graders.student import LocalStudent, Observation

A = np.ones((3, 4))
T = torch.ones(3, 4)
SOURCE = "def softmax(scores):\n    return np.sofmax(scoers)\nclass TooLate(Exception): pass\n"

MISTAKES = {
    "matmul": lambda: A @ A,
    "broadcast": lambda: A + np.ones(5),
    "dot": lambda: np.dot(A, A),
    "reshape": lambda: A.reshape(5, 3),
    "axis": lambda: A.sum(axis=2),
    "index": lambda: A[5],
    "too_many_indices": lambda: A[0, 0, 0],
    "split": lambda: np.split(A, 3, axis=-1),
    "concatenate": lambda: np.concatenate([A, np.ones((2, 2))]),
    "einsum": lambda: np.einsum("ij,jk", A, A),
    "truth": lambda: bool(A > 0),
    "ragged": lambda: np.array([[1], [1, 2]]),
    "torch_matmul": lambda: T @ T,
    "torch_batch": lambda: torch.ones(2, 3, 4) @ torch.ones(5, 4, 2),
    "torch_broadcast": lambda: T + torch.ones(5),
    "torch_view": lambda: T.view(5, 3),
    "torch_dimension": lambda: T.transpose(-1, 3),
    "torch_index": lambda: T[5],
    "torch_cat": lambda: torch.cat([T, torch.ones(2, 2)]),
    "torch_expand": lambda: T.expand(2, 4),
    "torch_dtype": lambda: T @ T.T.double(),
    "torch_numpy": lambda: torch.ones(2, requires_grad=True).numpy(),
    "torch_for_numpy": lambda: torch.softmax(A, -1),
    "name": lambda: eval("scoers"),
    "attribute": lambda: np.sofmax,
    "too_few": lambda: (lambda scores, scale: scores)(),
    "too_many": lambda: (lambda scores: scores)(1, 2),
    "none": lambda: None @ A,
    "list_index": lambda: [1][3],
    "division": lambda: 1 / 0,
    "key": lambda: {}["scores"],
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
def test_library_message_is_repeated(mistake):
    """The installed libraries' own sentences on shapes, names and counts reach the student, for they help most."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - each case raises another type
        mistake()
    assert library_message(str(caught.value), SOURCE + " scale") == " ".join(str(caught.value).split())


@pytest.mark.parametrize(
    "message",
    [
        "args were (array([[0.123]]),)",
        "division by zero 0.123",
        "x\ndivision by zero",
        "name 'x_0_123456' is not defined",
        "module 'numpy' has no attribute 'leak314159'",
        "'leak314159'",
        "index 1234567 is out of bounds for axis 0 with size 3",
        "cannot reshape array of size 0.5 into shape (3,)",
        "cannot reshape array of size 3 into shape (3,)(4,)",
        "operands could not be broadcast together with shapes (1,2,3,4) (1,2,3,4) (1,2,3,4) (1,2,3,4) ",
        "cannot reshape array of size 3 into shape (٣٣٣,)",
        "division by zero" + " " * 5000,
        "",
    ],
)
def test_other_message_is_withheld(message):
    """Text that could carry a hidden input, also dressed as a library's, is not repeated."""
    assert library_message(message, SOURCE) is None


def test_line_is_quoted_only_from_the_hand_in():
    """Code can name any text as its source line, so only lines that the student handed in are shown."""
    assert own_line("    return np.sofmax(scoers) ", SOURCE) == "return np.sofmax(scoers)"
    assert own_line("0.123 0.456", SOURCE) == ""
    assert own_line("", SOURCE) == ""


def test_long_line_is_recognised_by_its_beginning():
    """The child cuts lines at 200 characters."""
    line = "x = " + "a + " * 100
    assert own_line(line[:200], f"    {line}") == line[:200].strip()


def test_type_is_named_only_if_it_was_known_before():
    """A class can be made at run time with any name."""
    assert own_type("ValueError", SOURCE) == "ValueError"
    assert own_type("TooLate", SOURCE) == "TooLate"
    assert own_type("AxisError", SOURCE) == "AxisError"
    assert own_type("array_0_123", SOURCE) == ""


@pytest.mark.parametrize(
    "value",
    [{"0.123 0.456": 1}, {0.123456: 1}, {123456: 1}, type("N0_123", (), {"field": 1})(), "N0_123", [{"a": "N0_123"}]],
    ids=["keys of text", "keys of floats", "keys of integers", "class", "text", "text inside"],
)
def test_text_made_by_their_code_is_hidden(value):
    """A dict's keys, a class's name and strings are the student's; what they did not type could be a hidden input."""
    student = LocalStudent({"f": lambda: value})
    student.f()
    for foreign in ("0.123 0.456", "0.123456", "123456", "N0_123"):
        assert foreign not in without_foreign(_told(student.trace[0]), student.trace, SOURCE)


def test_text_that_a_check_wrote_as_repr_is_hidden_too():
    """Line breaks in a key look otherwise in a message that quotes it."""
    student = LocalStudent({"f": lambda: {"0.1\n0.2": 1}})
    key = next(iter(student.f()))
    assert without_foreign(f"no entry {key!r}", student.trace, SOURCE) == "no entry '…'"


def test_where_there_is_too_much_to_look_for_nothing_is_repeated():
    """Thousands of strings in a text of megabytes would be minutes of work for a message of a line."""
    student = LocalStudent({"f": lambda: [f"-{n}" for n in range(10_000)]})
    student.f()
    assert without_foreign("-" * 1_000_000, student.trace, SOURCE) == "…"
    assert without_foreign("found -12 there", student.trace, SOURCE) != "found -12 there"


def _told(seen: Observation) -> str:
    value = seen.value[0] if isinstance(seen.value, list) else seen.value
    if isinstance(value, dict):
        return f"found {', '.join(map(str, [*value, *value.values()]))}"
    return f"f() is a {getattr(value, 'type', value)}, not an array"


def test_text_that_they_typed_is_kept():
    """Names that stand in the hand-in or in the check's own words help and can stay."""
    student = LocalStudent({"f": lambda: {"scores": 1, 0: 2, "Q": 3, "scores.weight": 4}})
    student.f()
    text = "found scores, 0, Q, scores.weight"
    assert without_foreign(text, student.trace, SOURCE) == text


def test_printable_drops_what_changes_how_text_is_read():
    """No escape sequence reaches a terminal, no direction mark a page; lone surrogates could not be written."""
    assert printable("a\x1b[31mb\u202ec\ud800\x00") == "a\ufffd[31mb\ufffdc\ufffd\ufffd"
    assert printable("two\r\n  lines") == "two lines"
    assert printable("two\r\n  lines", lines=True) == "two\n  lines"
