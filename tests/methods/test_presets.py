"""The presets: the paper's experiments, and the constants of Theorem 1."""

from __future__ import annotations

from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.simulate import engines_of
from dlag_node.methods.dual import DualAscent
from tests.methods.matrix_form import chebyshev_matrix, shards_of
from tests.methods.plans import heart_plan, simulate, small_plan


def test_the_papers_preset_is_that_of_its_experiments() -> None:
    [engine, *_] = engines_of(heart_plan("dlag"))
    p = engine.method.parameters
    assert p["eta"] * p["beta"] == pytest.approx(1, rel=1e-15)
    assert (p["s"], p["gamma"], p["c"], p["D"]) == (1.0, 1e-4, 1e-4, 50)
    assert (p["solver"], p["stop"]) == ("katyusha", "epochs:30")
    for name in ("ssda", "msda"):
        for preset in ("paper", "theory"):  # one and the same: eta = 1/beta is their own theory
            [engine, *_] = engines_of(heart_plan(name, preset=preset))
            p = engine.method.parameters
            assert p["eta"] * p["beta"] == pytest.approx(1, rel=1e-15)
            assert (p["s"], p["solver"], p["stop"]) == (1.0, "katyusha", "exact:1e-10")


@pytest.mark.parametrize("D", [1, 10, 50])
@pytest.mark.parametrize("name", ["dlag", "mdlag"])
def test_the_theorys_preset_is_theorem_1(name: str, D: int, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, f"{name}:D={D}", preset="theory")
    [engine, *_] = engines_of(plan)
    p = engine.method.parameters
    mixing = chebyshev_matrix(plan.U, int(p["K"])) if name == "mdlag" else plan.U
    sigma = np.linalg.eigvalsh(mixing)
    shards = shards_of(plan)
    mu_min, L_max = shards.mu.min(), shards.L.max()
    alpha, beta = sigma[1] / L_max, sigma[-1] / mu_min
    kappa = (L_max / mu_min) / (sigma[1] / sigma[-1])
    norm_root_U = np.linalg.norm(mixing, 2) ** 0.5  # ||sqrt U||, the largest singular value
    scale = alpha * beta * mu_min**2 / norm_root_U**4
    # eigenvalues computed in two ways: the smallest one is good to some 1e-14 of the largest
    assert p["alpha"] == pytest.approx(alpha, rel=1e-12)
    assert p["beta"] == pytest.approx(beta, rel=1e-12)
    assert p["kappa"] == pytest.approx(kappa, rel=1e-12)
    # the theorem on MDLAG has kappa_F in its exponentials, not its own kappa'
    root = sqrt(L_max / mu_min if name == "mdlag" else kappa)
    assert p["gamma"] == pytest.approx(scale / (288 * D) * exp(-2 * D / root), rel=1e-12)
    assert p["c"] == pytest.approx(scale / (1200 * D) * exp(-2 * (D + 1) / root), rel=1e-12)
    assert p["eta"] == pytest.approx(2 / (15 * beta), rel=1e-12)
    assert p["s"] == 10
    root = sqrt(10 * kappa)
    assert p["momentum"] == pytest.approx((root - 1) / (root + 1), rel=1e-12)


def test_the_theorys_gamma_and_c_for_heart() -> None:
    [engine, *_] = engines_of(heart_plan("dlag", preset="theory"))
    p = engine.method.parameters
    # By hand from the constants of the instance: alpha beta mu_min^2 / sigma_1^2 = zeta / kappa_F
    # = 0.0563746 / 440.61 = 1.27947e-4, kappa = 440.61 / 0.0563746 = 7815.8, D = 50
    assert p["kappa"] == pytest.approx(7815.8, rel=1e-5)
    assert p["gamma"] == pytest.approx(1.27947e-4 / 14_400 * exp(-100 / sqrt(7815.8)), rel=2e-5)
    assert p["gamma"] == pytest.approx(2.867e-9, rel=1e-3)
    assert p["c"] == pytest.approx(1.27947e-4 / 60_000 * exp(-102 / sqrt(7815.8)), rel=2e-5)
    assert p["c"] == pytest.approx(6.727e-10, rel=1e-3)


def test_the_theorys_stop_is_certain_of_lemma_1() -> None:
    # mu ||theta - theta*|| <= ||g|| <= L ||theta - theta*||: R = sqrt(c/2) / kappa_i
    for engine in engines_of(heart_plan("dlag", preset="theory")):
        assert isinstance(engine.method, DualAscent)
        stop = engine.method.oracle.stop
        problem = engine.method.oracle._sub.problem
        reduction = stop.amount * problem.L / problem.mu
        assert stop.rule == "relative"
        assert reduction**2 == pytest.approx(engine.method.parameters["c"] / 2, rel=1e-12)


@pytest.mark.parametrize("name", ["dlag", "mdlag"])
def test_a_run_by_the_theory_decreases(name: str, tmp_path: Path) -> None:
    # On heart sqrt(10 kappa) is 280, and f(theta_i) - f* swings for longer than a test should last.
    plan = small_plan(tmp_path, f"{name}:solver=newton,D=3", preset="theory", topology="star:5")
    run = simulate(plan, 240)
    errors = [each.suboptimality for each in run.measured]
    assert errors[239] < errors[160] < errors[80] < errors[0]
    assert errors[239] < 1e-3 * errors[0]
