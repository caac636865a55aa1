"""f_i against numpy, finite differences and its own definition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dlag_node.errors import ConfigError
from dlag_node.problems import (
    LOGISTIC,
    SQUARED,
    Loss,
    Problem,
    loss_named,
    rows_of,
)
from dlag_node.solvers.subproblem import Subproblem

M, DIM, N0, LAM = 23, 7, 100, 0.01


def make(loss: Loss, *, sparse: bool = False, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(M, DIM)) * (rng.random((M, DIM)) < 0.6)
    labels = rng.choice([-1.0, 1.0], M) if loss is LOGISTIC else rng.normal(size=M)
    return Problem(rows_of(sp.csr_matrix(A) if sparse else A), labels, loss, n0=N0, lam=LAM)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=lambda loss: loss.name)
class TestDerivatives:
    def test_the_value_is_the_papers_sum_over_own_samples(self, loss: Loss, sparse: bool) -> None:
        f = make(loss, sparse=sparse)
        theta = np.random.default_rng(1).normal(size=DIM)
        s = f.rows.matrix() @ theta
        losses = np.log1p(np.exp(-f.labels * s)) if loss is LOGISTIC else (s - f.labels) ** 2 / 2
        expected = sum((each + LAM * theta @ theta) / N0 for each in losses)
        assert f.value(theta) == pytest.approx(expected, rel=1e-14)

    def test_the_gradient_is_the_slope_of_the_value(self, loss: Loss, sparse: bool) -> None:
        f = make(loss, sparse=sparse)
        theta, v = np.random.default_rng(2).normal(size=(2, DIM))
        h = 1e-6
        slope = (f.value(theta + h * v) - f.value(theta - h * v)) / (2 * h)
        assert f.gradient(theta) @ v == pytest.approx(slope, rel=1e-8)

    def test_the_hessian_is_the_slope_of_the_gradient(self, loss: Loss, sparse: bool) -> None:
        f = make(loss, sparse=sparse)
        theta, v = np.random.default_rng(3).normal(size=(2, DIM))
        h = 1e-6
        slope = (f.gradient(theta + h * v) - f.gradient(theta - h * v)) / (2 * h)
        np.testing.assert_allclose(f.hessian(theta) @ v, slope, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(f.hessian_vector(theta, v), f.hessian(theta) @ v, rtol=1e-12)

    def test_mu_and_L_enclose_the_spectrum(self, loss: Loss, sparse: bool) -> None:
        f = make(loss, sparse=sparse)
        assert f.mu == 2 * LAM * M / N0
        for theta in (np.zeros(DIM), np.random.default_rng(4).normal(size=DIM)):
            spectrum = np.linalg.eigvalsh(f.hessian(theta))
            assert f.mu <= spectrum[0] * (1 + 1e-12)
            assert spectrum[-1] <= f.L * (1 + 1e-12)
        # the bound is attained where l'' is largest: at theta = 0
        assert np.linalg.eigvalsh(f.hessian(np.zeros(DIM)))[-1] == pytest.approx(f.L, rel=1e-12)

    def test_the_sample_constant_is_that_of_the_worst_row(self, loss: Loss, sparse: bool) -> None:
        f = make(loss, sparse=sparse)
        dense = np.asarray(make(loss).rows.matrix())
        worst = (dense**2).sum(axis=1).max() * loss.curvature * M / N0
        assert f.L_sample == pytest.approx(worst, rel=1e-14)

    def test_a_quadratic_can_be_added(self, loss: Loss, sparse: bool) -> None:
        f = make(loss, sparse=sparse)
        g = f.plus_quadratic(0.5).plus_quadratic(0.25)
        theta, v = np.random.default_rng(6).normal(size=(2, DIM))
        assert g.value(theta) == pytest.approx(f.value(theta) + 0.375 * theta @ theta, rel=1e-14)
        np.testing.assert_allclose(g.gradient(theta), f.gradient(theta) + 0.75 * theta, rtol=1e-13)
        np.testing.assert_allclose(g.hessian(theta), f.hessian(theta) + 0.75 * np.eye(DIM))
        np.testing.assert_allclose(g.hessian_vector(theta, v), g.hessian(theta) @ v, rtol=1e-12)
        assert (g.mu, g.L) == (pytest.approx(f.mu + 0.75), pytest.approx(f.L + 0.75))


def test_shards_add_up_to_the_pooled_objective() -> None:
    whole = make(LOGISTIC)
    whole = Problem(whole.rows, whole.labels, LOGISTIC, n0=M, lam=LAM)
    theta = np.random.default_rng(5).normal(size=DIM)
    parts = [
        Problem(whole.rows.take(j), whole.labels[j], LOGISTIC, n0=M, lam=LAM)
        for j in np.array_split(np.arange(M), 4)
    ]
    assert sum(f.value(theta) for f in parts) == pytest.approx(whole.value(theta), rel=1e-14)
    np.testing.assert_allclose(sum(f.gradient(theta) for f in parts), whole.gradient(theta))
    assert sum(f.mu for f in parts) == pytest.approx(whole.mu, rel=1e-14)


@pytest.mark.parametrize("margin", [-1e4, -800.0, 0.0, 800.0, 1e4])
def test_the_logistic_loss_does_not_overflow(margin: float) -> None:
    f = Problem(rows_of([[1.0]]), np.array([1.0]), LOGISTIC, n0=1, lam=1e-9)
    theta = np.array([margin])
    assert np.isfinite(f.value(theta))
    assert np.isfinite(f.gradient(theta)).all()
    assert np.isfinite(f.hessian(theta)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lam": 0.0}, "lambda = 0"),
        ({"lam": float("nan")}, "lambda = nan"),
        ({"n0": 5}, "n0 = 5"),
        ({"labels": np.ones(3)}, "23 samples but 3 labels"),
        ({"labels": np.full(M, np.inf)}, "labels contain a value that is not finite"),
    ],
)
def test_impossible_problems_are_refused(change: dict[str, object], message: str) -> None:
    f = make(LOGISTIC)
    given = {"labels": f.labels, "n0": N0, "lam": LAM} | change
    with pytest.raises(ConfigError, match=message):
        Problem(f.rows, given["labels"], LOGISTIC, n0=given["n0"], lam=given["lam"])  # type: ignore[arg-type]


def test_samples_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ConfigError, match="not finite"):
        rows_of([[1.0, np.nan]])
    with pytest.raises(ConfigError, match=r"shape \(3,\)"):
        rows_of(np.ones(3))


def test_an_unknown_loss_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="'hinge': expected logistic or ridge"):
        loss_named("hinge")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("width", [DIM - 1, DIM + 1, 0])
class TestShapes:
    """Compiled loops index without looking: what does not fit must not reach them."""

    def test_a_vector_of_another_width_is_an_error_and_not_read_past_its_end(
        self, width: int, sparse: bool
    ) -> None:
        f, theta, v = make(LOGISTIC, sparse=sparse), np.zeros(width), np.zeros(DIM)
        b, code = f.labels, f.loss.code
        for entry in (
            lambda: f.value(theta),
            lambda: f.gradient(theta),
            lambda: f.hessian(theta),
            lambda: f.hessian_vector(theta, v),
            lambda: f.hessian_vector(v, theta),
            lambda: f.rows.dot(0, theta),
            lambda: f.rows.add_row(0, 1.0, theta),
            lambda: f.rows.add_slopes(code, b, v, 1.0, theta),
            lambda: Subproblem(f).gradient(theta),
        ):
            with pytest.raises(ConfigError, match=f"{width} entries.* {DIM} features"):
                entry()


@pytest.mark.parametrize("sparse", [False, True])
def test_samples_that_are_not_there_are_an_error(sparse: bool) -> None:
    f, theta, short = make(LOGISTIC, sparse=sparse), np.zeros(DIM), np.zeros(M - 1)
    for entry in (f.rows.sum_losses, f.rows.bends):
        with pytest.raises(ConfigError, match=f"{M - 1} numbers.* {M} samples"):
            entry(f.loss.code, short, theta)
    with pytest.raises(ConfigError, match=f"{M - 1} numbers.* {M} samples"):
        f.rows.weighted_gram(short)
    for j in (-1, M):
        with pytest.raises(ConfigError, match=f"sample {j} of {M}"):
            f.rows.dot(j, theta)
        with pytest.raises(ConfigError, match=f"sample {j} of {M}"):
            f.rows.add_row(j, 1.0, theta)
