"""The barrier: exchange `seq` and the one after it, each neighbor once, nobody else."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dlag_node.errors import RemoteProtocolError
from dlag_node.rounds import Barrier
from dlag_node.rounds.window import Window
from dlag_node.wire import Delta, RoundFrame, Skip


def barrier_at(seq: int, neighbors: tuple[int, ...] = (1, 4)) -> Barrier:
    barrier = Barrier(Window(neighbors))
    while barrier.seq < seq:
        barrier.expect(None)
        for j in neighbors:
            barrier.put(j, Skip(barrier.seq))
        barrier.open()
    barrier.expect(None)
    return barrier


@pytest.mark.parametrize(
    ("before", "neighbor", "seq", "taken"),
    [
        ([], 1, 5, True),
        ([], 1, 6, True),  # one ahead: held
        ([], 1, 4, False),  # of the past: a repeat
        ([], 1, 0, False),
        ([(1, 5)], 1, 5, False),  # twice
        ([(1, 5)], 1, 6, True),
        ([(1, 6)], 1, 6, False),  # twice, one ahead
        ([(1, 6)], 1, 5, True),  # the links of two neighbors are not in step
        ([(4, 5)], 1, 5, True),
    ],
)
def test_a_frame_is_taken_once(
    before: list[tuple[int, int]], neighbor: int, seq: int, taken: bool
) -> None:
    barrier = barrier_at(5)
    for j, earlier in before:
        assert barrier.put(j, Skip(earlier))
    assert barrier.put(neighbor, Skip(seq)) is taken


@pytest.mark.parametrize(
    ("neighbor", "frame", "words"),
    [
        (
            4,
            Skip(7),
            "neighbor 4 sent exchange 7, we are at 5: a neighbor can be 1 ahead, never more",
        ),
        (
            1,
            Delta(8, np.ones(2)),
            "neighbor 1 sent exchange 8, we are at 5: a neighbor can be 1 ahead, never more",
        ),
        (2, Skip(5), "node 2 sent exchange 5, but is no neighbor: expected one of (1, 4)"),
        (2, Skip(4), "node 2 sent exchange 4, but is no neighbor: expected one of (1, 4)"),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(
    neighbor: int, frame: RoundFrame, words: str
) -> None:
    barrier = barrier_at(5)
    with pytest.raises(RemoteProtocolError, match=f"^{re.escape(words)}$"):
        barrier.put(neighbor, frame)
    assert barrier.missing() == [1, 4]
    assert barrier.seq == 5


def test_the_inbox_is_in_ascending_id_whatever_came_first() -> None:
    barrier = Barrier(Window([9, 2, 5]))
    barrier.expect(None)
    vector = np.ones(2)
    for j, frame in ((9, Skip(0)), (2, Delta(0, vector)), (5, Skip(0))):
        assert barrier.lacking
        barrier.put(j, frame)
    assert not barrier.lacking
    inbox = barrier.open()
    assert list(inbox) == [2, 5, 9]
    assert inbox[2] is vector
    assert inbox[5] is None
    assert inbox[9] is None


def test_what_was_one_ahead_is_there_after_opening() -> None:
    barrier = Barrier(Window([1, 4]))
    barrier.expect(None)
    early = np.ones(2)
    barrier.put(4, Delta(1, early))
    barrier.put(4, Skip(0))
    assert barrier.missing() == [1]
    barrier.put(1, Skip(0))
    assert barrier.open() == {1: None, 4: None}
    barrier.expect(None)
    assert barrier.missing() == [1]
    barrier.put(1, Skip(1))
    assert barrier.open()[4] is early
    assert (barrier.seq, barrier.missing()) == (2, [1, 4])


def test_a_node_without_neighbors_waits_for_nobody() -> None:
    barrier = Barrier(Window([]))
    barrier.expect(None)
    assert not barrier.lacking
    assert barrier.open() == {}
    barrier.expect(None)
    assert not barrier.lacking
