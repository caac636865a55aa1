"""Worker i's objective f_i: an l2-regularised linear model on its own samples."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.problems import kernels
from dlag_node.problems.losses import Loss
from dlag_node.problems.rows import Rows
from dlag_node.problems.spectra import largest_eigenvalue
from dlag_node.problems.sums import square, total

Array = NDArray[np.float64]

FACTORED_DIM = 1000  # the largest dim x dim Hessian that is formed


class Problem:
    """f_i(theta) = sum over own samples j of (1/n0) (l_j(<a_j, theta>) + lambda ||theta||^2).

    Every sample brings its share of the regulariser, so that sum_i f_i is the pooled objective
    f(theta) = (1/n0) sum_j l_j + lambda ||theta||^2 however the n0 samples are spread, and

        mu_i = 2 lambda m_i / n0                                 `mu`
        L_i  = curvature * lambda_max(A_i^T A_i) / n0 + mu_i     `L`  (spectral)

    Written as the paper's average f_i = (1/m_i) sum_j f_{i,j}, the smooth part of f_{i,j} is
    (m_i/n0) l_j and is L_j-smooth, L_j = (m_i/n0) curvature ||a_j||^2: `L_sample` is the largest.

    `extra` adds (extra/2) ||theta||^2 to f_i, and `extra` to mu_i and L_i: for proximal steps.

    The pooled objective itself is the Problem of all samples (m_i = n0).
    """

    def __init__(
        self, rows: Rows, labels: Array, loss: Loss, *, n0: int, lam: float, extra: float = 0.0
    ) -> None:
        if rows.samples != len(labels):
            raise ConfigError(f"{rows.samples} samples but {len(labels)} labels")
        if rows.samples < 1:
            raise ConfigError("a shard without samples: every worker needs at least one")
        if n0 < rows.samples:
            raise ConfigError(f"n0 = {n0}, but this shard alone has {rows.samples} samples")
        if not (np.isfinite(lam) and lam > 0):
            raise ConfigError(f"lambda = {lam}: expected a positive number (strong convexity)")
        if not (np.isfinite(extra) and extra >= 0):
            raise ConfigError(f"a quadratic of weight {extra}: expected a number of at least 0")
        if not np.isfinite(labels).all():
            raise ConfigError("the labels contain a value that is not finite")
        self.rows = rows
        self.labels = np.require(labels, np.float64, ("C", "A", "W"))  # as the rows are
        self.loss = loss
        self.n0 = n0
        self.lam = lam
        self.extra = extra
        self.samples = rows.samples
        self.dim = rows.dim
        self.mu = 2.0 * lam * rows.samples / n0 + extra

    def plus_quadratic(self, weight: float) -> Problem:
        """f_i(theta) + (weight/2) ||theta||^2 on the same samples."""
        extra = self.extra + weight
        return Problem(self.rows, self.labels, self.loss, n0=self.n0, lam=self.lam, extra=extra)

    @cached_property
    def L(self) -> float:
        """L_i, the smoothness constant of f_i by the spectral norm of its samples."""
        ones = np.ones(self.samples)
        largest = largest_eigenvalue(  # lambda_max(A_i^T A_i)
            lambda v: self.rows.products(ones, v), self.dim, min(self.samples, self.dim)
        )
        return self.loss.curvature * largest / self.n0 + self.mu

    @cached_property
    def L_sample(self) -> float:
        """max_j L_j over the smooth parts of the f_{i,j}: what the stochastic solvers step by."""
        worst = float(self.rows.square_norms().max())
        return self.loss.curvature * worst * self.samples / self.n0

    @cached_property
    def L_of_samples(self) -> Array:
        """L_ij = sup l'' ||a_j||^2 / n0 for every own sample j: the smoothness of (1/n0) l_j."""
        return (self.loss.curvature / self.n0) * self.rows.square_norms()

    @cached_property
    def L_sum(self) -> float:
        """sum_j L_ij."""
        return total(self.L_of_samples)

    @cached_property
    def root_sum(self) -> float:
        """sum_j sqrt(1 + L_ij / mu_i): what ADFS draws this worker by."""
        return total(np.sqrt(1.0 + self.L_of_samples / self.mu))

    def value(self, theta: Array) -> float:
        """f_i(theta)."""
        losses = self.rows.sum_losses(self.loss.code, self.labels, theta)
        return losses / self.n0 + 0.5 * self.mu * square(theta)

    def gradient(self, theta: Array) -> Array:
        """grad f_i(theta); costs m_i sample gradients."""
        out = self.mu * theta
        self.rows.add_slopes(self.loss.code, self.labels, theta, 1.0 / self.n0, out)
        return out

    def slopes_at_zero(self) -> Array:
        """l'_j(0) for every own sample j."""
        slopes: Array = kernels.slopes_at_zero(self.loss.code, self.labels)
        return slopes

    def hessian(self, theta: Array) -> Array:
        """The dim x dim Hessian of f_i at theta."""
        out = self.rows.weighted_gram(self.rows.bends(self.loss.code, self.labels, theta))
        out /= self.n0
        out.flat[:: self.dim + 1] += self.mu
        return out

    def hessian_vector(self, theta: Array, v: Array) -> Array:
        """The Hessian of f_i at theta times v, without forming it."""
        bends = self.rows.bends(self.loss.code, self.labels, theta)
        return self.rows.products(bends, v) / self.n0 + self.mu * v
