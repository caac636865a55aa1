"""The gate of a process: for every hand-shake on its listening sockets, may this key come in?

libzmq asks over `inproc://zeromq.zap.01` (RFC 27, ZAP) once it is proven that a caller holds the
secret half of its key, and tells a monitor of hand-shakes that fail before that. Both are heard in
the event loop, without a thread. Until the gate is open, callers wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import zmq

from dlag_node.trust.door import Door
from dlag_node.trust.monitor import ACCEPTED, FAILED, LISTENING, MADE, Ear, Monitor
from dlag_node.trust.strangers import Strangers

log = logging.getLogger(__name__)

_ENDPOINT = "inproc://zeromq.zap.01"
_VERSION = b"1.0"
_MENTIONED = 20  # strangers in the log; the others are counted


class Gate:
    """Lets in who holds an admitted key, and counts who does not.

    One for a context: all sockets of it that listen with a key ask here.
    """

    def __init__(self, context: zmq.Context[Any]) -> None:
        plain: zmq.Context[zmq.Socket[bytes]] = zmq.Context.shadow(context.underlying)
        self.strangers = Strangers(_MENTIONED)
        self.called: set[str] = set()  # endpoints: what fails there is no stranger's call
        self.made: Callable[[str], None] = lambda _: None  # told of calls that came through
        zap = plain.socket(zmq.REP)
        zap.bind(_ENDPOINT)
        self._context = context
        self._zap = Ear(zap, self._answer)
        self._monitor: Monitor | None = None
        self._admits: Callable[[bytes], bool] = lambda _: False
        self._door: Door | None = None
        self._expected = 0

    @property
    def refused(self) -> int:
        """Hand-shakes that failed."""
        return self.strangers.dropped

    def watch(self, opened: zmq.Socket[Any]) -> None:
        """Count the hand-shakes on this socket that never come to a key: before it is bound."""
        self._monitor = Monitor(self._context, opened, LISTENING | ACCEPTED | MADE | FAILED)

    def open(self, admits: Callable[[bytes], bool], *, expected: int) -> None:
        """Answer from now on; `admits` says whether a public key may come in.

        So many callers are `expected`, twice at most: once again while an old connection dies.
        """
        self._admits = admits
        self._expected = expected
        self._zap.listen()
        if self._monitor is not None:
            self._monitor.listen(self._note)

    def close(self) -> None:
        """Answer nobody any more; before the sockets that it guards are closed."""
        if self.refused:
            log.info("%d hand-shakes were refused", self.refused)
        if self._monitor is not None:
            self._monitor.close()
        if self._door is not None:
            self._door.close()
        self._zap.close()

    def _answer(self, zap: zmq.Socket[bytes]) -> None:
        """One request: version, number, domain, address, routing id, mechanism, credentials."""
        version, number, _, address, _, mechanism, *credentials = zap.recv_multipart()
        key = credentials[0] if mechanism == b"CURVE" and len(credentials) == 1 else b""
        words = [b"400", b"not admitted", b"", b""]
        if version == _VERSION and key and self._admits(key):
            words = [b"200", b"", key.hex().encode(), b""]
        else:
            peer = f"a caller from {address.decode(errors='replace')} with key {key.hex()}"
            self._refuse(peer, "which is not admitted")
        zap.send_multipart([_VERSION, number, *words])

    def _note(self, event: int, value: int, endpoint: str) -> None:
        """What became of a connection."""
        if event == LISTENING:
            self._door = self._door or Door(value, expected=self._expected)
        elif event == ACCEPTED:
            if self._door is not None:
                self._door.accepted()
        elif event == MADE:
            self.made(endpoint)
        elif endpoint in self.called:
            log.debug("our call to %s failed: it is not whom we called, or it is gone", endpoint)
        else:
            self._refuse(f"a caller at {endpoint}", "who has no key, or not ours, or is gone")

    def _refuse(self, peer: str, why: str) -> None:
        self.strangers.drop(peer, f"{peer}, {why}")
        if self._door is not None:
            self._door.failed()
