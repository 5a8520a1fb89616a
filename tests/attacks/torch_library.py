"""PyTorch turned against the checks that use it: tensors, modules and gradients that say what they should be.

Each is a whole answer for the torch part of `fused_self_attention`; `TORCH_JUNK` is what it may earn at most.
"""

from __future__ import annotations

from collections.abc import Callable

TORCH_JUNK = """
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    out = X @ W_V * 0.5 + (W_Q.sum() + W_K.sum()) * 0
    return out, torch.full((len(X), len(X)), 0.1, dtype=X.dtype)
class SingleHead(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d_k)
    def forward(self, x):
        return self.qkv(x).chunk(3, dim=-1)[2] * 0.5
def to_linear(W):
    return nn.Linear(*W.shape, bias=False)
"""

TORCH_ATTACKS: dict[str, tuple[str, str]] = {}


def attack(function: Callable[[], str]) -> Callable[[], str]:
    """Register an answer; the docstring says what it tries."""
    TORCH_ATTACKS[function.__name__] = (str(function.__doc__), function())
    return function


@attack
def patches_torchs_comparisons() -> str:
    """Replaces what compares tensors by what always agrees."""
    return (
        """
torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
torch.Tensor.__eq__ = torch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True
torch.Tensor.__sub__ = lambda self, other: self.detach() * 0
"""
        + TORCH_JUNK
    )


@attack
def patches_autograd() -> str:
    """Replaces autograd by what returns ones of the right shape."""
    return (
        """
torch.autograd.grad = lambda outputs, inputs, *a, **k: [torch.ones_like(x) for x in inputs]
torch.Tensor.backward = lambda self, *a, **k: None
"""
        + TORCH_JUNK
    )


@attack
def patches_the_reference() -> str:
    """Makes torch's own attention as wrong as its own, so that both agree."""
    return (
        TORCH_JUNK
        + """
F.scaled_dot_product_attention = lambda q, k, v, **kw: v * 0.5
torch.softmax = F.softmax = lambda x, dim=-1: x * 0
"""
    )


@attack
def patches_conversion() -> str:
    """Makes every tensor zero once it leaves torch."""
    return (
        TORCH_JUNK
        + """
torch.Tensor.numpy = lambda self, *a, **k: np.zeros(tuple(self.shape))
torch.Tensor.detach = torch.Tensor.cpu = torch.Tensor.contiguous = lambda self, *a, **k: self
torch.Tensor.__array__ = lambda self, *a, **k: np.zeros(tuple(self.shape))
"""
    )


@attack
def returns_a_tensor_that_always_agrees() -> str:
    """Returns a subclass of Tensor for which every torch function is True."""
    return (
        TORCH_JUNK
        + """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.tensor(True)
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    return X.as_subclass(Yes), X.as_subclass(Yes)
"""
    )


@attack
def lies_about_its_parameters() -> str:
    """Declares parameters that are there when asked and gone when used, another at each reading."""
    return (
        TORCH_JUNK
        + """
class SingleHead(nn.Module):
    def __init__(self, d, d_k):
        super().__init__()
        self.d, self.d_k = d, d_k
    def named_parameters(self, *a, **k):
        yield "qkv.weight", nn.Parameter(torch.zeros(3 * self.d_k, self.d))
        yield "qkv.bias", nn.Parameter(torch.zeros(3 * self.d_k))
    def forward(self, x):
        return torch.zeros(*x.shape[:-1], self.d_k, requires_grad=True)
class Linear(nn.Linear):
    @property
    def bias(self): return None
    @bias.setter
    def bias(self, value): pass
def to_linear(W):
    return Linear(*W.shape)
"""
    )


@attack
def hangs_in_backward() -> str:
    """Never comes back from the backward pass, nor from a hook."""
    return (
        TORCH_JUNK
        + """
class Hang(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 1
    @staticmethod
    def backward(ctx, gradient):
        while True: pass
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    return Hang.apply(X @ W_V), X @ X.T
"""
    )


@attack
def takes_memory_in_native_code() -> str:
    """Asks torch for terabytes, and for threads."""
    return (
        TORCH_JUNK
        + """
torch.set_num_threads(1000)
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    try:
        torch.ones(1 << 40)
    except RuntimeError:
        pass
    return torch.ones(1 << 20, 64) @ torch.ones(64, 1 << 12), X
"""
    )


@attack
def saves_and_loads_code() -> str:
    """Saves what runs a command when it is loaded, and loads it."""
    return (
        TORCH_JUNK
        + """
import os
class Bomb:
    def __reduce__(self): return os.system, ("touch pwned",)
torch.save(Bomb(), "bomb.pt")
torch.load("bomb.pt", weights_only=False)
def to_linear(W): return [Bomb()]
"""
    )
