"""Exact diffusion (Yuan, Ying, Zhao, Sayed 2018): adapt, correct, combine; and its lazy form.

Worker i, iteration k, from x_i = psi_i = 0, with Wt = (I + W) / 2 = I - U/2:

    psi_i^+ = x_i - alpha grad f_i(x_i)             adapt
    phi_i   = psi_i^+ + x_i - psi_i                 correct
    send phi_i
    x_i^+   = sum_j Wt_ij phi_j                     combine

With y_i = psi_i - x_i, the sum of all (U/2) phi so far, that is phi_i = x_i - alpha grad f_i(x_i) -
y_i, which is how it is computed: phi goes through a channel, and the copies phi_hat are mixed,

    x_i^+ = phi_i - sum_j (U/2)_ij phi_hat_j,    y_i^+ = y_i + sum_j (U/2)_ij phi_hat_j

so that sum_i y_i = 0 whoever was silent. `lazy-exact-diffusion` tells phi by the rule of its tau.
`local` steps phi <- phi - alpha grad f_i(phi) - y_i / local may come between two exchanges, as in
Scaffnew (Mishchenko, Malinovsky, Stich, Richtarik 2022), which has a server in the middle.

alpha = alpha_L / L_max, and U is scaled down to sigma_1(U) <= sigma, which keeps Wt positive
definite. For smooth f it is NIDS (Li, Shi, Yan 2019), which converges for alpha < 2 / L_max on
every graph: the presets `paper` and `theory` both take half of that, the lazy form nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.methods.channel_parameters import LAZY
from dlag_node.methods.flow import Array, Flow, RoundReport
from dlag_node.methods.primal import PLAIN, Descent, StepParameters, descent
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker
from dlag_node.problems import Problem


@dataclass(frozen=True, slots=True)
class DiffusionParameters(StepParameters):
    """The step, the channel, and how many local steps come before an exchange."""

    local: int = 1

    def __post_init__(self) -> None:
        StepParameters.__post_init__(self)
        if self.local < 1:
            raise ConfigError(f"local = {self.local}: expected a whole number of at least 1")


DEFAULTS = presets(paper=DiffusionParameters())
LAZY_DEFAULTS = presets(
    paper=DiffusionParameters(alpha_L=1.9, tau=0.8, predict="linear", promise=2)
)


def build(spec: MethodSpec, worker: Worker) -> ExactDiffusion:
    """Exact diffusion for this worker."""
    wanted = spec.parameters(DEFAULTS[spec.preset], PLAIN | {"local"})
    return ExactDiffusion(worker.problem, descent(worker, wanted), local=wanted.local)


def build_lazy(spec: MethodSpec, worker: Worker) -> ExactDiffusion:
    """Lazy exact diffusion for this worker."""
    wanted = spec.parameters(LAZY_DEFAULTS[spec.preset], PLAIN | LAZY | {"local"})
    return ExactDiffusion(worker.problem, descent(worker, wanted), local=wanted.local)


class ExactDiffusion:
    """Worker i's side of exact diffusion."""

    STATE = ("k", "x", "y", "channel", "_guard")

    def __init__(self, problem: Problem, descent: Descent, *, local: int = 1) -> None:
        self.problem = problem
        self.local = local
        self.alpha = descent.alpha
        self.channel = descent.channel.channel(problem.dim, descent.W.halved().hood)
        self.parameters = descent.parameters | ({"local": local} if local > 1 else {})
        self.schedule = descent.channel.schedule
        self.k = 0
        self.x: Array = np.zeros(problem.dim)
        self.y: Array = np.zeros(problem.dim)
        # NIDS contracts its dual part by 1 - sigma_gap / 2, and its primal part as descent does
        self._guard = descent.guard(mixing=2.0 + 2.0 * descent.alpha_L / descent.W.sigma_gap)
        self.advice = self._guard.advice

    @property
    def theta(self) -> Array:
        """x_i^k."""
        return self.x

    @property
    def width(self) -> int:
        """It sends phi_i."""
        return self.problem.dim

    def begin_at(self, theta: Array, g: Array) -> None:
        """y makes up for the gradient in each of the local steps."""
        self.x, self.y = theta, -self.alpha * self.local * g

    def round(self) -> Flow[RoundReport]:
        """One iteration k."""
        phi = self.x
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            for _ in range(self.local):
                phi = phi - self.alpha * self.problem.gradient(phi) - self.y / self.local
        self._guard.step(self.k, self.x, phi)  # nothing that is not finite leaves
        apart = yield from self.channel.share(phi, always=self.k == 0)
        with np.errstate(over="ignore", invalid="ignore"):
            x = phi - apart
        step = self._guard.step(self.k, self.x, x)
        self.x, self.y = x, self.y + apart
        self.k += 1
        return RoundReport(
            self.local * self.problem.samples, step, self.channel.age, self.channel.overdue
        )
