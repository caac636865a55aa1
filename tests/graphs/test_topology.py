"""Graphs from specs and files: what they hold, and what is refused with which words."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

from dlag_node.errors import ConfigError
from dlag_node.graphs import Graph, parse_topology


@pytest.mark.parametrize(
    ("spec", "nodes", "edges", "twin"),
    [
        ("grid:5x5", 25, 40, nx.grid_2d_graph(5, 5)),
        ("grid:1x4", 4, 3, nx.path_graph(4)),
        ("grid:2x3", 6, 7, nx.grid_2d_graph(2, 3)),
        ("ring:10", 10, 10, nx.cycle_graph(10)),
        ("path:6", 6, 5, nx.path_graph(6)),
        ("path:2", 2, 1, nx.path_graph(2)),
        ("star:8", 8, 7, nx.star_graph(7)),
        ("complete:8", 8, 28, nx.complete_graph(8)),
        ("erdos:6,1", 6, 15, nx.complete_graph(6)),
    ],
)
def test_a_spec_gives_the_graph_it_names(
    spec: str, nodes: int, edges: int, twin: nx.Graph[int]
) -> None:
    graph = parse_topology(spec, seed=0)
    assert (graph.nodes, len(graph.edges)) == (nodes, edges)
    assert nx.is_isomorphic(nx.Graph(graph.edges), twin)


def test_a_grid_is_numbered_row_by_row() -> None:
    graph = parse_topology("grid:2x3", seed=0)
    assert graph.edges == ((0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5))
    assert graph.neighbors(1) == (0, 2, 4)
    assert graph.degree(1) == 3


def test_worker_0_is_the_middle_of_a_star() -> None:
    graph = parse_topology("star:5", seed=0)
    assert graph.neighbors(0) == (1, 2, 3, 4)
    assert all(graph.neighbors(i) == (0,) for i in range(1, 5))


@pytest.mark.parametrize("spec", ["erdos:30,0.12", "regular:24,3"])
def test_a_random_graph_is_connected_and_follows_its_seed(spec: str) -> None:
    drawn = [parse_topology(spec, seed=seed) for seed in range(8)]
    assert all(nx.is_connected(nx.Graph(graph.edges)) for graph in drawn)
    assert drawn == [parse_topology(spec, seed=seed) for seed in range(8)]
    assert len(set(drawn)) == 8


def test_every_worker_of_a_regular_graph_has_k_neighbors() -> None:
    graph = parse_topology("regular:24,3", seed=1)
    assert {graph.degree(i) for i in range(24)} == {3}


def test_neighbors_ascend_and_never_hold_the_worker_itself() -> None:
    graph = parse_topology("erdos:30,0.2", seed=3)
    twin = nx.Graph(graph.edges)
    for i in range(graph.nodes):
        assert list(graph.neighbors(i)) == sorted(twin[i])
        assert i not in graph.neighbors(i)


def test_a_file_of_edges_may_have_comments_blanks_and_repeats(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(
        "# a triangle and a tail\n0 1\n\n2 1  # either way round\n1 0\n0\t2\n 3 2 \n0 1\n"
    )
    graph = parse_topology(str(path), seed=0)
    assert graph == Graph(4, ((0, 1), (0, 2), (1, 2), (2, 3)))


BAD_SPECS = [
    ("grid:5", "'grid:5': expected grid:RxC"),
    ("grid:5x", "expected grid:RxC"),
    ("grid:-5x5", "expected grid:RxC"),
    ("grid:1x1", "'grid:1x1': 1 nodes, expected 2 to 4096"),
    ("ring:2", "2 nodes, expected 3 to 4096"),
    ("ring:ten", "expected ring:N"),
    ("path:1", "1 nodes, expected 2"),
    ("star:0", "0 nodes, expected 2"),
    ("complete:", "expected complete:N"),
    ("complete:99999", "99999 nodes, expected 2 to 4096"),
    ("grid:999999999x999999999", "nodes, expected 2 to 4096"),
    ("erdos:20", "expected erdos:N,p"),
    ("erdos:20,0", "p = 0, expected 0 < p <= 1"),
    ("erdos:20,1.5", "p = 1.5, expected 0 < p <= 1"),
    ("erdos:20,nan", "expected erdos:N,p"),
    ("erdos:50,0.001", "none of 200 draws from seed 0 was connected"),
    ("regular:5,3", "expected 0 < k < N with N * k even"),
    ("regular:4,4", "expected 0 < k < N"),
    ("regular:8,1", "none of 200 draws from seed 0 was connected"),
    ("gird:5x5", "'gird:5x5' is neither a known form nor a file: expected grid:5x5, ring:N"),
    ("", "cannot read the file of edges"),
    ("x" * 300, "cannot read the file of edges"),
    ("/no/such/file", "neither a known form nor a file"),
]


@pytest.mark.parametrize(("spec", "words"), BAD_SPECS)
def test_a_bad_spec_is_refused_with_its_name(spec: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        parse_topology(spec, seed=0)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match="seed = -1"):
        parse_topology("ring:4", seed=-1)


BAD_FILES = [
    (b"", "holds no edge"),
    (b"# nothing\n\n", "holds no edge"),
    (b"0 1\n1 1\n", "line 2: edge (1, 1) is a self-loop"),
    (b"0 1\n-1 2\n", "line 2: '-1 2', expected `i j`"),
    (b"0 1.5\n", "line 1: '0 1.5', expected `i j`"),
    (b"0 one\n", "line 1: '0 one', expected `i j`"),
    ("0 \u0661\n".encode(), "expected `i j`"),
    (b"0 1 0.5\n", "line 1: '0 1 0.5', expected `i j`"),
    (b"0\n", "line 1: '0', expected `i j`"),
    (b"0 1\n1 3\n", "no edge has id 2, but one has 3"),
    (b"1 2\n", "no edge has id 0, but one has 2"),
    (b"0 99999\n", "line 1: id 99999, expected ids below 4096"),
    (b"0 1\n1 2\n3 4\n", "2 parts; cut off from the rest: {3, 4}"),
    (b"\xff\xfe", "cannot read the file of edges"),
]


@pytest.mark.parametrize(("text", "words"), BAD_FILES)
def test_a_bad_file_is_refused_with_the_offender(tmp_path: Path, text: bytes, words: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        parse_topology(str(path), seed=0)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("nodes", "edges", "words"),
    [
        (1, (), "a graph of 1 node(s): expected at least 2"),
        (4097, (), "a graph of 4097 nodes: expected at most 4096"),
        (3, ((0, 1),), "2 parts; cut off from the rest: {2}"),
        (30, (), "30 parts; cut off from the rest: {0}"),
        (2, ((1, 1),), "edge (1, 1) is a self-loop"),
        (2, ((1, 0),), "edge (1, 0): expected ids i < j between 0 and 1"),
        (2, ((0, 2),), "edge (0, 2): expected ids"),
        (2, ((-1, 1),), "edge (-1, 1): expected ids"),
        (3, ((1, 2), (0, 1)), "edge (0, 1) after (1, 2): expected ascending"),
        (2, ((0, 1), (0, 1)), "edge (0, 1) after (0, 1): expected ascending, each once"),
    ],
)
def test_a_graph_that_breaks_assumption_2_cannot_exist(
    nodes: int, edges: tuple[tuple[int, int], ...], words: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        Graph(nodes, edges)


def test_a_node_process_can_hold_a_graph_without_networkx() -> None:
    code = (
        "import sys; from dlag_node.graphs import Graph; Graph(2, ((0, 1),)); "
        "sys.exit('networkx' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
