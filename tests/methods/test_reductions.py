"""The reductions that the paper states: gamma = c = 0, one exchange, a complete graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dlag_node.graphs import chebyshev_for, gossip_matrix, parse_topology, spectrum_of
from dlag_node.rounds import Record
from tests.methods.matrix_form import chebyshev_matrix
from tests.methods.plans import Run, heart_plan, simulate, small_plan

INNER = [
    "solver=katyusha,stop=epochs:3",
    "solver=katyusha,stop=exact:1e-8",
    "solver=newton,stop=exact:1e-10",
]


def unconditional(run: Run) -> list[list[Record]]:
    """The records without the lazy condition, which a plain method does not have."""
    return [[replace(each, gap=None, bound=None) for each in row] for row in run.timeless]


def assert_same_run(one: Run, other: Run) -> None:
    np.testing.assert_array_equal(one.Theta, other.Theta)
    assert unconditional(one) == unconditional(other)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("R", [0, 2])
@pytest.mark.parametrize(("lazy", "plain"), [("dlag", "ssda"), ("mdlag", "msda")])
def test_without_gamma_and_c_the_lazy_method_is_the_plain_one_bit_for_bit(
    lazy: str, plain: str, R: int, inner: str
) -> None:
    one = simulate(heart_plan(f"{lazy}:gamma=0,c=0,D=4,promise={R},{inner}"), 12)
    other = simulate(heart_plan(f"{plain}:{inner}"), 12)
    assert_same_run(one, other)
    assert one.messages() == other.messages() == 12 * 80 * (4 if plain == "msda" else 1)


@pytest.mark.parametrize(("lazy", "plain"), [("dlag", "ssda"), ("mdlag", "msda")])
def test_the_same_on_a_small_problem_in_closed_form(lazy: str, plain: str, tmp_path: Path) -> None:
    one = simulate(small_plan(tmp_path, f"{lazy}:gamma=0,c=0,solver=closed"), 60)
    other = simulate(small_plan(tmp_path, f"{plain}:solver=closed"), 60)
    assert_same_run(one, other)


def test_with_gamma_and_c_the_lazy_method_is_another() -> None:
    dlag = simulate(heart_plan("dlag:stop=epochs:3"), 12)
    ssda = simulate(heart_plan("ssda:stop=epochs:3"), 12)
    assert not np.array_equal(dlag.Theta, ssda.Theta)
    assert dlag.messages() < ssda.messages()


@pytest.mark.parametrize("topology", ["grid:3x3", "ring:6", "star:5", "path:4"])
@pytest.mark.parametrize("weights", ["metropolis", "max-degree", "laplacian"])
def test_P_1_of_U_is_c_3_times_U(topology: str, weights: str) -> None:
    U = gossip_matrix(parse_topology(topology, seed=0), weights)
    poly = chebyshev_for(spectrum_of(U), 1)
    np.testing.assert_allclose(poly.matrix(U), poly.c3 * U, rtol=0, atol=1e-14)
    np.testing.assert_allclose(chebyshev_matrix(U, 1), poly.c3 * U, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("multi", "single"), [("mdlag", "dlag"), ("msda", "ssda")])
def test_one_exchange_a_round_is_the_single_method(multi: str, single: str, tmp_path: Path) -> None:
    # P_1(U) = c_3 U, and eta = 1 / beta is c_3 times smaller: the same step up to rounding
    one = simulate(small_plan(tmp_path, f"{multi}:K=1,solver=closed"), 40)
    other = simulate(small_plan(tmp_path, f"{single}:solver=closed"), 40)
    scale = np.abs(other.Theta).max()
    np.testing.assert_allclose(one.Theta, other.Theta, rtol=0, atol=1e-12 * scale)
    assert one.sent == other.sent


@pytest.mark.parametrize("weights", ["metropolis", "laplacian"])
def test_on_a_complete_graph_mdlag_is_dlag(weights: str, tmp_path: Path) -> None:
    settings = {"topology": "complete:6", "weights": weights}
    one = simulate(small_plan(tmp_path, "mdlag:solver=closed", **settings), 40)
    other = simulate(small_plan(tmp_path, "dlag:solver=closed", **settings), 40)
    assert one.engines[0].method.parameters["K"] == 1  # zeta = 1
    scale = np.abs(other.Theta).max()
    np.testing.assert_allclose(one.Theta, other.Theta, rtol=0, atol=1e-12 * scale)
    assert one.sent == other.sent


def test_on_a_complete_graph_more_exchanges_change_nothing(tmp_path: Path) -> None:
    runs = [
        simulate(small_plan(tmp_path, f"msda:K={K},solver=closed", topology="complete:6"), 30)
        for K in (1, 3)
    ]
    scale = np.abs(runs[0].Theta).max()
    np.testing.assert_allclose(runs[0].Theta, runs[1].Theta, rtol=0, atol=1e-12 * scale)
    assert runs[1].messages() == 3 * runs[0].messages()


@pytest.mark.parametrize("method", ["ssda", "msda", "dlag", "mdlag"])
def test_workers_with_the_same_samples_have_nothing_to_agree_on(
    method: str, tmp_path: Path
) -> None:
    samples = "0.5 1:1 2:-2\n" * 6
    plan = small_plan(
        tmp_path, f"{method}:solver=closed", topology="ring:6", shards="even", samples=samples
    )
    run = simulate(plan, 5)
    assert run.measured[-1].suboptimality == pytest.approx(0, abs=1e-15)
    assert run.measured[-1].consensus_error == pytest.approx(0, abs=1e-15)


def test_where_an_exact_solver_starts_changes_its_cost_and_nothing_else() -> None:
    warm, cold = (
        simulate(heart_plan(f"ssda:solver=agd{more}"), 40) for more in ("", ",start=cold")
    )
    np.testing.assert_allclose(cold.Theta, warm.Theta, rtol=0, atol=1e-5)  # 1e-10 over mu_min
    assert cold.sent == warm.sent
    costs = [sum(r.gradients for row in run.records[20:] for r in row) for run in (cold, warm)]
    assert costs[0] > costs[1]
