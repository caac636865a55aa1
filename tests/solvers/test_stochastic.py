"""Katyusha and SVRG against plain numpy, dense against sparse, and Lemma 1's contraction."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import scipy.sparse as sp

from dlag_node.problems import LOGISTIC, SQUARED, Array, Loss, Problem, rows_of
from tests.solvers import shards

LOSSES = pytest.mark.parametrize("loss", [LOGISTIC, SQUARED], ids=lambda loss: loss.name)
LAYOUTS = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
EPOCHS = 4


class Parts:
    """The smooth components of a shard in numpy: gradient j is (m/n0) l'(<a_j, theta>) a_j."""

    def __init__(self, f: Problem) -> None:
        A = f.rows.matrix()
        self.A = A.toarray() if sp.issparse(A) else A
        self.b, self.loss, self.weight = f.labels, f.loss, f.samples / f.n0

    def gradient(self, j: int, theta: Array) -> Array:
        s = self.A[j] @ theta
        slope = -self.b[j] / (1 + np.exp(self.b[j] * s)) if self.loss is LOGISTIC else s - self.b[j]
        return np.asarray(self.weight * slope * self.A[j])

    def mean(self, theta: Array) -> Array:
        return np.asarray(sum(self.gradient(j, theta) for j in range(len(self.b)))) / len(self.b)


def plain_katyusha(
    f: Problem, x: Array, start: Array, rng: np.random.Generator, passes: int
) -> Array:
    """Algorithm 1 of Allen-Zhu 2017, line by line."""
    parts, m, sigma, L = Parts(f), f.samples, f.mu, f.L_sample
    tau2, tau1 = 0.5, min(sqrt(passes * m * sigma) / sqrt(3 * L), 0.5)
    alpha = 1 / (3 * tau1 * L)
    y = z = snapshot = start
    for _ in range(EPOCHS):
        full = parts.mean(snapshot)
        total, weights = np.zeros(f.dim), 0.0
        for k, j in enumerate(rng.integers(m, size=passes * m)):
            v = tau1 * z + tau2 * snapshot + (1 - tau1 - tau2) * y
            estimate = full + parts.gradient(j, v) - parts.gradient(j, snapshot)
            ahead = (z - alpha * (estimate - x)) / (1 + alpha * sigma)
            y = v + tau1 * (ahead - z)
            z = ahead
            weight = (1 + alpha * sigma) ** k
            total, weights = total + weight * y, weights + weight
        snapshot = total / weights
    return snapshot


def plain_svrg(f: Problem, x: Array, start: Array, rng: np.random.Generator, passes: int) -> Array:
    """Proximal SVRG with the last iterate as the next snapshot."""
    parts, step, w = Parts(f), 0.1 / f.L_sample, start
    for _ in range(EPOCHS):
        snapshot, full = w, parts.mean(w)
        for j in rng.integers(f.samples, size=passes * f.samples):
            estimate = full + parts.gradient(j, w) - parts.gradient(j, snapshot)
            w = (w - step * (estimate - x)) / (1 + step * f.mu)
    return w


@LAYOUTS
@LOSSES
@pytest.mark.parametrize("passes", [1, 2, 3])
@pytest.mark.parametrize("lam", [1e-5, 1e-2, 3.0])  # tau_1 from small to its cap of 1/2
@pytest.mark.parametrize(
    ("solver", "plain"), [("katyusha", plain_katyusha), ("svrg", plain_svrg)], ids=["k", "s"]
)
def test_the_kernel_is_the_algorithm(
    solver: str, plain: object, lam: float, passes: int, loss: Loss, sparse: bool
) -> None:
    assert callable(plain)
    f = shards.shard(loss, sparse=sparse, lam=lam)
    x, start = shards.some_x(f), np.linspace(-1, 1, f.dim)
    found = shards.oracle(f, solver, f"epochs:{EPOCHS}", seed=5, passes=passes)(x, start)
    expected = plain(f, x, start, np.random.default_rng(5), passes)
    # the same steps, rounded in another order
    assert np.linalg.norm(found.theta - expected) <= 1e-12 * np.linalg.norm(expected)
    assert found.sample_gradients == EPOCHS * (passes + 1) * f.samples


@LOSSES
@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1e3])
@pytest.mark.parametrize("solver", ["katyusha", "svrg"])
def test_sparse_rows_give_what_dense_rows_give(solver: str, lam: float, loss: Loss) -> None:
    # most columns are rare: lags up to the whole epoch, and q^t down to zero for lam = 1e3
    rng = np.random.default_rng(0)
    A = rng.normal(size=(2000, 30)) * (rng.random((2000, 30)) < np.logspace(0, -4, 30))
    labels = rng.choice([-1.0, 1.0], 2000)
    x, start = 1e-2 * rng.normal(size=30), rng.normal(size=30)
    dense, sparse = (
        shards.oracle(Problem(rows_of(matrix), labels, loss, n0=4000, lam=lam), solver, "epochs:6")(
            x, start
        )
        for matrix in (A, sp.csr_array(A))
    )
    assert np.isfinite(dense.theta).all()
    gap = np.linalg.norm(dense.theta - sparse.theta)
    assert gap <= 1e-12 * np.linalg.norm(dense.theta)


@pytest.mark.parametrize("solver", ["katyusha", "svrg"])
def test_a_block_of_epochs_draws_what_single_epochs_draw(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = shards.shard(m=13)
    together = shards.oracle(f, solver, "epochs:5")(shards.some_x(f), np.zeros(f.dim))
    monkeypatch.setattr("dlag_node.solvers.calls._DRAWS", 1)
    apart = shards.oracle(f, solver, "epochs:5")(shards.some_x(f), np.zeros(f.dim))
    assert together.theta.tobytes() == apart.theta.tobytes()


@LAYOUTS
def test_thirty_epochs_of_katyusha_contract_as_lemma_1_asks(sparse: bool) -> None:
    """E ||theta^k - grad f^*(x)||^2 <= (c/2) ||theta^{k-1} - grad f^*(x)||^2 with c = 1e-4.

    How many epochs that takes depends on the condition number: here as in the paper's experiment,
    270 samples of 13 features in [-1, 1] over 25 workers, lambda = 0.01.
    """
    c, rng = 1e-4, np.random.default_rng(2)
    A, labels = rng.uniform(-1, 1, (11, 13)), rng.choice([-1.0, 1.0], 11)
    f = Problem(rows_of(sp.csr_array(A) if sparse else A), labels, LOGISTIC, n0=270, lam=0.01)
    x, start = 1e-3 * rng.normal(size=13), np.zeros(13)
    best = shards.oracle(f, "newton", "exact:1e-14")(x, start).theta
    oracle = shards.oracle(f, "katyusha", "epochs:30")
    errors = [float(np.sum((oracle(x, start).theta - best) ** 2)) for _ in range(50)]
    assert np.mean(errors) <= c / 2 * float(np.sum((start - best) ** 2))
