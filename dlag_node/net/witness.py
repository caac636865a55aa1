"""One node as seen from outside: its sums, waits and faults, gathered for metrics and watchers."""

from __future__ import annotations

import math

from dlag_node.net.faults import Faults
from dlag_node.net.links import Links
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.record import Record
from dlag_node.rounds.tally import Delays, Tally
from dlag_node.wire.watching import Near, Status, Sums


class Witness:
    """Sees every round of a node, and can say at any time how things stand."""

    def __init__(self, engine: Engine, links: Links, faults: Faults, *, run: str) -> None:
        self.tally = Tally(engine.barrier.neighbors)
        self.faults = faults
        self.finished = False
        self.run = run
        self.restarts = faults.life
        self.node = engine.node
        self._engine = engine
        self._links = links
        self._delays = Delays(engine)
        self.deliver = self._delays.deliver  # for the links, in the place of the engine's

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
        """Seconds that each neighbor was waited for, by id, up to now."""
        pairs = zip(self.tally.waits, self._delays.under_way(), strict=True)
        return [ended + under_way for ended, under_way in pairs]

    def take(self, record: Record) -> None:
        """A finished round; its record learns how long each neighbor was waited for."""
        record.waits = self._delays.of_round()
        self.tally.take(record)

    def status(self) -> Status:
        """How things stand."""
        tally, residual = self.tally, self.tally.residual
        near = zip(tally.neighbors, tally.told, self.waits(), strict=True)
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
                tally.skips,
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
