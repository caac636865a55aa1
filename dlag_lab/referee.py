"""The referee: it knows all the data, measures every round, and says how far the run may go.

Nodes never see a suboptimality. The referee grants rounds in blocks and looks at block b while the
nodes work on block b + 1; a target met in block b ends the run with block b + 1, in the simulator
and on the mesh alike, so that both end with the same bits. The round that met it is known exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from coordinator.plan import Plan
from dlag_lab.worst import Worst
from dlag_node.problems import Problem
from dlag_node.solvers import Oracle, parse_stop
from dlag_node.wire.observing import Horizon

Array = NDArray[np.float64]

BLOCK_ROUNDS = 10
_OPTIMUM = "exact:1e-13"  # gradient norm at which f* is taken


@dataclass(frozen=True, slots=True)
class Measurement:
    """Round k as the referee saw it: the worst node's f(theta_i) - f*, and the disagreement."""

    k: int
    suboptimality: float
    consensus_error: float  # max_i ||theta_i - mean||


class Judge(Protocol):
    """Who says how far a run may go, by the thetas that it sees."""

    @property
    def horizon(self) -> Horizon:
        """How far the nodes may go by what has been judged so far."""

    def take(self, node: int, thetas: Array) -> None:
        """theta_i after the node's next rounds, one row each."""


class Referee:
    """Collects every node's theta, round by round, and judges the rounds that are complete."""

    def __init__(
        self,
        plan: Plan,
        *,
        target: float | None,
        rounds: int,
        report: Callable[[Measurement], None],
    ) -> None:
        self.pooled = plan.pooled()
        self.theta_star, self.f_star = optimum(self.pooled)
        self._worst = Worst(self.pooled, self.theta_star, self.f_star)
        self.last: Measurement | None = None
        self.reached: int | None = None  # rounds done when the target was first met
        self._target = target
        self._limit = rounds
        self._report = report
        self._judged = 0  # rounds
        self._waiting: list[list[Array]] = [[] for _ in range(plan.nodes)]

    @property
    def horizon(self) -> Horizon:
        """How far the nodes may go by what has been judged so far."""
        if self._target is None:
            return Horizon(self._limit, final=True)
        if self.reached is not None:
            blocks = -(-self.reached // BLOCK_ROUNDS) + 1
        else:
            blocks = self._judged // BLOCK_ROUNDS + 2
        granted = min(blocks * BLOCK_ROUNDS, self._limit)
        return Horizon(granted, final=self.reached is not None or granted == self._limit)

    def take(self, node: int, thetas: Array) -> None:
        """theta_i after the node's next rounds, one row each."""
        self._waiting[node].extend(thetas)
        while all(self._waiting):
            self._judge(np.array([rows.pop(0) for rows in self._waiting]))

    def _judge(self, Theta: Array) -> None:
        worst = self._worst(Theta) - self.f_star
        away = np.linalg.norm(Theta - Theta.mean(axis=0), axis=1).max()
        self.last = Measurement(self._judged, float(worst), float(away))
        self._judged += 1
        if self._target is not None and self.reached is None and worst <= self._target:
            self.reached = self._judged
        self._report(self.last)


def optimum(pooled: Problem) -> tuple[Array, float]:
    """theta* and f* of the pooled problem, by Newton's method."""
    newton = Oracle(
        pooled, solver="newton", stop=parse_stop(_OPTIMUM), rng=np.random.default_rng(0)
    )
    zero = np.zeros(pooled.dim)
    theta = newton(zero, zero).theta
    return theta, pooled.value(theta)
