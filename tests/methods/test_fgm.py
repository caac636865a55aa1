"""Distributed FGM: its recursion in matrices, its reduction to SSDA, and the reference figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_node.methods.dual import DualAscent
from tests.methods.matrix_form import Shards, shards_of
from tests.methods.plans import heart_plan, simulate, small_plan
from tests.paper.runs import TARGET, instance_R

ROUNDS = 40


def fast_gradient_on_the_dual(shards: Shards, U: np.ndarray, rounds: int) -> np.ndarray:
    """The recursion as Uribe et al. have it, in z and zt, with exact inner solves."""
    n, d = len(shards.b), shards.A[0].shape[1]
    values = np.linalg.eigvalsh(U)
    q = shards.mu.min() / shards.L.max() * values[1] / values[-1]
    momentum, eta = (1 - np.sqrt(q)) / (1 + np.sqrt(q)), shards.mu.min() / values[-1]
    z, zt = np.zeros((d, n)), np.zeros((d, n))
    thetas = []
    for _ in range(rounds):
        Theta = shards.dual_gradient(zt)
        z_next = zt - eta * Theta @ U
        zt = z_next + momentum * (z_next - z)
        z = z_next
        thetas.append(Theta.T)
    return np.array(thetas)


@pytest.mark.parametrize("weights", ["laplacian", "metropolis"])
@pytest.mark.parametrize("topology", ["grid:3x3", "star:5"])
def test_it_is_the_fast_gradient_method_on_the_dual(
    topology: str, weights: str, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, "fgm:solver=closed", topology=topology, weights=weights)
    Theta = fast_gradient_on_the_dual(shards_of(plan), plan.U, ROUNDS)
    run = simulate(plan, ROUNDS)
    # rounding of x, magnified by the condition of grad f_i^* and summed up over the rounds
    np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-12 * np.abs(Theta).max())


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_the_inner_accuracy_is_eps_sqrt_2_mu(start: str) -> None:
    plan = heart_plan(f"fgm:eps=1e-5,start={start}")
    for engine in simulate(plan, 3).engines:
        method = engine.method
        assert isinstance(method, DualAscent)
        problem = method.oracle._sub.problem
        before = method.x.copy()
        flow = method.round()
        next(flow)
        off = np.linalg.norm(problem.gradient(method.theta) - before)
        assert 0 < off <= 1e-5 * np.sqrt(2 * problem.mu)


def test_it_is_ssda_with_another_stop_rule(tmp_path: Path) -> None:
    fgm = simulate(small_plan(tmp_path, "fgm:solver=closed"), ROUNDS)
    ssda = simulate(small_plan(tmp_path, "ssda:solver=closed"), ROUNDS)
    assert np.array_equal(fgm.Theta, ssda.Theta)


def test_x_sums_to_zero() -> None:
    run = simulate(heart_plan("fgm:eps=1e-6", weights="laplacian"), 60)
    x = np.array([engine.method.x for engine in run.engines])  # type: ignore[attr-defined]
    # each of 60 steps rounds n columns by an ulp
    assert np.abs(x.sum(axis=0)).max() <= 60 * len(x) * np.finfo(float).eps * np.abs(x).max()


def test_a_warm_start_halves_the_gradients_and_takes_as_many_rounds() -> None:
    cold, warm = (
        simulate(heart_plan(f"fgm:start={start}", weights="laplacian"), 600, target=TARGET)
        for start in ("cold", "warm")
    )
    k = [
        next(k for k, each in enumerate(run.measured) if each.suboptimality <= TARGET)
        for run in (cold, warm)
    ]
    assert k == [567, 567]  # the reference figure
    assert cold.messages(567) == 45_360
    spent = [sum(r.gradients for row in run.records[:567] for r in row) for run in (cold, warm)]
    assert spent[0] == pytest.approx(12.4e6, rel=0.01)
    assert spent[1] == pytest.approx(6.3e6, rel=0.02)


def test_the_worst_error_on_instance_R_to_all_digits() -> None:
    run = simulate(instance_R("fgm:eps=1e-9", "laplacian"), 700, target=TARGET)
    errors = [each.suboptimality for each in run.measured]
    table = {1: "4.5892e-01", 10: "1.5587e-01", 50: "6.3488e-02", 100: "1.2481e-02"}
    assert {at: f"{errors[at]:.4e}" for at in table} == table
    assert next(k for k, error in enumerate(errors) if error <= TARGET) == 600


def test_bits_do_not_depend_on_the_order_of_events(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "fgm", problem="logistic")
    ordered, shuffled = simulate(plan, 15), simulate(plan, 15, shuffle=3)
    assert np.array_equal(ordered.Theta, shuffled.Theta)
    assert ordered.timeless == shuffled.timeless
