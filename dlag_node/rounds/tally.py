"""What a worker has done so far: sums over the records of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from dlag_node.rounds.record import QUIET, SENT, SKIPPED, Record


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
        "overdue",
        "payload_bytes",
        "quiet",
        "rounds",
        "sent_bytes",
        "tokens",
        "wait",
    )

    def __init__(self, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(neighbors)
        self.rounds = 0
        self.exchanges = 0
        self.deltas = 0  # over directed edges, as are tokens and quiet
        self.tokens = 0
        self.quiet = 0
        self.overdue = 0
        self.payload_bytes = 0
        self.sent_bytes = 0
        self.gradients = 0
        self.compute = 0.0  # seconds
        self.wait = 0.0
        self.last: Record | None = None
        # deltas, tokens and quiet, each with a counter of its own: of every neighbor, and beside it
        self._all = {SENT: 0, SKIPPED: 0, QUIET: 0}
        self._some = {letter: [0] * len(self.neighbors) for letter in self._all}

    def take(self, record: Record) -> None:
        """One finished round."""
        self.rounds += 1
        self.exchanges += len(record.exchanges)
        self.deltas += record.deltas
        self.tokens += record.skips
        self.quiet += record.quiet
        self.overdue += record.overdue
        self.payload_bytes += record.payload_bytes
        self.sent_bytes += record.sent_bytes
        self.gradients += record.gradients
        self.compute += record.compute
        self.wait += record.wait
        self.last = record
        if record.told is None and record.tokens is None:
            for letter in record.exchanges:
                self._all[letter] += 1
        else:
            kinds = record.by_neighbor(len(self.neighbors))
            for letter, counts in zip(self._all, kinds, strict=True):
                self._some[letter] = [*map(add, self._some[letter], counts)]

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
        return self._each(SENT)

    @property
    def tokens_to(self) -> list[int]:
        """Tokens to each neighbor."""
        return self._each(SKIPPED)

    @property
    def quiet_to(self) -> list[int]:
        """Exchanges in which each neighbor got nothing."""
        return self._each(QUIET)

    @property
    def withheld(self) -> list[int]:
        """Exchanges in which each neighbor got no delta: a token, or nothing."""
        return [*map(add, self.tokens_to, self.quiet_to)]

    def _each(self, letter: str) -> list[int]:
        return [self._all[letter] + counts for counts in self._some[letter]]
