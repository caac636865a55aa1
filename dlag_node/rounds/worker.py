"""From the coordinator's words to an engine: the same for a node and for the simulator."""

from __future__ import annotations

from dlag_node.data import Table
from dlag_node.graphs.spectrum import Spectrum
from dlag_node.methods import Neighborhood, Worker, build_method, parse_method
from dlag_node.methods.worker import Everyone
from dlag_node.problems import Problem, loss_named, shard_from
from dlag_node.rounds.engine import Engine
from dlag_node.rounds.stopping import Stopping
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Assignment, Census, Enrol


def problem_of(enrol: Enrol, shard: bytes | bytearray | Table) -> Problem:
    """f_i from the shard's bytes, or from the samples that the node holds."""
    if isinstance(shard, Table):
        rows, labels = shard.rows, shard.known_labels("the samples")
    else:
        rows, labels = shard_from(
            shard, samples=enrol.samples, dim=enrol.dim, entries=enrol.entries
        )
    agreed = enrol.agreement
    return Problem(
        agreed.rows(rows),
        agreed.labels(labels),
        loss_named(enrol.problem),
        n0=enrol.n0,
        lam=enrol.lam,
    )


def engine_for(enrol: Enrol, assignment: Assignment, problem: Problem) -> Engine:
    """The engine of this worker's method; its codec is as wide as what the method sends."""
    hood = Neighborhood(
        assignment.own_weight, {peer.node: peer.weight for peer in assignment.peers}
    )
    worker = Worker(
        node=enrol.node,
        problem=problem,
        hood=hood,
        spectrum=Spectrum(assignment.spectrum),
        mu_min=assignment.mu_min,
        L_max=assignment.L_max,
        L_sample=assignment.L_sample,
        everyone=_everyone(assignment.census),
        seed=assignment.seed,
    )
    method = build_method(parse_method(assignment.method, assignment.preset), worker)
    schedule = method.schedule
    neighbors = [peer.node for peer in assignment.peers]
    return Engine(
        method,
        node=enrol.node,
        neighbors=neighbors,
        codec=Codec(method.width),
        stopping=Stopping(
            schedule.diameter or assignment.diameter, assignment.tol, hop=schedule.hop
        ),
    )


def _everyone(census: Census | None) -> Everyone | None:
    if census is None:
        return None
    return Everyone(
        edges=census.edges,
        weights=census.weights,
        mu=census.mu,
        L=census.L,
        L_sum=census.L_sum,
        root_sum=census.root_sum,
    )
