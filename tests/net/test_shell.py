"""Two nodes over real sockets: heavy computing in a thread, the rest on the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time

import numpy as np
import pytest
import zmq

from dlag_node.errors import RunAborted
from dlag_node.methods.flow import EVERYBODY_SPEAKS, Exchange, Flow, RoundReport
from dlag_node.net.introduction import Introduction
from dlag_node.net.links import Links
from dlag_node.net.node_state import NodeState
from dlag_node.net.router import Router
from dlag_node.net.shell import Shell
from dlag_node.net.sockets import Socket
from dlag_node.rounds import Engine
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer

DIM = 3


class Counting:
    """Sends k in round k and remembers what came; `work` is what its computing does."""

    def __init__(self, work: object = None) -> None:
        self.theta = np.zeros(DIM)
        self.width = DIM
        self.schedule = EVERYBODY_SPEAKS
        self.parameters: dict[str, float | int | str] = {}
        self.heard: list[float] = []
        self.threads: list[int] = []
        self._work = work
        self._k = 0

    def round(self) -> Flow[RoundReport]:
        self.threads.append(threading.get_ident())
        if callable(self._work):
            self._work(self._k)
        inbox = yield Exchange(np.full(DIM, float(self._k)))
        (vector,) = inbox.values()
        assert vector is not None
        self.heard.append(float(vector[0]))
        self._k += 1
        return RoundReport(gradients=0, step=0.0, age=0)


class Node:
    """One of two nodes: its state, its shell, and where it listens."""

    def __init__(self, context: zmq.Context[Socket], i: int, method: Counting, rounds: int) -> None:
        self._i = i
        self.router = Router(context, "tcp://127.0.0.1:*", limit=Codec(DIM).frame_limit)
        engine = Engine(method, node=i, neighbors=[1 - i], codec=Codec(DIM))
        self._state = NodeState(engine, rounds=rounds, neighbor_timeout=20.0, now=perf_counter())

    async def call(self, other: Node) -> None:
        engine, router = self._state.engine, self.router
        words = Introduction(self._i, "run", "config", lambda: engine.seq, 0, router.address)
        peers = [Peer(1 - self._i, other.router.address, -1.0)]
        links = Links(router, words, peers, engine.codec, self._state)
        self._shell = Shell(self._state, router, links)
        await links.call()

    async def run(self) -> None:
        await self._shell.run()


@contextmanager
def two_nodes(*methods: Counting, rounds: int) -> Iterator[list[Node]]:
    context: zmq.Context[Socket] = zmq.Context()
    nodes = [Node(context, i, method, rounds) for i, method in enumerate(methods)]
    try:
        yield nodes
    finally:
        for node in nodes:
            node.router.close()
        context.term()


async def open_links(nodes: list[Node], i: int) -> None:
    await nodes[i].call(nodes[1 - i])


async def run_both(nodes: list[Node]) -> None:
    for i in range(len(nodes)):
        await open_links(nodes, i)
    await asyncio.gather(*(node.run() for node in nodes))


async def test_every_round_hears_the_neighbors_round() -> None:
    methods = Counting(), Counting()
    with two_nodes(*methods, rounds=50) as nodes:
        await run_both(nodes)
    assert methods[0].heard == methods[1].heard == [float(k) for k in range(50)]


async def test_heavy_work_goes_to_a_thread_and_the_loop_sleeps_meanwhile() -> None:
    released = threading.Event()
    spent: list[float] = []

    def heavy(k: int) -> None:
        if k < 2:
            # longer than what counts as heavy, without any computing
            threading.Event().wait(0.06)
        elif k == 2:
            # a stranger's call makes the socket's descriptor readable, and it stays so
            stranger.connect(nodes[0].router.address)
            stranger.send(b"anybody there?")
            loop.call_soon_threadsafe(loop.call_later, 0.4, released.set)
            started = process_time(), perf_counter()
            assert released.wait(10)
            spent.append((process_time() - started[0]) / (perf_counter() - started[1]))

    loop = asyncio.get_running_loop()
    slow, quick = Counting(heavy), Counting()
    with zmq.Context() as context, context.socket(zmq.DEALER) as stranger:
        stranger.setsockopt(zmq.LINGER, 0)
        with two_nodes(slow, quick, rounds=5) as nodes:
            await run_both(nodes)
    here = threading.get_ident()
    assert slow.threads[0] == here
    assert slow.threads[2] != here  # the loop was free: it released the event
    assert set(quick.threads) == {here}
    # what came meanwhile waited in the socket, and woke nobody again and again
    assert spent[0] < 0.3
    assert slow.heard == quick.heard == [0.0, 1.0, 2.0, 3.0, 4.0]


async def test_one_that_ends_before_its_neighbor_calls_tells_it_why() -> None:
    with two_nodes(Counting(), Counting(), rounds=5) as nodes:
        early, late = nodes
        await open_links(nodes, 0)
        ending = asyncio.ensure_future(early.run())
        await asyncio.sleep(0)  # it runs, and waits for the call
        ending.cancel()
        await asyncio.sleep(0)
        await open_links(nodes, 1)
        with pytest.raises(RunAborted, match="node 0 was asked to end"):
            await asyncio.wait_for(late.run(), 10)
        with pytest.raises(asyncio.CancelledError):
            await ending


async def test_one_that_has_called_and_ends_before_the_answer_tells_it_why() -> None:
    with two_nodes(Counting(), Counting(), rounds=5) as nodes:
        late, early = nodes
        await open_links(nodes, 1)
        ending = asyncio.ensure_future(early.run())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await open_links(nodes, 0)
        with pytest.raises(RunAborted, match="node 1 was asked to end"):
            await asyncio.wait_for(late.run(), 10)


async def test_nobody_stays_for_a_neighbor_that_has_ended_itself() -> None:
    with two_nodes(Counting(), Counting(), rounds=5) as nodes:
        for i in range(2):
            await open_links(nodes, i)
        runs = [asyncio.ensure_future(node.run()) for node in nodes]
        await asyncio.sleep(0)
        for run in runs:
            run.cancel()
        started = perf_counter()
        ended = await asyncio.gather(*runs, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        assert perf_counter() - started < 2.0
