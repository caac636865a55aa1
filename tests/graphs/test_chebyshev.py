"""P_K(U) against its closed form, its eigengap, and the degrees it may have."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import chebyshev as T

from dlag_node.errors import ConfigError
from dlag_node.graphs import (
    Chebyshev,
    Graph,
    Spectrum,
    chebyshev_for,
    gossip_matrix,
    parse_topology,
    spectrum_of,
)

SPECS = ["grid:5x5", "ring:40", "path:30", "star:9", "complete:8", "erdos:30,0.15", "regular:24,3"]
RULES = ["metropolis", "max-degree", "laplacian"]


def matrix(spec: str, rule: str = "metropolis") -> np.ndarray:
    return gossip_matrix(parse_topology(spec, seed=0), rule)


def test_the_5x5_grid_takes_four_exchanges() -> None:
    spectrum = spectrum_of(matrix("grid:5x5"))
    poly = chebyshev_for(spectrum)
    assert poly.K == 4
    zeta = spectrum.zeta
    assert poly.c2 == (1 + zeta) / (1 - zeta)
    assert poly.c3 == 2 / ((1 + zeta) * spectrum.sigma_1)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("spec", SPECS)
def test_the_eigengap_of_P_K_is_at_least_a_quarter(spec: str, rule: str) -> None:
    U = matrix(spec, rule)
    spectrum = spectrum_of(U)
    poly = chebyshev_for(spectrum)
    mixed = poly.of_spectrum(spectrum)
    assert mixed.zeta >= 0.25
    assert mixed.values[-1] == 0.0
    assert list(mixed.values) == sorted(mixed.values, reverse=True)
    np.testing.assert_allclose(mixed.values, spectrum_of(poly.matrix(U)).values, atol=1e-11)


def test_the_eigengap_is_at_least_a_quarter_on_any_connected_graph(
    connected_graphs: st.SearchStrategy[Graph],
) -> None:
    @given(connected_graphs)
    def check(graph: Graph) -> None:
        spectrum = spectrum_of(gossip_matrix(graph, "metropolis"))
        assert chebyshev_for(spectrum).of_spectrum(spectrum).zeta >= 0.25

    check()


@pytest.mark.parametrize("K", [None, 1, 2, 3, 7])
@pytest.mark.parametrize("spec", ["grid:5x5", "ring:40", "complete:8"])
def test_the_recursion_is_the_closed_form(spec: str, K: int | None) -> None:
    U = matrix(spec)
    poly = chebyshev_for(spectrum_of(U), K)
    T_K = np.zeros(poly.K + 1)
    T_K[-1] = 1.0
    values, vectors = np.linalg.eigh(U)
    expected = 1 - T.chebval(poly.c2 * (1 - poly.c3 * values), T_K) / T.chebval(poly.c2, T_K)
    np.testing.assert_allclose(poly.matrix(U), (vectors * expected) @ vectors.T, atol=1e-13)
    np.testing.assert_allclose(
        poly.a, [T.chebval(poly.c2, [0] * k + [1]) for k in range(len(poly.a))]
    )


@pytest.mark.parametrize("spec", SPECS)
def test_ones_stay_in_the_null_space(spec: str) -> None:
    U = matrix(spec)
    P = chebyshev_for(spectrum_of(U)).matrix(U)
    # K products of rows that sum to zero within an ulp or so
    np.testing.assert_allclose(P @ np.ones(len(U)), 0.0, atol=1e-13)


def test_P_K_reaches_K_hops_and_no_further() -> None:
    U = matrix("path:30")
    P = chebyshev_for(spectrum_of(U), 5).matrix(U)
    hops = np.abs(np.subtract.outer(np.arange(30), np.arange(30)))
    assert (P[hops > 5] == 0).all()
    assert (P[hops == 5] != 0).all()


def test_on_the_complete_graph_c_2_cancels() -> None:
    U = matrix("complete:8")
    poly = chebyshev_for(spectrum_of(U))
    assert poly.K == 1
    assert np.isfinite(poly.c2)
    other = Chebyshev(1, 11.0, poly.c3)
    np.testing.assert_allclose(poly.matrix(U), other.matrix(U), atol=1e-15)
    np.testing.assert_allclose(poly.matrix(U), np.eye(8) - 1 / 8, atol=1e-15)
    mixed = chebyshev_for(spectrum_of(U), 3).of_spectrum(spectrum_of(U))
    assert mixed.zeta == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("n", range(2, 21))
def test_the_last_bits_of_an_eigenvalue_do_not_decide_K(n: int) -> None:
    spectrum = spectrum_of(matrix(f"star:{n * n}", "laplacian"))  # zeta = 1/n^2
    for ulps in (-8, 0, 8):
        gap = 1 / n**2 * (1 + ulps * np.finfo(float).eps)
        assert n == chebyshev_for(Spectrum((1.0, gap, 0.0))).K
    assert n == chebyshev_for(spectrum).K


def test_the_longest_path_stays_far_from_overflow() -> None:
    n = 4096
    values = 2 - 2 * np.cos(np.pi * np.arange(n - 1, -1, -1) / n)
    poly = chebyshev_for(Spectrum((*values[:-1].tolist(), 0.0)))
    assert poly.K == 2607
    assert poly.a[-1] < 4  # cosh(2 K atanh(sqrt(zeta))) with K = 1/sqrt(zeta) tends to cosh(2)


def test_more_exchanges_than_rounding_can_use_are_refused() -> None:
    spectrum = spectrum_of(matrix("grid:5x5"))
    most = chebyshev_for(spectrum, 76)
    assert most.of_spectrum(spectrum).zeta == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(ConfigError, match=re.escape("K = 77: expected at most 76")):
        chebyshev_for(spectrum, 77)


@pytest.mark.parametrize(
    ("K", "c2", "c3", "words"),
    [
        (0, 1.1, 1.0, "K = 0: expected 1 to 10000"),
        (-1, 1.1, 1.0, "K = -1"),
        (10_001, 1.1, 1.0, "K = 10001"),
        (2, 1.0, 1.0, "c_2 = 1.0: expected a finite number above 1"),
        (2, float("inf"), 1.0, "c_2 = inf"),
        (2, float("nan"), 1.0, "c_2 = nan"),
        (2, 1.1, 0.0, "c_3 = 0.0: expected a finite number above 0"),
        (2, 1.1, float("nan"), "c_3 = nan"),
        (2000, 2.0, 1.0, "K = 2000 with c_2 = 2: a_K overflows"),
    ],
)
def test_constants_out_of_range_are_refused(K: int, c2: float, c3: float, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        Chebyshev(K, c2, c3)
