"""Limited-memory BFGS (Liu, Nocedal 1989) as whoever is told f and its gradient takes it.

    q = -H g,   theta^+ = theta + t q,   t = 1, or less until f has decreased enough

H is made of the last pairs s = theta^+ - theta, y = g^+ - g and of a first guess H_0, scaled by
s.y / y.H_0 y of the newest pair. A trial theta + t q is taken when (Armijo; Hager, Zhang 2005)

    f(theta + t q) <= f + t g.q / 10^4,  or, where f cannot show it any more for rounding,
    |f(theta + t q) - f| <= 10^-13 |f|  and  grad f(theta + t q).q <= (9/10) |g.q|

and otherwise t becomes the minimiser of the parabola through what is known, within [t/10, t/2].
Strong convexity makes s.y > 0.

It rests where ||g||^2 / (2 mu), which f - f* does not exceed, is at most `gap` or an ulp of f;
where no step that a float can show leads downhill; and after ten steps that only the second test
could have let pass.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dlag_node.methods.flow import Array
from dlag_node.problems import dot, square

Guess = Callable[[Array], Array]  # v -> H_0 v, symmetric and positive definite

_ARMIJO = 1e-4
_LEAST_SHRINKING, _MOST_SHRINKING = 0.5, 0.1  # of t, after a trial that was not taken
_NOISE = 1e-13  # relative error of a value of f: a sum of up to a million terms
_SLOPE = 0.9  # 1 - 2 delta of Hager and Zhang's approximate condition, delta = 0.05
_ULP = float(np.finfo(np.float64).eps)
_TRIALS = 25  # of one line search; then it begins anew without pairs
_STALLED = 10  # steps in a row


class Lbfgs:
    """Asks for f and its gradient at `theta + step`, one point at a time; step 0 is its last word.

    `guess` makes H_0 for a theta; mu is f's constant of strong convexity.
    """

    STATE = ("theta", "f", "g", "s", "y", "q", "t", "tries", "stalled")

    def __init__(
        self, dim: int, *, guess: Callable[[Array], Guess], mu: float, memory: int, gap: float
    ) -> None:
        self._guess = guess
        self._mu = mu
        self._memory = memory
        self._gap = gap
        self.theta: Array = np.zeros(dim)  # the last point that was taken
        self.f = np.inf
        self.g: Array = np.zeros(dim)
        self.s: list[Array] = []  # oldest first
        self.y: list[Array] = []
        self.q: Array = np.zeros(dim)
        self.t = 1.0
        self.tries = 0  # trials of this line search so far
        self.stalled = 0  # the last steps by which f did not decrease beyond its rounding

    def judge(self, trial: Array, f: float, g: Array) -> tuple[bool, Array]:
        """Whether the trial, with f and the gradient there, is taken; and the next step."""
        taken = self._taken(f, g)
        if taken:
            self._take(trial, f, g)
            self._aim()
        else:
            self._shorten(f)
        step = self.t * self.q
        if np.array_equal(self.theta + step, self.theta):
            step = np.zeros_like(step)  # exactly: it is the word for rest
        return taken, step

    def _taken(self, f: float, g: Array) -> bool:
        if f <= self.f + _ARMIJO * self.t * dot(self.g, self.q):
            return True
        flat = abs(f - self.f) <= _NOISE * abs(self.f)
        return flat and dot(g, self.q) <= -_SLOPE * dot(self.g, self.q)

    def _take(self, trial: Array, f: float, g: Array) -> None:
        s, y = trial - self.theta, g - self.g
        if np.isfinite(self.f) and dot(s, y) > 0.0:
            self.s = [*self.s, s][-self._memory :]
            self.y = [*self.y, y][-self._memory :]
        self.stalled = 0 if f < self.f - _NOISE * abs(f) else self.stalled + 1
        self.theta, self.f, self.g = trial, f, g

    def _aim(self) -> None:
        """A new line search from theta, or rest."""
        self.t, self.tries = 1.0, 0
        proven = 2.0 * self._mu * max(self._gap, _ULP * abs(self.f))
        if square(self.g) <= proven or self.stalled >= _STALLED:
            self.q = np.zeros_like(self.g)
        else:
            self.q = -self._times_H(self.g)

    def _shorten(self, f: float) -> None:
        """The next t after a trial that was not taken."""
        self.tries += 1
        downhill = -self.t * dot(self.g, self.q)
        if downhill <= _ULP * abs(self.f) or self.tries >= _TRIALS:
            if self.s:  # perhaps the pairs are to blame
                self.s, self.y = [], []
                self._aim()
            else:
                self.q = np.zeros_like(self.q)
            return
        lowest = 0.5 * downhill / (f - self.f + downhill)  # of the parabola, as a part of t
        self.t *= min(max(lowest, _MOST_SHRINKING), _LEAST_SHRINKING)

    def _times_H(self, v: Array) -> Array:
        """H v by the two loops."""
        H_0 = self._guess(self.theta)
        factors = []
        for s, y in zip(reversed(self.s), reversed(self.y), strict=True):
            a = dot(s, v) / dot(s, y)
            factors.append(a)
            v = v - a * y
        v = H_0(v)
        if self.s:
            s, y = self.s[-1], self.y[-1]
            v = v * (dot(s, y) / dot(y, H_0(y)))
        for s, y, a in zip(self.s, self.y, reversed(factors), strict=True):
            v = v + (a - dot(y, v) / dot(s, y)) * s
        return v
