"""Attention by hand: right ones of any make keep every point, wrong ones lose some and are called by name."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from cases import (
    causal_attention_right,
    causal_attention_torch_right,
    causal_attention_torch_wrong,
    causal_attention_wrong,
    classic_variants,
    cross_attention_right,
    cross_attention_wrong,
    fused_self_attention_right,
    fused_self_attention_wrong,
    single_head_right,
    single_head_wrong,
    to_linear_right,
    to_linear_wrong,
)

from graders.authoring import CheckFailed, load_exercise
from graders.diagnosis import explain
from graders.student import LocalStudent, Observation, StudentError

EXERCISE = load_exercise("fused_self_attention")
SEEDS = range(20)
FAMILIES = {
    "fused_self_attention": "fused",
    "causal_attention": "causal",
    "cross_attention": "cross",
    "causal_attention_torch": "torch",
    "SingleHead": "head",
    "to_linear": "linear",
}
RIGHT = {
    "fused_self_attention": fused_self_attention_right,
    "causal_attention": causal_attention_right,
    "cross_attention": cross_attention_right,
    "causal_attention_torch": causal_attention_torch_right,
    "SingleHead": single_head_right,
    "to_linear": to_linear_right,
}
WRONG = {
    "fused_self_attention": fused_self_attention_wrong,
    "causal_attention": causal_attention_wrong,
    "cross_attention": cross_attention_wrong,
    "causal_attention_torch": causal_attention_torch_wrong,
    "SingleHead": single_head_wrong,
    "to_linear": to_linear_wrong,
}

Failure = tuple[str, CheckFailed | StudentError, list[Observation]]


def answers(modules: dict[str, ModuleType]) -> list:
    """Every public answer of the modules, functions, classes and other callables, with its name in the id."""
    return [
        pytest.param(name, answer, id=f"{name}-{case}")
        for name, module in modules.items()
        for case, answer in vars(module).items()
        if callable(answer)
        and not case.startswith("_")
        and getattr(answer, "__module__", "") in (module.__name__, "functools", None)
    ]


def failing(name: str, answer: Any, seed: int) -> Iterator[Failure]:
    """How `answer` fails the checks of its family: check, finding and trace of each."""
    for check in EXERCISE.checks.values():
        if not check.id.startswith(FAMILIES[name] + "_"):
            continue
        student = LocalStudent({**EXERCISE.references, name: answer})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                check(student, EXERCISE.rng(check.id, seed))
            except (CheckFailed, StudentError) as failure:
                yield check.id, failure, student.trace


def failures(name: str, answer: Any, seed: int) -> list[Failure]:
    """All of `failing`."""
    return list(failing(name, answer, seed))


def named(failure: Failure, seed: int) -> list[str]:
    """The ids that the diagnosis gives."""
    check, _, trace = failure
    return [idea.id for idea in explain(EXERCISE, EXERCISE.checks[check], seed, trace)]


@pytest.mark.parametrize(("name", "answer"), answers(RIGHT))
def test_right_answer_of_any_make_passes_every_check(name, answer):
    """Loops, einsum, PyTorch for NumPy, records, lambdas: what counts is the numbers."""
    for seed in SEEDS:
        assert [check for check, _, _ in failures(name, answer, seed)] == [], f"seed {seed}"


@pytest.mark.parametrize(("name", "answer"), answers(WRONG))
def test_wrong_answer_loses_marks_and_is_named(name, answer):
    """Each plausible wrong answer fails, whatever the seed, and is called exactly what the table says."""
    case = getattr(answer, "__name__", "")
    wanted = WRONG[name].NAMED[case]
    for seed in SEEDS:
        found = next(failing(name, answer, seed), None)
        assert found is not None, f"seed {seed}"
        if seed % 10 == 0:  # replaying the whole catalogue takes a while
            assert named(found, seed)[:1] == ([wanted] if wanted else []), f"seed {seed}"


@pytest.mark.parametrize("name", WRONG)
def test_names_in_the_table_are_in_the_catalogue(name):
    """A name that no misconception has would never be given."""
    assert set(WRONG[name].NAMED.values()) - {""} <= set(EXERCISE.misconceptions)


def test_there_are_22_classic_variants():
    """The list is the curriculum's, whole and without doubles."""
    assert len(set(classic_variants.VARIANTS)) == 22


WITHOUT_FLAG = [v for v in classic_variants.VARIANTS if v not in classic_variants.MASKS] + ["causal when not asked"]
CLASSIC = [
    *(("fused_self_attention", classic_variants.fused, variant) for variant in WITHOUT_FLAG),
    *(("causal_attention", classic_variants.causal, variant) for variant in classic_variants.VARIANTS),
    *(("cross_attention", classic_variants.cross, variant) for variant in WITHOUT_FLAG),
    *(("causal_attention_torch", classic_variants.causal_torch, variant) for variant in classic_variants.VARIANTS),
]


@pytest.mark.parametrize(("name", "attention", "variant"), CLASSIC, ids=lambda value: getattr(value, "__name__", value))
def test_classic_variant_is_rejected(name, attention, variant):
    """Each of the 22 fails, in every function that can suffer from it."""
    for seed in SEEDS:
        assert next(failing(name, partial(attention, variant), seed), None), f"seed {seed}"


@pytest.mark.parametrize("attention", [classic_variants.fused, classic_variants.causal, classic_variants.cross])
def test_harness_of_the_classic_variants_is_right_without_one(attention):
    """The variants fail for what is wrong with them: with no variant, the same code passes every check."""
    name = {"fused": "fused_self_attention", "causal": "causal_attention", "cross": "cross_attention"}[
        attention.__name__
    ]
    assert failures(name, partial(attention, ""), seed=1) == []


def numbers_as(kind, name):
    """The reference, with its results as `kind` makes them."""
    reference = EXERCISE.references[name]

    def answer(*arguments):
        found = reference(*arguments)
        return tuple(kind(part) for part in found) if isinstance(found, tuple) else kind(found)

    return answer


def read_only(array):
    """A copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


KINDS = {
    "lists": lambda array: array.tolist(),
    "tensors": torch.tensor,
    "tensors_with_graph": lambda array: torch.tensor(array, requires_grad=True) * 1,
    "masked": np.ma.masked_array,
    "float32": lambda array: array.astype(np.float32),
    "longdouble": lambda array: array.astype(np.longdouble),
    "fortran": np.asfortranarray,
    "reversed_view": lambda array: np.ascontiguousarray(array[..., ::-1])[..., ::-1],
    "read_only": read_only,
    "big_endian": lambda array: array.astype(">f8"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["fused_self_attention", "causal_attention", "cross_attention"])
def test_container_and_dtype_of_the_result_cost_nothing(name, kind):
    """Lists, tensors, masked arrays, float32, views: numbers are numbers."""
    for seed in range(3):
        assert failures(name, numbers_as(KINDS[kind], name), seed) == [], f"seed {seed}"


@pytest.mark.parametrize("name", ["fused_self_attention", "causal_attention", "cross_attention"])
def test_float32_inside_costs_nothing_and_float16_does(name):
    """The large scores are exact in float32, so that only the precision that is too coarse loses marks."""

    def working_in(dtype):
        def answer(*arguments):
            cast = [value.astype(dtype) if isinstance(value, np.ndarray) else value for value in arguments]
            return EXERCISE.references[name](*cast)

        return answer

    for seed in SEEDS:
        assert failures(name, working_in(np.float32), seed) == [], f"seed {seed}"
        assert next(failing(name, working_in(np.float16), seed), None), f"seed {seed}"


@pytest.mark.parametrize("fill", [-1e4, -1e9, -1e30])
@pytest.mark.parametrize("name", ["causal_attention", "causal_attention_torch"])
def test_finite_fill_below_every_score_is_right(name, fill):
    """A mask of −1e9 behaves as −∞ for all scores within ±1000."""

    def answer(X, W_Q, W_K, W_V, causal=True):
        xp = torch if isinstance(X, torch.Tensor) else np
        scores = (X @ W_Q) @ (X @ W_K).T / W_K.shape[-1] ** 0.5
        if causal:
            scores = xp.where(xp.tril(xp.ones(scores.shape)) == 1, scores, fill)
        weights = xp.exp(scores - xp.amax(scores, -1, keepdims=True))
        weights = weights / weights.sum(-1)[:, None]
        return weights @ (X @ W_V), weights

    for seed in SEEDS:
        assert failures(name, answer, seed) == [], f"seed {seed}"


def test_renormalised_mask_fails_one_check_and_reads_why():
    """Masking after the softmax and renormalising is right on ordinary scores; the check that it fails explains 0/0."""
    wrong = EXERCISE.misconceptions["causal_masks_after_softmax_and_renormalises"]
    for seed in SEEDS:
        [(check, failure, _)] = failures("causal_attention", wrong.answer, seed)
        assert check == "causal_large_scores"
        assert "not finite" in failure.what
        assert "0/0" in EXERCISE.checks[check].hint
        assert "Mask before the softmax" in EXERCISE.checks[check].hint


@pytest.mark.parametrize("part", ["W_Q", "W_K", "W_V"])
def test_graph_that_is_cut_at_one_weight_is_seen(part):
    """Two gradients out of three are not enough, and the message says which is missing."""

    def answer(X, W_Q, W_K, W_V, causal=True):
        weights = {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}
        weights[part] = weights[part].detach()
        return EXERCISE.references["causal_attention_torch"](X, *weights.values(), causal)

    [(check, failure, _)] = failures("causal_attention_torch", answer, seed=0)
    assert check == "torch_gradients"
    assert failure.what == f"no gradient reaches {part}"


def test_numpy_result_of_the_torch_function_loses_the_gradients_only():
    """The numbers are right, so only what needs a graph is lost."""

    def answer(*arguments):
        output, weights = EXERCISE.references["causal_attention_torch"](*arguments)
        return output.detach().numpy(), weights.detach().numpy()

    assert [check for check, _, _ in failures("causal_attention_torch", answer, 0)] == ["torch_gradients"]


def test_answer_for_one_sequence_only_earns_its_check():
    """Whoever has no batch yet keeps the point for one sequence."""

    def answer(X, W_qkv, scale):
        if X.ndim != 2:
            raise ValueError("one sequence at a time")
        return EXERCISE.references["fused_self_attention"](X, W_qkv, scale)

    failed = [check for check, _, _ in failures("fused_self_attention", answer, 0)]
    assert "fused_values" in failed
    assert "fused_one_sequence" not in failed


def test_head_with_other_layers_reads_which_parameters_it_has():
    """The contract on qkv is told in the words of the code that was written."""
    _, failure, _ = failures("SingleHead", single_head_wrong.ThreeLayers, 0)[0]
    assert failure.public
    assert "q.weight (4, 12)" in failure.got


@pytest.mark.parametrize("name", ["causal_attention", "cross_attention", "causal_attention_torch"])
def test_single_array_where_a_pair_belongs_is_told_so(name):
    """The message asks for (output, weights); it does not count rows."""
    _, failure, _ = failures(name, lambda *arguments: EXERCISE.references[name](*arguments)[0], 0)[0]
    assert failure.expected == "a pair (output, weights)"


@pytest.mark.parametrize("value", [([1.0, [2.0]], np.ones(3)), ([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]])])
def test_pair_of_rows_of_different_lengths_is_a_wrong_answer(value: Any) -> None:
    """Whatever comes back, the check judges it; it is not the check that breaks."""
    student = LocalStudent({**EXERCISE.references, "fused_self_attention": lambda *_: value})
    with pytest.raises(CheckFailed):
        EXERCISE.checks["fused_values"](student, EXERCISE.rng("fused_values", 0))


def test_output_that_never_changes_says_nothing_of_the_future() -> None:
    """Who answers nothing leaks nothing; the marks are for attention that does not."""
    student = LocalStudent(
        {**EXERCISE.references, "causal_attention": lambda X, *_: (np.zeros((len(X), 3)), np.eye(len(X)))}
    )
    with pytest.raises(CheckFailed, match="does not depend on X"):
        EXERCISE.checks["causal_future"](student, EXERCISE.rng("causal_future", 0))
