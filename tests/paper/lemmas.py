"""Both sides of the inequalities of Lemma 1 and Lemma 2, from a run that was watched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from coordinator.plan import Plan
from dlag_lab.workers import Workers
from dlag_node.methods.dual import DualAscent
from dlag_node.methods.lazy import LazyRule
from dlag_node.problems import Array, Problem
from dlag_node.rounds import Engine
from dlag_node.solvers import Oracle, parse_stop
from tests.methods.plans import Run, States, simulate

# What rounding may add to the length of theta_i - grad f_i^*(x_i), times mu_i: both ends are known
# to a gradient norm of 1e-13, or to where rounding drowns the gradient.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """A run of DLAG or MDLAG in the letters of the lemmas.

    Every array is (rounds, n, d): the paper's d x n matrices, transposed. `x` has one row more.
    """

    x: Array
    theta: Array
    theta_hat: Array
    exact: Array  # grad f_i^*(x_i^k), by Newton
    U: Array  # the gossip matrix: U, or P_K(U)
    mu: Array  # of every worker
    gamma: float
    c: float
    D: int
    ages: Array
    run: Run

    @property
    def rounds(self) -> int:
        return len(self.theta)

    @property
    def mu_min(self) -> float:
        return float(self.mu.min())


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """left <= (sqrt(right) + slack)^2, element by element; the first index is k."""

    left: Array
    right: Array
    slack: Array | float

    @property
    def violations(self) -> int:
        return int((np.sqrt(self.left) > np.sqrt(self.right) + self.slack).sum())

    @property
    def tightest(self) -> float:
        """The largest left / right where rounding plays no part."""
        plain = np.broadcast_to(np.sqrt(self.right) > 1e3 * self.slack, self.right.shape)
        return float((self.left[plain] / self.right[plain]).max(initial=0.0))


def watch(
    plan: Plan, rounds: int, prepare: Callable[[list[Engine]], None] = lambda _: None
) -> Watched:
    """Run the plan round by round, with the exact dual gradients beside it."""
    states = States()
    run = simulate(plan, rounds, prepare=prepare, finished=states.keep)
    method = run.engines[0].method
    assert isinstance(method, DualAscent)
    rule = method.channel.rule
    assert isinstance(rule, LazyRule)
    later = states["x"]  # x^{k+1} after round k
    x = np.concatenate([np.zeros_like(later[:1]), later])
    problems = Workers(plan).problems
    columns = [exact_along(f, x[:-1, i], run.Theta[:, i]) for i, f in enumerate(problems)]
    return Watched(
        x=x,
        theta=run.Theta,
        theta_hat=states["theta_hat"],
        exact=np.stack(columns, axis=1),
        U=plan.U if method.poly is None else method.poly.matrix(plan.U),
        mu=np.array([f.mu for f in problems]),
        gamma=rule.gamma,
        c=rule.c,
        D=rule.D,
        ages=np.array([[record.age for record in row] for row in run.records]),
        run=run,
    )


def exact_along(f: Problem, xs: Array, starts: Array) -> Array:
    """grad f_i^*(x) for every row x, to a gradient norm of 1e-13."""
    stop = parse_stop("exact:1e-13")
    newton = Oracle(f, solver="newton", stop=stop, rng=np.random.default_rng(0))
    return np.array([newton(x, start).theta for x, start in zip(xs, starts, strict=True)])


def lemma_1(seen: Watched) -> Sides:
    """Error propagating dynamics, worker by worker, for theta^0 as it was computed:

        ||theta_i^k - grad f_i^*(x_i^k)||^2 <= c^k ||theta_i^0 - grad f_i^*(x_i^0)||^2
            + sum_{j=0}^{k-1} c^{k-j} ||grad f_i^*(x_i^j) - grad f_i^*(x_i^{j+1})||^2

    The paper has the mean over Katyusha's draws and an exact theta^0, which makes the first term 0.
    """
    moved = squares(np.diff(seen.exact, axis=0))
    first = squares(seen.theta[0] - seen.exact[0])
    right = [seen.c**k * first + fading(moved, seen.c, k) for k in range(seen.rounds)]
    return Sides(squares(seen.theta - seen.exact), np.array(right), ROUNDING / seen.mu)


def lazy_condition(seen: Watched) -> Sides:
    """What the lazy condition leaves behind, whether worker i told theta_i^k or not:

        ||theta_hat_i^k - theta_i^k||^2 <= 3 / mu_min^2 * ( G_{k-D} + G_k + (c + gamma) S_k )

    with G_k = sum_{j=0}^{k-1} c^{k-j} ||x_i^j - x_i^{j+1}||^2 and S_k the sum of the last D steps
    ||x_i^j - x_i^{j+1}||^2, j = k-D, ..., k-1.
    """
    steps = squares(np.diff(seen.x, axis=0))
    right = [weighted(seen, steps, k, older=3, all_of=3) for k in range(seen.rounds)]
    return Sides(squares(seen.theta_hat - seen.theta), np.array(right), 1e-12)


def lemma_2_of_workers(seen: Watched) -> Sides:
    """Gradient error before it is mixed, the sum of its proof's two bounds for worker i:

    ||theta_hat_i^k - grad f_i^*(x_i^k)||^2 <=
        ( 6 G_{k-D} + 8 G_k + 6 (c + gamma) S_k ) / mu_min^2
    """
    steps = squares(np.diff(seen.x, axis=0))
    right = [weighted(seen, steps, k, older=6, all_of=8) for k in range(seen.rounds)]
    return Sides(squares(seen.theta_hat - seen.exact), np.array(right), _inexact(seen))


def lemma_2(seen: Watched) -> Sides:
    """Gradient error: with x = xi sqrt(U), g^k = grad F^*(x^k) sqrt(U), ||sqrt(U)||^4 = sigma_1^2,

        ||theta_hat^k sqrt(U) - g^k||^2 <=
            sigma_1^2 / mu_min^2 * ( 6 G_{k-D} + 8 G_k + 6 (c + gamma) S_k )

    where G and S have ||xi^j - xi^{j+1}||^2 for ||x_i^j - x_i^{j+1}||^2. For MDLAG U is P_K(U).
    """
    values, vectors = np.linalg.eigh(seen.U)
    values = np.where(values > 1e-12 * values[-1], values, 0.0)
    root = (vectors * np.sqrt(values)) @ vectors.T
    inverse = np.linalg.pinv(root, rcond=1e-7, hermitian=True)
    xi = np.einsum("ij,kjd->kid", inverse, seen.x)
    np.testing.assert_allclose(root @ xi[-1], seen.x[-1], atol=1e-9 * np.abs(seen.x).max())
    steps = squares(np.diff(xi, axis=0)).sum(axis=1)
    sigma_1 = float(values[-1])
    right = [sigma_1**2 * weighted(seen, steps, k, older=6, all_of=8) for k in range(seen.rounds)]
    error = np.einsum("ij,kjd->kid", root, seen.theta_hat - seen.exact)
    slack = np.sqrt(sigma_1) * float(np.linalg.norm(_inexact(seen)))
    return Sides(squares(error).sum(axis=1), np.array(right), slack)


def weighted(seen: Watched, steps: Array, k: int, *, older: float, all_of: float) -> Array:
    """( older G_{k-D} + all_of G_k + older (c + gamma) S_k ) / mu_min^2, sum by sum."""
    recent = steps[max(0, k - seen.D) : k].sum(axis=0)
    total = older * fading(steps, seen.c, k - seen.D) + all_of * fading(steps, seen.c, k)
    total = total + older * (seen.c + seen.gamma) * recent
    return np.asarray(total / seen.mu_min**2)


def fading(steps: Array, c: float, k: int) -> Array:
    """sum_{j=0}^{k-1} c^{k-j} steps_j; 0 where k < 1."""
    terms = [c ** (k - j) * steps[j] for j in range(max(0, k))]
    return np.asarray(sum(terms, start=np.zeros_like(steps[0])))


def squares(v: Array) -> Array:
    """||.||^2 along the last axis."""
    return np.asarray(np.einsum("...d,...d->...", v, v))


def _inexact(seen: Watched) -> Array:
    """theta^0 is known to a gradient norm of 1e-10: see `Oracle.exact`."""
    return 2e-10 / seen.mu
