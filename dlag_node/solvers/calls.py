"""What a solver is asked and what it answers, and the epochs that stochastic solvers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dlag_node.solvers.stops import Stop
from dlag_node.solvers.subproblem import Subproblem

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Indices drawn at a time (2 MiB): small shards run many epochs in one compiled call.
_DRAWS = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """One call of a solver: `theta` holds the warm start and is the solver's to write into."""

    theta: Array
    stop: Stop
    rng: np.random.Generator
    max_epochs: int
    again: bool = False  # not the first of its run: what a first call bears has been counted


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Where a solver ended: the gradient norm it reached and the one it wanted, if it measured."""

    theta: Array
    sample_gradients: int
    epochs: int
    norm: float = nan
    wanted: float = inf


class Solver(Protocol):
    """A solver bound to one subproblem; between calls it keeps nothing but its constants."""

    def solve(self, call: Call) -> Outcome:
        """Minimise f_i(theta) - <theta, x> from the warm start by the call's stop rule."""


def run_epochs(sub: Subproblem, call: Call, advance: Callable[[Index, bool], None]) -> Outcome:
    """Epochs of a variance-reduced solver: a full gradient, then steps that cost one each.

    `advance(draws, measured)` runs one epoch for each row of `draws`; `measured` says that the full
    gradient of the first one is in place. Slopes at the snapshot are kept, so an epoch of 2m steps
    (`Subproblem.epoch_steps`) costs m + 2m sample gradients. A stop rule with a norm looks at the
    full gradient with which an epoch begins anyway: n such epochs cost 3 m n + m, and a call that
    is done at the start costs m.
    """
    m, steps, stop, rng = sub.samples, sub.epoch_steps, call.stop, call.rng
    if stop.fixed:
        at_once = max(1, _DRAWS // steps)
        for done in range(0, stop.epochs, at_once):
            # a block of draws is the same stream of numbers as its epochs drawn one by one
            block = min(at_once, stop.epochs - done)
            advance(rng.integers(m, size=(block, steps)), False)
        return Outcome(call.theta, (m + steps) * stop.epochs, stop.epochs)
    relative, absolute = stop.bounds
    norm, floor = sub.gradient(call.theta)
    target, epochs = max(relative * norm, absolute), 0
    while norm > max(target, floor) and epochs < call.max_epochs:
        advance(rng.integers(m, size=(1, steps)), True)
        epochs += 1
        norm, floor = sub.gradient(call.theta)
    return Outcome(call.theta, m + (m + steps) * epochs, epochs, norm, max(target, floor))
