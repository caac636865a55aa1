"""Promised silence: a delta may say for how many exchanges its worker will not speak again.

Algorithm 1 asks in every exchange whether silence is allowed, and its silence must be told apart
from a message that is late. Here worker i asks ahead, when it speaks, and says the answer with the
delta: then nobody waits for it, and nothing is sent. When the promise ends it speaks again.
"""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Schedule
from dlag_node.problems import norm

LONGEST_PROMISE = 100  # exchanges: what the wire's field takes

_TWO_VALUES = 2  # make a difference
_THREE_VALUES = 3  # make two, and one difference of those


class Foresight(Protocol):
    """What a lazy condition knows of the exchanges to come."""

    @property
    def strict(self) -> bool:
        """Whether no silence is allowed at present."""

    def bound(self, ahead: int = 0) -> float:
        """The right-hand side `ahead` exchanges from now, by the steps that are known today."""


class Promises:
    """Worker i's promises for one vector v: what it forecasts by, and what it still owes.

    In every exchange, silent or not, `follow` takes in the step of v,

        u = v - v_before,    A = max(||u - u_before||, fading A)

    `_speed` and `_bend`. The rule says how fast A fades: a method that takes fewer rounds forgets
    sooner. Having told v in exchange k, worker i promises to be silent in the next r,
    r <= R the largest such that for all j = 1, ..., r

        ||copy + j w - v - j u|| + A j (j + 1) / 2 <= sqrt(B_j)

    where the copy is what the neighbors have now, w its slope (0 without prediction), and B_j the
    lazy condition's right-hand side in exchange k + j by the steps that are known in exchange k.
    While no second difference of v exceeds A, v is that close to the copy in exchange k + j; so the
    lazy condition holds there as well. Where it does not hold the exchange is overdue: counted, and
    silent all the same.

    `safe` is a length that needs no forecast (docs/paper.md, section 7). `left` is what is left of
    the promise under way.
    """

    STATE = ("left", "_speed", "_bend", "_values")

    def __init__(self, dim: int, longest: int, *, fading: float, safe: int = 0) -> None:
        self.longest = longest  # R
        self.safe = min(safe, longest)
        self._fading = fading
        self.left = 0
        self._speed: Array = np.zeros(dim)  # u
        self._bend = 0.0  # A
        self._values = 0  # of v that were taken in, up to three

    def follow(self, step: Array) -> None:
        """Take in this exchange's v, by its difference from the last; the first has none."""
        if self._values >= _TWO_VALUES:
            with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
                self._bend = max(norm(step - self._speed), self._fading * self._bend)
        if self._values:
            self._speed = step
        self._values = min(self._values + 1, _THREE_VALUES)

    def keep(self) -> bool:
        """Whether this exchange is one of the silent ones that were promised; counts it."""
        if not self.left:
            return False
        self.left -= 1
        return True

    def make(self, v: Array, copy: Array, slope: Array | None, rule: Foresight) -> int:
        """r of the delta that is being told; the copy has taken it in."""
        if self._values == _THREE_VALUES and not rule.strict:
            self.left = max(self.safe, self._foreseen(v, copy, slope, rule))
        return self.left

    def _foreseen(self, v: Array, copy: Array, slope: Array | None, rule: Foresight) -> int:
        with np.errstate(over="ignore", invalid="ignore"):
            apart = copy - v
            drift = -self._speed if slope is None else slope - self._speed
            for j in range(1, self.longest + 1):
                away = norm(apart + j * drift) + self._bend * (j * (j + 1) // 2)
                if not away <= sqrt(rule.bound(j)):  # a NaN is no promise
                    return j - 1
        return self.longest


def require_promise(promise: int, D: int) -> None:
    """ConfigError unless R = `promise` is 0 (no promises), or a length that silence may have."""
    if not 0 <= promise <= LONGEST_PROMISE:
        raise ConfigError(f"promise = {promise}: expected 0 (off) to {LONGEST_PROMISE}")
    if promise > D:
        raise ConfigError(f"promise = {promise}: expected at most D = {D}, the longest silence")


def schedule_of(longest: int, *, exchanges: int = 1, lazy: int = 1) -> Schedule:
    """Who speaks when, in rounds of so many exchanges of which the first `lazy` are lazy.

    A worker waits for a neighbor in every exchange that the neighbor has not promised silence for.
    With R = `longest`, a neighbor whose silences are all promised can be waited for no sooner than
    R exchanges of every lazy channel later. One exchange in between that is not lazy ends this.
    """
    if not longest:
        return EVERYBODY_SPEAKS
    if lazy < exchanges:
        return Schedule(longest, exchanges, lead=lazy + 1, hop=1)
    return Schedule(longest, exchanges, lead=longest * exchanges + 1, hop=longest + 1)
