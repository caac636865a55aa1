"""What a worker has done so far: sums over the records of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from dlag_node.rounds.record import SENT, SKIPPED, Record


class Tally:
    """Sums over the records of one worker; per neighbor in ascending id.

    Every sum only grows, one number at a time: another thread may read it at any moment.
    """

    __slots__ = (
        "_all",
        "_some",
        "compute",
        "deltas",
        "exchanges",
        "gradients",
        "last",
        "neighbors",
        "payload_bytes",
        "rounds",
        "sent_bytes",
        "skips",
        "wait",
    )

    def __init__(self, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(neighbors)
        self.rounds = 0
        self.exchanges = 0
        self.deltas = 0  # over directed edges
        self.skips = 0
        self.payload_bytes = 0
        self.sent_bytes = 0
        self.gradients = 0
        self.compute = 0.0  # seconds
        self.wait = 0.0
        self.last: Record | None = None
        # deltas and skips, each with a counter of its own: to every neighbor, and beside these
        self._all = {SENT: 0, SKIPPED: 0}
        self._some = {letter: [0] * len(self.neighbors) for letter in self._all}

    def take(self, record: Record) -> None:
        """One finished round."""
        self.rounds += 1
        self.exchanges += len(record.exchanges)
        self.deltas += record.deltas
        self.skips += record.skips
        self.payload_bytes += record.payload_bytes
        self.sent_bytes += record.sent_bytes
        self.gradients += record.gradients
        self.compute += record.compute
        self.wait += record.wait
        self.last = record
        if record.told is None:
            for letter in record.exchanges:
                self._all[letter] += 1
        else:
            skips = [len(record.exchanges) - deltas for deltas in record.told]
            self._some[SENT] = [*map(add, self._some[SENT], record.told)]
            self._some[SKIPPED] = [*map(add, self._some[SKIPPED], skips)]

    @property
    def age(self) -> int:
        """d_i^k of the last round."""
        return 0 if self.last is None else self.last.age

    @property
    def residual(self) -> float | None:
        """||x^{k+1} - x^k|| of the last round."""
        return None if self.last is None else self.last.step

    @property
    def told(self) -> list[int]:
        """Deltas to each neighbor."""
        return [self._all[SENT] + deltas for deltas in self._some[SENT]]

    @property
    def withheld(self) -> list[int]:
        """Skips to each neighbor, in the place of deltas."""
        return [self._all[SKIPPED] + skips for skips in self._some[SKIPPED]]
