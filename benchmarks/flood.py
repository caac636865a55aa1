"""What a stranger's flood does to the mesh: rounds a second beside an undisturbed run, and memory.

The mesh of rounds.py with keys (25 processes on a 5x5 grid, no compute: nothing hides what is lost)
at d = 54. One process of a stranger floods the node in the middle, flat out:

    quiet        nobody does
    elsewhere    the same calls to a listener of the stranger's own: what its CPU time alone costs
    connections  connects and leaves
    idle         holds as many connections open as it can get, and says nothing
    greetings    connects, sends a greeting and then random bytes
    hand-shakes  CURVE with a key of its own, which is not admitted; it knows the node's public key

Ratios are medians of the ratios within a turn.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import platform
import random
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import median
from time import sleep

import zmq
from still import Still, take_part
from threadpoolctl import threadpool_limits
from turns import ROOT, TOPOLOGY, Seat, Seated, Span, tell

from dlag_node.graphs.topology import parse_topology
from dlag_node.process import new_loop
from dlag_node.trust.curve import call_with
from dlag_node.trust.keys import new_pair

RESULTS = ROOT / "benchmarks" / "results" / "flood.md"
STATED = 3.0  # times as slow, at most: docs/protocol.md says so
DIM = 54
MIDDLE = 12
ROUNDS = 300
REPEATS = 5
LIFE_SECONDS = 120
AT_ONCE = 50  # hand-shakes under way
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01CURVE" + bytes(15) + b"\0" + bytes(31)

Flood = Callable[[tuple[str, int], bytes], None]


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of the mesh under one flood."""

    rate: float  # rounds a second
    grown: int  # kB that the flooded node holds more at the end than at the begin


def mesh(seat: Seat) -> None:
    """A node with a key of its own."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(take_part(seat, Still(seat), keys=new_pair()))


def connections(address: tuple[str, int], _: bytes) -> None:
    """Connect and leave."""
    while True:
        _connected(address).close()


def idle(address: tuple[str, int], _: bytes) -> None:
    """Hold on, as long as the other end does."""
    held: list[socket.socket] = []
    while True:
        if len(held) >= 10_000:
            held.pop(0).close()
        held.append(_connected(address))


def greetings(address: tuple[str, int], _: bytes) -> None:
    """Say hello, and then nonsense."""
    noise = random.Random(0).randbytes(4_096)
    while True:
        with _connected(address) as opened:
            try:
                opened.sendall(GREETING + noise)
            except OSError:
                continue


def handshakes(address: tuple[str, int], key: bytes) -> None:
    """Prove to be somebody that nobody knows."""
    endpoint = "tcp://{}:{}".format(*address)
    with zmq.Context() as context:
        context.set(zmq.MAX_SOCKETS, 60_000)  # those that were closed take their time
        while True:
            calls = [context.socket(zmq.DEALER) for _ in range(AT_ONCE)]
            for call in calls:
                call_with(call, new_pair(), key)
                call.connect(endpoint)
            sleep(0.02)
            for call in calls:
                call.close(0)


def _connected(address: tuple[str, int]) -> socket.socket:
    while True:
        opened = socket.socket()
        opened.settimeout(1.0)
        try:
            opened.connect(address)
        except OSError:
            opened.close()
            continue
        return opened


def elsewhere(_: tuple[str, int], __: bytes) -> None:
    """The same work against a listener of our own."""
    with socket.create_server(("127.0.0.1", 0), backlog=1_000) as server:
        while True:
            _connected(server.getsockname()).close()
            server.accept()[0].close()


FLOODS: dict[str, Flood | None] = {
    "quiet": None,
    "elsewhere": elsewhere,
    "connections": connections,
    "idle": idle,
    "greetings": greetings,
    "hand-shakes": handshakes,
}


def turn(flood: Flood | None, rounds: int) -> Turn:
    """One mesh from its start to its end, the flood beginning with the first counted round."""
    graph = parse_topology(TOPOLOGY, seed=0)
    seated = Seated(mesh, nodes=graph.nodes, dim=DIM, rounds=rounds)
    stranger = None
    with seated as pipes:
        told = [pipe.recv() for pipe in pipes]
        tell(pipes, told)
        for pipe in pipes:
            pipe.recv()
        victim = seated.pid_of(MIDDLE)
        before = resident(victim)
        try:
            if flood is not None:
                stranger = attack(flood, *told[MIDDLE])
            tell(pipes, "go")
            spans: list[Span] = [pipe.recv() for pipe in pipes]
            grown = resident(victim) - before
            assert stranger is None or stranger.is_alive()  # or it was no flood
        finally:
            if stranger is not None:
                stranger.kill()
                stranger.join()
        tell(pipes, "leave")
    return Turn(rounds / max(span.wall for span in spans), grown)


def attack(flood: Flood, address: str, key: bytes) -> BaseProcess:
    """A stranger's process, which has nothing but what it is told here."""
    host, _, port = address.removeprefix("tcp://").rpartition(":")

    def life() -> None:
        signal.alarm(LIFE_SECONDS)
        flood((host, int(port)), key)

    process = multiprocessing.get_context("fork").Process(target=life, daemon=True)
    process.start()
    return process


def resident(pid: int) -> int:
    """Resident memory of a process in kB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def main() -> int:
    """Measure, print the table, write it down; 0 where no flood slows more than is stated."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--quick", action="store_true", help="2 turns, nothing written down")
    asked = options.parse_args()
    if asked.quick:
        asked.repeats = 2
    threadpool_limits(1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    turns: dict[str, list[Turn]] = {name: [] for name in FLOODS}
    for _ in range(asked.repeats):
        for name, flood in FLOODS.items():
            turns[name].append(turn(flood, asked.rounds))
    report = table(turns, repeats=asked.repeats)
    print(report)
    if not asked.quick:
        RESULTS.write_text(report)
    return 1 if "FAIL" in report else 0


def table(turns: dict[str, list[Turn]], *, repeats: int) -> str:
    """The figures as markdown, with the command and the machine."""
    lines = [
        "# A stranger's flood",
        "",
        f"`python {' '.join([Path(sys.argv[0]).name, *sys.argv[1:]])}`, {TOPOLOGY}, d = {DIM}, tcp",
        f"loopback, {os.cpu_count()} cores, {platform.machine()}, Python",
        f"{platform.python_version()}, libzmq {zmq.zmq_version()}. Medians of {repeats} turns.",
        "",
        "| flood | rounds/s | times as slow | node grown by, kB |",
        "| --- | ---: | ---: | ---: |",
    ]
    worst = 0.0
    for name, own in turns.items():
        slower = sorted(q.rate / a.rate for q, a in zip(turns["quiet"], own, strict=True))
        worst = max(worst, median(slower))
        lines.append(
            f"| {name} | {median(each.rate for each in own):.0f} | {median(slower):.2f} "
            f"({slower[0]:.2f} to {slower[-1]:.2f}) | {max(each.grown for each in own):,} |"
        )
    word = "PASS" if worst <= STATED else "FAIL"
    lines += ["", f"{word}: at most {worst:.2f} times as slow, stated: {STATED}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
