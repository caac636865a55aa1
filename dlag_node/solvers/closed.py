"""The dual gradient of ridge regression in closed form.

    grad f_i^*(x) = ( A^T A / n0 + mu I )^{-1} ( A^T b / n0 + x )

The matrix never changes: its Cholesky factor is computed once. Whatever the stop rule, the answer
is exact to rounding and costs no sample gradient: A^T b is part of the set-up, and a call is two
triangular solves.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.problems import SQUARED
from dlag_node.solvers.calls import Call, Outcome
from dlag_node.solvers.subproblem import Subproblem

Array = NDArray[np.float64]

_LARGEST_DIM = 10_000  # a factor of 800 MB


class Closed:
    """The closed form for one ridge subproblem: its factor and A^T b / n0."""

    def __init__(self, sub: Subproblem) -> None:
        problem = sub.problem
        if problem.loss is not SQUARED:
            raise ConfigError(
                f"solver closed: {problem.loss.name} has no closed-form dual gradient, ridge has; "
                "take katyusha, svrg, agd or newton"
            )
        if problem.dim > _LARGEST_DIM:
            raise ConfigError(
                f"solver closed factors a dim x dim matrix, dim = {problem.dim} here: "
                f"expected at most {_LARGEST_DIM}; take katyusha, svrg, agd or newton"
            )
        self._sub = sub
        # the Hessian of a quadratic is the same everywhere, and its gradient at 0 is -A^T b / n0
        self._factor = scipy.linalg.cho_factor(problem.hessian(np.zeros(problem.dim)))
        self._pull: Array = -problem.gradient(np.zeros(problem.dim))

    def solve(self, call: Call) -> Outcome:
        """theta by two triangular solves; the warm start does not matter."""
        call.theta[:] = scipy.linalg.cho_solve(self._factor, self._pull + self._sub.x)
        return Outcome(call.theta, 0, 0)
