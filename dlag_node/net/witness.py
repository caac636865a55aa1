"""One node as seen from outside: its sums, waits and faults, gathered for metrics and watchers."""

from __future__ import annotations

import math
from threading import Lock

from dlag_node.net.faults import Faults
from dlag_node.net.links import Links
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.record import Record
from dlag_node.rounds.tally import Tally
from dlag_node.wire.watching import Near, Status, Sums


class Witness:
    """Sees every round of a node, and can say at any time, to any thread, how things stand."""

    def __init__(
        self, engine: Engine, links: Links, faults: Faults, *, run: str, recorded: bool = False
    ) -> None:
        """`recorded`: records are to say for whom their round waited."""
        self.faults = faults
        self.finished = False
        self.run = run
        self.restarts = faults.life
        self.node = engine.node
        self.tally = Tally(engine.barrier.neighbors)  # of this process
        self._engine = engine
        self._links = links
        engine.waits = dict.fromkeys(engine.barrier.neighbors, 0.0)
        self._before = dict(engine.waits) if recorded else None  # this round
        self._told = dict(engine.waits)
        self._lock = Lock()  # of what was told

    @property
    def position(self) -> int:
        """Rounds finished, by earlier processes too."""
        return self._engine.rounds

    @property
    def refused(self) -> int:
        """Frames that were dropped."""
        return self._links.refused

    @property
    def control_bytes(self) -> int:
        """Bytes of the frames that open, repair and end links."""
        return self._links.control_bytes

    def waits(self) -> list[float]:
        """Seconds for which each neighbor, by id, was the last to come to the barrier.

        While one frame alone is missing it is clear for whom we wait; while several are, not yet.
        """
        engine = self._engine
        waits = dict(engine.waits or {})
        if engine.barrier.lacking == 1 and not engine.between_rounds:
            for neighbor in engine.barrier.missing():
                waits[neighbor] = waits.get(neighbor, 0.0) + engine.clock() - engine.progress_at
        with self._lock:  # what an exchange that opens just now has waited may be in neither
            self._told = {j: max(told, waits.get(j, 0.0)) for j, told in self._told.items()}
            return list(self._told.values())

    def take(self, record: Record) -> None:
        """A finished round."""
        self.tally.take(record)
        if self._before is not None:
            before, self._before = self._before, dict(self._engine.waits or {})
            record.waits = {j: s - before[j] for j, s in self._before.items() if s > before[j]}

    def status(self) -> Status:
        """How things stand."""
        tally, residual = self.tally, self.tally.residual
        near = zip(tally.neighbors, tally.told, tally.tokens_to, self.waits(), strict=True)
        return Status(
            self.run,
            self.node,
            self.restarts,
            self.position,
            self.finished,
            tally.age,
            residual if residual is not None and math.isfinite(residual) else None,
            Sums(
                tally.exchanges,
                tally.deltas,
                tally.tokens,
                tally.quiet,
                tally.payload_bytes,
                tally.sent_bytes,
                tally.gradients,
                self.refused,
                tally.compute,
                tally.wait,
            ),
            tuple(Near(*each) for each in near),
            self.faults.total,
            tuple(self.faults.latest),
        )
