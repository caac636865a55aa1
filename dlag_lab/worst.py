"""max_i f(theta_i), evaluating f only at those theta_i that can be the worst.

With theta* the optimum, d = theta - theta* and H the Hessian of f at theta*,

    f(theta) - f* <= (1/2) <d, (curvature A^T A / n0 + mu I) d>
    f(theta) - f* <= <d, H d> (e^t - t - 1) / t^2,    t = max_j ||a_j|| ||d||

The second holds for the logistic loss, whose |l'''| <= l''; it is sharp near the optimum, where all
but a few of a hundred workers are ruled out by it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlag_node.problems import LOGISTIC, Problem

Array = NDArray[np.float64]

_LARGEST_DIM = 1000  # of a Hessian that is formed; beyond, everybody is evaluated
_ROUNDING = 1e-12  # of f, relative: a sum over a million samples


class Worst:
    """The largest value of f over some points, the same number as if f were evaluated at all."""

    def __init__(self, pooled: Problem, theta_star: Array, f_star: float) -> None:
        self._pooled, self._theta_star, self._f_star = pooled, theta_star, f_star
        self._known = pooled.dim <= _LARGEST_DIM
        if self._known:
            rows, curvature = pooled.rows, pooled.loss.curvature
            self._steepest = rows.weighted_gram(np.full(rows.samples, curvature / pooled.n0))
            self._steepest.flat[:: pooled.dim + 1] += pooled.mu
            self._hessian = pooled.hessian(theta_star)
            self._largest = float(np.sqrt(rows.square_norms().max()))

    def __call__(self, Theta: Array) -> float:
        """max over the rows of Theta."""
        bounds = self.bounds(Theta)
        worst = -np.inf
        for i in np.argsort(-bounds):
            if self._f_star + bounds[i] + _ROUNDING * (1.0 + bounds[i]) < worst:
                break
            worst = max(worst, self._pooled.value(Theta[i]))
        return float(worst)

    def bounds(self, Theta: Array) -> Array:
        """What f(theta) - f* is at most, for each row."""
        if not self._known:
            return np.full(len(Theta), np.inf)
        d = Theta - self._theta_star
        quadratic: Array = 0.5 * np.einsum("ij,jk,ik->i", d, self._steepest, d)
        if self._pooled.loss != LOGISTIC:
            return quadratic
        t = np.maximum(self._largest * np.linalg.norm(d, axis=1), 1e-3)  # (.) grows with t
        with np.errstate(over="ignore"):
            growth = (np.expm1(t) - t) / t**2
        near: Array = np.einsum("ij,jk,ik->i", d, self._hessian, d) * growth
        return np.minimum(quadratic, near)
