"""The watcher's ear: nodes publish to it, and it has no mouth."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

import zmq

from dlag_node.errors import ConfigError, RemoteProtocolError
from dlag_node.net.sockets import check_address
from dlag_node.trust.curve import key_of, listen_with
from dlag_node.trust.gate import Gate
from dlag_node.trust.keys import KeyPair
from dlag_node.wire.limits import MAX_NODES
from dlag_node.wire.schema import unpack
from dlag_node.wire.watching import FROM_WATCHED, MAX_STATUS_BYTES, Status

log = logging.getLogger(__name__)

_WAITING_MESSAGES = 10_000  # of all nodes together, until we look
_AT_ONCE = 2_000  # messages; then the page has its turn
_EVERY_SECONDS = 0.25  # many at a time cost a fraction of what each would by itself


class Listener:
    """A SUB socket to which nodes connect."""

    def __init__(
        self,
        address: str,
        keys: KeyPair | None = None,
        admitted: Mapping[bytes, int | None] | None = None,
    ) -> None:
        """With `keys`, only nodes whose public key is `admitted` are heard."""
        check_address(address, wildcard=True)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_STATUS_BYTES)
        self._socket.setsockopt(zmq.RCVHWM, _WAITING_MESSAGES)
        self._socket.setsockopt(zmq.SUBSCRIBE, b"")
        self._admitted = admitted
        self._gate = None
        if keys is not None and admitted is not None:
            self._gate = Gate(self._context)
            self._gate.watch(self._socket)
            listen_with(self._socket, keys)
            self._gate.open(admitted.__contains__, expected=len(admitted))
        try:
            self._socket.bind(address)
        except zmq.ZMQError as exc:
            self.close()
            raise ConfigError(f"cannot listen on {address}: {exc}") from exc
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self._warned = False

    async def listen(self, take: Callable[[Status], None]) -> None:
        """Hand over every status, for ever."""
        while True:
            self.hear(take)
            await asyncio.sleep(_EVERY_SECONDS)

    def hear(self, take: Callable[[Status], None]) -> None:
        """Hand over every status that is here."""
        for _ in range(_AT_ONCE):
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
            except zmq.Again:
                return
            if (status := self._read(frames)) is not None:
                take(status)

    def _read(self, frames: list[zmq.Frame]) -> Status | None:
        """The status in a message; None where it holds anything else."""
        try:
            status = unpack(
                frames[-1].bytes,
                FROM_WATCHED,
                limit=MAX_STATUS_BYTES,
                longest=MAX_NODES,
                peer="somebody",
            )
            self._check(status.node, key_of(frames[0]))
        except RemoteProtocolError as exc:
            if not self._warned:
                self._warned = True
                log.warning("dropped: %s (said once)", exc)
            return None
        return status

    def _check(self, node: int, key: bytes | None) -> None:
        """A node speaks for itself alone, where keys say who it is."""
        known = node if key is None or self._admitted is None else self._admitted.get(key)
        if known is not None and known != node:
            raise RemoteProtocolError(f"node {known} speaks for node {node}")

    def close(self) -> None:
        """Hear no more."""
        if self._gate is not None:
            self._gate.close()
        self._context.destroy(linger=0)
