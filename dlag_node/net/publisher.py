"""Telling a watcher how a node stands, once a second, and waiting for nobody.

A PUB socket sends to who listens and drops what does not fit: a watcher that is slow, stopped, dead
or not there yet costs the node nothing. It has no way to answer.
"""

from __future__ import annotations

import asyncio

import zmq

from dlag_node.net.credentials import Credentials
from dlag_node.net.sockets import HEARTBEAT, NOBLOCK, Socket, keep_alive, open_socket
from dlag_node.net.witness import Witness
from dlag_node.trust.curve import call_with
from dlag_node.wire.schema import pack
from dlag_node.wire.watching import MAX_STATUS_BYTES

_EVERY_SECONDS = 1.0
_WAITING_MESSAGES = 16  # for a watcher that reads too slowly; sums make up for what is dropped
_LINGER_MS = 200


class Publisher:
    """One node's voice towards a watcher; it needs no word from the rounds, only a timer."""

    def __init__(
        self,
        context: zmq.Context[Socket],
        address: str,
        witness: Witness,
        credentials: Credentials | None = None,
        *,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self._witness = witness
        self._socket = open_socket(context, zmq.PUB, limit=MAX_STATUS_BYTES)
        keep_alive(self._socket, heartbeat)
        self._socket.setsockopt(zmq.SNDHWM, _WAITING_MESSAGES)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        if credentials is not None:
            assert credentials.watch is not None  # the settings were checked
            call_with(self._socket, credentials.keys, credentials.watch)
        self._socket.connect(address)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(_EVERY_SECONDS, self._tick)

    def close(self) -> None:
        """The last word, and the end."""
        self._timer.cancel()
        self._tell()
        self._socket.close()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(_EVERY_SECONDS, self._tick)
        self._tell()

    def _tell(self) -> None:
        self._socket.send(pack(self._witness.status()), NOBLOCK)
