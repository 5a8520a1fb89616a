"""What attacks are handed in for: two small assignments, with our checks and with hidden tests for stock nbgrader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from attacks.casebook import FAIL, JUNK, TORCH_FAIL, TORCH_JUNK, AssignmentName, Notebook, code
from graders.authoring import Exercise, expect_array, expect_close, expect_unchanged, load_exercise
from graders.sandbox.box import Limits
from graders.student import Student


@dataclass(frozen=True)
class Assignment:
    """An exercise with its right answer, an answer of the right shapes alone, and the stub that students get.

    `tests` ask on stock nbgrader, check by check, what the exercise's checks ask here.
    """

    exercise: Exercise
    imports: str
    honest: str
    junk: str
    stub: str
    tests: Mapping[str, str]
    modules: tuple[str, ...]
    limits: Limits

    def released(self) -> Notebook:
        """The notebook that students get."""
        checks = [
            _marked(check.id, f"# {check.title}", grade=True, locked=True, points=check.points)
            for check in self.exercise.checks.values()
        ]
        answer = _marked("fused_self_attention", self.stub.strip(), solution=True)
        cells = [code(self.imports, "imports"), answer, *checks, code("x = 1", "scratch")]
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _marked(id: str, source: str, **nbgrader: object) -> dict:
    about = {"grade": False, "grade_id": id, "locked": False, "schema_version": 3, "solution": False, "task": False}
    return code(source, id, nbgrader={**about, **nbgrader})


LIMITS = Limits(call=1.0, cell=3.0, hand_in=15.0, memory=512 << 20, file=1 << 20, processes=32, scratch=8 << 20)

# --- on arrays --------------------------------------------------------------------------------------------------------

HONEST = """
def fused_self_attention(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    scores = Q @ np.swapaxes(K, -1, -2) * scale
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ V
"""

exercise = Exercise("attacked")
exec(HONEST, names := {"np": np})
right = names["fused_self_attention"]


def _inputs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    return rng.normal(size=(5, 7)), rng.normal(size=(7, 12)), 0.6


@exercise.check(points=1)
def shape(student: Student, rng: np.random.Generator) -> None:
    """The output has a row for every token."""
    expect_array(student.fused_self_attention(*_inputs(rng)), shape=(5, 4), name="the output")


@exercise.check(points=2)
def unchanged(student: Student, rng: np.random.Generator) -> None:
    """What the function is given stays as it is, and the output is a number in every place."""
    X, W, scale = _inputs(rng)
    seen = student.observe("fused_self_attention", X, W, scale)
    expect_unchanged([X, W], seen.arguments, names=("X", "W_qkv"))
    expect_close(seen.value, right(X, W, scale), name="the output")


@exercise.check(points=4)
def value(student: Student, rng: np.random.Generator) -> None:
    """The output is that of the formula, twice."""
    for X, W, scale in (_inputs(rng), _inputs(rng)):
        expect_close(student.fused_self_attention(X, W, scale), right(X, W, scale), name="the output")


@exercise.check(points=3)
def batched(student: Student, rng: np.random.Generator) -> None:
    """A batch is a batch."""
    X, W, scale = rng.normal(size=(3, 5, 7)), rng.normal(size=(7, 12)), 0.6
    expect_close(student.fused_self_attention(X, W, scale), right(X, W, scale), name="the output")


INPUTS = f"""rng = np.random.default_rng({{seed}})
X, W_qkv, scale = rng.normal(size={{shape}}), rng.normal(size=(7, 12)), 0.6
{HONEST.strip().replace("fused_self_attention", "reference")}
expected = reference(X, W_qkv, scale)
"""
TESTS = {
    "shape": INPUTS.format(seed=2101, shape=(5, 7)) + "assert fused_self_attention(X, W_qkv, scale).shape == (5, 4)",
    "unchanged": INPUTS.format(seed=2102, shape=(5, 7))
    + """X_before, W_before = X.copy(), W_qkv.copy()
output = fused_self_attention(X, W_qkv, scale)
assert np.array_equal(X, X_before) and np.array_equal(W_qkv, W_before)
assert np.allclose(output, expected)""",
    "value": INPUTS.format(seed=2103, shape=(5, 7))
    + """np.testing.assert_allclose(fused_self_attention(X, W_qkv, scale), expected)
X = rng.normal(size=(5, 7))
expected = reference(X, W_qkv, scale)
np.testing.assert_allclose(fused_self_attention(X, W_qkv, scale), expected)""",
    "batched": INPUTS.format(seed=2104, shape=(3, 5, 7))
    + "assert np.allclose(fused_self_attention(X, W_qkv, scale), expected)",
}
"""What our checks ask, as hidden tests of a notebook usually ask it."""

# --- on tensors -------------------------------------------------------------------------------------------------------

TORCH_HONEST = """def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = Q @ K.T / K.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape, dtype=torch.bool).triu(1), float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ V, weights
class SingleHead(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)
    def forward(self, x):
        return F.scaled_dot_product_attention(*self.qkv(x).chunk(3, dim=-1))
def to_linear(W):
    layer = nn.Linear(*W.shape, bias=False)
    layer.weight.data.copy_(torch.tensor(W).T)
    return layer
"""


def _torch_exercise() -> Exercise:
    """The checks of the course that ask for tensors, gradients and modules."""
    whole = load_exercise("fused_self_attention")
    names = [name for name in whole.checks if name.startswith(("torch_", "head_", "linear_"))]
    return replace(whole, checks={name: whole.checks[name] for name in names}, misconceptions={})


REFERENCE = TORCH_HONEST.replace("causal_attention_torch", "reference").replace("SingleHead", "Reference")
TORCH_INPUTS = f"""torch.manual_seed({{seed}})
{REFERENCE.strip()}
X, W_Q, W_K, W_V = [torch.randn(size, dtype=torch.float64) for size in ((6, 8), (8, 5), (8, 5), (8, 3))]
x, W, upstream = torch.randn(2, 6, 9), np.random.default_rng({{seed}}).normal(size=(7, 12)), torch.randn(6, 3)
"""
TORCH_TESTS = {
    name: TORCH_INPUTS.format(seed=seed) + test
    for seed, (name, test) in enumerate(
        {
            "torch_values": """before = [value.clone() for value in (X, W_Q, W_K, W_V)]
output, weights = causal_attention_torch(X, W_Q, W_K, W_V)
torch.testing.assert_close(output, reference(X, W_Q, W_K, W_V)[0])
torch.testing.assert_close(weights, reference(X, W_Q, W_K, W_V)[1])
assert all(torch.equal(*pair) for pair in zip(before, (X, W_Q, W_K, W_V)))""",
            "torch_flag": """output, weights = causal_attention_torch(X, W_Q, W_K, W_V, False)
assert torch.allclose(output, reference(X, W_Q, W_K, W_V, False)[0])
assert torch.allclose(weights, reference(X, W_Q, W_K, W_V, False)[1])""",
            "torch_sdpa": """Q, K, V = ((X @ W)[None] for W in (W_Q, W_K, W_V))
output, _ = causal_attention_torch(X, W_Q, W_K, W_V)
assert torch.allclose(output, F.scaled_dot_product_attention(Q, K, V, is_causal=True)[0])""",
            "torch_gradients": """leaves = [W.requires_grad_() for W in (W_Q, W_K, W_V)]
got, expected = (
    torch.autograd.grad((attention(X, *leaves)[0] * upstream).sum(), leaves)
    for attention in (causal_attention_torch, reference)
)
assert all(torch.allclose(*pair) for pair in zip(got, expected))""",
            "head_values": """head, right = SingleHead(9, 4), Reference(9, 4)
nn.init.zeros_(head.qkv.bias)
right.load_state_dict(head.state_dict())
torch.testing.assert_close(head(x), right(x))""",
            "head_bias": """head, right = SingleHead(9, 4), Reference(9, 4)
nn.init.normal_(head.qkv.bias)
right.load_state_dict(head.state_dict())
torch.testing.assert_close(head(x), right(x))""",
            "head_gradients": """head, right = SingleHead(9, 4), Reference(9, 4)
right.load_state_dict(head.state_dict())
for module in (head, right):
    module(x).square().sum().backward()
torch.testing.assert_close(head.qkv.weight.grad, right.qkv.weight.grad)
torch.testing.assert_close(head.qkv.bias.grad, right.qkv.bias.grad)""",
            "head_sdpa": """head = SingleHead(9, 4)
assert torch.allclose(head(x), F.scaled_dot_product_attention(*head.qkv(x).chunk(3, dim=-1)), atol=1e-6)""",
            "linear_weight": """assert np.allclose(to_linear(W).weight.detach().numpy(), W.T)""",
            "linear_bias": """layer = to_linear(W)
assert layer.weight.shape == (12, 7)
assert layer.bias is None or not layer.bias.any()""",
        }.items(),
        start=2201,
    )
}

ASSIGNMENTS: dict[AssignmentName, Assignment] = {
    "numpy": Assignment(
        exercise=exercise,
        imports="import numpy as np",
        honest=HONEST,
        junk=JUNK,
        stub=FAIL,
        tests=TESTS,
        modules=("numpy",),
        limits=LIMITS,
    ),
    "torch": Assignment(
        exercise=_torch_exercise(),
        imports="import numpy as np\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F",
        honest=TORCH_HONEST,
        junk=TORCH_JUNK,
        stub=TORCH_FAIL,
        tests=TORCH_TESTS,
        modules=("numpy", "torch"),
        limits=replace(LIMITS, call=4.0, cell=8.0, hand_in=60.0, memory=1 << 30),
    ),
}
