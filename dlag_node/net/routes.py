"""Which connection leads to which neighbor; pure, no socket."""

from __future__ import annotations

from dataclasses import dataclass
from secrets import token_bytes


@dataclass(slots=True)
class Link:
    """One neighbor, and the connections that reach it, by their routing ids."""

    node: int
    address: str  # where it was last known to be
    key: bytes | None = None  # that only it holds; None: a run without keys
    ours: bytes | None = None  # the connection that we called
    theirs: bytes | None = None  # the one that called us
    route: bytes | None = None  # the one to send on; None: it has not called us yet
    up: bool = False  # both ends have told who they are on `route`
    endpoint: str = ""  # that we called, its name looked up
    lost: bool = False  # it was up, and is not

    def __str__(self) -> str:
        return f"neighbor {self.node}"


class Routes:
    """Connections by routing id: those whose other end we know, and those that we only called.

    One that was called may have been made again behind our back, by libzmq, and somebody else may
    listen there now: a connection is known only after the words that were said on itself.
    """

    def __init__(self) -> None:
        self.known: dict[bytes, Link] = {}
        self.calls: dict[bytes, Link] = {}
        self.broken: list[bytes] = []  # those whose last words may still be unread

    def call(self, link: Link, endpoint: str) -> bytes:
        """The routing id of a connection that we are about to make."""
        # a name that no stranger can guess, or it could claim it before we do
        link.ours = link.route = b"+" + token_bytes(16)
        link.endpoint = endpoint
        self.calls[link.ours] = link
        return link.ours

    def take(self, link: Link, route: bytes) -> None:
        """The neighbor has said who it is on this connection: send there from now on."""
        if route != link.ours:
            if link.theirs is not None and link.theirs != route:
                del self.known[link.theirs]  # it was made again: the old one is dead
            link.theirs = route
        self.calls.pop(route, None)
        self.known[route] = link
        link.route, link.up = route, True

    def lose(self, link: Link, route: bytes) -> None:
        """A connection is not what it was: go over to the other one, if it is any good."""
        if self.known.pop(route, None) is None:
            return
        other = link.theirs if route == link.ours else link.ours
        if route == link.ours:
            self.calls[route] = link  # whoever answers there must say who it is
        else:
            link.theirs = None
        if link.route == route:
            link.up = other in self.known
            link.route = other if link.up else link.ours

    def breaks(self, link: Link, route: bytes) -> None:
        """Nothing can be sent there any more; what has come from there is still the neighbor's."""
        theirs = route == link.theirs
        self.lose(link, route)
        if theirs:
            self.known[route] = link
            self.broken.append(route)

    def forget_broken(self) -> None:
        """All that had come is read: who appears under these routing ids now is somebody else."""
        for route in self.broken:
            if route in self.known and self.known[route].theirs != route:
                del self.known[route]
        self.broken.clear()

    def drop_call(self, link: Link) -> str | None:
        """Give up a connection that we called and nobody answered; returns its endpoint."""
        if link.ours is None or link.ours not in self.calls:
            return None
        del self.calls[link.ours]
        link.ours = None
        return link.endpoint
