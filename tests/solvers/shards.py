"""Small shards for the tests of the solvers."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from dlag_node.problems import LOGISTIC, Array, Loss, Problem, rows_of
from dlag_node.solvers import Oracle, parse_stop

M, DIM, N0, LAM = 40, 6, 160, 2e-2


def shard(
    loss: Loss = LOGISTIC,
    *,
    sparse: bool = False,
    m: int = M,
    dim: int = DIM,
    lam: float = LAM,
    fill: float = 0.5,
) -> Problem:
    """A random shard; the same samples whether dense or sparse."""
    rng = np.random.default_rng(7)
    A = rng.normal(size=(m, dim)) * (rng.random((m, dim)) < fill)
    labels = rng.choice([-1.0, 1.0], m) if loss is LOGISTIC else rng.normal(size=m)
    return Problem(rows_of(sp.csr_array(A) if sparse else A), labels, loss, n0=4 * m, lam=lam)


def oracle(
    f: Problem,
    solver: str,
    stop: str,
    *,
    seed: int = 3,
    max_epochs: int = 10_000,
    passes: int = 2,
) -> Oracle:
    """An oracle with a seed of its own."""
    rng = np.random.default_rng(seed)
    rule = parse_stop(stop)
    return Oracle(f, solver=solver, stop=rule, rng=rng, max_epochs=max_epochs, passes=passes)


def some_x(f: Problem) -> Array:
    """A dual variable of the size of a gradient."""
    return 0.05 * np.random.default_rng(11).normal(size=f.dim)
