"""Each method, run by its engines, equals the paper's global formulation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.methods.matrix_form import Lazy, chebyshev_matrix, global_form, shards_of
from tests.methods.plans import simulate, small_plan

ROUNDS = 40
GRAPHS = ["grid:3x3", "ring:6", "star:5", "erdos:8,0.4"]
WEIGHTS = ["metropolis", "max-degree", "laplacian"]
# gamma and c large enough for silence on a problem this small, a D that is reached
LAZY = Lazy(gamma=0.001, c=0.001, D=6)
LAZY_TEXT = "gamma=0.001,c=0.001,D=6"


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("topology", GRAPHS)
class TestRidgeInClosedForm:
    """Exact dual gradients on both sides: equal to rounding.

    Rounding in x is magnified by the condition number of grad f_i^* and summed up over the rounds;
    1e-12 of the largest theta is some 5000 ulps.
    """

    @pytest.mark.parametrize("lazy", [None, LAZY], ids=["ssda", "dlag"])
    def test_with_U(self, topology: str, weights: str, lazy: Lazy | None, tmp_path: Path) -> None:
        name = "ssda:solver=closed" if lazy is None else f"dlag:solver=closed,{LAZY_TEXT}"
        plan = small_plan(tmp_path, name, topology=topology, weights=weights)
        run = simulate(plan, ROUNDS)
        Theta, sent = global_form(shards_of(plan), plan.U, rounds=ROUNDS, lazy=lazy)
        np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-12 * np.abs(Theta).max())
        assert [[said == "D" for said in row] for row in run.sent] == sent
        if lazy is not None:
            silent = sum(not spoke for row in sent for spoke in row)
            assert silent > 0.1 * ROUNDS * plan.nodes  # the rule was at work

    @pytest.mark.parametrize("lazy", [None, LAZY], ids=["msda", "mdlag"])
    def test_with_P_K_of_U(
        self, topology: str, weights: str, lazy: Lazy | None, tmp_path: Path
    ) -> None:
        K = 3
        name = "msda:" if lazy is None else f"mdlag:{LAZY_TEXT},"
        plan = small_plan(
            tmp_path, f"{name}solver=closed,K={K}", topology=topology, weights=weights
        )
        run = simulate(plan, ROUNDS)
        mixing = chebyshev_matrix(plan.U, K)
        Theta, sent = global_form(shards_of(plan), mixing, rounds=ROUNDS, lazy=lazy)
        np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-12 * np.abs(Theta).max())
        assert [[said[0] == "D" for said in row] for row in run.sent] == sent
        assert {said[1:] for row in run.sent for said in row} == {"DD"}
        if lazy is not None:
            assert not all(map(all, sent))


@pytest.mark.parametrize("name", ["ssda", "msda", "dlag", "mdlag"])
@pytest.mark.parametrize("topology", ["grid:3x3", "star:5"])
def test_logistic_to_the_accuracy_of_its_dual_gradients(
    name: str, topology: str, tmp_path: Path
) -> None:
    lazy, K = (LAZY if "lag" in name else None), (2 if name.startswith("m") else 0)
    given = [LAZY_TEXT] * (lazy is not None) + [f"K={K}"] * (K > 0)
    text = f"{name}:{','.join([*given, 'solver=newton', 'stop=exact:1e-12'])}"
    plan = small_plan(tmp_path, text, topology=topology, problem="logistic")
    run = simulate(plan, ROUNDS)
    shards = shards_of(plan)
    mixing = chebyshev_matrix(plan.U, K) if K else plan.U
    Theta, sent = global_form(shards, mixing, rounds=ROUNDS, lazy=lazy)
    # A gradient norm of 1e-12 leaves theta_i within 1e-12 / mu_i, theta^0 within 1e-10 / mu_i; such
    # errors drive an iteration that is stable, and add up over its rounds.
    atol = ROUNDS * 1e-10 / shards.mu.min()
    np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=atol)
    assert atol < 1e-5 * np.abs(Theta).max()
    assert [[said[0] == "D" for said in row] for row in run.sent] == sent


@pytest.mark.parametrize("name", ["dlag", "mdlag"])
def test_the_steps_of_the_theory_are_in_the_right_places(name: str, tmp_path: Path) -> None:
    text = f"{name}:solver=closed,eta_beta=0.3,s=7,{LAZY_TEXT}"
    plan = small_plan(tmp_path, text + ",K=2" * (name == "mdlag"))
    mixing = plan.U if name == "dlag" else chebyshev_matrix(plan.U, 2)
    Theta, _ = global_form(shards_of(plan), mixing, rounds=ROUNDS, lazy=LAZY, eta_beta=0.3, s=7.0)
    run = simulate(plan, ROUNDS)
    np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-12 * np.abs(Theta).max())
