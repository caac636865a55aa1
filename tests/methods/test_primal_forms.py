"""EXTRA, exact diffusion, DIGing and ADMM, run by their engines, equal their matrix forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from coordinator.plan import Plan
from dlag_node.problems import Array
from tests.methods import primal_forms
from tests.methods.matrix_form import Shards, shards_of
from tests.methods.plans import simulate, small_plan

ROUNDS = 40
GRAPHS = ["grid:3x3", "ring:6", "star:5", "erdos:8,0.4"]
WEIGHTS = ["metropolis", "max-degree", "laplacian"]
PROBLEMS = ["ridge", "logistic"]
Form = Callable[[Shards, Array, float], Iterator[Array]]


def assert_equal_to_rounding(plan: Plan, form: Iterator[Array]) -> None:
    # 40 rounds of sums of a few dozen terms: 1e-12 of the largest entry is some 5000 ulps
    X = np.array(list(islice(form, ROUNDS)))
    Theta = simulate(plan, ROUNDS).Theta
    np.testing.assert_allclose(Theta, X, rtol=0, atol=1e-12 * np.abs(X).max())


@pytest.mark.grid
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("topology", GRAPHS)
@pytest.mark.parametrize(
    ("method", "form", "alpha_L", "sigma"),
    [
        ("extra", primal_forms.extra, 1.0, 1.25),
        ("extra:alpha_L=0.5,sigma=1.9", primal_forms.extra, 0.5, 1.9),
        ("exact-diffusion", primal_forms.exact_diffusion, 1.0, 1.9),
        ("diging", primal_forms.diging, 0.25, 1.25),
        ("diging:alpha_L=0.1,sigma=1.9", primal_forms.diging, 0.1, 1.9),
    ],
)
def test_the_methods_with_W(
    method: str,
    form: Form,
    alpha_L: float,
    sigma: float,
    topology: str,
    weights: str,
    problem: str,
    tmp_path: Path,
) -> None:
    plan = small_plan(tmp_path, method, topology=topology, weights=weights, problem=problem)
    shards = shards_of(plan)
    W = primal_forms.averaging_matrix(plan.U, sigma)
    if weights != "laplacian" and plan.spectrum.sigma_1 <= sigma:
        np.testing.assert_array_equal(W, np.eye(plan.nodes) - plan.U)
    assert_equal_to_rounding(plan, form(shards, W, alpha_L / shards.L.max()))


@pytest.mark.grid
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("topology", GRAPHS)
def test_admm(topology: str, weights: str, problem: str, tmp_path: Path) -> None:
    # a tolerance that Newton's method cannot meet but by its rounding floor: exact on both sides
    plan = small_plan(
        tmp_path, "admm:tol=1e-300", topology=topology, weights=weights, problem=problem
    )
    shards = shards_of(plan)
    adjacency = np.where(plan.U < 0, 1.0, 0.0)
    c = sqrt(shards.mu.min() * shards.L.max())
    assert_equal_to_rounding(plan, primal_forms.admm(shards, adjacency, c))
