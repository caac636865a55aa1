"""Decentralized consensus ADMM (Shi, Ling, Yuan, Wu, Yin 2014).

Worker i, iteration k, from x_i = p_i = 0, with deg_i neighbors (j runs over them, without i):

    x_i^+ = argmin f_i(x) + <p_i, x> + c sum_j ||x - (x_i + x_j) / 2||^2
    send x_i^+
    p_i^+ = p_i + c (deg_i x_i^+ - sum_j x_j^+)

The first line solves grad f_i(x) + 2 c deg_i x = c (deg_i x_i + sum_j x_j) - p_i by Newton, warm
started at x_i, to a gradient norm of `tol`. sum_i p_i = 0 always. The weights of U play no part.

Every c > 0 converges, so `theory` is `paper`: c = sqrt(mu_min L_max). The c for which its paper's
bound of the rate is best is many times too large in practice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.guard import Guard
from dlag_node.methods.spec import MethodSpec, require_positive
from dlag_node.methods.worker import Worker
from dlag_node.solvers import Oracle, parse_stop

_NEWTON_STEPS = 1_000  # then it gives up; some five are usual


@dataclass(frozen=True, slots=True)
class AdmmParameters:
    """The penalty c, 0 being sqrt(mu_min L_max), and the gradient norm of the subproblem."""

    c: float = 0.0
    tol: float = 1e-10

    def __post_init__(self) -> None:
        if not (isfinite(self.c) and self.c >= 0):
            raise ConfigError(f"c = {self.c}: expected a positive number, or 0 (by mu and L)")
        require_positive("tol", self.tol)


DEFAULTS = {"paper": AdmmParameters(), "theory": AdmmParameters()}


def build(spec: MethodSpec, worker: Worker) -> Admm:
    """Decentralized ADMM for this worker."""
    wanted = spec.parameters(DEFAULTS[spec.preset])
    c = wanted.c or sqrt(worker.mu_min * worker.L_max)
    degree = len(worker.hood.weights)
    oracle = Oracle(
        worker.problem.plus_quadratic(2.0 * c * degree),
        solver="newton",
        stop=parse_stop(f"exact:{wanted.tol!r}"),
        rng=worker.random_stream(),
        max_epochs=_NEWTON_STEPS,
    )
    laplacian = Neighborhood(float(degree), dict.fromkeys(worker.hood.weights, -1.0))
    return Admm(worker.problem.dim, oracle, laplacian, c=c)


class Admm:
    """Worker i's side of decentralized ADMM; `_apart` is deg_i x_i - sum_j x_j."""

    def __init__(self, dim: int, oracle: Oracle, laplacian: Neighborhood, *, c: float) -> None:
        self.oracle = oracle
        self.laplacian = laplacian
        self.c = c
        self.parameters: dict[str, float | int | str] = {"c": c, "tol": oracle.stop.amount}
        self.k = 0
        self.x: Array = np.zeros(dim)
        self.p: Array = np.zeros(dim)
        self._apart: Array = np.zeros(dim)
        # thetas that differ by 1 lead to a step of about 1
        advice = f"lower tol = {oracle.stop.amount:g}, or change c = {c:g}"
        self._guard = Guard(usual=1.0, advice=advice)

    @property
    def theta(self) -> Array:
        """x_i^k."""
        return self.x

    @property
    def width(self) -> int:
        """It sends x_i."""
        return len(self.x)

    def round(self) -> Flow[RoundReport]:
        """One iteration k."""
        both = 2.0 * self.laplacian.own * self.x - self._apart  # deg_i x_i + sum_j x_j
        solution = self.oracle(self.c * both - self.p, self.x)
        x = solution.theta
        step = self._guard.step(self.k, self.x, x)
        inbox = yield Exchange(x)
        apart = self.laplacian.apply(x, inbox)
        assert apart is not None
        self.x, self._apart = x, apart
        self.p = self.p + self.c * apart
        self.k += 1
        return RoundReport(gradients=solution.sample_gradients, step=step, age=0)
