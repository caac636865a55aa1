"""What a worker sent, skipped and computed in a round: counted where it happens, exact."""

from __future__ import annotations

from collections.abc import Sequence

from dlag_node.methods.flow import RoundReport
from dlag_node.rounds.record import QUIET, SENT, SKIPPED, Record
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

    def count(self, frame: RoundFrame, raw: bytes, to: frozenset[int] | None) -> None:
        """One exchange's frame, about to leave to every neighbor, or to those in `to` alone."""
        reached = self._edges if to is None else len(to)
        self._sent_bytes += len(raw) * reached
        if type(frame) is Delta:
            self._exchanges += SENT
            self._deltas += reached
            self._payload_bytes += frame.payload_bytes * reached
        else:
            self._exchanges += SKIPPED
            self._tokens += reached
        if reached < self._edges and to is not None:
            self._pass_over(self._exchanges[-1], to)

    def count_silence(self) -> None:
        """One exchange in which nothing leaves."""
        self._exchanges += QUIET

    def close(self, k: int, report: RoundReport) -> Record:
        """The record of round k; the next round starts from nothing."""
        deltas, tokens = self._deltas, self._tokens
        record = Record(
            self._node,
            k,
            self._exchanges,
            deltas,
            tokens,
            self._payload_bytes,
            self._sent_bytes,
            report.gradients,
            report.step,
            report.age,
            self.compute,
            self.wait,
            self._each(SENT),
            quiet=len(self._exchanges) * self._edges - deltas - tokens,
            overdue=report.overdue,
            gap=report.gap,
            bound=report.bound,
            tokens=self._each(SKIPPED),
        )
        self._clear()
        return record

    def _pass_over(self, letter: str, to: frozenset[int]) -> None:
        passed_over = self._passed_over.setdefault(letter, {})
        for j in self._neighbors:
            if j not in to:
                passed_over[j] = passed_over.get(j, 0) + 1

    def _each(self, letter: str) -> list[int] | None:
        """How many of the round's deltas, or tokens, went to each neighbor; None: all to all."""
        passed_over = self._passed_over.get(letter)
        if passed_over is None:
            return None
        sent = self._exchanges.count(letter)
        return [sent - passed_over.get(j, 0) for j in self._neighbors]

    def _clear(self) -> None:
        self._exchanges = ""
        self._deltas = 0  # over directed edges
        self._tokens = 0
        # by letter and neighbor: frames that went to others alone
        self._passed_over: dict[str, dict[int, int]] = {}
        self._payload_bytes = 0
        self._sent_bytes = 0
        self.compute = 0.0
        self.wait = 0.0
