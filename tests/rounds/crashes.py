"""A method with declared state, and engines that are taken from their checkpoints again."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport
from dlag_node.rounds import Engine
from dlag_node.rounds.checkpoint import Owner
from dlag_node.wire.codec import Codec

DIM = 3


class Wanderer:
    """Its next words depend on all that it heard and on its own stream, to the last bit.

    It skips now and then, and speaks to some of its neighbors only at times. Round k has
    `counts[k]` exchanges, the same number in every node.
    """

    parameters: dict[str, float | int | str] = {}  # noqa: RUF012
    width = DIM
    STATE = ("k", "theta", "said", "rng", "window")

    def __init__(self, node: int, neighbors: Sequence[int], counts: Sequence[int]) -> None:
        self.node = node
        self.neighbors = neighbors
        self.counts = counts
        self.k = 0
        self.said = 0
        self.theta: Array = np.linspace(0.1, 1.3, DIM) * (node + 1)
        self.rng = np.random.default_rng(node)
        self.window: deque[float] = deque(maxlen=3)

    def round(self) -> Flow[RoundReport]:
        for _ in range(self.counts[self.k]):
            draw = self.rng.random()
            to = frozenset(self.neighbors[::2]) if draw < 0.3 else None
            inbox = yield Exchange(None if draw > 0.8 else self.theta, to)
            self.said += 1
            total = 0.3 * self.theta + 0.1 * sum(self.window)
            for vector in inbox.values():
                if vector is not None:
                    total = total + np.sin(vector) / 3.0
            self.theta = total
        self.window.append(float(self.theta[0]))
        self.k += 1
        return RoundReport(gradients=self.k, step=float(np.linalg.norm(self.theta)), age=self.said)


def owner_of(node: int) -> Owner:
    return Owner("run", "config", node)


def wandering(node: int, neighbors: Sequence[int], counts: Sequence[int]) -> Engine:
    method = Wanderer(node, sorted(neighbors), counts)
    return Engine(method, node=node, neighbors=neighbors, codec=Codec(DIM))
