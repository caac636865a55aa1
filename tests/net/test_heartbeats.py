"""What happens on a connection of which nobody says anything, or that breaks while nobody does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import zmq

from dlag_node.errors import ConfigError
from dlag_node.net.settings import NodeSettings
from dlag_node.trust.keys import new_pair
from dlag_node.wire import Skip
from dlag_node.wire.control import Peer
from tests.net.ends import End, Street
from tests.net.proxy import Proxy

PING, PONG = b"\x04PING", b"\x04PONG"
OFTEN = 0.1  # seconds: the least that can be set

Wired = Callable[..., Awaitable[tuple[End, End, Proxy]]]


@pytest.fixture
async def street() -> AsyncIterator[Street]:
    made = Street()
    yield made
    made.close()


@pytest.fixture
async def wired(street: Street) -> AsyncIterator[Wired]:
    """Makes two ends whose links are up, node 1 having called node 0 through a proxy."""
    proxies: list[Proxy] = []

    async def make(*, keyed: bool = False, heartbeat: float = 0.0) -> tuple[End, End, Proxy]:
        keys = [new_pair() if keyed else None for _ in range(2)]
        low, high = (street.end(i, keys=keys[i], heartbeat=heartbeat) for i in range(2))
        proxy = Proxy(low.router.address, street.arrived.set)
        proxies.append(proxy)
        front = await proxy.listen()
        await low.open([high])
        await high.open([Peer(0, front, -0.5, None if keys[0] is None else keys[0].public)])
        await street.until(lambda: not low.links.down and not high.links.down)
        return low, high, proxy

    yield make
    for proxy in proxies:
        await proxy.close()


@pytest.mark.parametrize("keyed", [False, True])
async def test_a_connection_that_broke_is_opened_again_though_nobody_says_anything(
    keyed: bool, street: Street, wired: Wired
) -> None:
    low, high, proxy = await wired(keyed=keyed)
    for times in range(2, 5):
        low.seq = high.seq = times
        proxy.cut()
        await street.until(lambda times=times: len(high.openings) == len(low.openings) == times)
        assert low.openings[-1] == (1, times)
        assert high.openings[-1] == (0, times)
    low.say(Skip(5))
    high.say(Skip(5))
    await street.until(lambda: low.frames == [(1, Skip(5))] and high.frames == [(0, Skip(5))])


async def test_who_called_pings_and_who_was_called_answers(street: Street, wired: Wired) -> None:
    _, _, proxy = await wired(heartbeat=OFTEN)
    forth, back = proxy.said[0]
    await street.until(lambda: back.count(PONG) >= 5)
    assert forth.count(PING) >= 5
    assert forth.count(PONG) == back.count(PING) == 0


async def test_without_heartbeats_a_silent_connection_stays(street: Street, wired: Wired) -> None:
    low, high, proxy = await wired(heartbeat=0.0)
    other = await wired(heartbeat=OFTEN)
    await street.until(lambda: other[2].said[0][1].count(PONG) >= 10)  # so long it was silent
    forth, back = proxy.said[0]
    assert PING not in forth + back
    assert low.openings == [(1, 0)]
    assert high.openings == [(0, 0)]


async def test_both_ends_give_up_a_connection_that_carries_nothing_any_more(
    street: Street, wired: Wired
) -> None:
    low, high, proxy = await wired(heartbeat=OFTEN)
    await street.until(lambda: PONG in proxy.said[0][1])  # a ping has said how long to wait
    proxy.frozen = True
    await street.until(lambda: len(proxy.said) > 1)  # the caller has called again
    await street.until(lambda: proxy.ended[0])  # the called end has noticed by itself
    proxy.frozen = False
    proxy.cut()
    await street.until(lambda: len(high.openings) > 1 and len(low.openings) > 1)


@pytest.mark.parametrize("seconds", [-1.0, 0.05, 2_001.0, float("nan")])
def test_a_heartbeat_that_cannot_be_is_refused_before_any_socket_opens(seconds: float) -> None:
    with pytest.raises(ConfigError, match=f"heartbeat = {seconds}: expected 0.1 to 2000 seconds"):
        NodeSettings(coordinator="tcp://127.0.0.1:1", heartbeat=seconds)


@pytest.mark.parametrize("seconds", [0.0, 0.1, 10.0, 2_000.0])
def test_an_operator_says_how_often_and_only_calls_are_pinged(
    seconds: float, street: Street
) -> None:
    assert NodeSettings(coordinator="tcp://127.0.0.1:1", heartbeat=seconds).heartbeat == seconds
    socket = street.end(0, heartbeat=seconds).router.socket
    asked = [zmq.HEARTBEAT_IVL, zmq.HEARTBEAT_TIMEOUT, zmq.HEARTBEAT_TTL]
    assert [socket.getsockopt(each) for each in asked] == [
        1e3 * seconds,
        3e3 * seconds,
        3e3 * seconds,
    ]
