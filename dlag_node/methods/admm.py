"""Decentralized consensus ADMM (Shi, Ling, Yuan, Wu, Yin 2014), and its lazy form.

Worker i, iteration k, from x_i = p_i = 0, with deg_i neighbors (j runs over them, without i):

    x_i^+ = argmin f_i(x) + <p_i, x> + c sum_j ||x - (x_i + x_j) / 2||^2
    send x_i^+
    p_i^+ = p_i + c (deg_i x_i^+ - sum_j x_j^+)

The first line solves grad f_i(x) + 2 c deg_i x = c (deg_i x_i + sum_j x_j) - p_i by Newton, warm
started at x_i, to a gradient norm of `tol`. sum_i p_i = 0 always. The weights of U play no part.

x goes through a channel. `lazy-admm` tells it by the rule of its tau; then every x_i and x_j on the
right, the worker's own included, is the copy that both ends hold, so that the two ends of an edge
agree on its penalty and sum_i p_i = 0 whoever was silent.

Every c > 0 converges, so `theory` is `paper`: c = sqrt(mu_min L_max). The c for which its paper's
bound of the rate is best is many times too large in practice. c=balanced takes in the graph,

    c = 3/4 sqrt(sum_i mu_i * sum_i L_i) / (n * mean degree * sqrt(lambda_2))

with lambda_2 of the normalized Laplacian, by what the nodes reported at joining (docs/beyond.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.graphs.weights import symmetric
from dlag_node.methods.channel_parameters import LAZY, ChannelParameters
from dlag_node.methods.flow import Array, Flow, RoundReport
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.guard import Guard
from dlag_node.methods.spec import BALANCED, MethodSpec, presets, require_positive
from dlag_node.methods.worker import Everyone, Worker
from dlag_node.problems import eigenvalues
from dlag_node.solvers import Oracle, Stop

_NEWTON_STEPS = 1_000  # then it gives up; some five are usual


@dataclass(frozen=True, slots=True)
class AdmmParameters(ChannelParameters):
    """The penalty c (0: sqrt(mu_min L_max)), the gradient norm of the subproblem, the channel."""

    c: float | str = 0.0
    tol: float = 1e-10

    def __post_init__(self) -> None:
        ChannelParameters.__post_init__(self)
        allowed = (
            self.c == BALANCED if isinstance(self.c, str) else isfinite(self.c) and self.c >= 0
        )
        if not allowed:
            raise ConfigError(
                f"c = {self.c}: expected a positive number, 0 (by mu and L) or {BALANCED!r}"
            )
        require_positive("tol", self.tol)


_PLAIN = frozenset({"c", "tol"})
DEFAULTS = presets(paper=AdmmParameters(), auto=AdmmParameters(c=BALANCED))
LAZY_DEFAULTS = presets(paper=AdmmParameters(c=BALANCED, tau=0.8, predict="linear", promise=2))


def build(spec: MethodSpec, worker: Worker) -> Admm:
    """Decentralized ADMM for this worker."""
    return Admm(worker, spec.parameters(DEFAULTS[spec.preset], _PLAIN))


def build_lazy(spec: MethodSpec, worker: Worker) -> Admm:
    """Lazy decentralized ADMM for this worker."""
    return Admm(worker, spec.parameters(LAZY_DEFAULTS[spec.preset], _PLAIN | LAZY))


def balanced_penalty(everyone: Everyone) -> float:
    """The c of `c=balanced`."""
    degrees = everyone.degrees
    n = len(degrees)
    scale = 1.0 / np.sqrt(degrees)
    laplacian = symmetric(n, everyone.edges, [-1.0] * len(everyone.edges))
    lambda_2 = float(eigenvalues(scale[:, None] * laplacian * scale)[1])
    h = sqrt(sum(everyone.mu) * sum(everyone.L)) / n
    return 0.75 * h / (float(degrees.mean()) * sqrt(lambda_2))


class Admm:
    """Worker i's side of decentralized ADMM; the channel mixes to deg_i x_hat_i - sum_j x_hat_j."""

    STATE = ("k", "x", "p", "oracle", "channel", "_guard")

    def __init__(self, worker: Worker, wanted: AdmmParameters) -> None:
        if isinstance(wanted.c, str):
            self.c = balanced_penalty(worker.all_about_everyone("c=balanced"))
        else:
            self.c = wanted.c or sqrt(worker.mu_min * worker.L_max)
        self.degree = float(len(worker.hood.weights))
        dim = worker.problem.dim
        self.oracle = Oracle(
            worker.problem.plus_quadratic(2.0 * self.c * self.degree),
            solver="newton",
            stop=Stop("exact", wanted.tol),
            rng=worker.random_stream(),
            max_epochs=_NEWTON_STEPS,
        )
        laplacian = Neighborhood(self.degree, dict.fromkeys(worker.hood.weights, -1.0))
        self.channel = wanted.channel(dim, laplacian)
        self.parameters: dict[str, float | int | str] = {
            "c": self.c,
            "tol": wanted.tol,
            **wanted.effective,
        }
        self.schedule = wanted.schedule
        self.k = 0
        self.x: Array = np.zeros(dim)
        self.p: Array = np.zeros(dim)
        # thetas that differ by 1 lead to a step of about 1
        tau = f"lower tau = {wanted.tau:g}, " if wanted.tau else ""
        advice = f"{tau}lower tol = {wanted.tol:g}, or change c = {self.c:g}"
        self._guard = Guard(usual=1.0, advice=advice)
        self.advice = self._guard.advice

    @property
    def theta(self) -> Array:
        """x_i^k."""
        return self.x

    @property
    def width(self) -> int:
        """It sends x_i."""
        return len(self.x)

    def begin_at(self, theta: Array, g: Array) -> None:
        """grad f_i(theta) + p = 0 if theta is the minimiser, and everybody knows of it."""
        self.x, self.p = theta, -g
        self.channel.begin_at(theta)

    def round(self) -> Flow[RoundReport]:
        """One iteration k."""
        known, apart = self.channel.known, self.channel.mixed
        both = 2.0 * self.degree * known - apart  # deg_i x_hat_i + sum_j x_hat_j
        solution = self.oracle(self.c * both - self.p, self.x)
        step = self._guard.step(self.k, self.x, solution.theta)
        self.x = solution.theta
        apart = yield from self.channel.share(self.x, always=self.k == 0)
        self.p = self.p + self.c * apart
        self.k += 1
        return RoundReport(solution.sample_gradients, step, self.channel.age, self.channel.overdue)
