"""The coordinator's socket: real ZeroMQ on loopback, a scripted client, and strangers."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
import zmq
import zmq.asyncio

from coordinator import server
from coordinator.draft import Draft
from coordinator.plan import RunSettings
from coordinator.roster import Roster
from coordinator.server import Server, run_server
from dlag_node.errors import ConfigError, RunAborted
from dlag_node.wire.control import (
    FROM_COORDINATOR,
    Assignment,
    Chunk,
    Enrol,
    Failed,
    Fetch,
    Finished,
    FromCoordinator,
    FromNode,
    Full,
    Join,
    Report,
    Started,
    Waiting,
)
from dlag_node.wire.frames import Abort, Who
from dlag_node.wire.limits import MAX_CONTROL_BYTES, MAX_NODES, PROTOCOL
from dlag_node.wire.schema import pack, unpack

DRAFT = Draft(RunSettings(topology="path:2"))
ANYWHERE = "tcp://127.0.0.1:*"
DEADLINE = 20.0  # seconds for what takes milliseconds


class Client:
    """A DEALER that says what it is told to say."""

    def __init__(self, context: zmq.asyncio.Context, address: str) -> None:
        self.socket = context.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.RCVHWM, 1)
        self.socket.connect(address)

    async def say(self, message: FromNode) -> None:
        await self.socket.send(pack(message))

    async def hear(self) -> FromCoordinator:
        async with asyncio.timeout(DEADLINE):
            raw = await self.socket.recv()
        return unpack(
            raw, FROM_COORDINATOR, limit=MAX_CONTROL_BYTES, longest=MAX_NODES, peer="coordinator"
        )

    async def ask(self, message: FromNode) -> FromCoordinator:
        await self.say(message)
        return await self.hear()


class Hall:
    """A server that runs, and clients that come and go."""

    def __init__(self, context: zmq.asyncio.Context, server: Server) -> None:
        self._context = context
        self.server = server
        self.serving = asyncio.create_task(server.serve())
        self.clients: list[Client] = []

    def client(self) -> Client:
        self.clients.append(Client(self._context, self.server.address))
        return self.clients[-1]


@pytest_asyncio.fixture
async def hall() -> AsyncIterator[Hall]:
    with zmq.asyncio.Context() as context:
        made = Hall(context, Server(Roster(DRAFT), ANYWHERE))
        yield made
        made.serving.cancel()
        await asyncio.wait([made.serving])
        for client in made.clients:
            client.socket.close()
        made.server.close()


async def test_two_clients_go_through_a_whole_run(hall: Hall) -> None:
    clients = [hall.client(), hall.client()]
    for i, client in enumerate(clients):
        enrol = await client.ask(Join(PROTOCOL, i))
        assert isinstance(enrol, Enrol)
        chunk = await client.ask(Fetch(0))
        assert isinstance(chunk, Chunk)
        assert len(chunk.body) == enrol.size
        await client.say(Report(f"tcp://h:{i}", enrol.samples, 0.1, 1.0, 1.0, 1.0, 1.0))
    for i, client in enumerate(clients):
        assignment = await client.hear()
        assert isinstance(assignment, Assignment)
        assert [peer.node for peer in assignment.peers] == [1 - i]
        await client.say(Started())
        await client.say(Finished(7))
    async with asyncio.timeout(DEADLINE):
        await hall.serving
    assert hall.server.roster.finished


async def test_the_log_says_how_many_nodes_are_missing(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "_SAY_AFTER", 0.01)
    await hall.client().ask(Join(PROTOCOL, None))
    async with asyncio.timeout(DEADLINE):
        while "path:2 needs 2, and 1 have joined" not in caplog.text:
            await asyncio.sleep(0.01)


async def test_a_node_too_many_is_sent_home_and_the_log_says_so_once(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert isinstance(await hall.client().ask(Join(PROTOCOL, None)), Enrol)
    for _ in range(2):
        assert await hall.client().ask(Join(PROTOCOL, None)) == Full(2)
    assert caplog.text.count("more nodes than the 2 of path:2") == 1


async def test_garbage_is_dropped_mentioned_once_and_the_server_goes_on(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    stranger, honest = hall.client(), hall.client()
    with caplog.at_level(logging.WARNING, logger="dlag_node.trust.strangers"):
        for raw in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\x91" * 1_000 + b"\x01", bytes(5_000)):
            await stranger.socket.send(raw)
        await stranger.socket.send_multipart([pack(Join(PROTOCOL, 0)), b"and more"])
        # the same connection, so the garbage has been read when the answer comes
        assert await stranger.ask(Waiting()) == Who()
        assert isinstance(await honest.ask(Join(PROTOCOL, None)), Enrol)
    assert len(caplog.messages) == 1
    assert re.fullmatch(
        r"dropped: peer [0-9a-f]{10} sent 0 bytes that are no message \(said once a peer\)",
        caplog.messages[0],
    )


async def test_a_message_of_several_parts_names_its_peer(
    hall: Hall, caplog: pytest.LogCaptureFixture
) -> None:
    stranger = hall.client()
    await stranger.socket.send_multipart([b"", pack(Join(PROTOCOL, 0))])
    assert await stranger.ask(Waiting()) == Who()
    (line,) = caplog.messages
    assert re.search(r"dropped: peer [0-9a-f]{10} sent a message of 2 parts", line)


async def test_an_oversized_message_costs_its_sender_the_connection_and_nobody_else(
    hall: Hall,
) -> None:
    stranger, honest = hall.client(), hall.client()
    await stranger.socket.send(bytes(MAX_CONTROL_BYTES + 1))
    assert isinstance(await honest.ask(Join(PROTOCOL, None)), Enrol)


async def test_one_that_failed_ends_the_run_and_the_others_hear_why(hall: Hall) -> None:
    clients = [hall.client(), hall.client()]
    for client in clients:
        assert isinstance(await client.ask(Join(PROTOCOL, None)), Enrol)
    await clients[0].say(Failed("the disk is full"))
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(RunAborted, match="node 0: the disk is full"):
            await hall.serving
    assert await clients[1].hear() == Abort("node 0: the disk is full")


async def test_a_peer_that_does_not_read_holds_up_nobody(
    hall: Hall, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It asks for more chunks than all the buffers on the way hold, and takes none."""
    greedy = hall.client()
    assert isinstance(await greedy.ask(Join(PROTOCOL, None)), Enrol)
    heard, all_heard = 0, asyncio.Event()
    handle = hall.server.roster.handle

    def counting(
        peer: bytes, message: FromNode, key: bytes | None
    ) -> list[tuple[bytes, FromCoordinator]]:
        nonlocal heard
        heard += 1
        if heard == 4_000:  # answers of 20 kB: 80 MB
            all_heard.set()
        return handle(peer, message, key)

    monkeypatch.setattr(hall.server.roster, "handle", counting)
    with caplog.at_level(logging.CRITICAL):
        for _ in range(4_000):
            await greedy.say(Fetch(0))
        async with asyncio.timeout(DEADLINE):
            await all_heard.wait()
        assert isinstance(await hall.client().ask(Join(PROTOCOL, None)), Enrol)


async def test_an_address_in_use_is_named(hall: Hall) -> None:
    address = hall.server.address
    with pytest.raises(ConfigError, match=f"cannot listen on {re.escape(address)}: .*in use"):
        Server(Roster(DRAFT), address)


@pytest.mark.parametrize("address", ["", "nonsense", "tcp://127.0.0.1", "tcp://nowhere.invalid:5"])
async def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot listen on {re.escape(address)}: "):
        Server(Roster(DRAFT), address)


async def test_the_address_is_announced() -> None:
    announced: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(run_server(Roster(DRAFT), ANYWHERE, announce=announced))
    async with asyncio.timeout(DEADLINE):
        assert re.fullmatch(r"tcp://127\.0\.0\.1:[1-9][0-9]*", await announced)
    serving.cancel()
    await asyncio.wait([serving])
