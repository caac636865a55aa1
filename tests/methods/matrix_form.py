"""The paper's global formulations, with numpy matrices and nothing of the package but its data.

Theta, x and y are d x n: column i is worker i's. With U, `global_form` is the paper's
"DLAG: global formulation", with P_K(U) it is MDLAG's; without a lazy condition, SSDA and MSDA.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.chebyshev import chebval

from coordinator.plan import Plan
from dlag_node.problems import Array

_NEWTON_STEPS = 20  # undamped and from 0; quadratic convergence takes fewer than ten


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """The data as plain matrices: f_i(theta) = sum_j (l_j + lambda ||theta||^2) / n0."""

    A: list[Array]
    b: list[Array]
    lam: float
    logistic: bool

    @property
    def n0(self) -> int:
        return sum(map(len, self.b))

    @property
    def mu(self) -> Array:
        return np.array([2 * self.lam * len(b) / self.n0 for b in self.b])

    @property
    def L(self) -> Array:
        curvature = 0.25 if self.logistic else 1.0
        top = [np.linalg.norm(A, 2) ** 2 for A in self.A]
        return curvature * np.array(top) / self.n0 + self.mu

    def dual_gradient(self, x: Array) -> Array:
        """grad F^*(x): column i is argmin f_i(theta) - <theta, x_i>."""
        return np.column_stack([self._column(i, x[:, i]) for i in range(len(self.b))])

    def _column(self, i: int, x: Array) -> Array:
        A, b, mu = self.A[i], self.b[i], self.mu[i]
        ridge = mu * np.eye(A.shape[1])
        if not self.logistic:
            return np.linalg.solve(A.T @ A / self.n0 + ridge, A.T @ b / self.n0 + x)
        theta = np.zeros(A.shape[1])
        for _ in range(_NEWTON_STEPS):
            p = 1 / (1 + np.exp(b * (A @ theta)))
            g = -A.T @ (b * p) / self.n0 + mu * theta - x
            H = (A.T * (p * (1 - p))) @ A / self.n0 + ridge
            theta = theta - np.linalg.solve(H, g)
        return theta


def shards_of(plan: Plan) -> Shards:
    """The plan's data, worker by worker."""
    pairs = [plan.shard(i) for i in range(plan.nodes)]
    A = [np.asarray(rows.matrix()) for rows, _ in pairs]
    lam = plan.settings.lam
    return Shards(A, [b for _, b in pairs], lam, plan.loss.name == "logistic")


def chebyshev_matrix(U: Array, K: int) -> Array:
    """P_K(U) = I - T_K(c_2 (I - c_3 U)) / T_K(c_2), eigenvalue by eigenvalue."""
    values, V = np.linalg.eigh(U)
    zeta = values[1] / values[-1]
    c2 = (1 + zeta) / (1 - zeta)
    c3 = 2 / ((1 + zeta) * values[-1])
    T_K = [0.0] * K + [1.0]
    return (V * (1 - chebval(c2 * (1 - c3 * values), T_K) / chebval(c2, T_K))) @ V.T


@dataclass(frozen=True, slots=True)
class Lazy:
    """gamma, c and D of the lazy condition."""

    gamma: float
    c: float
    D: int

    def holds(self, gap: float, s: list[float], mu_min: float) -> bool:
        """Equation (worker's condition 1) at iteration k = len(s), as it stands in the paper."""
        return gap <= self.right(s, mu_min)

    def right(self, s: list[float], mu_min: float) -> float:
        """Its right-hand side."""
        k, D, scale = len(s), self.D, 3 / mu_min**2
        recent = sum(s[max(0, k - D) :])
        return (
            scale * sum(self.c ** (k - D - j) * s[j] for j in range(k - D))
            + scale * sum(self.c ** (k - j) * s[j] for j in range(k))
            + scale * self.c * recent
            + scale * self.gamma * recent
        )


def global_form(
    shards: Shards,
    mixing: Array,
    *,
    rounds: int,
    lazy: Lazy | None = None,
    eta_beta: float = 1.0,
    s: float = 1.0,
) -> tuple[Array, list[list[bool]]]:
    """Theta^k for k < rounds as rounds x n x d, and who sent in which round."""
    n, d = len(shards.b), shards.A[0].shape[1]
    sigma = np.linalg.eigvalsh(mixing)
    mu_min, L_max = shards.mu.min(), shards.L.max()
    beta, alpha = sigma[-1] / mu_min, sigma[1] / L_max
    root = np.sqrt(s * beta / alpha)
    x, y = np.zeros((d, n)), np.zeros((d, n))
    Theta_hat, age = np.zeros((d, n)), [0] * n
    moved: list[list[float]] = [[] for _ in range(n)]  # ||x_i^j - x_i^{j+1}||^2
    thetas, sent = [], []
    for k in range(rounds):
        Theta = shards.dual_gradient(x)
        speaks = [True] * n
        if k > 0 and lazy is not None:
            for i in range(n):
                gap = np.linalg.norm(Theta_hat[:, i] - Theta[:, i]) ** 2
                speaks[i] = not lazy.holds(gap, moved[i], mu_min) or age[i] == lazy.D
        for i in range(n):
            age[i] = 0 if speaks[i] else age[i] + 1
        Theta_hat = np.where(speaks, Theta, Theta_hat)
        y_next = x - eta_beta / beta * Theta_hat @ mixing
        x_next = y_next + (root - 1) / (root + 1) * (y_next - y)
        for i in range(n):
            moved[i].append(np.linalg.norm(x[:, i] - x_next[:, i]) ** 2)
        x, y = x_next, y_next
        thetas.append(Theta.T)
        sent.append(speaks)
    return np.array(thetas), sent
