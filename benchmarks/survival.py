"""What checkpoints, keys and heartbeats cost: the mesh with and without them, taking turns.

The mesh of rounds.py (25 processes on a 5x5 grid, no compute, which makes everything else look as
expensive as it can) with the state of a DLAG worker: five vectors, a window of 50 steps, a stream.

    bare        no state folder, no keys, no heartbeats
    heartbeats  ZeroMQ's, from who called, every 10 s
    CURVE       every message encrypted, with a key pair a node
    every 1     a checkpoint after each round, before the next one's frame leaves
    every 10    one in ten rounds; neighbors keep the frames of twenty
    durable     as `every 1`, and on the disk before the frame leaves
    all         heartbeats, CURVE and `every 10`: what `dlag run --checkpoint 10` does
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
from collections import deque
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from still import Still, take_part
from threadpoolctl import threadpool_limits
from turns import DIMS, ROOT, TOPOLOGY, Contender, Seat, Turn, cpu, measure, paired, rate

from dlag_node.net.sockets import HEARTBEAT
from dlag_node.process import new_loop
from dlag_node.rounds import Engine
from dlag_node.rounds.checkpoint import Owner
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.state_folder import StateFolder
from dlag_node.trust.keys import new_pair
from dlag_node.wire import Skip
from dlag_node.wire.codec import Codec

RESULTS = ROOT / "benchmarks" / "results" / "survival.md"
REQUIRED = 1.5  # times the CPU time a message of `bare`, at most, at the dimension below
REQUIRED_DIM = 54
REPEATS = 5
SECONDS = 1.2  # a turn of one contender
SAVES = 200  # of one checkpoint alone
WINDOW = 50


class Worker(Still):
    """As large a state as a DLAG worker's."""

    STATE = ("_k", "theta", "theta_hat", "P", "x", "y", "window", "rng")

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.theta_hat, self.P, self.x, self.y = (self.theta + i for i in range(4))
        self.window = deque(range(WINDOW), maxlen=WINDOW)
        self.rng = np.random.default_rng(seat.node)


def contender(
    folder: Path | None = None,
    *,
    every: int = 1,
    durable: bool = False,
    curve: bool = False,
    heartbeats: bool = False,
) -> Contender:
    """The mesh with checkpoints in that folder, or without any."""

    async def life(seat: Seat) -> None:
        keys = new_pair() if curve else None
        heartbeat = HEARTBEAT if heartbeats else 0.0
        if folder is None:
            await take_part(seat, Worker(seat), keys=keys, heartbeat=heartbeat)
            return
        with StateFolder(folder / str(seat.node), durable=durable) as state:
            keeper = Keeper(state, Owner("benchmark", "rounds", seat.node), every=every)
            await take_part(seat, Worker(seat), keeper, keys, heartbeat=heartbeat)

    def sit(seat: Seat) -> None:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(life(seat))

    return sit


def one_checkpoint(folder: Path, dim: int, *, durable: bool) -> tuple[float, int]:
    """Median seconds of one checkpoint, and its bytes."""
    seat = Seat(0, None, dim=dim, rounds=10**9)  # type: ignore[arg-type]
    seat.mark = lambda _: None  # type: ignore[method-assign]
    engine = Engine(Worker(seat), node=0, neighbors=[1], codec=Codec(dim))
    engine.keep_for(2)
    spent = []
    with StateFolder(folder / f"one-{dim}-{durable}", durable=durable) as state:
        keeper = Keeper(state, Owner("benchmark" * 3, "r" * 64, 0), every=1)
        for _ in range(SAVES):
            engine.advance()
            engine.deliver(1, Skip(engine.seq))
            engine.advance()
            begun = perf_counter()
            keeper.save(engine)
            spent.append(perf_counter() - begun)
        return median(spent), (state.path / "slot-0").stat().st_size


def main() -> int:
    """Measure, print the table, write it down."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--dims", type=int, nargs="+", default=DIMS)
    options.add_argument("--seconds", type=float, default=SECONDS, help="a turn of one contender")
    options.add_argument("--folder", type=Path, default=ROOT, help="on the disk to be measured")
    options.add_argument(
        "--quick", action="store_true", help="d = 54 alone, what is required, nothing written down"
    )
    asked = options.parse_args()
    if asked.quick:
        asked.dims = (REQUIRED_DIM,)
    threadpool_limits(1)
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        contenders = {
            "bare": contender(),
            "heartbeats": contender(heartbeats=True),
            "CURVE": contender(curve=True),
            "every 10": contender(folder / "10", every=10),
            "all": contender(folder / "all", every=10, curve=True, heartbeats=True),
        }
        if not asked.quick:
            contenders["every 1"] = contender(folder / "1")
            contenders["durable"] = contender(folder / "durable", durable=True)
        turns = {
            dim: measure(contenders, dim=dim, repeats=asked.repeats, seconds=asked.seconds)
            for dim in asked.dims
        }
        alone = {
            dim: (
                one_checkpoint(folder, dim, durable=False),
                one_checkpoint(folder, dim, durable=True),
            )
            for dim in asked.dims
        }
    report = table(turns, alone, repeats=asked.repeats)
    print(report)
    if not asked.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(report)
    return 1 if "FAIL" in report else 0


def table(
    turns: dict[int, dict[str, list[Turn]]],
    alone: dict[int, tuple[tuple[float, int], tuple[float, int]]],
    *,
    repeats: int,
) -> str:
    """The figures as markdown, with the command and the machine."""
    lines = [
        "# What checkpoints, keys and heartbeats cost, no compute",
        "",
        f"`python {' '.join([Path(sys.argv[0]).name, *sys.argv[1:]])}`, {TOPOLOGY}, tcp loopback,",
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}.",
        f"Medians of {repeats} turns; ratios are medians of the ratios within a turn.",
        "",
        "| d | | rounds/s | rounds/s over bare | CPU a message, us | CPU over bare |",
        "| ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for dim, taken in turns.items():
        for name, own in taken.items():
            ratios = sorted(a.cpu / b.cpu for a, b in zip(own, taken["bare"], strict=True))
            lines.append(
                f"| {dim:,} | {name} | {median(each.rate for each in own):.0f} "
                f"| {paired(own, taken['bare'], rate):.2f} "
                f"| {median(each.cpu for each in own) * 1e6:.1f} "
                f"| {paired(own, taken['bare'], cpu):.2f} "
                f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
            )
    lines += verdict(turns)
    lines += [
        "",
        "| d | one checkpoint, bytes | us | durable, us |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for dim, ((seconds, size), (durable, _)) in alone.items():
        lines.append(f"| {dim:,} | {size:,} | {seconds * 1e6:.0f} | {durable * 1e6:.0f} |")
    return "\n".join(lines) + "\n"


def verdict(turns: dict[int, dict[str, list[Turn]]]) -> list[str]:
    """Whether the requirement is met; nothing where its dimension was left out."""
    if REQUIRED_DIM not in turns:
        return []
    taken = turns[REQUIRED_DIM]
    found = paired(taken["all"], taken["bare"], cpu)
    word = "PASS" if found <= REQUIRED else "FAIL"
    return [
        "",
        f"{word}: at d = {REQUIRED_DIM} heartbeats, CURVE and a checkpoint in ten rounds take",
        f"{found:.2f} times the CPU time a message, required: at most {REQUIRED}",
    ]


if __name__ == "__main__":
    sys.exit(main())
