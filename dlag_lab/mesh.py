"""A whole mesh on this machine: coordinator and nodes as processes, the laboratory watching."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

import numpy as np
import zmq
import zmq.asyncio

from coordinator.plan import RunSettings
from dlag_lab.launcher import Launcher
from dlag_lab.referee import Referee
from dlag_node.errors import ConfigError, RemoteProtocolError, RunAborted
from dlag_node.process import EXIT_USAGE
from dlag_node.wire.limits import MAX_DIM
from dlag_node.wire.observing import FROM_NODE, Farewell, FromNode, Horizon, Ready, Snapshots
from dlag_node.wire.schema import pack, unpack

log = logging.getLogger(__name__)

_LOOPBACK = "tcp://127.0.0.1:*"
_LIMIT = 64 * MAX_DIM  # a batch of snapshots


@dataclass(slots=True)
class MeshOutcome:
    """What a run on real processes cost beside its records."""

    seconds: float = 0.0  # of the rounds, on the slowest node
    ready_seconds: float = 0.0  # from the first process's start to the last node's Ready
    ready: dict[int, Ready] = field(default_factory=dict)
    farewells: dict[int, Farewell] = field(default_factory=dict)

    @property
    def control_bytes(self) -> int:
        """Bytes of the frames that open, repair and end links, over all nodes."""
        return sum(each.control_bytes for each in self.farewells.values())


class LocalMesh:
    """Brings up a coordinator and its nodes on loopback, and sees them through to the end."""

    def __init__(
        self,
        settings: RunSettings,
        *,
        nodes: int,
        dim: int,
        referee: Referee,
        folder: Path,
        progress: Callable[[Snapshots], None] = lambda _: None,
        started: Callable[[Launcher], None] = lambda _: None,
        neighbor_timeout: float = 120.0,
    ) -> None:
        self._settings = settings
        self._nodes = nodes
        self._dim = dim
        self._referee = referee
        self._folder = folder
        self._logs = folder / "logs"
        self._progress = progress
        self._started = started
        self._timeout = neighbor_timeout
        self._peers: dict[int, bytes] = {}
        self._told = Horizon(0, final=False)
        self.outcome = MeshOutcome()

    async def run(self) -> MeshOutcome:
        """All rounds; an error of any process ends the whole mesh and is raised here."""
        self._logs.mkdir(parents=True, exist_ok=True)
        context = zmq.asyncio.Context()
        self._socket = context.socket(zmq.ROUTER)
        self._socket.setsockopt(zmq.MAXMSGSIZE, _LIMIT)
        self._socket.bind(_LOOPBACK)
        observer = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        try:
            async with Launcher() as launcher:
                await self._bring_up(launcher, observer)
                await self._see_through(launcher)
        finally:
            context.destroy(linger=0)
        return self.outcome

    async def _bring_up(self, launcher: Launcher, observer: str) -> None:
        begun = perf_counter()
        argv = ["--bind", _LOOPBACK, *settings_argv(self._settings)]
        address = await launcher.start_coordinator(argv, self._logs / "coordinator.log")
        if not address:
            raise self._failure("coordinator", launcher.exits.get("coordinator", 1))
        log.info("the coordinator listens on %s, process %d", address, launcher.pids["coordinator"])
        for node in range(self._nodes):
            argv = ["dlag-node", "--coordinator", address, "--id", str(node)]
            argv += ["--observer", observer, "--out", str(self._folder / "nodes")]
            argv += ["--neighbor-timeout", str(self._timeout)]
            await launcher.start(name_of(node), argv, self._logs / f"{name_of(node)}.log")
        await self._until(launcher, lambda: len(self.outcome.ready) == self._nodes)
        self.outcome.ready_seconds = perf_counter() - begun
        log.info("%d nodes are ready after %.2f s", self._nodes, self.outcome.ready_seconds)
        self._started(launcher)

    async def _see_through(self, launcher: Launcher) -> None:
        await self._tell_horizon()
        await self._until(launcher, lambda: len(self.outcome.farewells) == self._nodes)
        self.outcome.seconds = max(each.seconds for each in self.outcome.farewells.values())
        log.info("the rounds took %.2f s", self.outcome.seconds)
        nodes = {name_of(node) for node in range(self._nodes)}
        while not nodes <= launcher.exits.keys():
            launcher.ended.clear()
            await launcher.ended.wait()
        self._check(launcher)

    async def _until(self, launcher: Launcher, enough: Callable[[], bool]) -> None:
        """Hear the nodes until it is enough, or until a process has failed."""
        ended = asyncio.create_task(launcher.ended.wait())
        heard = asyncio.ensure_future(self._socket.recv_multipart())
        try:
            while not enough():
                await asyncio.wait({ended, heard}, return_when=asyncio.FIRST_COMPLETED)
                if heard.done():
                    await self._hear(heard.result())
                    heard = asyncio.ensure_future(self._socket.recv_multipart())
                elif ended.done():
                    launcher.ended.clear()
                    self._check(launcher)
                    ended = asyncio.create_task(launcher.ended.wait())
        finally:
            ended.cancel()
            heard.cancel()

    async def _hear(self, parts: list[bytes]) -> None:
        try:
            message = unpack(parts[-1], FROM_NODE, limit=_LIMIT, peer=f"peer {parts[0].hex()}")
        except RemoteProtocolError as exc:
            log.warning("dropped: %s", exc)
            return
        await self._take(parts[0], message)

    async def _take(self, peer: bytes, message: FromNode) -> None:
        match message:
            case Ready():
                self._peers[message.node] = peer
                self.outcome.ready[message.node] = message
            case Snapshots():
                thetas = np.frombuffer(message.thetas, "<f8").reshape(-1, self._dim)
                self._referee.take(message.node, thetas)
                self._progress(message)
                await self._tell_horizon()
            case Farewell():
                self.outcome.farewells[message.node] = message

    async def _tell_horizon(self) -> None:
        horizon = self._referee.horizon
        if horizon == self._told:
            return
        self._told = horizon
        for peer in self._peers.values():
            await self._socket.send_multipart([peer, pack(horizon)])

    def _check(self, launcher: Launcher) -> None:
        """Raise the error of a node that failed, the one that has its own reason before others.

        A coordinator that is gone matters only until all nodes are ready.
        """
        failed = {name: code for name, code in launcher.exits.items() if code != 0}
        if len(self.outcome.ready) == self._nodes:
            failed.pop("coordinator", None)
        if not failed:
            return
        failures = [self._failure(name, code) for name, code in failed.items()]
        raise min(failures, key=lambda failure: "RunAborted" in str(failure))

    def _failure(self, name: str, code: int) -> ConfigError | RunAborted:
        """What a process that failed has to say, from the last error in its log."""
        path = self._logs / f"{name}.log"
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        errors = re.findall(r"ERROR (.*)|^dlag-\w+: (.*)", text, flags=re.MULTILINE)
        said = next((a or b for a, b in reversed(errors)), f"ended with exit code {code}")
        if code == EXIT_USAGE:
            return ConfigError(said)
        return RunAborted(f"{name}: {said} (log: {path})")


def name_of(node: int) -> str:
    """The name of a node's process and of its files."""
    return f"node-{node:03d}"


def settings_argv(settings: RunSettings) -> list[str]:
    """The settings of a run as the coordinator's flags."""
    flags = {
        "--method": settings.method,
        "--preset": settings.preset,
        "--topology": settings.topology,
        "--weights": settings.weights,
        "--problem": settings.problem,
        "--lambda": repr(settings.lam),
        "--data": settings.data,
        "--data-dir": settings.data_dir,
        "--shards": settings.shards,
        "--rounds": str(settings.rounds),
        "--seed": str(settings.seed),
    }
    return [word for flag, value in flags.items() if value is not None for word in (flag, value)]
