"""Links over real ZeroMQ: hello opens them, strangers stay outside, and nothing ends them."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from itertools import permutations

import networkx as nx
import numpy as np
import pytest
import pytest_asyncio
import zmq

from dlag_node.errors import RemoteProtocolError
from dlag_node.rounds import Engine, Outgoing
from dlag_node.wire import PROTOCOL, Abort, Delta, Frame, Hello, Need, Refuse, Skip, Welcome, Who
from tests.net.ends import CODEC, CONFIG, DEADLINE, DIM, LIMIT, RUN, End, Street, hello
from tests.rounds.crashes import Wanderer, wandering
from tests.rounds.meshes import engines_on, run_in_order


@pytest_asyncio.fixture
async def street() -> AsyncIterator[Street]:
    made = Street()
    yield made
    made.close()


async def pair(street: Street) -> tuple[End, End]:
    """Node 0 listens, node 1 has called it."""
    low, high = street.end(0), street.end(1)
    await low.open([high])
    await high.open([low])
    await street.until(lambda: not low.links.down and not high.links.down)
    return low, high


def welcome(node: int, address: str) -> Welcome:
    return Welcome(PROTOCOL, RUN, CONFIG, node, 0, 0, address)


def skips(first: int, last: int) -> list[Frame]:
    return [Skip(seq) for seq in range(first, last)]


def heard(end: End, neighbor: int) -> list[Frame]:
    return [frame for j, frame in end.frames if j == neighbor]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_links_open_in_any_order_of_starting(street: Street, order: tuple[int, ...]) -> None:
    ends = [street.end(i) for i in range(3)]
    for end in ends:
        end.seq = 10 + end.node
    for i in order:
        await ends[i].open([end for end in ends if end.node != i])
    await street.until(lambda: not any(end.links.down for end in ends))
    for end in ends:
        # each neighbor's first words tell where it is
        assert set(end.openings) == {(j, 10 + j) for j in range(3) if j != end.node}
        assert end.frames == []
        assert end.links.refused == 0


async def test_a_caller_may_be_there_before_the_listener(street: Street) -> None:
    gone = street.end(0)
    address = gone.router.address
    gone.close()
    high = street.end(1)
    await high.open([0], address)
    assert high.links.down == [0]
    low = street.end(0, address)
    await low.open([high])
    await street.until(lambda: not low.links.down and not high.links.down)


async def test_frames_arrive_in_order(street: Street) -> None:
    low, high = await pair(street)
    for frame in skips(0, 500):
        low.say(frame)
        high.say(frame)
    await street.until(lambda: len(low.frames) == len(high.frames) == 500)
    assert heard(low, 1) == heard(high, 0) == skips(0, 500)


async def test_a_vector_crosses_bit_for_bit(street: Street) -> None:
    low, high = await pair(street)
    vector = np.array([-0.0, 5e-324, 1.7e308])
    high.say(Delta(3, vector))
    await street.until(lambda: len(low.frames) == 1)
    ((_, frame),) = low.frames
    assert isinstance(frame, Delta)
    assert frame.vector.tobytes() == vector.tobytes()


async def test_a_frame_to_a_neighbor_that_has_not_called_is_no_error(street: Street) -> None:
    low = street.end(0)
    await low.open([1])
    low.say(Skip(0))
    low.links.send(1, Need(0))
    low.links.greet(1)
    assert low.links.down == [1]


REFUSED: dict[str, tuple[Hello, str]] = {
    "wrong run": (replace(hello(8), run="another"), f"run id 'another', ours is {RUN}"),
    "no run": (replace(hello(8), run=""), f"run id '', ours is {RUN}"),
    "a run id of two lines": (
        replace(hello(8), run="a\nERROR"),
        f"run id 'a\\nERROR', ours is {RUN}",
    ),
    "wrong version": (replace(hello(8), version=1), "protocol version 1, ours is 2"),
    "wrong configuration": (
        replace(hello(8), config="d0" * 32),
        f"configuration hash 'd0d0d0d0d0d0', ours is {CONFIG:.12}",
    ),
    "unknown node": (hello(7), "node 7 is none of our 3 neighbors"),
    "the node itself": (hello(4), "node 4 is none of our 3 neighbors"),
}


@pytest.mark.parametrize(("words", "reason"), REFUSED.values(), ids=REFUSED)
async def test_who_does_not_belong_is_told_why(
    street: Street, words: Hello, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    third, end = street.end(3), street.end(4)
    await third.open([end])
    await end.open([third, 8, 9])
    await street.until(lambda: end.openings == [(3, 0)])
    stranger = street.stranger(end)
    assert await stranger.ask(words) == Refuse(reason)
    assert end.links.refused == 1
    assert end.openings == [(3, 0)]
    assert end.links.down == [8, 9]
    assert end.frames == []
    assert len(caplog.messages) == 1
    assert reason in caplog.messages[0]


async def test_a_hub_with_hundreds_of_callers_refuses_in_few_words(street: Street) -> None:
    """A list of them all would not fit into a reason."""
    hub = street.end(0)
    await hub.open(range(1, 1_000))
    assert await street.stranger(hub).ask(hello(2_000)) == Refuse(
        "node 2000 is none of our 999 neighbors"
    )
    assert isinstance(await street.stranger(hub).ask(hello(7)), Welcome)


@pytest.mark.parametrize(
    "frame",
    [Skip(0), Delta(0, np.ones(DIM)), Need(0), Who(), Refuse("you"), welcome(1, "tcp://h:1")],
    ids=lambda frame: type(frame).__name__,
)
async def test_a_frame_before_hello_gets_a_question_and_goes_nowhere(
    street: Street, frame: Frame
) -> None:
    low = street.end(0)
    await low.open([1])
    stranger = street.stranger(low)
    assert await stranger.ask(frame) == Who()
    assert isinstance(await stranger.ask(hello(1, need=4)), Welcome)
    await stranger.say(Skip(4))
    await street.until(lambda: len(low.frames) == 1)
    assert low.frames == [(1, Skip(4))]
    assert low.openings == [(1, 4)]
    assert low.links.refused == 1


async def test_a_stranger_cannot_take_a_neighbors_place(street: Street) -> None:
    low, high = await pair(street)
    stranger = street.stranger(low)
    forged = replace(hello(1), run="another")
    assert isinstance(await stranger.ask(forged), Refuse)
    await stranger.say(Skip(0))
    await stranger.say(forged)
    await street.until(lambda: low.links.refused == 3)
    for frame in skips(0, 20):
        low.say(frame)
        high.say(frame)
    await street.until(lambda: len(low.frames) == len(high.frames) == 20)
    assert heard(low, 1) == heard(high, 0) == skips(0, 20)
    assert low.openings == [(1, 0)]


async def test_parts_of_a_message_reach_nobody_and_shift_nothing(street: Street) -> None:
    low = street.end(0)
    await low.open([1])
    neighbor, stranger = street.stranger(low), street.stranger(low)
    assert isinstance(await neighbor.ask(hello(1)), Welcome)
    # a neighbor's first part is a frame of its own, the others are nobody's
    await neighbor.say(Skip(0), Skip(1))
    await neighbor.say(b"", Skip(2), b"")
    await neighbor.say(Skip(3))
    # nothing of a stranger's passes, not even a part that looks like a route and a frame
    await stranger.say(b"", hello(1))
    await stranger.say(b"", low.links._links[1].route or b"", Skip(4))
    await neighbor.say(Skip(5))
    await street.until(lambda: low.links.refused == 5 and len(low.frames) == 3)
    assert low.frames == [(1, Skip(0)), (1, Skip(3)), (1, Skip(5))]
    assert low.openings == [(1, 0)]


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x93\x01\x00", b"\x91" * 1_000 + b"\x01", CODEC.encode(Skip(0)) + b"\0", b"\xc1"],
    ids=["empty", "truncated", "nested", "trailing", "no msgpack"],
)
async def test_nonsense_from_a_neighbor_is_dropped_and_the_link_stays(
    street: Street, raw: bytes
) -> None:
    low = street.end(0)
    await low.open([1])
    neighbor = street.stranger(low)
    assert isinstance(await neighbor.ask(hello(1)), Welcome)
    await neighbor.say(raw)
    await neighbor.say(Skip(0))
    await street.until(lambda: len(low.frames) == 1)
    assert low.links.refused == 1
    assert low.links.down == []


async def test_a_neighbor_that_the_engine_refuses_is_dropped_and_the_link_stays(
    street: Street,
) -> None:
    low, high = await pair(street)
    engine = wandering(0, [1], [1])
    low.deliver = engine.deliver  # type: ignore[assignment]
    for seq in (5, 0):
        high.say(Skip(seq))
    await street.until(lambda: len(low.frames) == 2)
    assert low.links.refused == 1
    assert engine.barrier.missing() == []


async def test_an_oversized_message_breaks_only_its_own_link_which_recovers(
    street: Street,
) -> None:
    low, other = street.end(0), street.end(2)
    await low.open([1, other])
    await other.open([low])
    neighbor = street.stranger(low)
    monitor = neighbor.socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    try:
        assert isinstance(await neighbor.ask(hello(1)), Welcome)
        async with asyncio.timeout(DEADLINE):
            await monitor.recv_multipart()
            await neighbor.say(bytes(LIMIT + 1))
            await monitor.recv_multipart()  # thrown out, it has connected again
        assert await neighbor.ask(Skip(0)) == Who()
        assert isinstance(await neighbor.ask(hello(1, need=3)), Welcome)
        await neighbor.say(bytes(LIMIT))  # the largest that is read at all
        await neighbor.say(Skip(3))
        other.say(Skip(0))
        await street.until(lambda: len(low.frames) == 2)
    finally:
        neighbor.socket.disable_monitor()
        monitor.close()
    assert sorted(low.frames, key=lambda each: each[0]) == [(1, Skip(3)), (2, Skip(0))]
    assert [each for each in low.openings if each[0] == 1] == [(1, 0), (1, 3)]


async def test_a_flood_of_nonsense_is_counted_and_costs_no_honest_frame(
    street: Street, caplog: pytest.LogCaptureFixture
) -> None:
    low, high, other = street.end(0), street.end(1), street.end(2)
    await low.open([high, other])
    await high.open([low])
    await other.open([low])
    await street.until(lambda: not (low.links.down or high.links.down or other.links.down))
    stranger = street.stranger(low)
    draw = random.Random(1)
    for batch in range(200):
        for _ in range(100):
            await stranger.say(draw.randbytes(draw.randrange(40)))
        for end in (low, high, other):
            end.say(Skip(batch))
    await street.until(
        lambda: (
            low.links.refused == 20_000
            and (len(low.frames), len(high.frames), len(other.frames)) == (400, 200, 200)
        )
    )
    assert heard(low, 1) == heard(low, 2) == heard(high, 0) == heard(other, 0) == skips(0, 200)
    warnings = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].getMessage().startswith("dropped: stranger ")


async def test_a_caller_that_comes_back_is_introduced_again(street: Street) -> None:
    low, high = await pair(street)
    high.say(Skip(0))
    await street.until(lambda: len(low.frames) == 1)
    high.close()
    again = street.end(1)
    again.seq = 7
    await again.open([low])
    await street.until(lambda: not again.links.down)
    assert low.openings == [(1, 0), (1, 7)]
    low.say(Skip(7))
    again.say(Skip(8))
    await street.until(lambda: len(low.frames) == 2 and len(again.frames) == 1)
    assert again.frames == [(0, Skip(7))]
    assert low.frames[-1] == (1, Skip(8))


async def test_the_last_words_of_one_that_is_gone_are_heard(street: Street) -> None:
    low, high = await pair(street)
    low.deaf = True  # it computes, say: what comes meanwhile waits
    high.links.send(0, Abort("power is low"))
    assert low.router.socket.poll(1_000 * DEADLINE)
    high.close()
    async with asyncio.timeout(DEADLINE):
        while not low.links.down:  # until it is noticed that nothing can be sent there
            low.links.send(1, Need(0))
            await asyncio.sleep(0.01)
    low.deaf = False
    low.pump()
    assert low.frames == [(1, Abort("power is low"))]
    assert low.links.refused == 0


async def test_a_listener_that_comes_back_is_greeted_by_who_called_it(street: Street) -> None:
    low, high = await pair(street)
    address = low.router.address
    low.close()
    again = street.end(0, address)
    again.seq, high.seq = 7, 8
    await again.open([1])
    # nobody says anything: it is the caller that hears of its connection's being a new one
    await street.until(lambda: not again.links.down and high.openings[-1] == (0, 7))
    assert again.openings[0] == (1, 8)
    high.say(Skip(8))
    await street.until(lambda: (1, Skip(8)) in again.frames)


async def test_engines_over_links_equal_the_run_in_order_whatever_is_replayed(
    street: Street,
) -> None:
    """Each frame is sent twice, and what is kept is sent again backwards with every exchange."""
    counts = [1, 0, 3, 2] * 5
    graph = nx.path_graph(3)
    reference = engines_on(graph, counts)
    run_in_order(reference, len(counts))
    engines = engines_on(graph, counts)
    ends = [street.end(i) for i in range(3)]
    for end, engine in zip(ends, engines, strict=True):
        end.deliver = engine.deliver  # type: ignore[assignment]
    for end in ends:
        await end.open([ends[j] for j in graph[end.node]])
    await street.until(lambda: not any(end.links.down for end in ends))

    def move() -> bool:
        """Whoever can go on does; True once all are done."""
        moved = True
        while moved:
            moved = False
            for end, engine in zip(ends, engines, strict=True):
                if engine.rounds == len(counts) or not engine.ready:
                    continue
                moved = True
                outgoing = engine.advance()
                if not isinstance(outgoing, Outgoing):
                    continue
                end.links.broadcast(outgoing)
                replay(end, engine)
            for end in ends:
                end.pump()
        return all(engine.rounds == len(counts) for engine in engines)

    def replay(end: End, engine: Engine) -> None:
        with suppress(RemoteProtocolError):  # nothing before the first frame
            for j in engine.barrier.neighbors:
                for kept in reversed(engine.frames_from(j, max(0, engine.seq - 1))):
                    end.links.resend(j, kept.raw)

    await street.until(move)
    for engine, other in zip(engines, reference, strict=True):
        assert isinstance(engine.method, Wanderer)
        assert isinstance(other.method, Wanderer)
        assert engine.method.heard == other.method.heard
        assert np.array_equal(engine.method.theta, other.method.theta)
    assert all(end.links.refused == 0 for end in ends)


async def test_every_control_byte_is_counted(street: Street) -> None:
    low, high = await pair(street)
    words = welcome(1, high.router.address), welcome(0, low.router.address)
    assert high.links.control_bytes == len(CODEC.encode(words[0]))
    assert low.links.control_bytes == len(CODEC.encode(words[1]))
    high.say(Skip(0))  # a round's: in the ledger
    high.links.resend(0, CODEC.encode(Skip(0)))
    assert high.links.control_bytes == len(CODEC.encode(words[0])) + 3


async def both_ways(street: Street, one: End, other: End) -> None:
    """Each of two ends hears what the other broadcasts."""
    for frame in skips(0, 20):
        one.say(frame)
        other.say(frame)
    await street.until(
        lambda: (
            heard(one, other.node)[-20:] == skips(0, 20)
            and heard(other, one.node)[-20:] == skips(0, 20)
        )
    )


async def test_one_that_was_called_and_comes_back_elsewhere_calls_its_callers(
    street: Street,
) -> None:
    low, high = await pair(street)
    low.close()
    again = street.end(0)
    await again.open([high], call_all=True)
    await street.until(lambda: not again.links.down)
    await both_ways(street, again, high)
    assert high.links.address_of(0) == again.router.address
    # and once more, somewhere else again
    again.close()
    third = street.end(0)
    await third.open([high], call_all=True)
    await street.until(lambda: not third.links.down)
    await both_ways(street, third, high)
    assert high.links.address_of(0) == third.router.address


async def test_two_that_come_back_together_call_each_other(street: Street) -> None:
    low, high = await pair(street)
    addresses = low.router.address, high.router.address
    low.close()
    high.close()
    low, high = (street.end(i, address) for i, address in enumerate(addresses))
    await low.open([high], call_all=True)
    await high.open([low], call_all=True)
    await street.until(lambda: not low.links.down and not high.links.down)
    await both_ways(street, low, high)
    # one of the two connections goes: the other will do
    low.router.socket.disconnect(addresses[1])
    await street.until(
        lambda: Skip(99) in heard(low, 1) and Skip(99) in heard(high, 0),
        nudge=lambda: [(end.say(Skip(99)), end.links.greet(1 - end.node)) for end in (low, high)],
    )


async def test_somebody_else_at_a_neighbors_old_address_is_not_taken_for_it(
    street: Street,
) -> None:
    """Node 0 moves, and node 1, a neighbor too, comes to listen where node 0 was."""
    low, high = street.end(0), street.end(2)
    await low.open([high])
    await high.open([low, 1])
    await street.until(lambda: not low.links.down and high.links.down == [1])
    address = low.router.address
    low.close()
    other = street.end(1, address)
    await other.open([high])  # it waits for node 2's call
    await street.until(lambda: other.openings != [])  # node 2 says hello to what it takes for 0
    other.say(Skip(0))
    await street.until(lambda: high.links.refused >= 2)
    assert heard(high, 0) == []
    assert 0 in high.links.down


async def test_an_address_that_is_none_is_not_remembered(street: Street) -> None:
    low = street.end(0)
    await low.open([1])
    words = replace(hello(1), address="rubbish")
    assert isinstance(await street.stranger(low).ask(words), Welcome)
    assert low.links.address_of(1) == "tcp://127.0.0.1:1"
