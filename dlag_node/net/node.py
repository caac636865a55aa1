"""A node's life: join, learn the neighbors, run, say goodbye."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import zmq

from dlag_node.errors import ConfigError, DlagError
from dlag_node.net.bootstrap import Bootstrap
from dlag_node.net.links import Links
from dlag_node.net.mesh import MeshNode
from dlag_node.net.observer import Observed
from dlag_node.net.sockets import Socket, check_address, reached_at
from dlag_node.rounds.recorder import Recorder
from dlag_node.rounds.worker import engine_for
from dlag_node.wire.control import Finished, Started
from dlag_node.wire.limits import MAX_VECTORS, frame_limit

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What an operator sets on one node."""

    coordinator: str
    bind: str = "tcp://127.0.0.1:*"
    advertise: str | None = None  # where neighbors reach us; None: where we listen (`reached_at`)
    node: int | None = None
    out: Path | None = None
    observer: str | None = None
    join_timeout: float = 600.0
    neighbor_timeout: float = 120.0

    def __post_init__(self) -> None:
        check_address(self.coordinator)
        check_address(self.bind, wildcard=True)
        if self.advertise is not None:
            check_address(self.advertise)
        if self.observer is not None:
            check_address(self.observer)
        for name in ("join_timeout", "neighbor_timeout"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} = {getattr(self, name)}: expected seconds above 0")


async def run_node(settings: NodeSettings) -> None:
    """Take part in one run, from joining to goodbye."""
    context: zmq.Context[Socket] = zmq.Context()
    with ExitStack() as stack:
        # explicitly, once every socket is closed: a context left to the collector can hang
        stack.callback(context.term)
        await _take_part(settings, context, stack)


async def _take_part(
    settings: NodeSettings, context: zmq.Context[Socket], stack: ExitStack
) -> None:
    coordinator = Bootstrap(context, settings.coordinator, timeout=settings.join_timeout)
    stack.callback(coordinator.close)
    try:
        enrol, problem = await coordinator.join(settings.node)
        log.info("node %d: %d samples, %d features", enrol.node, problem.samples, problem.dim)
        # the address comes before the assignment, and with it before the method and its width
        links = Links(context, settings.bind, limit=frame_limit(MAX_VECTORS * problem.dim))
        stack.callback(links.close)
        address = settings.advertise or reached_at(links.address, coordinator.endpoint)
        log.info("neighbors reach us at %s", address)
        assignment = await coordinator.report(problem, address)
        engine = engine_for(enrol, assignment, problem)
        observed = recorder = None
        if settings.observer is not None:
            observed = Observed(context, settings.observer, enrol.node)
            stack.callback(observed.close)
        if settings.out is not None:
            recorder = stack.enter_context(Recorder(settings.out, enrol.node))
        mesh = MeshNode(
            engine,
            links,
            rounds=assignment.rounds,
            neighbor_timeout=settings.neighbor_timeout,
            recorder=recorder,
            observed=observed,
        )
        await links.open(
            node=enrol.node,
            run=enrol.run,
            config=assignment.config,
            codec=engine.codec,
            peers=assignment.peers,
            position=lambda: engine.seq,
            deliver=engine.deliver,
            control=mesh.control,
            opened=mesh.opened,
        )
        coordinator.tell(Started())
        await mesh.run()
        if recorder is not None:
            recorder.close()  # or say that it cannot be, before we say that we have finished
        if observed is not None:
            observed.farewell(
                rounds=engine.rounds,
                control_bytes=links.control_bytes,
                seconds=mesh.seconds,
                refused=links.refused,
            )
        coordinator.tell(Finished(engine.rounds))
        log.info("done: %d rounds in %.2f s", engine.rounds, mesh.seconds)
    except DlagError as exc:
        coordinator.fail(f"{type(exc).__name__}: {exc}")
        raise
