"""Gossip weights: the matrix U whose product with the thetas is one exchange with the neighbors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.graphs.topology import Graph

Array = NDArray[np.float64]

_RULES = ("metropolis", "max-degree", "laplacian")


def gossip_matrix(graph: Graph, rule: str) -> Array:
    """U, symmetric, U_ij < 0 on the edges, 0 off them, U 1 = 0 (Assumption 2), by one of

        metropolis  U = I - W, W_ij = 1 / (1 + max(deg_i, deg_j))
        max-degree  U = I - W, W_ij = 1 / (1 + max_l deg_l)
        laplacian   U_ij = -1

    The diagonal is minus the sum of the rest of its row in ascending id, the order in which the
    workers add up what they receive.
    """
    if rule not in _RULES:
        raise ConfigError(f"unknown weights {rule!r}: expected {', '.join(_RULES)}")
    degrees = [graph.degree(i) for i in range(graph.nodes)]
    largest = max(degrees)

    def weight(i: int, j: int) -> float:
        if rule == "metropolis":
            return -1.0 / (1 + max(degrees[i], degrees[j]))
        return -1.0 / (1 + largest) if rule == "max-degree" else -1.0

    return symmetric(graph.nodes, graph.edges, [weight(i, j) for i, j in graph.edges])


def symmetric(
    nodes: int, edges: Sequence[tuple[int, int]], weights: Sequence[float] | Array
) -> Array:
    """The matrix with these weights on the edges whose rows sum to 0."""
    U = np.zeros((nodes, nodes))
    for (i, j), weight in zip(edges, weights, strict=True):
        U[i, j] = U[j, i] = weight
    for i in range(nodes):
        for j in np.flatnonzero(U[i]).tolist():
            if j != i:
                U[i, i] -= U[i, j]
    return U


def curvature_weights(
    nodes: int, edges: Sequence[tuple[int, int]], mu: Sequence[float] | Array
) -> Array:
    """U_ij = -1 / (deg_i / mu_i + deg_j / mu_j): heavy where both ends are strongly convex.

    With M = diag(mu) no eigenvalue of M^{-1/2} U M^{-1/2} is above 1: with a_i = deg_i / mu_i an
    edge adds (y_i - y_j)^2 / (a_i + a_j) <= y_i^2 / a_i + y_j^2 / a_j, by Cauchy and Schwarz, and
    over all edges that is sum_i mu_i y_i^2.
    """
    degrees = np.bincount(np.array(edges).ravel(), minlength=nodes)
    share = degrees / np.asarray(mu)
    return symmetric(nodes, edges, [-1.0 / (share[i] + share[j]) for i, j in edges])
