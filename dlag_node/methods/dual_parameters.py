"""What can be set of the dual methods, SSDA, MSDA, DLAG, MDLAG and mdlag-all, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from dlag_node.errors import ConfigError
from dlag_node.methods.channel_parameters import require_channel_form
from dlag_node.methods.promise import require_promise
from dlag_node.methods.spec import FROM_THEOREM, require_positive, worded
from dlag_node.rounding import WHOLE
from dlag_node.solvers import SOLVERS, parse_stop

BEST = "best"  # the solver that suits the shard
CERTIFIED = "certified:"
STARTS = ("cold", "warm")


@dataclass(frozen=True, slots=True)
class DualParameters:
    """Everything that can be set of a dual method; which of them a method takes is its own matter.

    eta = eta_beta / beta. `gamma` and `c` may be "theorem" (Theorem 1), `stop` may be "theorem"
    (the contraction of Lemma 1, certified by gradient norms) or "certified:c" for a c of one's own.
    K = 0 is floor(1/sqrt(zeta(U))). `start=cold` solves each subproblem from 0 instead of the last
    theta_i. An epoch of Katyusha or SVRG has `passes` m steps, and costs (passes + 1) m sample
    gradients.

    `rule` is the lazy condition: the paper's, with mu_min or with worker i's own mu_i (`mu=own`),
    or `steps` with its tau; `promise` is R, the longest silence that a delta promises, 0 (or "off")
    promises none, which is Algorithm 1. `weights` are the gossip weights of the run (`given`) or
    those by `curvature`; `constants` are Proposition 1's (`paper`), or the exact extreme
    eigenvalues (`tight`). `solver` may be `best`: by the shard's shape.
    """

    eta_beta: float = 1.0
    s: float = 1.0
    gamma: float | str = 1e-4
    c: float | str = 1e-4
    D: int = 50
    K: int = 0
    solver: str = "katyusha"
    stop: str = "epochs:30"
    max_epochs: int = 100_000
    start: str = "warm"
    passes: int = 2
    rule: str = "paper"
    tau: float = 0.5
    mu: str = "min"
    predict: str = "none"
    promise: int = worded(0, off=0)
    form: str = WHOLE
    weights: str = "given"
    constants: str = "paper"

    def __post_init__(self) -> None:
        require_positive("eta_beta", self.eta_beta)
        if not (math.isfinite(self.s) and self.s >= 1):
            raise ConfigError(f"s = {self.s}: expected a number of at least 1")
        _fraction("gamma", self.gamma)
        _fraction("c", self.c)
        if self.D < 1:
            raise ConfigError(f"D = {self.D}: expected a whole number of at least 1")
        if self.K < 0:
            raise ConfigError(f"K = {self.K}: expected 0 (by zeta) or a whole number of at least 1")
        if self.max_epochs < 1:
            raise ConfigError(f"max_epochs = {self.max_epochs}: expected at least 1")
        if self.passes < 1:
            raise ConfigError(f"passes = {self.passes}: expected a whole number of at least 1")
        require_start(self.start)
        _one_of("solver", self.solver, (*SOLVERS, BEST), renamed={"auto": BEST})
        _one_of("rule", self.rule, ("paper", "steps"))
        _one_of("mu", self.mu, ("min", "own"))
        _one_of("weights", self.weights, ("given", "curvature"))
        _one_of("constants", self.constants, ("paper", "tight"))
        require_positive("tau", self.tau)
        require_channel_form(self.predict, self.form)
        require_promise(self.promise, self.D)
        if self.stop.startswith(CERTIFIED):
            _fraction("stop=certified", self.certified)
            require_positive("stop=certified", self.certified)
        elif self.stop != FROM_THEOREM:
            parse_stop(self.stop)

    @property
    def certified(self) -> float:
        """c of `stop=certified:c`."""
        text = self.stop.removeprefix(CERTIFIED)
        try:
            return float(text)
        except ValueError:
            raise ConfigError(f"stop = {self.stop!r}: expected certified:c, 0 < c < 1") from None


def _one_of(
    name: str, value: str, names: tuple[str, ...], renamed: Mapping[str, str] = MappingProxyType({})
) -> None:
    if value not in names:
        now = f"{value} is called {renamed[value]} now; " if value in renamed else ""
        raise ConfigError(f"{name} = {value!r}: {now}expected one of {', '.join(names)}")


def require_start(start: str) -> None:
    """ConfigError unless it says where an inner solver begins: at the last theta_i, or at 0."""
    if start not in STARTS:
        raise ConfigError(f"start = {start!r}: expected one of {', '.join(STARTS)}")


def _fraction(name: str, value: float | str) -> None:
    if value == FROM_THEOREM:
        return
    if isinstance(value, str) or not (math.isfinite(value) and 0 <= value < 1):
        raise ConfigError(f"{name} = {value}: expected 0 <= {name} < 1, or {FROM_THEOREM!r}")
