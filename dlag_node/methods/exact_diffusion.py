"""Exact diffusion (Yuan, Ying, Zhao, Sayed 2018): adapt, correct, combine.

Worker i, iteration k, from x_i = psi_i = 0, with Wt = (I + W) / 2 = I - U/2:

    psi_i^+ = x_i - alpha grad f_i(x_i)             adapt
    phi_i   = psi_i^+ + x_i - psi_i                 correct
    send phi_i
    x_i^+   = sum_j Wt_ij phi_j                     combine

alpha = alpha_L / L_max, and U is scaled down to sigma_1(U) <= sigma, which keeps Wt positive
definite. For smooth f it is NIDS (Li, Shi, Yan 2019), which converges for alpha < 2 / L_max on
every graph: the presets `paper` and `theory` both take half of that.
"""

from __future__ import annotations

import numpy as np

from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport
from dlag_node.methods.primal import Descent, StepParameters, descent
from dlag_node.methods.spec import MethodSpec
from dlag_node.methods.worker import Worker
from dlag_node.problems import Problem

_PAPER = StepParameters(alpha_L=1.0, sigma=1.9)
DEFAULTS = {"paper": _PAPER, "theory": _PAPER}


def build(spec: MethodSpec, worker: Worker) -> ExactDiffusion:
    """Exact diffusion for this worker."""
    wanted = spec.parameters(DEFAULTS[spec.preset])
    return ExactDiffusion(worker.problem, descent(worker, wanted))


class ExactDiffusion:
    """Worker i's side of exact diffusion."""

    def __init__(self, problem: Problem, descent: Descent) -> None:
        self.problem = problem
        self.Wt = descent.W.halved()
        self.alpha = descent.alpha
        self.parameters = descent.parameters
        self.k = 0
        self.x: Array = np.zeros(problem.dim)
        self.psi = self.x
        self._guard = descent.guard()

    @property
    def theta(self) -> Array:
        """x_i^k."""
        return self.x

    @property
    def width(self) -> int:
        """It sends phi_i."""
        return self.problem.dim

    def round(self) -> Flow[RoundReport]:
        """One iteration k."""
        gradient = self.problem.gradient(self.x)
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            psi = self.x - self.alpha * gradient
            phi = psi + self.x - self.psi
        self._guard.step(self.k, self.x, phi)  # nothing that is not finite leaves
        inbox = yield Exchange(phi)
        x = self.Wt.mix(phi, inbox)
        step = self._guard.step(self.k, self.x, x)
        self.x, self.psi = x, psi
        self.k += 1
        return RoundReport(gradients=self.problem.samples, step=step, age=0)
