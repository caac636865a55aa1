"""Ending a run whose numbers went bad with an error that says what to change."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np

from dlag_node.errors import ConvergenceError
from dlag_node.methods.flow import Array

# A step this many times larger than the largest of the first rounds is no transient any more.
_DIVERGED = 1e6
_SETTLING_ROUNDS = 10


class Guard:
    """Watches worker i's steps ||x^{k+1} - x^k||.

    `usual` is the largest step of the settling rounds, and at least the one given: a worker whose
    neighbors agree with it may not move at all until the news is there. `advice` says what to
    change should the run diverge.
    """

    def __init__(self, *, usual: float, advice: str) -> None:
        self._usual = usual
        self._advice = advice

    def step(self, k: int, before: Array, after: Array) -> float:
        """||after - before||, checked."""
        with np.errstate(over="ignore", invalid="ignore"):
            step = sqrt(square(after - before))
        self.check(k, step)
        return step

    def check(self, k: int, step: float) -> None:
        """Let the step of round k pass, or raise ConvergenceError."""
        if isfinite(step) and k < _SETTLING_ROUNDS:
            self._usual = max(self._usual, step)
        if isfinite(step) and step <= _DIVERGED * self._usual:
            return
        raise ConvergenceError(
            f"the run diverges: in round {k} ||x^(k+1) - x^k|| = {step:.3g}, where "
            f"{self._usual:.3g} is usual for the first rounds; {self._advice}"
        )


def square(v: Array) -> float:
    """||v||^2; inf, without a warning, where a float cannot hold it."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(v.dot(v))
