"""Two meshes side by side on the same cores, of which one is looked at: now this one, now that one.

What slows the machine down slows both, so the ratio of their speeds shows costs of a percent that
no run by itself would. Time falls into slots; in each of them one mesh of the two is looked at, and
in every pair of slots each of them once, in an order by chance. Each mesh has half of the machine:
looks come half as often as otherwise, so that a round has as many of them as in a mesh that has the
machine to itself.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack
from dataclasses import dataclass
from math import log
from random import Random
from time import time

import zmq
from still import Still, take_part
from turns import TOPOLOGY, Contender, Seat, Seated, tell

from dlag_node.graphs.topology import parse_topology
from dlag_node.net.faults import Faults
from dlag_node.net.links import Links
from dlag_node.net.metrics import MetricsServer
from dlag_node.net.publisher import Publisher
from dlag_node.net.witness import Witness
from dlag_node.process import new_loop
from dlag_node.rounds import Engine
from dlag_node.rounds.record import Record

MESHES = 2
NODES = parse_topology(TOPOLOGY, seed=0).nodes
SLOT_SECONDS = 0.25
FIRST_PORT = 19_200  # of the nodes' metrics
REPORTER = NODES // 2  # the node in the middle notes how fast its mesh is
LIFE_SECONDS = 900  # no process outlives a benchmark that was killed

_ORDER = [mesh for pair in range(5_000) for mesh in Random(pair).sample(range(MESHES), MESHES)]


@dataclass(frozen=True, slots=True)
class Mode:
    """Who looks at the mesh whose turn it is."""

    name: str
    metrics: bool = False
    watched: bool = False


def slot_of(now: float) -> int:
    """The slot of time that `now` lies in."""
    return int(now / SLOT_SECONDS) % len(_ORDER)


def shown_at(now: float) -> int:
    """The mesh that is looked at."""
    return _ORDER[slot_of(now)]


def port_of(mesh: int, node: int) -> int:
    """Where a node serves its metrics."""
    return FIRST_PORT + NODES * mesh + node


class Twin(Witness):
    """A witness that sees only the slots in which its mesh is looked at, and times all of them."""

    def __init__(self, seat: Seat, mesh: int, mode: Mode, engine: Engine, links: Links) -> None:
        faults = Faults(seat.node, lambda: engine.rounds, None, life=0)
        super().__init__(engine, links, faults, run="benchmark")
        self._sums, engine.waits = engine.waits, None
        self.mesh = mesh
        self._seat = seat
        self._mode = mode
        self._slot = -1
        self._shown = False
        self._rates: dict[int, float] = {}  # rounds a second in each slot
        self._begun = (0.0, 0)  # the first round that ended in this slot: when, and which

    def take(self, record: Record) -> None:
        """A finished round."""
        if self._shown:
            super().take(record)
        now = time()
        if slot_of(now) != self._slot:
            self._turn_over(now, record.k)
        if record.k == self._seat.rounds - 1 and self._seat.node == REPORTER:
            self._seat.report(self._rates)

    def _turn_over(self, now: float, k: int) -> None:
        then, first = self._begun
        self._rates[self._slot] = (k - first) / (now - then)
        self._slot, self._begun = slot_of(now), (now, k)
        self._shown = shown_at(now) == self.mesh and (self._mode.metrics or self._mode.watched)
        self._engine.waits = self._sums if self._shown else None


class Telling(Publisher):
    """Tells only while its mesh is looked at, and half as often as otherwise."""

    _ticks = 0

    def _tell(self) -> None:
        self._ticks += 1
        assert isinstance(self._witness, Twin)
        if self._ticks % MESHES == 0 and shown_at(time()) == self._witness.mesh:
            super()._tell()


def living(mesh: int, mode: Mode, address: str) -> Contender:
    """A node of one of the two meshes."""

    async def live(seat: Seat) -> None:
        def shown(
            engine: Engine,
            links: Links,
            context: zmq.Context[zmq.Socket[bytes]],
            stack: ExitStack,
        ) -> Twin:
            twin = Twin(seat, mesh, mode, engine, links)
            if mode.metrics:
                server = MetricsServer(f"127.0.0.1:{port_of(mesh, seat.node)}", twin)
                stack.callback(server.close)
            if mode.watched:
                stack.callback(Telling(context, address, twin).close)
            return twin

        await take_part(seat, Still(seat), shown=shown)

    def sit(seat: Seat) -> None:
        signal.alarm(LIFE_SECONDS)
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(live(seat))

    return sit


def costs(mode: Mode, address: str, *, dim: int, rounds: int) -> list[float]:
    """What being looked at costs, in each pair of slots: the log of the speeds' ratio."""
    with ExitStack() as stack:
        both = [
            stack.enter_context(
                Seated(living(mesh, mode, address), nodes=NODES, dim=dim, rounds=rounds)
            )
            for mesh in range(MESHES)
        ]
        for pipes in both:
            tell(pipes, [pipe.recv() for pipe in pipes])
        for pipe in (pipe for pipes in both for pipe in pipes):
            pipe.recv()
        for pipes in both:
            tell(pipes, "go")
        rates: list[dict[int, float]] = [pipes[REPORTER].recv() for pipes in both]
        for pipe in (pipe for pipes in both for pipe in pipes):
            pipe.recv()
        for pipes in both:
            tell(pipes, "leave")
    return paired_costs(*rates)


def paired_costs(first: dict[int, float], second: dict[int, float]) -> list[float]:
    """Over the pairs of slots that both meshes have seen, but for the first and the last."""
    common = sorted(first.keys() & second.keys())[1:-1]
    cost = {slot: log(second[slot] / first[slot]) for slot in common}
    return [
        sum(cost[slot] * (1 if _ORDER[slot] == 0 else -1) for slot in pair) / MESHES
        for pair in ((slot, slot + 1) for slot in common if slot % MESHES == 0)
        if pair[1] in cost
    ]
