"""What a mesh of 25 nodes on this machine costs until it is ready, against one node started alone.

`alone` is a mesh of two nodes, each a `dlag-node` process of its own as on a device; the figure is
one node's. `nursery` is the 25 nodes that `dlag run` forks from one process that has everything
loaded; the figure is their sum with the nursery's own. A node is ready when all of its links are
up, and tells its CPU time itself. The two take turns, after one turn that is not counted: files are
in the kernel's cache and kernels in numba's.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

import psutil
import zmq

from coordinator.plan import Plan, RunSettings
from dlag_lab.launcher import Launcher
from dlag_lab.mesh import LocalMesh, name_of
from dlag_lab.referee import Referee
from dlag_node.wire.limits import MAX_CONTROL_BYTES
from dlag_node.wire.observing import FROM_NODE, Farewell, Horizon, Ready
from dlag_node.wire.schema import pack, unpack

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "startup.md"
ALLOWED = 3.0  # times the CPU of one node alone, for all 25
TOPOLOGY = "grid:5x5"
METHOD = "dlag"  # one that needs compiled kernels, which the nursery loads for whatever method
REPEATS = 5
PATIENCE_MS = 30_000  # for a node's next word
MIB = float(1 << 20)


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB of one process: resident, with shared pages split among their users, and its own only."""

    rss: float
    pss: float
    uss: float


@dataclass(frozen=True, slots=True)
class Alone:
    """One node as a process of its own."""

    cpu: float
    wall: float  # from the first process's start to the last node's Ready
    memory: Memory


@dataclass(frozen=True, slots=True)
class Forked:
    """All nodes of a local mesh."""

    nodes_cpu: float
    nursery_cpu: float
    coordinator_cpu: float
    wall: float
    memory: Memory  # mean of the nodes

    @property
    def cpu(self) -> float:
        """What the requirement counts."""
        return self.nodes_cpu + self.nursery_cpu


def main() -> int:
    """Measure, print the table, write it down; 0 where the requirement is met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--repeats", type=int, default=REPEATS)
    options.add_argument("--quick", action="store_true", help="two turns, nothing written down")
    asked = options.parse_args()
    repeats = 2 if asked.quick else asked.repeats
    turns = [(alone(), forked()) for _ in range(1 + repeats)][1:]
    report = table(turns)
    print(report)
    if not asked.quick:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(report)
    return 1 if "FAIL" in report else 0


def alone() -> Alone:
    """A coordinator and two nodes by hand, as on two devices; the figures of node 0."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    laboratory = context.socket(zmq.ROUTER)
    laboratory.setsockopt(zmq.RCVTIMEO, PATIENCE_MS)
    laboratory.bind("tcp://127.0.0.1:*")
    observer = laboratory.getsockopt_string(zmq.LAST_ENDPOINT)
    begun = perf_counter()
    read, write = os.pipe()
    flags = [
        "--topology",
        "path:2",
        "--method",
        METHOD,
        "--rounds",
        "1",
        "--bind",
        "tcp://127.0.0.1:*",
    ]
    processes = [command("dlag-coordinator", *flags, "--announce", str(write), keep=(write,))]
    os.close(write)
    try:
        address = os.read(read, 4_096).decode().strip()
        for node in range(2):
            words = ("--coordinator", address, "--id", str(node), "--observer", observer)
            processes.append(command("dlag-node", *words))
        ready: dict[int, tuple[bytes, Ready]] = {}
        while len(ready) < 2:
            peer, message = hear(laboratory)
            if isinstance(message, Ready):
                ready[message.node] = peer, message
        wall = perf_counter() - begun
        memory = memory_of(processes[1].pid)
        for peer, _ in ready.values():
            laboratory.send_multipart([peer, pack(Horizon(1, final=True))])
        left = 0
        while left < 2:
            left += isinstance(hear(laboratory)[1], Farewell)
        for process in processes:
            process.wait(PATIENCE_MS / 1_000)
    finally:
        os.close(read)
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        context.destroy(linger=0)
    return Alone(cpu=ready[0][1].cpu, wall=wall, memory=memory)


def command(name: str, *words: str, keep: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
    """One of the console scripts beside this Python, running this tree's code."""
    return subprocess.Popen(
        [sys.executable, str(Path(sys.executable).with_name(name)), *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        pass_fds=keep,
        stderr=subprocess.DEVNULL,
    )


def hear(laboratory: zmq.Socket[bytes]) -> tuple[bytes, object]:
    """A node's next word."""
    peer, raw = laboratory.recv_multipart()
    return peer, unpack(raw, FROM_NODE, limit=MAX_CONTROL_BYTES, peer="a node")


def forked() -> Forked:
    """The same data on 25 nodes, brought up as `dlag run` does."""
    settings = RunSettings(topology=TOPOLOGY, method=METHOD, rounds=1)
    plan = Plan(settings)
    found: list[tuple[float, float, list[Memory]]] = []

    def started(launcher: Launcher) -> None:
        nodes = [launcher.pids[name_of(node)] for node in range(plan.nodes)]
        found.append(
            (
                cpu_of(launcher.nursery_pid),
                cpu_of(launcher.pids["coordinator"]),
                [memory_of(pid) for pid in nodes],
            )
        )

    with tempfile.TemporaryDirectory() as folder:
        mesh = LocalMesh(
            settings,
            nodes=plan.nodes,
            dim=plan.dim,
            referee=Referee(plan, target=None, rounds=1, report=lambda _: None),
            folder=Path(folder),
            started=started,
        )
        outcome = asyncio.run(mesh.run())
    nursery, coordinator, memory = found[0]
    return Forked(
        nodes_cpu=sum(each.cpu for each in outcome.ready.values()),
        nursery_cpu=nursery,
        coordinator_cpu=coordinator,
        wall=outcome.ready_seconds,
        memory=Memory(
            fmean(each.rss for each in memory),
            fmean(each.pss for each in memory),
            fmean(each.uss for each in memory),
        ),
    )


def cpu_of(pid: int) -> float:
    """User and system time of a process so far."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def memory_of(pid: int) -> Memory:
    """Memory of a process now."""
    full = psutil.Process(pid).memory_full_info()
    return Memory(full.rss / MIB, full.pss / MIB, full.uss / MIB)


def table(turns: list[tuple[Alone, Forked]]) -> str:
    """The figures as markdown, with the command and the machine."""

    def mid(figure: Callable[[Alone, Forked], float]) -> float:
        return median(figure(one, many) for one, many in turns)

    ratio = mid(lambda one, many: many.cpu / one.cpu)
    spread = sorted(many.cpu / one.cpu for one, many in turns)
    return f"""# Start-up of a mesh, and memory a node

`python {" ".join([Path(sys.argv[0]).name, *sys.argv[1:]])}`, `{METHOD}` on heart, \
{TOPOLOGY} and path:2, {os.cpu_count()} cores, {platform.machine()}, \
Python {platform.python_version()}.
Medians of {len(turns)} turns, warm caches. CPU is user and system time until ready.

| until ready | one node alone | 25 nodes, nursery |
| --- | ---: | ---: |
| CPU, s | {mid(lambda a, _: a.cpu):.2f} | {mid(lambda _, f: f.cpu):.2f} |
| of it the nodes, s | {mid(lambda a, _: a.cpu):.2f} | {mid(lambda _, f: f.nodes_cpu):.2f} |
| of it the nursery, s | | {mid(lambda _, f: f.nursery_cpu):.2f} |
| a node, ms | {mid(lambda a, _: a.cpu) * 1e3:.0f} \
| {mid(lambda _, f: f.nodes_cpu) / 25 * 1e3:.1f} |
| beside it the coordinator, s | | {mid(lambda _, f: f.coordinator_cpu):.2f} |
| wall, s | {mid(lambda a, _: a.wall):.2f} | {mid(lambda _, f: f.wall):.2f} |
| RSS a node, MiB | {mid(lambda a, _: a.memory.rss):.1f} | {mid(lambda _, f: f.memory.rss):.1f} |
| PSS a node, MiB | {mid(lambda a, _: a.memory.pss):.1f} | {mid(lambda _, f: f.memory.pss):.1f} |
| USS a node, MiB | {mid(lambda a, _: a.memory.uss):.1f} | {mid(lambda _, f: f.memory.uss):.1f} |

{"PASS" if ratio <= ALLOWED else "FAIL"}: 25 nodes take {ratio:.2f} times the CPU of one alone \
({spread[0]:.2f} to {spread[-1]:.2f}), allowed: {ALLOWED:g}
"""


if __name__ == "__main__":
    sys.exit(main())
