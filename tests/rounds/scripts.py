"""Methods that follow a script: what a round sends is written down beforehand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlag_node.methods.flow import EVERYBODY_SPEAKS, Array, Exchange, Flow, Inbox, RoundReport

DIM = 3
Script = Sequence[Sequence[float | None]]  # rounds of exchanges; None: silent


class Scripted:
    """Sends `script[k][l]` in exchange l of round k, and remembers what it heard."""

    parameters: dict[str, float | int | str] = {}  # noqa: RUF012
    advice = ""
    width = DIM
    schedule = EVERYBODY_SPEAKS

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
