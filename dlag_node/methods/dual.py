"""The accelerated dual flow that SSDA, MSDA, DLAG and MDLAG share, with their parts plugged in."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dlag_node.graphs.chebyshev import Chebyshev
from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport
from dlag_node.methods.gossip import Neighborhood, accelerated_gossip
from dlag_node.methods.guard import Guard, square
from dlag_node.methods.lazy import LazyRule
from dlag_node.solvers import Oracle


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
        # eta is the step to which thetas that differ by 1 lead
        self._guard = Guard(usual=sizes.eta, advice=_advice(sizes, lazy, oracle))

    @property
    def width(self) -> int:
        """Deltas of theta and the vectors of the accelerated gossip are as long as theta."""
        return len(self.theta)

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
        if self.k > 0 and self.lazy is not None and self.lazy.may_skip(square(Q)):
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
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            y = self.x - self.sizes.eta * direction
            x = y + self.sizes.momentum * (y - self.y)
            moved = square(x - self.x)
        step = sqrt(moved)
        self._guard.check(self.k, step)
        if self.lazy is not None:
            self.lazy.observe(moved)
        self.x, self.y = x, y
        return step


def _advice(sizes: StepSizes, lazy: LazyRule | None, oracle: Oracle) -> str:
    """What to change when the run diverges."""
    change = f"eta_beta (eta = {sizes.eta:g})"
    if lazy is not None:
        change = f"gamma = {lazy.gamma:g}, c = {lazy.c:g}, D = {lazy.D} or {change}"
    return f"lower {change}, or solve the subproblem further than stop={oracle.stop}"
