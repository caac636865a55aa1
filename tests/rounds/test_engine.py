"""The engine: a method on one side, frames on the other, and exact counts in between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.methods.flow import Exchange, Flow, RoundReport
from dlag_node.rounds import Engine, Outgoing, Record, RoundEnded, Silence
from dlag_node.wire import Delta, Skip
from dlag_node.wire.codec import Codec
from tests.rounds.scripts import DIM, Script, Scripted

NEIGHBORS = (1, 4, 6)


def engine_of(script: Script, neighbors: tuple[int, ...] = NEIGHBORS) -> Engine:
    ticks: Iterator[int] = count()
    return Engine(
        Scripted(script),
        node=2,
        neighbors=neighbors,
        codec=Codec(DIM),
        clock=lambda: float(next(ticks)),
    )


def neighbors_skip(engine: Engine) -> None:
    for j in engine.barrier.neighbors:
        engine.deliver(j, Skip(engine.seq))


def finish_round(engine: Engine) -> Record:
    before = engine.rounds
    while engine.rounds == before:
        assert engine.ready
        engine.advance()
        if not engine.between_rounds:
            neighbors_skip(engine)
    assert engine.last_record is not None
    return engine.last_record


# A delta of 3 entries at seq < 128: array 1, code 1, seq 1, bin head 2, 24 bytes; a skip 3.
DELTA_BYTES, SKIP_BYTES, PAYLOAD = 29, 3, 24


@pytest.mark.parametrize(
    ("script", "exchanges", "deltas", "skips"),
    [
        ([], "", 0, 0),
        ([1.0], "D", 1, 0),
        ([None], "s", 0, 1),
        ([1.0, None, 2.0, None, None], "DsDss", 2, 3),
        ([None] * 7, "sssssss", 0, 7),
    ],
)
def test_the_record_counts_every_frame_over_every_edge(
    script: list[float | None], exchanges: str, deltas: int, skips: int
) -> None:
    engine = engine_of([[1.0], script, []])  # not the first round: counts begin from nothing
    finish_round(engine)
    record = finish_round(engine)
    edges = len(NEIGHBORS)
    assert replace(record, compute=0.0, wait=0.0) == Record(
        node=2,
        k=1,
        exchanges=exchanges,
        deltas=edges * deltas,
        skips=edges * skips,
        payload_bytes=edges * deltas * PAYLOAD,
        sent_bytes=edges * (deltas * DELTA_BYTES + skips * SKIP_BYTES),
        gradients=20,
        step=0.5,
        age=1 + len(script),
        compute=0.0,
        wait=0.0,
    )
    assert Record.from_json(record.to_json()) == record
    assert finish_round(engine).exchanges == ""


def test_the_bytes_counted_are_the_bytes_of_the_frames() -> None:
    engine = engine_of([[float(k), None] for k in range(100)])
    for _ in range(100):  # past seq 127, where a frame grows by a byte
        raws = []
        for _ in range(2):
            outgoing = engine.advance()
            assert isinstance(outgoing, Outgoing)
            raws.append(outgoing.raw)
            neighbors_skip(engine)
        engine.advance()
        assert engine.last_record is not None
        assert engine.last_record.sent_bytes == len(NEIGHBORS) * sum(map(len, raws))
    assert engine.seq == 200


def test_time_is_split_into_computing_and_waiting() -> None:
    engine = engine_of([[1.0, 2.0]])
    record = finish_round(engine)
    # the clock ticks once a look: 1 s for each of three advances, 1 s for each of two waits
    assert (record.compute, record.wait) == (3.0, 2.0)


def test_a_round_without_exchanges_ends_at_once() -> None:
    engine = engine_of([[], [], [5.0]])
    assert isinstance(engine.advance(), RoundEnded)
    assert isinstance(engine.advance(), RoundEnded)
    assert (engine.rounds, engine.seq) == (2, 0)
    outgoing = engine.advance()
    assert isinstance(outgoing, Outgoing)
    assert outgoing.frame.seq == 0


def test_the_engine_is_ready_between_rounds_and_when_the_barrier_is_whole() -> None:
    engine = engine_of([[1.0], [2.0]], neighbors=(1, 4))
    assert engine.between_rounds
    assert engine.ready
    engine.advance()
    assert not engine.between_rounds
    assert not engine.ready
    assert engine.deliver(1, Skip(0))
    assert not engine.ready
    assert not engine.deliver(1, Skip(0))
    assert engine.deliver(4, Delta(0, np.ones(DIM)))
    assert engine.ready
    assert isinstance(engine.advance(), RoundEnded)
    assert engine.between_rounds
    assert (engine.rounds, engine.seq) == (1, 1)


def test_a_frame_for_the_next_round_may_come_before_it_begins() -> None:
    engine = engine_of([[1.0], [2.0]], neighbors=(1,))
    early = np.ones(DIM)
    engine.deliver(1, Skip(0))
    engine.deliver(1, Delta(1, early))
    engine.advance()
    engine.advance()
    engine.advance()
    assert engine.ready
    engine.advance()
    assert isinstance(engine.method, Scripted)
    assert [inbox[1] is early for inbox in engine.method.heard] == [False, True]


def test_a_payload_is_given_away_read_only() -> None:
    engine = engine_of([[1.0]])
    outgoing = engine.advance()
    assert isinstance(outgoing, Outgoing)
    assert isinstance(outgoing.frame, Delta)
    assert isinstance(engine.method, Scripted)
    (sent,) = engine.method.sent
    assert sent is outgoing.frame.vector
    assert sent is not None
    with pytest.raises(ValueError, match="read-only"):
        sent[0] = 2.0


class Whisper(Scripted):
    """Speaks to some of its neighbors."""

    def __init__(self, *to: frozenset[int] | None) -> None:
        super().__init__([])
        self.to = to

    def round(self) -> Flow[RoundReport]:
        for to in self.to:
            yield Exchange(np.ones(DIM), to)
        return RoundReport(gradients=0, step=0.0, age=0)


def test_a_vector_for_some_is_nothing_for_the_others_and_counted_by_edge() -> None:
    method = Whisper(frozenset({4}), frozenset({1, 6}), None, frozenset())
    engine = Engine(method, node=2, neighbors=NEIGHBORS, codec=Codec(DIM))
    heard = []
    for seq in range(3):
        outgoing = engine.advance()
        assert isinstance(outgoing, Outgoing)
        heard.append([j for j in NEIGHBORS if outgoing.is_for(j)])
        for j in NEIGHBORS:
            assert engine.frames_from(j, seq) == ([outgoing] if j in heard[-1] else [])
        neighbors_skip(engine)
    assert isinstance(engine.advance(), Silence)
    assert engine.frames_from(1, 3) == []
    neighbors_skip(engine)
    engine.advance()
    assert heard == [[4], [1, 6], [1, 4, 6]]
    record = engine.last_record
    assert record is not None
    assert (record.exchanges, record.deltas, record.skips, record.quiet) == ("DDDq", 6, 0, 6)
    assert record.payload_bytes == 6 * PAYLOAD
    assert record.sent_bytes == 6 * DELTA_BYTES
    assert record.told == [2, 2, 2]


def test_a_vector_for_a_stranger_is_our_own_bug() -> None:
    engine = Engine(Whisper(frozenset({3})), node=2, neighbors=NEIGHBORS, codec=Codec(DIM))
    words = r"exchange 0: something for nodes \[3\], our neighbors are \(1, 4, 6\)"
    with pytest.raises(LocalProtocolError, match=words):
        engine.advance()


def test_the_last_two_frames_are_kept() -> None:
    engine = engine_of([[1.0, None, 3.0, 4.0]])
    assert engine.frames_from(1, 0) == []  # nothing sent yet
    sent = []
    for seq in range(4):
        outgoing = engine.advance()
        sent.append(outgoing)
        oldest = max(0, seq - 1)
        for need in range(oldest, seq + 3):
            assert engine.frames_from(4, need) == sent[need:]
        for need in range(oldest):
            words = f"neighbor 4 needs exchange {need}, but we keep only those from {oldest} on"
            with pytest.raises(RemoteProtocolError, match=words):
                engine.frames_from(4, need)
        neighbors_skip(engine)


@pytest.mark.parametrize("garbage", [None, 3, "done", {"gradients": 1}], ids=repr)
@pytest.mark.parametrize("exchanges", [0, 1])
def test_a_round_that_returns_garbage_is_our_own_bug(garbage: object, exchanges: int) -> None:
    class Careless(Scripted):
        def round(self) -> Flow[RoundReport]:
            for _ in range(exchanges):
                yield Exchange(None)
            return garbage  # type: ignore[return-value]

    engine = Engine(Careless([]), node=2, neighbors=[1], codec=Codec(DIM))
    for _ in range(exchanges):
        engine.advance()
        engine.deliver(1, Skip(0))
    with pytest.raises(LocalProtocolError, match="a round returned"):
        engine.advance()


@pytest.mark.parametrize("word", [np.inf, -np.inf, np.nan])
def test_a_round_that_yields_an_entry_that_is_not_finite_is_our_own_bug(word: float) -> None:
    engine = engine_of([[word]])
    with pytest.raises(LocalProtocolError, match="exchange 0: a delta of shape"):
        engine.advance()


def test_a_refused_frame_leaves_the_engine_as_it_was() -> None:
    engine = engine_of([[1.0]], neighbors=(1,))
    engine.advance()
    with pytest.raises(RemoteProtocolError, match="we are at 0"):
        engine.deliver(1, Skip(2))
    with pytest.raises(RemoteProtocolError, match="no neighbor"):
        engine.deliver(7, Skip(0))
    assert not engine.ready
    assert engine.deliver(1, Skip(0))
    assert isinstance(engine.advance(), RoundEnded)
