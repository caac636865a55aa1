"""What can be set of SSDA, MSDA, DLAG and MDLAG, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dlag_node.errors import ConfigError
from dlag_node.methods.spec import FROM_THEOREM, require_positive
from dlag_node.solvers import SOLVERS, parse_stop


@dataclass(frozen=True, slots=True)
class DualParameters:
    """Everything that can be set of a dual method; which of them a method takes is its own matter.

    eta = eta_beta / beta. `gamma` and `c` may be "theorem" (Theorem 1), `stop` may be "theorem"
    (the contraction of Lemma 1, certified by gradient norms). K = 0 is floor(1/sqrt(zeta(U))).
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
        if self.solver not in SOLVERS:
            raise ConfigError(f"solver = {self.solver!r}: expected one of {', '.join(SOLVERS)}")
        if self.stop != FROM_THEOREM:
            parse_stop(self.stop)


def _fraction(name: str, value: float | str) -> None:
    if value == FROM_THEOREM:
        return
    if isinstance(value, str) or not (math.isfinite(value) and 0 <= value < 1):
        raise ConfigError(f"{name} = {value}: expected 0 <= {name} < 1, or {FROM_THEOREM!r}")
