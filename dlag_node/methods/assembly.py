"""Putting a dual method together from its parts, for one worker."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, sqrt

from dlag_node.errors import ConfigError
from dlag_node.graphs.chebyshev import Chebyshev, chebyshev_for
from dlag_node.methods.channel import Channel, Rule
from dlag_node.methods.channel_parameters import channel_form
from dlag_node.methods.dual import DualAscent, StepSizes
from dlag_node.methods.dual_parameters import BEST, CERTIFIED, DualParameters
from dlag_node.methods.guard import Guard, Pace
from dlag_node.methods.lazy import LazyRule, StepRule
from dlag_node.methods.mixing import mixing_for
from dlag_node.methods.promise import Promises, schedule_of
from dlag_node.methods.spec import FROM_THEOREM, MethodSpec
from dlag_node.methods.theory import DualConstants, certified_reduction
from dlag_node.methods.worker import Worker
from dlag_node.rounding import WHOLE
from dlag_node.solvers import Oracle, Stop, parse_stop, solver_for
from dlag_node.solvers.stops import EXACT

# What each part brings to the list of a method's parameters.
BASE = frozenset(
    {
        "eta_beta", "s", "solver", "stop", "max_epochs", "start", "passes", "form", "weights",
        "constants",
    }
)  # fmt: skip
LAZY = frozenset({"gamma", "c", "D", "rule", "tau", "mu", "predict", "promise"})
MULTI = frozenset({"K"})

# eta = 2 / (15 beta) and s = 10 are Theorem 1's.
EXACT_PAPER = DualParameters(stop="exact:1e-10")
LAZY_PAPER = DualParameters()
LAZY_THEORY = DualParameters(
    eta_beta=2.0 / 15.0, s=10.0, gamma=FROM_THEOREM, c=FROM_THEOREM, stop=FROM_THEOREM
)
# Nothing to tune: docs/beyond.md derives and measures each of them.
EXACT_AUTO = DualParameters(solver=BEST, stop="exact:1e-10", weights="curvature", constants="tight")
LAZY_AUTO = replace(EXACT_AUTO, stop="certified:0.5", rule="steps", D=20, promise=2)

_SMALL = 1e-8  # about the reduction that `exact` stops ask for


def assemble(
    spec: MethodSpec,
    worker: Worker,
    *,
    defaults: dict[str, DualParameters],
    takes: frozenset[str],
    lazy_gossip: bool = False,
) -> DualAscent:
    """The dual method whose parts are those that its parameters `takes` belong to.

    With `lazy_gossip` all K exchanges of a round are lazy, not the first alone.
    """
    wanted = spec.parameters(defaults[spec.preset], takes)
    mixing = mixing_for(worker, wanted.weights)
    poly = chebyshev_for(mixing.spectrum, wanted.K or None) if takes >= MULTI else None
    constants = mixing.constants(worker, poly, tight=wanted.constants == "tight")
    lazy = takes >= LAZY
    dim = worker.problem.dim
    scales = () if poly is None else tuple(a_l**2 for a_l in poly.a[1 : poly.K])
    how = channel_form(wanted.predict, wanted.form)

    def channel(rule: Rule | None, safe: int = 0) -> Channel:
        promises = None
        if rule is not None and wanted.promise:
            promises = Promises(dim, wanted.promise, fading=rule.FADING, safe=safe)
        return Channel(dim, mixing.hood, rule=rule, promises=promises, how=how)

    oracle = _oracle(wanted, constants, worker)
    rule = _rule(wanted, constants, worker) if lazy else None
    sizes = StepSizes(eta=wanted.eta_beta / constants.beta, momentum=constants.momentum(wanted.s))
    return DualAscent(
        dim=dim,
        oracle=oracle,
        channel=channel(rule, _safe_promise(rule, wanted, oracle.stop, worker)),
        sizes=sizes,
        poly=poly,
        gossip=[
            channel(_rule(wanted, constants, worker, scale) if lazy_gossip else None)
            for scale in scales
        ],
        guard=guard_of(constants, eta_beta=wanted.eta_beta, s=wanted.s, rule=rule, oracle=oracle),
        parameters=_effective(wanted, constants, sizes, poly, lazy=lazy),
        schedule=schedule_of(
            wanted.promise if lazy else 0,
            exchanges=1 + len(scales),
            lazy=1 + len(scales) if lazy_gossip else 1,
        ),
    )


def guard_of(
    constants: DualConstants, *, eta_beta: float, s: float, rule: Rule | None, oracle: Oracle
) -> Guard:
    """The guard of a dual method: what its steps should be like, and what to change."""
    eta = eta_beta / constants.beta
    change = f"eta_beta (eta = {eta:g})"
    if rule is not None:
        change = f"{rule} or {change}"
    return Guard(
        usual=eta,  # the step to which thetas that differ by 1 lead
        advice=f"lower {change}, or solve the subproblem further than stop={oracle.stop}",
        pace=Pace(
            efold=constants.efold(eta_beta, s)
            + (0 if rule is None else rule.D)
            + oracle.stop.efold(constants.kappa_F),
            noise=constants.gain(eta_beta, s) * oracle.stop.lasting,
        ),
    )


def _rule(
    wanted: DualParameters, constants: DualConstants, worker: Worker, scale: float = 1.0
) -> Rule:
    """The lazy condition that was asked for; z_l is about a_l times as large as theta."""
    if wanted.rule == "steps":
        return StepRule(
            tau=wanted.tau * sqrt(scale),
            D=wanted.D,
            mu=worker.problem.mu,
            past=max(10, ceil(sqrt(constants.kappa))),
        )
    return LazyRule(
        gamma=_gamma(wanted, constants),
        c=_c(wanted, constants),
        D=wanted.D,
        mu=worker.problem.mu if wanted.mu == "own" else worker.mu_min,
        scale=scale,
    )


def _safe_promise(rule: Rule | None, wanted: DualParameters, stop: Stop, worker: Worker) -> int:
    """How long worker i may be silent after theta_i was told, whatever its neighbors send.

    The steps of x_i in j exchanges move grad f_i^* by ||x^{k+j} - x^k|| / mu_i at most, and are in
    the window of the paper's condition themselves, which allows (docs/paper.md, section 7)

        j <= 3 (gamma + c) (mu_i / mu)^2    with exact dual gradients,
        j <= gamma (mu_i / mu)^2            with those of Lemma 1, whose errors take the rest
    """
    if not isinstance(rule, LazyRule) or wanted.predict != "none" or wanted.form != WHOLE:
        return 0
    exact = wanted.solver == "closed" or (stop.rule == "exact" and stop.amount <= EXACT.amount)
    share = 3.0 * (rule.gamma + rule.c) if exact else rule.gamma
    return min(rule.D, floor(share * (worker.problem.mu / rule.mu) ** 2))


def _gamma(wanted: DualParameters, constants: DualConstants) -> float:
    return constants.gamma(wanted.D) if isinstance(wanted.gamma, str) else wanted.gamma


def _c(wanted: DualParameters, constants: DualConstants) -> float:
    return constants.c(wanted.D) if isinstance(wanted.c, str) else wanted.c


def _oracle(wanted: DualParameters, constants: DualConstants, worker: Worker) -> Oracle:
    """The solver of the subproblem, with the stop rule that this worker's kappa_i asks for."""
    problem = worker.problem
    if wanted.stop == FROM_THEOREM or wanted.stop.startswith(CERTIFIED):
        stop = _certified_stop(wanted, constants, problem.L / problem.mu)
    else:
        stop = parse_stop(wanted.stop)
    solver = wanted.solver
    if solver == BEST:
        solver = solver_for(problem, stop.bounds[0] or _SMALL)
    return Oracle(
        problem,
        solver=solver,
        stop=stop,
        rng=worker.random_stream(),
        max_epochs=wanted.max_epochs,
        cold=wanted.start == "cold",
        passes=wanted.passes,
    )


def _certified_stop(wanted: DualParameters, constants: DualConstants, kappa_i: float) -> Stop:
    """The stop that certifies Lemma 1's contraction, for the theorem's c or a given one."""
    c = _c(wanted, constants) if wanted.stop == FROM_THEOREM else wanted.certified
    if not (reduction := certified_reduction(c, kappa_i)) > 0:
        raise ConfigError(
            f"stop = {wanted.stop} with c = {c:g}: no solver reduces its error to nothing; "
            "expected a larger c, a smaller D where c is the theorem's, or another stop rule"
        )
    return Stop("relative", reduction)


def _effective(
    wanted: DualParameters,
    constants: DualConstants,
    sizes: StepSizes,
    poly: Chebyshev | None,
    *,
    lazy: bool,
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
    if lazy and wanted.rule == "paper":
        effective |= {"gamma": _gamma(wanted, constants), "c": _c(wanted, constants)}
    elif lazy:
        effective |= {"tau": wanted.tau}
    if lazy:
        effective |= {"D": wanted.D}
    if poly is not None:
        effective |= {"K": poly.K, "c2": poly.c2, "c3": poly.c3}
    paper = DualParameters()
    for name in ("predict", "promise", "form", "weights", "constants", "mu"):
        if (value := getattr(wanted, name)) != getattr(paper, name):
            effective[name] = value
    return effective
