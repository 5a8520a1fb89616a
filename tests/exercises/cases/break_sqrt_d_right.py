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


# SciPy's log-softmax and special functions.
def scipy_entr(q, k, g, scaled):
    from scipy.special import entr, log_softmax

    S = np.einsum("ik,jk->ij", q, k) / (np.sqrt(k.shape[1]) if scaled else 1.0)
    W = np.exp(log_softmax(S, axis=1))
    G = W * g - W * np.einsum("ij,ij->i", W, g)[:, None]
    return {
        "std": np.sqrt(np.mean((S - S.mean()) ** 2)),
        "one_hot": np.mean(np.any(W > 0.99, axis=1)),
        "entropy": entr(W).sum(axis=1).mean(),
        "grad_median": np.percentile(np.sqrt(np.einsum("ij,ij->i", G, G)), 50),
    }


# The median by a quantile that takes the lower middle value.
def lower_quantile(q, k, g, scaled):
    found = population_std(q, k, g, scaled)
    S, _, W = _parts(q, k, scaled)
    G = W * (g - (W * g).sum(-1, keepdims=True))
    return found | {
        "grad_median": np.quantile(np.linalg.norm(G, axis=1), 0.5, method="lower"),
        "std": np.std(S, ddof=1),
    }


# Entropy by the logarithm of the sum less the mean score.
def entropy_by_logsumexp(q, k, g, scaled):
    S, _, W = _parts(q, k, scaled)
    top = S.max(-1)
    entropy = top + np.log(np.exp(S - top[:, None]).sum(-1)) - np.where(W > 0, W * S, 0).sum(-1)
    return population_std(q, k, g, scaled) | {"entropy": entropy.mean()}


# torch.func, row by row.
def torch_vjp(q, k, g, scaled):
    import torch

    q, k, g = (torch.tensor(np.asarray(a, dtype=np.float64)) for a in (q, k, g))
    s = torch.einsum("ik,jk->ij", q, k) * (k.shape[1] ** -0.5 if scaled else 1)
    w, back = torch.func.vjp(lambda scores: torch.softmax(scores, -1), s)
    (gradient,) = back(g)
    return {
        "std": s.var(correction=0).sqrt(),
        "one_hot": torch.count_nonzero(w.amax(1) > 0.99) / len(w),
        "entropy": torch.special.entr(w).sum(1).mean(),
        "grad_median": torch.quantile(torch.linalg.vector_norm(gradient, dim=1), 0.5),
    }


# A list in the order of the contract, of NumPy's scalars.
def as_list(q, k, g, scaled):
    return [np.float32(value) for value in population_std(q, k, g, scaled).values()]


# Queries and keys each divided by the fourth root.
def fourth_root(q, k, g, scaled):
    root = q.shape[1] ** 0.25 if scaled else 1.0
    return population_std(q / root, k / root, g, False)


# Works on copies, in place.
def in_place_on_copies(q, k, g, scaled):
    q, k, g = (np.array(a, dtype=np.float64) for a in (q, k, g))
    if scaled:
        q /= np.sqrt(q.shape[1])
    S = q @ k.T
    std = S.std()
    S -= S.max(axis=1, keepdims=True)
    W = np.exp(S)
    W /= W.sum(axis=1, keepdims=True)
    g -= (W * g).sum(axis=1, keepdims=True)
    g *= W
    entropy = -np.sum(W * np.log(W, out=np.zeros_like(W), where=W > 0)) / len(W)
    return dict(
        std=std, one_hot=np.mean(np.max(W, 1) > 0.99), entropy=entropy, grad_median=np.median(np.hypot.reduce(g, 1))
    )


# 0-d arrays and a bool for `scaled` that may be NumPy's.
def zero_d_arrays(q, k, g, scaled):
    return {name: np.array(value) for name, value in full_jacobian(q, k, g, np.bool_(scaled)).items()}


# statistics and math of the standard library, on lists.
def standard_library(q, k, g, scaled):
    import statistics

    S, L, W = (part.tolist() for part in _parts(np.asarray(q, float), np.asarray(k, float), scaled))
    gradients = [
        [w * (u - sum(a * b for a, b in zip(row, up, strict=True))) for w, u in zip(row, up, strict=True)]
        for row, up in zip(W, np.asarray(g, float).tolist(), strict=True)
    ]
    return {
        "std": statistics.pstdev([score for row in S for score in row]),
        "one_hot": statistics.mean(float(max(row) > 0.99) for row in W),
        "entropy": statistics.fmean(
            -sum(w * lw for w, lw in zip(a, b, strict=True)) for a, b in zip(W, L, strict=True)
        ),
        "grad_median": statistics.median_low([math.sqrt(sum(x * x for x in row)) for row in gradients]),
    }
