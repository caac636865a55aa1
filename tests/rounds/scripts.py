"""Methods that follow a script: what a round sends is written down beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlag_node.methods.flow import Array, Exchange, Flow, Inbox, RoundReport

DIM = 3
Script = Sequence[Sequence[float | None]]  # rounds of exchanges; None: silent


class Scripted:
    """Sends `script[k][l]` in exchange l of round k, and remembers what it heard."""

    parameters: dict[str, float | int | str] = {}  # noqa: RUF012
    width = DIM

    def __init__(self, script: Script) -> None:
        self.script = script
        self.k = 0
        self.theta: Array = np.zeros(DIM)
        self.heard: list[Inbox] = []
        self.sent: list[Array | None] = []

    def round(self) -> Flow[RoundReport]:
        for word in self.script[self.k]:
            payload = None if word is None else np.full(DIM, word)
            self.sent.append(payload)
            self.heard.append((yield Exchange(payload)))
        self.k += 1
        return RoundReport(gradients=10 * self.k, step=0.5, age=len(self.heard))


class Mixing:
    """Its next words depend on all that it heard, to the last bit; it skips now and then.

    At times only some of its neighbors hear it, as many as it already knows to be there.

    Round k has `counts[k]` exchanges, the same number in every node.
    """

    parameters: dict[str, float | int | str] = {}  # noqa: RUF012
    width = DIM

    def __init__(self, node: int, counts: Sequence[int]) -> None:
        self.node = node
        self.counts = counts
        self.k = 0
        self.theta: Array = np.linspace(0.1, 1.3, DIM) * (node + 1)
        self.heard: list[dict[int, tuple[float, ...] | None]] = []

    def round(self) -> Flow[RoundReport]:
        for _ in range(self.counts[self.k]):
            silent = (len(self.heard) * 7 + self.node * 3) % 4 == 0
            inbox = yield Exchange(None if silent else self.theta, self._hearers())
            self.heard.append({j: None if v is None else tuple(v) for j, v in inbox.items()})
            total = 0.3 * self.theta
            for vector in inbox.values():
                if vector is not None:
                    total = total + np.sin(vector) / 3.0
            self.theta = total
        self.k += 1
        return RoundReport(gradients=self.k, step=float(np.linalg.norm(self.theta)), age=0)

    def _hearers(self) -> frozenset[int] | None:
        """Every third exchange some of the neighbors, None for all."""
        if not self.heard or (len(self.heard) + self.node) % 3:
            return None
        return frozenset(j for j in self.heard[-1] if (j + len(self.heard)) % 2)
