"""How a call of ours fails before a word is said: libzmq does not tell, but to a monitor."""

from __future__ import annotations

import logging
import struct

import zmq
import zmq.asyncio

log = logging.getLogger(__name__)

_LOST = int(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
_AUTH = int(zmq.EVENT_HANDSHAKE_FAILED_AUTH)
_PROTOCOL = int(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL)


class Handshake:
    """Watches the hand-shakes of one socket that calls."""

    def __init__(self, opened: zmq.asyncio.Socket) -> None:
        self._opened = opened
        self._monitor = opened.get_monitor_socket(_LOST | _AUTH | _PROTOCOL)
        self._said = False

    async def failed(self) -> str:
        """Returns when a hand-shake has failed for good, and says why.

        One that the other end broke off is tried again; that is mentioned once.
        """
        while True:
            word, _ = await self._monitor.recv_multipart()
            event, _ = struct.unpack("=HI", word)
            if event == _AUTH:
                return "our key is not admitted there"
            if event == _PROTOCOL:
                return "one of us has keys and the other has none, or it speaks something else"
            if not self._said:
                self._said = True
                log.warning("a hand-shake was broken off: is that the other end's public key?")

    def close(self) -> None:
        """Watch no more; before the socket is closed."""
        self._opened.disable_monitor()
        self._monitor.close(0)
