"""A guess of the pooled Hessian: its diagonal as all workers know it, the rest by one's own shard.

With weights w_j = l''(<a_j, theta>)/m over the m own samples, and lambda's part 2 lambda in mu,

    G = sum_j w_j a_j a_j^T,   z_j = sqrt(w_j) a_j / sqrt(diag G + mu),   C = sum_j z_j z_j^T
    B_jk = sqrt(D_j D_k) ((1 - alpha) C_jk for j != k, 1 for j = k)

and H_0 = B^{-1}. C is what the features have to do with each other; from few samples that is known
badly, so it is pulled towards none at all by the share alpha of Ledoit and Wolf (2004),

    alpha = m/(m - 1) (sum_j ||z_j||^4 - ||C||^2/m) / ||C - I||^2,   within [1/m, 1]

D is the diagonal of the pooled Hessian at 0; at another theta it is taken to have changed as the
own one did, as far as that can be trusted:  (D - mu) (diag G(theta) / diag G(0))^{1 - alpha} + mu,
with one m-th of D added above and below.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from dlag_node.methods.flow import Array
from dlag_node.methods.lbfgs import Guess
from dlag_node.problems import Problem


class ShardCurvature:
    """Makes H_0 for a theta from the own shard and D, the pooled diagonal at 0."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._mu = 2.0 * problem.lam
        self._share = problem.samples / problem.n0  # the shard's part of all samples

    @cached_property
    def _at_zero(self) -> Array:
        return self._diagonal(self._problem.hessian(np.zeros(self._problem.dim)))

    def guess(self, theta: Array, D: Array) -> Guess:
        """H_0 at theta."""
        import scipy.linalg  # 20 MiB, which only the root of the tree needs

        f = self._problem
        m = f.samples
        hessian = f.hessian(theta)
        diagonal = self._diagonal(hessian)
        scale = np.sqrt(diagonal + self._mu)
        C = hessian / self._share
        C.flat[:: f.dim + 1] = diagonal
        C /= scale
        C /= scale[:, None]
        alpha = self._alpha(C, theta, scale)
        C *= 1.0 - alpha
        C.flat[:: f.dim + 1] = 1.0
        factor = scipy.linalg.cho_factor(C, overwrite_a=True)
        pull = D / m
        change = (diagonal + pull) / (self._at_zero + pull)
        at_theta = np.maximum(D - self._mu, 0.0) * change ** (1.0 - alpha) + self._mu
        root = np.sqrt(at_theta)

        def times_H_0(v: Array) -> Array:
            solved: Array = scipy.linalg.cho_solve(factor, v / root)
            return solved / root

        return times_H_0

    def _diagonal(self, hessian: Array) -> Array:
        """diag G of the own Hessian."""
        return np.maximum(np.diagonal(hessian) / self._share - self._mu, 0.0)

    def _alpha(self, C: Array, theta: Array, scale: Array) -> float:
        f = self._problem
        m = f.samples
        if m == 1:
            return 1.0
        weights = f.rows.bends(f.loss.code, f.labels, theta) / m
        fourth = float(np.sum((weights * f.rows.weighted_norms(scale**-2)) ** 2))
        C_square = float(np.sum(C * C))
        away = C_square - 2.0 * float(np.trace(C)) + f.dim
        spread = m / (m - 1) * max(fourth - C_square / m, 0.0)
        return min(max(spread, away / m) / away, 1.0) if away > 0.0 else 1.0
