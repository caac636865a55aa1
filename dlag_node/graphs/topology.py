"""The network G of the workers: who is whose neighbor, from a short spec or a file of edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dlag_node.errors import ConfigError

# networkx costs a tenth of a second to import and a node process never builds a topology:
# the functions below import it when they are called.
if TYPE_CHECKING:
    import networkx as nx

Edge = tuple[int, int]

_FORMS = "grid:5x5, ring:N, path:N, star:N, complete:N, erdos:N,p, regular:N,k or a file of edges"
_MOST_NODES = 4096  # U is held as a dense matrix: 128 MiB at this size
_MOST_DRAWS = 200  # of a random graph, before we say that it will not become connected
_NAMED_AT_MOST = 8

_COUNT = r"([0-9]{1,9})"
_PATTERNS = {  # kind: (what may follow the colon, what to tell who wrote something else)
    "grid": (f"{_COUNT}x{_COUNT}", "grid:RxC, for instance grid:5x5"),
    "ring": (_COUNT, "ring:N, for instance ring:10"),
    "path": (_COUNT, "path:N, for instance path:10"),
    "star": (_COUNT, "star:N, for instance star:10"),
    "complete": (_COUNT, "complete:N, for instance complete:10"),
    "erdos": (_COUNT + r",([0-9]*\.?[0-9]+)", "erdos:N,p, for instance erdos:25,0.2"),
    "regular": (f"{_COUNT},{_COUNT}", "regular:N,k, for instance regular:24,3"),
}


@dataclass(frozen=True, slots=True)
class Graph:
    """G = (V, E), undirected and connected (Assumption 2): workers 0..nodes-1, sorted edges i < j.

    Whoever holds a Graph may rely on this: anything else is refused on creation.
    """

    nodes: int
    edges: tuple[Edge, ...]
    _adjacency: tuple[tuple[int, ...], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.nodes < 2:
            raise ConfigError(f"a graph of {self.nodes} node(s): expected at least 2")
        if self.nodes > _MOST_NODES:
            raise ConfigError(f"a graph of {self.nodes} nodes: expected at most {_MOST_NODES}")
        adjacency: list[list[int]] = [[] for _ in range(self.nodes)]
        for i, j in self.edges:
            if i == j:
                raise ConfigError(f"edge ({i}, {j}) is a self-loop: expected two different nodes")
            if not 0 <= i < j < self.nodes:
                raise ConfigError(
                    f"edge ({i}, {j}): expected ids i < j between 0 and {self.nodes - 1}"
                )
            adjacency[i].append(j)
            adjacency[j].append(i)
        for earlier, later in zip(self.edges, self.edges[1:], strict=False):
            if earlier >= later:
                raise ConfigError(f"edge {later} after {earlier}: expected ascending, each once")
        _check_connected(adjacency)
        object.__setattr__(self, "_adjacency", tuple(tuple(sorted(row)) for row in adjacency))

    def neighbors(self, i: int) -> tuple[int, ...]:
        """The workers that share an edge with i, ascending. The paper's N(i) is these and i."""
        return self._adjacency[i]

    def degree(self, i: int) -> int:
        """The number of i's neighbors."""
        return len(self._adjacency[i])

    def diameter(self) -> int:
        """The most hops from one worker to another.

        By everybody's ball of growing radius, as the bits of a number: a path of 4,096 workers
        takes a few seconds, any other graph less.
        """
        balls, everybody, radius = [1 << i for i in range(self.nodes)], (1 << self.nodes) - 1, 0
        while any(ball != everybody for ball in balls):
            balls = [
                reduce(or_, (balls[j] for j in around), balls[i])
                for i, around in enumerate(self._adjacency)
            ]
            radius += 1
        return radius


def parse_topology(spec: str, *, seed: int) -> Graph:
    """The graph that `spec` names: one of the forms below, or else the path of a file of edges.

        grid:RxC     R rows of C workers, numbered row by row
        ring:N  path:N  star:N (worker 0 in the middle)  complete:N
        erdos:N,p    each pair is an edge with probability p; redrawn until connected
        regular:N,k  every worker has k neighbors; redrawn until connected

    `seed` matters to the two random forms only. A file has one edge `i j` a line, ids 0..n-1, and
    comments after `#`; an edge given twice, in either direction, is the same edge.
    """
    if seed < 0:
        raise ConfigError(f"seed = {seed}: expected an integer >= 0")
    kind, colon, rest = spec.partition(":")
    if colon and kind in _PATTERNS:
        pattern, expected = _PATTERNS[kind]
        match = re.fullmatch(pattern, rest)
        if match is None:
            raise ConfigError(f"topology {spec!r}: expected {expected}")
        return _build(spec, kind, list(match.groups()), seed)
    return _read_edges(Path(spec))


def _check_connected(adjacency: list[list[int]]) -> None:
    """Assumption 2 needs every worker to be reachable from every other."""
    part = [-1] * len(adjacency)
    parts: list[list[int]] = []
    for root in range(len(adjacency)):
        if part[root] >= 0:
            continue
        part[root] = len(parts)
        reached = [root]
        for i in reached:
            for j in adjacency[i]:
                if part[j] < 0:
                    part[j] = len(parts)
                    reached.append(j)
        parts.append(sorted(reached))
    if len(parts) > 1:
        smallest = min(parts, key=len)
        named = ", ".join(map(str, smallest[:_NAMED_AT_MOST]))
        more = ", ..." if len(smallest) > _NAMED_AT_MOST else ""
        raise ConfigError(
            f"the graph falls into {len(parts)} parts; cut off from the rest: "
            f"{{{named}{more}}}; expected a connected graph"
        )


def _build(spec: str, kind: str, sizes: list[str], seed: int) -> Graph:
    import networkx as nx

    if kind == "grid":
        rows, columns = map(int, sizes)
        _check_size(spec, rows * columns)
        cells = nx.grid_2d_graph(rows, columns).edges()
        return _graph_of(
            rows * columns,
            ((a * columns + b, c * columns + d) for (a, b), (c, d) in cells),
        )
    nodes = int(sizes[0])
    _check_size(spec, nodes, least=3 if kind == "ring" else 2)
    if kind == "erdos":
        p = float(sizes[1])
        if not 0 < p <= 1:
            raise ConfigError(f"topology {spec!r}: p = {p:g}, expected 0 < p <= 1")
        return _connected_draw(spec, seed, lambda s: nx.gnp_random_graph(nodes, p, seed=s))
    if kind == "regular":
        k = int(sizes[1])
        if not 0 < k < nodes or nodes * k % 2:
            raise ConfigError(f"topology {spec!r}: expected 0 < k < N with N * k even")
        return _connected_draw(spec, seed, lambda s: nx.random_regular_graph(k, nodes, seed=s))
    if kind == "star":
        return _graph_of(nodes, nx.star_graph(nodes - 1).edges())  # networkx counts the rays
    plain = {"ring": nx.cycle_graph, "path": nx.path_graph, "complete": nx.complete_graph}
    return _graph_of(nodes, plain[kind](nodes).edges())


def _check_size(spec: str, nodes: int, least: int = 2) -> None:
    """Before anything of that size is built."""
    if not least <= nodes <= _MOST_NODES:
        raise ConfigError(f"topology {spec!r}: {nodes} nodes, expected {least} to {_MOST_NODES}")


def _connected_draw(spec: str, seed: int, draw: Callable[[int], nx.Graph[int]]) -> Graph:
    """The first connected graph among the draws that follow from `seed`."""
    import networkx as nx

    rng = np.random.default_rng(seed)
    for _ in range(_MOST_DRAWS):
        drawn = draw(int(rng.integers(2**32)))
        if nx.is_connected(drawn):
            return _graph_of(len(drawn), drawn.edges())
    raise ConfigError(
        f"topology {spec!r}: none of {_MOST_DRAWS} draws from seed {seed} was connected; "
        "expected more edges (a larger p or k)"
    )


def _graph_of(nodes: int, edges: Iterable[Edge]) -> Graph:
    return Graph(nodes, tuple(sorted({(min(edge), max(edge)) for edge in edges})))


def _read_edges(path: Path) -> Graph:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise ConfigError(
            f"topology {str(path)!r} is neither a known form nor a file: expected {_FORMS}"
        ) from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(f"cannot read the file of edges {path}: {exc}") from exc
    edges: set[Edge] = set()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{path}, line {number}"
        # isdecimal alone would let other scripts' digits through
        if len(words) != 2 or not all(word.isascii() and word.isdecimal() for word in words):
            raise ConfigError(f"{where}: {line.strip()[:60]!r}, expected `i j`, two ids 0..n-1")
        i, j = sorted(int(word[:10]) for word in words)
        if i == j:
            raise ConfigError(f"{where}: edge ({i}, {j}) is a self-loop, expected two nodes")
        if j >= _MOST_NODES:
            raise ConfigError(f"{where}: id {j}, expected ids below {_MOST_NODES}")
        edges.add((i, j))
    if not edges:
        raise ConfigError(f"{path} holds no edge: expected `i j` on each line")
    ids = {i for edge in edges for i in edge}
    for i in range(len(ids)):
        if i not in ids:
            raise ConfigError(
                f"{path}: no edge has id {i}, but one has {max(ids)}: "
                "expected the ids 0..n-1 without a gap"
            )
    try:
        return Graph(len(ids), tuple(sorted(edges)))
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc
