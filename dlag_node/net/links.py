"""The links to the neighbors: one connection an edge, opened by hello, repaired by replay.

A node listens for the neighbors with higher ids, and calls those with lower ids; after a crash it
calls them all, since those who called it may not know where it is now. A connection counts as a
neighbor's only after its hello: until then its frames are dropped, so a stranger can neither take a
neighbor's place nor reach the barrier. An edge may so have two connections, one called from each
end; either will do.

With keys nobody gets so far but the neighbors: they alone are admitted, whom we call must hold the
neighbor's key, and a hello must name the node whose key its connection has.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from dlag_node.errors import ConfigError, RemoteProtocolError
from dlag_node.net.introduction import Introduction, Refused
from dlag_node.net.routes import Link, Routes
from dlag_node.net.sockets import is_address, resolved
from dlag_node.net.transport import Transport
from dlag_node.rounds import Outgoing
from dlag_node.trust.strangers import Strangers
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer
from dlag_node.wire.frames import Delta, Frame, Hello, Need, Refuse, RoundFrame, Skip, Welcome, Who

log = logging.getLogger(__name__)


class LinkEvents(Protocol):
    """Who is told what comes over the links; a RemoteProtocolError of theirs drops the frame."""

    def frame(self, neighbor: int, frame: RoundFrame, /) -> object:
        """A round frame of a neighbor whose link is up."""

    def control(self, neighbor: int, frame: Frame) -> None:
        """Any other frame but those that open links."""

    def opened(self, neighbor: int, words: Hello) -> None:
        """A link is up, for the first time or again: `words` say where the neighbor is."""

    def lost(self, neighbor: int) -> None:
        """A link that was up is not, until it is opened again."""


class Links:
    """Moves frames between one node and its neighbors; knows who they are, not what they mean."""

    def __init__(
        self,
        transport: Transport,
        introduction: Introduction,
        peers: Sequence[Peer],
        codec: Codec,
        events: LinkEvents,
    ) -> None:
        self.control_bytes = 0
        self.reopened = False  # a link: what its first connection carried is counted by nobody
        self._transport = transport
        self._receive, self._put = transport.receive, transport.send
        self._remade = transport.remade
        self._introduction = introduction
        self._codec = codec
        self._events, self._frame = events, events.frame
        self._links = {peer.node: Link(peer.node, peer.address, peer.key) for peer in peers}
        self._routes = Routes()
        self._strangers = Strangers()

    async def call(self, *, everybody: bool = False) -> None:
        """Let the neighbors in, and call those with lower ids.

        Everybody is called by one who is back, and may not be where it was.
        """
        self._transport.admit([link.key for link in self._links.values()])
        for link in self._links.values():
            if not everybody and link.node > self._introduction.node:
                continue
            try:
                self._call(link, await resolved(link.address))
            except ConfigError as exc:
                if not everybody:
                    raise
                # it is gone, and its name with it: when it is back it will call us
                log.warning("cannot call neighbor %d now: %s", link.node, exc)

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
        return self._strangers.dropped + self._transport.refused

    def address_of(self, neighbor: int) -> str:
        """Where the neighbor was last known to be."""
        return self._links[neighbor].address

    def attempt(self, neighbor: int) -> tuple[str, str, bool]:
        """Which address a link is opened by, from where, and whether it is we who call."""
        link = self._links[neighbor]
        if link.ours is not None:
            return link.address, self._transport.address, True
        return self._introduction.address, link.address, False

    def whereabouts(self, neighbor: int) -> str:
        """Which address was tried from where: for who must find out why a link is not up."""
        link, told = self._links[neighbor], self._introduction.address
        if link.up:
            return f"{link} at {link.address} was there and is silent now"
        if link.ours is not None:
            return (
                f"{link} has not answered our calls to {link.address} "
                f"from {self._transport.address}"
            )
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
                self._transport.hang_up(dead_end)
                self._call(link, dead_end)

    def ask(self, neighbor: int, seq: int) -> None:
        """Ask for what we lack from exchange `seq` on; where the link is down, by hello."""
        if self._links[neighbor].up:
            self.send(neighbor, Need(seq))
        else:
            self.greet(neighbor)

    def send(self, neighbor: int, frame: Frame) -> None:
        """Send a frame that is none of a round's; counted apart."""
        raw = self._codec.encode(frame)
        self.control_bytes += len(raw)
        self._put_on(self._links[neighbor], raw)

    def broadcast(self, outgoing: Outgoing) -> None:
        """Send a round frame to every neighbor that it is meant for and whose link is up.

        The others will say hello first, and be sent what they lack then.
        """
        raw, to = outgoing.raw, outgoing.to
        for link in self._links.values():
            if link.up and (to is None or link.node in to):
                self._put_on(link, raw)

    def resend(self, neighbor: int, raw: bytes) -> None:
        """Send a round frame again, to one neighbor."""
        self.control_bytes += len(raw)
        self._put_on(self._links[neighbor], raw)

    def drain(self) -> bool:
        """Take one message and deliver it; False when none waits."""
        known = self._routes.known
        message = self._receive(known)
        if message is None:
            if self._routes.broken:
                self._routes.forget_broken()
            return bool(self._remade) and self._greet_again(self._remade.popleft())
        route, raw = message
        if raw is not None:
            link = known[route]
            try:
                frame = self._codec.decode(raw, link)
                if type(frame) is Delta or type(frame) is Skip:
                    self._frame(link.node, frame)
                else:
                    self._take(link, route, frame)
            except RemoteProtocolError as exc:
                self._strangers.drop(str(link), exc)
            return True
        parts, key = self._transport.parts()
        called = self._routes.calls.get(route)
        if called is not None and len(parts) == 1:
            self._take_answer(called, route, parts[0])
        else:
            self.hear_stranger(route, parts, key)
        return True

    def _call(self, link: Link, endpoint: str) -> None:
        self._transport.call(self._routes.call(link, endpoint), endpoint, link.key)
        self.greet(link.node)

    def _greet_again(self, route: bytes) -> bool:
        """A connection of ours has been made again, and is a stranger's at the other end."""
        link = self._routes.known.get(route) or self._routes.calls.get(route)
        if link is not None:
            self._part(link, route)
        return True

    def _part(self, link: Link, route: bytes) -> None:
        """The other end does not know this connection, or not any more: say who we are."""
        self._routes.lose(link, route)
        self._say_lost(link)
        self.greet(link.node)

    def _take(self, link: Link, route: bytes, frame: Frame) -> None:
        """A frame that is none of a round's, of a connection that we know."""
        if isinstance(frame, Hello):
            self._introduce(link, route, frame)
        elif isinstance(frame, Who):
            self._part(link, route)
        else:
            self._events.control(link.node, frame)

    def _take_answer(self, link: Link, route: bytes, raw: bytes) -> None:
        """A frame on a connection that we called, before we know who is there."""
        try:
            frame = self._codec.decode(raw, link)
            if isinstance(frame, Hello):
                self._introduce(link, route, frame)
            elif isinstance(frame, Who):
                self.greet(link.node)
            elif isinstance(frame, Refuse):
                self._events.control(link.node, frame)
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
            self.reopened = True
        self._routes.take(link, route)
        if words.address != link.address and is_address(words.address):
            log.info("neighbor %d is at %s now, not %s", link.node, words.address, link.address)
            link.address = words.address
            dead_end = self._routes.drop_call(link)
            if dead_end is not None:
                self._transport.hang_up(dead_end)
        if type(words) is Hello:
            self.send(link.node, self._introduction.words(Welcome))
        if link.up:  # unless it broke while we answered
            self._events.opened(link.node, words)

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
            self._events.lost(link.node)
