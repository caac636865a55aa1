"""A node as bytes: what comes back is what went in, and what does not belong is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlag_node.errors import CheckpointRefused
from dlag_node.methods.state import capture
from dlag_node.rounds.checkpoint import Owner, freeze, seal, thaw, unseal
from dlag_node.wire.codec import Codec
from tests.rounds.crashes import DIM, owner_of, wandering
from tests.rounds.meshes import run_in_order

COUNTS = [2] * 12


def pair(rounds: int) -> list:  # type: ignore[type-arg]
    engines = [wandering(0, [1], COUNTS), wandering(1, [0], COUNTS)]
    for engine in engines:
        engine.keep_for(2)
    run_in_order(engines, rounds)
    return engines


@pytest.mark.parametrize("rounds", [0, 1, 2, 7])
def test_what_comes_back_is_what_went_in(rounds: int) -> None:
    engine = pair(rounds)[0]
    body = freeze(engine, owner_of(0), finished=True, done=frozenset({1}), moved={1: "tcp://x:1"})
    found = thaw(body, owner_of(0), Codec(DIM))
    assert (found.finished, found.done, found.moved) == (True, {1}, {1: "tcp://x:1"})
    again = wandering(0, [1], COUNTS)
    found.into(again)
    assert (again.rounds, again.seq) == (rounds, 2 * rounds)
    assert capture(again.method).keys() == capture(engine.method).keys()
    assert freeze(
        again, owner_of(0), finished=True, done=frozenset({1}), moved={1: "tcp://x:1"}
    ) == (body)
    # the frames of the two rounds that the neighbor may fall back by, and no others
    kept = again.saved().kept
    assert [each.frame.seq for each in kept] == list(range(max(0, 2 * rounds - 4), 2 * rounds))
    theirs = engine.saved().kept
    assert [(each.raw, each.to) for each in kept] == [(each.raw, each.to) for each in theirs]


def test_a_checkpoint_does_not_change_with_the_engine_that_it_was_taken_from() -> None:
    engines = pair(3)
    body = freeze(engines[0], owner_of(0))
    run_in_order(engines, 5)
    again = wandering(0, [1], COUNTS)
    thaw(body, owner_of(0), Codec(DIM)).into(again)
    assert again.rounds == 3
    assert freeze(again, owner_of(0)) == body
    assert not np.array_equal(again.method.theta, engines[0].method.theta)


@pytest.mark.parametrize(
    ("owner", "words"),
    [
        (Owner("another", "config", 0), "a checkpoint of run 'run', ours is 'another'"),
        (Owner("run", "another", 0), "a checkpoint of configuration 'config', ours is 'another'"),
        (Owner("run", "config", 3), "a checkpoint of node 0, ours is 3"),
    ],
)
def test_a_foreign_one_is_refused_with_the_difference(owner: Owner, words: str) -> None:
    body = freeze(pair(2)[0], owner_of(0))
    with pytest.raises(CheckpointRefused, match=f"^{words}$"):
        thaw(body, owner, Codec(DIM))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "0 bytes that are no checkpoint"),
        (b"\xc1", "1 bytes that are no checkpoint"),
        (b"\x05", "1 bytes that are no checkpoint"),
        (b"\x91\x01", "2 bytes that are no checkpoint"),
        (b"\x94\x63\xa3run\xa6config\x00", "a checkpoint of version 99, ours is 3"),
        (b"\x94\x03\xa3run\xa6config\x00", "a checkpoint that makes no sense: not enough values"),
    ],
)
def test_other_bytes_are_refused(body: bytes, words: str) -> None:
    with pytest.raises(CheckpointRefused, match=words):
        thaw(body, owner_of(0), Codec(DIM))


def test_a_checkpoint_with_longer_vectors_is_refused() -> None:
    body = freeze(pair(2)[0], owner_of(0))
    with pytest.raises(CheckpointRefused, match="makes no sense: the checkpoint sent exchange"):
        thaw(body, owner_of(0), Codec(DIM + 1))


@given(body=st.binary(max_size=300), serial=st.integers(0, 2**64 - 1), behind=st.binary(max_size=9))
def test_a_seal_holds_whatever_lies_behind_it(body: bytes, serial: int, behind: bytes) -> None:
    assert unseal(seal(body, serial) + body + behind) == (serial, body)


@given(
    body=st.binary(min_size=1, max_size=300), cut=st.integers(1, 400), flip=st.integers(0, 10**6)
)
def test_a_torn_or_damaged_one_is_noticed(body: bytes, cut: int, flip: int) -> None:
    raw = seal(body, 7) + body
    with pytest.raises(CheckpointRefused, match="torn"):
        unseal(raw[: max(0, len(raw) - cut)])
    at, bit = divmod(flip % (8 * len(raw)), 8)
    damaged = bytearray(raw)
    damaged[at] ^= 1 << bit
    with pytest.raises(CheckpointRefused, match=r"torn|not ours"):
        unseal(bytes(damaged))
