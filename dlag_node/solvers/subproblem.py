"""Worker i's subproblem, argmin f_i(theta) - <theta, x_i>, and its full gradient in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dlag_node.problems import DenseRows, Problem, total
from dlag_node.problems.rows import enter
from dlag_node.solvers.compiled import dense_dot, loss_slope, sparse_dot

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# What is kept of sample j, side by side so that a random visit loads one cache line:
# its margin <a_j, theta> and slope l'_j at the snapshot theta, its label b_j, and ||a_j||.
MARGIN, SLOPE, LABEL, NORM = 0, 1, 2, 3

# The computed gradient is trusted down to this many units of rounding. A sum of m terms drifts by
# about sqrt(m) roundings of its partial sums, which stay well below the sum of the norms.
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


class Scale(NamedTuple):
    """The numbers of f_i that compiled loops need."""

    code: int  # which loss
    share: float  # 1 / n0
    component: float  # m_i / n0: f_i is the average over j of (m_i/n0) l_j, plus the regulariser
    mu: float
    trace: float  # curvature * sum_j ||a_j||^2 / n0, a bound of the smooth part's L


class Subproblem:
    """f_i(theta) - <theta, x> for an `x` that changes from call to call.

    `gradient` leaves margins and slopes of its point in `kept`, and the gradient itself in `g`.
    An epoch of a stochastic solver has `passes` m steps.
    """

    def __init__(self, problem: Problem, *, passes: int = 2) -> None:
        rows, loss = problem.rows, problem.loss
        square_norms = rows.square_norms()
        self.problem = problem
        self.samples = problem.samples
        self.dim = problem.dim
        self.epoch_steps = passes * problem.samples
        self.sparse = not isinstance(rows, DenseRows)
        # compiled code is specialised to writable arrays: a read-only shard would compile anew
        self.arrays: tuple[NDArray[np.generic], ...] = tuple(
            np.require(part, requirements=["C", "A", "W"])
            for part in (
                (rows.A,)
                if isinstance(rows, DenseRows)
                else (rows.values, rows.columns, rows.start)
            )
        )
        self.kept: Array = np.zeros((problem.samples, 4))
        self.kept[:, LABEL] = problem.labels
        self.kept[:, NORM] = np.sqrt(square_norms)
        self.scale = Scale(
            code=loss.code,
            share=1.0 / problem.n0,
            component=problem.samples / problem.n0,
            mu=problem.mu,
            trace=loss.curvature * total(square_norms) / problem.n0,
        )
        self.x: Array = np.zeros(problem.dim)
        self.g: Array = np.zeros(problem.dim)

    def gradient(self, theta: Array) -> tuple[float, float]:
        """||grad f_i(theta) - x|| and its rounding floor; costs m_i sample gradients."""
        enter(self.problem.rows, theta)
        kernel: Callable[..., tuple[float, float]] = (
            sparse_gradient if self.sparse else dense_gradient
        )
        norm, floor = kernel(*self.arrays, self.scale, self.kept, self.x, theta, self.g)
        return float(norm), float(floor)


@njit(cache=True, nogil=True)
def dense_gradient(
    A: Array, scale: Scale, kept: Array, x: Array, theta: Array, g: Array
) -> tuple[float, float]:
    """g = (1/n0) sum_j l'_j a_j + mu theta - x; returns ||g|| and its rounding floor."""
    for t in range(theta.shape[0]):
        g[t] = scale.mu * theta[t] - x[t]
    pull = 0.0
    for j in range(A.shape[0]):
        s = dense_dot(A, j, theta)
        slope = loss_slope(scale.code, s, kept[j, LABEL])
        kept[j, MARGIN] = s
        kept[j, SLOPE] = slope
        pull += abs(slope) * kept[j, NORM]
        slope *= scale.share
        for t in range(theta.shape[0]):
            g[t] += slope * A[j, t]
    return _norm_and_floor(scale, pull, x, theta, g)


@njit(cache=True, nogil=True)
def sparse_gradient(
    values: Array,
    columns: Index,
    start: Index,
    scale: Scale,
    kept: Array,
    x: Array,
    theta: Array,
    g: Array,
) -> tuple[float, float]:
    """g = (1/n0) sum_j l'_j a_j + mu theta - x; returns ||g|| and its rounding floor."""
    for t in range(theta.shape[0]):
        g[t] = scale.mu * theta[t] - x[t]
    pull = 0.0
    for j in range(kept.shape[0]):
        s = sparse_dot(values, columns, start, j, theta)
        slope = loss_slope(scale.code, s, kept[j, LABEL])
        kept[j, MARGIN] = s
        kept[j, SLOPE] = slope
        pull += abs(slope) * kept[j, NORM]
        slope *= scale.share
        for t in range(start[j], start[j + 1]):
            g[columns[t]] += slope * values[t]
    return _norm_and_floor(scale, pull, x, theta, g)


@njit(cache=True, nogil=True)
def _norm_and_floor(
    scale: Scale, pull: float, x: Array, theta: Array, g: Array
) -> tuple[float, float]:
    """||g||, and the norm below which the computed g is mostly rounding.

        floor = 8 eps ( sum_j |l'_j| ||a_j|| / n0 + (mu + trace) ||theta|| + ||x|| )

    The first and the last term are the sizes of what cancels at the solution; trace * ||theta|| is
    how far the rounding of theta and of the margins moves the slopes.
    """
    gg = tt = xx = 0.0
    for t in range(theta.shape[0]):
        gg += g[t] * g[t]
        tt += theta[t] * theta[t]
        xx += x[t] * x[t]
    size = pull * scale.share + (scale.mu + scale.trace) * np.sqrt(tt) + np.sqrt(xx)
    return np.sqrt(gg), _ROUNDING * size
