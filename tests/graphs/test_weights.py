"""U and its spectrum: Assumption 2 over random graphs, and the reference figures."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.errors import ConfigError
from dlag_node.graphs import Graph, gossip_matrix, parse_topology, spectrum_of

RULES = ["metropolis", "max-degree", "laplacian"]


@pytest.mark.parametrize("rule", RULES)
def test_U_is_a_gossip_matrix_on_any_connected_graph(
    rule: str, connected_graphs: st.SearchStrategy[Graph]
) -> None:
    @given(connected_graphs)
    def check(graph: Graph) -> None:
        U = gossip_matrix(graph, rule)
        assert np.array_equal(U, U.T)
        assert np.abs(U.sum(axis=1)).max() <= graph.nodes * np.finfo(float).eps * U.max()
        off = [(int(i), int(j)) for i, j in np.argwhere(U) if i < j]
        assert tuple(off) == graph.edges
        assert (np.diag(U) > 0).all()
        assert all(U[i, j] < 0 for i, j in graph.edges)
        spectrum = spectrum_of(U)
        assert list(spectrum.values) == sorted(spectrum.values, reverse=True)
        assert spectrum.values[-1] == 0.0
        assert 0 < spectrum.sigma_gap <= spectrum.sigma_1
        if rule != "laplacian":
            assert spectrum.sigma_1 < 2  # W = I - U is a contraction off span{1}

    check()


def test_the_laplacian_is_that_of_networkx() -> None:
    graph = parse_topology("erdos:20,0.3", seed=2)
    twin = nx.Graph(graph.edges)
    theirs = nx.laplacian_matrix(twin, nodelist=range(20)).toarray()
    assert np.array_equal(gossip_matrix(graph, "laplacian"), theirs)


def test_the_weights_follow_their_rules() -> None:
    graph = parse_topology("grid:2x3", seed=0)  # degrees 2 3 2 / 2 3 2
    metropolis = np.eye(6) - gossip_matrix(graph, "metropolis")
    assert metropolis[0, 3] == pytest.approx(1 / 3)
    assert metropolis[0, 1] == pytest.approx(1 / 4)
    assert metropolis[0, 0] == pytest.approx(1 - 1 / 3 - 1 / 4)
    largest = np.eye(6) - gossip_matrix(graph, "max-degree")
    assert largest[0, 3] == largest[0, 1] == 1 / 4


def test_an_unknown_rule_is_refused_with_the_names_there_are() -> None:
    words = "unknown weights 'uniform': expected metropolis, max-degree, laplacian"
    with pytest.raises(ConfigError, match=words):
        gossip_matrix(parse_topology("ring:4", seed=0), "uniform")


def test_the_reference_figures_of_the_5x5_grid() -> None:
    spectrum = spectrum_of(gossip_matrix(parse_topology("grid:5x5", seed=0), "metropolis"))
    assert spectrum.sigma_1 == pytest.approx(1.4862554, abs=5e-8)
    assert spectrum.sigma_gap == pytest.approx(0.0837871, abs=5e-8)
    assert spectrum.zeta == pytest.approx(0.0563746, abs=5e-8)


def test_the_spectrum_of_a_ring_is_the_known_one() -> None:
    spectrum = spectrum_of(gossip_matrix(parse_topology("ring:9", seed=0), "laplacian"))
    known = sorted((2 - 2 * np.cos(2 * np.pi * np.arange(9) / 9)).tolist(), reverse=True)
    np.testing.assert_allclose(spectrum.values, known, atol=1e-14)


@pytest.mark.parametrize("spec", ["path:600", "ring:600"])
def test_a_long_thin_graph_still_has_its_gap(spec: str) -> None:
    spectrum = spectrum_of(gossip_matrix(parse_topology(spec, seed=0), "laplacian"))
    walk = 600 if spec.startswith("path") else 300
    assert spectrum.sigma_gap == pytest.approx(2 - 2 * np.cos(np.pi / walk), rel=1e-7)


@pytest.mark.parametrize(
    ("U", "words"),
    [
        (np.zeros((2, 3)), "U of shape (2, 3)"),
        (np.zeros((1, 1)), "U of shape (1, 1)"),
        (np.zeros(4), "U of shape (4,)"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "not finite"),
        (np.array([[1.0, -1.0], [-0.5, 0.5]]), "not symmetric: |U_ij - U_ji| reaches 0.5"),
        (np.array([[-1.0, 1.0], [1.0, -1.0]]), "the eigenvalue -2: expected none below 0"),
        (np.eye(3), "a row of U sums to 1"),
        (np.zeros((3, 3)), "sigma_(n-1) of U is 0"),
        (np.kron(np.eye(2), [[1.0, -1.0], [-1.0, 1.0]]), "is the graph connected?"),
    ],
)
def test_a_matrix_that_breaks_assumption_2_is_refused(U: np.ndarray, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        spectrum_of(U)
