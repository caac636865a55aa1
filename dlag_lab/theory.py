"""What the paper predicts for a problem on a graph: its constants, its rounds, its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from coordinator.plan import Plan
from dlag_lab.bounds import (
    THEOREM_ETA_BETA,
    THEOREM_S,
    bracket,
    communication_bound,
    corollary_q,
    importance,
    predicted_rounds,
    scores,
)
from dlag_lab.result import Floats, Ints
from dlag_lab.workers import Workers
from dlag_node.errors import ConfigError
from dlag_node.graphs.chebyshev import chebyshev_for
from dlag_node.methods import parse_method
from dlag_node.methods.dual_parameters import DualParameters
from dlag_node.methods.theory import DualConstants, dual_constants

_LAZY = ("dlag", "mdlag")  # the methods of Theorem 3


@dataclass(frozen=True, slots=True)
class Promise:
    """Theorem 3 for one method and one gamma; `q` is Corollary 1's, which is on DLAG alone."""

    gamma: float
    D: int
    K: int
    h: tuple[float, ...]  # h_1..h_D
    bracket: float
    rounds: float  # that the bound is for
    messages: float  # the bound
    q: float | None


@dataclass(frozen=True, slots=True)
class Family:
    """A gossip matrix, U or P_K(U), with Theorem 1's or 2's constants and rounds for it."""

    zeta: float
    kappa: float
    alpha: float
    beta: float
    gamma: float
    c: float
    eta: float
    s: float
    rounds_exact: float  # SSDA, MSDA: sqrt(kappa) log(1/eps)
    rounds_lazy: float  # DLAG, MDLAG: sqrt(10 kappa) log(1/eps)
    promise: Promise  # with the theorem's gamma


@dataclass(frozen=True, slots=True)
class Theory:
    """All that `dlag theory` says."""

    nodes: int
    edges: int
    mu_min: float
    L_max: float
    kappa_F: float
    eps: float
    D: int
    K: int
    single: Family  # U: SSDA, DLAG
    multi: Family  # P_K(U): MSDA, MDLAG
    method: str
    own: Promise | None  # with the method's own gamma, where it has one
    own_rounds: float | None  # sqrt(s kappa) log(1/eps) with the method's own s
    mu: tuple[float, ...]
    H: tuple[float, ...]
    degrees: tuple[int, ...]
    shard_sizes: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain types, by the names of the fields."""
        return asdict(self)


def theory_of(plan: Plan, *, eps: float, rounds: int | None = None) -> Theory:
    """The predictions for a plan; Theorem 3 is priced by `rounds`, or by the predicted ones."""
    if not 0 < eps < 1:
        raise ConfigError(f"target = {eps}: expected a number between 0 and 1")
    workers = Workers(plan)
    problems = workers.problems
    mu = np.array([problem.mu for problem in problems])
    mu_min, L_max = float(mu.min()), max(problem.L for problem in problems)
    degrees = np.array([plan.graph.degree(i) for i in range(plan.nodes)], dtype=np.int64)
    parameters = workers.engine(0).method.parameters
    name = parse_method(plan.settings.method, plan.settings.preset).name
    D = int(parameters["D"]) if name in _LAZY else DualParameters().D
    poly = chebyshev_for(plan.spectrum, int(parameters["K"]) if "K" in parameters else None)
    network = _Network(importance(mu), degrees, len(plan.graph.edges), D, rounds)
    gossiped = poly.of_spectrum(plan.spectrum)
    U = dual_constants(plan.spectrum, mu_min=mu_min, L_max=L_max)
    P_K = dual_constants(gossiped, mu_min=mu_min, L_max=L_max, multi=True)
    own = own_rounds = None
    if name in _LAZY:
        kappa, K = (U.kappa, 1) if name == "dlag" else (P_K.kappa, poly.K)
        own_rounds = predicted_rounds(s=float(parameters["s"]), kappa=kappa, eps=eps)
        own = network.promise(
            float(parameters["gamma"]), K=K, multi=name == "mdlag", predicted=own_rounds
        )
    return Theory(
        nodes=plan.nodes,
        edges=len(plan.graph.edges),
        mu_min=mu_min,
        L_max=L_max,
        kappa_F=L_max / mu_min,
        eps=eps,
        D=D,
        K=poly.K,
        single=_family(U, network, zeta=plan.spectrum.zeta, eps=eps),
        multi=_family(P_K, network, zeta=gossiped.zeta, eps=eps, K=poly.K),
        method=plan.settings.method,
        own=own,
        own_rounds=own_rounds,
        mu=tuple(mu.tolist()),
        H=tuple(network.H.tolist()),
        degrees=tuple(degrees.tolist()),
        shard_sizes=tuple(len(part) for part in plan.parts),
    )


def bound_for(run: Mapping[str, Any], rounds: int) -> float | None:
    """Theorem 3's bound on the messages of a run as run.json has it, for so many of its rounds.

    None where the theorem says nothing: other methods, and runs of before mu_i was recorded.
    """
    if parse_method(run["method"], run["preset"]).name not in _LAZY or "mu" not in run:
        return None
    parameters, edges = run["parameters"], np.asarray(run["edges"], dtype=np.int64)
    h = scores(
        float(parameters["gamma"]),
        H=importance(np.asarray(run["mu"], dtype=np.float64)),
        degrees=np.bincount(edges.reshape(-1), minlength=run["nodes"]),
        D=int(parameters["D"]),
    )
    return communication_bound(h, edges=len(edges), rounds=rounds, K=int(parameters.get("K", 1)))


@dataclass(frozen=True, slots=True)
class _Network:
    H: Floats
    degrees: Ints
    edges: int
    D: int
    measured: int | None  # rounds

    def promise(self, gamma: float, *, K: int, multi: bool, predicted: float) -> Promise:
        h = scores(gamma, H=self.H, degrees=self.degrees, D=self.D)
        rounds = predicted if self.measured is None else float(self.measured)
        return Promise(
            gamma=gamma,
            D=self.D,
            K=K,
            h=tuple(h.tolist()),
            bracket=bracket(h, K),
            rounds=rounds,
            messages=communication_bound(h, edges=self.edges, rounds=rounds, K=K),
            q=None if multi else corollary_q(h),
        )


def _family(
    constants: DualConstants,
    network: _Network,
    *,
    zeta: float,
    eps: float,
    K: int | None = None,
) -> Family:
    kappa, gamma = constants.kappa, constants.gamma(network.D)
    lazy = predicted_rounds(s=THEOREM_S, kappa=kappa, eps=eps)
    return Family(
        zeta=zeta,
        kappa=kappa,
        alpha=constants.alpha,
        beta=constants.beta,
        gamma=gamma,
        c=constants.c(network.D),
        eta=THEOREM_ETA_BETA / constants.beta,
        s=THEOREM_S,
        rounds_exact=predicted_rounds(s=1.0, kappa=kappa, eps=eps),
        rounds_lazy=lazy,
        promise=network.promise(gamma, K=K or 1, multi=K is not None, predicted=lazy),
    )
