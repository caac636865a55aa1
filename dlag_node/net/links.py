"""The links to the neighbors: one connection an edge, opened by hello, repaired by replay.

A node has one ROUTER socket for all of its links: it listens there for the neighbors with higher
ids, and calls those with lower ids from there; after a crash it calls them all, since those who
called it may not know where it is now. A connection counts as a neighbor's only after its hello:
until then its frames are dropped, so a stranger can neither take a neighbor's place nor reach the
barrier. An edge may so have two connections, one called from each end; either will do.

With keys nobody gets so far but the neighbors: they alone pass the gate, whom we call must hold the
neighbor's key, and a hello must name the node whose key its connection has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

import zmq

from dlag_node.errors import ConfigError, RemoteProtocolError
from dlag_node.net.introduction import Introduction, Refused
from dlag_node.net.routes import Link, Routes
from dlag_node.net.sockets import (
    NOBLOCK,
    POLLIN,
    SNDMORE,
    Socket,
    bind,
    is_address,
    open_socket,
    resolved,
    rest_with_key,
    send,
    zmq_poll,
)
from dlag_node.trust.curve import call_with, listen_with
from dlag_node.trust.gate import Gate
from dlag_node.trust.keys import KeyPair
from dlag_node.trust.strangers import Strangers
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer
from dlag_node.wire.frames import Delta, Frame, Hello, Refuse, RoundFrame, Skip, Welcome, Who

log = logging.getLogger(__name__)

_FIRST_PART = NOBLOCK | SNDMORE


class Links:
    """Moves frames between one node and its neighbors; knows who they are, not what they mean.

    `deliver(neighbor, frame)` gets every round frame of a neighbor whose link is up,
    `control(neighbor, frame)` every other frame, and `opened(neighbor, words)` each hello: the
    neighbor may lack everything from exchange `words.need` on.

    The socket drops who sends more than `limit` bytes at once; what a frame of the run must be
    exactly is the codec's to say, which comes with the neighbors: until then nothing is read.
    """

    def __init__(
        self,
        context: zmq.Context[Socket],
        address: str,
        *,
        limit: int,
        rather: str | None = None,
        keys: KeyPair | None = None,
    ) -> None:
        """Listen on `address`; on `rather`, if that is given and free."""
        self.socket = open_socket(context, zmq.ROUTER, limit=limit)
        self._keys = keys
        self._gate = None
        if keys is not None:
            self._gate = Gate(context)
            self._gate.watch(self.socket)
            listen_with(self.socket, keys)
        try:
            self.address = bind(self.socket, address, rather=rather)
        except ConfigError:
            self.close()
            raise
        self.limit = limit
        self.control_bytes = 0
        self._watched = [(self.socket, POLLIN)]
        self._links: dict[int, Link] = {}
        self._routes = Routes()
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
        opened: Callable[[int, Hello], None],
        address: str | None = None,
        back: int = 0,
        call_all: bool = False,
    ) -> None:
        """Learn who the neighbors are and call those with lower ids; `position` is engine.seq.

        `address` is where others reach us, `back` how many rounds we may fall back by. With
        `call_all` every neighbor is called: we are back, and may not be where we were.
        """
        told = address or self.address
        self._introduction = Introduction(node, run, config, position, back, told)
        self._codec, self._deliver = codec, deliver
        self._control, self._opened = control, opened
        self._links = {peer.node: Link(peer.node, peer.address, peer.key) for peer in peers}
        if self._gate is not None:
            self._gate.open({peer.key for peer in peers}.__contains__, expected=len(peers))
        for peer, link in zip(peers, self._links.values(), strict=True):
            if not call_all and peer.node > node:
                continue
            try:
                self._call(link, await resolved(peer.address))
            except ConfigError as exc:
                if not call_all:
                    raise
                # it is gone, and its name with it: when it is back it will call us
                log.warning("cannot call neighbor %d now: %s", peer.node, exc)

    @property
    def down(self) -> list[int]:
        """The neighbors that have not said hello yet."""
        return [link.node for link in self._links.values() if not link.up]

    @property
    def unreachable(self) -> list[int]:
        """The neighbors that only a call of theirs can connect us to."""
        return [link.node for link in self._links.values() if link.route is None]

    @property
    def refused(self) -> int:
        """Frames dropped and hand-shakes refused so far, of neighbors and strangers."""
        return self._strangers.dropped + (0 if self._gate is None else self._gate.refused)

    def address_of(self, neighbor: int) -> str:
        """Where the neighbor was last known to be."""
        return self._links[neighbor].address

    def attempt(self, neighbor: int) -> tuple[str, str, bool]:
        """Which address a link is opened by, from where, and whether it is we who call."""
        link = self._links[neighbor]
        if link.ours is not None:
            return link.address, self.address, True
        return self._introduction.address, link.address, False

    def whereabouts(self, neighbor: int) -> str:
        """Which address was tried from where: for who must find out why a link is not up."""
        link, told = self._links[neighbor], self._introduction.address
        if link.up:
            return f"{link} at {link.address} was there and is silent now"
        if link.ours is not None:
            return f"{link} has not answered our calls to {link.address} from {self.address}"
        return f"{link} at {link.address} has not called us: we told it {told}"

    def greet(self, neighbor: int) -> None:
        """Say Hello on a link that we opened; where the neighbor calls us, wait for its call.

        libzmq makes a broken connection again, but not one on which it read what cannot be, bytes
        that somebody repeated or changed: that one is gone, and we call anew.
        """
        link = self._links[neighbor]
        if link.ours is not None and not self._reply(link.ours, self._introduction.words(Hello)):
            dead_end = self._routes.drop_call(link)
            if dead_end is not None:
                with suppress(zmq.ZMQError):  # where libzmq has forgotten it too
                    self.socket.disconnect(dead_end)
                self._call(link, dead_end)

    def send(self, neighbor: int, frame: Frame) -> None:
        """Send a frame that is none of a round's; counted apart."""
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        self._put_on(self._links[neighbor], raw)

    def broadcast(self, raw: bytes) -> None:
        """Send a round frame, encoded once, to every neighbor whose link is up.

        The others will say hello first, and be sent what they lack then.
        """
        for link in self._links.values():
            if link.up:
                self._put_on(link, raw)

    def deal(self, raw_for: Callable[[int], bytes]) -> None:
        """Send every neighbor whose link is up the round frame that is meant for it."""
        for link in self._links.values():
            if link.up:
                self._put_on(link, raw_for(link.node))

    def resend(self, neighbor: int, raw: bytes) -> None:
        """Send a round frame again, to one neighbor."""
        self.control_bytes += len(raw)
        self._put_on(self._links[neighbor], raw)

    def drain(self) -> bool:
        """Take one message and deliver it; False when none waits."""
        if not zmq_poll(self._watched, 0):
            if self._routes.broken:
                self._routes.forget_broken()
            return False
        route: bytes = self.socket.recv(NOBLOCK)
        link = self._routes.known.get(route)
        if link is not None:
            self._take(link, route, self.socket.recv(NOBLOCK))
        elif route in self._routes.calls:
            self._take_answer(self._routes.calls[route], route, self.socket.recv(NOBLOCK))
        else:
            self.hear_stranger(route, *rest_with_key(self.socket))
        return True

    def close(self) -> None:
        """Close the socket; what was sent still leaves."""
        if self._gate is not None:
            self._gate.close()
        self.socket.close()

    def _call(self, link: Link, endpoint: str) -> None:
        if self._keys is not None and self._gate is not None:
            if link.key is None:
                raise ConfigError(f"{link} at {endpoint} has no key, and we have one")
            call_with(self.socket, self._keys, link.key)
            self._gate.called.add(endpoint)
        self.socket.setsockopt(zmq.CONNECT_ROUTING_ID, self._routes.call(link, endpoint))
        self.socket.connect(endpoint)
        self.greet(link.node)

    def _take(self, link: Link, route: bytes, raw: bytes) -> None:
        """A frame of a connection that we know.

        Should it be the first of several parts, the others come up as strangers.
        """
        try:
            frame = self._codec.decode(raw, link)
            if type(frame) is Delta or type(frame) is Skip:
                self._deliver(link.node, frame)
            elif isinstance(frame, Hello):
                self._introduce(link, route, frame)
            elif isinstance(frame, Who):
                self._routes.lose(link, route)
                self._say_lost(link)
                self.greet(link.node)
            else:
                self._control(link.node, frame)
        except RemoteProtocolError as exc:
            self._strangers.drop(str(link), exc)

    def _take_answer(self, link: Link, route: bytes, raw: bytes) -> None:
        """A frame on a connection that we called, before we know who is there."""
        try:
            frame = self._codec.decode(raw, link)
            if isinstance(frame, Hello):
                self._introduce(link, route, frame)
            elif isinstance(frame, Who):
                self.greet(link.node)
            elif isinstance(frame, Refuse):
                self._control(link.node, frame)
            else:
                raise RemoteProtocolError(f"{link} sent a {type(frame).__name__} before its hello")
        except RemoteProtocolError as exc:
            self._strangers.drop(str(link), exc)

    def hear_stranger(self, route: bytes, parts: list[bytes], key: bytes | None) -> None:
        """A connection that we do not know: it may say hello in one part, and nothing else.

        All parts come at once, so that none of them can pass for a neighbor's route.
        """
        peer = f"stranger {route.hex()}"
        try:
            if len(parts) != 1:
                raise RemoteProtocolError(f"{peer} sent a message of {len(parts)} parts")
            frame = self._codec.decode(parts[0], peer)
            if type(frame) is not Hello:
                if self._strangers.may_answer(route):
                    self._reply(route, Who())
                raise RemoteProtocolError(f"{peer} sent a {type(frame).__name__} before its hello")
            link = self._links.get(frame.node)
            if link is None:
                raise Refused(f"node {frame.node} is none of our {len(self._links)} neighbors")
            if key != link.key:
                raise Refused(f"node {frame.node} has another key")
            self._introduce(link, route, frame)
        except RemoteProtocolError as exc:
            if isinstance(exc, Refused) and self._strangers.may_answer(route):
                self._reply(route, Refuse(str(exc)))
            self._strangers.drop(peer, exc)

    def _introduce(self, link: Link, route: bytes, words: Hello) -> None:
        """The other end has told who it is: check it, answer a Hello, and open the link."""
        self._introduction.check(words)
        if words.node != link.node:
            raise Refused(f"we called node {link.node}, node {words.node} answered")
        if link.lost or (link.up and route != link.route):
            log.warning("the link to %s is up again, it is at exchange %d", link, words.need)
            link.lost = False
        self._routes.take(link, route)
        if words.address != link.address and is_address(words.address):
            log.info("neighbor %d is at %s now, not %s", link.node, words.address, link.address)
            link.address = words.address
            dead_end = self._routes.drop_call(link)
            if dead_end is not None:
                self.socket.disconnect(dead_end)
        if type(words) is Hello:
            self.send(link.node, self._introduction.words(Welcome))
        self._opened(link.node, words)

    def _reply(self, route: bytes, frame: Frame) -> bool:
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        return self._put(route, raw)

    def _put_on(self, link: Link, raw: bytes) -> None:
        """Send on a link; what cannot leave is asked for again, once the neighbor is back."""
        route = link.route
        if route is not None and not self._put(route, raw):
            self._routes.breaks(link, route)
            self._say_lost(link)

    def _say_lost(self, link: Link) -> None:
        if not link.up and not link.lost:
            link.lost = True
            log.warning("the link to %s is lost", link)

    def _put(self, route: bytes, raw: bytes) -> bool:
        try:
            send(self.socket, route, _FIRST_PART)
            send(self.socket, raw, NOBLOCK)
        except zmq.ZMQError as exc:
            # the connection broke: the neighbor will call again and ask for what it lacks
            log.debug("%s cannot be reached now: %s", route.hex(), exc)
            return False
        return True
