"""Joining a run: the node's side of the talk with the coordinator."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import deque
from secrets import token_bytes
from typing import TypeVar

import zmq
import zmq.asyncio

from dlag_node.data import Summary
from dlag_node.errors import (
    NeighborTimeout,
    NotNeeded,
    PeerRefused,
    RemoteProtocolError,
    RunAborted,
)
from dlag_node.net.credentials import Credentials
from dlag_node.net.handshake import Handshake
from dlag_node.net.sockets import Socket, resolved
from dlag_node.net.survey import measure
from dlag_node.problems import Problem
from dlag_node.trust.curve import call_with
from dlag_node.wire.control import (
    FROM_COORDINATOR,
    Assignment,
    Chunk,
    Enrol,
    Failed,
    Fetch,
    FromCoordinator,
    FromNode,
    Full,
    Join,
    Measured,
    Report,
    Survey,
    Waiting,
)
from dlag_node.wire.frames import Abort, Refuse, Who
from dlag_node.wire.limits import CHUNK_BYTES, MAX_CONTROL_BYTES, MAX_NODES, MAX_TEXT, PROTOCOL
from dlag_node.wire.schema import pack, unpack

log = logging.getLogger(__name__)

_FETCH_AHEAD = 4  # chunks asked for before the first has come
_LINGER_MS = 500  # for the last words; the coordinator may be gone, and that is no matter
_SAY_AFTER = 5.0  # seconds of silence after which the log says whom we wait for

Expected = TypeVar("Expected", Enrol, Chunk, Assignment)


class Forgotten(Exception):
    """The coordinator that we had joined is gone, and another one is in its place."""


class Bootstrap:
    """One node's connection to the coordinator: join, fetch the shard, report, be assigned."""

    def __init__(
        self,
        context: zmq.Context[Socket],
        address: str,
        *,
        timeout: float,
        identity: bytes | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        self.address = address
        self.endpoint = address  # its name looked up, once we have called
        self._timeout = timeout
        self._node = -1  # not known yet
        shadow: zmq.asyncio.Context = zmq.asyncio.Context.shadow(context.underlying)
        self._socket = shadow.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
        # who we were before a crash, or before the connection broke: the place is ours again
        self._socket.setsockopt(zmq.ROUTING_ID, b"n" + (identity or token_bytes(16)))
        self._token = None
        if credentials is not None:
            assert credentials.coordinator is not None  # the settings were checked
            call_with(self._socket, credentials.keys, credentials.coordinator)
            self._token = credentials.token
        self._handshake = Handshake(self._socket)

    async def call(self) -> None:
        """Connect, without waiting for anybody to answer."""
        self.endpoint = await resolved(self.address)
        self._socket.connect(self.endpoint)

    async def join(self, wanted: int | None, held: Summary | None) -> tuple[Enrol, bytearray]:
        """Ask for a place, and fetch the shard that comes with it, if we hold no samples."""
        while await self._socket.poll(0):
            await self._socket.recv_multipart()  # said to us as we were before: of no use now
        self.tell(Join(PROTOCOL, wanted, self._token, held))
        enrol = await self._hear(Enrol)
        self._node = enrol.node
        return enrol, await self._fetch(enrol)

    async def report(self, problem: Problem, address: str, *, held: bool) -> Assignment:
        """Tell m_i and the constants of f_i; the assignment comes once every node has done so."""
        self.tell(Report.of(address, problem, held=held))
        return await self._hear(Assignment)

    def tell(self, message: FromNode) -> None:
        """Say something without waiting for it to arrive."""
        self._socket.send(pack(message), zmq.NOBLOCK)

    def fail(self, reason: str) -> None:
        """Tell the coordinator that this node gives up."""
        self.tell(Failed(reason[:MAX_TEXT]))

    def close(self) -> None:
        """Close the socket; what was said still leaves."""
        self._handshake.close()
        self._socket.close()

    async def _fetch(self, enrol: Enrol) -> bytearray:
        body = bytearray(enrol.size)
        due: deque[int] = deque()
        asked = offset = 0
        while offset < enrol.size:
            while asked < enrol.chunks and len(due) < _FETCH_AHEAD:
                self.tell(Fetch(asked))
                due.append(asked)
                asked += 1
            chunk = await self._hear(Chunk)
            expected = min(CHUNK_BYTES, enrol.size - offset)
            if chunk.chunk != due.popleft() or len(chunk.body) != expected:
                raise RemoteProtocolError(f"the coordinator sent chunk {chunk.chunk} out of turn")
            body[offset : offset + len(chunk.body)] = chunk.body
            offset += len(chunk.body)
        if not enrol.held and hashlib.sha256(body).hexdigest() != enrol.sha256:
            raise RemoteProtocolError("the shard's bytes do not have the announced sha256")
        return body

    async def _hear(self, expected: type[Expected]) -> Expected:
        message = await self._receive(expected.__name__)
        while isinstance(message, Survey) or (isinstance(message, Enrol) and expected is not Enrol):
            if isinstance(message, Survey):
                log.info("measuring the ways to %d nodes", len(message.addresses) - 1)
                times = await measure(message.addresses, self._node)
                self.tell(Measured.of(message.number, times))
            # a second Enrol: we joined twice, the same place
            message = await self._receive(expected.__name__)
        if isinstance(message, Who):
            raise Forgotten(f"the coordinator at {self.address} does not know us")
        if isinstance(message, Refuse):
            raise PeerRefused(f"the coordinator refused us: {message.reason}")
        if isinstance(message, Full):
            raise NotNeeded(f"all {message.nodes} places of the run are taken")
        if isinstance(message, Abort):
            raise RunAborted(message.reason)
        if not isinstance(message, expected):
            raise RemoteProtocolError(
                f"the coordinator sent {type(message).__name__}, expected {expected.__name__}"
            )
        return message

    def _wait_on(self, expected: str, level: int) -> None:
        """Say that we wait; a coordinator that has begun anew answers that it knows us not."""
        log.log(level, "waiting for the coordinator at %s (%s)", self.address, expected)
        self.tell(Waiting())
        loop = asyncio.get_running_loop()
        self._nag = loop.call_later(_SAY_AFTER, self._wait_on, expected, logging.DEBUG)

    async def _receive(self, expected: str) -> FromCoordinator:
        loop = asyncio.get_running_loop()
        self._nag = loop.call_later(_SAY_AFTER, self._wait_on, expected, logging.INFO)
        heard = asyncio.ensure_future(self._socket.recv_multipart())
        failed = asyncio.ensure_future(self._handshake.failed())
        try:
            await asyncio.wait(
                {heard, failed}, timeout=self._timeout, return_when=asyncio.FIRST_COMPLETED
            )
            if heard.done():
                parts = heard.result()
            elif failed.done():
                raise PeerRefused(f"the coordinator at {self.address}: {failed.result()}")
            else:
                raise NeighborTimeout(
                    f"the coordinator at {self.address} sent no {expected} for {self._timeout:g} s"
                )
        finally:
            heard.cancel()
            failed.cancel()
            self._nag.cancel()
        return unpack(
            b"".join(parts),
            FROM_COORDINATOR,
            limit=MAX_CONTROL_BYTES,
            longest=MAX_NODES,  # neighbors and eigenvalues
            peer="the coordinator",
        )
