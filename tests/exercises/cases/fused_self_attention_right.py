"""Right but unusual fused_self_attention(X, W_qkv, scale).

The comment above each function says what is unusual about it, and so what no check may assume.
"""

from __future__ import annotations

import functools
import math

import numpy as np


# Torch inside, NumPy out.
# Not to assume: torch imported by the student; float64 kept
def torch_inside(X, W_qkv, scale):
    import torch

    x, w = torch.as_tensor(np.array(X, dtype=np.float64)), torch.as_tensor(np.array(W_qkv, dtype=np.float64))
    q, k, v = (x @ w).chunk(3, dim=-1)
    return (torch.softmax(q @ k.mT * scale, dim=-1) @ v).numpy()


# F.scaled_dot_product_attention with scale=.
# Not to assume: API use
def torch_sdpa(X, W_qkv, scale):
    import torch

    x, w = torch.as_tensor(np.array(X, dtype=np.float64)), torch.as_tensor(np.array(W_qkv, dtype=np.float64))
    q, k, v = (x @ w).chunk(3, dim=-1)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, scale=float(scale)).numpy()


# reshape(..., 3, w) and moveaxis (correct order).
def reshape_moveaxis(X, W_qkv, scale):
    P = X @ W_qkv
    Q, K, V = np.moveaxis(P.reshape(*P.shape[:-1], 3, -1), -2, 0)
    S = np.matmul(Q, K.swapaxes(-2, -1)) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    return np.matmul(E / E.sum(-1, keepdims=True), V)


# Log-softmax then exp.
# Not to assume: tiny differences ~1e-16
def log_softmax_exp(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    return np.exp(S - np.logaddexp.reduce(S, axis=-1, keepdims=True)) @ V


# Online (flash-style) softmax over blocks of keys.
# Not to assume: order of summation
def online_softmax(X, W_qkv, scale):
    Q, K, V = np.split(np.asarray(X, dtype=float) @ W_qkv, 3, axis=-1)
    m = np.full(Q.shape[:-1], -np.inf)
    z = np.zeros(Q.shape[:-1])
    acc = np.zeros_like(V)
    for j in range(0, K.shape[-2], 2):
        s = scale * (Q @ np.swapaxes(K[..., j : j + 2, :], -1, -2))
        new = np.maximum(m, s.max(-1))
        c = np.exp(m - new)
        p = np.exp(s - new[..., None])
        z = z * c + p.sum(-1)
        acc = acc * c[..., None] + p @ V[..., j : j + 2, :]
        m = new
    return acc / z[..., None]


# Softmax in base 2.
# Not to assume: exp2 instead of exp
def base_two(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * (scale * math.log2(math.e))
    E = np.exp2(S - S.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True) @ V


# Normalises AFTER mixing the values.
# Not to assume: associativity
def normalise_last(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    M = E @ np.concatenate([V, np.ones_like(V[..., :1])], axis=-1)
    return M[..., :-1] / M[..., -1:]


# sqrt(scale) on Q and on K (sign kept).
# Not to assume: negative and zero scale still right
def scale_split(X, W_qkv, scale):
    r = np.sqrt(abs(scale))
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = (Q * r * np.sign(scale)) @ np.swapaxes(K * r, -1, -2)
    E = np.exp(S - S.max(-1, keepdims=True))
    return E / E.sum(-1, keepdims=True) @ V


# Low-rank form X (W_Q W_K^T) X^T, no Q or K formed.
# Not to assume: intermediate values differ
def bilinear_form(X, W_qkv, scale):
    w = W_qkv.shape[1] // 3
    W_QK = W_qkv[:, :w] @ W_qkv[:, w : 2 * w].T
    S = scale * (X @ W_QK @ np.swapaxes(X, -1, -2))
    E = np.exp(S - S.max(-1, keepdims=True))
    return (E / E.sum(-1, keepdims=True) @ X) @ W_qkv[:, 2 * w :]


# Longdouble inside.
# Not to assume: dtype of the result
def longdouble_inside(X, W_qkv, scale):
    Q, K, V = np.split(np.asarray(X, np.longdouble) @ np.asarray(W_qkv, np.longdouble), 3, axis=-1)
    S = np.einsum("...id,...jd->...ij", Q, K) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    return np.einsum("...ij,...jd->...id", E / E.sum(-1, keepdims=True), V)


# Returns a non-contiguous view of a larger buffer.
# Not to assume: flags, base, strides
def returns_view(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    A = E / E.sum(-1, keepdims=True)
    return (A @ np.concatenate([V, V], axis=-1))[..., : V.shape[-1]]


# read-only result.
# Not to assume: writeable flag
def read_only_result(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    out = E / E.sum(-1, keepdims=True) @ V
    out.flags.writeable = False
    return out


# Nested Python lists.
# Not to assume: list result: use np.asarray before shape
def nested_lists(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    return (E / E.sum(-1, keepdims=True) @ V).tolist()


# np.matrix-free subclass (masked array).
# Not to assume: type(out) is np.ndarray is too strict
def masked_array(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    return np.ma.masked_array(E / E.sum(-1, keepdims=True) @ V)


# Flattens leading axes, vmap-like list comprehension, reshapes back.
def flatten_and_back(X, W_qkv, scale):
    flat = np.reshape(X, (-1, *np.shape(X)[-2:]))
    res = []
    for x in flat:
        q, k, v = np.array_split(x @ W_qkv, 3, axis=1)
        s = scale * (q @ k.T)
        e = np.exp(s - s.max(axis=1, keepdims=True))
        res.append(e @ v / e.sum(axis=1, keepdims=True))
    return np.reshape(res, (*np.shape(X)[:-1], -1))


# Tensordot + diagonal of the batch pairs (wasteful, right).
def tensordot_diagonal(X, W_qkv, scale):
    X = np.asarray(X)
    lead = X.shape[:-2]
    P = np.tensordot(X.reshape(-1, *X.shape[-2:]), W_qkv, axes=(-1, 0))
    Q, K, V = np.split(P, 3, axis=-1)
    S = np.stack([np.tensordot(q, k, axes=(1, 1)) for q, k in zip(Q, K, strict=True)]) * scale
    E = np.exp(S - S.max(-1, keepdims=True))
    return (E / E.sum(-1, keepdims=True) @ V).reshape(*lead, X.shape[-2], -1)


# Other parameter names, positional use.
# Not to assume: tests must call positionally (or state the names)
def other_names(x, w, s):
    q, k, v = np.split(x @ w, 3, axis=-1)
    z = q @ np.swapaxes(k, -1, -2) * s
    z = np.exp(z - z.max(-1, keepdims=True))
    return z / z.sum(-1, keepdims=True) @ v


def _softmax_helper(z):
    z = np.exp(z - z.max(axis=-1, keepdims=True))
    return z / z.sum(axis=-1, keepdims=True)


# Helper function defined in another cell.
# Not to assume: source of the one function is not self-contained
def uses_helper(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    return _softmax_helper(Q @ np.swapaxes(K, -1, -2) * scale) @ V


class _Head:
    def __init__(self, W):
        self.W_Q, self.W_K, self.W_V = np.split(W, 3, axis=-1)

    def __call__(self, X, scale):
        S = (X @ self.W_Q) @ np.swapaxes(X @ self.W_K, -1, -2) * scale
        return _softmax_helper(S) @ (X @ self.W_V)


# A lambda assigned to the name.
# Not to assume: no def, __name__ is <lambda>
lambda_form = lambda X, W_qkv, scale: (  # noqa: E731 - that it is a lambda is the case
    lambda P: (lambda q, k, v: _softmax_helper(q @ np.swapaxes(k, -1, -2) * scale) @ v)(*np.split(P, 3, axis=-1))
)(X @ W_qkv)


def _general(X, W_qkv, scale, parts=3, axis=-1):
    Q, K, V = np.split(X @ W_qkv, parts, axis=axis)
    return _softmax_helper(Q @ np.swapaxes(K, -1, -2) * scale) @ V


# functools.partial object.
# Not to assume: callable() is enough; no __code__, no source
partial_form = functools.partial(_general, parts=3, axis=-1)


class _CallableHead:
    def __call__(self, X, W_qkv, scale):
        return _general(X, W_qkv, scale)


# Instance of a class with __call__.
# Not to assume: inspect.isfunction is too strict
callable_instance = _CallableHead()


# np.errstate, -inf guarded.
# Not to assume: no warnings may count as failure
def guarded(X, W_qkv, scale):
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return _general(X, W_qkv, scale)


# Shifts each row by its max + 1.
# Not to assume: any per-row constant is allowed
def other_row_shift(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    S = Q @ np.swapaxes(K, -1, -2) * scale
    E = np.exp(S - S.max(-1, keepdims=True) - 1.0)
    return E / E.sum(-1, keepdims=True) @ V


# Adds a bias to the keys: no effect on the output (source lesson, key bias).
# Not to assume: intermediate scores differ by a row constant
def key_bias(X, W_qkv, scale):
    Q, K, V = np.split(X @ W_qkv, 3, axis=-1)
    return _softmax_helper(Q @ np.swapaxes(K + 0.3, -1, -2) * scale) @ V


# Rotates Q and K by one orthogonal matrix (only the product matters).
# Not to assume: Q and K themselves cannot be compared
def rotated_pair(X, W_qkv, scale):
    Q, K, V = np.split(np.asarray(X, dtype=float) @ W_qkv, 3, axis=-1)
    R = np.linalg.qr(np.random.default_rng(3).normal(size=(Q.shape[-1],) * 2))[0]
    return _softmax_helper((Q @ R) @ np.swapaxes(K @ R, -1, -2) * scale) @ V


# Prints shapes and a table while computing.
# Not to assume: stdout must not matter
def chatty(X, W_qkv, scale):
    print("X", np.shape(X), "W", np.shape(W_qkv))
    out = _general(X, W_qkv, scale)
    print(np.round(out, 2))
    return out


# Pads the sequence to a multiple of 4 and masks the padding.
# Not to assume: internal shapes differ
def padded(X, W_qkv, scale):
    X = np.asarray(X, dtype=float)
    T = X.shape[-2]
    pad = -T % 4
    P = np.concatenate([X, np.zeros((*X.shape[:-2], pad, X.shape[-1]))], axis=-2) @ W_qkv
    Q, K, V = np.split(P, 3, axis=-1)
    S = scale * (Q @ np.swapaxes(K, -1, -2))
    S[..., T:] = -np.inf
    return (_softmax_helper(S) @ V)[..., :T, :]


# Four nested loops and math.exp, one batch after the other.
def plain_python(X, W_qkv, scale):
    X, W = np.asarray(X, dtype=float), np.asarray(W_qkv, dtype=float)
    if X.ndim == 3:
        return np.array([plain_python(sequence, W, scale) for sequence in X])
    width = W.shape[1] // 3
    P = [[sum(a * b for a, b in zip(row, column, strict=True)) for column in W.T.tolist()] for row in X.tolist()]
    output = []
    for asking in P:
        scores = [scale * sum(a * b for a, b in zip(asking[:width], key[width : 2 * width], strict=True)) for key in P]
        parts = [math.exp(score - max(scores)) for score in scores]
        shares = [part / sum(parts) for part in parts]
        output.append([sum(w * key[2 * width + j] for w, key in zip(shares, P, strict=True)) for j in range(width)])
    return output


# einsum from end to end, the three blocks as an axis of their own.
def einsum_only(X, W_qkv, scale):
    W = np.stack(np.split(W_qkv, 3, axis=1))
    q, k, v = np.einsum("...td,pdk->p...tk", X, W, optimize=True)
    s = np.einsum("...ik,...jk->...ij", q, k) * scale
    e = np.exp(s - np.einsum("...ij->...i", s * 0)[..., None] - s.max(-1)[..., None])
    return np.einsum("...ij,...jk,...i->...ik", e, v, 1 / e.sum(-1))


# scipy's softmax.
def scipy_softmax(X, W_qkv, scale):
    from scipy.special import softmax

    q, k, v = np.array_split(X @ W_qkv, 3, axis=-1)
    return softmax(scale * np.matmul(q, k.swapaxes(-2, -1)), axis=-1) @ v


# scipy's logsumexp, in the order that Fortran keeps.
def logsumexp_fortran(X, W_qkv, scale):
    from scipy.special import logsumexp

    q, k, v = np.split(np.asfortranarray(X @ W_qkv), [W_qkv.shape[1] // 3, 2 * W_qkv.shape[1] // 3], axis=-1)
    s = scale * (q @ k.mT)
    return np.asfortranarray(np.exp(s - logsumexp(s, axis=-1, keepdims=True)) @ v)


# In place throughout, on copies of its own, with out=.
def in_place_on_copies(X, W_qkv, scale):
    X = np.array(X, dtype=np.float64)
    P = X @ W_qkv
    w = P.shape[-1] // 3
    P[..., :w] *= scale
    S = P[..., :w] @ P[..., w : 2 * w].swapaxes(-1, -2)
    S -= S.max(axis=-1, keepdims=True)
    np.exp(S, out=S)
    S /= np.add.reduce(S, axis=-1, keepdims=True)
    return np.matmul(S, P[..., 2 * w :])


# float32 throughout, and float32 out.
def float32_out(X, W_qkv, scale):
    X, W = np.float32(X), np.float32(W_qkv)
    q, k, v = np.dsplit(np.atleast_3d(X @ W) if X.ndim == 3 else (X @ W)[None], 3)
    s = np.float32(scale) * (q @ k.transpose(0, 2, 1))
    w = np.exp(s - s.max(2)[:, :, None])
    found = w / w.sum(2)[:, :, None] @ v
    return found if X.ndim == 3 else found[0]


# Makes a batch of one of a sequence, and takes it off again.
def always_a_batch(X, W_qkv, scale):
    batch = X[np.newaxis] if X.ndim == 2 else X
    heads = []
    for sequence in batch:
        q, k, v = np.hsplit(sequence @ W_qkv, 3)
        s = np.inner(q, k) * scale
        w = np.exp(s.T - s.max(1))
        heads.append((w / w.sum(0)).T @ v)
    return np.squeeze(np.stack(heads), axis=0) if X.ndim == 2 else np.stack(heads)


# Rows of scores shifted by a logarithm of their sum, found with np.logaddexp.
def logaddexp(X, W_qkv, scale):
    q, k, v = np.split(X @ W_qkv, 3, axis=-1)
    s = np.matmul(q, np.moveaxis(k, -1, -2)) * scale
    return np.matmul(np.exp(s - np.logaddexp.reduce(s, axis=-1)[..., None]), v)


# A softmax of differences: the share of key j is 1 / Σ exp(s_i − s_j), where exp may overflow to infinity and be right.
def shares_by_differences(X, W_qkv, scale):
    q, k, v = np.split(np.asarray(X @ W_qkv, dtype=np.float64), 3, axis=-1)
    s = q @ np.swapaxes(k, -1, -2) * scale
    with np.errstate(over="ignore"):
        return 1 / np.exp(s[..., None, :] - s[..., :, None]).sum(-1) @ v


# PyTorch with autograd left on, and a tensor that still has its graph.
def tensor_with_graph(X, W_qkv, scale):
    import torch

    X, W = (torch.tensor(np.asarray(a, dtype=np.float64), requires_grad=True) for a in (X, W_qkv))
    q, k, v = (X @ W).chunk(3, dim=-1)
    return (scale * q @ k.transpose(-1, -2)).softmax(-1) @ v


# A subclass of ndarray.
class _Labelled(np.ndarray):
    axes = ("tokens", "features")


# An array that remembers what its axes are.
def labelled_array(X, W_qkv, scale):
    q, k, v = np.split(X @ W_qkv, 3, axis=-1)
    s = q @ np.swapaxes(k, -1, -2) * scale
    w = np.exp(s - s.max(-1, keepdims=True))
    return (w / w.sum(-1, keepdims=True) @ v).view(_Labelled)
