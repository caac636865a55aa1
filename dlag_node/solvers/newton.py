"""Damped Newton steps for the subproblem.

    theta <- theta - t H^{-1} g,     g = grad f_i(theta) - x,  H = Hessian of f_i at theta

The Newton direction p leads downhill for ||g||^2 / 2 (its slope along p is -||g||^2), so t is
halved from 1 until ||g(theta + t p)|| <= (1 - t/10^4) ||g||. By strong convexity this converges
from any start, near the solution t = 1 and the order is quadratic, and no difference of function
values, which rounding would spoil first, is ever formed.

An epoch is one step. Every gradient costs m sample gradients, that of each t tried included: an
undamped run of n epochs costs (n + 1) m. Up to dim 1000 H is formed and factored, at no further
cost in this currency. Beyond, H p = -g is solved by conjugate gradients to

    ||H p + g|| <= min(1/10, ||g|| / ||g^0||) ||g||

and each product with H costs another m. At the rounding floor there is nothing left to improve: an
epoch there takes no step and costs nothing.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dlag_node.problems import FACTORED_DIM, dot
from dlag_node.problems import square as square_of
from dlag_node.solvers.calls import Call, Outcome
from dlag_node.solvers.subproblem import Subproblem

Array = NDArray[np.float64]

_DESCENT = 1e-4  # Armijo's constant
_HALVINGS = 40
_FORCING = 0.1
_CG_STEPS_PER_DIM = 2  # rounding can cost conjugate gradients more than dim steps


class Newton:
    """Damped Newton for one subproblem."""

    def __init__(self, sub: Subproblem) -> None:
        self._sub = sub

    def solve(self, call: Call) -> Outcome:
        """Newton steps by the call's stop rule; they end early when no step reduces ||g||."""
        sub, m, stop, theta = self._sub, self._sub.samples, call.stop, call.theta
        relative, absolute = (0.0, 0.0) if stop.fixed else stop.bounds
        limit = stop.epochs if stop.fixed else call.max_epochs
        norm, floor = sub.gradient(theta)
        first, spent, epochs, stuck = norm, m, 0, False
        target = max(relative * first, absolute)
        while norm > max(target, floor) and epochs < limit and not stuck:
            p, products = self._direction(theta, norm, norm / first)
            theta, tried, norm, floor, stuck = self._damped_step(theta, p, norm)
            spent += (products + tried) * m
            epochs += 1
        if stop.fixed:
            return Outcome(theta, spent, stop.epochs)
        return Outcome(theta, spent, epochs, norm, max(target, floor))

    def _damped_step(
        self, theta: Array, p: Array, norm: float
    ) -> tuple[Array, int, float, float, bool]:
        """The new theta, the number of gradients tried, its norm and floor, and: no t will do."""
        t = 1.0
        for tried in range(1, _HALVINGS + 1):
            ahead = theta + t * p
            new_norm, floor = self._sub.gradient(ahead)
            if new_norm <= max((1.0 - _DESCENT * t) * norm, floor):
                return ahead, tried, new_norm, floor, False
            t /= 2
        norm, floor = self._sub.gradient(theta)
        return theta, _HALVINGS + 1, norm, floor, True

    def _direction(self, theta: Array, norm: float, progress: float) -> tuple[Array, int]:
        """p with H p = -g, and the number of products with H that it took."""
        problem, g = self._sub.problem, self._sub.g
        if problem.dim <= FACTORED_DIM:
            factor = scipy.linalg.cho_factor(problem.hessian(theta), overwrite_a=True)
            p: Array = scipy.linalg.cho_solve(factor, -g)
            return p, 0
        p, residual = np.zeros(problem.dim), -g
        step, square, products = residual, norm * norm, 0
        bound = (min(_FORCING, progress) * norm) ** 2
        while square > bound and products < _CG_STEPS_PER_DIM * problem.dim:
            H_step = problem.hessian_vector(theta, step)
            products += 1
            length = square / dot(step, H_step)
            p = p + length * step
            residual = residual - length * H_step
            square, before = square_of(residual), square
            step = residual + (square / before) * step
        return p, products
