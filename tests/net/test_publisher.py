"""What a node publishes, and that nobody who listens, or does not, can hold it up."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest
import zmq

from dlag_node.net.faults import Faults
from dlag_node.net.publisher import Publisher
from dlag_node.net.sockets import Socket
from dlag_node.net.witness import Witness
from dlag_node.rounds import Engine
from dlag_node.rounds.record import Record
from dlag_node.wire.codec import Codec
from dlag_node.wire.schema import pack, unpack
from dlag_node.wire.watching import FROM_WATCHED, MAX_STATUS_BYTES, Status
from tests.rounds.test_tally import Silent

DEADLINE = 60.0  # seconds
RECORD = Record(3, 0, "D", 2, 0, 32, 42, 5, 0.5, 0, 0.25, 0.125)


class Unlinked:
    """Links that count: what a witness reads of them."""

    refused = 2
    control_bytes = 300


@pytest.fixture
def context() -> Iterator[zmq.Context[Socket]]:
    made: zmq.Context[Socket] = zmq.Context()
    yield made
    made.destroy(linger=0)


@pytest.fixture
def witness() -> Witness:
    engine = Engine(Silent(), node=3, neighbors=[1, 7], codec=Codec(2))
    faults = Faults(3, lambda: engine.rounds, None, life=4)
    return Witness(engine, Unlinked(), faults, run="r")  # type: ignore[arg-type]


@pytest.fixture
def ear(context: zmq.Context[Socket]) -> Iterator[Socket]:
    """A watcher's socket, which takes in as little as it can."""
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.setsockopt(zmq.RCVHWM, 1)
    socket.setsockopt(zmq.RCVBUF, 4_096)
    socket.bind("tcp://127.0.0.1:*")
    yield socket
    socket.close(0)


async def hear(socket: Socket) -> Status:
    """The next status, with the event loop running meanwhile."""
    until = time.monotonic() + DEADLINE
    while not socket.poll(0):
        assert time.monotonic() < until, "nobody says anything"
        await asyncio.sleep(0.01)
    return unpack(socket.recv(), FROM_WATCHED, limit=MAX_STATUS_BYTES, peer="a node")


async def test_a_watcher_hears_sums_and_faults(
    context: zmq.Context[Socket], ear: Socket, witness: Witness
) -> None:
    publisher = Publisher(context, ear.getsockopt_string(zmq.LAST_ENDPOINT), witness)
    witness.take(RECORD)
    witness.take(RECORD)
    witness.faults.add(10.0, "something broke")
    heard = await hear(ear)
    while not heard.faults:
        heard = await hear(ear)
    assert (heard.run, heard.node, heard.restarts) == ("r", 3, 4)
    assert (heard.sums.deltas, heard.sums.sent_bytes, heard.sums.refused) == (4, 84, 2)
    assert (heard.sums.compute, heard.sums.wait) == (0.5, 0.25)
    assert [(near.node, near.deltas) for near in heard.near] == [(1, 2), (7, 2)]
    assert heard.residual == 0.5
    assert [(fault.life, fault.text) for fault in heard.latest] == [(4, "something broke")]
    witness.finished = True
    publisher.close()
    while not heard.finished:  # the last word is always said
        heard = await hear(ear)


async def test_a_watcher_that_reads_nothing_holds_nobody_up(
    context: zmq.Context[Socket], ear: Socket, witness: Witness
) -> None:
    publisher = Publisher(context, ear.getsockopt_string(zmq.LAST_ENDPOINT), witness)
    await hear(ear)  # it is there, and reads no more from now on
    for _ in range(8):
        witness.faults.add(0.0, "x" * 2_000)
    size, count = len(pack(witness.status())), 5_000
    begun = time.monotonic()
    for _ in range(count):
        publisher._tell()
    spent = time.monotonic() - begun
    assert spent < 20  # 80 MB that nobody takes; a send that waits would never end
    begun = time.monotonic()
    publisher.close()
    assert time.monotonic() - begun < 10
    waiting = 0
    while ear.poll(500):
        waiting += len(ear.recv())
    assert waiting < count * size / 10  # nor were they kept


async def test_a_watcher_that_is_not_there_costs_nothing(witness: Witness) -> None:
    context: zmq.Context[Socket] = zmq.Context()
    publisher = Publisher(context, "tcp://127.0.0.1:1", witness)
    for _ in range(1_000):
        publisher._tell()
    begun = time.monotonic()
    publisher.close()
    context.term()
    assert time.monotonic() - begun < 5  # nothing lingers
