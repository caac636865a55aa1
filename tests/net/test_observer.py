"""A node's connection to its laboratory, over a real socket: what it tells, and what it hears."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import numpy as np
import pytest
import zmq

from dlag_node.errors import PeerRefused
from dlag_node.net.observer import Observed
from dlag_node.net.sockets import Socket
from dlag_node.rounds import Record
from dlag_node.wire.frames import Refuse
from dlag_node.wire.observing import (
    FROM_NODE,
    Fallen,
    Farewell,
    FromNode,
    Halted,
    Horizon,
    Ready,
    Snapshots,
)
from dlag_node.wire.schema import pack, unpack

DEADLINE_MS = 60_000
THETA = np.array([0.5, -2.0])


@dataclass
class Pair:
    """A node's end, and the laboratory's."""

    node: Observed
    laboratory: Socket

    def hear(self) -> FromNode:
        assert self.laboratory.poll(DEADLINE_MS), "the node has said nothing"
        self.peer, raw = self.laboratory.recv_multipart()
        return unpack(raw, FROM_NODE, limit=10_000, peer="the node")

    def say(self, raw: bytes) -> None:
        """From the laboratory; waits until it is there."""
        self.laboratory.send_multipart([self.peer, raw])
        assert self.node.socket.poll(DEADLINE_MS)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    context: zmq.Context[Socket] = zmq.Context()
    laboratory = context.socket(zmq.ROUTER)
    laboratory.bind("tcp://127.0.0.1:*")
    node = Observed(context, laboratory.getsockopt_string(zmq.LAST_ENDPOINT), 3, "c0ffee")
    await node.call()
    yield Pair(node, laboratory)
    node.close()
    laboratory.close(0)
    context.destroy(linger=0)


def record(k: int) -> Record:
    return Record(3, k, "Dq", 2, 1, 32, 42, 5, 0.5, 4, 0.25, 0.125, quiet=3)


async def test_ready_and_halted_say_whose_configuration_it_is(pair: Pair) -> None:
    pair.node.ready(7)
    ready = pair.hear()
    assert isinstance(ready, Ready)
    assert (ready.node, ready.rounds, ready.config) == (3, 7, "c0ffee")
    assert ready.cpu > 0
    assert ready.resident > 0
    await pair.node.wait(8)
    halted = pair.hear()
    assert isinstance(halted, Halted)
    assert (halted.node, halted.rounds, halted.config) == (3, 8, "c0ffee")


async def test_rounds_are_told_in_batches_and_at_once_where_it_matters(pair: Pair) -> None:
    for k in range(10):
        pair.node.take(record(k), THETA + k, flush=False)
    batch = pair.hear()
    assert isinstance(batch, Snapshots)
    assert (batch.rounds, batch.deltas, batch.tokens, batch.quiet, batch.age) == (10, 20, 10, 30, 4)
    thetas = np.frombuffer(batch.thetas, "<f8").reshape(-1, 2)
    assert np.array_equal(thetas, THETA + np.arange(10)[:, None])
    pair.node.take(record(10), THETA, flush=True)
    last = pair.hear()
    assert isinstance(last, Snapshots)
    assert (last.tokens, last.quiet) == (1, 3)
    assert (last.rounds, last.deltas, last.thetas) == (11, 2, THETA.astype("<f8").tobytes())


async def test_the_newest_horizon_counts_and_nonsense_is_dropped(pair: Pair) -> None:
    assert pair.node.horizon() is None
    pair.node.ready(0)
    pair.hear()
    pair.say(b"\xc1")
    assert pair.node.horizon() is None
    pair.say(pack(Horizon(10, final=False)))
    assert pair.node.horizon() == Horizon(10, final=False)
    assert pair.node.horizon() is None


async def test_a_refusal_ends_the_node_with_its_reason(pair: Pair) -> None:
    pair.node.ready(0)
    pair.hear()
    pair.say(pack(Refuse("another configuration")))
    with pytest.raises(PeerRefused, match="the laboratory refused us: another configuration"):
        pair.node.horizon()


async def test_the_end_is_told_good_or_bad(pair: Pair) -> None:
    pair.node.fall("StorageError: the disk is full")
    assert pair.hear() == Fallen(3, "StorageError: the disk is full")
    pair.node.farewell(rounds=9, control_bytes=80, seconds=1.5, refused=2, ended="tol")
    farewell = pair.hear()
    assert isinstance(farewell, Farewell)
    assert (farewell.rounds, farewell.control_bytes, farewell.seconds) == (9, 80, 1.5)
    assert (farewell.refused, farewell.ended) == (2, "tol")


async def test_a_laboratory_that_is_not_to_be_found_is_told_nothing_and_called_again() -> None:
    context: zmq.Context[Socket] = zmq.Context()
    node = Observed(context, "tcp://no-such-host.invalid:5", 3, "c0ffee")
    await node.call()
    node.ready(0)  # it hears of it when it is there
    node.close()
    context.destroy(linger=0)
