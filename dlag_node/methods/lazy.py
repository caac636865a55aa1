"""Worker i's lazy condition: when the neighbors may keep what they already have."""

from __future__ import annotations

from collections import deque


class LazyRule:
    """The paper's lazy condition, with O(D) memory.

    At iteration k worker i stays silent while its age is below D and

        ||theta_hat^{k-1} - theta^k||^2 <=
            3 / mu_min^2 * ( G_{k-D} + G_k + (c + gamma) * sum_{j=k-D}^{k-1} s_j )

    with s_j = ||x^j - x^{j+1}||^2 and G_k = sum_{j<k} c^{k-j} s_j = c (G_{k-1} + s_{k-1}).
    `_window` holds the last D of the s_j, `_recent` is G_k and `_older` is G_{k-D}: a step that
    leaves the window enters the older sum.
    """

    def __init__(self, *, gamma: float, c: float, D: int, mu_min: float) -> None:
        self.gamma = gamma
        self.c = c
        self.D = D
        self.age = 0  # d_i^k
        self._scale = 3.0 / mu_min**2
        self._window: deque[float] = deque()
        self._recent = 0.0
        self._older = 0.0

    def bound(self) -> float:
        """Right-hand side of the lazy condition."""
        steps = 0.0
        for s in self._window:
            steps += s
        return self._scale * (self._older + self._recent + (self.c + self.gamma) * steps)

    def may_skip(self, gap: float) -> bool:
        """Whether ||theta_hat^{k-1} - theta^k||^2 = `gap` allows silence; keeps the age d_i^k."""
        skip = self.age < self.D and gap <= self.bound()
        self.age = self.age + 1 if skip else 0
        return skip

    def observe(self, step: float) -> None:
        """Take in s_k = ||x^k - x^{k+1}||^2 at the end of iteration k."""
        self._recent = self.c * (self._recent + step)
        self._window.append(step)
        if len(self._window) > self.D:
            self._older = self.c * (self._older + self._window.popleft())
