"""The barrier: exchange `seq` and those after it, each neighbor once, and only who is due."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest

from dlag_node.errors import LocalProtocolError, RemoteProtocolError
from dlag_node.methods.flow import Schedule
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


PROMISES = Schedule(3, lead=4)


def delta(seq: int, promise: int = 0) -> Delta:
    return Delta(seq, np.ones(2), promise=promise)


def promised_at(seq: int, *, schedule: Schedule = PROMISES) -> Barrier:
    """Of neighbors 1 and 4, in exchange `seq`, as after a crash."""
    barrier = Barrier(Window((1, 4), schedule))
    barrier.begin_at(seq)
    barrier.expect(None)
    return barrier


def test_nobody_waits_for_who_has_promised_to_be_silent() -> None:
    barrier = promised_at(5)
    assert barrier.put(1, delta(5, promise=2))
    assert barrier.put(4, delta(5))
    for seq in (6, 7):
        barrier.open()
        barrier.expect(None)
        assert (barrier.seq, barrier.missing(), barrier.lacking) == (seq, [4], 1)
        assert barrier.put(4, delta(seq))
        assert not barrier.lacking
    assert barrier.open()[1] is None
    barrier.expect(None)
    assert (barrier.missing(), barrier.lacking) == ([1, 4], 2)


@pytest.mark.parametrize("seq", [3, 4])
def test_a_frame_from_before_us_is_taken_at_its_word(seq: int) -> None:
    """As after a crash of ours: what covers our exchange is older than it."""
    barrier = promised_at(5)
    assert not barrier.put(1, delta(seq, promise=2))
    assert (barrier.missing(), barrier.lacking, barrier.latest) == ([4], 1, 1)
    assert min(barrier._quiet) == 5  # what is over is not noted: nobody would forget it again
    assert not barrier.put(1, delta(seq, promise=2))  # and again
    assert barrier.lacking == 1
    assert barrier.put(4, delta(5))
    assert barrier.open() == {1: None, 4: pytest.approx(np.ones(2))}
    barrier.expect(None)
    assert barrier.missing() == ([4] if seq == 4 else [1, 4])


def test_a_promise_with_a_stride_leaves_the_exchanges_between_alone() -> None:
    barrier = promised_at(6, schedule=Schedule(2, stride=3, lead=2))
    barrier.put(1, delta(6, promise=2))
    lacked = []
    for _ in range(9):
        lacked.append(1 in barrier.missing())
        for j in barrier.missing():
            barrier.put(j, delta(barrier.seq))
        barrier.open()
        barrier.expect(None)
    assert lacked == [False, True, True] * 3


@pytest.mark.parametrize(
    ("before", "frame", "words"),
    [
        (delta(5, 2), Skip(6), "neighbor 1 sent exchange 6, in which it had promised silence"),
        (delta(5, 2), delta(7), "neighbor 1 sent exchange 7, in which it had promised silence"),
        (delta(4, 1), delta(5), "neighbor 1 sent exchange 5, in which it had promised silence"),
        (delta(6), delta(5, 1), "neighbor 1 promised silence in exchange 6, which it has sent"),
        (delta(7), delta(5, 3), "neighbor 1 promised silence in exchange 7, which it has sent"),
        (delta(7), delta(4, 3), "neighbor 1 promised silence in exchange 7, which it has sent"),
        (delta(6), delta(5, 4), "exchange 5 with a promise of 4, expected 3 at most"),
        (delta(6), delta(4, 4), "exchange 4 with a promise of 4, expected 3 at most"),
    ],
)
def test_a_broken_promise_is_refused_and_changes_nothing(
    before: Delta, frame: RoundFrame, words: str
) -> None:
    barrier = promised_at(5)
    barrier.put(1, before)
    seen = copy.deepcopy(vars(barrier))
    with pytest.raises(RemoteProtocolError, match=f"^{re.escape(words)}$"):
        barrier.put(1, frame)
    after = vars(barrier)
    for name in ("lacking", "latest", "_quiet", "_due", "seq"):
        assert after[name] == seen[name], name
    assert {q: [*slot] for q, slot in after["_held"].items()} == {
        q: [*slot] for q, slot in seen["_held"].items()
    }


def test_only_who_is_due_is_waited_for() -> None:
    barrier = promised_at(5)
    barrier.expect(frozenset({4}))
    assert (barrier.missing(), barrier.lacking) == ([4], 1)
    with pytest.raises(RemoteProtocolError, match="neighbor 1 sent exchange 5, in which nothing"):
        barrier.put(1, Skip(5))
    assert barrier.put(1, Skip(6))  # perhaps it is due then
    assert barrier.put(4, Skip(5))
    assert barrier.open() == {1: None, 4: None}
    barrier.expect(frozenset({1}))
    assert not barrier.lacking
    barrier.open()
    barrier.expect(frozenset())
    assert (barrier.missing(), barrier.lacking) == ([], 0)


def test_what_came_early_and_is_not_due_is_refused_by_name() -> None:
    barrier = promised_at(5)
    barrier.put(1, Skip(6))
    barrier.put(1, Skip(5))
    barrier.put(4, Skip(5))
    barrier.open()
    with pytest.raises(RemoteProtocolError, match="neighbor 1 sent exchange 6, in which nothing"):
        barrier.expect(frozenset({4}))


def test_to_expect_a_stranger_is_our_own_bug() -> None:
    with pytest.raises(LocalProtocolError, match=r"exchange 5: something due from nodes \[1, 3\]"):
        promised_at(5).expect(frozenset({1, 3}))
