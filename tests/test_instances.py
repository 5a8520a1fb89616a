"""Numbers of one's own: the same for the same id, and each known mistake leads to a result of its own."""

from __future__ import annotations

import ast
import inspect
import unicodedata

import numpy as np
import pytest

from course import instances
from course.instances import canonical, instance
from graders.exercises.derive_by_hand import STAGES, exercise
from graders.stock import comfortable, separation

PINNED_ADA = ([[2, 1], [0, 2], [2, 0]], [[1, 1], [2, 0], [0, 2]], [[1, 2], [3, 3], [4, 4]])


def stacked(ids) -> dict[str, np.ndarray]:
    """The numbers of many ids as stacks of Q, K and V."""
    Q, K, V = (np.array(matrices, dtype=float) for matrices in zip(*map(instance, ids), strict=True))
    return {"Q": Q, "K": K, "V": V}


def whole_stock() -> list[dict[str, np.ndarray]]:
    """Every instance that can be dealt, one stack for each V."""
    pairs = np.array([instances._matrices(code, base=3, count=2) for code in instances._PAIRS], dtype=float)
    values = [instances._matrices(code, base=5, count=1)[0].astype(float) for code in instances._VALUES]
    return [{"Q": pairs[:, 0], "K": pairs[:, 1], "V": V} for V in values]


def test_known_id_gets_the_numbers_it_always_got():
    """The drawing is frozen: whoever changes it must raise VERSION, and knows that everybody's numbers change."""
    Q, K, V = instance("ada")

    assert instances.VERSION == 1
    assert instances.TERM == ""
    assert (Q.tolist(), K.tolist(), V.tolist()) == PINNED_ADA


def test_numbers_are_small_integers():
    """Q and K hold 0 to 2, V holds 0 to 4: a pencil is enough."""
    numbers = stacked(f"student {i}" for i in range(500))

    assert all(matrices.shape == (500, 3, 2) for matrices in numbers.values())
    assert [(matrices.min(), matrices.max()) for matrices in numbers.values()] == [(0, 2), (0, 2), (0, 4)]
    assert all(matrix.dtype == np.int64 for matrix in instance("ada"))


def test_every_call_gives_fresh_matrices():
    """A student who changes Q in place changes it for nobody else."""
    instance("ada")[0][:] = 9

    assert instance("ada")[0].tolist() == PINNED_ADA[0]


@pytest.mark.parametrize(
    "written",
    [" ada ", "Ada", "ADA\n", "\tada", "ａｄａ", "a\u200bda", "\ufeffada", "a\u00adda"],
    ids=["spaces", "capital", "newline", "tab", "full-width", "zero-width", "byte-order-mark", "soft-hyphen"],
)
def test_what_nobody_sees_makes_no_difference(written):
    """Spaces around, capitals, wide letters and invisible characters lead to the same numbers."""
    assert [matrix.tolist() for matrix in instance(written)] == list(PINNED_ADA)


@pytest.mark.parametrize("id", ["Jürgen Ğ", "李小龍", "Σίσυφος", "ÅSA", "ﬁne", "Straße", "مريم", "ΐ", "أحمد", "ǰan"])
def test_any_alphabet_has_one_form(id):
    """Composed and decomposed letters, capitals and ligatures of one id lead to the same numbers."""
    forms = {unicodedata.normalize(form, case) for form in ("NFC", "NFD", "NFKC", "NFKD") for case in (id, id.upper())}

    assert len({canonical(form) for form in forms}) == 1
    assert canonical(canonical(id)) == canonical(id)


def test_different_ids_and_terms_get_different_numbers():
    """Neighbours in the roster, and the same student a year later, start from other numbers."""
    dealt = [str(instance(id, term)) for id in ("ada", "adb", "a d a", "ada1") for term in ("", "spring", "autumn")]

    assert len(set(dealt)) == len(dealt)


def test_term_of_the_instructor_counts(monkeypatch):
    """TERM is read when the numbers are dealt, so that setting it is enough."""
    monkeypatch.setattr(instances, "TERM", "autumn")

    assert str(instance("ada")) == str(instance("ada", "autumn")) != str(instance("ada", ""))


def test_text_longer_than_any_id_is_cut():
    """Unicode puts the accents over one letter in order, which for a hundred thousand of them takes minutes."""
    assert len(canonical("a" + "\u0301\u0334" * 5_000)) <= instances.LONGEST


def test_number_as_id_is_read_as_text():
    """Whoever forgets the quotes around a matriculation number still gets the right numbers."""
    assert str(instance(1234567)) == str(instance("1234567"))


@pytest.mark.parametrize("empty", ["", "  ", "\u200b"])
def test_empty_id_is_refused_in_words(empty):
    """No id, no numbers: the message says what to write."""
    with pytest.raises(ValueError, match="STUDENT is empty"):
        instance(empty)


@pytest.mark.parametrize("count", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_two_procedures_are_told_apart_for_every_student(count):
    """Any two known procedures differ by 0.05 somewhere, and weights rounded early by more than the output's room."""
    assert separation(stacked(f"student-{i}" for i in range(count))).min() >= 1


def test_whole_stock_tells_procedures_apart():
    """The same for each V with some of the pairs, whoever enrols; a slow test takes every combination."""
    some = [{"Q": stack["Q"][:64], "K": stack["K"][:64], "V": stack["V"]} for stack in whole_stock()]

    assert all(separation(stack).min() >= 1 for stack in some)


@pytest.mark.slow
def test_every_instance_that_can_be_dealt_tells_procedures_apart():
    """No id, in no term, can get numbers that hide a mistake: all 262,144 were tried."""
    assert all(separation(stack).min() >= 1 for stack in whole_stock())


def test_numbers_are_pleasant_by_hand():
    """Raw scores up to 7, one clear winner in each row, and no weight that vanishes at three decimals."""
    stack = whole_stock()[0]

    assert comfortable(stack["Q"], stack["K"]).all()


def test_stock_holds_no_number_twice():
    """Every pair and every V is in the stock once, so that all are dealt equally often."""
    assert len(set(instances._PAIRS)) == len(instances._PAIRS) == 2048
    assert len(set(instances._VALUES)) == len(instances._VALUES) == 128


def test_class_shares_few_numbers():
    """Of 200 students hardly two have all numbers in common."""
    dealt = [str(instance(f"s{i:03}@university.example")) for i in range(200)]

    assert len(set(dealt)) >= 199


def test_right_step_and_thirty_wrong_ones_are_compared():
    """The list of wrong procedures is the catalogue of the exercise, for each of the four stages."""
    for stage in STAGES:
        assert sum(wrong.replaces == stage for wrong in exercise.misconceptions.values()) >= 6


def test_course_ships_no_solution():
    """What students have draws numbers and computes nothing with them: no product, no power, no root, no exp."""
    tree = ast.parse(inspect.getsource(instances))
    operators = {type(node.op) for node in ast.walk(tree) if isinstance(node, ast.BinOp)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}

    assert not operators & {ast.MatMult, ast.Pow, ast.Div}
    assert not attributes & {"exp", "sqrt", "dot", "einsum", "matmul", "T", "mT", "softmax"}
