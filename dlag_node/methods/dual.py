"""The accelerated dual flow that SSDA, MSDA, DLAG and MDLAG share, with their parts plugged in."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from dlag_node.errors import ConvergenceError
from dlag_node.graphs.chebyshev import Chebyshev
from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport
from dlag_node.methods.gossip import Neighborhood, accelerated_gossip
from dlag_node.methods.lazy import LazyRule
from dlag_node.solvers import Oracle

# A step this many times larger than the largest of the first rounds is no transient any more.
_DIVERGED = 1e6
_SETTLING_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class StepSizes:
    """eta, and Nesterov's factor (sqrt(s kappa) - 1) / (sqrt(s kappa) + 1)."""

    eta: float
    momentum: float


class DualAscent:
    """Worker i's side of Algorithm 1 (DLAG) and of the paper's MDLAG, SSDA and MSDA.

        theta^k ~ grad f_i^*(x^k), warm started at theta^{k-1}     `oracle`
        Q = theta^k - theta_hat^{k-1}, sent unless the rule holds  `lazy`, None: always sent
        P^k = P^{k-1} + sum_{j in N(i)} U_ij Q_j                   `hood`
        y^{k+1} = x^k - eta * (column i of theta_hat^k P_K(U))     `poly`, None: P^k itself
        x^{k+1} = y^{k+1} + momentum * (y^{k+1} - y^k)

    Iteration 0 computes theta^0 = grad f_i^*(0) exactly and tells it to everybody, which makes
    P^0 = sum_j U_ij theta_j^0; then it takes the last two lines like every other iteration.
    """

    def __init__(
        self,
        *,
        dim: int,
        oracle: Oracle,
        hood: Neighborhood,
        sizes: StepSizes,
        lazy: LazyRule | None,
        poly: Chebyshev | None,
        parameters: dict[str, float | int | str],
    ) -> None:
        self.oracle = oracle
        self.hood = hood
        self.sizes = sizes
        self.lazy = lazy
        self.poly = poly
        self.parameters = parameters
        self.k = 0
        self.theta = np.zeros(dim)
        self.theta_hat = np.zeros(dim)  # what the neighbors know of theta
        self.P = np.zeros(dim)
        self.x = np.zeros(dim)
        self.y = np.zeros(dim)
        # Over the settling rounds, and at least the step to which thetas that differ by 1 lead:
        # a worker whose neighbors agree with it may not move at all until the news is there.
        self._largest_step = sizes.eta

    def round(self) -> Flow[RoundReport]:
        """Iteration k of the paper's algorithm, lines 2 to 16."""
        solve = self.oracle.exact if self.k == 0 else self.oracle
        solution = solve(self.x, self.theta)
        self.theta = solution.theta
        yield from self._tell()
        direction = yield from accelerated_gossip(self.theta_hat, self.P, self.hood, self.poly)
        step = self._step(direction)
        self.k += 1
        age = 0 if self.lazy is None else self.lazy.age
        return RoundReport(gradients=solution.sample_gradients, step=step, age=age)

    def _tell(self) -> Flow[None]:
        """Lines 4 to 14: tell the neighbors or stay silent, then fold their deltas into P."""
        Q = self.theta - self.theta_hat
        if self.k > 0 and self.lazy is not None and self.lazy.may_skip(_square(Q)):
            sent = None
        else:
            sent = Q
            self.theta_hat = self.theta
        inbox = yield Exchange(sent)
        change = self.hood.apply(sent, inbox)
        if change is not None:
            self.P = self.P + change

    def _step(self, direction: Array) -> float:
        """Lines 15 and 16: the accelerated step; returns ||x^{k+1} - x^k||."""
        with np.errstate(over="ignore", invalid="ignore"):  # `_check` is what judges the numbers
            y = self.x - self.sizes.eta * direction
            x = y + self.sizes.momentum * (y - self.y)
            square = _square(x - self.x)
        step = sqrt(square)
        self._check(step)
        if self.lazy is not None:
            self.lazy.observe(square)
        self.x, self.y = x, y
        return step

    def _check(self, step: float) -> None:
        """End a run whose numbers went bad with an error that says what to change."""
        if isfinite(step) and self.k < _SETTLING_ROUNDS:
            self._largest_step = max(self._largest_step, step)
        if isfinite(step) and step <= _DIVERGED * self._largest_step:
            return
        change = f"eta_beta (eta = {self.sizes.eta:g})"
        if self.lazy is not None:
            change = (
                f"gamma = {self.lazy.gamma:g}, c = {self.lazy.c:g}, D = {self.lazy.D} or {change}"
            )
        raise ConvergenceError(
            f"the run diverges: in round {self.k} ||x^(k+1) - x^k|| = {step:.3g}, where "
            f"{self._largest_step:.3g} is usual for the first rounds; lower {change}, or solve the "
            f"subproblem further than stop={self.oracle.stop}"
        )


def _square(v: Array) -> float:
    """||v||^2; inf, without a warning, where a float cannot hold it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(v.dot(v))
