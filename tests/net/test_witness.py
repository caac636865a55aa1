"""How a node stands, as told to others: whom it waits for, and never less than before."""

from __future__ import annotations

import pytest

from dlag_node.net.faults import Faults
from dlag_node.net.witness import Witness
from dlag_node.rounds import Engine
from dlag_node.wire.codec import Codec
from dlag_node.wire.frames import Skip
from tests.net.test_publisher import Unlinked
from tests.rounds.test_tally import Silent


class Watched:
    """A node between neighbors 1, 2 and 5, by a clock that is set by hand."""

    def __init__(self, *, recorded: bool = False) -> None:
        self.now = 0.0
        neighbors = [1, 2, 5]
        self.engine = Engine(
            Silent(), node=0, neighbors=neighbors, codec=Codec(2), clock=lambda: self.now
        )
        faults = Faults(0, lambda: self.engine.rounds, None, life=0)
        links = Unlinked()
        self.witness = Witness(self.engine, links, faults, run="r", recorded=recorded)  # type: ignore[arg-type]

    def round(self, arrivals: dict[int, float]) -> dict[int, float] | None:
        """One round, with the times of the neighbors' frames; what its record says of waiting."""
        self.engine.advance()
        seq = self.engine.seq
        for neighbor, self.now in arrivals.items():
            assert self.engine.deliver(neighbor, Skip(seq))
        self.engine.advance()
        assert self.engine.last_record is not None
        self.witness.take(self.engine.last_record)
        return self.engine.last_record.waits


def test_whom_a_node_waits_for_is_told_once_that_is_clear_and_never_taken_back() -> None:
    watched = Watched()
    engine, witness = watched.engine, watched.witness
    engine.advance()
    watched.now = 2.0
    assert engine.deliver(5, Skip(0))
    assert witness.waits() == [0.0, 0.0, 0.0]  # for 1 or for 2
    assert engine.deliver(2, Skip(0))
    assert witness.waits() == [2.0, 0.0, 0.0]
    watched.now = 3.0
    assert engine.deliver(1, Skip(0))
    assert witness.waits() == [2.0, 0.0, 0.0]  # here, and not counted yet
    engine.advance()
    assert witness.waits() == [3.0, 0.0, 0.0]


def test_sums_over_rounds_and_the_same_round_by_round_where_they_are_recorded() -> None:
    watched = Watched(recorded=True)
    assert watched.round({1: 0.5, 2: 1.0, 5: 1.5}) == {5: 1.5}
    assert watched.round({5: 1.5, 1: 1.5, 2: 1.75}) == {2: 0.25}
    assert watched.round({1: 1.75, 2: 1.75, 5: 1.75}) == {}
    assert watched.witness.waits() == [0.0, 0.25, 1.5]
    assert watched.witness.tally.wait == pytest.approx(1.75)


def test_records_say_nothing_of_waiting_where_nobody_writes_them() -> None:
    watched = Watched()
    assert watched.round({1: 0.5, 2: 1.0, 5: 1.5}) is None
    assert watched.witness.waits() == [0.0, 0.0, 1.5]
