"""Right but unusual score_statistics(q, k, g, scaled): each function's comment names what a check must not assume."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


def _parts(q, k, scaled):
    S = q @ k.T * (q.shape[-1] ** -0.5 if scaled else 1.0)
    L = S - S.max(-1, keepdims=True)
    L = L - np.log(np.exp(L).sum(-1, keepdims=True))
    return S, L, np.exp(L)


# Autograd, entropy with + 1e-12, and torch.median, which is the lower middle value of an even number.
def torch_autograd(q, k, g, scaled):
    import torch

    q, k, g = (torch.as_tensor(np.array(a)) for a in (q, k, g))
    s = (q @ k.T / (q.shape[-1] ** 0.5 if scaled else 1.0)).requires_grad_()
    w = torch.softmax(s, -1)
    (w * g).sum().backward()
    return {
        "std": s.std().item(),
        "one_hot": (w.max(-1).values > 0.99).double().mean().item(),
        "entropy": -(w * torch.log(w + 1e-12)).sum(-1).mean().item(),
        "grad_median": s.grad.norm(dim=-1).median().item(),
    }


# Tensors of no dimension, log_softmax, and the graph still attached.
def torch_tensors(q, k, g, scaled):
    import torch

    q, k, g = (torch.as_tensor(np.array(a, dtype=float)) for a in (q, k, g))
    s = (q @ k.T / (math.sqrt(q.shape[-1]) if scaled else 1)).requires_grad_()
    logs = torch.log_softmax(s, -1)
    (gradient,) = torch.autograd.grad((logs.exp() * g).sum(), s)
    return {
        "std": s.std(unbiased=False),
        "one_hot": (logs.exp().amax(-1) > 0.99).double().mean(),
        "entropy": -(logs.exp() * logs).sum(-1).mean(),
        "grad_median": gradient.norm(dim=-1).median(),
    }


# The full Jacobian diag(w) − w wᵀ of each row.
def full_jacobian(q, k, g, scaled):
    S, L, W = _parts(q, k, scaled)
    norms = [np.linalg.norm((np.diag(w) - np.outer(w, w)) @ row) for w, row in zip(W, g, strict=True)]
    return {
        "std": S.std(ddof=1),
        "one_hot": sum(w.max() > 0.99 for w in W) / len(W),
        "entropy": float(np.mean([-(w * logs).sum() for w, logs in zip(W, L, strict=True)])),
        "grad_median": float(np.median(norms)),
    }


# Population standard deviation, NumPy's default; torch divides by n − 1.
def population_std(q, k, g, scaled):
    S, L, W = _parts(q, k, scaled)
    G = W * (g - (W * g).sum(-1, keepdims=True))
    return {
        "std": S.std(),
        "one_hot": (W.max(-1) > 0.99).mean(),
        "entropy": -(W * L).sum(-1).mean(),
        "grad_median": np.median(np.sqrt((G**2).sum(-1))),
    }


# A tuple in the order of the contract.
def as_tuple(q, k, g, scaled):
    return tuple(full_jacobian(q, k, g, scaled).values())


@dataclass
class Statistics:
    grad_median: float
    entropy: float
    one_hot: float
    std: float


# An object with the four names, in another order.
def as_object(q, k, g, scaled):
    return Statistics(**full_jacobian(q, k, g, scaled))


# Arrays of one entry, and a fifth number that nobody asked for.
def arrays_of_one_entry(q, k, g, scaled):
    return {"T": len(q), **{name: np.array([value]) for name, value in full_jacobian(q, k, g, scaled).items()}}


# float32 throughout, with + 1e-12 inside the logarithm.
def single_precision(q, k, g, scaled):
    q, k, g = (np.asarray(a, np.float32) for a in (q, k, g))
    S = q @ k.T / np.float32(np.sqrt(q.shape[-1]) if scaled else 1.0)
    E = np.exp(S - S.max(-1, keepdims=True))
    W = E / E.sum(-1, keepdims=True)
    G = W * (g - (W * g).sum(-1, keepdims=True))
    return {
        "std": S.std(ddof=1, dtype=np.float64),
        "one_hot": (W.max(-1) > 0.99).mean(),
        "entropy": -(W * np.log(W + np.float32(1e-12))).sum(-1).mean(),
        "grad_median": np.median(np.linalg.norm(G, axis=-1)),
    }


# SciPy's softmax and entropy.
def scipy_parts(q, k, g, scaled):
    from scipy.special import softmax
    from scipy.stats import entropy

    S = q @ k.T / (np.sqrt(q.shape[-1]) if scaled else 1.0)
    W = softmax(S, axis=1)
    G = W * (g - (W * g).sum(-1, keepdims=True))
    return {
        "std": S.std(ddof=1),
        "one_hot": (W.max(-1) > 0.99).mean(),
        "entropy": entropy(W, axis=1).mean(),
        "grad_median": np.median(np.linalg.norm(G, axis=-1)),
    }


# Central differences of the loss for each score: about 1e-8 off, so small gradients need an absolute tolerance.
def finite_differences(q, k, g, scaled):
    S, L, W = _parts(q, k, scaled)
    G, h = W * (g - (W * g).sum(-1, keepdims=True)), 1e-5

    def loss(row, upstream):
        weights = np.exp(row - row.max())
        return (weights / weights.sum() * upstream).sum()

    if len(S) <= 20:  # the closed form stays for large inputs, where differences would take minutes
        for i, j in np.ndindex(*S.shape):
            step = h * np.eye(S.shape[1])[j]
            G[i, j] = (loss(S[i] + step, g[i]) - loss(S[i] - step, g[i])) / (2 * h)
    return {
        "std": S.std(ddof=1),
        "one_hot": (W.max(-1) > 0.99).mean(),
        "entropy": -(W * L).sum(-1).mean(),
        "grad_median": np.median(np.linalg.norm(G, axis=-1)),
    }


# Plain Python, row by row, with a branch for weights of 0 and the lower of two middle values.
def plain_loops(q, k, g, scaled):
    divisor = math.sqrt(len(q[0])) if scaled else 1.0
    scores, largest, entropy, lengths = [], [], [], []
    for query, upstream in zip(np.asarray(q, float), np.asarray(g, float).tolist(), strict=True):
        row = [float(query @ np.asarray(key, float)) / divisor for key in k]
        weights = [math.exp(score - max(row)) for score in row]
        weights = [weight / sum(weights) for weight in weights]
        mean = sum(w * u for w, u in zip(weights, upstream, strict=True))
        scores += row
        largest.append(max(weights))
        entropy.append(-sum(w * math.log(w) for w in weights if w > 0))
        lengths.append(math.dist([w * u for w, u in zip(weights, upstream, strict=True)], [w * mean for w in weights]))
    middle = sum(scores) / len(scores)
    return {
        "std": math.sqrt(sum((score - middle) ** 2 for score in scores) / len(scores)),
        "one_hot": sum(weight > 0.99 for weight in largest) / len(largest),
        "entropy": sum(entropy) / len(entropy),
        "grad_median": sorted(lengths)[(len(lengths) - 1) // 2],
    }
