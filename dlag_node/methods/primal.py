"""What EXTRA, exact diffusion and DIGing share: the step alpha, the matrix W, what can be set."""

from __future__ import annotations

from dataclasses import dataclass

from dlag_node.errors import ConfigError
from dlag_node.methods.averaging import Averaging, averaging
from dlag_node.methods.channel_parameters import ALWAYS, ChannelParameters
from dlag_node.methods.guard import Guard, Pace
from dlag_node.methods.spec import require_positive
from dlag_node.methods.worker import Worker

PLAIN = frozenset({"alpha_L", "sigma"})  # what a method without laziness takes


@dataclass(frozen=True, slots=True)
class StepParameters(ChannelParameters):
    """alpha = alpha_L / L_max; W = I - U for a U that is scaled down to sigma_1(U) <= sigma.

    Then the channel's.
    """

    alpha_L: float = 1.0
    sigma: float = 1.9

    def __post_init__(self) -> None:
        ChannelParameters.__post_init__(self)
        require_positive("alpha_L", self.alpha_L)
        require_sigma(self.sigma)


@dataclass(frozen=True, slots=True)
class Descent:
    """The step and the averaging of a run, and row i of its W."""

    alpha: float
    alpha_L: float
    W: Averaging
    kappa_F: float
    channel: ChannelParameters = ALWAYS

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """What the run really uses, the same for every worker."""
        step = {"alpha": self.alpha, "alpha_L": self.alpha_L, "sigma": self.W.sigma_1}
        return step | self.channel.effective

    def guard(self, mixing: float) -> Guard:
        """Ends a run whose alpha is too large for its W.

        The mean goes as gradient descent does, by a factor of e in kappa_F / alpha_L rounds, and
        the differences in `mixing` rounds more, a bound that the method knows.
        """
        change = f"alpha_L (alpha_L = {self.alpha_L:g}) or sigma ({self.W.sigma_1:g})"
        if self.channel.tau:
            change = f"tau ({self.channel.tau:g}), {change}"
        return Guard(
            usual=1.0,  # thetas that differ by 1 lead to a step of about 1
            pace=Pace(efold=self.kappa_F / self.alpha_L + mixing),
            advice=f"lower {change}",
        )


def descent(worker: Worker, wanted: StepParameters) -> Descent:
    """The descent that was asked for, on this worker's graph and data."""
    W = averaging(worker, sigma=wanted.sigma)
    return Descent(wanted.alpha_L / worker.L_max, wanted.alpha_L, W, worker.kappa_F, wanted)


def require_sigma(sigma: float) -> None:
    """ConfigError unless 0 < sigma < 2: then the eigenvalues of W are above -1."""
    if not 0 < sigma < 2:
        raise ConfigError(f"sigma = {sigma}: expected 0 < sigma < 2")
