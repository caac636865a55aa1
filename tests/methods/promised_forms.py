"""Promised silence in matrix form, from the whole history of every worker's vector.

Nothing is kept up to date here: differences, their fading maximum and the bounds to come are
computed anew from all that there was, whenever a worker speaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor

import numpy as np

from dlag_node.problems import Array
from tests.methods.lazy_forms import Copies
from tests.methods.matrix_form import Lazy, Shards


def foretold(
    values: list[Array],
    slope: Array,
    R: int,
    right: Callable[[int], float],
    *,
    fading: float,
) -> int:
    """For how long the line from the last value keeps to the copy's, both being there now.

    `right(j)` is the lazy condition's right-hand side in j exchanges.
    """
    if len(values) < 3:
        return 0
    V = np.array(values)
    u = V[-1] - V[-2]
    second = np.linalg.norm(np.diff(V, 2, axis=0), axis=1)[::-1]
    A = max(fading**past * a for past, a in enumerate(second))
    near = [
        np.linalg.norm(j * (slope - u)) + A * j * (j + 1) / 2 <= np.sqrt(right(j))
        for j in range(1, R + 1)
    ]
    return R if all(near) else near.index(False)


class PromisedCopies(Copies):
    """Every worker's copy, told whenever the promise that came with the last delta has ended."""

    def __init__(self, shape: tuple[int, int], *, tau: float, D: int, R: int, linear: bool) -> None:
        super().__init__(shape, tau=tau, D=D, linear=linear)
        self._R = R
        self._left = [0] * shape[0]
        self._values: list[list[Array]] = [[] for _ in range(shape[0])]

    def _tell(self, i: int, v: Array) -> bool:
        guess = self._guess(i)
        self._values[i].append(v.copy())
        steps = [float(s[i]) for s in self._steps]
        tau = self._lenient(i, float(np.mean(steps))) if self._k else 0.0
        if self._left[i]:
            self._left[i] -= 1
            self.hat[i] = guess
            return False
        self.hat[i] = v
        self._told[i] = [*self._told[i], (self._k, v.copy())][-2:]

        def right(j: int) -> float:
            coming = [*steps, *[min(steps[-2:])] * j][-5:]
            return tau**2 * float(np.mean(coming))

        if self._ends[i] == np.inf:
            slope = np.zeros_like(v)
            if self._linear and len(self._told[i]) == 2:
                (k0, v0), (k1, v1) = self._told[i]
                slope = (v1 - v0) / (k1 - k0)
            self._left[i] = foretold(self._values[i], slope, self._R, right, fading=0.8)
        return True


@dataclass(frozen=True, slots=True)
class Promised:
    """The paper's condition, asked R exchanges ahead; prediction or not."""

    lazy: Lazy
    R: int
    linear: bool = False


def global_form(
    shards: Shards, mixing: Array, promised: Promised, *, rounds: int
) -> tuple[Array, list[list[bool]]]:
    """Theta^k for k < rounds as rounds x n x d, and who sent in which round; eta beta = s = 1."""
    n, d = len(shards.b), shards.A[0].shape[1]
    lazy, R = promised.lazy, promised.R
    sigma = np.linalg.eigvalsh(mixing)
    mu_min = shards.mu.min()
    beta, alpha = sigma[-1] / mu_min, sigma[1] / shards.L.max()
    root = np.sqrt(beta / alpha)
    safe = [floor(3 * (lazy.gamma + lazy.c) * (mu / mu_min) ** 2) for mu in shards.mu]
    x, y, hat, slope = (np.zeros((n, d)) for _ in range(4))
    left = [0] * n
    told: list[list[int]] = [[] for _ in range(n)]
    thetas: list[Array] = []
    moved: list[list[float]] = [[] for _ in range(n)]
    sent = []
    for k in range(rounds):
        Theta = shards.dual_gradient(x.T).T
        thetas.append(Theta)
        speaks = [not each for each in left]
        for i in range(n):
            if not speaks[i]:
                left[i] -= 1
                hat[i] = hat[i] + slope[i]
                continue
            hat[i] = Theta[i]
            told[i].append(k)
            if promised.linear and len(told[i]) > 1:
                past = told[i][-2]
                slope[i] = (Theta[i] - thetas[past][i]) / (k - past)

            def right(j: int, i: int = i) -> float:
                return lazy.right([*moved[i], *[0.0] * j], mu_min)

            left[i] = foretold([each[i] for each in thetas], slope[i], R, right, fading=0.9)
            if k >= 2 and not promised.linear:
                left[i] = max(left[i], min(R, safe[i]))
        y_next = x - mixing @ hat / beta
        x_next = y_next + (root - 1) / (root + 1) * (y_next - y)
        for i in range(n):
            moved[i].append(float(((x_next[i] - x[i]) ** 2).sum()))
        x, y = x_next, y_next
        sent.append(speaks)
    return np.array(thetas), sent
