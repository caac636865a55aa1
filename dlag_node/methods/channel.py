"""The lazy channel: one vector that worker i shares with its neighbors, told only when it must be.

Both ends of an edge hold the same copy of what was last known. What travels is Q, the difference
between the vector and its copy, and only when the rule says so; otherwise the copy stands, or goes
on as both ends predict. Methods mix the copies, never the vectors, so that the sum over all workers
of what the mixing adds is zero whoever was silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dlag_node.graphs.chebyshev import Chebyshev
from dlag_node.methods.flow import Array, Exchange, Flow
from dlag_node.methods.gossip import Neighborhood
from dlag_node.methods.lazy import SEND, Decision
from dlag_node.methods.promise import Foresight, Promises
from dlag_node.problems import square
from dlag_node.rounding import Form, Rounded, rounded


class Rule(Foresight, Protocol):
    """When worker i stays silent, and for D exchanges at most."""

    FADING: float  # of `Promises` by this rule
    D: int

    @property
    def age(self) -> int:
        """d_i^k, the exchanges since the neighbors last heard from us."""

    def decide(self, gap: float, moved: float, silent: bool | None = None) -> Decision:
        """Send or skip, by ||v_hat - v||^2 = `gap`, after a step of v with ||.||^2 = `moved`.

        With `silent` it was decided before, by a promise: the rule says whether it is overdue.
        Called once for each exchange: it changes the rule's state, the age among it.
        """

    def observe(self, step: float) -> None:
        """Take in the method's own step, ||x^k - x^{k+1}||^2, at the end of iteration k."""


class Copy:
    """What both ends of an edge know of one worker's vector: `value`, told as deltas."""

    STATE: tuple[str, ...] = ("value",)

    def __init__(self, dim: int) -> None:
        self.value: Array = np.zeros(dim)

    def expected(self) -> Array | None:
        """How the copy goes on by itself in this exchange; None: it stands."""
        return None

    def change(self, Q: Array | None) -> Array | None:
        """Take in this exchange's delta, or silence; returns by how much the copy changed."""
        change = self.expected()
        if Q is not None:
            change = Q if change is None else change + Q
        if change is not None:
            self.value = self.value + change
        return change


class MovingCopy(Copy):
    """A copy that goes on in a straight line through the last two values that were told."""

    STATE = ("value", "_told", "_velocity", "_times", "_silent")

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self._told: Array = np.zeros(dim)
        self._velocity: Array = np.zeros(dim)
        self._times = 0  # that it was told
        self._silent = 0  # exchanges since it was told

    def expected(self) -> Array | None:
        """The velocity between the last two values that were told; None before there are two."""
        return self._velocity if self._times > 1 else None

    def change(self, Q: Array | None) -> Array | None:
        """Take in this exchange's delta, or silence; a delta gives a new velocity."""
        change = super().change(Q)
        self._silent += 1
        if Q is not None:
            if self._times:
                self._velocity = (self.value - self._told) / self._silent
            self._told, self._silent = self.value, 0
            self._times += 1
        return change


PREDICTORS: dict[str, type[Copy]] = {"none": Copy, "linear": MovingCopy}


@dataclass(frozen=True, slots=True)
class ChannelForm:
    """How a channel's vectors travel: predicted or not, and in how many bytes an entry."""

    predict: str = "none"
    form: Form | None = None  # None: float64, not rounded


AS_IT_IS = ChannelForm()


class Channel:
    """Worker i's end of the channel for one vector v_i.

    `mixed` is P_i = sum_{j in N(i)} U_ij v_hat_j over the copies v_hat, i's own included; `rule` is
    None where everything is told, `promises` where silence is not promised. `decided` is what was
    decided in the last exchange.
    """

    STATE = ("rule", "promises", "own", "mixed", "_theirs", "_last")

    def __init__(
        self,
        dim: int,
        hood: Neighborhood,
        *,
        rule: Rule | None,
        promises: Promises | None = None,
        how: ChannelForm = AS_IT_IS,
    ) -> None:
        copy = PREDICTORS[how.predict]
        self.hood = hood
        self.rule = rule
        self.promises = promises
        self.decided = SEND
        self.own = copy(dim)
        self.mixed: Array = np.zeros(dim)
        self._form = how.form
        # copies that stand need not be kept: P_i takes in every delta as it comes
        self._theirs = None if copy is Copy else {j: copy(dim) for j in hood.weights}
        self._last: Array = np.zeros(dim)

    @property
    def known(self) -> Array:
        """v_hat_i, what the neighbors know of v_i."""
        return self.own.value

    @property
    def overdue(self) -> int:
        """1 if the last exchange was silent by a promise that the lazy condition did not allow."""
        return int(self.decided.overdue)

    @property
    def age(self) -> int:
        """Exchanges since the neighbors last heard v_i."""
        return 0 if self.rule is None else self.rule.age

    def begin_at(self, v: Array) -> None:
        """Everybody's copy is v from the start: the mix of one vector is 0, and stays as it is."""
        for copy in (self.own, *(self._theirs or {}).values()):
            copy.value = v

    def share(self, v: Array, *, always: bool = False) -> Flow[Array]:
        """Tell the neighbors v, or stay silent; hear theirs; returns P_i over the new copies."""
        Q, body = self._delta(v, always=always)
        # known from here on, to us: nobody looks before the round is over
        own = self.own.change(Q)
        promise = 0
        if Q is not None and self.promises is not None and self.rule is not None:
            promise = self.promises.make(v, self.own.value, self.own.expected(), self.rule)
        promised = Q is None and self.promises is not None
        inbox = yield Exchange(Q, rounded=body, promise=promise, promised=promised)
        if self._theirs is not None:
            inbox = {j: copy.change(inbox[j]) for j, copy in self._theirs.items()}
        change = self.hood.apply(own, inbox)
        if change is not None:
            with np.errstate(over="ignore", invalid="ignore"):  # the guard judges the numbers
                self.mixed = self.mixed + change
        return self.mixed

    def _delta(self, v: Array, *, always: bool) -> tuple[Array | None, Rounded | None]:
        """Q as it is to travel; None where the rule allows silence, or a promise asks for it."""
        expected = self.own.expected()
        Q = v - (self.own.value if expected is None else self.own.value + expected)
        if self.rule is not None:
            self.decided = self._decision(v - self._last, square(Q), self.rule, always=always)
        self._last = v
        if not self.decided.send:
            return None, None
        if self._form is None:
            return Q, None
        body = rounded(Q, self._form)
        return body.values, body

    def _decision(self, step: Array, gap: float, rule: Rule, *, always: bool) -> Decision:
        """Whether to tell v in this exchange, after this step of v."""
        silent = None
        if self.promises is not None:
            self.promises.follow(step)
            silent = self.promises.keep()
        if always:
            return SEND
        return rule.decide(gap, square(step), silent)


def accelerated_gossip(
    z: Array, P: Array, channels: Sequence[Channel], poly: Chebyshev | None
) -> Flow[Array]:
    """Worker i's column of z P_K(U), where P is already its column of z U.

    Procedure Accelerated Gossip of the paper's MDLAG: z_0 = z, z_1 = c_2 (z_0 - c_3 P), then

        z_{l+1} = 2 c_2 (z_l - c_3 z_l U) - z_{l-1},    l = 1, ..., K - 1

    with one exchange of z_l each, over a channel of its own, and z_0 - z_K / a_K at the end.
    Without a polynomial it is z U.
    """
    if poly is None:
        return P
    before, z_l = z, poly.c2 * (z - poly.c3 * P)
    for channel in channels:
        mixed = yield from channel.share(z_l)
        before, z_l = z_l, 2.0 * poly.c2 * (z_l - poly.c3 * mixed) - before
    return z - z_l / poly.a[poly.K]
