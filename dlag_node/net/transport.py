"""What links need of a transport: connections with routes, by which messages come and go."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Container
from typing import Protocol


class Transport(Protocol):
    """One end of many connections, each known by its route.

    ZeroMQ's ROUTER socket in the mesh (`net.router`), queues in memory in tests.
    """

    remade: deque[bytes]
    """Connections that we called, by route, which broke and were made again: the other end does not
    know them, and what was under way is lost."""

    @property
    def address(self) -> str:
        """Where it listens."""

    @property
    def refused(self) -> int:
        """Callers that were turned away before they could say anything."""

    def admit(self, keys: Collection[bytes | None]) -> None:
        """From now on let in the holders of these keys; until then callers wait."""

    def call(self, route: bytes, endpoint: str, key: bytes | None) -> None:
        """Connect to `endpoint`, where the holder of `key` must listen; it gets this route."""

    def hang_up(self, endpoint: str) -> None:
        """Give up a connection that we called."""

    def send(self, route: bytes, raw: bytes) -> bool:
        """Send without waiting; False where the connection is broken."""

    def receive(self, known: Container[bytes]) -> tuple[bytes, bytes | None] | None:
        """The route of the next message; None: none waits.

        With its first part, where the route is `known`: should it have others, they come up as
        messages of their own. Otherwise its parts are to be taken now.
        """

    def parts(self) -> tuple[list[bytes], bytes | None]:
        """All parts of the message under way, and the key of the connection that it came by."""
