"""A whole mesh on this machine: coordinator and nodes as processes, the laboratory watching."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from coordinator.plan import RunSettings
from dlag_lab.folder import RunFolder
from dlag_lab.keyring import Keyring
from dlag_lab.laboratory import Laboratory, MeshOutcome
from dlag_lab.launcher import Launcher
from dlag_lab.network.hosts import LOOPBACK, Hosts, Loopback
from dlag_lab.referee import Judge
from dlag_lab.running import StopBell
from dlag_node.errors import DlagError, ProcessDied
from dlag_node.net.sockets import HEARTBEAT
from dlag_node.net.wish import STOP_SIGNAL
from dlag_node.outcome import Ending, cause_of
from dlag_node.process import EXIT_OK
from dlag_node.wire.observing import Snapshots

log = logging.getLogger(__name__)

_FAREWELL_SECONDS = 10.0  # of silence after the end of a node: what it had said is here, or lost
_CAUSE_SECONDS = 5.0  # for the one that told the others to end: it may stay for 3 s to tell them


class LocalMesh:
    """Brings up a coordinator and its nodes on its hosts, and sees them through to the end.

    With `checkpoint`, nodes save themselves every so many rounds in the run folder, and one that is
    killed is started again, up to `restarts` times each. With `resume` all of them go on from
    there, and no coordinator is needed. With `watch`, browsers can look on at that host:port;
    `watched` gets the page's URL.
    """

    def __init__(
        self,
        settings: RunSettings,
        *,
        nodes: int,
        dim: int,
        referee: Judge,
        folder: Path,
        config: str | None = None,
        progress: Callable[[Snapshots], None] = lambda _: None,
        started: Callable[[Launcher], None] = lambda _: None,
        neighbor_timeout: float = 120.0,
        heartbeat: float = HEARTBEAT,
        checkpoint: int = 0,
        restarts: int = 0,
        resume: bool = False,
        bell: StopBell | None = None,
        hosts: Hosts | None = None,
        watch: str | None = None,
        watched: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._nodes = nodes
        self._keys = Keyring(RunFolder(folder).keys_path, nodes)
        self._bell = bell or StopBell()
        self._laboratory = Laboratory(
            nodes=nodes,
            dim=dim,
            referee=referee,
            records=RunFolder(folder),
            config=config,
            progress=progress,
            keys=self._keys.laboratory,
            bell=self._bell,
        )
        self.outcome = self._laboratory.outcome
        self._folder = folder
        self._logs = folder / "logs"
        self._checkpoint = checkpoint
        self._resume = resume
        self._restarts_left = dict.fromkeys(range(nodes), restarts if checkpoint else 0)
        self._node_flags: list[str] = []
        self._started = started
        self._timeout, self._heartbeat = neighbor_timeout, heartbeat
        self._hosts = hosts or Loopback()
        self._watch, self._watched = watch, watched

    async def run(self) -> MeshOutcome:
        """All rounds; an error of any process ends the whole mesh and is raised here."""
        self._logs.mkdir(parents=True, exist_ok=True)
        with self._hosts.at_laboratory():
            observer = self._laboratory.listen(self._hosts.laboratory)
        try:
            async with Launcher(self._hosts.netns, self._hosts.environment) as launcher:
                self._answer_bell(launcher)
                await self._start_network(launcher)
                await self._bring_up(launcher, observer)
                await self._see_through(launcher)
                self.outcome.network = self._hosts.counted()
            self._checkpoint = 0  # there is nothing left to resume
        finally:
            if not self._checkpoint:
                self._keys.discard()
            self._laboratory.close()
        return self.outcome

    def _answer_bell(self, launcher: Launcher) -> None:
        """Who asks us to stop asks every node that is up: any one of them would do."""
        loop, passing = asyncio.get_running_loop(), set[asyncio.Task[None]]()

        def pass_on() -> None:
            for node in self.outcome.ready:
                task = loop.create_task(launcher.signal(name_of(node), STOP_SIGNAL))
                passing.add(task)
                task.add_done_callback(passing.discard)

        def ring() -> None:
            loop.call_soon_threadsafe(pass_on)  # a signal's handler: the loop must be woken

        self._bell.ring = ring

    async def _start_network(self, launcher: Launcher) -> None:
        """What delays the packets, before there is one; its end would be a failure of the run."""
        argv, path = self._hosts.emulator, self._logs / "network.log"
        if argv and not await launcher.start_and_hear("network", argv, path):
            raise self._error(self._ending(launcher, "network"))

    async def _bring_up(self, launcher: Launcher, observer: str) -> None:
        begun = perf_counter()
        self._node_flags = ["--observer", observer, "--out", str(self._folder / "nodes")]
        self._node_flags += ["--neighbor-timeout", str(self._timeout)]
        self._node_flags += ["--heartbeat", str(self._heartbeat)]
        if self._watch is not None:
            self._node_flags += ["--watch", await self._start_watcher(launcher, self._watch)]
            self._node_flags += self._keys.watched_flags
        if not self._resume:
            self._node_flags += ["--coordinator", await self._start_coordinator(launcher)]
        for node in range(self._nodes):
            await self._start_node(launcher, node)
        await self._until(launcher, lambda: self._laboratory.all_ready)
        self.outcome.ready_seconds = perf_counter() - begun
        log.info("%d nodes are ready after %.2f s", self._nodes, self.outcome.ready_seconds)
        self._started(launcher)

    async def _start_coordinator(self, launcher: Launcher) -> str:
        argv = ["--bind", self._hosts.laboratory, *settings_argv(self._settings)]
        argv += self._keys.coordinator_flags
        address = await launcher.start_coordinator(argv, self._logs / "coordinator.log")
        if not address:
            raise self._error(self._ending(launcher, "coordinator"))
        log.info("the coordinator listens on %s, process %d", address, launcher.pids["coordinator"])
        return address

    async def _start_watcher(self, launcher: Launcher, page: str) -> str:
        """A process of its own, of which the run takes no further notice."""
        argv = ["dlag-watch", str(self._folder), "--listen", LOOPBACK, "--page", page]
        argv += self._keys.watcher_flags
        heard = await launcher.start_and_hear("watch", argv, self._logs / "watch.log")
        if not heard:
            raise self._error(self._ending(launcher, "watch"))
        address, url = heard.split()
        self._watched(url)
        return address

    async def _start_node(self, launcher: Launcher, node: int) -> None:
        name = name_of(node)
        argv = ["dlag-node", "--id", str(node), "--bind", self._hosts.node(node)]
        argv += self._node_flags + self._keys.node_flags(node, coordinator=not self._resume)
        advertised = self._hosts.advertised(node)
        if advertised is not None:
            argv += ["--advertise", advertised]
        if self._checkpoint:
            argv += ["--state", str(RunFolder(self._folder).state_path(node))]
            argv += ["--checkpoint", str(self._checkpoint)]
        await launcher.start(name, argv, self._logs / f"{name}.log")

    async def _see_through(self, launcher: Launcher) -> None:
        await self._laboratory.tell_horizon()
        await self._until(launcher, lambda: self._laboratory.all_done)
        self.outcome.seconds = max(each.seconds for each in self.outcome.farewells.values())
        log.info("the rounds took %.2f s", self.outcome.seconds)
        nodes = {name_of(node) for node in range(self._nodes)}
        while not nodes <= launcher.exits.keys():
            launcher.ended.clear()
            await launcher.ended.wait()
            await self._check(launcher)
        await self._check(launcher)

    async def _until(self, launcher: Launcher, enough: Callable[[], bool]) -> None:
        """Hear the nodes until it is enough, or until a process has failed."""
        ended = asyncio.create_task(launcher.ended.wait())
        heard = self._laboratory.hear()
        try:
            while not enough():
                unheard = self._unheard(launcher)
                patience = _FAREWELL_SECONDS if unheard else None
                done, _ = await asyncio.wait(
                    {ended, heard}, timeout=patience, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    why = "ended well, but what it said last has not come: its records are whole"
                    raise self._error(Ending(ProcessDied, why, unheard[0]))
                if heard.done():
                    await self._laboratory.take(heard.result())
                    heard = self._laboratory.hear()
                elif ended.done():
                    launcher.ended.clear()
                    await self._check(launcher)
                    ended = asyncio.create_task(launcher.ended.wait())
        finally:
            ended.cancel()
            heard.cancel()

    async def _check(self, launcher: Launcher) -> None:
        """Start nodes again that were killed; raise the error of a process that failed."""
        for node in self._killed(launcher):
            if self._restarts_left[node] > 0 and not self._finished(node):
                self._restarts_left[node] -= 1
                self.outcome.restarts += 1
                number = -launcher.exits[name_of(node)]
                log.warning("%s was killed by signal %d: starting it again", name_of(node), number)
                await self._start_node(launcher, node)
        if self._failed(launcher):
            raise await self._cause(launcher)

    def _killed(self, launcher: Launcher) -> list[int]:
        """Nodes that were killed and have a checkpoint to come back from."""
        if launcher.gone or not self._checkpoint:
            return []
        return [node for node in range(self._nodes) if launcher.exits.get(name_of(node), 0) < 0]

    def _failed(self, launcher: Launcher) -> list[Ending]:
        """Endings that are the run's own.

        Nobody misses the watcher, the coordinator once all nodes are ready, or a node that was
        killed when it had finished, and had said so.
        """
        unmissed = {name_of(node) for node in self._killed(launcher) if self._finished(node)}
        unmissed |= {"watch", "coordinator"} if self._laboratory.all_ready else {"watch"}
        return [
            self._ending(launcher, name)
            for name, code in launcher.exits.items()
            if code != EXIT_OK and name not in unmissed
        ]

    def _unheard(self, launcher: Launcher) -> list[str]:
        """Nodes that have ended well, and whose farewell is not here."""
        return [
            name_of(node)
            for node in range(self._nodes)
            if launcher.exits.get(name_of(node)) == EXIT_OK and not self._finished(node)
        ]

    def _finished(self, node: int) -> bool:
        return node in self.outcome.farewells

    async def _cause(self, launcher: Launcher) -> DlagError:
        """The error of a process that failed; of one that has its own reason, if there is one.

        Who was told by a neighbor may be gone before that neighbor is: it is waited for.
        """
        nodes = {name_of(node) for node in range(self._nodes)}
        with suppress(TimeoutError):
            async with asyncio.timeout(_CAUSE_SECONDS):
                while not nodes <= launcher.exits.keys() and all(
                    each.secondhand for each in self._failed(launcher)
                ):
                    launcher.ended.clear()
                    await launcher.ended.wait()
        return self._error(cause_of(self._failed(launcher)))

    def _ending(self, launcher: Launcher, name: str) -> Ending:
        ending = launcher.ending(name)
        if launcher.exits.get(name, 0) < 0 and self._checkpoint:
            advice = "no restart is left: dlag resume goes on with it, dlag replan without it"
            return replace(ending, reason=f"{ending.reason}, and {advice}")
        return ending

    def _error(self, ending: Ending) -> DlagError:
        return ending.error(f"log: {self._logs / f'{ending.who}.log'}")


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
        "--label": settings.label,
        "--scale": settings.scale,
        "--intercept": repr(settings.intercept),
        "--shards": settings.shards,
        "--without": settings.without or None,
        "--rounds": str(settings.rounds),
        "--tol": None if settings.tol is None else repr(settings.tol),
        "--max-seconds": None if settings.max_seconds is None else repr(settings.max_seconds),
        "--seed": str(settings.seed),
    }
    return [word for flag, value in flags.items() if value is not None for word in (flag, value)]
