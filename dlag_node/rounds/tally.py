"""What one process of a worker has done so far, and for whom it has waited: sums over its rounds.

Kept only where somebody wants to know (`--metrics`, `--watch`). The same sums come from the records
of a run folder, for a replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from dlag_node.rounds.barrier import Barrier
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.record import SENT, Record
from dlag_node.wire.frames import RoundFrame


class Tally:
    """Sums over the records of one worker; per neighbor in ascending id.

    It only grows, one number at a time: another thread may read it at any moment.
    """

    def __init__(self, neighbors: Sequence[int]) -> None:
        self.neighbors = tuple(neighbors)
        self.rounds = 0  # of this process
        self.exchanges = 0
        self.deltas = 0  # over directed edges
        self.skips = 0
        self.payload_bytes = 0
        self.sent_bytes = 0
        self.gradients = 0
        self.compute = 0.0  # seconds
        self.wait = 0.0
        self.age = 0
        self.residual: float | None = None  # ||x^{k+1} - x^k|| of the last round
        self._to_all = 0  # deltas that every neighbor got
        self._to_some = [0] * len(self.neighbors)  # beside these, to each
        self.waits = [0.0] * len(self.neighbors)  # seconds, for each neighbor

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
        self.age = record.age
        self.residual = record.step
        if record.told is not None:
            self._to_some = [*map(add, self._to_some, record.told)]
        elif record.deltas:
            self._to_all += record.exchanges.count(SENT)
        if record.waits is not None:
            self.waits = [*map(add, self.waits, record.waits)]

    @property
    def told(self) -> list[int]:
        """Deltas to each neighbor."""
        return [self._to_all + deltas for deltas in self._to_some]


class Delays:
    """How long after we had come to the barrier each neighbor's frame was there.

    Stands between the links and the engine, where frames arrive. One that was there before us
    costs no waiting.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._barrier: Barrier = engine.barrier
        self._clock = engine.clock
        self._zeros = dict.fromkeys(engine.barrier.neighbors, 0.0)
        self._waits = dict(self._zeros)

    def deliver(self, neighbor: int, frame: RoundFrame) -> bool:
        """Hand the frame over to the engine, and note how late it was."""
        taken = self._engine.deliver(neighbor, frame)
        if taken and frame.seq == self._barrier.seq and not self._engine.between_rounds:
            self._waits[neighbor] += self._clock() - self._engine.progress_at
        return taken

    def under_way(self) -> list[float]:
        """Seconds for each neighbor, by id, in the round that is not over: as of now."""
        waits = dict(self._waits)
        if not self._engine.between_rounds:
            since = self._clock() - self._engine.progress_at
            for neighbor in self._barrier.missing():
                waits[neighbor] += since
        return list(waits.values())

    def of_round(self) -> list[float]:
        """Seconds for each neighbor, by id, in the round that has just ended."""
        waits = list(self._waits.values())
        self._waits.update(self._zeros)
        return waits
