"""The accelerated dual flow that SSDA, MSDA, DLAG and MDLAG share, with their parts plugged in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from dlag_node.graphs.chebyshev import Chebyshev
from dlag_node.methods.channel import Channel, accelerated_gossip
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Flow, RoundReport, Schedule
from dlag_node.methods.guard import Guard
from dlag_node.methods.lazy import LazyRule
from dlag_node.problems import square
from dlag_node.solvers import Oracle


@dataclass(frozen=True, slots=True)
class StepSizes:
    """eta, and Nesterov's factor (sqrt(s kappa) - 1) / (sqrt(s kappa) + 1)."""

    eta: float
    momentum: float


class DualAscent:
    """Worker i's side of Algorithm 1 (DLAG) and of the paper's MDLAG, SSDA and MSDA.

        theta^k ~ grad f_i^*(x^k), warm started at theta^{k-1}     `oracle`
        Q = theta^k - theta_hat^{k-1}, sent unless the rule holds  `channel`
        P^k = P^{k-1} + sum_{j in N(i)} U_ij Q_j
        y^{k+1} = x^k - eta * (column i of theta_hat^k P_K(U))     `poly`, None: P^k itself;
                                                                   `gossip`: a channel for each z_l
        x^{k+1} = y^{k+1} + momentum * (y^{k+1} - y^k)

    Iteration 0 computes theta^0 = grad f_i^*(0) exactly and tells it to everybody, which makes
    P^0 = sum_j U_ij theta_j^0; then it takes the last two lines like every other iteration.
    """

    STATE = ("k", "theta", "x", "y", "oracle", "channel", "gossip", "_guard")

    def __init__(
        self,
        *,
        dim: int,
        oracle: Oracle,
        channel: Channel,
        sizes: StepSizes,
        poly: Chebyshev | None,
        gossip: Sequence[Channel],
        guard: Guard,
        parameters: dict[str, float | int | str],
        schedule: Schedule = EVERYBODY_SPEAKS,
    ) -> None:
        self.oracle = oracle
        self.channel = channel
        self.sizes = sizes
        self.poly = poly
        self.gossip = gossip
        self.parameters = parameters
        self.schedule = schedule
        self.k = 0
        self.theta = np.zeros(dim)
        self.x = np.zeros(dim)
        self.y = np.zeros(dim)
        self.advice = guard.advice
        self._guard = guard

    @property
    def theta_hat(self) -> Array:
        """What the neighbors know of theta."""
        return self.channel.known

    @property
    def P(self) -> Array:
        """sum_{j in N(i)} U_ij theta_hat_j."""
        return self.channel.mixed

    @property
    def width(self) -> int:
        """Deltas of theta and the vectors of the accelerated gossip are as long as theta."""
        return len(self.theta)

    def begin_at(self, theta: Array, g: Array) -> None:
        """x = g: theta is grad f_i^*(g) if it is the minimiser."""
        self.theta, self.x, self.y = theta, g, g

    def round(self) -> Flow[RoundReport]:
        """Iteration k of the paper's algorithm, lines 2 to 16."""
        solve = self.oracle.exact if self.k == 0 else self.oracle
        solution = solve(self.x, self.theta)
        self.theta = solution.theta
        P = yield from self.channel.share(self.theta, always=self.k == 0)
        direction = yield from accelerated_gossip(self.theta_hat, P, self.gossip, self.poly)
        step = self._step(direction)
        self.k += 1
        return self._report(solution.sample_gradients, step)

    def _report(self, gradients: int, step: float) -> RoundReport:
        """The round in numbers, with the paper's lazy condition where theta is told by it."""
        overdue = self.channel.overdue
        for channel in self.gossip:
            overdue += channel.overdue
        report = RoundReport(gradients, step, self.channel.age, overdue)
        if isinstance(self.channel.rule, LazyRule):
            report.gap, report.bound = self.channel.decided.gap, self.channel.decided.bound
        return report

    def _step(self, direction: Array) -> float:
        """Lines 15 and 16: the accelerated step; returns ||x^{k+1} - x^k||."""
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            y = self.x - self.sizes.eta * direction
            x = y + self.sizes.momentum * (y - self.y)
            moved = square(x - self.x)
        step = sqrt(moved)
        self._guard.check(self.k, step)
        for channel in (self.channel, *self.gossip):
            if channel.rule is not None:
                channel.rule.observe(moved)
        self.x, self.y = x, y
        return step
