"""The round engine: frames in, frames out, a method in between, and no socket in sight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.methods.flow import Exchange, Flow, Method, RoundReport
from dlag_node.methods.state import State, capture, restore
from dlag_node.rounds.barrier import Barrier
from dlag_node.rounds.ledger import Ledger
from dlag_node.rounds.record import Record
from dlag_node.rounds.stopping import Stopping
from dlag_node.rounds.window import Window
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Delta, RoundFrame, Skip
from dlag_node.wire.limits import MAX_NODES


@dataclass(slots=True)
class Outgoing:
    """A frame of ours, encoded once for every neighbor, or for those in `to` alone.

    Then the other neighbors get a skip of the same exchange: `silence`, and its bytes.
    """

    frame: RoundFrame
    raw: bytes
    to: frozenset[int] | None = None
    silence: Skip | None = None
    raw_silence: bytes = b""

    def frame_for(self, neighbor: int) -> RoundFrame:
        """What this neighbor is to hear."""
        if self.to is None or self.silence is None or neighbor in self.to:
            return self.frame
        return self.silence

    def raw_for(self, neighbor: int) -> bytes:
        """The bytes of what this neighbor is to hear."""
        return self.raw if self.to is None or neighbor in self.to else self.raw_silence


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round is finished: the method is whole, and this is what the round cost."""

    record: Record


@dataclass(frozen=True, slots=True)
class Saved:
    """An engine between two rounds, without its method."""

    rounds: int  # finished
    seq: int
    back: int  # rounds that a neighbor may fall back by
    starts: tuple[int, ...]  # first exchanges of as many of the last rounds
    kept: tuple[Outgoing, ...]
    stopping: State  # of the part of that name


class Engine:
    """Drives one worker's method through its exchanges; the simulator and the network share it.

    Between two rounds, after a `RoundEnded`, the method is whole, and whoever drives decides
    whether `advance` is called again.
    """

    def __init__(
        self,
        method: Method,
        *,
        node: int,
        neighbors: Sequence[int],
        codec: Codec,
        stopping: Stopping | None = None,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self.method = method
        self.codec = codec
        self.node = node
        self.window = Window(neighbors)
        self.barrier = Barrier(self.window)
        self.stopping = stopping or Stopping(MAX_NODES)  # no graph has a larger diameter
        self.rounds = 0  # finished
        self.last_record: Record | None = None  # of the last finished round
        self._ledger = Ledger(node, self.barrier.neighbors)
        self._flow: Flow[RoundReport] | None = None
        self.between_rounds = True  # the method is whole: no round has begun since the last ended
        self._begins = True  # the exchange under way is the first of its round
        self._kept: deque[Outgoing] = deque()
        self._back = 0  # rounds that a neighbor may fall back by, should it crash
        self._starts: deque[int] = deque(maxlen=1)  # first exchanges of the last rounds with any
        self.clock = clock
        self.progress_at = 0.0  # by the clock: when `advance` last ended
        self.waits: dict[int, float] | None = None  # at the barrier, by who came last, if wanted
        self.advance_seconds = 0.0  # that the last `advance` took

    @property
    def seq(self) -> int:
        """The exchange we are at: its frames are the ones we lack."""
        return self.barrier.seq

    @property
    def ready(self) -> bool:
        """Whether `advance` can go on: inside a round it needs every neighbor's frame."""
        return self.between_rounds or not self.barrier.lacking

    def deliver(self, neighbor: int, frame: RoundFrame) -> bool:
        """Take a neighbor's frame; cheap. False for a harmless repeat."""
        return self.barrier.put(neighbor, frame)

    def advance(self) -> Outgoing | RoundEnded:
        """Run the method to its next exchange and return our frame, or to the end of its round.

        Heavy: the method computes in here.
        """
        started = self.clock()
        try:
            if self._flow is None:
                self._flow = self.method.round()
                self.between_rounds = False
                self._begins = True
                exchange = next(self._flow)
            else:
                waited = started - self.progress_at
                self._ledger.wait += waited
                if self.waits is not None:
                    self.waits[self.barrier.latest] += waited
                if self._begins:
                    self.stopping.agreement.hear(self.barrier.words())
                    self._begins = False
                exchange = self._flow.send(self.barrier.open())
        except StopIteration as end:
            self._spend(started)
            return RoundEnded(self._end_round(end.value))
        outgoing = self._frame(exchange)
        self._keep(outgoing)
        self._spend(started)
        return outgoing

    def frames_from(self, seq: int) -> list[Outgoing]:
        """Those of our frames that a neighbor at exchange `seq` takes.

        One that is further behind asks again when it is there.
        """
        oldest = self._kept[0].frame.seq if self._kept else 0
        if seq < oldest:
            raise RemoteProtocolError(
                f"a neighbor needs exchange {seq}, but we keep only those from {oldest} on"
            )
        wanted = self.window.wanted(seq)
        return [each for each in self._kept if each.frame.seq in wanted]

    def keep_for(self, back: int) -> None:
        """From now on keep what a neighbor needs that may fall back by `back` rounds."""
        if back > self._back:
            self._back = back
            self._starts = deque(self._starts, maxlen=back + 1)

    def saved(self) -> Saved:
        """Where we are between two rounds, with the frames that a neighbor may need after a crash.

        A neighbor that falls back by `back` rounds needs the frames of that many rounds before this
        one; a neighbor that did not crash may lack our last one.
        """
        assert self.between_rounds
        starts = list(self._starts)[-self._back :] if self._back else []
        oldest = min([*starts, self.window.in_doubt(self.seq - 1)])
        kept = tuple(each for each in self._kept if each.frame.seq >= oldest)
        return Saved(self.rounds, self.seq, self._back, tuple(starts), kept, capture(self.stopping))

    def go_on(self, saved: Saved) -> None:
        """Take up where an engine like this one was; its method has been restored already."""
        assert self.between_rounds
        self.rounds = saved.rounds
        self.barrier.begin_at(saved.seq)
        self._back = saved.back
        self._starts = deque(saved.starts, maxlen=saved.back + 1)
        self._kept = deque(saved.kept)
        restore(self.stopping, saved.stopping)

    def _keep(self, outgoing: Outgoing) -> None:
        seq = outgoing.frame.seq
        if self._begins:
            self._starts.append(seq)
        kept = self._kept
        kept.append(outgoing)
        oldest = self.window.in_doubt(seq)
        if self._back and self._starts[0] < oldest:
            oldest = self._starts[0]
        while kept[0].frame.seq < oldest:
            kept.popleft()

    def _spend(self, started: float) -> None:
        self.progress_at = self.clock()
        self.advance_seconds = self.progress_at - started
        self._ledger.compute += self.advance_seconds

    def _end_round(self, report: object) -> Record:
        if not isinstance(report, RoundReport):
            raise LocalProtocolError(f"a round returned {report!r:.60}")
        self.last_record = record = self._ledger.close(self.rounds, report)
        self.rounds += 1
        self.stopping.close(self.method.theta)
        self._flow = None
        self.between_rounds = True
        return record

    @property
    def _word(self) -> int:
        """What to tell of stopping: once a round, in its first exchange."""
        return self.stopping.agreement.word if self._begins else 0

    def _frame(self, exchange: Exchange) -> Outgoing:
        if exchange.to is not None:
            return self._frame_for_some(exchange, exchange.to)
        seq = self.barrier.seq
        frame: RoundFrame
        if exchange.payload is None:
            frame = Skip(seq, self._word)
        else:
            exchange.payload.flags.writeable = False  # given away: the simulator shares the object
            frame = Delta(seq, exchange.payload, exchange.rounded, self._word)
        raw = self.codec.encode(frame)
        self._ledger.count(frame, raw)
        return Outgoing(frame, raw)

    def _frame_for_some(self, exchange: Exchange, to: frozenset[int]) -> Outgoing:
        """A delta for the neighbors in `to`, a skip for the others."""
        if strangers := to.difference(self.barrier.neighbors):
            raise LocalProtocolError(
                f"exchange {self.seq}: a vector for nodes {sorted(strangers)}, "
                f"our neighbors are {self.barrier.neighbors}"
            )
        if exchange.payload is None or not to:
            return self._frame(Exchange(None))
        exchange.payload.flags.writeable = False
        frame = Delta(self.seq, exchange.payload, exchange.rounded, self._word)
        silence = Skip(self.seq, self._word)
        raw, raw_silence = self.codec.encode(frame), self.codec.encode(silence)
        self._ledger.count_some(frame, raw, raw_silence, to)
        return Outgoing(frame, raw, to, silence, raw_silence)
