"""When an inner solver stops: after so many epochs, or at such a gradient norm."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, log

from dlag_node.errors import ConfigError

_FORMS = "epochs:N (N >= 1), relative:R (0 < R < 1) or exact:TOL (TOL > 0)"


@dataclass(frozen=True, slots=True)
class Stop:
    """One stop rule; g is the gradient of the subproblem, g^0 its value at the warm start.

        epochs:N      exactly N epochs
        relative:R    until ||g|| <= R ||g^0||
        exact:TOL     until ||g|| <= TOL

    The last two also end, as a success, when ||g|| has sunk to where rounding drowns it.
    """

    rule: str
    amount: float

    def __post_init__(self) -> None:
        whole = self.rule == "epochs" and self.amount >= 1 and self.amount % 1 == 0
        fraction = self.rule == "relative" and 0 < self.amount < 1
        bound = self.rule == "exact" and self.amount > 0
        if not (isfinite(self.amount) and (whole or fraction or bound)):
            raise ConfigError(f"stop rule {self}: expected {_FORMS}")

    def __str__(self) -> str:
        amount = int(self.amount) if self.fixed and isfinite(self.amount) else self.amount
        return f"{self.rule}:{amount}"

    @property
    def fixed(self) -> bool:
        """Whether the number of epochs is set beforehand."""
        return self.rule == "epochs"

    @property
    def epochs(self) -> int:
        """N of `epochs:N`."""
        assert self.fixed
        return int(self.amount)

    @property
    def bounds(self) -> tuple[float, float]:
        """(R, TOL) such that the rule asks for ||g|| <= max(R ||g^0||, TOL)."""
        return (self.amount, 0.0) if self.rule == "relative" else (0.0, self.amount)

    def efold(self, kappa: float) -> float:
        """In so many calls the error shrinks by a factor of e, for a condition number; a bound.

        An epoch of any solver does at least what a step of gradient descent does.
        """
        if self.fixed:
            return kappa / self.amount
        return -1.0 / log(self.amount) if self.rule == "relative" else 0.0

    @property
    def lasting(self) -> float:
        """The gradient norm that is left however many calls there are: what no call contracts."""
        return max(self.amount, EXACT.amount) if self.rule == "exact" else EXACT.amount


EXACT = Stop("exact", 1e-10)  # the accuracy at which the paper calls a dual gradient exact


def parse_stop(text: str) -> Stop:
    """The rule written as `epochs:30`, `relative:0.1` or `exact:1e-10`."""
    rule, _, amount = text.partition(":")
    try:
        return Stop(rule, int(amount) if rule == "epochs" else float(amount))
    except (ValueError, OverflowError):
        raise ConfigError(f"stop rule {text!r}: expected {_FORMS}") from None
    except ConfigError:
        raise ConfigError(f"stop rule {text!r}: expected {_FORMS}") from None
