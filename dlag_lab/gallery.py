"""Every node's thetas for the referee, each round once, whatever a crash lost or made again."""

from __future__ import annotations

import numpy as np

from dlag_lab.folder import RunFolder
from dlag_lab.referee import Array, Judge


class Gallery:
    """Hands the referee each node's rounds in order.

    A node that comes back from a checkpoint tells some rounds again, and what it had not yet told
    is gone with the process that should have; but a node writes its thetas before it saves itself,
    so whatever lies before its checkpoint is in its file.
    """

    def __init__(self, folder: RunFolder, *, nodes: int, dim: int, referee: Judge) -> None:
        self._folder = folder
        self._dim = dim
        self._referee = referee
        self._seen = [0] * nodes  # rounds

    def take(self, node: int, rounds: int, raw: bytes) -> int:
        """The thetas of the last rounds before `rounds`; returns how many of them are new."""
        thetas = np.frombuffer(raw, "<f8").reshape(-1, self._dim)
        first = rounds - len(thetas)
        self.fill(node, first)
        if self._seen[node] < first:  # not in its file yet: it will be, and all of it comes again
            return 0
        return self._hand_over(node, thetas[self._seen[node] - first :])

    def fill(self, node: int, rounds: int) -> None:
        """The node has finished `rounds` rounds, all but what we have seen in its file."""
        if rounds > self._seen[node]:
            thetas = self._folder.thetas(node, self._dim)
            self._hand_over(node, thetas[self._seen[node] : rounds])

    def _hand_over(self, node: int, thetas: Array) -> int:
        self._seen[node] += len(thetas)
        if len(thetas):
            self._referee.take(node, thetas)
        return len(thetas)
