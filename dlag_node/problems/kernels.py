"""Compiled passes over the samples of a shard: one visit a row, no temporary of the shard's size.

Sums run in row order and without reassociation, so that a shard gives the same bits wherever its
bytes happen to lie in memory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlag_node.problems.compiling import kernel
from dlag_node.problems.losses import loss_bend, loss_slope, loss_value

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@kernel
def dense_dot(A: Array, j: int, v: Array) -> float:
    """<a_j, v>, in four interleaved sums (a fixed order that a processor can overlap)."""
    s0 = s1 = s2 = s3 = 0.0
    n = v.shape[0]
    whole = n - n % 4
    for t in range(0, whole, 4):
        s0 += A[j, t] * v[t]
        s1 += A[j, t + 1] * v[t + 1]
        s2 += A[j, t + 2] * v[t + 2]
        s3 += A[j, t + 3] * v[t + 3]
    for t in range(whole, n):
        s0 += A[j, t] * v[t]
    return (s0 + s1) + (s2 + s3)


@kernel
def sparse_dot(values: Array, columns: Index, start: Index, j: int, v: Array) -> float:
    """<a_j, v> over the stored entries of row j."""
    s = 0.0
    for t in range(start[j], start[j + 1]):
        s += values[t] * v[columns[t]]
    return s


@kernel
def dense_add_row(A: Array, j: int, scale: float, out: Array) -> None:
    """out += scale * a_j."""
    for t in range(A.shape[1]):
        out[t] += scale * A[j, t]


@kernel
def sparse_add_row(
    values: Array, columns: Index, start: Index, j: int, scale: float, out: Array
) -> None:
    """out += scale * a_j, over the stored entries of row j."""
    for t in range(start[j], start[j + 1]):
        out[columns[t]] += scale * values[t]


@kernel
def dense_square_norms(A: Array) -> Array:
    """||a_j||^2 for every j."""
    out = np.empty(A.shape[0])
    for j in range(A.shape[0]):
        out[j] = dense_dot(A, j, A[j])
    return out


@kernel
def sparse_square_norms(values: Array, start: Index) -> Array:
    """||a_j||^2 for every j."""
    out = np.zeros(start.shape[0] - 1)
    for j in range(out.shape[0]):
        for t in range(start[j], start[j + 1]):
            out[j] += values[t] * values[t]
    return out


@kernel
def dense_add_products(A: Array, weights: Array, v: Array, out: Array) -> None:
    """out += sum_j w_j <a_j, v> a_j."""
    for j in range(A.shape[0]):
        scale = weights[j] * dense_dot(A, j, v)
        for t in range(A.shape[1]):
            out[t] += scale * A[j, t]


@kernel
def sparse_add_products(
    values: Array, columns: Index, start: Index, weights: Array, v: Array, out: Array
) -> None:
    """out += sum_j w_j <a_j, v> a_j."""
    for j in range(weights.shape[0]):
        scale = weights[j] * sparse_dot(values, columns, start, j, v)
        for t in range(start[j], start[j + 1]):
            out[columns[t]] += scale * values[t]


@kernel
def slopes_at_zero(code: int, b: Array) -> Array:
    """l'(0) for every j."""
    out = np.empty(b.shape[0])
    for j in range(b.shape[0]):
        out[j] = loss_slope(code, 0.0, b[j])
    return out


@kernel
def dense_add_slopes(A: Array, code: int, b: Array, theta: Array, scale: float, out: Array) -> None:
    """out += scale * sum_j l'(<a_j, theta>) a_j."""
    for j in range(A.shape[0]):
        g = scale * loss_slope(code, dense_dot(A, j, theta), b[j])
        for t in range(A.shape[1]):
            out[t] += g * A[j, t]


@kernel
def sparse_add_slopes(
    values: Array,
    columns: Index,
    start: Index,
    code: int,
    b: Array,
    theta: Array,
    scale: float,
    out: Array,
) -> None:
    """out += scale * sum_j l'(<a_j, theta>) a_j."""
    for j in range(b.shape[0]):
        g = scale * loss_slope(code, sparse_dot(values, columns, start, j, theta), b[j])
        for t in range(start[j], start[j + 1]):
            out[columns[t]] += g * values[t]


@kernel
def dense_sum_losses(A: Array, code: int, b: Array, theta: Array) -> float:
    """sum_j l(<a_j, theta>)."""
    total = 0.0
    for j in range(A.shape[0]):
        total += loss_value(code, dense_dot(A, j, theta), b[j])
    return total


@kernel
def sparse_sum_losses(
    values: Array, columns: Index, start: Index, code: int, b: Array, theta: Array
) -> float:
    """sum_j l(<a_j, theta>)."""
    total = 0.0
    for j in range(b.shape[0]):
        total += loss_value(code, sparse_dot(values, columns, start, j, theta), b[j])
    return total


@kernel
def sparse_weighted_gram(
    values: Array, columns: Index, start: Index, weights: Array, out: Array
) -> None:
    """out += sum_j w_j a_j a_j^T."""
    for j in range(weights.shape[0]):
        for t in range(start[j], start[j + 1]):
            scaled = weights[j] * values[t]
            row = columns[t]
            for u in range(start[j], start[j + 1]):
                out[row, columns[u]] += scaled * values[u]


@kernel
def dense_bends(A: Array, code: int, b: Array, theta: Array) -> Array:
    """l''(<a_j, theta>) for every j."""
    out = np.empty(A.shape[0])
    for j in range(A.shape[0]):
        out[j] = loss_bend(code, dense_dot(A, j, theta), b[j])
    return out


@kernel
def sparse_bends(
    values: Array, columns: Index, start: Index, code: int, b: Array, theta: Array
) -> Array:
    """l''(<a_j, theta>) for every j."""
    out = np.empty(b.shape[0])
    for j in range(b.shape[0]):
        out[j] = loss_bend(code, sparse_dot(values, columns, start, j, theta), b[j])
    return out
