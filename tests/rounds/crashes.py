"""A method with declared state, and engines that are taken from their checkpoints again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Exchange, Flow, RoundReport, Schedule
from dlag_node.rounds import Engine
from dlag_node.rounds.checkpoint import Owner
from dlag_node.rounds.stopping import Stopping
from dlag_node.wire.codec import Codec

DIM = 3
_SILENT = 0.8  # draws above this are a token


@dataclass(frozen=True)
class Habits:
    """What all wanderers of a run do alike: round k has `counts[k]` exchanges.

    The first of them may promise up to `longest` silences. With `meet` everybody is due in the
    first exchange of every `meet`-th round alone, and in all others those whose turn it is. From
    round `rest` on they stay where they are. All of them may be `promising` as much as they can
    whenever they can ("all"), or the even ones alone ("even"); then nobody sends a token.
    """

    counts: tuple[int, ...]
    longest: int = 0
    meet: int = 0
    rest: int = 10**9
    promising: str = "some"

    @property
    def schedule(self) -> Schedule:
        """What follows for the window, for rounds of one length if there is any silence."""
        if not (self.longest or self.meet):
            return EVERYBODY_SPEAKS
        R, K = self.longest, self.counts[0]
        assert set(self.counts) == {K}
        if self.meet:
            assert self.meet == 1 or not R  # a promise is of the first exchange of each round
            return Schedule(R, stride=K, lead=(R + 1) * K * self.meet, hop=R + 1)
        if K == 1:
            return Schedule(R, lead=R + 1, hop=R + 1)
        return Schedule(R, stride=K, lead=2)  # the second exchange of a round waits for everybody


def has_its_turn(seq: int, sender: int, receiver: int) -> bool:
    """Whether the one speaks to the other in exchange `seq` if not all do; both ends know it."""
    return (7 * seq + 3 * sender + 5 * receiver) % 4 < 2


class Wanderer:
    """Its next words depend on all that it heard and on its own stream, to the last bit.

    It skips now and then, promises at times, and keeps what it heard in `heard`, for tests.
    """

    parameters: dict[str, float | int | str] = {}  # noqa: RUF012
    advice = ""
    width = DIM
    STATE = ("k", "theta", "said", "left", "rng", "window")

    def __init__(self, node: int, neighbors: Sequence[int], habits: Habits) -> None:
        self.node = node
        self.neighbors = neighbors
        self.habits = habits
        self.schedule = habits.schedule
        self.k = 0
        self.said = 0  # exchanges
        self.left = 0  # of a promise
        self.theta: Array = np.linspace(0.1, 1.3, DIM) * (node + 1)
        self.rng = np.random.default_rng(node)
        self.window: deque[float] = deque(maxlen=3)
        self.heard: list[dict[int, tuple[float, ...] | None]] = []

    def round(self) -> Flow[RoundReport]:
        for number in range(self.habits.counts[self.k]):
            inbox = yield self._exchange(number)
            self.heard.append({j: None if v is None else tuple(v) for j, v in inbox.items()})
            self.said += 1
            total = 0.3 * self.theta + 0.1 * sum(self.window)
            for vector in inbox.values():
                if vector is not None:
                    total = total + np.sin(vector) / 3.0
            if self.k < self.habits.rest:
                self.theta = total
        self.window.append(float(self.theta[0]))
        self.k += 1
        return RoundReport(gradients=self.k, step=float(np.linalg.norm(self.theta)), age=self.said)

    def _exchange(self, number: int) -> Exchange:
        draw, meet = self.rng.random(), self.habits.meet
        payload = None if draw > _SILENT else self.theta
        if meet and (number or self.k % meet):
            to = frozenset(j for j in self.neighbors if has_its_turn(self.said, self.node, j))
            due = frozenset(j for j in self.neighbors if has_its_turn(self.said, j, self.node))
            return Exchange(payload, to, expects=due)
        if number:
            return Exchange(payload)
        if self.left:
            self.left -= 1
            return Exchange(None, promised=True)
        if self.habits.promising != "some":
            always = self.habits.promising == "all" or self.node % 2 == 0
            payload, self.left = self.theta, self.habits.longest if always else 0
        elif payload is not None:
            self.left = int(self.rng.integers(self.habits.longest + 1))
        return Exchange(payload, promise=self.left)


def owner_of(node: int) -> Owner:
    return Owner("run", "config", node)


def wandering(
    node: int,
    neighbors: Sequence[int],
    habits: Habits | Sequence[int],
    *,
    diameter: int = 10_000,
    tol: float | None = None,
) -> Engine:
    """An engine whose method wanders; by habits, or by the numbers of exchanges alone."""
    if not isinstance(habits, Habits):
        habits = Habits(tuple(habits))
    method = Wanderer(node, sorted(neighbors), habits)
    stopping = Stopping(diameter, tol, hop=method.schedule.hop)
    return Engine(method, node=node, neighbors=neighbors, codec=Codec(DIM), stopping=stopping)
