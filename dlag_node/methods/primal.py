"""What EXTRA, exact diffusion and DIGing share: the step alpha, the matrix W, what can be set."""

from __future__ import annotations

from dataclasses import dataclass

from dlag_node.errors import ConfigError
from dlag_node.methods.averaging import Averaging, averaging
from dlag_node.methods.guard import Guard
from dlag_node.methods.spec import require_positive
from dlag_node.methods.worker import Worker


@dataclass(frozen=True, slots=True)
class StepParameters:
    """alpha = alpha_L / L_max; W = I - U for a U that is scaled down to sigma_1(U) <= sigma."""

    alpha_L: float
    sigma: float

    def __post_init__(self) -> None:
        require_positive("alpha_L", self.alpha_L)
        require_sigma(self.sigma)


@dataclass(frozen=True, slots=True)
class Descent:
    """The step and the averaging of a run, and row i of its W."""

    alpha: float
    alpha_L: float
    W: Averaging

    @property
    def parameters(self) -> dict[str, float | int | str]:
        """What the run really uses, the same for every worker."""
        return {"alpha": self.alpha, "alpha_L": self.alpha_L, "sigma": self.W.sigma_1}

    def guard(self) -> Guard:
        """Ends a run whose alpha is too large for its W."""
        return Guard(
            usual=1.0,  # thetas that differ by 1 lead to a step of about 1
            advice=f"lower alpha_L (alpha_L = {self.alpha_L:g}) or sigma ({self.W.sigma_1:g})",
        )


def descent(worker: Worker, wanted: StepParameters) -> Descent:
    """The descent that was asked for, on this worker's graph and data."""
    W = averaging(worker, sigma=wanted.sigma)
    return Descent(wanted.alpha_L / worker.L_max, wanted.alpha_L, W)


def require_sigma(sigma: float) -> None:
    """ConfigError unless 0 < sigma < 2: then the eigenvalues of W are above -1."""
    if not 0 < sigma < 2:
        raise ConfigError(f"sigma = {sigma}: expected 0 < sigma < 2")
