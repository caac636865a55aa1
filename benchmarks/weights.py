"""How much better than the curvature weights are the best weights there are?

python benchmarks/weights.py [--write docs/beyond.md]

With tight constants a dual method takes about sqrt(kappa) rounds, kappa = beta / alpha. beta =
lambda_max(M^-1/2 U M^-1/2) is convex in the weights of the edges, and alpha = lambda_2(L^-1/2 U
L^-1/2) is concave, since its null vector is the same for all weights: log kappa, which a common
factor does not change, has no local minimum but the global one. Both eigenvalues are smoothed by
sums of powers, ever less so, and the logarithms of the weights are left to L-BFGS.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from coordinator.plan import Plan, RunSettings
from dlag_lab.document import fill
from dlag_node.graphs.weights import curvature_weights
from dlag_node.methods.mixing import extremes

Array = NDArray[np.float64]

GRAPHS = ("grid:5x5", "ring:25", "star:25", "complete:25", "erdos:25,0.2")
SHARDS = ("uneven:1,10", "even")
POWERS = (1.0, 3.0, 10.0, 30.0, 100.0)  # the sum of lambda^p is p log lambda_max, nearly


def best_weights(incidence: Array, mu: Array, L: Array, start: Array) -> Array:
    """The weights of least beta / alpha, an edge a row of the incidence matrix."""
    by_mu, by_L = incidence / np.sqrt(mu), incidence / np.sqrt(L)
    logs = np.log(start)
    for power in POWERS:

        def log_kappa(logs: Array, power: float = power) -> tuple[float, Array]:
            weights = np.exp(logs)
            beta, uphill = _smoothed(by_mu, weights, power)
            alpha, downhill = _smoothed(by_L, weights, -power)
            return beta - alpha, (uphill - downhill) * weights

        logs = minimize(log_kappa, logs, jac=True, method="L-BFGS-B").x
    return np.exp(logs)


def _smoothed(rows: Array, weights: Array, power: float) -> tuple[float, Array]:
    """log of the power mean of the nonzero eigenvalues of rows^T diag(weights) rows; gradient."""
    values, vectors = np.linalg.eigh((rows.T * weights) @ rows)
    logs, vectors = np.log(values[1:]), vectors[:, 1:]
    shift = (power * logs).max()
    shares = np.exp(power * logs - shift)
    total = shares.sum()
    gradient = (rows @ vectors) ** 2 @ (shares / total / values[1:])
    return float((shift + np.log(total)) / power), gradient


def line(graph: str, shards: str) -> str:
    """One row of the table."""
    plan = Plan(RunSettings(topology=graph, shards=shards))
    problems = [plan.problem(i) for i in range(plan.nodes)]
    mu, L = (np.array([getattr(p, name) for p in problems]) for name in ("mu", "L"))
    edges = list(plan.graph.edges)
    incidence = np.zeros((len(edges), plan.nodes))
    for row, (i, j) in enumerate(edges):
        incidence[row, i], incidence[row, j] = 1.0, -1.0
    U = curvature_weights(plan.nodes, edges, mu)
    best = best_weights(incidence, mu, L, np.array([-U[i, j] for i, j in edges]))
    kappas = []
    for matrix in (plan.U, U, (incidence.T * best) @ incidence):
        alpha, beta = extremes(matrix, mu, L)
        kappas.append(beta / alpha)
    cells = " | ".join(f"{kappa:,.0f}" for kappa in kappas)
    return f"| {graph}, {shards} | {cells} | {np.sqrt(kappas[2] / kappas[1]):.2f} |"


def main() -> None:
    """Print the table, and write it where it belongs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    lines = [
        "| heart, 25 nodes | metropolis | curvature | best | rounds by the best, of curvature's |",
        "| --- | ---: | ---: | ---: | ---: |",
        *(line(graph, shards) for graph in GRAPHS for shards in SHARDS),
    ]
    table = "\n".join(lines) + "\n\nkappa with tight constants; the last column is a square root."
    print(table)
    if asked.write is not None:
        fill(asked.write, "weights", table)


if __name__ == "__main__":
    main()
