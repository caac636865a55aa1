"""What libzmq tells of a socket's connections (its monitor), heard in the event loop.

A socket has one monitor at most. Like any descriptor of libzmq's, that of an ear tells of edges
only: whoever listens takes all that waits, and looks again.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any

import zmq

LISTENING, ACCEPTED = int(zmq.EVENT_LISTENING), int(zmq.EVENT_ACCEPTED)
MADE = int(zmq.EVENT_HANDSHAKE_SUCCEEDED)
FAILED = int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
_AT_ONCE = 64  # then the loop gets a turn

Heard = Callable[[int, int, str], None]  # event, its value, endpoint


class Ear:
    """Reads a socket of libzmq's own in the event loop; `hear` takes one message of it."""

    def __init__(self, opened: zmq.Socket[bytes], hear: Callable[[zmq.Socket[bytes]], None]):
        self._socket, self._hear = opened, hear
        self._loop: asyncio.AbstractEventLoop | None = None

    def listen(self) -> None:
        """From now on; what has come before is heard at once."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._drain)
        self._drain()  # primes the descriptor

    def close(self) -> None:
        """Hear nothing any more."""
        if self._loop is not None:
            self._loop.remove_reader(self._socket)
        self._loop = None
        self._socket.close(0)

    def _drain(self) -> None:
        for _ in range(_AT_ONCE):
            if self._socket.closed or not self._socket.poll(0):
                return
            self._hear(self._socket)
        if self._loop is not None:
            self._loop.call_soon(self._drain)


class Monitor:
    """The ear at one socket's monitor: to be made before that is bound or connected."""

    def __init__(self, context: zmq.Context[Any], watched: zmq.Socket[Any], events: int) -> None:
        plain: zmq.Context[zmq.Socket[bytes]] = zmq.Context.shadow(context.underlying)
        address = f"inproc://monitor-{id(self)}"
        watched.monitor(address, events)
        told = plain.socket(zmq.PAIR)
        told.connect(address)
        self._watched = watched
        self._ear = Ear(told, self._take)
        self._heard: Heard = lambda *_: None

    def listen(self, heard: Heard) -> None:
        """Tell `heard` of every event, those since the beginning included."""
        self._heard = heard
        self._ear.listen()

    def close(self) -> None:
        """Before the socket that it watches is closed."""
        if not self._watched.closed:
            self._watched.disable_monitor()
        self._ear.close()

    def _take(self, told: zmq.Socket[bytes]) -> None:
        word, where = told.recv_multipart()
        event, value = struct.unpack("=HI", word)
        self._heard(event, value, where.decode())
