"""Limited-memory BFGS alone: what is taken, how it backs off, where it rests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.methods.lbfgs import Lbfgs
from dlag_node.problems import Array


def plain(dim: int, *, first: float = 1.0, mu: float = 1.0, gap: float = 0.0) -> Lbfgs:
    return Lbfgs(dim, guess=lambda _: lambda v: first * v, mu=mu, memory=10, gap=gap)


def test_a_step_far_too_long_ends_at_the_minimiser_of_the_parabola() -> None:
    descent = plain(1, first=3.0)  # f = (x - 1)^2 / 2, whose g(0) = -1
    taken, step = descent.judge(np.zeros(1), 0.5, np.array([-1.0]))
    assert (taken, step[0]) == (True, 3.0)
    taken, step = descent.judge(step, 2.0, np.array([2.0]))
    assert not taken
    assert step[0] == pytest.approx(1.0)
    assert descent.theta[0] == 0.0
    taken, step = descent.judge(step, 0.0, np.zeros(1))
    assert (taken, step[0]) == (True, 0.0)  # and there it rests


def test_t_shrinks_to_a_tenth_at_the_most() -> None:
    descent = plain(1, first=1e6)
    _, step = descent.judge(np.zeros(1), 0.5, np.array([-1.0]))
    assert step[0] == 1e6
    _, step = descent.judge(step, 5e11, np.array([1e6]))
    assert step[0] == pytest.approx(1e5)


def test_below_the_rounding_of_f_the_slope_decides() -> None:
    for slope, expected in ((-0.01, True), (0.5, True), (0.95, False)):
        descent = plain(1)
        # 1e-10^2 is far below an ulp of f = 1, but not below what gap allows
        descent.judge(np.zeros(1), 1.0, np.array([-1e-7]))
        taken, _ = descent.judge(np.array([1e-7]), 1.0 + 2e-16, np.array([slope * 1e-7]))
        assert taken is expected


def test_noise_in_the_gradient_ends_in_rest_and_not_in_an_endless_search() -> None:
    rng = np.random.default_rng(0)
    H = np.diag(np.logspace(0, 4, 6))
    b = rng.normal(size=6)
    descent = plain(6, first=1e-4, mu=1e-12)  # so that no gap is ever proven
    theta, step = np.zeros(6), np.zeros(6)
    for _ in range(100):
        x = theta + step
        f = float(x @ H @ x / 2 - b @ x + 10) * (1 + 1e-15 * rng.normal())
        _, step = descent.judge(x, f, H @ x - b + 1e-9 * rng.normal(size=6))
        theta = descent.theta
        if not step.any():
            break
    assert not step.any()
    star = np.linalg.solve(H, b)
    assert (theta - star) @ H @ (theta - star) / 2 <= 1e-13


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), st.floats(-4, 4))
def test_any_convex_quadratic_is_minimised_and_f_never_increases(
    dim: int, seed: int, scale: float
) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(dim + 3, dim))
    H = 10.0**scale * (A.T @ A + np.eye(dim))
    b = rng.normal(size=dim)

    def at(x: Array) -> tuple[float, Array]:
        return float(x @ H @ x / 2 - b @ x) + 1.0, H @ x - b

    descent = plain(dim, mu=10.0**scale)
    step, values = np.zeros(dim), []
    for _ in range(500):
        trial = descent.theta + step
        _, step = descent.judge(trial, *at(trial))
        values.append(at(descent.theta)[0])
        if not step.any():
            break
    assert not step.any()
    assert (np.diff(values) <= 1e-13 * np.abs(values).max()).all()
    away = descent.theta - np.linalg.solve(H, b)
    assert away @ H @ away / 2 <= 1e-14 * max(1.0, abs(values[-1]))


def test_it_keeps_the_newest_pairs() -> None:
    descent = Lbfgs(3, guess=lambda _: lambda v: 0.01 * v, mu=1.0, memory=2, gap=0.0)
    H, b, step = np.diag([1.0, 10.0, 100.0]), np.ones(3), np.zeros(3)
    for _ in range(6):
        trial = descent.theta + step
        _, step = descent.judge(trial, float(trial @ H @ trial / 2 - b @ trial), H @ trial - b)
    assert len(descent.s) == len(descent.y) == 2
    np.testing.assert_allclose(descent.y[-1], H @ descent.s[-1], rtol=1e-9)
