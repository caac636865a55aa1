"""Ends of links for tests: real sockets on loopback, watched by their descriptors, no sleeping."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import zmq
import zmq.asyncio

from dlag_node.net.introduction import Introduction
from dlag_node.net.links import Links
from dlag_node.net.router import Router
from dlag_node.net.sockets import HEARTBEAT, Socket
from dlag_node.rounds import Outgoing
from dlag_node.trust.curve import call_with
from dlag_node.trust.keys import KeyPair
from dlag_node.wire import PROTOCOL, Frame, Hello, RoundFrame
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer

DIM = 3
CODEC = Codec(DIM)
LIMIT = CODEC.frame_limit
RUN, CONFIG = "0123456789abcdef", "c0ffee" * 8
DEADLINE = 60.0  # seconds for what takes milliseconds
NUDGE_EVERY = 0.25  # seconds, as a node at the barrier does


class Street:
    """Everything of one test that must be closed, and one event: something has arrived."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.ends: list[End] = []
        self.strangers: list[Stranger] = []
        self._context = zmq.asyncio.Context()

    def end(
        self,
        node: int,
        address: str = "tcp://127.0.0.1:*",
        keys: KeyPair | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> End:
        self.ends.append(End(self, node, address, keys, heartbeat))
        return self.ends[-1]

    def stranger(
        self, end: End, keys: KeyPair | None = None, server: bytes | None = None
    ) -> Stranger:
        """With `keys` it calls as CURVE has it, by the end's own key unless another is given."""
        if keys is not None and server is None:
            assert end.keys is not None
            server = end.keys.public
        self.strangers.append(Stranger(self._context, end.router.address, keys, server))
        return self.strangers[-1]

    async def until(
        self, holds: Callable[[], bool], *, nudge: Callable[[], None] | None = None
    ) -> None:
        """Wait until something holds; `nudge` is done again and again meanwhile."""
        async with asyncio.timeout(DEADLINE):
            while True:
                self.arrived.clear()
                for end in self.ends:
                    end.pump()
                if holds():
                    return
                if nudge is not None:
                    nudge()
                    for end in self.ends:
                        end.pump()  # sending may have eaten an edge: look once more
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if nudge is None else NUDGE_EVERY):
                        await self.arrived.wait()

    def close(self) -> None:
        for stranger in self.strangers:
            stranger.socket.close()
        for end in list(self.ends):
            end.close()
        self._context.term()


class End:
    """One node's links, and all that came through them."""

    def __init__(
        self, street: Street, node: int, address: str, keys: KeyPair | None, heartbeat: float
    ) -> None:
        self.keys = keys
        self._street = street
        self._context: zmq.Context[Socket] = zmq.Context()
        self.node = node
        self.router = Router(self._context, address, limit=LIMIT, keys=keys, heartbeat=heartbeat)
        self.seq = 0
        self.frames: list[tuple[int, Frame]] = []
        self.openings: list[tuple[int, int]] = []
        self.losses: list[int] = []
        self.deliver: Callable[[int, Frame], object] = lambda *_: None
        self.deaf = False
        self._watched: list[int] = []

    async def open(
        self,
        peers: Sequence[End | int | Peer],
        address: str | None = None,
        *,
        call_all: bool = False,
    ) -> None:
        """Neighbors are other ends, or bare ids of nodes that will call (or be at `address`)."""
        told = [_told(each, address or "tcp://127.0.0.1:1") for each in peers]
        self.links = Links(
            self.router,
            Introduction(self.node, RUN, CONFIG, lambda: self.seq, 0, self.router.address),
            sorted(told, key=lambda peer: peer.node),
            CODEC,
            self,
        )
        await self.links.call(everybody=call_all)
        self._watched = [self.router.socket.fileno()]
        for descriptor in self._watched:
            asyncio.get_running_loop().add_reader(descriptor, self.pump)
        self.router.woken = self.pump
        self.pump()  # primes the descriptors: they tell of edges only

    def frame(self, neighbor: int, frame: RoundFrame) -> None:
        self.control(neighbor, frame)

    def control(self, neighbor: int, frame: Frame) -> None:
        self.frames.append((neighbor, frame))
        self.deliver(neighbor, frame)

    def opened(self, neighbor: int, words: Hello) -> None:
        self.openings.append((neighbor, words.need))

    def lost(self, neighbor: int) -> None:
        self.losses.append(neighbor)

    def say(self, frame: RoundFrame) -> None:
        """A round frame for every neighbor."""
        self.links.broadcast(Outgoing(frame, CODEC.encode(frame)))

    def pump(self) -> None:
        """Take all that waits."""
        if self.deaf or not self._watched:
            return
        while self.links.drain():
            self._street.arrived.set()

    def close(self) -> None:
        for descriptor in self._watched:
            asyncio.get_running_loop().remove_reader(descriptor)
        self._watched = []
        self.router.close()
        self._context.destroy(linger=0)
        self._street.ends.remove(self)


def _told(peer: End | int | Peer, address: str) -> Peer:
    if isinstance(peer, Peer):
        return peer
    if isinstance(peer, int):
        return Peer(peer, address, -0.5)
    key = None if peer.keys is None else peer.keys.public
    return Peer(peer.node, peer.router.address, -0.5, key)


class Stranger:
    """A bare DEALER that says whatever the test wants, and hears what it is answered."""

    def __init__(
        self,
        context: zmq.asyncio.Context,
        address: str,
        keys: KeyPair | None = None,
        server: bytes | None = None,
    ) -> None:
        self.socket = context.socket(zmq.DEALER)
        if keys is not None and server is not None:
            call_with(self.socket, keys, server)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.setsockopt(zmq.RECONNECT_IVL, 10)
        self.socket.connect(address)

    async def say(self, *parts: bytes | Frame) -> None:
        raws = [part if isinstance(part, bytes) else CODEC.encode(part) for part in parts]
        await self.socket.send_multipart(raws)

    async def hear(self) -> Frame:
        async with asyncio.timeout(DEADLINE):
            return CODEC.decode(await self.socket.recv(), "the node")

    async def ask(self, frame: Frame) -> Frame:
        await self.say(frame)
        return await self.hear()


def hello(node: int, need: int = 0) -> Hello:
    return Hello(PROTOCOL, RUN, CONFIG, node, need, 0, "tcp://127.0.0.1:1")
