"""COLA: the authors' scheme in matrices, its invariant, and the reference figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_lab.simulate import engines_of
from dlag_node.methods.cola import Cola
from dlag_node.problems import Array
from dlag_node.rounds import Engine
from tests.methods.matrix_form import Shards, shards_of
from tests.methods.plans import heart_plan, simulate, small_plan
from tests.paper.runs import TARGET, instance_R

ROUNDS = 40


def minimiser(A: Array, b: Array, shards: Shards, u: Array, w: Array, rho: float) -> Array:
    """argmin (1/n0) sum l_j(<a_j, theta>) + <u, theta> + (rho/2) ||theta - w||^2."""
    theta, n0 = np.zeros(A.shape[1]), shards.n0
    for _ in range(20):
        s = A @ theta
        p = 1 / (1 + np.exp(b * s))
        slope, bend = (-b * p, p * (1 - p)) if shards.logistic else (s - b, np.ones(len(b)))
        g = A.T @ slope / n0 + u + rho * (theta - w)
        H = (A.T * bend) @ A / n0 + rho * np.eye(len(theta))
        theta = theta - np.linalg.solve(H, g)
    return theta


def cola(shards: Shards, W: Array, rounds: int, gamma: float) -> Array:
    """COLA with a dual variable for each sample, as He, Bian and Jaggi have it; V is n x d."""
    n, d, n0, lam = len(shards.b), shards.A[0].shape[1], shards.n0, shards.lam
    V, x = np.zeros((n, d)), [np.zeros(len(b)) for b in shards.b]
    rho = 2 * lam / (gamma * n)
    thetas = []
    for _ in range(rounds):
        mixed = W @ V
        for i, (A, b) in enumerate(zip(shards.A, shards.b, strict=True)):
            theta = minimiser(A, b, shards, A.T @ x[i], mixed[i] / (2 * lam), rho)
            s = A @ theta
            slope = -b / (1 + np.exp(b * s)) if shards.logistic else s - b
            dx = -slope / n0 - x[i]
            x[i] = x[i] + gamma * dx
            V[i] = mixed[i] + gamma * n * (A.T @ dx)
        np.testing.assert_allclose(
            V.mean(axis=0), sum(A.T @ each for A, each in zip(shards.A, x, strict=True)), atol=1e-13
        )
        thetas.append(V / (2 * lam))
    return np.array(thetas)


@pytest.mark.grid
@pytest.mark.parametrize("gamma", [1.0, 0.5])
@pytest.mark.parametrize("weights", ["metropolis", "laplacian"])
@pytest.mark.parametrize("problem", ["ridge", "logistic"])
@pytest.mark.parametrize("topology", ["grid:3x3", "star:5"])
def test_it_is_the_authors_scheme(
    topology: str, problem: str, weights: str, gamma: float, tmp_path: Path
) -> None:
    solver = "solver=closed" if problem == "ridge" else "solver=newton,epochs=20"
    plan = small_plan(
        tmp_path,
        f"cola:gamma={gamma},{solver}",
        topology=topology,
        weights=weights,
        problem=problem,
    )
    scale = 1.0 if weights == "metropolis" else 1 / np.linalg.eigvalsh(plan.U)[-1]
    Theta = cola(shards_of(plan), np.eye(plan.nodes) - scale * plan.U, ROUNDS, gamma)
    run = simulate(plan, ROUNDS)
    np.testing.assert_allclose(run.Theta, Theta, rtol=0, atol=1e-12 * np.abs(Theta).max())


def test_a_W_that_would_not_be_stable_is_scaled() -> None:
    for topology in ("grid:5x5", "star:9", "complete:4", "path:2"):
        plan = heart_plan("cola", topology=topology, weights="laplacian")
        sigma_1 = engines_of(plan)[0].method.parameters["sigma_1"]
        W = np.eye(plan.nodes) - sigma_1 / plan.spectrum.sigma_1 * plan.U
        assert np.linalg.eigvalsh(W).min() >= -1e-14
        assert W.min() >= -1e-14
    for weights in ("metropolis", "max-degree"):
        plan = heart_plan("cola", weights=weights)
        assert engines_of(plan)[0].method.parameters["sigma_1"] == plan.spectrum.sigma_1


def test_the_mean_of_the_v_is_A_x_after_every_round_however_inexact() -> None:
    v: dict[int, list[Array]] = {}
    u: dict[int, list[Array]] = {}

    def keep(engine: Engine) -> None:
        assert isinstance(engine.method, Cola)
        v.setdefault(engine.node, []).append(engine.method.v)
        u.setdefault(engine.node, []).append(engine.method.u)

    simulate(heart_plan("cola:epochs=1"), 100, finished=keep)
    V, U = np.array([v[i] for i in range(25)]), np.array([u[i] for i in range(25)])
    # 100 rounds, each rounding 25 terms of size |V| by an ulp
    tolerance = 100 * 25 * np.finfo(float).eps * np.abs(V).max()
    np.testing.assert_allclose(V.mean(axis=0), U.sum(axis=0), rtol=0, atol=tolerance)


def test_ridge_ends_at_the_solution_of_the_normal_equations(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "cola", topology="star:5", weights="laplacian")
    shards = shards_of(plan)
    A, b = np.vstack(shards.A), np.concatenate(shards.b)
    star = np.linalg.solve(A.T @ A / len(b) + 2 * shards.lam * np.eye(A.shape[1]), A.T @ b / len(b))
    assert np.abs(simulate(plan, 2_000).Theta[-1] - star).max() <= 1e-8


def test_1_673_rounds_to_the_target_with_40_epochs() -> None:
    run = simulate(heart_plan("cola"), 1_800, target=TARGET)
    k = 1 + next(k for k, each in enumerate(run.measured) if each.suboptimality <= TARGET)
    assert (k, run.messages(k)) == (1_673, 133_840)  # the reference figures
    spent = sum(record.gradients for row in run.records[:k] for record in row)
    assert spent == 1_673 * 41 * 270  # 40 epochs, and the slopes at theta_hat


def test_the_worst_error_on_instance_R_to_all_digits() -> None:
    run = simulate(instance_R("cola:epochs=120"), 1_600, target=TARGET)
    errors = [0.0, *(each.suboptimality for each in run.measured)]  # after k iterations
    table = {1: "5.5296e-01", 10: "1.1777e-01", 50: "3.1824e-02", 100: "1.3737e-02"}
    assert {at: f"{errors[at]:.4e}" for at in table} == table
    assert next(k for k, error in enumerate(errors) if 0 < error <= TARGET) == 1_509


def test_bits_do_not_depend_on_the_order_of_events(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "cola", problem="logistic")
    ordered, shuffled = simulate(plan, 15), simulate(plan, 15, shuffle=3)
    assert np.array_equal(ordered.Theta, shuffled.Theta)
    assert ordered.timeless == shuffled.timeless
