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
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import msgpack
import numpy as np
import zmq
import zmq.asyncio
from still import LOOPBACK, Still, take_part
from threadpoolctl import threadpool_limits
from turns import DIMS, ROOT, TOPOLOGY, Contender, Seat, Turn, cpu, measure, paired, rate

from dlag_node.methods.flow import Array
from dlag_node.process import new_loop

RESULTS = ROOT / "benchmarks" / "results" / "rounds.md"
REQUIRED = 2.5  # times the rounds a second of `obvious`, at the dimension below
REQUIRED_DIM = 13
REPEATS = 5
SECONDS = 1.2  # a turn of one contender

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def mesh(seat: Seat, loop: LoopFactory = new_loop) -> None:
    """The project's own node, everything but the coordinator."""
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_mesh(seat))


async def _mesh(seat: Seat) -> None:
    await take_part(seat, Still(seat))


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


if __name__ == "__main__":
    sys.exit(main())
