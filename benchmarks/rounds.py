"""Rounds a second and CPU time a message of the mesh, against the same mesh written by hand.

25 processes on a 5x5 grid over tcp loopback and no compute: each round every node sends one vector
to each neighbor and waits for theirs. Three contenders take turns within one run, and the figure is
the median over the turns of the ratio of two neighbors in time: what slows the machine down slows
all of them.

    mesh      dlag_node itself: links, codec with its checks, barrier, replay, engine, ledger
    obvious   zmq.asyncio the obvious way: one await a message, none of the exactness
    blocking  bare pyzmq with blocking calls: the floor of this transport in Python
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import platform
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import msgpack
import numpy as np
import zmq
import zmq.asyncio
from threadpoolctl import threadpool_limits

from dlag_node.graphs.topology import parse_topology
from dlag_node.methods.flow import Array, Exchange, Flow, RoundReport
from dlag_node.net.links import Links
from dlag_node.net.mesh import MeshNode
from dlag_node.net.witness import Witness
from dlag_node.process import new_loop
from dlag_node.rounds import Engine
from dlag_node.rounds.keeper import Keeper
from dlag_node.trust.keys import KeyPair
from dlag_node.wire.codec import Codec
from dlag_node.wire.control import Peer

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "rounds.md"
TOPOLOGY = "grid:5x5"
REQUIRED = 2.5  # times the rounds a second of `obvious`, at the dimension below
REQUIRED_DIM = 13
DIMS = (13, 54, 10_000)
REPEATS = 5
SECONDS = 1.2  # a turn of one contender
PILOT_ROUNDS = 40  # the run that tells how many rounds fill a turn
WARM_ROUNDS = 10  # more than the grid's diameter: by then every node has met every other's frames
LIFE_SECONDS = 60  # no process outlives a benchmark that was killed
LOOPBACK = "tcp://127.0.0.1:*"

LoopFactory = Callable[[], asyncio.AbstractEventLoop]
Shown = Callable[[Engine, Links, zmq.Context[zmq.Socket[bytes]], ExitStack], Witness]


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

    def leave(self, span: Span) -> None:
        """Hand in the figures, and wait until nobody needs us any more."""
        self._pipe.send(span)
        self._pipe.recv()


Contender = Callable[[Seat], None]


class Still:
    """A method that computes nothing: one exchange of the same vector a round."""

    STATE: tuple[str, ...] = ("_k", "theta")

    def __init__(self, seat: Seat) -> None:
        self.theta = seat.vector
        self.width = len(self.theta)
        self.parameters: dict[str, float | int | str] = {}
        self.span = Span(0.0, 0.0)
        self._seat = seat
        self._k = 0

    def round(self) -> Flow[RoundReport]:
        """Send, and wait for everyone."""
        self._seat.mark(self._k)
        yield Exchange(self.theta)
        self._k += 1
        if self._k == self._seat.rounds:
            self.span = self._seat.finish()
        return RoundReport(gradients=0, step=0.0, age=0)


def mesh(seat: Seat, loop: LoopFactory = new_loop) -> None:
    """The project's own node, everything but the coordinator."""
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_mesh(seat))


async def _mesh(seat: Seat) -> None:
    await take_part(seat, Still(seat))


async def take_part(
    seat: Seat,
    method: Still,
    keeper: Keeper | None = None,
    keys: KeyPair | None = None,
    *,
    shown: Shown | None = None,
) -> None:
    """One node of the mesh, with a method that computes nothing; with checkpoints, with keys.

    `shown` lets others see how the node stands, until the stack that it gets is closed.
    """
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    codec = Codec(seat.vector.size)
    links = Links(context, LOOPBACK, limit=codec.frame_limit, keys=keys)
    seat.meet(links.address, None if keys is None else keys.public)
    engine = Engine(method, node=seat.node, neighbors=seat.neighbors, codec=codec)
    stack = ExitStack()
    witness = None if shown is None else shown(engine, links, context, stack)
    node = MeshNode(
        engine,
        links,
        rounds=seat.rounds,
        neighbor_timeout=30.0,
        keeper=keeper,
        witness=witness,
    )
    await links.open(
        node=seat.node,
        run="benchmark",
        config="rounds",
        codec=codec,
        peers=[Peer(j, seat.addresses[j], 0.0, seat.keys[j]) for j in seat.neighbors],
        position=lambda: engine.seq,
        deliver=engine.deliver if witness is None else witness.deliver,
        control=node.control,
        opened=node.opened,
        back=0 if keeper is None else keeper.back,
    )
    await node.run()
    seat.leave(method.span)
    stack.close()
    links.close()
    context.term()


def obvious(seat: Seat, loop: LoopFactory = asyncio.new_event_loop) -> None:
    """zmq.asyncio as its manual has it: await each message, gather the sends."""
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_obvious(seat))


async def _obvious(seat: Seat) -> None:
    context = zmq.asyncio.Context()
    router = context.socket(zmq.ROUTER)
    router.bind(LOOPBACK)
    seat.meet(router.getsockopt_string(zmq.LAST_ENDPOINT))
    dealers = []
    for j in seat.neighbors:
        dealer = context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.IDENTITY, b"%d" % seat.node)
        dealer.connect(seat.addresses[j])
        dealers.append(dealer)
    inboxes: list[dict[int, Array]] = [{}, {}]  # a neighbor can be one round ahead
    for k in range(seat.rounds):
        seat.mark(k)
        raw = msgpack.packb((k, seat.vector.tobytes()))
        await asyncio.gather(*(dealer.send_multipart([raw]) for dealer in dealers))
        inbox = inboxes[k % 2]
        while len(inbox) < len(seat.neighbors):
            route, received = await router.recv_multipart()
            their_k, body = msgpack.unpackb(received)
            inboxes[their_k % 2][int(route)] = np.frombuffer(body)
        inbox.clear()
    seat.leave(seat.finish())
    context.destroy(linger=0)


def blocking(seat: Seat) -> None:
    """Plain sockets and blocking calls."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    router = context.socket(zmq.ROUTER)
    router.bind(LOOPBACK)
    seat.meet(router.getsockopt_string(zmq.LAST_ENDPOINT))
    dealers = []
    for j in seat.neighbors:
        dealer = context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.IDENTITY, b"%d" % seat.node)
        dealer.connect(seat.addresses[j])
        dealers.append(dealer)
    inboxes: list[dict[int, Array]] = [{}, {}]
    for k in range(seat.rounds):
        seat.mark(k)
        raw = msgpack.packb((k, seat.vector.tobytes()))
        for dealer in dealers:
            dealer.send(raw)
        inbox = inboxes[k % 2]
        while len(inbox) < len(seat.neighbors):
            route = router.recv()
            their_k, body = msgpack.unpackb(router.recv())
            inboxes[their_k % 2][int(route)] = np.frombuffer(body)
        inbox.clear()
    seat.leave(seat.finish())
    context.destroy(linger=0)


def mesh_on_stdlib_loop(seat: Seat) -> None:
    """The project's node without uvloop."""
    mesh(seat, asyncio.new_event_loop)


def obvious_on_uvloop(seat: Seat) -> None:
    """The obvious mesh with uvloop."""
    obvious(seat, new_loop)


CONTENDERS: dict[str, Contender] = {"mesh": mesh, "obvious": obvious, "blocking": blocking}
LOOPS: dict[str, Contender] = {
    "mesh, stdlib loop": mesh_on_stdlib_loop,
    "obvious, uvloop": obvious_on_uvloop,
}


def main() -> int:
    """Measure, print the table, write it down; 0 where the requirement is met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--dims", type=int, nargs="+", default=DIMS)
    options.add_argument("--seconds", type=float, default=SECONDS, help="a turn of one contender")
    options.add_argument("--loops", action="store_true", help="also each on the other event loop")
    options.add_argument(
        "--quick", action="store_true", help="d = 13 alone, 3 short turns, nothing written down"
    )
    asked = options.parse_args()
    contenders = CONTENDERS | (LOOPS if asked.loops else {})
    if asked.quick:
        asked.repeats, asked.dims, asked.seconds = 3, (REQUIRED_DIM,), 0.6
    threadpool_limits(1)
    turns = {
        dim: measure(contenders, dim=dim, repeats=asked.repeats, seconds=asked.seconds)
        for dim in asked.dims
    }
    report = table(turns, repeats=asked.repeats)
    print(report)
    if not asked.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(report)
    return 1 if "FAIL" in report else 0


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


def table(turns: dict[int, dict[str, list[Turn]]], *, repeats: int) -> str:
    """The figures as markdown, with the command and the machine."""
    head = f"""# Rounds of the mesh, no compute

`python {" ".join([Path(sys.argv[0]).name, *sys.argv[1:]])}`, {TOPOLOGY}, tcp loopback, \
{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, \
pyzmq {zmq.__version__}, libzmq {zmq.zmq_version()}.
Medians of {repeats} turns; ratios are medians of the ratios within a turn.

| d | contender | rounds/s | CPU a message, us | rounds/s over obvious | CPU over obvious \
| CPU over blocking |
| ---: | --- | ---: | ---: | ---: | ---: | ---: |
"""
    return head + "".join(lines(turns)) + "\n" + verdict(turns)


def lines(turns: dict[int, dict[str, list[Turn]]]) -> Iterator[str]:
    """One line a dimension and contender."""
    for dim, taken in turns.items():
        for name, own in taken.items():
            yield (
                f"| {dim:,} | {name} | {median(each.rate for each in own):.0f} "
                f"| {median(each.cpu for each in own) * 1e6:.1f} "
                f"| {paired(own, taken['obvious'], rate):.2f} "
                f"| {paired(own, taken['obvious'], cpu):.2f} "
                f"| {paired(own, taken['blocking'], cpu):.2f} |\n"
            )


def verdict(turns: dict[int, dict[str, list[Turn]]]) -> str:
    """Whether the requirement is met; nothing where its dimension was left out."""
    if REQUIRED_DIM not in turns:
        return ""
    taken = turns[REQUIRED_DIM]
    found = paired(taken["mesh"], taken["obvious"], rate)
    ratios = sorted(
        own.rate / other.rate for own, other in zip(taken["mesh"], taken["obvious"], strict=True)
    )
    return (
        f"{'PASS' if found >= REQUIRED else 'FAIL'}: at d = {REQUIRED_DIM} the mesh makes "
        f"{found:.2f} times the rounds a second of the obvious one "
        f"({ratios[0]:.2f} to {ratios[-1]:.2f}), required: {REQUIRED}\n"
    )


def paired(own: list[Turn], other: list[Turn], figure: Callable[[Turn], float]) -> float:
    """The median over the turns of one figure's ratio."""
    return median(figure(a) / figure(b) for a, b in zip(own, other, strict=True))


def rate(each: Turn) -> float:
    """Rounds a second."""
    return each.rate


def cpu(each: Turn) -> float:
    """CPU seconds a message."""
    return each.cpu


if __name__ == "__main__":
    sys.exit(main())
