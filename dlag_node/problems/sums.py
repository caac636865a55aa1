"""Sums of products in an order of our own, the same bits on every processor.

BLAS and numpy choose kernels by the processor, and each adds up in another order; a last bit
decides whether a worker stays silent. Here 128 interleaved sums run through the blocks of 128
entries, are added in halves (64 to 64, 32 to 32, ...), and the entries of a last, shorter block are
added one by one:

    s_l = sum over blocks t of u[128 t + l] v[128 t + l],    (s_0 + s_64) + ..., + the rest

Elementwise operations, of numpy and compiled, are exact to their own rounding everywhere: nothing
here is fused or reassociated.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlag_node.problems.compiling import Kernel, kernel, visit

Array = NDArray[np.float64]

LANES = 128  # as many as keep a processor's vector units busy; a vector up to here is one plain sum


def dot(u: Array, v: Array) -> float:
    """<u, v>; inf or nan, without a warning, where a float cannot hold it."""
    if visit(u.size):
        return float(dot_in_lanes(u, v))
    return _interpreted(dot_in_lanes, u.tolist(), v.tolist())


def square(v: Array) -> float:
    """||v||^2, the bits of dot(v, v)."""
    if visit(v.size):
        return float(square_in_lanes(v))
    return _interpreted(square_in_lanes, v.tolist())


def _interpreted(kernel: Kernel[..., float], *vectors: list[float]) -> float:
    """An interpreter is quicker on lists; a plain sum of their floats warns of no overflow."""
    if len(vectors[0]) < LANES:
        return kernel.py_func(*vectors)
    return float(kernel(*vectors))


def norm(v: Array) -> float:
    """||v||."""
    return sqrt(square(v))


def total(v: Array) -> float:
    """The sum of all entries."""
    return dot(v, np.ones(v.size))


def matrix_product(A: Array, B: Array) -> Array:
    """A B, as the sum over k of column k of A times row k of B, in that order."""
    out = np.zeros((A.shape[0], B.shape[1]))
    for column, row in zip(A.T, B, strict=True):
        out += np.multiply.outer(column, row)
    return out


@kernel
def dot_in_lanes(u: Any, v: Any) -> float:
    """`dot` of arrays, or of lists while it is interpreted."""
    n = len(u)
    whole = n - n % LANES
    rest = 0.0
    for t in range(whole, n):
        rest += u[t] * v[t]
    if whole == 0:
        return rest
    s = np.zeros(LANES)
    for t in range(0, whole, LANES):
        a, b = u[t : t + LANES], v[t : t + LANES]  # a loop from 0 is compiled to vectors
        for lane in range(LANES):
            s[lane] += a[lane] * b[lane]
    return sum_of_lanes(s) + rest


@kernel
def square_in_lanes(v: Any) -> float:
    """dot_in_lanes(v, v), reading v once: it is half of the time where v leaves the cache."""
    n = len(v)
    whole = n - n % LANES
    rest = 0.0
    for t in range(whole, n):
        rest += v[t] * v[t]
    if whole == 0:
        return rest
    s = np.zeros(LANES)
    for t in range(0, whole, LANES):
        a = v[t : t + LANES]
        for lane in range(LANES):
            s[lane] += a[lane] * a[lane]
    return sum_of_lanes(s) + rest


@kernel
def sum_of_lanes(s: Array) -> float:
    """The lanes added in halves; s is used up."""
    width = LANES
    while width > 1:
        width //= 2
        for lane in range(width):
            s[lane] += s[lane + width]
    return s[0]  # type: ignore[no-any-return]
