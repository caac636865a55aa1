"""The door before the gate: a listening socket that can be shut for a while, by the kernel.

A hand-shake costs us a hundred times what its first packet costs a stranger, and libzmq takes every
connection that it can get. While the door is shut a filter on the listening socket drops SYN
packets, before anything of ours has run: who is inside stays, and who calls is heard a second
later, since TCP calls again.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import socket
import struct
from pathlib import Path
from time import monotonic

log = logging.getLogger(__name__)

REFUSALS_A_SECOND = 100  # hand-shakes that may fail; then the door is shut
SHUT_SECONDS = 1.0
STRANGERS_AT_ONCE = 256  # connections beside those that we expect; more, and the door is shut
_LOOK_EVERY = 32  # connections from one count of them to the next

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_TCP_FLAGS, _SYN = 13, 0x02  # offset in the header, bit
_DROP_SYN = (  # classic BPF: operation, jump if true, jump if false, operand
    (0x30, 0, 0, _TCP_FLAGS),  # load that byte
    (0x54, 0, 0, _SYN),  # and
    (0x15, 1, 0, 0),  # zero: one further
    (0x06, 0, 0, 0),  # drop
    (0x06, 0, 0, 0xFFFFFFFF),  # pass
)
_INSTRUCTIONS = ctypes.create_string_buffer(
    b"".join(struct.pack("=HBBI", *each) for each in _DROP_SYN)
)
_PROGRAM = struct.pack("HP", len(_DROP_SYN), ctypes.addressof(_INSTRUCTIONS))


class Door:
    """Shuts when too many hand-shakes fail, or too many connections are open."""

    def __init__(self, descriptor: int, *, expected: int) -> None:
        """`descriptor` is the listening socket's, `expected` how many may rightly call us."""
        self._socket = socket.socket(fileno=os.dup(descriptor))
        self._loop = asyncio.get_running_loop()
        self._most = _descriptors() + 2 * expected + STRANGERS_AT_ONCE
        self._since_look = 0
        self._since, self._failed = monotonic(), 0
        self._timer: asyncio.TimerHandle | None = None
        self.times_shut = 0

    def accepted(self) -> None:
        """Somebody has connected."""
        self._since_look += 1
        if self._since_look >= _LOOK_EVERY:
            self._since_look = 0
            if _descriptors() > self._most:
                self._shut("too many connections are open")

    def failed(self) -> None:
        """A hand-shake has failed."""
        now = monotonic()
        if now - self._since >= 1.0:
            self._since, self._failed = now, 0
        self._failed += 1
        if self._failed > REFUSALS_A_SECOND:
            self._shut("too many hand-shakes fail")

    def close(self) -> None:
        """Let go of the listening socket."""
        if self._timer is not None:
            self._timer.cancel()
        self._socket.close()

    def _shut(self, why: str) -> None:
        if self._timer is not None:
            return
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, _PROGRAM)
        except OSError as exc:
            if not self.times_shut:
                log.warning("%s, and this system cannot shut the door: %s", why, exc)
        if not self.times_shut:
            log.warning("%s: newcomers wait for %g s (said once)", why, SHUT_SECONDS)
        self.times_shut += 1
        self._timer = self._loop.call_later(SHUT_SECONDS, self._open)

    def _open(self) -> None:
        if _descriptors() > self._most:
            self._timer = self._loop.call_later(SHUT_SECONDS, self._open)
            return
        self._timer = None
        self._since, self._failed = monotonic(), 0
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
        except OSError as exc:
            log.debug("the door was not shut: %s", exc)


def _descriptors() -> int:
    """How many files and sockets this process has open; 0 where the system does not tell."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0
