"""DSBA (Shen, Mokhtari, Zhou, Zhao, Qian 2018): one proximal step of one sample a round.

Towards more efficient stochastic decentralized learning: SAGA with the sample's gradient taken at
the new point, on EXTRA's recursion. With B_j(z) = (m_i/n0) l'_j(<a_j, z>) a_j, so that the mean of
worker i's B_j plus mu_i z is grad f_i(z), and phi_j a_j the B_j at sample j's last step (at 0 to
begin with), worker i draws an own sample j in iteration t and solves for z_i^{t+1}:

    z + alpha B_j(z) + alpha mu_i z = psi,
    psi = (W z^t)_i - alpha (mean_l phi_l a_l - phi_j a_j)                              t = 0
    psi = ((I + W)/2 (2 z^t - z^{t-1}))_i
          + alpha ( (m_i - 1)/m_i delta_i + phi_j a_j + mu_i z_i^t )                    t >= 1

which is one equation in one unknown (`solvers.prox`); then delta_i = (phi_j^new - phi_j) a_j.
What travels is z_i^t; theta_i is z_i. W = I - U, with U scaled where that is not stable (see
`averaging`). Draws are private.

alpha = alpha_L / L with L = max_j m_i sup l'' ||a_j||^2 / n0 over all samples of all workers, which
the workers agree on (`Worker.L_sample`). alpha_L = 1 is the preset `paper`; `theory` is 1/24, the
step of the theorem, which is safe and slow. A round counts as one sample gradient: its one
proximal step costs a handful of slopes of one sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.methods.averaging import plain_averaging
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Exchange, Flow, RoundReport
from dlag_node.methods.guard import Guard
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker
from dlag_node.solvers.compiled import loss_slope
from dlag_node.solvers.prox import margin_of


@dataclass(frozen=True, slots=True)
class Parameters:
    """What can be set of DSBA."""

    alpha_L: float = 1.0  # the step size in units of 1/L

    def __post_init__(self) -> None:
        if not (isfinite(self.alpha_L) and self.alpha_L > 0):
            raise ConfigError(f"alpha_L = {self.alpha_L}: expected a positive number")


DEFAULTS = presets(paper=Parameters(), theory=Parameters(alpha_L=1.0 / 24.0))


def build(spec: MethodSpec, worker: Worker) -> Dsba:
    """DSBA for this worker."""
    L = worker.L_of_a_sample(spec.name)
    if not L > 0:
        raise ConfigError("dsba steps by 1/L of the samples, and all of them are zero")
    return Dsba(worker, L, spec.parameters(DEFAULTS[spec.preset]))


@dataclass(slots=True, eq=False)
class _Before:
    """Iteration t - 1: z_i, ((I - W) z)_i, and delta_i = change * a_j; all 0 at t = 0."""

    STATE: ClassVar[tuple[str, ...]] = ("z", "spread", "j", "change")
    z: Array
    spread: Array
    j: int
    change: float


class Dsba:
    """Worker i's side of DSBA; `draws` says which own sample is next."""

    STATE = ("_k", "theta", "phi", "_margins", "_before", "draws", "_guard")

    def __init__(self, worker: Worker, L: float, wanted: Parameters) -> None:
        f = worker.problem
        self._problem = f
        self._averaging = plain_averaging(worker)
        self._alpha = wanted.alpha_L / L
        self._share = f.samples / f.n0
        self._square_norms = f.rows.square_norms()
        self.draws: Iterator[int] = _Uniform(worker.random_stream(), f.samples)
        self.theta = np.zeros(f.dim)  # z
        self.phi = self._share * f.slopes_at_zero()
        self._margins = np.zeros(f.samples)  # of each sample's last step, where the next begins
        self._before = _Before(np.zeros(f.dim), np.zeros(f.dim), 0, 0.0)
        self.width = f.dim
        self.schedule = EVERYBODY_SPEAKS
        self._guard = Guard(usual=1.0, advice=f"lower alpha_L (alpha_L = {wanted.alpha_L:g})")
        self.advice = self._guard.advice
        self._k = 0
        self.parameters: dict[str, float | int | str] = {
            "alpha": self._alpha,
            "alpha_L": wanted.alpha_L,
            "L": L,
            "sigma_1": self._averaging.sigma_1,
        }

    def round(self) -> Flow[RoundReport]:
        """Iteration t."""
        f, z = self._problem, self.theta
        inbox = yield Exchange(z)
        spread = self._averaging.difference(z, inbox)
        j = next(self.draws)
        psi = self._forward(spread)
        f.rows.add_row(j, self._alpha * self.phi[j], psi)
        slope, self.theta = self._prox(j, psi)
        self._before = _Before(z, spread, j, float(slope - self.phi[j]))
        self.phi[j] = slope
        step = self._guard.step(self._k, z, self.theta)
        self._k += 1
        return RoundReport(gradients=1, step=step, age=0)

    def _forward(self, spread: Array) -> Array:
        """psi without its phi_j a_j."""
        f, z, alpha, before = self._problem, self.theta, self._alpha, self._before
        if self._k == 0:
            psi: Array = z - spread
            f.rows.add_slopes(f.loss.code, f.labels, np.zeros(f.dim), -alpha / f.n0, psi)
            return psi
        psi = (2.0 * z - before.z) - 0.5 * (2.0 * spread - before.spread) + (alpha * f.mu) * z
        f.rows.add_row(before.j, alpha * (f.samples - 1) / f.samples * before.change, psi)
        return psi

    def _prox(self, j: int, psi: Array) -> tuple[float, Array]:
        """phi_j and z of z + alpha B_j(z) + alpha mu_i z = psi; psi is used up."""
        f, b = self._problem, self._problem.labels[j]
        shrink = 1.0 + self._alpha * f.mu
        C = self._alpha * self._share * self._square_norms[j] / shrink
        beta = f.rows.dot(j, psi) / shrink
        s = margin_of(f.loss.code, b, f.loss.curvature, C, beta, self._margins[j])
        self._margins[j] = s
        slope = self._share * loss_slope(f.loss.code, s, b)
        f.rows.add_row(j, -self._alpha * slope, psi)
        return slope, psi / shrink


class _Uniform:
    """Own samples drawn one by one, for ever."""

    STATE = ("rng",)

    def __init__(self, rng: np.random.Generator, samples: int) -> None:
        self.rng = rng
        self._samples = samples

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        return int(self.rng.integers(self._samples))
