"""What can be set of a lazy channel, checked; the methods' own parameters build on it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from dlag_node.errors import ConfigError
from dlag_node.methods.channel import PREDICTORS, Channel, ChannelForm
from dlag_node.methods.flow import Schedule
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.lazy import StepRule
from dlag_node.methods.promise import Promises, require_promise, schedule_of
from dlag_node.methods.spec import worded
from dlag_node.rounding import FORMS, WHOLE, Form


@dataclass(frozen=True, slots=True)
class ChannelParameters:
    """tau and D of the step rule (tau = 0: everything is told), prediction, and the wire's form.

    `promise` is R, the longest silence that a delta promises; 0, or "off", promises none.
    """

    tau: float = 0.0
    D: int = 20
    predict: str = "none"
    form: str = WHOLE
    promise: int = worded(0, off=0)

    def __post_init__(self) -> None:
        if not (isfinite(self.tau) and self.tau >= 0):
            raise ConfigError(f"tau = {self.tau}: expected 0 (everything is told) or above")
        if self.D < 1:
            raise ConfigError(f"D = {self.D}: expected a whole number of at least 1")
        require_channel_form(self.predict, self.form)
        require_promise(self.promise, self.D)

    @property
    def schedule(self) -> Schedule:
        """Who speaks when, in a method of one exchange a round."""
        return schedule_of(self.promise if self.tau else 0)

    def channel(self, dim: int, hood: Neighborhood) -> Channel:
        """The channel that was asked for, over the edges of `hood`."""
        how = channel_form(self.predict, self.form)
        if not self.tau:
            return Channel(dim, hood, rule=None, how=how)
        rule = StepRule(tau=self.tau, D=self.D)
        promises = Promises(dim, self.promise, fading=rule.FADING) if self.promise else None
        return Channel(dim, hood, rule=rule, promises=promises, how=how)

    @property
    def effective(self) -> dict[str, float | int | str]:
        """The parameters of a channel that has any."""
        if not self.tau and self.form == WHOLE:
            return {}
        effective: dict[str, float | int | str] = {
            "tau": self.tau,
            "D": self.D,
            "predict": self.predict,
            "form": self.form,
        }
        return effective | ({"promise": self.promise} if self.schedule.longest else {})


def require_channel_form(predict: str, form: str) -> None:
    """ConfigError unless both are names that there are."""
    if predict not in PREDICTORS:
        raise ConfigError(f"predict = {predict!r}: expected one of {', '.join(PREDICTORS)}")
    form_named(form)


def channel_form(predict: str, form: str) -> ChannelForm:
    """The form of that name."""
    return ChannelForm(predict, form_named(form))


def form_named(name: str) -> Form | None:
    """The form of that name, None for float64; a ConfigError where there is none."""
    if name != WHOLE and name not in FORMS:
        raise ConfigError(f"form = {name!r}: expected one of {', '.join((WHOLE, *FORMS))}")
    return FORMS.get(name)


ALWAYS = ChannelParameters()  # everything is told
LAZY = frozenset({"tau", "D", "predict", "form", "promise"})  # what a lazy method takes of them
