"""EXTRA (Shi, Ling, Wu, Yin 2015): an exact first-order algorithm, and its lazy form.

Worker i, iteration k, from x_i^0 = 0, with W = I - U and Wt = (I + W) / 2:

    send x_i^k
    x_i^1     = sum_j W_ij x_j^0 - alpha grad f_i(x_i^0)
    x_i^{k+1} = x_i^k + sum_j W_ij x_j^k - sum_j Wt_ij x_j^{k-1}
                - alpha (grad f_i(x_i^k) - grad f_i(x_i^{k-1}))

x goes through a channel: sum_j W_ij x_j is computed as x_i - sum_j U_ij x_hat_j over the copies, of
which the sum over all workers is zero whoever was silent. `lazy-extra` tells x by the rule of its
tau.

alpha = alpha_L / L_max, and U is scaled down to sigma_1(U) <= sigma. The paper proves convergence
for alpha < 2 lmin(Wt) / L_max; the preset `theory` takes half of that (alpha_L = "theorem") and W
nearly as it is. The preset `paper` takes more. For equal quadratics of curvature h the mode of W's
eigenvalue w obeys

    z^2 - (1 + w - alpha h) z + (1 + w) / 2 - alpha h = 0

which leaves the unit circle through z = -1, at alpha h = (5 + 3 w) / 4. With w >= 1 - sigma = -1/4
that is 17/16, and alpha_L = 1 is below it on every graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.methods.averaging import averaging
from dlag_node.methods.channel_parameters import LAZY, ChannelParameters
from dlag_node.methods.flow import Array, Flow, RoundReport
from dlag_node.methods.primal import PLAIN, Descent, require_sigma
from dlag_node.methods.spec import FROM_THEOREM, MethodSpec, presets, require_positive
from dlag_node.methods.worker import Worker
from dlag_node.problems import Problem


@dataclass(frozen=True, slots=True)
class ExtraParameters(ChannelParameters):
    """alpha = alpha_L / L_max, where "theorem" is lmin(Wt); sigma as in StepParameters."""

    alpha_L: float | str = 1.0
    sigma: float = 1.25

    def __post_init__(self) -> None:
        ChannelParameters.__post_init__(self)
        if not isinstance(self.alpha_L, str):
            require_positive("alpha_L", self.alpha_L)
        elif self.alpha_L != FROM_THEOREM:
            raise ConfigError(
                f"alpha_L = {self.alpha_L!r}: expected a positive number or {FROM_THEOREM!r}"
            )
        require_sigma(self.sigma)


DEFAULTS = presets(paper=ExtraParameters(), theory=ExtraParameters(alpha_L=FROM_THEOREM, sigma=1.9))
LAZY_DEFAULTS = presets(paper=ExtraParameters(tau=0.8, predict="linear", promise=2))


def build(spec: MethodSpec, worker: Worker) -> Extra:
    """EXTRA for this worker."""
    return _build(worker, spec.parameters(DEFAULTS[spec.preset], PLAIN))


def build_lazy(spec: MethodSpec, worker: Worker) -> Extra:
    """Lazy EXTRA for this worker."""
    return _build(worker, spec.parameters(LAZY_DEFAULTS[spec.preset], PLAIN | LAZY))


def _build(worker: Worker, wanted: ExtraParameters) -> Extra:
    W = averaging(worker, sigma=wanted.sigma)
    alpha_L = W.halved().lowest if isinstance(wanted.alpha_L, str) else wanted.alpha_L
    descent = Descent(alpha_L / worker.L_max, alpha_L, W, worker.kappa_F, wanted)
    return Extra(worker.problem, descent)


class Extra:
    """Worker i's side of EXTRA; `_last` is sum_j Wt_ij x_j^{k-1} - alpha grad f_i(x_i^{k-1})."""

    STATE = ("k", "x", "_last", "channel", "_guard")

    def __init__(self, problem: Problem, descent: Descent) -> None:
        self.problem = problem
        self.channel = descent.channel.channel(problem.dim, descent.W.hood)
        self.alpha = descent.alpha
        self.parameters = descent.parameters
        self.schedule = descent.channel.schedule
        self.k = 0
        self.x: Array = np.zeros(problem.dim)
        self._last = self.x  # x^0 in its place makes the first iteration as it should be
        # for equal quadratics, alpha h <= alpha_L and zeta = 1 - w, the slow root of
        # z^2 - (1 + w - alpha h) z + (1 + w)/2 - alpha h is about 1 - zeta / (2 zeta + 2 alpha h)
        self._guard = descent.guard(mixing=2.0 + 2.0 * descent.alpha_L / descent.W.sigma_gap)
        self.advice = self._guard.advice

    @property
    def theta(self) -> Array:
        """x_i^k."""
        return self.x

    @property
    def width(self) -> int:
        """It sends x_i."""
        return self.problem.dim

    def begin_at(self, theta: Array, g: Array) -> None:
        """`_last` as if x had been theta before, with -alpha g for what was mixed until then."""
        self.x, self._last = theta, theta - self.alpha * g

    def round(self) -> Flow[RoundReport]:
        """One iteration k."""
        gradient = self.problem.gradient(self.x)
        apart = yield from self.channel.share(self.x, always=self.k == 0)
        with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
            mixed = self.x - apart
            down = self.alpha * gradient
            x = self.x + (mixed - down) - self._last
            last = 0.5 * (self.x + mixed) - down
        step = self._guard.step(self.k, self.x, x)
        self.x, self._last = x, last
        self.k += 1
        return RoundReport(self.problem.samples, step, self.channel.age, self.channel.overdue)
