"""DIGing (Nedic, Olshevsky, Shi 2017): distributed inexact gradients, tracked.

Worker i, iteration k, from x_i = 0, y_i = grad f_i(0), with W = I - U:

    send x_i and y_i, as one vector
    x_i^+ = sum_j W_ij x_j - alpha y_i
    y_i^+ = sum_j W_ij y_j + grad f_i(x_i^+) - grad f_i(x_i)

so that sum_i y_i = sum_i grad f_i(x_i) always: y_i tracks the mean gradient.

alpha = alpha_L / L_max, and U is scaled down to sigma_1(U) <= sigma. The step that its paper proves
is too small to be of use, so `theory` is `paper`: alpha_L = 1/4 and sigma = 5/4. For equal
quadratics of curvature h the mode of W's eigenvalue w obeys

    (z - w)^2 + alpha h (z - 1) = 0

which leaves the unit circle through z = -1, at alpha h = (1 + w)^2 / 2. With w >= 1 - sigma = -1/4
that is 9/32, and alpha_L = 1/4 is below it on every graph. With W as the weights give it, it need
not be: on a 5x5 grid, where w = -0.486, workers with equal data diverge at alpha_L = 1/4.
"""

from __future__ import annotations

import numpy as np

from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Exchange, Flow, RoundReport
from dlag_node.methods.primal import PLAIN, Descent, StepParameters, descent
from dlag_node.methods.spec import MethodSpec, presets
from dlag_node.methods.worker import Worker
from dlag_node.problems import Problem

_PAPER = StepParameters(alpha_L=0.25, sigma=1.25)
DEFAULTS = presets(paper=_PAPER)


def build(spec: MethodSpec, worker: Worker) -> Diging:
    """DIGing for this worker."""
    wanted = spec.parameters(DEFAULTS[spec.preset], PLAIN)
    return Diging(worker.problem, descent(worker, wanted))


class Diging:
    """Worker i's side of DIGing."""

    STATE = ("k", "x", "y", "_gradient", "_guard")

    def __init__(self, problem: Problem, descent: Descent) -> None:
        self.problem = problem
        self.W = descent.W
        self.alpha = descent.alpha
        self.parameters = descent.parameters
        self.schedule = EVERYBODY_SPEAKS
        self.k = 0
        self.x: Array = np.zeros(problem.dim)
        self.y = self.x
        self._gradient = self.x  # grad f_i(x_i), from round 0 on
        # the slow root of (z - w)^2 + alpha h (z - 1), zeta = 1 - w, is about
        # 1 - zeta^2 / (2 zeta + alpha h), and alpha h <= alpha_L
        gap = descent.W.sigma_gap
        self._guard = descent.guard(mixing=2.0 / gap + descent.alpha_L / gap / gap)
        self.advice = self._guard.advice

    @property
    def theta(self) -> Array:
        """x_i^k."""
        return self.x

    @property
    def width(self) -> int:
        """It sends x_i and y_i, one behind the other."""
        return 2 * self.problem.dim

    def begin_at(self, theta: Array, g: Array) -> None:  # noqa: ARG002
        """y begins at the own gradient wherever x does, and is averaged from there."""
        self.x = theta

    def round(self) -> Flow[RoundReport]:
        """One iteration k; the first computes two gradients."""
        spent = self.problem.samples
        if self.k == 0:
            self._gradient = self.y = self.problem.gradient(self.x)
            spent += self.problem.samples
        sent = np.concatenate((self.x, self.y))
        inbox = yield Exchange(sent)
        x, y = np.split(self.W.mix(sent, inbox), 2)
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            x = x - self.alpha * self.y
        step = self._guard.step(self.k, self.x, x)
        gradient = self.problem.gradient(x)
        self.y = y + (gradient - self._gradient)
        self.x, self._gradient = x, gradient
        self.k += 1
        return RoundReport(gradients=spent, step=step, age=0)
