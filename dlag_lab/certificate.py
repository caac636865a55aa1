"""Ends a run by what can be proven of it, without knowing the optimum.

f is mu-strongly convex, mu = 2 lambda, so that with g = grad f(theta)

    ||theta - theta*|| <= ||g|| / mu        f(theta) - f* <= ||g||^2 / (2 mu)

The laboratory has all samples and evaluates g at every node's theta; it never solves anything. It
is enough when the first is at most `tol`, or the second below what f's own rounding could show.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlag_lab.referee import BLOCK_ROUNDS
from dlag_node.problems import Problem, norm
from dlag_node.wire.observing import Horizon

Array = NDArray[np.float64]

_NOISE = 1e-13  # relative error of a value of f: a sum of up to a million terms


class Certificate:
    """Grants rounds in blocks until every node is proven to be at the optimum.

    A mesh in which nobody's theta has moved for a whole block ends too.
    """

    def __init__(self, pooled: Problem, *, nodes: int, tol: float, rounds: int) -> None:
        self.bound = float("inf")  # on ||theta_i - theta*||, over all nodes, in the last round
        self.proven = False  # in the last round
        self.judged = 0  # rounds
        self._pooled = pooled
        self._tol = tol
        self._limit = rounds
        self._unmoved = 0  # rounds
        self._last: Array | None = None
        self._waiting: list[list[Array]] = [[] for _ in range(nodes)]
        self._final = rounds <= BLOCK_ROUNDS
        self._granted = min(rounds, BLOCK_ROUNDS)

    @property
    def horizon(self) -> Horizon:
        """How far the nodes may go."""
        return Horizon(self._granted, final=self._final)

    def take(self, node: int, thetas: Array) -> None:
        """theta_i after the node's next rounds, one row each."""
        self._waiting[node].extend(thetas)
        while all(self._waiting):
            self._judge(np.array([rows.pop(0) for rows in self._waiting]))
            if self.judged == self._granted and not self._final:
                self._go_on()

    def _go_on(self) -> None:
        """After a block: another one, if it is needed."""
        if self.proven or self._unmoved >= BLOCK_ROUNDS:
            self._final = True
        else:
            self._granted = min(self._granted + BLOCK_ROUNDS, self._limit)
            self._final = self._granted == self._limit

    def _judge(self, Theta: Array) -> None:
        self.judged += 1
        if self._last is not None and np.array_equal(Theta, self._last):
            self._unmoved += 1
            return
        self._last, self._unmoved = Theta, 0
        f = self._pooled
        slopes = [norm(f.gradient(theta)) for theta in np.unique(Theta, axis=0)]
        self.bound = max(slopes) / f.mu
        noise = _NOISE * f.value(Theta[0])
        self.proven = self.bound <= self._tol or 0.5 * f.mu * self.bound**2 <= noise
