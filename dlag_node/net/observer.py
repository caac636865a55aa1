"""The node's side of being watched: it tells what it did, and hears how far it may go."""

from __future__ import annotations

import logging
import os
import resource
from pathlib import Path
from time import monotonic

import numpy as np
import zmq

from dlag_node.errors import ConfigError, PeerRefused, RemoteProtocolError
from dlag_node.methods import Array
from dlag_node.net.credentials import Credentials
from dlag_node.net.sockets import (
    HEARTBEAT,
    NOBLOCK,
    Socket,
    keep_alive,
    open_socket,
    readable,
    resolved,
    rest_of_message,
)
from dlag_node.rounds.record import Record
from dlag_node.trust.curve import call_with
from dlag_node.wire.frames import Refuse
from dlag_node.wire.limits import MAX_CONTROL_BYTES, MAX_TEXT
from dlag_node.wire.observing import (
    FROM_LABORATORY,
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

_BATCH_ROUNDS = 10
_BATCH_SECONDS = 0.2
_FAREWELL_MS = 30_000  # that our last words may take to leave


class Observed:
    """A connection to a laboratory, which takes no part in the run but for its horizon."""

    def __init__(
        self,
        context: zmq.Context[Socket],
        address: str,
        node: int,
        config: str,
        credentials: Credentials | None = None,
        *,
        heartbeat: float = HEARTBEAT,
    ) -> None:
        self.socket = open_socket(context, zmq.DEALER, limit=MAX_CONTROL_BYTES)
        keep_alive(self.socket, heartbeat)
        if credentials is not None:
            assert credentials.observer is not None  # the settings were checked
            call_with(self.socket, credentials.keys, credentials.observer)
        self._address = address
        self._endpoint: str | None = None  # its name looked up; None: it was not to be found
        self._node = node
        self._config = config  # a laboratory with another one must not judge this run
        self._thetas: list[bytes] = []
        self._deltas = 0
        self._tokens = 0
        self._quiet = 0
        self._told_at = monotonic()

    async def call(self) -> None:
        """Connect to where the laboratory is now: it may not be there yet, or have moved."""
        try:
            endpoint = await resolved(self._address)
        except ConfigError as exc:
            log.warning("the laboratory is not there: %s", exc)
            return
        if endpoint == self._endpoint:
            return
        if self._endpoint is not None:
            self.socket.disconnect(self._endpoint)
        self.socket.connect(endpoint)
        self._endpoint = endpoint

    async def wait(self, rounds: int) -> None:
        """Nothing is heard of it: find out where it is, and say how far we have come."""
        await self.call()
        self._send(Halted(self._node, rounds, cpu_seconds(), resident_bytes(), self._config))

    def fall(self, reason: str) -> None:
        """This process gives up."""
        self._send(Fallen(self._node, reason[:MAX_TEXT]))

    def ready(self, rounds: int) -> None:
        """All links are up; so many rounds were finished by earlier processes."""
        self._send(Ready(self._node, rounds, cpu_seconds(), resident_bytes(), self._config))

    def take(self, record: Record, theta: Array, *, flush: bool) -> None:
        """One finished round; told in batches, at once when `flush`."""
        self._thetas.append(theta.astype(np.dtype("<f8"), copy=False).tobytes())
        self._deltas += record.deltas
        self._tokens += record.skips
        self._quiet += record.quiet
        late = monotonic() - self._told_at > _BATCH_SECONDS
        if not (flush or late or len(self._thetas) >= _BATCH_ROUNDS):
            return
        self._send(
            Snapshots(
                node=self._node,
                rounds=record.k + 1,
                age=record.age,
                deltas=self._deltas,
                tokens=self._tokens,
                quiet=self._quiet,
                thetas=b"".join(self._thetas),
            )
        )
        self._thetas.clear()
        self._deltas = self._tokens = self._quiet = 0
        self._told_at = monotonic()

    def farewell(
        self, *, rounds: int, control_bytes: int, seconds: float, refused: int, ended: str
    ) -> None:
        """The run is over for this node: a laboratory that lags behind is given time to hear it."""
        self.socket.setsockopt(zmq.LINGER, _FAREWELL_MS)
        self._send(
            Farewell(
                node=self._node,
                rounds=rounds,
                control_bytes=control_bytes,
                cpu=cpu_seconds(),
                resident=resident_bytes(),
                seconds=seconds,
                refused=refused,
                ended=ended,
            )
        )

    def horizon(self) -> Horizon | None:
        """The laboratory's last word, if it has said one since we asked; PeerRefused: go home."""
        last: Horizon | None = None
        while readable(self.socket):
            raw = b"".join([self.socket.recv(NOBLOCK), *rest_of_message(self.socket)])
            try:
                word = unpack(raw, FROM_LABORATORY, limit=MAX_CONTROL_BYTES, peer="the laboratory")
            except RemoteProtocolError as exc:
                log.warning("dropped: %s", exc)
                continue
            if isinstance(word, Refuse):
                raise PeerRefused(f"the laboratory refused us: {word.reason}")
            last = word
        return last

    def close(self) -> None:
        """Close the socket; what was said still leaves."""
        self.socket.close()

    def _send(self, message: FromNode) -> None:
        if self._endpoint is None:
            return  # it hears of all this when it is there: from `wait`, and from our files
        self.socket.send(pack(message), NOBLOCK)


def cpu_seconds() -> float:
    """User and system time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_bytes() -> int:
    """Resident memory of this process; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
