"""The coordinator's one socket: bytes in, roster, bytes out."""

from __future__ import annotations

import asyncio
import logging

import zmq
import zmq.asyncio

from coordinator.news import News
from coordinator.roster import Roster, Stage
from dlag_node.errors import ConfigError, RemoteProtocolError, RunAborted
from dlag_node.trust.curve import key_of, listen_with
from dlag_node.trust.gate import Gate
from dlag_node.trust.keys import KeyPair
from dlag_node.trust.strangers import Strangers
from dlag_node.wire.control import FROM_NODE, FromCoordinator
from dlag_node.wire.limits import MAX_CONTROL_BYTES
from dlag_node.wire.schema import pack, unpack

log = logging.getLogger(__name__)

_LINGER_MS = 2_000  # for the last words to leave
_SAY_AFTER = 10.0  # seconds without a node that joins, after which the log says who is missing


class Server:
    """Serves one roster on one ROUTER socket until every node has finished."""

    def __init__(
        self,
        roster: Roster,
        bind: str,
        keys: KeyPair | None = None,
    ) -> None:
        self.roster = roster
        self._nag: asyncio.TimerHandle | None = None
        self._context = zmq.asyncio.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, MAX_CONTROL_BYTES)
        self._socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # or words to the departed vanish unseen
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)  # a node that crashed calls again
        self._socket.setsockopt(zmq.LINGER, _LINGER_MS)
        self._gate = None
        if keys is not None:
            self._gate = Gate(self._context)
            self._gate.watch(self._socket)
            listen_with(self._socket, keys)
        try:
            self._socket.bind(bind)
        except zmq.ZMQError as exc:
            self.close()
            raise ConfigError(f"cannot listen on {bind}: {exc}") from exc
        self._strangers = Strangers()
        self._surplus_said = False

    @property
    def address(self) -> str:
        """Where the socket really listens, its port filled in."""
        return self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    async def serve(self) -> None:
        """Answer nodes until all have finished; RunAborted when one of them failed."""
        stage, news = None, News(self.roster)
        if self._gate is not None:
            self._gate.open(self.roster.passes, expected=self.roster.draft.nodes)
        self._wait_for_nodes()
        while not self.roster.finished:
            frames = await self._socket.recv_multipart(copy=False)
            peer, *parts = (frame.bytes for frame in frames)
            await self._answer(peer, parts, key_of(frames[0]))
            news.tell()
            if self.roster.failure is not None:
                raise RunAborted(self.roster.failure)
            stage = self._tell_stage(stage)
            self._tell_surplus()

    def close(self) -> None:
        """Close the socket; what was said still leaves."""
        if self._gate is not None:
            self._gate.close()
        if self._nag is not None:
            self._nag.cancel()
        self._context.destroy()

    async def _answer(self, peer: bytes, parts: list[bytes], key: bytes | None) -> None:
        who = f"peer {peer.hex()}"
        try:
            if len(parts) != 1:
                raise RemoteProtocolError(f"{who} sent a message of {len(parts)} parts")
            message = unpack(parts[0], FROM_NODE, limit=MAX_CONTROL_BYTES, peer=who)
        except RemoteProtocolError as exc:
            self._strangers.drop(who, exc)
            return
        for to, reply in self.roster.handle(peer, message, key):
            await self._send(to, reply)

    async def _send(self, peer: bytes, reply: FromCoordinator) -> None:
        try:
            # at once or not at all: a peer that asks and never reads must not hold up the others
            await self._socket.send_multipart([peer, pack(reply)], zmq.NOBLOCK)
        except zmq.ZMQError as exc:
            log.warning("could not answer peer %s: %s", peer.hex(), exc)

    def _tell_stage(self, before: tuple[Stage, int] | None) -> tuple[Stage, int]:
        """Log how far the run has come whenever a stage is complete or a node has joined."""
        nodes = self.roster.draft.nodes
        stage = next((s for s in Stage if self.roster.count(s) < nodes), Stage.FINISHED)
        now = (stage, self.roster.count(stage))
        if now != before:
            log.info("%d of %d nodes have %s", now[1], nodes, stage.value)
            self._wait_for_nodes()
        if self.roster.started and (before is None or before[0] is Stage.STARTED):
            log.info("all %d nodes have started: the mesh needs no coordinator now", nodes)
        return now

    def _wait_for_nodes(self) -> None:
        """From now on the log is to hear of it should nobody else join for a while."""
        if self._nag is not None:
            self._nag.cancel()
        loop = asyncio.get_running_loop()
        self._nag = loop.call_later(_SAY_AFTER, self._tell_missing)

    def _tell_missing(self) -> None:
        draft, joined = self.roster.draft, self.roster.count(Stage.JOINED)
        if joined < draft.nodes:
            log.warning(
                "waiting for %d more nodes: %s needs %d, and %d have joined "
                "(in compose: MESH_NODES=%d or --scale node=%d)",
                draft.nodes - joined,
                draft.settings.topology,
                draft.nodes,
                joined,
                draft.nodes,
                draft.nodes,
            )

    def _tell_surplus(self) -> None:
        if self.roster.surplus and not self._surplus_said:
            self._surplus_said = True
            draft = self.roster.draft
            log.warning(
                "there are more nodes than the %d of %s: those too many are sent home",
                draft.nodes,
                draft.settings.topology,
            )


async def run_server(
    roster: Roster, bind: str, *, announce: asyncio.Future[str], keys: KeyPair | None = None
) -> None:
    """Serve a roster on `bind`; `announce` learns the address as soon as it is known."""
    server = Server(roster, bind, keys)
    try:
        announce.set_result(server.address)
        log.info("listening on %s for %d nodes", server.address, roster.draft.nodes)
        await server.serve()
    finally:
        server.close()
