"""The links to the neighbors: one connection an edge, opened by hello, repaired by replay.

The node with the higher id connects (a DEALER), the one with the lower id listens (a ROUTER shared
by all of its callers). A connection counts as a neighbor's only after its Hello: until then its
frames are dropped, so a stranger can neither take a neighbor's place nor reach the barrier.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import zmq

from dlag_node.errors import RemoteProtocolError
from dlag_node.net.sockets import (
    NOBLOCK,
    SNDMORE,
    Socket,
    bind,
    open_socket,
    readable,
    receive,
    resolved,
)
from dlag_node.net.strangers import Strangers
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer
from dlag_node.wire.frames import Frame, Hello, Refuse, Welcome, Who
from dlag_node.wire.limits import PROTOCOL

log = logging.getLogger(__name__)

# One look at a socket takes at most so many messages: a flood must not hold up the round.
_DRAIN_AT_MOST = 256


@dataclass(slots=True)
class Link:
    """One neighbor: the socket that reaches it, and its routing id there (None: we connected)."""

    node: int
    socket: Socket
    route: bytes | None = None
    up: bool = False


class Links:
    """Moves frames between one node and its neighbors; knows who they are, not what they mean.

    `deliver(neighbor, frame)` gets every frame of a neighbor whose link is up, and
    `opened(neighbor, need)` each hello: the neighbor may lack everything from exchange `need` on.
    """

    def __init__(self, context: zmq.Context[Socket], address: str, codec: Codec) -> None:
        self._router = open_socket(context, zmq.ROUTER, limit=codec.limits.frame_bytes)
        self.address = bind(self._router, address)
        self._context = context
        self._codec = codec
        self._links: dict[int, Link] = {}
        self._by_route: dict[bytes, int] = {}
        self._dealers: list[Link] = []
        self._strangers = Strangers()
        self.control_bytes = 0

    async def open(
        self,
        *,
        node: int,
        run: str,
        config: str,
        peers: Sequence[Peer],
        position: Callable[[], int],
        deliver: Callable[[int, Frame], None],
        opened: Callable[[int, int], None],
    ) -> None:
        """Learn who the neighbors are and call those with lower ids; `position` is engine.seq."""
        self._node, self._run, self._config = node, run, config
        self._position, self._deliver, self._opened = position, deliver, opened
        for peer in peers:
            if peer.node > node:
                self._links[peer.node] = Link(peer.node, self._router)
                continue
            dealer = open_socket(self._context, zmq.DEALER, limit=self._codec.limits.frame_bytes)
            dealer.connect(await resolved(peer.address))
            link = self._links[peer.node] = Link(peer.node, dealer)
            self._dealers.append(link)
            self.greet(peer.node)

    @property
    def sockets(self) -> list[Socket]:
        """Every socket whose descriptor the event loop must watch."""
        return [self._router, *(link.socket for link in self._dealers)]

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
        link = self._links[neighbor]
        if link.socket is not self._router:
            self.send(neighbor, self._words(Hello))

    def send(self, neighbor: int, frame: Frame) -> None:
        """Send a frame that is none of a round's; counted apart."""
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        self._put(self._links[neighbor], raw)

    def broadcast(self, raw: bytes) -> None:
        """Send a round frame, encoded once, to every neighbor whose link is up.

        The others will say hello first, and be sent what they lack then.
        """
        for link in self._links.values():
            if link.up:
                self._put(link, raw)

    def resend(self, neighbor: int, raw: bytes) -> None:
        """Send a round frame again, to one neighbor."""
        self.control_bytes += len(raw)
        self._put(self._links[neighbor], raw)

    def drain(self) -> bool:
        """Take what waits on every socket and deliver it; False when there was nothing."""
        found = self._drain_router()
        for link in self._dealers:
            if readable(link.socket):
                found = True
                self._drain_dealer(link)
        return found

    def close(self) -> None:
        """Close every socket; what was sent still leaves."""
        for opened in self.sockets:
            opened.close()

    def drop(self, peer: str, why: Exception) -> None:
        """A frame that makes no sense: drop it, say so once a peer."""
        self._strangers.drop(peer, why)

    def _drain_router(self) -> bool:
        router, found = self._router, False
        for _ in range(_DRAIN_AT_MOST):
            if not readable(router):
                break
            found = True
            route: bytes = router.recv(NOBLOCK)
            raw = receive(router)
            neighbor = self._by_route.get(route)
            if neighbor is not None:
                self._take(self._links[neighbor], raw)
            else:
                self._take_from_stranger(route, raw)
        return found

    def _drain_dealer(self, link: Link) -> None:
        for _ in range(_DRAIN_AT_MOST):
            self._take(link, receive(link.socket))
            if not readable(link.socket):
                return

    def _take(self, link: Link, raw: bytes | None) -> None:
        peer = f"neighbor {link.node}"
        try:
            frame = self._decode(raw, peer)
            kind = type(frame)
            if kind is Welcome or kind is Hello:
                self._introduce(link, frame)  # type: ignore[arg-type]
            elif kind is Who:
                link.up = False
                self.greet(link.node)
            elif link.up or kind is Refuse:
                self._deliver(link.node, frame)
            else:
                raise RemoteProtocolError(f"{peer} sent a {kind.__name__} before its hello")
        except RemoteProtocolError as exc:
            self._strangers.drop(peer, exc)

    def _take_from_stranger(self, route: bytes, raw: bytes | None) -> None:
        """A connection that we do not know: it may say hello, and nothing else."""
        peer = f"stranger {route.hex()}"
        try:
            frame = self._decode(raw, peer)
            if type(frame) is not Hello:
                if self._strangers.may_answer(route):
                    self._reply(route, Who())
                raise RemoteProtocolError(f"{peer} sent a {type(frame).__name__} before its hello")
            link = self._links.get(frame.node)
            if link is None or link.socket is not self._router:
                callers = len(self._links) - len(self._dealers)
                raise _Refused(f"node {frame.node} is none of our {callers} callers")
            self._check(frame)
            if link.route is not None:
                del self._by_route[link.route]  # the link was made again: the old one is dead
            link.route = route
            self._by_route[route] = link.node
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

    def _decode(self, raw: bytes | None, peer: str) -> Frame:
        if raw is None:
            raise RemoteProtocolError(f"{peer} sent a message of several parts")
        return self._codec.decode(raw, peer)

    def _reply(self, route: bytes, frame: Frame) -> None:
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        self._put(Link(-1, self._router, route), raw)

    def _put(self, link: Link, raw: bytes) -> None:
        try:
            if link.socket is self._router:
                if link.route is None:
                    return  # it has not called yet
                self._router.send(link.route, NOBLOCK | SNDMORE)
                self._router.send(raw, NOBLOCK)
            else:
                link.socket.send(raw, NOBLOCK)
        except zmq.ZMQError as exc:
            # the connection broke: the neighbor will call again and ask for what it lacks
            log.debug("node %d cannot be reached now: %s", link.node, exc)


class _Refused(RemoteProtocolError):
    """A peer that does not belong to this run."""
