"""Putting a dual method together from its parts, for one worker."""

from __future__ import annotations

from dlag_node.graphs.chebyshev import Chebyshev, chebyshev_for
from dlag_node.methods.dual import DualAscent, StepSizes
from dlag_node.methods.dual_parameters import DualParameters
from dlag_node.methods.lazy import LazyRule
from dlag_node.methods.spec import FROM_THEOREM, MethodSpec
from dlag_node.methods.theory import DualConstants, certified_reduction, dual_constants
from dlag_node.methods.worker import Worker
from dlag_node.solvers import Oracle, parse_stop

# What each part brings to the list of a method's parameters.
BASE = frozenset({"eta_beta", "s", "solver", "stop", "max_epochs"})
LAZY = frozenset({"gamma", "c", "D"})
MULTI = frozenset({"K"})

# eta = 2 / (15 beta) and s = 10 are Theorem 1's.
EXACT_PAPER = DualParameters(stop="exact:1e-10")
LAZY_PAPER = DualParameters()
LAZY_THEORY = DualParameters(
    eta_beta=2.0 / 15.0, s=10.0, gamma=FROM_THEOREM, c=FROM_THEOREM, stop=FROM_THEOREM
)


def assemble(
    spec: MethodSpec, worker: Worker, *, defaults: dict[str, DualParameters], takes: frozenset[str]
) -> DualAscent:
    """The dual method whose parts are those that its parameters `takes` belong to."""
    wanted = spec.parameters(defaults[spec.preset], takes)
    poly: Chebyshev | None = None
    spectrum = worker.spectrum
    if takes >= MULTI:
        poly = chebyshev_for(worker.spectrum, wanted.K or None)
        spectrum = poly.of_spectrum(worker.spectrum)
    constants = dual_constants(
        spectrum, mu_min=worker.mu_min, L_max=worker.L_max, multi=poly is not None
    )
    sizes = StepSizes(eta=wanted.eta_beta / constants.beta, momentum=constants.momentum(wanted.s))
    lazy: LazyRule | None = None
    if takes >= LAZY:
        lazy = LazyRule(
            gamma=constants.gamma(wanted.D) if isinstance(wanted.gamma, str) else wanted.gamma,
            c=_c(wanted, constants),
            D=wanted.D,
            mu_min=worker.mu_min,
        )
    oracle = Oracle(
        worker.problem,
        solver=wanted.solver,
        stop=parse_stop(_stop(wanted, constants, worker)),
        rng=worker.random_stream(),
        max_epochs=wanted.max_epochs,
    )
    return DualAscent(
        dim=worker.problem.dim,
        oracle=oracle,
        hood=worker.hood,
        sizes=sizes,
        lazy=lazy,
        poly=poly,
        parameters=_effective(wanted, constants, sizes, lazy, poly),
    )


def _c(wanted: DualParameters, constants: DualConstants) -> float:
    return constants.c(wanted.D) if isinstance(wanted.c, str) else wanted.c


def _stop(wanted: DualParameters, constants: DualConstants, worker: Worker) -> str:
    if wanted.stop != FROM_THEOREM:
        return wanted.stop
    kappa_i = worker.problem.L / worker.problem.mu
    return f"relative:{certified_reduction(_c(wanted, constants), kappa_i)!r}"


def _effective(
    wanted: DualParameters,
    constants: DualConstants,
    sizes: StepSizes,
    lazy: LazyRule | None,
    poly: Chebyshev | None,
) -> dict[str, float | int | str]:
    """What the run really uses, by the paper's letters; the same for every worker."""
    effective: dict[str, float | int | str] = {
        "eta": sizes.eta,
        "s": wanted.s,
        "momentum": sizes.momentum,
        "alpha": constants.alpha,
        "beta": constants.beta,
        "kappa": constants.kappa,
        "solver": wanted.solver,
        "stop": wanted.stop,
    }
    if lazy is not None:
        effective |= {"gamma": lazy.gamma, "c": lazy.c, "D": lazy.D}
    if poly is not None:
        effective |= {"K": poly.K, "c2": poly.c2, "c3": poly.c3}
    return effective
