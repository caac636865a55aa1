"""A sparse graph that fits the place: from round-trip times and who can reach whom.

Rounds are synchronous between neighbors, so that in the long run the slowest edge sets the pace of
all. Hence two steps:

    1  a spanning tree of edges that are as fast as can be (Prim's, on times to within a factor of
       two), and within that flat and without hubs
    2  more edges, none slower than the slowest of the tree, so that they hold up nobody: each the
       one that joins what is furthest apart, by the Fiedler vector v of the Laplacian, argmax
       (v_i - v_j)^2 (Ghosh and Boyd, 2006), until no two workers below `degree` are left to join
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.graphs.topology import Edge, Graph

Array = NDArray[np.float64]

DEGREE = 3  # neighbors that a worker has at least, where so many can be reached
_QUICKEST = 1e-6  # seconds: below it all are alike


def sparse_graph(seconds: Array, *, degree: int = DEGREE) -> Graph:
    """A connected graph on the edges {i, j} whose `seconds[i, j]` is finite; symmetric."""
    nodes = len(seconds)
    edges = _spanning_tree(seconds, degree)
    slowest = max(seconds[edge] for edge in edges)
    neighbors = np.zeros((nodes, nodes))
    for edge in edges:
        _join(neighbors, edge)
    allowed = np.triu((seconds <= slowest) & (neighbors == 0), 1)
    while True:
        few = neighbors.sum(axis=1) < degree
        i, j = np.nonzero(allowed & few[:, None] & few[None, :])
        if not len(i):
            return Graph(nodes, tuple(sorted(edges)))
        laplacian = np.diag(neighbors.sum(axis=1)) - neighbors
        fiedler = np.linalg.eigh(laplacian)[1][:, 1]
        apart = np.round((fiedler[i] - fiedler[j]) ** 2, 9)
        best = np.lexsort((seconds[i, j], -apart))[0]  # of those as far apart the fastest
        edge = (int(i[best]), int(j[best]))
        edges.append(edge)
        _join(neighbors, edge)
        allowed[edge] = False


def _join(neighbors: Array, edge: Edge) -> None:
    neighbors[edge] = neighbors[edge[::-1]] = 1.0


def _spanning_tree(seconds: Array, degree: int) -> list[Edge]:
    """Prim's tree from the worker that is nearest to all.

    The next edge is the one with the least (step of time, its inner end is a hub, depth of that
    end, degree of that end), as one number.
    """
    nodes = len(seconds)
    usable = np.isfinite(seconds)
    # times within a factor of two are alike: a measurement says no more
    steps = np.round(np.log2(np.clip(np.where(usable, seconds, 1.0), _QUICKEST, None))) + 64.0
    cost = np.where(usable, steps * 1e12, np.inf)
    root = int(np.argmin(np.where(usable, seconds, 1e6).sum(axis=1)))
    inside, outside = [root], [i for i in range(nodes) if i != root]
    depth, degrees = np.zeros(nodes), np.zeros(nodes)
    edges: list[Edge] = []
    while outside:
        burden = (degrees >= degree) * 1e9 + depth * 1e5 + degrees
        found = cost[np.ix_(inside, outside)] + burden[inside][:, None]
        at = int(np.argmin(found))
        i, j = inside[at // len(outside)], outside[at % len(outside)]
        if not usable[i, j]:
            raise ConfigError(f"of {nodes} nodes only {len(inside)} hang together")
        depth[j] = depth[i] + 1
        degrees[[i, j]] += 1
        inside.append(j)
        outside.remove(j)
        edges.append((min(i, j), max(i, j)))
    return edges
