"""Ending a run whose numbers went bad with an error that says what to change."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, isfinite

import numpy as np

from dlag_node.errors import ConvergenceError
from dlag_node.methods.flow import Array
from dlag_node.problems import norm

# A step this many times larger than the largest of the first rounds is no transient any more.
_DIVERGED = 1e6
_SETTLING_ROUNDS = 10
# A window lasts so many times as long as an e-fold by theory: steps should fall to 2 % in it.
_EFOLDS = 4
_SHORTEST_WINDOW = 100  # rounds
_LONGEST_WINDOW = 1e15  # rounds: never
# Steps below this share of the largest have shrunk once: such a run stalls at its accuracy.
_UNSHRUNK = 0.5


@dataclass(frozen=True, slots=True)
class Pace:
    """What theory says of the steps of a run that converges.

    `efold` bounds the number of rounds in which they shrink by a factor of e, once the transients
    are over. Steps up to `noise` mean nothing: rounding and inexact subproblems make them.
    """

    efold: float
    noise: float = 1e-9


class Guard:
    """Watches worker i's steps ||x^{k+1} - x^k||.

    A run diverges when a step is far above `usual`: the largest step of the settling rounds, and at
    least the one given, since a worker whose neighbors agree with it may not move at all until the
    news is there.

    A run that goes round in circles diverges without ever growing. With a `pace`, time is cut into
    windows of 4 e-folds, 100 rounds at least; when the largest step of a window is no smaller than
    that of the window before, and at least half of the largest of all, then nothing has shrunk at
    all where almost everything should have gone. A run that is slow, or that stalls at the accuracy
    of its subproblems, does not do that.

    `advice` says what to change.
    """

    STATE = ("_usual", "_end", "_largest", "_before", "_now")

    def __init__(self, *, usual: float, advice: str, pace: Pace | None = None) -> None:
        self.advice = advice
        self._usual = usual
        self._noise = 0.0 if pace is None else pace.noise
        rounds = inf if pace is None else _EFOLDS * pace.efold
        self._window = ceil(min(max(_SHORTEST_WINDOW, rounds), _LONGEST_WINDOW))
        self._end = self._window  # of the window under way, as a round
        self._largest = 0.0  # step of the windows before
        self._before = inf  # the largest of the last window
        self._now = 0.0  # the largest of the window under way

    def step(self, k: int, before: Array, after: Array) -> float:
        """||after - before||, checked."""
        with np.errstate(over="ignore", invalid="ignore"):
            step = norm(after - before)
        self.check(k, step)
        return step

    def check(self, k: int, step: float) -> None:
        """Let the step of round k pass, or raise ConvergenceError."""
        if isfinite(step) and k < _SETTLING_ROUNDS:
            self._usual = max(self._usual, step)
        if not (isfinite(step) and step <= _DIVERGED * self._usual):
            raise ConvergenceError(
                f"the run diverges: in round {k} ||x^(k+1) - x^k|| = {step:.3g}, where "
                f"{self._usual:.3g} is usual for the first rounds; {self.advice}"
            )
        if k >= self._end:
            self._turn(k)
        self._now = max(self._now, step)

    def _turn(self, k: int) -> None:
        """The end of a window."""
        now, before = self._now, self._before
        self._largest = max(self._largest, now)
        if now >= max(before, _UNSHRUNK * self._largest) and now > self._noise:
            raise ConvergenceError(
                f"the run does not converge: up to round {k - 1}, ||x^(k+1) - x^k|| was as large "
                f"as {now:.3g} in the last {self._window} rounds and {before:.3g} in those before, "
                f"where it should have shrunk; {self.advice}"
            )
        self._before, self._now = now, 0.0
        self._end += self._window
