"""Gossip weights: the matrix U whose product with the thetas is one exchange with the neighbors."""

from __future__ import annotations

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
    U = np.zeros((graph.nodes, graph.nodes))
    for i in range(graph.nodes):
        for j in graph.neighbors(i):
            if rule == "metropolis":
                U[i, j] = -1.0 / (1 + max(degrees[i], degrees[j]))
            elif rule == "max-degree":
                U[i, j] = -1.0 / (1 + largest)
            else:
                U[i, j] = -1.0
            U[i, i] -= U[i, j]
    return U
