"""The table of shapes: right ones in any container pass, wrong ones are told which symbol stands where."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from cases import attention_shapes_right, attention_shapes_wrong

from graders.authoring import CheckFailed, load_exercise
from graders.diagnosis import explain
from graders.student import LocalStudent, StudentError
from graders.symbols import difference, in_symbols, naming

EXERCISE = load_exercise("attention_shapes")
SEEDS = range(20)


def cases(module) -> list:
    """The public functions of a module of cases, by name."""
    return [
        pytest.param(function, id=name)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]


def failures(answer, seed: int = 0) -> dict[str, CheckFailed | StudentError]:
    """The checks that `answer` fails, and how."""
    failed = {}
    for check in EXERCISE.checks.values():
        try:
            check(LocalStudent({"attention_shapes": answer}), EXERCISE.rng(check.id, seed))
        except (CheckFailed, StudentError) as found:
            failed[check.id] = found
    return failed


def named(answer, check: str, seed: int) -> list[str]:
    """The ids that the diagnosis gives for `answer` at `check`."""
    student = LocalStudent({"attention_shapes": answer})
    with pytest.raises((CheckFailed, StudentError)):
        EXERCISE.checks[check](student, EXERCISE.rng(check, seed))
    return [found.id for found in explain(EXERCISE, EXERCISE.checks[check], seed, student.trace)]


@pytest.mark.parametrize("answer", cases(attention_shapes_right))
def test_right_table_in_any_form_passes_every_check(answer):
    """Names, order, containers and kinds of integers cost nobody a mark."""
    for seed in SEEDS:
        assert failures(answer, seed) == {}, f"seed {seed}"


@pytest.mark.parametrize("answer", cases(attention_shapes_wrong))
def test_wrong_table_loses_marks_and_is_named(answer):
    """Each plausible wrong table fails, whatever the seed, and is called by its name where it has one."""
    wanted = attention_shapes_wrong.NAMED[answer.__name__]
    for seed in SEEDS:
        assert failures(answer, seed), f"seed {seed}"
    for seed in range(2):
        failed = failures(answer, seed)
        names = [name for check in failed for name in named(answer, check, seed)[:1]]
        assert (wanted in names) if wanted else not names, f"seed {seed}: {names}"


@pytest.mark.parametrize(
    ("answer", "check", "words"),
    [
        ("output_has_d_k", "output_is_as_wide_as_a_value", "output ends in d_k where d_v belongs"),
        ("output_width_d", "output_is_as_wide_as_a_value", "output ends in d where d_v belongs"),
        (
            "scores_transposed",
            "cross_attention_keeps_both_lengths",
            "scores has T_k in the middle where T_q belongs and ends in T_q where T_k belongs",
        ),
        ("only_self_attention", "cross_attention_keeps_both_lengths", "X_kv has T_q in the middle where T_k belongs"),
        ("weights_depend_on_T", "parameters_serve_every_length", "W_Q begins with T_q where d belongs"),
        ("no_batch", "projections_keep_the_tokens", "X_q has 2 axes where 3 belong: (T, d) for (B, T, d)"),
        ("forgets_an_entry", "scores_and_weights_are_pairs", "has no entry 'weights'"),
        ("text_for_shapes", "projections_keep_the_tokens", "X_q is no tuple of integers"),
    ],
)
def test_message_says_which_symbol_stands_where_which_belongs(answer, check, words):
    """The wording follows from the contract, so it may be told, and it names the entry and both symbols."""
    failure = failures(getattr(attention_shapes_wrong, answer))[check]

    assert words in failure.what
    assert failure.public


def test_wrong_entry_reports_both_shapes():
    """The verdict carries the shape that was found and the one that belongs there, as numbers."""
    failure = failures(attention_shapes_wrong.output_has_d_k)["output_is_as_wide_as_a_value"]

    assert failure.expected == "output (B, T, d_v)"
    assert failure.got == "output (B, T, d_k)"
    assert len(failure.expected_shape) == len(failure.got_shape) == 3
    assert failure.expected_shape[:2] == failure.got_shape[:2]
    assert failure.expected_shape[2] != failure.got_shape[2]


def test_one_idea_costs_one_check():
    """Widths and lengths are judged apart: a wrong width fails no check on lengths, and the other way round."""
    assert list(failures(attention_shapes_wrong.output_has_d_k)) == ["output_is_as_wide_as_a_value"]
    assert list(failures(attention_shapes_wrong.scores_transposed)) == ["cross_attention_keeps_both_lengths"]
    assert list(failures(attention_shapes_wrong.linear_layout)) == ["parameters_serve_every_length"]


def test_two_ideas_are_named_each_at_its_check():
    """Ideas about different entries do not hide one another."""
    assert named(attention_shapes_wrong.two_ideas, "output_is_as_wide_as_a_value", 0)[:1] == [
        "gives_the_output_the_key_width"
    ]
    assert named(attention_shapes_wrong.two_ideas, "cross_attention_keeps_both_lengths", 0)[:1] == [
        "transposes_the_scores"
    ]


def test_missing_entries_fail_only_the_checks_that_judge_them():
    """A table that is half done earns what it holds."""
    half = attention_shapes_wrong.forgets_an_entry

    assert list(failures(half)) == ["scores_and_weights_are_pairs", "cross_attention_keeps_both_lengths"]


@pytest.mark.parametrize("value", [None, 3, "shapes", [], (1, 2), np.zeros((2, 2)), {}, {"X_q": 5}, lambda: None])
def test_what_is_no_table_fails_every_check_in_words(value):
    """Whatever comes back, the check says what was found instead of crashing."""
    failed = failures(lambda *sizes: value)

    assert list(failed) == list(EXERCISE.checks)
    assert all(isinstance(failure, CheckFailed) and failure.what for failure in failed.values())


def test_sizes_that_are_no_integers_are_refused():
    """5.0 is no size: NumPy refuses it, so the check does."""
    failed = failures(
        lambda *sizes: {n: tuple(map(float, s)) for n, s in attention_shapes_right.any_order(*sizes).items()}
    )

    assert list(failed) == list(EXERCISE.checks)


def test_every_size_has_one_name():
    """Symbols, multiples and products of the hidden sizes never collide, so a number names what was written."""
    symbols = dict(zip(("B", "T_q", "T_k", "d", "d_k", "d_v"), (5, 7, 11, 13, 17, 19), strict=True))
    names = naming(symbols)

    assert in_symbols((5, 17, 34, 51, 35, 1), names) == ("B", "d_k", "2·d_k", "3·d_k", names[35], "1")
    assert {"B·T_q", "T_q·B"} >= {names[35]}
    assert len(names) == 6 + 12 + 21


@pytest.mark.parametrize(
    ("expected", "got", "words"),
    [
        (("d", "d_k"), ("d_k", "d"), "begins with d_k where d belongs and ends in d where d_k belongs"),
        (("B", "T", "d"), ("T", "B", "d"), "begins with T where B belongs and has B in the middle where T belongs"),
        (("B", "T"), ("B",), "has 1 axis where 2 belong: (B,) for (B, T)"),
        (("B", "T"), (), "has 0 axes where 2 belong: () for (B, T)"),
    ],
)
def test_difference_reads_as_a_sentence(expected, got, words):
    """Position, what stands there, and what belongs there."""
    assert difference(expected, got) == words
