"""A network in memory: transports that behave as ZeroMQ's do, and letters that tests may lose.

A connection keeps its order. What was sent waits until the test delivers it; a connection that the
test breaks loses what is under way, and its caller makes it again by itself, as libzmq does, once
somebody listens there: the caller is told of that, the called end can only tell from a new route.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Container
from dataclasses import dataclass
from itertools import count


@dataclass(eq=False)
class Connection:
    """From a caller's transport to whoever listens at an endpoint."""

    caller: MemoryTransport
    route: bytes  # as the caller has it
    endpoint: str
    answering: MemoryTransport | None = None  # who listens there, once something has arrived
    answer_route: bytes = b""  # as that one has it
    broken: bool = False  # until somebody listens there again


@dataclass(eq=False)
class Letter:
    """A message under way on a connection."""

    connection: Connection
    forth: bool  # from the caller
    raw: bytes

    @property
    def ends(self) -> tuple[str, str]:
        """Addresses of sender and receiver."""
        pair = self.connection.caller.address, self.connection.endpoint
        return pair if self.forth else pair[::-1]


class Post:
    """All transports, and all letters that are under way."""

    def __init__(self) -> None:
        self.listening: dict[str, MemoryTransport] = {}
        self.flying: list[Letter] = []
        self._ports = count(1024)
        self._routes = count()

    def listen(self, address: str | None = None) -> MemoryTransport:
        """A transport at this address, or at one that nobody had before."""
        transport = MemoryTransport(self, address or f"tcp://127.0.0.1:{next(self._ports)}")
        self.listening[transport.address] = transport
        for caller in self.listening.values():
            caller.call_again()
        return transport

    def oldest(self, letter: Letter) -> Letter:
        """The first letter of the same connection and direction."""
        way = (letter.connection, letter.forth)
        return next(each for each in self.flying if (each.connection, each.forth) == way)

    def deliver(self, letter: Letter) -> None:
        """A letter arrives, unless whom it is for is gone."""
        self.flying.remove(letter)
        connection = letter.connection
        if not letter.forth:
            connection.caller.inbox.append((connection.route, letter.raw))
            return
        there = self.listening.get(connection.endpoint)
        if there is None:
            return
        if connection.answering is not there:
            connection.answering, connection.answer_route = there, b"%d" % next(self._routes)
            there.answered[connection.answer_route] = connection
        there.inbox.append((connection.answer_route, letter.raw))

    def cut(self, one: str, other: str) -> None:
        """Every connection between two addresses breaks, and what was under way is lost."""
        self.flying = [each for each in self.flying if {*each.ends} != {one, other}]
        for transport in (self.listening[one], self.listening[other]):
            transport.drop({one, other})

    def vanish(self, address: str, *, late: bool = False) -> None:
        """A process is gone, and with it its inbox; what it sent may still arrive, if `late`."""
        gone = self.listening.pop(address)
        gone.inbox.clear()
        self.flying = [
            each
            for each in self.flying
            if address not in each.ends or (late and each.ends[0] == address)
        ]
        for transport in self.listening.values():
            transport.drop({address, transport.address})


class MemoryTransport:
    """One node's end; a `Transport`."""

    def __init__(self, post: Post, address: str) -> None:
        self.address = address
        self.refused = 0
        self.inbox: deque[tuple[bytes, bytes]] = deque()
        self.remade: deque[bytes] = deque()
        self.called: dict[bytes, Connection] = {}
        self.answered: dict[bytes, Connection] = {}
        self._post = post
        self._raw = b""

    def admit(self, keys: Collection[bytes | None]) -> None:
        pass

    def call(self, route: bytes, endpoint: str, key: bytes | None) -> None:  # noqa: ARG002
        self.called[route] = Connection(self, route, endpoint)

    def hang_up(self, endpoint: str) -> None:
        self.called = {r: each for r, each in self.called.items() if each.endpoint != endpoint}

    def send(self, route: bytes, raw: bytes) -> bool:
        connection = self.called.get(route) or self.answered.get(route)
        if connection is None:
            return False
        forth = route in self.called
        self._post.flying.append(Letter(connection, forth, raw))
        return True

    def receive(self, known: Container[bytes]) -> tuple[bytes, bytes | None] | None:
        if not self.inbox:
            return None
        route, self._raw = self.inbox.popleft()
        return route, self._raw if route in known else None

    def parts(self) -> tuple[list[bytes], bytes | None]:
        return [self._raw], None

    def drop(self, ends: set[str]) -> None:
        """Connections between these addresses are broken: callers call again, by a new route."""
        self.answered = {
            route: each
            for route, each in self.answered.items()
            if {each.caller.address, each.endpoint} != ends
        }
        for route, each in self.called.items():
            if {self.address, each.endpoint} == ends:
                self.called[route] = Connection(self, route, each.endpoint, broken=True)
        self.call_again()

    def call_again(self) -> None:
        """Broken connections are made again where somebody listens."""
        for route, each in self.called.items():
            if each.broken and each.endpoint in self._post.listening:
                each.broken = False
                self.remade.append(route)
