"""Newton's steps with one Hessian for all calls: that at theta^0 = argmin f_i.

    theta <- theta - H^{-1} g,     g = grad f_i(theta) - x,  H = Hessian of f_i at argmin f_i

The solutions for all x of a run lie where H hardly changes if the shard is large, and each step
then reduces g by a constant, large factor, for one gradient and no Hessian. A step that does not
halve ||g|| is not taken: a damped Newton step with its own Hessian is (see `newton`).

H follows from the shard alone. It is formed in the first call, which bears its cost; formed again
after a crash, it is not counted again.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.problems import FACTORED_DIM
from dlag_node.solvers.calls import Call, Outcome
from dlag_node.solvers.newton import Newton
from dlag_node.solvers.stops import EXACT, Stop
from dlag_node.solvers.subproblem import Subproblem

Array = NDArray[np.float64]

_HALF = 0.5  # a step must reduce ||g|| at least so far
_ONE_STEP = Stop("epochs", 1)


class Chord:
    """Newton with a fixed Hessian for one subproblem."""

    def __init__(self, sub: Subproblem) -> None:
        if sub.dim > FACTORED_DIM:
            raise ConfigError(f"chord forms a Hessian of dim {sub.dim}: at most {FACTORED_DIM}")
        self._sub = sub
        self._newton = Newton(sub)
        self._factor: tuple[Array, bool] | None = None

    def solve(self, call: Call) -> Outcome:
        """Steps by the call's stop rule; an epoch is a step of either kind."""
        sub, m, stop, theta = self._sub, self._sub.samples, call.stop, call.theta
        relative, absolute = (0.0, 0.0) if stop.fixed else stop.bounds
        limit = stop.epochs if stop.fixed else call.max_epochs
        spent = self._prepare(call)
        norm, floor = sub.gradient(theta)
        target, epochs, spent = max(relative * norm, absolute), 0, spent + m
        while norm > max(target, floor) and epochs < limit:
            assert self._factor is not None
            ahead = theta - scipy.linalg.cho_solve(self._factor, sub.g)
            new_norm, new_floor = sub.gradient(ahead)
            spent, epochs = spent + m, epochs + 1
            if new_norm <= max(_HALF * norm, new_floor):
                theta, norm, floor = ahead, new_norm, new_floor
                continue
            step = self._newton.solve(Call(theta, _ONE_STEP, call.rng, 1))
            if np.array_equal(step.theta, theta):
                norm, floor = sub.gradient(theta)
                break  # at the floor: nothing improves it
            theta, spent = step.theta, spent + step.sample_gradients + m
            norm, floor = sub.gradient(theta)
        if stop.fixed:
            return Outcome(theta, spent, stop.epochs)
        return Outcome(theta, spent, epochs, norm, max(target, floor))

    def _prepare(self, call: Call) -> int:
        """Form H if that has not been done; returns the sample gradients spent on it."""
        if self._factor is not None:
            return 0
        sub = self._sub
        x = sub.x.copy()
        sub.x[:] = 0.0
        anchor = self._newton.solve(Call(np.zeros(sub.dim), EXACT, call.rng, call.max_epochs))
        sub.x[:] = x
        self._factor = scipy.linalg.cho_factor(sub.problem.hessian(anchor.theta))
        return 0 if call.again else anchor.sample_gradients
