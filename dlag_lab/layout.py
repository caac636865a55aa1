"""Where each worker stands when the mesh is drawn."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dlag_lab.result import Floats

_GRID = re.compile(r"grid:(\d+)x(\d+)")
_CIRCULAR = ("ring", "cycle", "complete")


def grid_shape(topology: str, nodes: int) -> tuple[int, int] | None:
    """Rows and columns of `grid:RxC`; None for any other topology."""
    match = _GRID.fullmatch(topology)
    if match is None:
        return None
    rows, columns = int(match[1]), int(match[2])
    return (rows, columns) if rows * columns == nodes else None


def positions(topology: str, nodes: int, edges: Sequence[tuple[int, int]]) -> Floats:
    """Coordinates [nodes x 2], the same ones each time.

    Grids lie row by row from the top, rings on a circle, stars around their hub; other graphs are
    laid out by Kamada and Kawai, who draw the distance in hops as distance on paper.
    """
    shape = grid_shape(topology, nodes)
    if shape is not None:
        row, column = np.divmod(np.arange(nodes), shape[1])
        return np.stack([column, -row], axis=1).astype(np.float64)
    kind = topology.partition(":")[0]
    if nodes < 3:
        return np.array([[float(i), 0.0] for i in range(nodes)]).reshape(nodes, 2)
    if kind in _CIRCULAR:
        return _circle(nodes)
    if kind == "star":
        degrees = np.bincount(np.asarray(edges, dtype=np.int64).reshape(-1), minlength=nodes)
        hub = int(degrees.argmax())
        return np.insert(_circle(nodes - 1), hub, 0.0, axis=0)
    return _by_distance(nodes, edges)


def _circle(nodes: int) -> Floats:
    """From twelve o'clock, clockwise, neighbors one unit apart."""
    angle = np.pi / 2 - 2 * np.pi * np.arange(nodes) / max(1, nodes)
    radius = max(1.0, nodes / (2 * np.pi))
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _by_distance(nodes: int, edges: Sequence[tuple[int, int]]) -> Floats:
    import networkx as nx  # a heavy import that grids and rings do without

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(nodes))
    graph.add_edges_from(edges)
    start = {i: at.tolist() for i, at in enumerate(_circle(nodes))}
    placed = nx.kamada_kawai_layout(graph, pos=start)
    at = np.array([placed[i] for i in range(nodes)], dtype=np.float64)
    lengths = [np.hypot(*(at[i] - at[j])) for i, j in edges]
    return at / float(np.mean(lengths)) if lengths else at
