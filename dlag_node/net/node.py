"""A node's life: join, recall, call the neighbors, run, say goodbye; each a stage of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from time import perf_counter

import zmq

from dlag_node.errors import ConfigError, DlagError, NotNeeded
from dlag_node.net.arrival import Arrival, Arrived
from dlag_node.net.books import Books
from dlag_node.net.credentials import Credentials, find_credentials
from dlag_node.net.faults import Faults
from dlag_node.net.introduction import Introduction
from dlag_node.net.kernel import KernelCounter, count_path
from dlag_node.net.links import Links
from dlag_node.net.node_state import NodeState, Past
from dlag_node.net.observer import Observed
from dlag_node.net.opening import Opening
from dlag_node.net.publisher import Publisher
from dlag_node.net.settings import NodeSettings
from dlag_node.net.shell import Shell
from dlag_node.net.sockets import Socket
from dlag_node.net.wish import Wish
from dlag_node.net.witness import Witness
from dlag_node.outcome import Ending
from dlag_node.rounds.checkpoint import Owner
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.leaving import model_of, model_path
from dlag_node.rounds.recorder import Recorder
from dlag_node.rounds.state_folder import Place, StateFolder
from dlag_node.rounds.worker import engine_for
from dlag_node.wire.control import Finished, Started

log = logging.getLogger(__name__)


async def run_node(settings: NodeSettings) -> None:
    """Take part in one run, from joining to goodbye."""
    context: zmq.Context[Socket] = zmq.Context()
    with ExitStack() as stack:
        # explicitly, once every socket is closed: a context left to the collector can hang
        stack.callback(context.term)
        await _Node(settings, context, stack).live()


class _Node:
    """What the stages of a node's life share; what a stage makes is handed to the next one."""

    def __init__(
        self, settings: NodeSettings, context: zmq.Context[Socket], stack: ExitStack
    ) -> None:
        self._settings = settings
        self._context = context
        self._stack = stack  # what is on it is closed at the end, the newest first
        self._id: int | None = None  # ours, once we have a place
        self._wish = Wish()
        self._mourners: list[Callable[[str], None]] = []  # who hears why we fail

    async def live(self) -> None:
        """All stages, in their order."""
        settings, stack = self._settings, self._stack
        credentials = await find_credentials(settings, stack)
        self._wish.listen()
        folder = None
        if settings.state is not None:
            folder = stack.enter_context(StateFolder(settings.state, durable=settings.durable))
        arrival = Arrival(settings, self._context, stack, folder, credentials)
        self._mourners.append(arrival.fail)
        try:
            arrived = await arrival.place()
            self._id = arrived.place.enrol.node
            await self._take_part(arrival, arrived, folder, credentials)
        except NotNeeded as exc:
            log.warning("this node is not needed: %s", exc)
        except DlagError as exc:
            exc.node = self._id
            for tell in self._mourners:
                tell(Ending.of(exc, "node").text)
            raise

    async def _take_part(
        self,
        arrival: Arrival,
        arrived: Arrived,
        folder: StateFolder | None,
        credentials: Credentials | None,
    ) -> None:
        settings, place = self._settings, arrived.place
        engine = engine_for(place.enrol, place.assignment, arrived.problem)
        faults = self._note_faults(engine, folder)
        keeper, past = self._recall(engine, place, folder)
        observed = await self._call_laboratory(place, credentials)
        recorder = self._keep_records(engine, arrived)
        state = self._decide(engine, place, keeper, past, watched=observed is not None)
        links = self._link(state, arrived, keeper)
        witness = self._show(engine, links, faults, place, credentials)
        opening = Opening(engine.node, links, settings.neighbor_timeout, arrival.tell)
        kernel = arrived.router.kernel()
        books = Books(
            engine,
            recorder=recorder,
            keeper=keeper,
            witness=witness,
            observed=observed,
            kernel=kernel,
        )
        shell = Shell(state, arrived.router, links, books=books, opening=opening)
        await links.call(everybody=folder is not None and folder.used)
        arrival.tell(Started())
        await shell.run()
        if witness is not None:
            witness.finished = True
        if recorder is not None:
            recorder.close()  # or say that it cannot be, before we say that we have finished
        self._leave_model(place, engine)
        self._leave_count(kernel, links, engine.node, whole=folder is None or not folder.used)
        self._say_farewell(state, links, observed)
        arrival.tell(Finished(engine.rounds))

    def _note_faults(self, engine: Engine, folder: StateFolder | None) -> Faults:
        life = 0 if folder is None else folder.restarts
        faults = Faults(engine.node, lambda: engine.rounds, self._settings.out, life=life)
        self._stack.enter_context(faults)
        self._mourners.append(lambda reason: faults.add(time.time(), reason))
        if not life:
            faults.forget()
        return faults

    def _recall(
        self, engine: Engine, place: Place, folder: StateFolder | None
    ) -> tuple[Keeper | None, Past]:
        """Bring the engine to where an earlier process left it, if there was one."""
        if folder is None:
            return None, Past()
        owner = Owner(place.enrol.run, place.assignment.config, engine.node)
        told = {peer.node: peer.address for peer in place.assignment.peers}
        keeper = Keeper(folder, owner, every=self._settings.checkpoint, addresses=told)
        found = keeper.recall(engine)
        if found is None:
            return keeper, Past()
        log.warning("back at round %d, exchange %d", engine.rounds, engine.seq)
        return keeper, Past(found.finished, found.done)

    async def _call_laboratory(
        self, place: Place, credentials: Credentials | None
    ) -> Observed | None:
        address = self._settings.observer
        if address is None:
            return None
        node, config = place.enrol.node, place.assignment.config
        heartbeat = self._settings.heartbeat
        observed = Observed(self._context, address, node, config, credentials, heartbeat=heartbeat)
        self._stack.callback(observed.close)
        self._mourners.append(observed.fall)
        await observed.call()
        return observed

    def _keep_records(self, engine: Engine, arrived: Arrived) -> Recorder | None:
        out = self._settings.out
        if out is None:
            return None
        dim = arrived.problem.dim
        count_path(out, engine.node).unlink(missing_ok=True)  # of another run, or process
        return self._stack.enter_context(Recorder(out, engine.node, rounds=engine.rounds, dim=dim))

    def _decide(
        self, engine: Engine, place: Place, keeper: Keeper | None, past: Past, *, watched: bool
    ) -> NodeState:
        if place.assignment.max_seconds is not None:
            self._wish.max_seconds = place.assignment.max_seconds
        return NodeState(
            engine,
            rounds=place.assignment.rounds,
            neighbor_timeout=self._settings.neighbor_timeout,
            checkpoint=0 if keeper is None else keeper.every,
            watched=watched,
            wish=self._wish,
            past=past,
            now=perf_counter(),
        )

    def _link(self, state: NodeState, arrived: Arrived, keeper: Keeper | None) -> Links:
        """Links to the neighbors, where they were last known to be."""
        engine, assignment = state.engine, arrived.place.assignment
        moved = ({} if keeper is None else keeper.moved) | dict(self._settings.neighbors)
        if strangers := moved.keys() - {peer.node for peer in assignment.peers}:
            raise ConfigError(f"node {engine.node} has no neighbors {sorted(strangers)}")
        introduction = Introduction(
            node=engine.node,
            run=arrived.place.enrol.run,
            config=assignment.config,
            position=lambda: engine.seq,
            back=0 if keeper is None else keeper.back,
            address=arrived.address,
        )
        peers = [replace(p, address=moved.get(p.node, p.address)) for p in assignment.peers]
        return Links(arrived.router, introduction, peers, engine.codec, state)

    def _show(
        self,
        engine: Engine,
        links: Links,
        faults: Faults,
        place: Place,
        credentials: Credentials | None,
    ) -> Witness | None:
        """Let others look on, where the settings say so."""
        settings, run = self._settings, place.enrol.run
        if settings.watch is None and settings.metrics is None:
            return None
        recorded = settings.out is not None
        witness = Witness(engine, links, faults, run=run, recorded=recorded)
        if settings.watch is not None:
            publisher = Publisher(
                self._context, settings.watch, witness, credentials, heartbeat=settings.heartbeat
            )
            self._stack.callback(publisher.close)
        if settings.metrics is not None:
            from dlag_node.net.metrics import MetricsServer  # loaded where it is asked for

            server = MetricsServer(settings.metrics, witness)
            self._stack.callback(server.close)
            log.info("metrics at %s", server.url)
        return witness

    def _leave_model(self, place: Place, engine: Engine) -> None:
        """Write the model, where the operator wants it."""
        path = self._settings.model
        if path is None and self._settings.out is not None:
            path = model_path(self._settings.out, engine.node)
        if path is None:
            return
        theta, rounds = engine.method.theta, engine.rounds
        model_of(place.enrol, place.assignment, theta, rounds=rounds, names=place.names).save(path)
        log.info("the model is in %s", path)

    def _leave_count(self, kernel: KernelCounter, links: Links, node: int, *, whole: bool) -> None:
        """Write what the kernel counted beside the records; `whole`: we are the first process."""
        if self._settings.out is None:
            return
        kernel.look()
        count = kernel.count(complete=whole and not links.reopened)
        if count is not None:
            count.leave(count_path(self._settings.out, node))
            log.info("the kernel counted %d packets, %d bytes", count.packets, count.bytes)

    def _say_farewell(self, state: NodeState, links: Links, observed: Observed | None) -> None:
        rounds, ended = state.engine.rounds, state.course.ended
        if observed is not None:
            observed.farewell(
                rounds=rounds,
                control_bytes=links.control_bytes,
                seconds=state.seconds,
                refused=links.refused,
                ended=ended,
            )
        log.info("done: %d rounds in %.2f s (%s)", rounds, state.seconds, ended)
