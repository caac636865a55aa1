"""What a worker sent, skipped and computed in a round: counted where it happens, exact."""

from __future__ import annotations

from collections.abc import Sequence

from dlag_node.methods.flow import RoundReport
from dlag_node.rounds.record import SENT, SKIPPED, Record
from dlag_node.wire.frames import Delta, RoundFrame


class Ledger:
    """Counts one worker's round; a message is one delta over one directed edge.

    `compute` and `wait` are the seconds of this round that went into the method, and into waiting
    at the barrier.
    """

    def __init__(self, node: int, neighbors: Sequence[int]) -> None:
        self._node = node
        self._neighbors = neighbors
        self._edges = len(neighbors)  # of this worker: a frame leaves over each of them
        self._clear()

    def count(self, frame: RoundFrame, raw: bytes) -> None:
        """One exchange's frame, about to leave to every neighbor."""
        self._sent_bytes += len(raw) * self._edges
        if type(frame) is Delta:
            self._exchanges += SENT
            self._payload_bytes += frame.payload_bytes * self._edges
        else:
            self._exchanges += SKIPPED

    def count_some(self, delta: Delta, raw: bytes, raw_silence: bytes, to: frozenset[int]) -> None:
        """A delta about to leave to the neighbors in `to`, and a skip to the others."""
        reached = len(to)
        silent = self._edges - reached
        for j in self._neighbors:
            if j not in to:
                self._passed_over[j] = self._passed_over.get(j, 0) + 1
        self._exchanges += SENT
        self._payload_bytes += delta.payload_bytes * reached
        self._sent_bytes += len(raw) * reached + len(raw_silence) * silent
        self._silent += silent

    def close(self, k: int, report: RoundReport) -> Record:
        """The record of round k; the next round starts from nothing."""
        deltas = self._exchanges.count(SENT)
        record = Record(
            self._node,
            k,
            self._exchanges,
            deltas * self._edges - self._silent,
            (len(self._exchanges) - deltas) * self._edges + self._silent,
            self._payload_bytes,
            self._sent_bytes,
            report.gradients,
            report.step,
            report.age,
            self.compute,
            self.wait,
            self._told(deltas) if self._silent else None,
        )
        self._clear()
        return record

    def _told(self, deltas: int) -> list[int]:
        """How many of the round's deltas went to each neighbor."""
        return [deltas - self._passed_over.get(j, 0) for j in self._neighbors]

    def _clear(self) -> None:
        self._exchanges = ""
        self._silent = 0  # edges with a skip in exchanges with a delta
        self._passed_over: dict[int, int] = {}  # the same, by neighbor
        self._payload_bytes = 0
        self._sent_bytes = 0
        self.compute = 0.0
        self.wait = 0.0
