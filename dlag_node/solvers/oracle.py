"""The approximate dual gradient of worker i: Algorithm 1, line 3."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError, ConvergenceError
from dlag_node.problems import Problem
from dlag_node.solvers.agd import AGD
from dlag_node.solvers.calls import Call, Outcome, Solver
from dlag_node.solvers.chord import Chord
from dlag_node.solvers.closed import Closed
from dlag_node.solvers.katyusha import Katyusha
from dlag_node.solvers.newton import Newton
from dlag_node.solvers.stops import EXACT, Stop
from dlag_node.solvers.subproblem import Subproblem
from dlag_node.solvers.svrg import SVRG

Array = NDArray[np.float64]

SOLVERS: Mapping[str, Callable[[Subproblem], Solver]] = MappingProxyType(
    {
        "katyusha": Katyusha,
        "svrg": SVRG,
        "agd": AGD,
        "newton": Newton,
        "chord": Chord,
        "closed": Closed,
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An approximate dual gradient and what it cost; `theta` is a new array, the caller's own."""

    theta: Array
    sample_gradients: int
    epochs: int


class Oracle:
    """theta^k ~ grad f_i^*(x) = argmin f_i(theta) - <theta, x>, warm started at theta^{k-1}.

    By Lemma 1's proof, enough epochs of Katyusha give, in the mean,

        ||theta^k - grad f_i^*(x)||^2 <= (c/2) ||theta^{k-1} - grad f_i^*(x)||^2

    The draws of the stochastic solvers come from `rng`, the only state that lasts from one call to
    the next, but for whether there was one (`called`): with its state restored, an oracle repeats
    itself to the last bit. A `cold` oracle starts from 0 in every call. An epoch of a stochastic
    solver has `passes` m steps.
    """

    STATE = ("rng", "called")

    def __init__(
        self,
        problem: Problem,
        *,
        solver: str,
        stop: Stop,
        rng: np.random.Generator,
        max_epochs: int = 10_000,
        cold: bool = False,
        passes: int = 2,
    ) -> None:
        if solver not in SOLVERS:
            raise ConfigError(f"unknown solver {solver!r}: expected one of {', '.join(SOLVERS)}")
        if max_epochs < 1:
            raise ConfigError(f"max_epochs = {max_epochs}: expected at least 1")
        if passes < 1:
            raise ConfigError(f"passes = {passes}: expected at least 1")
        self.solver = solver
        self.stop = stop
        self.rng = rng
        self.called = 0  # 1 from the first call on
        self.max_epochs = max_epochs
        self.cold = cold
        self._sub = Subproblem(problem, passes=passes)
        self._solver = SOLVERS[solver](self._sub)

    def __call__(self, x: Array, start: Array) -> Solution:
        """Algorithm 1, line 3: theta^k from theta^{k-1} = `start`, by the oracle's stop rule."""
        return self._solve(x, start, self.stop)

    def exact(self, x: Array, start: Array) -> Solution:
        """grad f_i^*(x) to a gradient norm of 1e-10: theta^0 is exact in the paper."""
        return self._solve(x, start, EXACT)

    def _solve(self, x: Array, start: Array, stop: Stop) -> Solution:
        assert x.shape == start.shape == (self._sub.dim,)
        # copies: x and start may be read-only, and belong to the caller
        self._sub.x[:] = x
        theta = np.empty(self._sub.dim)
        theta[:] = 0.0 if self.cold else start
        outcome = self._solver.solve(Call(theta, stop, self.rng, self.max_epochs, self.called > 0))
        self.called = 1
        self._check(outcome, stop)
        return Solution(outcome.theta, outcome.sample_gradients, outcome.epochs)

    def _check(self, outcome: Outcome, stop: Stop) -> None:
        if not np.isfinite(outcome.theta).all():
            raise ConvergenceError(
                f"{self.solver}: theta is not finite after {outcome.epochs} epochs ({stop}); "
                "scale the features, raise lambda or take another solver"
            )
        if outcome.norm > outcome.wanted:
            raise ConvergenceError(
                f"{self.solver}: gradient norm {outcome.norm:.3g} after {outcome.epochs} epochs, "
                f"wanted {outcome.wanted:.3g} ({stop}); raise max_epochs (now {self.max_epochs}), "
                "loosen the stop rule or take another solver"
            )
