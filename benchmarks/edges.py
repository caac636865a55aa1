"""Lazier on light edges? DLAG in matrix form, with a copy for each end of each edge.

P_i = sum_j w_ij (theta_hat_ij - theta_hat_ji), where theta_hat_ij is what j knows of theta_i:
antisymmetric on every edge, so that sum_i P_i = 0. Worker i is silent towards j while

    ||theta_hat_ij - theta_i||^2
        <= tau^2 (mean weight / w_ij)^{2p} * mean of the last five ||x step||^2 / mu_i^2

p = 0 is the rule that the product has. Weights by curvature, tight constants, heart on the 5x5 grid
to 1e-7.

    python benchmarks/edges.py [--write docs/beyond.md]
"""

from __future__ import annotations

import argparse
from math import sqrt
from pathlib import Path

import numpy as np

from coordinator.plan import Plan, RunSettings
from dlag_lab.document import fill
from dlag_lab.referee import optimum
from dlag_lab.workers import Workers
from dlag_node.graphs.weights import curvature_weights
from dlag_node.methods.mixing import extremes
from dlag_node.problems import Array
from dlag_node.solvers import Oracle, parse_stop

TARGET = 1e-7
D = 20
TAUS = (0.3, 0.5, 0.7)
POWERS = (0.0, 0.5, 1.0)
SEEDS = (0, 1, 2)


def messages(seed: int, tau: float, p: float) -> int | None:
    """Messages to the target; None where 1,000 rounds do not lead there."""
    plan = Plan(RunSettings(seed=seed))
    problems = Workers(plan).problems
    pooled = plan.pooled()
    _, f_star = optimum(pooled)
    mu = np.array([f.mu for f in problems])
    U = curvature_weights(plan.nodes, plan.graph.edges, mu)
    W = -U * (1.0 - np.eye(plan.nodes))
    alpha, beta = extremes(U, mu, np.array([f.L for f in problems]))
    momentum = (sqrt(beta / alpha) - 1) / (sqrt(beta / alpha) + 1)
    stop = parse_stop("exact:1e-10")
    rng = np.random.default_rng(0)
    oracles = [Oracle(f, solver="newton", stop=stop, rng=rng) for f in problems]
    edges = W > 0
    laxity = np.where(edges, (W[edges].mean() / np.where(edges, W, 1.0)) ** (2 * p), 0.0)
    n, dim = plan.nodes, pooled.dim
    theta, x, y = np.zeros((n, dim)), np.zeros((n, dim)), np.zeros((n, dim))
    hat = np.zeros((n, n, dim))  # hat[i, j]: theta_i as j knows it
    age = np.zeros((n, n), dtype=int)
    steps: list[Array] = []
    sent = 0
    for _ in range(1_000):
        theta = np.array([oracles[i](x[i], theta[i]).theta for i in range(n)])
        gap = ((hat - theta[:, None, :]) ** 2).sum(axis=2)
        mean = np.mean(steps, axis=0) if steps else np.full(n, -1.0)
        silent = (gap <= tau**2 * laxity * mean[:, None]) & (age < D)
        speak = edges & ~silent
        hat[speak] = np.broadcast_to(theta[:, None, :], hat.shape)[speak]
        age = np.where(speak, 0, age + 1)
        sent += int(speak.sum())
        P = np.einsum("ij,ijd->id", W, hat - hat.transpose(1, 0, 2))
        y_next = x - P / beta
        x_next = y_next + momentum * (y_next - y)
        steps = [*steps, ((x_next - x) ** 2).sum(axis=1) / mu**2][-5:]
        x, y = x_next, y_next
        worst = max(pooled.value(each) for each in theta) - f_star
        if worst <= TARGET:
            return sent
        if not worst < 1e6:
            return None
    return None


def main() -> None:
    """Print the table, and write it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    lines = ["| tau | " + " | ".join(f"p = {p:g}" for p in POWERS) + " |"]
    lines.append("| --- |" + " ---: |" * len(POWERS))
    for tau in TAUS:
        cells = []
        for p in POWERS:
            found = [messages(seed, tau, p) for seed in SEEDS]
            cells.append(", ".join("does not converge" if m is None else f"{m:,}" for m in found))
        lines.append(f"| {tau:g} | " + " | ".join(cells) + " |")
    table = "\n".join(lines) + f"\n\nMessages of seeds {', '.join(map(str, SEEDS))}."
    print(table)
    if asked.write is not None:
        fill(asked.write, "edges", table)


if __name__ == "__main__":
    main()
