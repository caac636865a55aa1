"""The tree's quasi-Newton method with numpy matrices and nothing of the package but its data."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator.plan import Plan
from dlag_node.graphs import spanning_tree
from dlag_node.problems import Array
from tests.methods.matrix_form import Shards, shards_of


def pooled(shards: Shards) -> Callable[[Array], tuple[float, Array, Array]]:
    """f, its gradient and the Hessian of each worker, from the plain matrices."""

    def at(theta: Array) -> tuple[float, Array, Array]:
        f, g, H = 0.0, np.zeros_like(theta), []
        for A, b, mu in zip(shards.A, shards.b, shards.mu, strict=True):
            s, n0 = A @ theta, shards.n0
            p = 1 / (1 + np.exp(b * s))
            if shards.logistic:
                value, slope, bend = np.logaddexp(0, -b * s), -b * p, p * (1 - p)
            else:
                value, slope, bend = (s - b) ** 2 / 2, s - b, np.ones(len(b))
            f += value.sum() / n0 + mu / 2 * theta @ theta
            g += A.T @ slope / n0 + mu * theta
            H.append((A.T * bend) @ A / n0 + mu * np.eye(len(theta)))
        return f, g, np.array(H)

    return at


def guessed(shards: Shards, root: int, theta: Array) -> Array:
    """B of the root at theta, entry by entry as `curvature` defines it."""
    at, A, mu = pooled(shards), shards.A[root], 2 * shards.lam
    m, dim = A.shape

    def weighted(where: Array) -> Array:
        p = 1 / (1 + np.exp(A @ where))
        bend = p * (1 - p) if shards.logistic else np.ones(m)
        return A * np.sqrt(bend / m)[:, None]

    rows = weighted(theta)
    own, own_at_zero = (rows**2).sum(axis=0), (weighted(np.zeros(dim)) ** 2).sum(axis=0)
    Z = rows / np.sqrt(own + mu)
    C = Z.T @ Z
    spread = sum(np.sum((np.outer(z, z) - C / m) ** 2) for z in Z) * m / (m - 1) if m > 1 else 0.0
    alpha = 1.0 if m == 1 else min(1.0, max(1 / m, spread / np.sum((C - np.eye(dim)) ** 2)))
    D = np.diag(at(np.zeros(dim))[2].sum(axis=0))
    change = (own + D / m) / (own_at_zero + D / m)
    scale = np.sqrt((D - mu) * change ** (1 - alpha) + mu)
    C = (1 - alpha) * C
    np.fill_diagonal(C, 1.0)
    return scale[:, None] * C * scale


def centralised(plan: Plan, rounds: int, *, curved: bool, memory: int = 50) -> Array:
    """theta after each evaluation, by a BFGS matrix built anew from H_0 and the last pairs."""
    shards = shards_of(plan)
    at, dim = pooled(shards), shards.A[0].shape[1]
    root = spanning_tree(plan.nodes, plan.graph.edges).root
    trace = (0.25 if shards.logistic else 1.0) * (np.vstack(shards.A) ** 2).sum() / shards.n0
    theta, pairs, thetas = np.zeros(dim), [], []
    f, g, _ = at(theta)
    thetas.append(theta)
    while len(thetas) < rounds:
        if curved:
            H = np.linalg.inv(guessed(shards, root, theta))
        else:
            H = 4 / (trace + 2 * shards.lam) * np.eye(dim)
        if pairs:
            s, y = pairs[-1]
            H = H * (s @ y) / (y @ H @ y)
        for s, y in pairs[-memory:]:
            V = np.eye(dim) - np.outer(y, s) / (s @ y)
            H = V.T @ H @ V + np.outer(s, s) / (s @ y)
        q, t = -H @ g, 1.0
        while True:
            f_t, g_t, _ = at(theta + t * q)
            if f_t <= f + 1e-4 * t * g @ q:
                break
            thetas.append(theta)
            lowest = -(g @ q) * t**2 / 2 / (f_t - f - t * g @ q)
            t = min(max(lowest, 0.1 * t), 0.5 * t)
        pairs.append((t * q, g_t - g))
        theta, f, g = theta + t * q, f_t, g_t
        thetas.append(theta)
    return np.array(thetas[:rounds])
