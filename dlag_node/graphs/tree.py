"""A spanning tree of the mesh that every worker finds alike: breadth first from a centre."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dlag_node.graphs.topology import Edge, Graph


@dataclass(frozen=True, slots=True)
class SpanningTree:
    """n - 1 edges of the graph; of worker i its parent (None: the root), children and level."""

    root: int
    parent: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]  # ascending
    level: tuple[int, ...]  # hops to the root, in the tree and in the graph alike
    depth: int  # the largest level: the radius of the graph


def spanning_tree(nodes: int, edges: Sequence[Edge]) -> SpanningTree:
    """The breadth-first tree of a centre of the graph: no tree of it is less deep.

    The root is the worker of least eccentricity; of several, the one with the least sum of
    distances, and then the lowest id. A worker's parent is the one of its neighbors that was
    reached first, workers being visited in ascending id. Costs O(nodes * edges).
    """
    graph = Graph(nodes, tuple(edges))
    _, _, root = min(_remoteness(graph, i) for i in range(nodes))
    level, parent = _reached(graph, root)
    children: list[list[int]] = [[] for _ in range(nodes)]
    for i, above in enumerate(parent):
        if above is not None:
            children[above].append(i)
    return SpanningTree(
        root=root,
        parent=tuple(parent),
        children=tuple(map(tuple, children)),
        level=tuple(level),
        depth=max(level),
    )


def _remoteness(graph: Graph, i: int) -> tuple[int, int, int]:
    level, _ = _reached(graph, i)
    return max(level), sum(level), i


def _reached(graph: Graph, root: int) -> tuple[list[int], list[int | None]]:
    """Everybody's distance from `root`, and through whom it was reached first."""
    level = [-1] * graph.nodes
    parent: list[int | None] = [None] * graph.nodes
    level[root] = 0
    queue = [root]
    for i in queue:
        for j in graph.neighbors(i):
            if level[j] < 0:
                level[j], parent[j] = level[i] + 1, i
                queue.append(j)
    return level, parent
