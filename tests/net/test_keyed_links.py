"""Links with keys: neighbors alone come in, each as itself, and nothing they say can be read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import closing, suppress

import numpy as np
import pytest
import pytest_asyncio

from dlag_node.net.sockets import HEARTBEAT
from dlag_node.trust.keys import KeyPair, new_pair
from dlag_node.wire import Delta, Need, Refuse, Skip
from dlag_node.wire.control import Peer
from tests.net.ends import CODEC, DEADLINE, RUN, End, Street, hello

NOWHERE = "tcp://127.0.0.1:1"


@pytest_asyncio.fixture
async def street() -> AsyncIterator[Street]:
    made = Street()
    yield made
    made.close()


async def listener(street: Street, callers: dict[int, KeyPair]) -> End:
    """Node 0, which waits for these neighbors to call."""
    end = street.end(0, keys=new_pair())
    await end.open([Peer(j, NOWHERE, -0.5, keys.public) for j, keys in callers.items()])
    return end


async def pair(street: Street) -> tuple[End, End]:
    low, high = street.end(0, keys=new_pair()), street.end(1, keys=new_pair())
    await low.open([high])
    await high.open([low])
    await street.until(lambda: not low.links.down and not high.links.down)
    return low, high


async def test_neighbors_open_their_links_and_talk(street: Street) -> None:
    low, high = await pair(street)
    for end in (low, high):
        end.say(Skip(0))
    await street.until(lambda: len(low.frames) == len(high.frames) == 1)
    assert low.links.refused == high.links.refused == 0


async def test_one_socket_listens_and_calls_each_neighbor_by_its_own_key(street: Street) -> None:
    ends = [street.end(i, keys=new_pair()) for i in range(4)]
    for end in ends:
        await end.open([other for other in ends if other is not end], call_all=True)
    await street.until(lambda: not any(end.links.down for end in ends))


async def test_a_caller_waits_until_the_listener_knows_whom_to_let_in(street: Street) -> None:
    low, high = street.end(0, keys=new_pair()), street.end(1, keys=new_pair())
    await high.open([low])
    high.links.greet(0)
    await low.open([high])
    await street.until(lambda: not low.links.down and not high.links.down)
    assert low.links.refused == 0


@pytest.mark.parametrize("kind", ["no admitted key", "no CURVE", "not our key"])
async def test_a_stranger_is_refused_and_counted_and_has_no_effect(
    street: Street, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    low, high = await pair(street)
    with caplog.at_level(logging.WARNING):
        wrong = new_pair().public if kind == "not our key" else None
        stranger = street.stranger(low, None if kind == "no CURVE" else new_pair(), wrong)
        await stranger.say(hello(1))
        await street.until(lambda: low.links.refused > 0, nudge=lambda: None)
    assert low.frames == []
    assert low.openings == [(1, 0)]
    assert len(caplog.messages) == 1
    high.say(Skip(0))
    await street.until(lambda: low.frames == [(1, Skip(0))])


async def test_what_is_no_zeromq_is_cut_off(street: Street) -> None:
    low, high = await pair(street)
    port = int(low.router.address.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n" * 10)
    async with asyncio.timeout(DEADLINE):
        with suppress(ConnectionError):
            while await reader.read(100):
                pass  # its greeting, and then the end
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    high.say(Skip(0))
    await street.until(lambda: low.frames == [(1, Skip(0))])


async def test_a_neighbor_cannot_pass_for_another_one(street: Street) -> None:
    honest, liar = new_pair(), new_pair()
    low = await listener(street, {1: honest, 2: liar})
    stranger = street.stranger(low, liar)
    waiting = asyncio.create_task(stranger.ask(hello(1)))
    await street.until(waiting.done, nudge=lambda: None)
    assert waiting.result() == Refuse("node 1 has another key")
    assert low.links.refused == 1
    assert low.links.down == [1, 2]
    as_itself = asyncio.create_task(stranger.ask(hello(2)))
    await street.until(as_itself.done, nudge=lambda: None)
    assert low.links.down == [1]


async def test_who_listens_at_a_neighbors_address_without_its_key_hears_nothing(
    street: Street,
) -> None:
    """It cannot even pass the hand-shake: our caller asks for the neighbor's key."""
    impostor, high = street.end(0, keys=new_pair()), street.end(1, keys=new_pair())
    await impostor.open([high])
    await high.open([Peer(0, impostor.router.address, -0.5, new_pair().public)])
    await street.until(lambda: impostor.links.refused > 0, nudge=lambda: high.links.greet(0))
    assert impostor.links.down == [1]
    assert high.links.down == [0]
    assert impostor.openings == high.openings == []


class Between:
    """Somebody on the way between two neighbors: reads all of it, and may say a part twice."""

    def __init__(self, address: str) -> None:
        self._port = int(address.rsplit(":", 1)[1])
        self._ways: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []
        self.seen = bytearray()
        self.twice: set[str] = set()  # the ways whose next bytes are repeated

    async def listen(self) -> str:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, far_writer]
        ways = (("to", reader, far_writer), ("from", far_reader, writer))
        self._ways += [asyncio.create_task(self._pass_on(*way)) for way in ways]

    async def _pass_on(
        self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with closing(writer), suppress(ConnectionError):
            while chunk := await reader.read(4_096):
                self.seen += chunk
                writer.write(chunk)
                if way in self.twice:
                    self.twice.remove(way)
                    writer.write(chunk)

    async def close(self) -> None:
        """Once both neighbors are gone."""
        self._server.close()
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*self._ways)
            for writer in self._writers:
                with suppress(ConnectionError):
                    await writer.wait_closed()


async def apart(street: Street, heartbeat: float = HEARTBEAT) -> tuple[End, End, Between]:
    """Two neighbors, and somebody between them."""
    low, high = (street.end(node, keys=new_pair(), heartbeat=heartbeat) for node in (0, 1))
    between = Between(low.router.address)
    assert low.keys is not None
    await low.open([high])
    await high.open([Peer(0, await between.listen(), -0.5, low.keys.public)])
    await street.until(lambda: not low.links.down and not high.links.down)
    return low, high, between


async def test_nothing_that_neighbors_say_can_be_read_on_the_way(street: Street) -> None:
    low, high, between = await apart(street)
    delta = Delta(0, np.full(CODEC.width, 0.1))
    high.say(delta)
    await street.until(lambda: len(low.frames) == 1)
    assert low.keys is not None
    assert len(between.seen) > 567 + 301 + 2 * 128  # hand-shake, Hello and Welcome came this way
    for secret in (RUN.encode(), CODEC.encode(delta)[-24:], b"tcp://", low.keys.secret):
        assert secret not in between.seen
    high.close()
    low.close()
    await between.close()


@pytest.mark.parametrize("way", ["to", "from"])
async def test_what_is_said_twice_on_the_way_is_taken_once_and_the_link_heals(
    street: Street, way: str
) -> None:
    """A repeated frame has a used nonce: the connection is given up, by whichever end reads it.

    Now and then libzmq reads nothing more from it and keeps it open, if it was called: then it is
    the caller's heartbeat that is not answered.
    """
    low, high, between = await apart(street, heartbeat=0.2)
    between.twice.add(way)
    speaker, hearer = (high, low) if way == "to" else (low, high)
    speaker.say(Skip(0))
    await street.until(lambda: len(hearer.frames) == 1)

    def again() -> None:
        """As a node at the barrier does; the called end has asked before, and does so once."""
        if high.links.down:
            high.links.greet(0)
        else:
            high.links.send(0, Need(1))

    heard = len(hearer.frames)
    await street.until(lambda: len(low.openings) > 1 and len(high.openings) > 1, nudge=again)
    assert hearer.frames[heard - 1 :].count((speaker.node, Skip(0))) == 1
    speaker.say(Skip(1))
    await street.until(lambda: (speaker.node, Skip(1)) in hearer.frames)
    high.close()
    low.close()
    await between.close()
