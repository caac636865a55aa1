"""The losses of a linear model: what happens at the margin s = <a_j, theta>.

Each formula exists once, as a compiled scalar function that the gradients here and the inner loops
of the solvers share. A loss is known to compiled code by its `code`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log1p

from dlag_node.errors import ConfigError
from dlag_node.problems.compiling import kernel


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss: its name, its code in compiled loops, and the largest second derivative it has."""

    name: str
    code: int
    curvature: float  # sup_s l''(s)


LOGISTIC = Loss("logistic", 0, 0.25)  # l(s) = log(1 + exp(-b s)), b in {-1, 1}
SQUARED = Loss("ridge", 1, 1.0)  # l(s) = (s - b)^2 / 2


def loss_named(name: str) -> Loss:
    """The loss of that name, or a ConfigError that lists the names there are."""
    for loss in (LOGISTIC, SQUARED):
        if loss.name == name:
            return loss
    raise ConfigError(f"unknown problem {name!r}: expected logistic or ridge")


@kernel
def loss_value(code: int, s: float, b: float) -> float:
    """l(s), without overflow."""
    if code == 0:
        z = b * s
        return max(0.0, -z) + log1p(exp(-abs(z)))
    return 0.5 * (s - b) * (s - b)


@kernel
def loss_slope(code: int, s: float, b: float) -> float:
    """l'(s); for the logistic loss -b / (1 + exp(b s)), without overflow."""
    if code == 0:
        z = b * s
        if z >= 0.0:
            e = exp(-z)
            return -b * e / (1.0 + e)
        return -b / (1.0 + exp(z))
    return s - b


@kernel
def loss_bend(code: int, s: float, b: float) -> float:
    """l''(s); for the logistic loss sigma(b s) sigma(-b s)."""
    if code == 0:
        e = exp(-abs(b * s))
        return e / ((1.0 + e) * (1.0 + e))
    return 1.0
