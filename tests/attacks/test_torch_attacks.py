"""Attacks on the checks that use PyTorch: its comparisons, gradients and modules replaced in the student's process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from attacks.arena import LIMITS, earned
from attacks.torch_library import TORCH_ATTACKS, TORCH_JUNK
from graders.authoring import Exercise, load_exercise
from graders.grading import Job, grade
from graders.sandbox.box import Sandbox
from graders.verdict import Verdict

pytestmark = pytest.mark.slow

IMPORTS = "import numpy as np\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F"
HONEST = """
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
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


@pytest.fixture(scope="module")
def exercise() -> Exercise:
    """The checks of the course that ask for tensors, gradients and modules."""
    whole = load_exercise("fused_self_attention")
    names = [name for name in whole.checks if name.startswith(("torch_", "head_", "linear_"))]
    return replace(whole, checks={name: whole.checks[name] for name in names}, misconceptions={})


@pytest.fixture(scope="module")
def torch_sandbox() -> Iterator[Sandbox]:
    """A sandbox that has torch loaded."""
    with Sandbox(("numpy", "torch"), replace(LIMITS, call=4.0, cell=8.0, hand_in=60.0, memory=1 << 30)) as sandbox:
        yield sandbox


def _judge(exercise: Exercise, sandbox: Sandbox, source: str) -> Verdict:
    return grade(Job(exercise, "me", (IMPORTS, source), seed=7), sandbox)[0]


@pytest.mark.parametrize("name", TORCH_ATTACKS)
def test_an_attack_on_torch_earns_nothing(name: str, exercise: Exercise, torch_sandbox: Sandbox) -> None:
    """No check more than junk of the right shapes, and the next student has full marks."""
    tries, source = TORCH_ATTACKS[name]
    junk = earned(_judge(exercise, torch_sandbox, TORCH_JUNK))
    assert junk == {"linear_bias"}
    assert earned(_judge(exercise, torch_sandbox, source)) <= junk, tries
    honest = _judge(exercise, torch_sandbox, HONEST)
    assert honest.score == exercise.max_score, [result.message for result in honest.checks]
