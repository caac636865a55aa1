"""Contenders that take turns: a process a node, the clock started together, ratios within a turn.

A contender is a function that
lives one node's life at its `Seat`; what slows the machine down slows all contenders alike, so the
figure is the median over the turns of the ratio of two neighbors in time.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from dlag_node.graphs.topology import parse_topology
from dlag_node.methods.flow import Array

ROOT = Path(__file__).resolve().parents[1]
TOPOLOGY = "grid:5x5"
DIMS = (13, 54, 10_000)
PILOT_ROUNDS = 40  # the run that tells how many rounds fill a turn
WARM_ROUNDS = 10  # more than the grid's diameter: by then every node has met every other's frames
LIFE_SECONDS = 60  # no process outlives a benchmark that was killed


@dataclass(frozen=True, slots=True)
class Span:
    """What one process spent on its rounds: seconds on the wall, and of CPU with its IO thread."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of one contender."""

    rate: float  # rounds a second, of the slowest node
    cpu: float  # seconds a message, over all nodes


class Seat:
    """One node's place at the table: its neighbors, its vector, and the pipe to the benchmark."""

    def __init__(self, node: int, pipe: Connection, *, dim: int, rounds: int) -> None:
        self.node = node
        self.neighbors = tuple(parse_topology(TOPOLOGY, seed=0).neighbors(node))
        self.vector: Array = np.random.default_rng(node).standard_normal(dim)
        self.rounds = WARM_ROUNDS + rounds
        self.addresses: Sequence[str] = ()
        self.keys: Sequence[bytes | None] = ()
        self._pipe = pipe
        self._begun = (0.0, 0.0)

    def meet(self, address: str, key: bytes | None = None) -> None:
        """Tell where we listen and by which key, learn where the others do."""
        self._pipe.send((address, key))
        self.addresses, self.keys = zip(*self._pipe.recv(), strict=True)

    def mark(self, k: int) -> None:
        """Round k begins: after the warm-up all nodes start the clock together."""
        if k == WARM_ROUNDS:
            self._pipe.send(None)
            self._pipe.recv()
            self._begun = perf_counter(), process_time()

    def finish(self) -> Span:
        """The last round has ended."""
        wall, cpu = self._begun
        return Span(perf_counter() - wall, process_time() - cpu)

    def report(self, figures: object) -> None:
        """Hand in what was measured."""
        self._pipe.send(figures)

    def leave(self, span: Span) -> None:
        """Hand in the last figures, and wait until nobody needs us any more."""
        self.report(span)
        self._pipe.recv()


Contender = Callable[[Seat], None]


def measure(
    contenders: dict[str, Contender], *, dim: int, repeats: int, seconds: float
) -> dict[str, list[Turn]]:
    """Turns of every contender, one after the other, again and again."""
    pilots = {
        name: turn(contender, dim=dim, rounds=PILOT_ROUNDS)
        for name, contender in contenders.items()
    }
    turns: dict[str, list[Turn]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            rounds = max(PILOT_ROUNDS, round(pilots[name].rate * seconds))
            turns[name].append(turn(contender, dim=dim, rounds=rounds))
    return turns


def turn(contender: Contender, *, dim: int, rounds: int) -> Turn:
    """One mesh of a contender, from its start to its end."""
    graph = parse_topology(TOPOLOGY, seed=0)
    messages = rounds * 2 * len(graph.edges)
    with Seated(contender, nodes=graph.nodes, dim=dim, rounds=rounds) as pipes:
        addresses = [pipe.recv() for pipe in pipes]
        tell(pipes, addresses)
        for pipe in pipes:
            pipe.recv()
        tell(pipes, "go")
        spans: list[Span] = [pipe.recv() for pipe in pipes]
        tell(pipes, "leave")
    return Turn(
        rate=rounds / max(span.wall for span in spans),
        cpu=sum(span.cpu for span in spans) / messages,
    )


class Seated:
    """A process a node, forked from here, where no ZeroMQ context exists yet; all end with it."""

    def __init__(self, contender: Contender, *, nodes: int, dim: int, rounds: int) -> None:
        fork = multiprocessing.get_context("fork")
        pairs = [fork.Pipe() for _ in range(nodes)]
        self._pipes = [ours for ours, _ in pairs]
        self._processes = [
            fork.Process(target=sit, args=(contender, node, theirs, dim, rounds), daemon=True)
            for node, (_, theirs) in enumerate(pairs)
        ]
        self._theirs = [theirs for _, theirs in pairs]

    def __enter__(self) -> list[Connection]:
        for process in self._processes:
            process.start()
        for theirs in self._theirs:
            theirs.close()
        return self._pipes

    def pid_of(self, node: int) -> int:
        """The process of one node."""
        pid = self._processes[node].pid
        assert pid is not None
        return pid

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in self._processes:
            if kind is not None:
                process.terminate()
            process.join()
        for pipe in self._pipes:
            pipe.close()


def sit(contender: Contender, node: int, pipe: Connection, dim: int, rounds: int) -> None:
    """The whole life of a forked process."""
    signal.alarm(LIFE_SECONDS)
    contender(Seat(node, pipe, dim=dim, rounds=rounds))


def tell(pipes: list[Connection], word: object) -> None:
    """The same word to everyone."""
    for pipe in pipes:
        pipe.send(word)


def paired(own: list[Turn], other: list[Turn], figure: Callable[[Turn], float]) -> float:
    """The median over the turns of one figure's ratio."""
    return median(figure(a) / figure(b) for a, b in zip(own, other, strict=True))


def rate(each: Turn) -> float:
    """Rounds a second."""
    return each.rate


def cpu(each: Turn) -> float:
    """CPU seconds a message."""
    return each.cpu
