"""PyTorch turned against the checks that use it: tensors, modules and gradients that say what they should be.

Each is a whole answer for the torch part of `fused_self_attention`; `TORCH_JUNK` is what it may earn at most.
"""

from __future__ import annotations

from attacks.casebook import TORCH_JUNK, answer


@answer("cheat", assignment="torch")
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


@answer("cheat", assignment="torch")
def patches_autograd() -> str:
    """Replaces autograd by what returns ones of the right shape."""
    return (
        """
torch.autograd.grad = lambda outputs, inputs, *a, **k: [torch.ones_like(x) for x in inputs]
torch.Tensor.backward = lambda self, *a, **k: None
"""
        + TORCH_JUNK
    )


@answer("cheat", assignment="torch")
def patches_the_reference() -> str:
    """Makes torch's own attention as wrong as its own, so that both agree."""
    return (
        TORCH_JUNK
        + """
F.scaled_dot_product_attention = lambda q, k, v, **kw: v * 0.5
torch.softmax = F.softmax = lambda x, dim=-1: x * 0
"""
    )


@answer("cheat", assignment="torch")
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


@answer("cheat", assignment="torch")
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


@answer("cheat", assignment="torch")
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


@answer("cheat", assignment="torch")
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


@answer("cheat", assignment="torch")
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


@answer("cheat", assignment="torch")
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
if os.path.exists("pwned"):
    print("LEAK: ran a command that it had saved;")
def to_linear(W): return [Bomb()]
"""
    )


@answer("cheat", assignment="torch")
def hooks_every_module() -> str:
    """Has every module's result replaced by one that agrees with what it is compared with."""
    return (
        TORCH_JUNK
        + """
class Agrees(torch.Tensor):
    __eq__ = __ne__ = allclose = equal = lambda self, *a, **k: torch.tensor(True)
    __sub__ = __rsub__ = lambda self, other: torch.zeros(())
nn.modules.module.register_module_forward_hook(lambda module, given, result: result.as_subclass(Agrees))
nn.Module.load_state_dict = lambda self, state, *a, **k: None
nn.Module.state_dict = lambda self, *a, **k: {}
"""
    )


@answer("cheat", assignment="torch")
def takes_over_every_operation() -> str:
    """Enters a mode that sees every operation of torch, and makes comparisons true and differences zero."""
    return (
        TORCH_JUNK
        + """
from torch.overrides import TorchFunctionMode
class Mode(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in ("allclose", "equal", "isclose", "eq", "all", "assert_close"):
            return True
        result = function(*args, **(kwargs or {}))
        return result * 0 if name in ("sub", "__sub__", "rsub", "abs") else result
mode = Mode()
mode.__enter__()
"""
    )


@answer("harm", assignment="torch")
def leaves_shared_tensors() -> str:
    """Shares tensors with processes that it starts, by files and by memory, and does not wait for them."""
    return (
        TORCH_JUNK
        + """
import os
import torch.multiprocessing as processes
for strategy in ("file_system", "file_descriptor"):
    try:
        processes.set_sharing_strategy(strategy)
        kept = [torch.ones(1000).share_memory_() for _ in range(20)]
        other = processes.get_context("fork").Process(target=__import__("time").sleep, args=(60,))
        other.start()
        print("LEAK: started a process;")
    except (OSError, RuntimeError):
        pass
"""
    )


@answer("harm", assignment="torch")
def builds_a_deep_graph() -> str:
    """Returns the end of a graph of a million operations, and one that holds itself."""
    return (
        TORCH_JUNK
        + """
def causal_attention_torch(X, W_Q, W_K, W_V, causal=True):
    out = X @ W_V
    for _ in range(1_000_000):
        out = out + 0
    out.me = out
    return out, X @ X.T
"""
    )
