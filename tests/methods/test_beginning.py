"""Methods that begin at a theta of somebody's choice, with multipliers that sum to zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coordinator.plan import Plan
from dlag_lab.referee import optimum
from dlag_lab.workers import Workers
from dlag_node.methods import METHODS
from dlag_node.methods.beginning import Beginnable
from dlag_node.methods.dual import DualAscent
from dlag_node.problems import Array, Problem
from dlag_node.rounds import Engine
from tests.methods.plans import simulate, small_plan

COLD = {"dsba", "adfs"}  # a table of their samples' past is part of where they are
STAYS = [name for name in METHODS if name not in COLD | {"diging"}]


def minimiser(plan: Plan) -> Array:
    data = plan.dataset
    return optimum(Problem(data.rows, data.labels, plan.loss, n0=plan.n0, lam=plan.settings.lam))[0]


def begin(plan: Plan, engines: list[Engine], theta: Array) -> None:
    gradients = np.array([f.gradient(theta) for f in Workers(plan).problems])
    for engine, g in zip(engines, gradients - gradients.mean(axis=0), strict=True):
        assert isinstance(engine.method, Beginnable)
        engine.method.begin_at(theta, g)


@pytest.mark.parametrize("name", STAYS)
def test_who_begins_at_the_minimiser_stays_there(name: str, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, name, problem="logistic")
    theta = minimiser(plan)
    run = simulate(plan, 8, prepare=lambda engines: begin(plan, engines, theta))
    assert np.abs(run.Theta - theta).max() < 1e-5 * np.abs(theta).max()
    cold = simulate(plan, 8)
    assert np.abs(cold.Theta[-1] - theta).max() > 1e-3 * np.abs(theta).max() or name == "tree"


@pytest.mark.parametrize("name", [*STAYS, "diging"])
def test_who_begins_anywhere_arrives_at_the_minimiser(name: str, tmp_path: Path) -> None:
    """The sums that must be zero are: otherwise it would arrive somewhere else."""
    plan = small_plan(tmp_path, name, topology="ring:4")
    theta = minimiser(plan)
    start = theta + np.linspace(-1.0, 2.0, len(theta))
    run = simulate(plan, 400, prepare=lambda engines: begin(plan, engines, start))
    assert np.abs(run.Theta[-1] - theta).max() < 1e-3 * np.abs(theta).max()


def test_the_dual_variables_sum_to_zero_to_rounding(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "ssda")
    theta = np.linspace(-3.0, 5.0, 4)
    methods = []

    def prepare(engines: list[Engine]) -> None:
        begin(plan, engines, theta)
        methods.extend(engine.method for engine in engines)

    simulate(plan, 1, prepare=prepare)
    assert all(isinstance(method, DualAscent) for method in methods)
    x = np.array([method.x for method in methods])
    assert np.abs(x.sum(axis=0)).max() <= 1e-14 * np.abs(x).max()


@pytest.mark.parametrize("name", sorted(COLD))
def test_who_cannot_says_so(name: str, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, name)
    (engine, *_) = simulate(plan, 1).engines
    assert not isinstance(engine.method, Beginnable)
