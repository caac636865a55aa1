"""COLA (He, Bian, Jaggi 2018), decentralised linear learning, on the dual split by samples.

COLA minimises g(A x) + sum_j h_j(x_j), with the columns of A spread over the workers. Here a column
is a sample a_j with one dual variable x_j, g(v) = ||v||^2 / (4 lambda) and h_j the conjugate of the
loss, so that each worker keeps its own samples and has a theta of its own. Worker i, iteration k:

    w_i = sum_{j in N(i)} W_ij v_j,    W = I - U
    theta_hat_i ~ argmin (1/n0) sum_{j in i} l_j(<a_j, theta>) + <u_i, theta>
                  + (rho/2) ||theta - w_i / (2 lambda)||^2,    rho = 2 lambda / sigma'
    du_i = -(1/n0) sum_{j in i} l'_j(<a_j, theta_hat_i>) a_j - u_i
    u_i <- u_i + gamma du_i
    v_i <- w_i + gamma n du_i,         theta_i = v_i / (2 lambda)

with u_i = A_i x_i and sigma' = gamma n, the safe choice; gamma = 1 and 40 epochs of accelerated
gradient descent, warm started, are those of the DLAG paper's comparison. The x_j are never
stored: they enter by u_i alone. (1/n) sum_i v_i = sum_i u_i always, however inexact theta_hat_i is:
du_i is computed from it exactly.

COLA's K is the number of workers; here K is the Chebyshev degree, so it is `nodes`. Both presets
are one. With weights whose I - U would not be stable (the Laplacian) U is scaled: see `averaging`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.methods.averaging import plain_averaging
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Exchange, Flow, RoundReport
from dlag_node.methods.guard import Guard
from dlag_node.methods.spec import MethodSpec
from dlag_node.methods.worker import Worker
from dlag_node.problems import Problem
from dlag_node.solvers import Oracle, Stop


@dataclass(frozen=True, slots=True)
class Parameters:
    """What can be set of COLA."""

    gamma: float = 1.0  # share of the subproblem's step that is taken
    epochs: int = 40  # of the inner solver
    solver: str = "agd"

    def __post_init__(self) -> None:
        if not (isfinite(self.gamma) and 0 < self.gamma <= 1):
            raise ConfigError(f"gamma = {self.gamma}: expected 0 < gamma <= 1")
        if self.epochs < 1:
            raise ConfigError(f"epochs = {self.epochs}: expected a whole number of at least 1")


def build(spec: MethodSpec, worker: Worker) -> Cola:
    """COLA for this worker."""
    return Cola(worker, spec.parameters(Parameters()))


class Cola:
    """Worker i's side of COLA: v, u and the warm start theta_hat are what lasts."""

    STATE = ("_k", "v", "u", "theta", "theta_hat", "_oracle", "_guard")

    def __init__(self, worker: Worker, wanted: Parameters) -> None:
        f = worker.problem
        self._problem = f
        self._averaging = plain_averaging(worker)
        self._gamma = wanted.gamma
        self._nodes = worker.nodes
        sigma = wanted.gamma * worker.nodes
        self._curvature = 2.0 * f.lam  # of g*: theta = v / (2 lambda)
        self._rho = self._curvature / sigma
        # the subproblem is f_i with rho for mu_i, minus <theta, rho w / (2 lambda) - u>
        inner = Problem(f.rows, f.labels, f.loss, n0=f.n0, lam=self._rho * f.n0 / (2.0 * f.samples))
        self._oracle = Oracle(
            inner,
            solver=wanted.solver,
            stop=Stop("epochs", wanted.epochs),
            rng=worker.random_stream(),
        )
        self.v = np.zeros(f.dim)
        self.u = np.zeros(f.dim)
        self.theta = np.zeros(f.dim)
        self.theta_hat = np.zeros(f.dim)
        self.width = f.dim
        self.schedule = EVERYBODY_SPEAKS
        self._guard = Guard(usual=1.0, advice=f"raise epochs (epochs = {wanted.epochs})")
        self.advice = self._guard.advice
        self._k = 0
        self.parameters: dict[str, float | int | str] = {
            "gamma": wanted.gamma,
            "sigma": sigma,
            "rho": self._rho,
            "sigma_1": self._averaging.sigma_1,
            "epochs": wanted.epochs,
            "solver": wanted.solver,
        }

    def begin_at(self, theta: Array, g: Array) -> None:
        """u sums to 2 lambda theta = v; it is that of theta's slopes if that is the minimiser."""
        f = self._problem
        self.theta, self.theta_hat = theta, theta
        self.v = self._curvature * theta
        self.u = (f.samples / f.n0) * self.v - g

    def round(self) -> Flow[RoundReport]:
        """One iteration."""
        f = self._problem
        inbox = yield Exchange(self.v)
        w = self.v - self._averaging.difference(self.v, inbox)
        solution = self._oracle((self._rho / self._curvature) * w - self.u, self.theta_hat)
        self.theta_hat = solution.theta
        du = -self.u
        f.rows.add_slopes(f.loss.code, f.labels, self.theta_hat, -1.0 / f.n0, du)
        self.u = self.u + self._gamma * du
        self.v = w + self._gamma * self._nodes * du
        theta = self.v / self._curvature
        step = self._guard.step(self._k, self.theta, theta)
        self.theta = theta
        self._k += 1
        return RoundReport(gradients=solution.sample_gradients + f.samples, step=step, age=0)
