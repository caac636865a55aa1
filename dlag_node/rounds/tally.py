"""What a worker has done so far: sums over the records of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from dlag_node.rounds.record import SENT, Record


class Tally:
    """Sums over the records of one worker; per neighbor in ascending id.

    A round adds the few numbers from which all others follow: this is on its way. Every sum only
    grows, so that another thread may read it at any moment.
    """

    __slots__ = (
        "_to_all",
        "_to_some",
        "compute",
        "deltas",
        "exchanges",
        "gradients",
        "last",
        "neighbors",
        "payload_bytes",
        "rounds",
        "sent_bytes",
        "wait",
    )

    def __init__(self, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(neighbors)
        self.rounds = 0
        self.exchanges = 0
        self.deltas = 0  # over directed edges
        self.payload_bytes = 0
        self.sent_bytes = 0
        self.gradients = 0
        self.compute = 0.0  # seconds
        self.wait = 0.0
        self.last: Record | None = None
        self._to_all = 0  # deltas that every neighbor got
        self._to_some = [0] * len(self.neighbors)  # beside these, to each

    def take(self, record: Record) -> None:
        """One finished round."""
        self.rounds += 1
        self.exchanges += len(record.exchanges)
        self.deltas += record.deltas
        self.payload_bytes += record.payload_bytes
        self.sent_bytes += record.sent_bytes
        self.gradients += record.gradients
        self.compute += record.compute
        self.wait += record.wait
        self.last = record
        if record.told is not None:
            self._to_some = [*map(add, self._to_some, record.told)]
        elif record.deltas:
            self._to_all += record.exchanges.count(SENT)

    @property
    def skips(self) -> int:
        """Over directed edges, as deltas."""
        return self.exchanges * len(self.neighbors) - self.deltas

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
        return [self._to_all + deltas for deltas in self._to_some]
