"""Every method brings every worker to the minimiser of the pooled objective."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.methods.matrix_form import shards_of
from tests.methods.plans import simulate, small_plan

# Heart is in tests/paper/test_reference.py, where the runs to the target are.


@pytest.mark.parametrize("inner", ["solver=closed", "stop=epochs:30"])
@pytest.mark.parametrize("method", ["ssda:", "msda:", "dlag:D=10,", "mdlag:D=10,"])
def test_ridge_ends_at_the_solution_of_the_normal_equations(
    method: str, inner: str, tmp_path: Path
) -> None:
    plan = small_plan(tmp_path, method + inner, topology="star:5")
    shards = shards_of(plan)
    A, b = np.vstack(shards.A), np.concatenate(shards.b)
    n0, dim = A.shape
    H = A.T @ A / n0 + 2 * shards.lam * np.eye(dim)
    star = np.linalg.solve(H, A.T @ b / n0)

    Theta = simulate(plan, 250).Theta[-1]
    # f(theta) - f* = (theta - theta*)^T H (theta - theta*) / 2, which cancels nothing
    away = Theta - star
    assert np.einsum("id,de,ie->i", away, H, away).max() / 2 <= 1e-9
