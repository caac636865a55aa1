"""The lazy primal methods in matrix form, with a channel written for all workers at once.

X is n x d: row i is worker i's. Each form yields (X^k, who spoke) without end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dlag_node.problems import Array
from tests.methods.matrix_form import Shards
from tests.methods.primal_forms import gradients, prox

Told = tuple[Array, list[bool]]


class Copies:
    """Every worker's copy: silence while it is within tau of a usual step, D times at most."""

    def __init__(self, shape: tuple[int, int], *, tau: float, D: int, linear: bool) -> None:
        n = shape[0]
        self.hat = np.zeros(shape)
        self._D, self._linear = D, linear
        self._tau = [tau] * n
        self._means: list[list[float]] = [[] for _ in range(n)]
        self._ends = [np.inf] * n  # of a strict time: when the mean is down to this
        self._last = np.zeros(shape)
        self._steps: list[Array] = []
        self._told: list[list[tuple[int, Array]]] = [[] for _ in range(n)]
        self._age = [0] * n
        self._k = 0

    def share(self, V: Array) -> list[bool]:
        """Tell what must be told of V; the first values always."""
        if self._k:
            self._steps = [*self._steps, ((V - self._last) ** 2).sum(axis=1)][-5:]
        self._last = V
        spoke = [self._tell(i, v) for i, v in enumerate(V)]
        self._k += 1
        return spoke

    def _tell(self, i: int, v: Array) -> bool:
        guess = self._guess(i)
        silent = False
        if self._k:
            mean = float(np.mean([s[i] for s in self._steps]))
            near = ((guess - v) ** 2).sum() <= self._lenient(i, mean) ** 2 * mean
            silent = self._ends[i] == np.inf and self._age[i] < self._D and bool(near)
            self._age[i] = self._age[i] + 1 if silent else 0
        self.hat[i] = guess if silent else v
        if not silent:
            self._told[i] = [*self._told[i], (self._k, v.copy())][-2:]
        return not silent

    def _lenient(self, i: int, mean: float) -> float:
        """tau of worker i, halved where its steps grow; a strict time begins or ends, too."""
        means = self._means[i]
        if self._ends[i] == np.inf:
            grown = len(means) > 10 and mean > max(means[-20:-10])
            burst = len(means) > 5 and mean > 16 * max(means[-20:-5])
            if grown or burst:
                self._tau[i] /= 2
                self._ends[i] = mean / 4
        if mean <= self._ends[i]:
            self._ends[i] = np.inf
        means.append(mean)
        return self._tau[i]

    def _guess(self, i: int) -> Array:
        if not self._linear or len(self._told[i]) < 2:
            return self.hat[i].copy()
        (k0, v0), (k1, v1) = self._told[i]
        return v1 + (self._k - k1) / (k1 - k0) * (v1 - v0)


def exact_diffusion(shards: Shards, W: Array, alpha: float, copies: Copies) -> Iterator[Told]:
    """phi = psi^+ + X - psi, X^+ = phi - (I - Wt) phi_hat, with psi = X + all (I - Wt) phi_hat."""
    half = (np.eye(len(W)) - W) / 2
    X, total = np.zeros_like(copies.hat), np.zeros_like(copies.hat)
    while True:
        phi = X - alpha * gradients(shards, X) - total
        spoke = copies.share(phi)
        X, total = phi - half @ copies.hat, total + half @ copies.hat
        yield X, spoke


def extra(shards: Shards, W: Array, alpha: float, copies: Copies) -> Iterator[Told]:
    """X^+ = X + M - (X^- + M^-) / 2 - alpha (G - G^-), where M = X - (I - W) X_hat."""
    U = np.eye(len(W)) - W
    X = np.zeros_like(copies.hat)
    last = X
    while True:
        spoke = copies.share(X)
        M, G = X - U @ copies.hat, gradients(shards, X)
        X, last = X + M - alpha * G - last, (X + M) / 2 - alpha * G
        yield X, spoke


def admm(shards: Shards, adjacency: Array, c: float, copies: Copies) -> Iterator[Told]:
    """G(X^+) + 2 c Deg X^+ = c (Deg + Adj) X_hat - p, p += c (Deg - Adj) X_hat^+."""
    degrees = np.diag(adjacency.sum(axis=1))
    p = np.zeros_like(copies.hat)
    while True:
        X = prox(shards, 2 * c * np.diag(degrees), c * (degrees + adjacency) @ copies.hat - p)
        spoke = copies.share(X)
        p = p + c * (degrees - adjacency) @ copies.hat
        yield X, spoke
