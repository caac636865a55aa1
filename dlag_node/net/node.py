"""A node's life: join, learn the neighbors, run, say goodbye."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import replace

import zmq

from dlag_node.errors import ConfigError, DlagError, NotNeeded
from dlag_node.net.arrival import Arrival
from dlag_node.net.credentials import find_credentials
from dlag_node.net.faults import Faults
from dlag_node.net.mesh import MeshNode
from dlag_node.net.observer import Observed
from dlag_node.net.publisher import Publisher
from dlag_node.net.settings import NodeSettings
from dlag_node.net.sockets import Socket
from dlag_node.net.wish import Wish
from dlag_node.net.witness import Witness
from dlag_node.rounds.checkpoint import Owner
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.leaving import model_of, model_path
from dlag_node.rounds.recorder import Recorder
from dlag_node.rounds.state_folder import Place, StateFolder
from dlag_node.rounds.worker import engine_for
from dlag_node.wire.control import Finished, Started

log = logging.getLogger(__name__)


def leave_model(settings: NodeSettings, place: Place, engine: Engine) -> None:
    """Write the model, where the operator wants it."""
    enrol = place.enrol
    path = settings.model
    if path is None and settings.out is not None:
        path = model_path(settings.out, enrol.node)
    if path is None:
        return
    model_of(
        enrol, place.assignment, engine.method.theta, rounds=engine.rounds, names=place.names
    ).save(path)
    log.info("the model is in %s", path)


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
    credentials = await find_credentials(settings, stack)
    wish = Wish()
    wish.listen()
    folder = None
    if settings.state is not None:
        folder = stack.enter_context(StateFolder(settings.state, durable=settings.durable))
    arrival = Arrival(settings, context, stack, folder, credentials)
    observed = None
    faults = None
    try:
        place, problem, links, address = await arrival.place()
        enrol, assignment = place.enrol, place.assignment
        engine = engine_for(enrol, assignment, problem)
        life = 0 if folder is None else folder.restarts
        faults = Faults(enrol.node, lambda: engine.rounds, settings.out, life=life)
        stack.enter_context(faults)
        if not life:
            faults.forget()
        keeper, found = None, None
        if folder is not None:
            owner = Owner(enrol.run, assignment.config, enrol.node)
            told = {peer.node: peer.address for peer in assignment.peers}
            keeper = Keeper(folder, owner, every=settings.checkpoint, addresses=told)
            found = keeper.recall(engine)
            if found is not None:
                log.warning("back at round %d, exchange %d", engine.rounds, engine.seq)
        recorder = None
        if settings.observer is not None:
            observed = Observed(
                context, settings.observer, enrol.node, assignment.config, credentials
            )
            stack.callback(observed.close)
            await observed.call()
        if settings.out is not None:
            recorder = stack.enter_context(
                Recorder(settings.out, enrol.node, rounds=engine.rounds, dim=problem.dim)
            )
        if assignment.max_seconds is not None:
            wish.max_seconds = assignment.max_seconds
        witness = None
        if settings.watch is not None or settings.metrics is not None:
            witness = Witness(engine, links, faults, run=enrol.run, recorded=recorder is not None)
            if settings.watch is not None:
                publisher = Publisher(context, settings.watch, witness, credentials)
                stack.callback(publisher.close)
            if settings.metrics is not None:
                _serve_metrics(witness, settings.metrics, stack)
        mesh = MeshNode(
            engine,
            links,
            rounds=assignment.rounds,
            neighbor_timeout=settings.neighbor_timeout,
            wish=wish,
            recorder=recorder,
            observed=observed,
            keeper=keeper,
            witness=witness,
            finished=found is not None and found.finished,
            tell=arrival.tell,
        )
        moved = ({} if keeper is None else keeper.moved) | dict(settings.neighbors)
        if strangers := moved.keys() - {peer.node for peer in assignment.peers}:
            raise ConfigError(f"node {enrol.node} has no neighbors {sorted(strangers)}")
        await links.open(
            node=enrol.node,
            run=enrol.run,
            config=assignment.config,
            codec=engine.codec,
            peers=[replace(p, address=moved.get(p.node, p.address)) for p in assignment.peers],
            position=lambda: engine.seq,
            deliver=engine.deliver,
            control=mesh.control,
            opened=mesh.opened,
            address=address,
            back=0 if keeper is None else keeper.back,
            call_all=folder is not None and folder.used,
        )
        arrival.tell(Started())
        await mesh.run()
        if witness is not None:
            witness.finished = True
        if recorder is not None:
            recorder.close()  # or say that it cannot be, before we say that we have finished
        leave_model(settings, place, engine)
        if observed is not None:
            observed.farewell(
                rounds=engine.rounds,
                control_bytes=links.control_bytes,
                seconds=mesh.seconds,
                refused=links.refused,
                ended=mesh.ended,
            )
        arrival.tell(Finished(engine.rounds))
        log.info("done: %d rounds in %.2f s (%s)", engine.rounds, mesh.seconds, mesh.ended)
    except NotNeeded as exc:
        log.warning("this node is not needed: %s", exc)
    except DlagError as exc:
        reason = f"{type(exc).__name__}: {exc}"
        if faults is not None:
            faults.add(time.time(), reason)
        arrival.fail(reason)
        if observed is not None:
            observed.fall(reason)
        raise


def _serve_metrics(witness: Witness, address: str, stack: ExitStack) -> None:
    from dlag_node.net.metrics import MetricsServer  # loaded where it is asked for

    server = MetricsServer(address, witness)
    stack.callback(server.close)
    log.info("metrics at %s", server.url)
