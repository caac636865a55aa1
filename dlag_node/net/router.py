"""The transport of the mesh: one ZeroMQ ROUTER socket for all links of a node, with its gate."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Container
from contextlib import suppress

import zmq

from dlag_node.errors import ConfigError
from dlag_node.net.kernel import Address, KernelCounter
from dlag_node.net.sockets import (
    HEARTBEAT,
    NOBLOCK,
    POLLIN,
    SNDMORE,
    Socket,
    bind,
    host_and_port,
    keep_alive,
    open_socket,
    rest_with_key,
    send,
    zmq_poll,
)
from dlag_node.trust.curve import call_with, listen_with
from dlag_node.trust.gate import Gate
from dlag_node.trust.keys import KeyPair
from dlag_node.trust.monitor import MADE, Monitor

log = logging.getLogger(__name__)

_FIRST_PART = NOBLOCK | SNDMORE


class Router:
    """Listens, calls, and moves messages; a `Transport`.

    Whoever sends more than `limit` bytes at once is dropped. With keys, nobody gets in before
    `admit` has said whose keys may.
    """

    def __init__(
        self,
        context: zmq.Context[Socket],
        address: str,
        *,
        limit: int,
        rather: str | None = None,
        keys: KeyPair | None = None,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        """Listen on `address`; on `rather`, if that is given and free.

        Who is called is pinged every `heartbeat` seconds, unless that is 0.
        """
        self.socket = open_socket(context, zmq.ROUTER, limit=limit)
        self.limit = limit
        self._keys = keys
        self._gate = None
        self._watched = [(self.socket, POLLIN)]
        self.remade: deque[bytes] = deque()
        self.woken: Callable[[], None] = lambda: None  # there is something in `remade`
        self._calls: dict[str, bytes] = {}  # routes by endpoint
        self._called: set[Address] = set()
        self._made: set[str] = set()  # endpoints
        self._monitor = None
        if keys is None:
            self._monitor = Monitor(context, self.socket, MADE)
        else:
            self._gate = Gate(context)
            self._gate.watch(self.socket)
            self._gate.made = self._note_made
            listen_with(self.socket, keys)
        try:
            self.address = bind(self.socket, address, rather=rather)
        except ConfigError:
            self.close()
            raise
        keep_alive(self.socket, heartbeat)  # not on the connections that it takes

    @property
    def refused(self) -> int:
        """Hand-shakes that failed."""
        return 0 if self._gate is None else self._gate.refused

    def kernel(self) -> KernelCounter:
        """Counts what is sent to neighbors, those that are yet to be called included."""
        return KernelCounter(int(host_and_port(self.address)[1]), self._called)

    def admit(self, keys: Collection[bytes | None]) -> None:
        """Open the gate to the holders of these keys, if there is one."""
        if self._monitor is not None:
            self._monitor.listen(lambda _, __, endpoint: self._note_made(endpoint))
        if self._gate is not None:
            self._gate.open(frozenset(keys).__contains__, expected=len(keys))

    def call(self, route: bytes, endpoint: str, key: bytes | None) -> None:
        """Connect; libzmq goes on trying by itself."""
        if self._keys is not None and self._gate is not None:
            if key is None:
                raise ConfigError(f"who listens at {endpoint} has no key, and we have one")
            call_with(self.socket, self._keys, key)
            self._gate.called.add(endpoint)
        self._calls[endpoint] = route
        host, port = host_and_port(endpoint)
        self._called.add((host, int(port)))
        self._made.discard(endpoint)
        self.socket.setsockopt(zmq.CONNECT_ROUTING_ID, route)
        self.socket.connect(endpoint)

    def hang_up(self, endpoint: str) -> None:
        """Disconnect, unless libzmq has forgotten the connection already."""
        with suppress(zmq.ZMQError):
            self.socket.disconnect(endpoint)

    def send(self, route: bytes, raw: bytes) -> bool:
        """Send without waiting; False where the connection is broken."""
        try:
            send(self.socket, route, _FIRST_PART)
            send(self.socket, raw, NOBLOCK)
        except zmq.ZMQError as exc:
            log.debug("%s cannot be reached now: %s", route.hex(), exc)
            return False
        return True

    def receive(self, known: Container[bytes]) -> tuple[bytes, bytes | None] | None:
        """The next message's route, and its first part where the route is `known`.

        This look also re-arms the descriptor's edge.
        """
        if not zmq_poll(self._watched, 0):
            return None
        route = self.socket.recv(NOBLOCK)
        return route, self.socket.recv(NOBLOCK) if route in known else None

    def parts(self) -> tuple[list[bytes], bytes | None]:
        """All parts of the message under way, and the key of its connection."""
        return rest_with_key(self.socket)

    def close(self) -> None:
        """Close the socket; what was sent still leaves."""
        if self._monitor is not None:
            self._monitor.close()
        if self._gate is not None:
            self._gate.close()
        self.socket.close()

    def _note_made(self, endpoint: str) -> None:
        """A hand-shake has succeeded: not the first of a call of ours, then it was broken."""
        route = self._calls.get(endpoint)
        if route is None:
            return
        if endpoint in self._made:
            self.remade.append(route)
            self.woken()
        self._made.add(endpoint)
