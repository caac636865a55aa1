"""The primal methods' matrix forms, with numpy matrices and nothing of the package but its data.

X is n x d: row i is worker i's. Each form yields X^1, X^2, ... without end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dlag_node.problems import Array
from tests.methods.matrix_form import Shards

_NEWTON_STEPS = 20  # undamped; quadratic convergence takes fewer than ten


def averaging_matrix(U: Array, sigma: float) -> Array:
    """W = I - U / max(1, sigma_1(U) / sigma)."""
    return np.eye(len(U)) - U / max(1.0, np.linalg.eigvalsh(U)[-1] / sigma)


def gradients(shards: Shards, X: Array) -> Array:
    """Row i is grad f_i(X_i)."""
    rows = []
    for A, b, mu, x in zip(shards.A, shards.b, shards.mu, X, strict=True):
        s = A @ x
        slopes = -b / (1 + np.exp(b * s)) if shards.logistic else s - b
        rows.append(A.T @ slopes / shards.n0 + mu * x)
    return np.array(rows)


def extra(shards: Shards, W: Array, alpha: float) -> Iterator[Array]:
    """X^{k+1} = (I + W) X^k - Wt X^{k-1} - alpha (G^k - G^{k-1}), Wt = (I + W) / 2."""
    eye = np.eye(len(W))
    before = np.zeros((len(W), shards.A[0].shape[1]))
    X = W @ before - alpha * gradients(shards, before)
    while True:
        yield X
        change = gradients(shards, X) - gradients(shards, before)
        before, X = X, (eye + W) @ X - (eye + W) / 2 @ before - alpha * change


def exact_diffusion(shards: Shards, W: Array, alpha: float) -> Iterator[Array]:
    """X^{k+1} = Wt (2 X^k - X^{k-1} - alpha (G^k - G^{k-1})): its form without psi and phi."""
    Wt = (np.eye(len(W)) + W) / 2
    before = np.zeros((len(W), shards.A[0].shape[1]))
    X = Wt @ (before - alpha * gradients(shards, before))
    while True:
        yield X
        change = gradients(shards, X) - gradients(shards, before)
        before, X = X, Wt @ (2 * X - before - alpha * change)


def diging(shards: Shards, W: Array, alpha: float) -> Iterator[Array]:
    """X^{k+1} = W X^k - alpha Y^k, Y^{k+1} = W Y^k + G^{k+1} - G^k."""
    X = np.zeros((len(W), shards.A[0].shape[1]))
    Y = gradients(shards, X)
    while True:
        ahead = W @ X - alpha * Y
        Y = W @ Y + gradients(shards, ahead) - gradients(shards, X)
        X = ahead
        yield X


def admm(shards: Shards, adjacency: Array, c: float) -> Iterator[Array]:
    """G(X^{k+1}) + 2 c Deg X^{k+1} = c (Deg + Adj) X^k - p^k, p += c (Deg - Adj) X^{k+1}."""
    degrees = np.diag(adjacency.sum(axis=1))
    X = np.zeros((len(adjacency), shards.A[0].shape[1]))
    p = np.zeros_like(X)
    while True:
        X = prox(shards, 2 * c * np.diag(degrees), c * (degrees + adjacency) @ X - p)
        p = p + c * (degrees - adjacency) @ X
        yield X


def prox(shards: Shards, weights: Array, R: Array) -> Array:
    """Row i solves grad f_i(x) + weights_i x = R_i."""
    X = np.zeros_like(R)
    for _ in range(_NEWTON_STEPS):
        G = gradients(shards, X) + weights[:, None] * X - R
        for i, (A, b) in enumerate(zip(shards.A, shards.b, strict=True)):
            q = 1 / (1 + np.exp(b * (A @ X[i])))
            bends = q * (1 - q) if shards.logistic else np.ones(len(b))
            H = (A.T * bends) @ A / shards.n0 + (shards.mu[i] + weights[i]) * np.eye(A.shape[1])
            X[i] -= np.linalg.solve(H, G[i])
    return X
