"""The laboratory's ear: hears every node of a run, and tells all of them how far they may go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import zmq
import zmq.asyncio

from dlag_lab.folder import RunFolder
from dlag_lab.gallery import Gallery
from dlag_lab.keyring import LaboratoryKeys
from dlag_lab.referee import Judge
from dlag_lab.running import StopBell
from dlag_node.errors import ConfigError, RemoteProtocolError
from dlag_node.outcome import Ending
from dlag_node.trust.curve import key_of, listen_with
from dlag_node.trust.gate import Gate
from dlag_node.wire.frames import Refuse
from dlag_node.wire.limits import MAX_DIM
from dlag_node.wire.observing import (
    FROM_NODE,
    Fallen,
    Farewell,
    FromNode,
    Halted,
    Horizon,
    Ready,
    Snapshots,
)
from dlag_node.wire.schema import pack, unpack

log = logging.getLogger(__name__)

_LIMIT = 64 * MAX_DIM  # a batch of snapshots
_REFUSAL_MS = 2_000  # at most, on its way to the node
_NOWHERE = Horizon(0, final=False)


@dataclass(slots=True)
class MeshOutcome:
    """What a run on real processes cost beside its records."""

    seconds: float = 0.0  # of the rounds, on the slowest node
    ready_seconds: float = 0.0  # from the first process's start to the last node's Ready
    restarts: int = 0  # of node processes that were killed
    ready: dict[int, Ready | Halted] = field(default_factory=dict)
    farewells: dict[int, Farewell] = field(default_factory=dict)
    network: dict[str, Any] | None = None  # what the kernel counted, where it can tell

    @property
    def ended(self) -> str:
        """Why there was no further round, as the nodes say."""
        return next(iter(self.farewells.values())).ended

    @property
    def control_bytes(self) -> int:
        """Bytes of the frames that open, repair and end links, over all nodes."""
        return sum(each.control_bytes for each in self.farewells.values())

    @property
    def costs(self) -> dict[str, Any]:
        """For the summary."""
        resident = [each.resident for each in self.farewells.values()]
        return {
            "seconds": self.seconds,
            "ended": self.ended,
            "bytes_control": self.control_bytes,
            "restarts": self.restarts,
            "startup": {
                "seconds_to_ready": self.ready_seconds,
                "cpu_seconds_nodes": sum(each.cpu for each in self.ready.values()),
            },
            "memory": {
                "resident_bytes_mean": sum(resident) // len(resident),
                "resident_bytes_max": max(resident),
            },
            "network": self.network,
        }


class Laboratory:
    """One socket that all nodes of a run talk to; `records` is where they write their files.

    It may begin in the middle of a run, after another laboratory died: a node that waits for its
    word says so from time to time, and what it did before lies in its files. With `keys` a node
    speaks for itself alone; without, anybody may, and the network is to be trusted. With `config`,
    the hash of what the laboratory's own plan decides, nodes of another one are refused, and that
    is the end: it would measure another problem than theirs.
    """

    def __init__(
        self,
        *,
        nodes: int,
        dim: int,
        referee: Judge,
        records: RunFolder,
        config: str | None = None,
        progress: Callable[[Snapshots], None] = lambda _: None,
        keys: LaboratoryKeys | None = None,
        bell: StopBell | None = None,
    ) -> None:
        self.nodes = nodes
        self._config = config
        self._linger = 0  # milliseconds that our last words may take
        self._keys = keys
        self._bell = bell or StopBell()
        self._gate: Gate | None = None
        self.outcome = MeshOutcome()
        self.fallen: dict[int, Ending] = {}  # nodes that gave up and have not come back
        self._referee = referee
        self._gallery = Gallery(records, nodes=nodes, dim=dim, referee=referee)
        self._progress = progress
        self._peers: dict[int, bytes] = {}
        self._told = _NOWHERE

    def listen(self, bind: str) -> str:
        """Open the socket; returns where nodes are to call us."""
        self._context = zmq.asyncio.Context()
        self.socket = self._context.socket(zmq.ROUTER)
        self.socket.setsockopt(zmq.MAXMSGSIZE, _LIMIT)
        if self._keys is not None:
            self._gate = Gate(self._context)
            self._gate.watch(self.socket)
            listen_with(self.socket, self._keys.pair)
        try:
            self.socket.bind(bind)
        except zmq.ZMQError as exc:
            self.close()
            raise ConfigError(f"cannot listen on {bind}: {exc}") from exc
        if self._gate is not None and self._keys is not None:
            self._gate.open(self._keys.speakers.admits, expected=self.nodes)
        return self.socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def close(self) -> None:
        """Close the socket at once; a refusal may take its time to leave."""
        if self._gate is not None:
            self._gate.close()
        self._context.destroy(linger=self._linger)

    @property
    def all_ready(self) -> bool:
        """Whether every node can run, or had finished before an interrupted run was resumed."""
        return len(self.outcome.ready.keys() | self.outcome.farewells.keys()) == self.nodes

    @property
    def all_done(self) -> bool:
        """Whether every node has said its farewell."""
        return len(self.outcome.farewells) == self.nodes

    def hear(self) -> asyncio.Future[Any]:
        """The next message, for `take`."""
        return asyncio.ensure_future(self.socket.recv_multipart(copy=False))

    async def take(self, frames: list[zmq.Frame]) -> None:
        """One message as the socket received it."""
        peer = frames[0].bytes
        who = f"peer {peer.hex()}"
        try:
            message = unpack(frames[-1].bytes, FROM_NODE, limit=_LIMIT, peer=who)
            if not 0 <= message.node < self.nodes:
                raise RemoteProtocolError(f"{who} speaks for node {message.node}: there is none")
            if self._keys is not None and not self._keys.speakers.may(
                key_of(frames[0]), message.node
            ):
                raise RemoteProtocolError(f"{who} speaks for node {message.node} with another key")
        except RemoteProtocolError as exc:
            log.warning("dropped: %s", exc)
            return
        await self._take(peer, message)

    async def tell_horizon(self) -> None:
        """Tell every node how far it may go, if that has changed."""
        horizon = self._referee.horizon
        if horizon == self._told:
            return
        self._told = horizon
        for peer in self._peers.values():
            await self.socket.send_multipart([peer, pack(horizon)])

    async def _take(self, peer: bytes, message: FromNode) -> None:
        self.fallen.pop(message.node, None)
        match message:
            case Ready() | Halted():
                await self._check(peer, message)
                self._peers[message.node] = peer
                self.outcome.ready.setdefault(message.node, message)
                self._gallery.fill(message.node, message.rounds)
                if self._bell.rung:
                    self._bell.ring()
                if self._told != _NOWHERE:  # it has come back: the others know how far they may go
                    await self.socket.send_multipart([peer, pack(self._told)])
                    await self.tell_horizon()
            case Snapshots():
                if self._gallery.take(message.node, message.rounds, message.thetas):
                    self._progress(message)
                if self._told != _NOWHERE:
                    await self.tell_horizon()
            case Farewell():
                self._gallery.fill(message.node, message.rounds)
                self.outcome.farewells[message.node] = message
            case Fallen():
                log.warning("node %d gave up: %s", message.node, message.reason)
                self.fallen[message.node] = Ending.told(message.reason, f"node {message.node}")

    async def _check(self, peer: bytes, said: Ready | Halted) -> None:
        """Refuse a node of another configuration; its neighbors hear of it from the node."""
        if self._config is None or said.config == self._config:
            return
        reason = (
            f"node {said.node} has the configuration {said.config}, the referee's is "
            f"{self._config}: start dlag referee with the settings and the data of the coordinator"
        )
        self._linger = _REFUSAL_MS
        await self.socket.send_multipart([peer, pack(Refuse(reason))])
        raise ConfigError(reason)
