"""One run from settings to summary, simulated or on real processes: the same folder either way."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import monotonic, perf_counter
from types import TracebackType
from typing import Any, Literal, Protocol

import numpy as np

import coordinator
import dlag_lab
import dlag_node
from coordinator.plan import Plan, RunSettings
from dlag_lab.counted import wire_of
from dlag_lab.elsewhere import collect, see_through
from dlag_lab.folder import RunFolder
from dlag_lab.interrupts import interruptible
from dlag_lab.keyring import LaboratoryKeys
from dlag_lab.laboratory import Laboratory
from dlag_lab.launcher import Launcher
from dlag_lab.live import LiveView, Progress
from dlag_lab.mesh import LocalMesh
from dlag_lab.naming import name_features
from dlag_lab.network.commands import check_machine
from dlag_lab.network.hosts import Hosts, Loopback
from dlag_lab.network.network import Network
from dlag_lab.network.spec import NetworkSpec
from dlag_lab.referee import Measurement, Referee
from dlag_lab.result import RunResult
from dlag_lab.resuming import check_resumable
from dlag_lab.running import StopBell, running
from dlag_lab.simulate import Simulator
from dlag_lab.summary import summarise, theta_sha256
from dlag_lab.workers import Workers
from dlag_node.errors import ConfigError
from dlag_node.net.sockets import HEARTBEAT, check_heartbeat, page_address
from dlag_node.problems.blas import blas_names
from dlag_node.rounds import Engine
from dlag_node.rounds.keeper import MAX_EVERY
from dlag_node.wire.observing import Snapshots

_NO_NUMBERS = ("figures/", "paper/", "watch/")  # they read what runs left behind
DEFAULT_RESTARTS = 5
_VERSIONED = ("dlag-mesh", "numpy", "scipy", "numba", "pyzmq", "msgpack", "networkx")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What a person asks of the laboratory."""

    settings: RunSettings
    mode: Literal["mesh", "simulate", "referee"]
    target: float | None
    out: Path
    force: bool = False
    shuffle: int | None = None  # the simulator's random order of events
    neighbor_timeout: float = 120.0
    heartbeat: float = HEARTBEAT  # seconds; 0: none
    checkpoint: int = 0  # rounds from one checkpoint of a node to the next; 0: none
    restarts: int = DEFAULT_RESTARTS  # of a node that was killed
    resume: bool = False  # go on with what lies in `out`
    network: NetworkSpec | None = None  # every node on a host of its own; None: all on loopback
    bind: str = ""  # where to hear nodes that others have started
    records: Path = Path()  # the folder that those write into, as a run folder
    keys: LaboratoryKeys | None = None  # ours before those; None: the network is to be trusted
    watch: str | None = None  # host:port of a page that shows the run

    def __post_init__(self) -> None:
        if not 0 <= self.checkpoint <= MAX_EVERY:
            raise ConfigError(f"checkpoint = {self.checkpoint}: expected 0 to {MAX_EVERY} rounds")
        if self.restarts < 0:
            raise ConfigError(f"restarts = {self.restarts}: expected at least 0")
        check_heartbeat(self.heartbeat)
        if self.target is not None and not self.target > 0:
            raise ConfigError(f"target = {self.target}: expected a positive number")
        if self.network is not None and self.mode == "simulate":
            raise ConfigError(f"network {self.network}: a simulated run has none: expected a mesh")
        if self.watch is not None:
            page_address(self.watch)
            if self.network is not None:
                raise ConfigError("watch: nodes on hosts of their own cannot reach the page's host")


class View(Protocol):
    """Where a run shows how far it is: a LiveView, or a line of something larger."""

    def update(self, progress: Progress) -> None:
        """Show this from now on."""

    def __enter__(self) -> object: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class Run:
    """One run in progress: keeps folder, referee and live view in step."""

    def __init__(
        self,
        request: RunRequest,
        *,
        started: Callable[[Launcher], None] = lambda _: None,
        view: View | None = None,
        hosts: Hosts | None = None,
        watched: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`hosts` are where the nodes run, instead of the request's network or loopback."""
        self.request = request
        self._hosts = hosts
        self._watched = watched
        self.plan = Plan(request.settings)
        workers = Workers(self.plan)
        workers.check()  # every bad parameter is an error here, before a socket
        self._config = workers.config
        self._workers = workers if request.mode == "simulate" else None
        if request.network is not None and request.mode == "mesh":
            check_machine(request.network)
        asked = described(request, workers)  # first: a folder without run.json is nobody's
        if request.resume:
            self.folder = RunFolder(request.out)
            check_resumable(self.folder, asked)
            self.folder.trajectory_path.unlink(missing_ok=True)  # the referee sees it all again
        else:
            self.folder = RunFolder.create(request.out, force=request.force)
            self.folder.write_run(asked)
        self._started = started
        nodes = self.plan.nodes
        self._ages = np.zeros(nodes, dtype=int)
        self._deltas = self._tokens = self._quiet = 0
        self._first_seen: tuple[int, float] | None = None  # round and time
        self._view: View = view or LiveView(
            title=f"{request.settings.method} on {request.settings.topology}, "
            f"{nodes} {'simulated workers' if request.mode == 'simulate' else 'processes'}",
            topology=request.settings.topology,
        )

    def execute(self) -> RunResult:
        """Run to the end and leave a complete folder behind."""
        with running(self.folder.path) as bell:
            return self._execute(bell)

    def _execute(self, bell: StopBell) -> RunResult:
        with self.folder.trajectory_writer() as trajectory:

            def report(seen: Measurement) -> None:
                trajectory.write(
                    seen.k,
                    suboptimality=seen.suboptimality,
                    consensus_error=seen.consensus_error,
                )

            referee = Referee(
                self.plan,
                target=self.request.target,
                rounds=self.request.settings.rounds,
                report=report,
            )
            with self._view:
                extras = {
                    "simulate": self._simulate,
                    "mesh": self._on_mesh,
                    "referee": self._elsewhere,
                }[self.request.mode](referee, bell)
        if extras["ended"] == "rounds" and referee.reached is not None:
            extras["ended"] = "target"
        return self._conclude(extras)

    def _simulate(self, referee: Referee, bell: StopBell) -> dict[str, Any]:
        started = perf_counter()
        simulator = Simulator(self.plan, shuffle=self.request.shuffle, workers=self._workers)
        limit = self.request.settings.max_seconds

        def finished(engine: Engine) -> None:
            record = engine.last_record
            assert record is not None
            self._count(engine.node, record.age, record.deltas, record.skips, record.quiet)
            self._show(referee)
            if bell.rung:
                simulator.stop(engine.node, "asked")
            elif limit is not None and perf_counter() - started >= limit:
                simulator.stop(engine.node, "max-seconds")

        simulator.run(referee, records=self.folder.path / "nodes", finished=finished)
        return {"seconds": perf_counter() - started, "ended": simulator.ended}

    def _progress(self, referee: Referee) -> Callable[[Snapshots], None]:
        def progress(batch: Snapshots) -> None:
            self._count(batch.node, batch.age, batch.deltas, batch.tokens, batch.quiet)
            self._show(referee)

        return progress

    def _elsewhere(self, referee: Referee, bell: StopBell) -> dict[str, Any]:
        records, nodes = RunFolder(self.request.records), self.plan.nodes
        laboratory = Laboratory(
            nodes=nodes,
            dim=self.plan.dim,
            referee=referee,
            records=records,
            config=self._config,
            progress=self._progress(referee),
            keys=self.request.keys,
            bell=bell,
        )
        outcome = interruptible(see_through(laboratory, self.request.bind))
        collect(records, self.folder, nodes=nodes)
        self._name_models()
        return outcome.costs

    def _on_mesh(self, referee: Referee, bell: StopBell) -> dict[str, Any]:
        with ExitStack() as stack:
            hosts: Hosts = self._hosts or Loopback()
            if self.request.network is not None:
                network = Network(self.request.network, self.plan.graph)
                hosts = stack.enter_context(network)
            mesh = LocalMesh(
                self.request.settings,
                nodes=self.plan.nodes,
                dim=self.plan.dim,
                referee=referee,
                folder=self.folder.path,
                # what goes on may be of an older version, whose hash was of other words
                config=None if self.request.resume else self._config,
                progress=self._progress(referee),
                started=self._started,
                neighbor_timeout=self.request.neighbor_timeout,
                heartbeat=self.request.heartbeat,
                checkpoint=self.request.checkpoint,
                restarts=self.request.restarts,
                resume=self.request.resume,
                bell=bell,
                hosts=hosts,
                watch=self.request.watch,
                watched=self._watched,
            )
            outcome = interruptible(mesh.run())
        self._name_models()
        return outcome.costs

    def _name_models(self) -> None:
        names, nodes = self.plan.dataset.table.names, self.plan.nodes
        name_features(self.folder.path / "nodes", names, nodes=nodes)

    def _conclude(self, extras: dict[str, Any]) -> RunResult:
        result = self.folder.load()
        dim = self.plan.dim
        final = [self.folder.thetas(node, dim)[-1] for node in range(self.plan.nodes)]
        extras["wire"] = wire_of(self.folder.path, self.plan.nodes, extras.get("network"))
        summary = summarise(
            result.run,
            result.records,
            result.trajectory,
            theta_sha256=theta_sha256(final),
            **extras,
        )
        self.folder.write_summary(summary)
        return self.folder.load()

    def _count(self, node: int, age: int, deltas: int, tokens: int, quiet: int) -> None:
        self._ages[node] = age
        self._deltas += deltas
        self._tokens += tokens
        self._quiet += quiet

    def _show(self, referee: Referee) -> None:
        seen = referee.last
        if seen is None:
            return
        now = monotonic()
        k_0, begun = self._first_seen = self._first_seen or (seen.k, now)
        self._view.update(
            Progress(
                k=seen.k,
                rounds_limit=self.request.settings.rounds,
                suboptimality=seen.suboptimality,
                target=self.request.target,
                deltas=self._deltas,
                tokens=self._tokens,
                quiet=self._quiet,
                ages=self._ages.tolist(),
                rounds_per_second=(seen.k - k_0) / max(1e-9, now - begun),
                nodes=self.plan.nodes,
            )
        )


def described(request: RunRequest, workers: Workers) -> dict[str, Any]:
    """run.json: what was asked for, with the effective values."""
    plan, method = workers.plan, workers.engine(0).method
    return identity(request, data_sha256=plan.dataset.sha256) | {
        "parameters": method.parameters,
        "advice": method.advice,
        "nodes": plan.nodes,
        "edges": [list(edge) for edge in plan.graph.edges],
        "zeta": plan.spectrum.zeta,
        "shard_sizes": [len(part) for part in plan.parts],
        "dim": plan.dim,
        "n0": plan.n0,
        "checkpoint": request.checkpoint,
        "mu": [problem.mu for problem in workers.problems],
    }


def identity(request: RunRequest, *, data_sha256: str) -> dict[str, Any]:
    """The part of run.json that says which run this is: equal identities, equal bits.

    `blas` is this process's, and that of the nodes that it starts.
    """
    return asdict(request.settings) | {
        "data_sha256": data_sha256,
        "target": request.target,
        "mode": request.mode,
        "network": None if request.network is None else str(request.network),
        "code_sha256": code_sha256(),
        "versions": {name: version(name) for name in _VERSIONED}
        | {"python": platform.python_version()},
        "blas": blas_names(),
    }


@cache
def code_sha256() -> str:
    """Over our own sources but those of pictures and claims, which change no number.

    The version alone does not tell one edit from the next.
    """
    digest = hashlib.sha256()
    for package in (coordinator, dlag_lab, dlag_node):
        root = Path(package.__path__[0])
        for source in sorted(root.rglob("*.py")):
            name = source.relative_to(root).as_posix()
            if not name.startswith(_NO_NUMBERS):
                digest.update(f"{root.name}/{name}\0".encode() + source.read_bytes())
    return digest.hexdigest()
