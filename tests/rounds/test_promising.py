"""An engine whose method promises silence: told, kept, told in tokens, and kept after a crash."""

from __future__ import annotations

import numpy as np
import pytest

from dlag_node.errors import LocalProtocolError
from dlag_node.methods.flow import Exchange, Flow, RoundReport, Schedule
from dlag_node.rounds import Engine, Outgoing, Silence
from dlag_node.rounds.stopping import Stopping
from dlag_node.wire.codec import Codec
from tests.rounds.scripts import DIM, Scripted
from tests.rounds.test_engine import finish_round, neighbors_skip


class Promising(Scripted):
    """Speaks with a promise of r, and keeps it for as many exchanges as it says; a round each."""

    def __init__(self, longest: int, rounds: list[tuple[int, bool]]) -> None:
        super().__init__([])
        self.schedule = Schedule(longest, lead=longest + 1, hop=longest + 1)
        self.rounds = rounds  # the promise, and whether it is one of the silences promised

    def round(self) -> Flow[RoundReport]:
        promise, promised = self.rounds[self.k]
        payload = None if promised else np.full(DIM, float(self.k))
        yield Exchange(payload, promise=promise, promised=promised)
        self.k += 1
        return RoundReport(gradients=0, step=0.0, age=0)


KEPT = [(0, False), (2, False), (0, True), (0, True), (1, False), (0, True), (0, False)]


def test_a_promise_is_told_and_kept_and_its_frame_covers_what_follows() -> None:
    engine = Engine(Promising(2, KEPT), node=2, neighbors=[1], codec=Codec(DIM))
    said, covering = [], []
    for seq in range(len(KEPT)):
        outgoing = engine.advance()
        said.append(outgoing.frame.promise if isinstance(outgoing, Outgoing) else None)
        covering.append([each.frame.seq for each in engine.frames_from(1, seq)])
        neighbors_skip(engine)
        engine.advance()
        assert engine.last_record is not None
        assert engine.last_record.quiet == (said[-1] is None)
    assert said == [0, 2, None, None, 1, None, 0]
    assert covering == [[0], [1], [1], [1], [4], [4], [6]]


def test_a_promise_that_is_broken_is_our_own_bug() -> None:
    method = Promising(2, [(2, False), (0, False)])
    engine = Engine(method, node=2, neighbors=[1], codec=Codec(DIM))
    finish_round(engine)
    with pytest.raises(LocalProtocolError, match="exchange 1: we had promised to be silent in it"):
        engine.advance()


def test_who_counts_tells_its_silence_in_tokens() -> None:
    """At rest from round 11 on: what it had promised is kept, and then nothing is promised."""
    rounds = [(2, False), (0, True), (0, True)] * 6
    stopping = Stopping(5, 1e-9, hop=3)
    method = Promising(2, rounds)
    engine = Engine(method, node=2, neighbors=[1], codec=Codec(DIM), stopping=stopping)
    letters = "".join(finish_round(engine).exchanges for _ in rounds)
    assert letters == "Dqq" * 4 + "Dss" * 2  # still since the first round, which draws the ball
    assert stopping.agreement.word == 1  # the neighbor says nothing of its own


def test_what_we_have_promised_survives_a_crash() -> None:
    engine = Engine(Promising(2, KEPT), node=2, neighbors=[1], codec=Codec(DIM))
    for _ in range(3):
        finish_round(engine)
    again = Engine(Promising(2, KEPT), node=2, neighbors=[1], codec=Codec(DIM))
    assert isinstance(again.method, Promising)
    again.method.k = 3
    again.go_on(engine.saved())
    assert [each.frame.seq for each in again.frames_from(1, 3)] == [1]
    assert isinstance(again.advance(), Silence)
