"""The worst worker's objective, found without evaluating it for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator.plan import Plan, RunSettings
from dlag_lab.referee import optimum
from dlag_lab.worst import Worst
from dlag_node.problems import Array, Problem


def pooled(problem: str) -> Problem:
    plan = Plan(RunSettings(problem=problem))
    return Problem(plan.dataset.rows, plan.dataset.labels, plan.loss, n0=plan.n0, lam=0.01)


class Counting(Problem):
    """Knows how often it was evaluated."""

    evaluated = 0

    def value(self, theta: Array) -> float:
        self.evaluated += 1
        return super().value(theta)


@pytest.mark.parametrize("problem", ["logistic", "ridge"])
@pytest.mark.parametrize("away", [10.0, 1.0, 1e-2, 1e-4, 1e-7])
def test_it_is_the_very_maximum_and_bounds_are_bounds(problem: str, away: float) -> None:
    f = pooled(problem)
    theta_star, f_star = optimum(f)
    rng = np.random.default_rng(0)
    worst = Worst(f, theta_star, f_star)
    for _ in range(20):
        Theta = theta_star + away * rng.normal(size=(25, 13)) * rng.random((25, 1))
        values = np.array([f.value(theta) for theta in Theta])
        assert worst(Theta) == values.max()
        assert (values - f_star <= worst.bounds(Theta) * (1 + 1e-12) + 1e-12).all()


def test_near_the_optimum_a_few_evaluations_are_enough() -> None:
    f = pooled("logistic")
    theta_star, f_star = optimum(f)
    counting = Counting(f.rows, f.labels, f.loss, n0=f.n0, lam=f.lam)
    worst = Worst(counting, theta_star, f_star)
    Theta = theta_star + 1e-3 * np.random.default_rng(0).normal(size=(100, 13))
    worst(Theta)
    assert counting.evaluated <= 3
