"""Floods: the door shuts, who is inside goes on, and who belongs still comes in."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
import pytest_asyncio

from dlag_node.trust.door import REFUSALS_A_SECOND, STRANGERS_AT_ONCE, Door
from dlag_node.trust.keys import new_pair
from dlag_node.wire import Skip
from dlag_node.wire.control import Peer
from tests.net.ends import End, Street

MANY = 2 * STRANGERS_AT_ONCE


@pytest_asyncio.fixture
async def street() -> AsyncIterator[Street]:
    made = Street()
    yield made
    made.close()


@pytest.fixture
def calls() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def door_of(end: End) -> Door:
    assert end.router._gate is not None
    door = end.router._gate._door
    assert door is not None
    return door


def call(address: str) -> socket.socket:
    """Begin to connect, and do not wait for an answer."""
    opened = socket.socket()
    opened.setblocking(False)
    with suppress(BlockingIOError):
        opened.connect(("127.0.0.1", int(address.rsplit(":", 1)[1])))
    return opened


def leaving(address: str, _: ExitStack) -> None:
    """Many that connect and go."""
    for _ in range(50):
        with socket.socket() as opened:
            opened.settimeout(0.05)
            with suppress(OSError):
                opened.connect(("127.0.0.1", int(address.rsplit(":", 1)[1])))


def staying(address: str, calls: ExitStack) -> None:
    """Many that connect and say nothing."""
    for _ in range(50):
        calls.enter_context(call(address))


@pytest.mark.parametrize("flood", [leaving, staying])
async def test_a_flood_shuts_the_door_and_neighbors_still_come_in(
    street: Street, calls: ExitStack, flood: Callable[[str, ExitStack], None]
) -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 3 * MANY
    low, high = street.end(0, keys=new_pair()), street.end(1, keys=new_pair())
    late_keys = new_pair()
    assert low.keys is not None
    assert high.keys is not None
    await low.open(
        [
            Peer(1, high.router.address, -0.5, high.keys.public),
            Peer(2, "tcp://127.0.0.1:1", -0.5, late_keys.public),
        ]
    )
    await high.open([low])
    await street.until(lambda: low.links.down == [2] and not high.links.down)
    await street.until(
        lambda: door_of(low).times_shut > 0,
        nudge=lambda: flood(low.router.address, calls),
    )
    high.say(Skip(0))  # who is inside notices nothing
    await street.until(lambda: low.frames == [(1, Skip(0))])
    calls.close()  # the flood is over
    late = street.end(2, keys=late_keys)
    await late.open([low])
    await street.until(lambda: not low.links.down and not late.links.down, nudge=lambda: None)


async def test_while_it_is_shut_nobody_connects_and_then_they_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        door = Door(server.fileno(), expected=1)
        inside = socket.create_connection(server.getsockname())
        outside, _ = server.accept()
        for _ in range(REFUSALS_A_SECOND):
            door.failed()
        assert door.times_shut == 0
        door.failed()
        assert door.times_shut == 1
        with socket.socket() as newcomer:
            newcomer.settimeout(0.2)
            with pytest.raises(TimeoutError):
                newcomer.connect(server.getsockname())
        inside.sendall(b"x")
        assert outside.recv(1) == b"x"
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(20.0):
            with socket.socket() as newcomer:
                newcomer.setblocking(False)
                await loop.sock_connect(newcomer, server.getsockname())  # by itself, a bit later
        inside.close()
        outside.close()
        door.close()
