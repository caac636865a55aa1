"""The graph from measured times: connected, sparse, fast, and only of links that open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlag_node.errors import ConfigError
from dlag_node.graphs.sparse import DEGREE, sparse_graph
from dlag_node.graphs.spectrum import spectrum_of
from dlag_node.graphs.topology import Graph, parse_topology
from dlag_node.graphs.weights import gossip_matrix


def times(nodes: int, fast: float = 1e-3, *, seed: int = 0) -> np.ndarray:
    """Times that a measurement on one switch would give: alike, but for noise."""
    noise = np.random.default_rng(seed).uniform(1.0, 1.3, (nodes, nodes))
    return fast * np.maximum(noise, noise.T)


def gap(graph: Graph) -> float:
    return spectrum_of(gossip_matrix(graph, "metropolis")).zeta


@pytest.mark.parametrize("nodes", [2, 3, 5, 12, 40])
def test_where_all_are_alike_it_is_flat_without_hubs_and_mixes_better_than_a_ring(
    nodes: int,
) -> None:
    graph = sparse_graph(times(nodes))
    assert graph.nodes == nodes
    assert max(map(graph.degree, range(nodes))) <= DEGREE + 1
    assert len(graph.edges) <= (DEGREE + 1) * nodes / 2
    if nodes >= 12:
        assert gap(graph) > gap(parse_topology(f"ring:{nodes}", seed=0))


def test_no_slow_link_is_taken_where_fast_ones_connect_all() -> None:
    seconds = times(20)
    slow = np.random.default_rng(1).random((20, 20)) < 0.4
    slow |= slow.T
    seconds[slow] = 0.5
    graph = sparse_graph(seconds)
    assert max(seconds[edge] for edge in graph.edges) < 0.01


def test_two_places_are_joined_and_each_is_connected_within() -> None:
    seconds = times(12)
    seconds[:6, 6:] = seconds[6:, :6] = 0.08
    graph = sparse_graph(seconds)
    across = [edge for edge in graph.edges if edge[0] < 6 <= edge[1]]
    assert across
    for place in (range(6), range(6, 12)):
        within = [edge for edge in graph.edges if {*edge} <= {*place}]
        assert len(within) >= 5


def test_one_that_only_a_hub_reaches_makes_a_star() -> None:
    seconds = np.full((6, 6), np.inf)
    seconds[2, :] = seconds[:, 2] = 1e-3
    assert sparse_graph(seconds).edges == ((0, 2), (1, 2), (2, 3), (2, 4), (2, 5))


def test_what_does_not_hang_together_is_refused_with_how_much_does() -> None:
    seconds = times(5)
    seconds[:2, 2:] = seconds[2:, :2] = np.inf
    with pytest.raises(ConfigError, match=r"of 5 nodes only [23] hang together"):
        sparse_graph(seconds)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 16), st.floats(0.0, 1.0), st.integers(0, 10_000))
def test_whatever_is_blocked_every_edge_is_one_that_opens(
    nodes: int, blocked: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    seconds = times(nodes, seed=seed)
    closed = np.triu(rng.random((nodes, nodes)) < blocked, 1)
    seconds[closed | closed.T] = np.inf
    try:
        graph = sparse_graph(seconds)
    except ConfigError:
        usable = [(i, j) for i in range(nodes) for j in range(i + 1, nodes) if not closed[i, j]]
        with pytest.raises(ConfigError):
            Graph(nodes, tuple(usable))
        return
    assert not any(closed[edge] for edge in graph.edges)
