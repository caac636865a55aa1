"""Eigenvalues in an order of our own: what LAPACK finds depends on the processor's kernels.

`eigenvalues` brings a symmetric matrix to tridiagonal form by Householder reflections and finds the
eigenvalues of that by QL steps with implicit shifts (Wilkinson and Reinsch 1971, tred1 and imtql1).
`largest_eigenvalue` is Lanczos's method for an operator that is only known by its products.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlag_node.problems.compiling import kernel, visit
from dlag_node.problems.sums import dot, norm, square

Array = NDArray[np.float64]

_EPS = float(np.finfo(np.float64).eps)
_QL_STEPS = 60  # for one eigenvalue; two are usual
_LOOK_EVERY = 4  # Lanczos steps
_UNCHANGED = 4.0 * _EPS  # relative: so little in four steps is rounding
_MOST_STEPS = 500  # of Lanczos; tens are usual


def eigenvalues(A: Array) -> Array:
    """All eigenvalues of a symmetric matrix, ascending."""
    return _of_tridiagonal(*_tridiagonal(np.array(A, dtype=np.float64)))


def largest_eigenvalue(times: Callable[[Array], Array], dim: int, rank: int) -> float:
    """The largest eigenvalue of a positive semidefinite operator of at most that rank.

    The start vector is a product with fixed random numbers, so that it lies in the range and no
    structure of the data is orthogonal to it; every new vector is made orthogonal to all before it
    twice, since rounding would bring the old ones back.
    """
    q = times(np.random.default_rng(0).random(dim) - 0.5)
    size = norm(q)
    if size == 0.0:
        return 0.0
    basis: list[Array] = []
    diagonal: list[float] = []
    off: list[float] = []
    found, most = 0.0, min(rank, dim, _MOST_STEPS)
    while True:
        basis.append(q / size)
        w = times(basis[-1])
        diagonal.append(dot(w, basis[-1]))
        for each in (*basis, *basis):
            w = w - dot(w, each) * each
        size, steps = norm(w), len(basis)
        exhausted = steps == most or size <= _EPS * max(diagonal)
        if exhausted or steps % _LOOK_EVERY == 0:
            before, found = found, float(_of_tridiagonal(np.array(diagonal), np.array(off))[-1])
            if exhausted or found - before <= _UNCHANGED * found:
                return found
        off.append(size)
        q = w


def inverse(A: Array) -> Array:
    """The inverse of a symmetric, positive definite matrix, by Gauss and Jordan without pivots."""
    M, n = np.array(A, dtype=np.float64), len(A)
    for k in range(n):
        pivot = M[k, k]
        row, column = M[k] / pivot, M[:, k].copy()
        column[k] = 0.0
        M -= np.multiply.outer(column, row)
        M[k], M[:, k] = row, -column / pivot
        M[k, k] = 1.0 / pivot
    return M


def _tridiagonal(A: Array) -> tuple[Array, Array]:
    """The diagonal, and what is beside it, of an orthogonally similar matrix; A is used up."""
    n = len(A)
    off = np.zeros(max(0, n - 1))
    for k in range(n - 2):
        v = A[k, k + 1 :].copy()
        tail = square(v[1:])
        off[k] = v[0]
        if tail == 0.0:
            continue
        length = sqrt(v[0] * v[0] + tail)
        off[k] = -length if v[0] > 0.0 else length
        v[0] -= off[k]
        factor = 2.0 / (v[0] * v[0] + tail)  # I - factor v v^T is the reflection
        rest = A[k + 1 :, k + 1 :]
        p = np.zeros(len(v))
        for weight, row in zip(v.tolist(), rest, strict=True):  # rest v, row by row
            p += weight * row
        p *= factor
        w = p - (0.5 * factor * dot(p, v)) * v
        rest -= np.multiply.outer(v, w) + np.multiply.outer(w, v)
    if n > 1:
        off[n - 2] = A[n - 2, n - 1]
    return A.diagonal().copy(), off


def _of_tridiagonal(diagonal: Array, off: Array) -> Array:
    """The eigenvalues of a symmetric tridiagonal matrix, ascending."""
    beside = np.append(off, 0.0)
    if visit(diagonal.size**2):
        ql_steps(diagonal, beside)
        return np.sort(diagonal)
    found = diagonal.tolist()
    ql_steps(found, beside.tolist())  # an interpreter is quicker on lists
    return np.array(sorted(found))


@kernel
def ql_steps(d: Any, e: Any) -> None:
    """d becomes the eigenvalues of the matrix with d on the diagonal and e beside it."""
    n = len(d)
    for first in range(n):
        for _ in range(_QL_STEPS):
            last = first
            while last < n - 1 and abs(e[last]) > _EPS * (abs(d[last]) + abs(d[last + 1])):
                last += 1
            if last == first:
                break
            g = (d[first + 1] - d[first]) / (2.0 * e[first])
            r = sqrt(g * g + 1.0)
            g = d[last] - d[first] + e[first] / (g + (r if g >= 0.0 else -r))
            s, c, p, i = 1.0, 1.0, 0.0, last - 1
            while i >= first:
                f, b = s * e[i], c * e[i]
                r = sqrt(f * f + g * g)
                e[i + 1] = r
                if r == 0.0:
                    break
                s, c = f / r, g / r
                g = d[i + 1] - p
                r = (d[i] - g) * s + 2.0 * c * b
                p = s * r
                d[i + 1] = g + p
                g = c * r - b
                i -= 1
            if i >= first:  # it fell into two
                d[i + 1] -= p
            else:
                d[first] -= p
                e[first] = g
            e[last] = 0.0
