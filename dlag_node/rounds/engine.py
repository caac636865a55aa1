"""The round engine: frames in, frames out, a method in between, and no socket in sight."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from dlag_node.errors import ConvergenceError, LocalProtocolError, RemoteProtocolError
from dlag_node.methods.flow import Exchange, Flow, Method, RoundReport
from dlag_node.methods.state import State, capture, restore
from dlag_node.rounding import Rounded
from dlag_node.rounds.barrier import Barrier
from dlag_node.rounds.ledger import Ledger
from dlag_node.rounds.record import Record
from dlag_node.rounds.stopping import Stopping
from dlag_node.rounds.talk import Talk
from dlag_node.rounds.window import Window
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Delta, RoundFrame, Skip, all_finite
from dlag_node.wire.limits import MAX_NODES


@dataclass(slots=True)
class Outgoing:
    """A frame of ours, encoded once for every neighbor, or for those in `to` alone."""

    frame: RoundFrame
    raw: bytes
    to: frozenset[int] | None = None

    def is_for(self, neighbor: int) -> bool:
        """Whether this neighbor is to hear it."""
        return self.to is None or neighbor in self.to


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing is sent in this exchange, to anybody: it was promised, or is not our turn."""


_SILENCE = Silence()


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round is finished: the method is whole, and this is what the round cost."""

    record: Record


Advance = Outgoing | Silence | RoundEnded


@dataclass(frozen=True, slots=True)
class Saved:
    """An engine between two rounds, without its method."""

    rounds: int  # finished
    seq: int
    back: int  # rounds that a neighbor may fall back by
    starts: tuple[int, ...]  # first exchanges of the last rounds that a neighbor may fall back to
    kept_from: int  # our frames that cover this exchange, or one after it, are kept
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
        self.window = Window(neighbors, method.schedule)
        self.barrier = Barrier(self.window)
        self.stopping = stopping or Stopping(MAX_NODES)  # no graph has a larger diameter
        self.rounds = 0  # finished
        self.last_record: Record | None = None  # of the last finished round
        self._ledger = Ledger(node, self.barrier.neighbors)
        self._flow: Flow[RoundReport] | None = None
        self.between_rounds = True  # the method is whole: no round has begun since the last ended
        self._begins = True  # the exchange under way is the first of its round
        self._talk = Talk(self.window, method.schedule.partners)
        self._promised: set[int] = set()  # exchanges to come in which we will be silent
        self._kept: deque[Outgoing] = deque()
        self._kept_from = 0
        self._back = 0  # rounds that a neighbor may fall back by, should it crash
        self._starts: deque[int] = deque(maxlen=self.window.rounds_behind)  # of the last rounds
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

    def advance(self) -> Advance:
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
                if self.waits is not None and self.barrier.latest >= 0:
                    self.waits[self.barrier.latest] += waited
                if words := self.barrier.words():
                    self._talk.hear(words)
                self._begins = False
                exchange = self._flow.send(self.barrier.open())
        except StopIteration as end:
            self._spend(started)
            return RoundEnded(self._end_round(end.value))
        outgoing = self._speak(exchange)
        self.barrier.expect(exchange.expects)
        if exchange.expects is None:
            self._talk.all_due = True
        else:
            self._talk.expect(exchange.expects)
        self._keep(outgoing)
        self._spend(started)
        return outgoing

    def frames_from(self, neighbor: int, seq: int) -> list[Outgoing]:
        """Those of our frames that a neighbor at exchange `seq` takes: the one that covers it, too.

        One that is further behind asks again when it is there.
        """
        if seq < self._kept_from:
            raise RemoteProtocolError(
                f"neighbor {neighbor} needs exchange {seq}, "
                f"but we keep only those from {self._kept_from} on"
            )
        window, last = self.window, self.window.wanted(seq)[-1]
        return [
            each
            for each in self._kept
            if each.is_for(neighbor)
            and window.last_covered(each.frame) >= seq
            and each.frame.seq <= last
        ]

    def keep_for(self, back: int) -> None:
        """From now on keep what a neighbor needs that may fall back by `back` rounds."""
        if back > self._back:
            self._back = back
            self._starts = deque(self._starts, maxlen=back + self.window.rounds_behind)

    def saved(self) -> Saved:
        """Where we are between two rounds, with the frames that a neighbor may need after a crash.

        A neighbor that falls back by `back` rounds needs the frames of that many rounds before the
        one that it is in, which need not be ours; a neighbor that did not crash may lack our last.
        """
        assert self.between_rounds
        behind = self._back + self.window.rounds_behind - 1
        starts = list(self._starts)[-behind:] if self._back else []
        oldest = max(self._kept_from, min([*starts, self.window.in_doubt(self.seq - 1)]))
        kept = tuple(each for each in self._kept if self.window.last_covered(each.frame) >= oldest)
        return Saved(
            self.rounds,
            self.seq,
            self._back,
            tuple(starts),
            oldest,
            kept,
            capture(self.stopping),
        )

    def go_on(self, saved: Saved) -> None:
        """Take up where an engine like this one was; its method has been restored already.

        What we have promised is in the frames that are kept.
        """
        assert self.between_rounds
        self.rounds = saved.rounds
        self.barrier.begin_at(saved.seq)
        self._back = saved.back
        self._starts = deque(saved.starts, maxlen=saved.back + self.window.rounds_behind)
        self._kept = deque(saved.kept)
        self._kept_from = saved.kept_from
        self._promised.clear()
        for each in saved.kept:
            covered = self.window.covered(each.frame)
            self._promised.update(seq for seq in covered if seq >= saved.seq)
        restore(self.stopping, saved.stopping)

    def _keep(self, outgoing: Outgoing | Silence) -> None:
        seq = self.barrier.seq
        if self._begins:
            self._starts.append(seq)
        kept = self._kept
        if type(outgoing) is Outgoing:
            kept.append(outgoing)
        oldest = self.window.in_doubt(seq)
        if self._back and self._starts[0] < oldest:
            oldest = self._starts[0]
        if oldest > self._kept_from:
            self._kept_from = oldest
            while kept and self.window.last_covered(kept[0].frame) < oldest:
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
        self.stopping.close(self.method.theta, self._talk.close())
        self._flow = None
        self.between_rounds = True
        return record

    def _speak(self, exchange: Exchange) -> Outgoing | Silence:
        """The method's word as a frame; nothing, where it is silent by promise or by its turn."""
        seq, to = self.barrier.seq, exchange.to
        if self._promised and seq in self._promised:
            self._promised.discard(seq)
            if not exchange.promised:
                raise LocalProtocolError(f"exchange {seq}: we had promised to be silent in it")
            self._ledger.count_silence()
            return _SILENCE
        if to is not None and not self._meant_for(to):
            self._ledger.count_silence()
            return _SILENCE
        if word := self.stopping.agreement.word:
            word = self._talk.word(word, to)
        frame: RoundFrame
        if exchange.payload is None:
            frame = Skip(seq, word)
        else:
            if exchange.rounded is not None:
                self._check_rounded(exchange.rounded)
            exchange.payload.flags.writeable = False  # given away: the simulator shares the object
            frame = Delta(seq, exchange.payload, exchange.rounded, word)
            if exchange.promise and self.stopping.agreement.may_promise:
                frame.promise = exchange.promise
                self._promised.update(self.window.covered(frame))
        raw = self.codec.encode(frame)
        self._ledger.count(frame, raw, to)
        return Outgoing(frame, raw, to)

    def _check_rounded(self, rounded: Rounded) -> None:
        if not all_finite(rounded.values):
            raise ConvergenceError(
                f"exchange {self.seq}: a vector with entries that {rounded.form.name} cannot hold; "
                f"{self.method.advice}"
            )

    def _meant_for(self, to: frozenset[int]) -> frozenset[int]:
        """To whom an exchange speaks, if they are neighbors."""
        if to <= self.window.known:
            return to
        raise LocalProtocolError(
            f"exchange {self.seq}: something for nodes {sorted(to - self.window.known)}, "
            f"our neighbors are {self.barrier.neighbors}"
        )
