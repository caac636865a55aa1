"""The links to the neighbors: one connection an edge, opened by hello, repaired by replay.

A node has one ROUTER socket for all of its links: it listens there for the neighbors with higher
ids, and calls those with lower ids from there. A connection counts as a neighbor's only after its
hello: until then its frames are dropped, so a stranger can neither take a neighbor's place nor
reach the barrier.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from secrets import token_bytes

import zmq

from dlag_node.errors import RemoteProtocolError
from dlag_node.net.sockets import (
    NOBLOCK,
    POLLIN,
    SNDMORE,
    Socket,
    bind,
    open_socket,
    resolved,
    rest_of_message,
    send,
    zmq_poll,
)
from dlag_node.net.strangers import Strangers
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer
from dlag_node.wire.frames import Delta, Frame, Hello, Refuse, RoundFrame, Skip, Welcome, Who
from dlag_node.wire.limits import PROTOCOL

log = logging.getLogger(__name__)

_FIRST_PART = NOBLOCK | SNDMORE


@dataclass(slots=True)
class Link:
    """One neighbor, and the routing id that reaches it (None: it has not called us yet)."""

    node: int
    called: bool  # by us; else the neighbor calls
    route: bytes | None
    up: bool = False

    def __str__(self) -> str:
        return f"neighbor {self.node}"


class Links:
    """Moves frames between one node and its neighbors; knows who they are, not what they mean.

    `deliver(neighbor, frame)` gets every round frame of a neighbor whose link is up,
    `control(neighbor, frame)` every other frame, and `opened(neighbor, need)` each hello: the
    neighbor may lack everything from exchange `need` on.

    The socket drops who sends more than `limit` bytes at once; what a frame of the run must be
    exactly is the codec's to say, which comes with the neighbors: until then nothing is read.
    """

    def __init__(self, context: zmq.Context[Socket], address: str, *, limit: int) -> None:
        self.socket = open_socket(context, zmq.ROUTER, limit=limit)
        self.address = bind(self.socket, address)
        self.control_bytes = 0
        self._watched = [(self.socket, POLLIN)]
        self._links: dict[int, Link] = {}
        self._by_route: dict[bytes, Link] = {}
        self._strangers = Strangers()

    async def open(
        self,
        *,
        node: int,
        run: str,
        config: str,
        codec: Codec,
        peers: Sequence[Peer],
        position: Callable[[], int],
        deliver: Callable[[int, RoundFrame], object],
        control: Callable[[int, Frame], None],
        opened: Callable[[int, int], None],
    ) -> None:
        """Learn who the neighbors are and call those with lower ids; `position` is engine.seq."""
        self._node, self._run, self._config = node, run, config
        self._codec = codec
        self._position, self._deliver = position, deliver
        self._control, self._opened = control, opened
        for peer in peers:
            called = peer.node < node
            route = None
            if called:
                # a name that no stranger can guess, or it could claim it before we do
                route = b"+" + token_bytes(16)
                self.socket.setsockopt(zmq.CONNECT_ROUTING_ID, route)
                self.socket.connect(await resolved(peer.address))
            link = self._links[peer.node] = Link(peer.node, called, route)
            if route is not None:
                self._by_route[route] = link
                self.greet(peer.node)

    @property
    def down(self) -> list[int]:
        """The neighbors that have not said hello yet."""
        return [link.node for link in self._links.values() if not link.up]

    @property
    def refused(self) -> int:
        """Frames dropped so far, from neighbors and strangers."""
        return self._strangers.dropped

    def greet(self, neighbor: int) -> None:
        """Say Hello on a link that we opened; where the neighbor calls us, wait for its call."""
        if self._links[neighbor].called:
            self.send(neighbor, self._words(Hello))

    def send(self, neighbor: int, frame: Frame) -> None:
        """Send a frame that is none of a round's; counted apart."""
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        self._put(self._links[neighbor].route, raw)

    def broadcast(self, raw: bytes) -> None:
        """Send a round frame, encoded once, to every neighbor whose link is up.

        The others will say hello first, and be sent what they lack then.
        """
        for link in self._links.values():
            if link.up:
                self._put(link.route, raw)

    def deal(self, raw_for: Callable[[int], bytes]) -> None:
        """Send every neighbor whose link is up the round frame that is meant for it."""
        for link in self._links.values():
            if link.up:
                self._put(link.route, raw_for(link.node))

    def resend(self, neighbor: int, raw: bytes) -> None:
        """Send a round frame again, to one neighbor."""
        self.control_bytes += len(raw)
        self._put(self._links[neighbor].route, raw)

    def drain(self) -> bool:
        """Take one message and deliver it; False when none waits."""
        if not zmq_poll(self._watched, 0):
            return False
        route: bytes = self.socket.recv(NOBLOCK)
        link = self._by_route.get(route)
        if link is None:
            self._take_from_stranger(route)
        else:
            self._take(link, self.socket.recv(NOBLOCK))
        return True

    def close(self) -> None:
        """Close the socket; what was sent still leaves."""
        self.socket.close()

    def _take(self, link: Link, raw: bytes) -> None:
        """A frame of a connection that we know.

        Should it be the first of several parts, the others come up as strangers.
        """
        try:
            frame = self._codec.decode(raw, link)
            if link.up and (type(frame) is Delta or type(frame) is Skip):
                self._deliver(link.node, frame)
            elif isinstance(frame, Hello):
                self._introduce(link, frame)
            elif isinstance(frame, Who):
                link.up = False
                self.greet(link.node)
            elif link.up or isinstance(frame, Refuse):
                self._control(link.node, frame)
            else:
                raise RemoteProtocolError(f"{link} sent a {type(frame).__name__} before its hello")
        except RemoteProtocolError as exc:
            self._strangers.drop(str(link), exc)

    def _take_from_stranger(self, route: bytes) -> None:
        """A connection that we do not know: it may say hello in one part, and nothing else.

        Every part is read here, so that no part of its message can pass for a neighbor's route.
        """
        peer = f"stranger {route.hex()}"
        parts = rest_of_message(self.socket)
        try:
            if len(parts) != 1:
                raise RemoteProtocolError(f"{peer} sent a message of {len(parts)} parts")
            frame = self._codec.decode(parts[0], peer)
            if type(frame) is not Hello:
                if self._strangers.may_answer(route):
                    self._reply(route, Who())
                raise RemoteProtocolError(f"{peer} sent a {type(frame).__name__} before its hello")
            link = self._links.get(frame.node)
            if link is None or link.called:
                callers = sum(not each.called for each in self._links.values())
                raise _Refused(f"node {frame.node} is none of our {callers} callers")
            self._check(frame)
            if link.route is not None:
                del self._by_route[link.route]  # the link was made again: the old one is dead
            link.route = route
            self._by_route[route] = link
            self._introduce(link, frame)
        except RemoteProtocolError as exc:
            if isinstance(exc, _Refused) and self._strangers.may_answer(route):
                self._reply(route, Refuse(str(exc)))
            self._strangers.drop(peer, exc)

    def _introduce(self, link: Link, words: Hello) -> None:
        """The other end has told who it is: check it, answer a Hello, and open the link."""
        self._check(words)
        if words.node != link.node:
            raise _Refused(f"we called node {link.node}, node {words.node} answered")
        if type(words) is Hello:
            self.send(link.node, self._words(Welcome))
        link.up = True
        self._opened(link.node, words.need)

    def _check(self, words: Hello) -> None:
        if words.version != PROTOCOL:
            raise _Refused(f"protocol version {words.version}, ours is {PROTOCOL}")
        if words.run != self._run:
            raise _Refused(f"run id {words.run[:40]!r}, ours is {self._run}")
        if words.config != self._config:
            raise _Refused(f"configuration hash {words.config[:12]!r}, ours is {self._config:.12}")

    def _words(self, kind: type[Hello]) -> Hello:
        return kind(PROTOCOL, self._run, self._config, self._node, self._position())

    def _reply(self, route: bytes, frame: Frame) -> None:
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        self._put(route, raw)

    def _put(self, route: bytes | None, raw: bytes) -> None:
        if route is None:
            return  # it has not called yet
        try:
            send(self.socket, route, _FIRST_PART)
            send(self.socket, raw, NOBLOCK)
        except zmq.ZMQError as exc:
            # the connection broke: the neighbor will call again and ask for what it lacks
            log.debug("%s cannot be reached now: %s", route.hex(), exc)


class _Refused(RemoteProtocolError):
    """A peer that does not belong to this run."""
