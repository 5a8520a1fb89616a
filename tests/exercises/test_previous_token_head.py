"""The head that looks one back: right ones of any make pass, wrong ones are told apart by what they do."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from cases import previous_token_head_right, previous_token_head_wrong

from graders.authoring import CheckFailed, load_exercise
from graders.diagnosis import explain
from graders.student import LocalStudent, StudentError

EXERCISE = load_exercise("previous_token_head")
SEEDS = range(20)


def cases(module) -> list:
    """The public functions of a module of cases, by name."""
    return [
        pytest.param(function, id=name)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    ]


def failure(answer, check: str, seed: int = 0) -> CheckFailed | StudentError | None:
    """How `answer` fails `check`, or None."""
    try:
        EXERCISE.checks[check](LocalStudent({EXERCISE.slug: answer}), EXERCISE.rng(check, seed))
    except (CheckFailed, StudentError) as found:
        return found
    return None


def first_failed(answer, seed: int) -> str | None:
    """The first check that `answer` fails."""
    return next((check for check in EXERCISE.checks if failure(answer, check, seed) is not None), None)


def named(answer, check: str, seed: int) -> list[str]:
    """The ids that the diagnosis gives for `answer` at `check`."""
    student = LocalStudent({EXERCISE.slug: answer})
    with pytest.raises((CheckFailed, StudentError)):
        EXERCISE.checks[check](student, EXERCISE.rng(check, seed))
    return [found.id for found in explain(EXERCISE, EXERCISE.checks[check], seed, student.trace)]


@pytest.mark.parametrize("answer", cases(previous_token_head_right))
def test_right_head_of_any_make_passes_every_check(answer):
    """Behaviour is judged, never entries, factors, widths, dtypes or containers."""
    for seed in SEEDS:
        assert first_failed(answer, seed) is None, f"seed {seed}"


@pytest.mark.parametrize("answer", cases(previous_token_head_wrong))
def test_wrong_head_loses_marks_and_is_named(answer):
    """Each plausible wrong head fails, whatever the seed, and is called by its name where it has one."""
    wanted = previous_token_head_wrong.NAMED[answer.__name__]
    for seed in SEEDS:
        check = first_failed(answer, seed)
        assert check is not None, f"seed {seed}"
        if seed % 5 == 0:  # replaying the whole catalogue takes a while
            assert named(answer, check, seed)[:1] == ([wanted] if wanted else []), f"seed {seed}"


def test_names_in_the_table_are_in_the_catalogue():
    """A name that no misconception has would never be given."""
    assert set(previous_token_head_wrong.NAMED.values()) - {""} <= set(EXERCISE.misconceptions)


def test_name_does_not_depend_on_the_matrices():
    """Two heads with different entries that look at themselves are named alike; their traces have nothing in common."""

    def in_two_dimensions(n_vocab, T):
        angle = 2 * np.pi * np.arange(T) / T
        W = np.zeros((n_vocab + T, 2))
        W[n_vocab:] = 90 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        return W, W, np.eye(n_vocab + T, n_vocab)

    assert named(in_two_dimensions, "looks_one_back", seed=0) == ["looks_at_itself"]


def test_message_on_sharpness_says_how_far_the_score_must_lead():
    """The bound that failed is named with its number: ln(99 · 4) for five tokens."""
    found = failure(previous_token_head_wrong.factor_three, "sharp_at_every_length")
    assert "ln(99 · 4) = 5.98" in found.expected
    assert found.got == "a lead of 3.00"
    assert found.public


def test_message_on_direction_says_where_the_row_looks():
    """A head that looks ahead reads which position its first wrong row finds."""
    found = failure(previous_token_head_wrong.next_token, "looks_one_back")
    assert found.expected == "most weight on position 0"
    assert found.got == "most weight (1.000) on position 2"


def test_message_on_shape_gives_both_shapes():
    """A matrix for another length is told the rows that belong there."""
    found = failure(previous_token_head_wrong.written_for_five_tokens, "three_matrices")
    assert found.what.startswith("W_Q has the wrong shape for n_vocab =")
    assert found.expected_shape[0] != found.got_shape[0]


def test_looking_elsewhere_costs_no_marks_for_the_values():
    """One mistake is paid for once: values that read the token are right wherever the head looks."""
    assert failure(previous_token_head_wrong.next_token, "hands_over_the_token") is None


@pytest.mark.parametrize("bound", [0.989, 0.99])
def test_weight_of_exactly_the_bound_passes_and_less_fails(bound):
    """The contract says at least 0.99, in float32 too."""

    def head(n_vocab, T):
        W_Q, W_K, W_V = previous_token_head_right.smallest_factor(n_vocab, T)
        return (W_Q / np.log(99 * (T - 1)) * np.log(bound / (1 - bound) * (T - 1))).astype(np.float32), W_K, W_V

    assert (failure(head, "sharp_at_every_length") is None) == (bound >= 0.99)


def written_otherwise(**parts):
    """A head with wrong parts, in another basis of its keys: not one entry of W_Q or W_K is the catalogue's."""
    made = EXERCISE.families[EXERCISE.slug](**parts)

    def head(n_vocab, T):
        W_Q, W_K, W_V = made(n_vocab, T)
        turn = np.linalg.qr(np.random.default_rng(5).normal(size=(W_Q.shape[1],) * 2))[0]
        return W_Q @ turn / 2, 2 * W_K @ turn, W_V

    return head


def parts_of(*ideas):
    """The wrong parts of several ideas."""
    return {name: part for id in ideas for name, part in EXERCISE.misconceptions[id].faults.items()}


@pytest.mark.parametrize(
    ("ideas", "check", "wanted"),
    [
        (("hands_over_the_whole_row", "looks_at_itself"), "looks_one_back", ["looks_at_itself"]),
        (("leaves_out_the_token_rows", "looks_two_back"), "looks_one_back", ["looks_two_back"]),
        (("writes_one_length", "copies_the_three"), "sharp_at_every_length", ["copies_the_three"]),
        (("looks_at_the_next", "uses_no_factor"), "sharp_at_every_length", ["uses_no_factor"]),
        (("matches_tokens", "copies_the_three"), "sharp_at_every_length", ["copies_the_three"]),
        (("puts_positions_first", "sharpens_the_values"), "hands_over_the_token", ["sharpens_the_values"]),
        (("puts_positions_first",), "hands_over_the_token", ["puts_positions_first"]),
        (("looks_two_back", "puts_positions_first"), "looks_one_back", ["looks_two_back+puts_positions_first"]),
    ],
)
def test_second_mistake_is_named_by_what_the_head_does(ideas, check, wanted):
    """Beside a wrong shape, a wrong direction or exchanged halves, and whatever the entries are."""
    found = named(written_otherwise(**parts_of(*ideas)), check, 0)
    assert [" + ".join(sorted(id.split("+"))) for id in found] == [" + ".join(sorted(id.split("+"))) for id in wanted]


def test_factor_that_is_enough_at_every_length_is_not_named_beside_a_wrong_direction():
    """A head that looks at itself sharply is told about its direction, and not about its factor."""
    assert named(written_otherwise(**parts_of("looks_at_itself")), "sharp_at_every_length", 0) == []
