"""Curvature-aware weights and tight constants: their bounds on random instances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.graphs.chebyshev import chebyshev_for
from dlag_node.graphs.spectrum import spectrum_of
from dlag_node.graphs.topology import Graph, parse_topology
from dlag_node.graphs.weights import curvature_weights, gossip_matrix
from dlag_node.methods.mixing import extremes
from dlag_node.methods.theory import dual_constants
from dlag_node.problems import Array
from tests.methods.plans import heart_plan, simulate

GRAPHS = ["grid:3x4", "ring:9", "star:7", "complete:6", "path:5", "erdos:10,0.4"]


@st.composite
def instances(draw: st.DrawFn) -> tuple[Graph, Array, Array]:
    """A graph, and mu_i <= L_i for each of its workers, over six orders of magnitude."""
    graph = parse_topology(draw(st.sampled_from(GRAPHS)), seed=draw(st.integers(0, 9)))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    mu = 10.0 ** rng.uniform(-4.0, 0.0, graph.nodes)
    return graph, mu, mu * 10.0 ** rng.uniform(0.0, 2.0, graph.nodes)


@given(instance=instances())
def test_no_eigenvalue_of_the_scaled_matrix_is_above_1(
    instance: tuple[Graph, Array, Array],
) -> None:
    graph, mu, L = instance
    U = curvature_weights(graph.nodes, graph.edges, mu)
    spectrum_of(U)  # Assumption 2
    _, beta = extremes(U, mu, L)
    assert beta <= 1.0 + 1e-12


@given(instance=instances(), weights=st.sampled_from(["metropolis", "laplacian", "curvature"]))
def test_the_tight_constants_are_within_the_papers(
    instance: tuple[Graph, Array, Array], weights: str
) -> None:
    graph, mu, L = instance
    if weights == "curvature":
        U = curvature_weights(graph.nodes, graph.edges, mu)
    else:
        U = gossip_matrix(graph, weights)
    for multi in (False, True):
        P, spectrum = U, spectrum_of(U)
        if multi:
            poly = chebyshev_for(spectrum)
            P, spectrum = poly.matrix(U), poly.of_spectrum(spectrum)
        paper = dual_constants(spectrum, mu_min=float(mu.min()), L_max=float(L.max()))
        alpha, beta = extremes(P, mu, L)
        assert beta <= paper.beta * (1 + 1e-9)
        assert alpha >= paper.alpha * (1 - 1e-9)


@given(instance=instances())
def test_alpha_and_beta_bound_the_dual_hessian(instance: tuple[Graph, Array, Array]) -> None:
    """f_i^* with a curvature anywhere between 1/L_i and 1/mu_i: sqrt(P) H sqrt(P) is in between."""
    graph, mu, L = instance
    rng = np.random.default_rng(7)
    U = curvature_weights(graph.nodes, graph.edges, mu)
    alpha, beta = extremes(U, mu, L)
    values, vectors = np.linalg.eigh(U)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    H = np.diag(1.0 / (mu + rng.uniform(size=graph.nodes) * (L - mu)))
    rising = np.linalg.eigvalsh(root @ H @ root)
    assert rising[-1] <= beta * (1 + 1e-9)
    assert rising[1] >= alpha * (1 - 1e-6) - 1e-12 * beta


def test_equal_mu_and_degrees_give_a_multiple_of_the_laplacian() -> None:
    ring = parse_topology("ring:8", seed=0)
    U = curvature_weights(8, ring.edges, [0.5] * 8)
    np.testing.assert_allclose(U, 0.125 * gossip_matrix(ring, "laplacian"), rtol=1e-14)


def test_on_the_reference_instance_kappa_is_as_recorded() -> None:
    """baselines.md: weights by curvature with tight constants have kappa 1292 on instance S."""
    run = simulate(heart_plan("ssda", preset="auto"), 1)
    assert run.engines[0].method.parameters["kappa"] == pytest.approx(1292, abs=1)
    assert run.engines[0].method.parameters["beta"] <= 1.0 + 1e-14  # 1 to an eigenvalue's rounding
    paper = simulate(heart_plan("ssda"), 1)
    assert paper.engines[0].method.parameters["kappa"] == pytest.approx(7816, abs=1)
