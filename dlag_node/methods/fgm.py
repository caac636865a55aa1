"""Distributed FGM (Uribe, Lee, Gasnikov, Nedic 2021): the fast gradient method on the dual.

A dual approach for optimal algorithms in distributed optimization over networks. Worker i,
iteration k:

    theta_i ~ argmin f_i(theta) - <theta, x_i>, by the fast gradient method with L_i and mu_i until
              ||grad f_i(theta_i) - x_i|| <= eps sqrt(2 mu_i), so that the gap is at most eps^2
    y_i^+ = x_i - eta sum_{j in N(i)} U_ij theta_j,    eta = mu_min / sigma_1(U)
    x_i^+ = y_i^+ + (1 - sqrt q) / (1 + sqrt q) (y_i^+ - y_i),
              q = (mu_min / L_max) (sigma_{n-1}(U) / sigma_1(U))

It is SSDA's recursion with an inner solver and an accuracy of its own; sum_i x_i = 0 always. It was
published with the Laplacian (`--weights laplacian`) and takes whatever U the run has. Nothing
contracts the inner errors: an eps that is too large for the target stalls above it. `start=cold`,
as published, solves each subproblem from 0; `warm` starts from the last theta_i. Both presets are
one.

Deviation: theta^0 is computed to a gradient norm of 1e-10, as in every method of this flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, sqrt

from dlag_node.errors import ConfigError
from dlag_node.methods.assembly import guard_of
from dlag_node.methods.channel import Channel
from dlag_node.methods.dual import DualAscent, StepSizes
from dlag_node.methods.dual_parameters import require_start
from dlag_node.methods.spec import MethodSpec
from dlag_node.methods.theory import dual_constants
from dlag_node.methods.worker import Worker
from dlag_node.solvers import Oracle, Stop


@dataclass(frozen=True, slots=True)
class Parameters:
    """What can be set of distributed FGM; `agd` is the published inner solver."""

    eps: float = 1e-7
    start: str = "cold"
    solver: str = "agd"
    max_epochs: int = 100_000

    def __post_init__(self) -> None:
        if not (isfinite(self.eps) and self.eps > 0):
            raise ConfigError(f"eps = {self.eps}: expected a positive number")
        require_start(self.start)


def build(spec: MethodSpec, worker: Worker) -> DualAscent:
    """Distributed FGM for this worker."""
    wanted = spec.parameters(Parameters())
    problem = worker.problem
    constants = dual_constants(worker.spectrum, mu_min=worker.mu_min, L_max=worker.L_max)
    sizes = StepSizes(eta=1.0 / constants.beta, momentum=constants.momentum(1.0))
    oracle = Oracle(
        problem,
        solver=wanted.solver,
        stop=Stop("exact", wanted.eps * sqrt(2.0 * problem.mu)),
        rng=worker.random_stream(),
        max_epochs=wanted.max_epochs,
        cold=wanted.start == "cold",
    )
    return DualAscent(
        dim=problem.dim,
        oracle=oracle,
        channel=Channel(worker.problem.dim, worker.hood, rule=None),
        sizes=sizes,
        poly=None,
        gossip=[],
        guard=guard_of(constants, eta_beta=1.0, s=1.0, rule=None, oracle=oracle),
        parameters={
            "eta": sizes.eta,
            "momentum": sizes.momentum,
            "alpha": constants.alpha,
            "beta": constants.beta,
            "kappa": constants.kappa,
            "eps": wanted.eps,
            "start": wanted.start,
            "solver": wanted.solver,
        },
    )
