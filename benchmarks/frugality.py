"""What a node takes of its device: memory, CPU a round, idle CPU, start-up; also under limits.

Three nodes on path:3, heart data, each started by hand as on a device of its own. The figures are
node 0's, a leaf, and node 1's, the root of the tree of `tree`. Limits are control groups, one for
each node (version 2, or 1 where that is what is mounted); they need root.

    python benchmarks/frugality.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "frugality.md"
CGROUPS = Path("/sys/fs/cgroup")
MIB = float(1 << 20)
ROUNDS = 500
IDLE_SECONDS = 10.0
PATIENCE = 300.0  # seconds, for whatever a busy machine and a quota do to a start
MOST_RSS = {"tree": 60.0, "dlag": 180.0}  # MiB of a leaf: what docs/edge.md promises
MOST_IDLE = 0.01  # of a core


@dataclass(frozen=True, slots=True)
class Limit:
    """Under which conditions a node runs."""

    name: str
    nice: int = 0
    cpu: float | None = None  # of a core
    memory: int | None = None  # MiB


@dataclass(frozen=True, slots=True)
class Figures:
    """What one node took."""

    node: int
    start_seconds: float
    start_cpu: float
    round_cpu: float  # seconds
    seconds: float  # of all rounds
    peak: float  # MiB
    rss: float = 0.0
    pss: float = 0.0
    uss: float = 0.0
    idle: float = 0.0  # of a core


LIMITS = (
    Limit("as it is"),
    Limit("25 % of a core", cpu=0.25),
    Limit("96 MiB", memory=96),
    Limit("nice 19", nice=19),
)


def main() -> int:
    """Measure, print, write down; 1 where a bound does not hold."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="tree as it is; nothing written")
    quick = options.parse_args().quick
    lines, held = [], True
    for method in ("tree",) if quick else ("tree", "dlag"):
        for limit in LIMITS[:1] if quick else LIMITS:
            if limit.memory is not None and method != "tree":
                limit = replace(limit, name="192 MiB", memory=192)
            try:
                found = measured(method, limit)
            except PermissionError as exc:
                lines.append(f"| `{method}` | {limit.name} | not measured: {exc} |")
                continue
            for each in found:
                lines.append(row(method, limit, each))
                print(lines[-1], flush=True)
            leaf = found[0]
            held &= limit.name != LIMITS[0].name or leaf.rss <= MOST_RSS[method]
            held &= leaf.idle <= MOST_IDLE
    if not quick:
        RESULTS.write_text(report(lines, held), encoding="utf-8")
    print("PASS" if held else "FAIL", f"bounds: {MOST_RSS} MiB resident, {MOST_IDLE:.0%} idle")
    return 0 if held else 1


def measured(method: str, limit: Limit) -> list[Figures]:
    """Two meshes: one that runs to its end, and one in which a neighbor has fallen silent."""
    worked = work(method, limit)
    return [
        replace(each, **idle)  # type: ignore[arg-type]
        for each, idle in zip(worked, idled(method, limit), strict=True)
    ]


def work(method: str, limit: Limit) -> list[Figures]:
    """All rounds of a mesh; start-up is measured on nodes that start one after the other."""
    with ExitStack() as stack:
        coordinator, address = boss(stack, method, ROUNDS)
        nodes, starts = [], []
        for i in range(3):
            began = time.perf_counter()
            nodes.append(node(stack, address, i, limit))
            await_line(nodes[-1], "neighbors reach us at")
            starts.append((time.perf_counter() - began, cpu_of(nodes[-1].pid)))
        found = []
        for i in (0, 1):
            seconds = float(re.search(r"in ([0-9.]+) s", await_line(nodes[i], "done:"))[1])  # type: ignore[index]
            _, status, usage = os.wait4(nodes[i].pid, 0)
            nodes[i].returncode = os.waitstatus_to_exitcode(status)
            if nodes[i].returncode:
                raise SystemExit(f"node {i} failed under {limit.name}")
            cpu = usage.ru_utime + usage.ru_stime - starts[i][1]
            found.append(Figures(i, *starts[i], cpu / ROUNDS, seconds, usage.ru_maxrss / 1024.0))
        coordinator.wait(PATIENCE)
        return found


def idled(method: str, limit: Limit) -> list[dict[str, float]]:
    """Nodes 0 and 1 at the barrier, while node 2 says nothing."""
    with ExitStack() as stack:
        coordinator, address = boss(stack, method, 10**6)
        nodes = [node(stack, address, i, limit) for i in range(3)]
        await_line(coordinator, "all 3 nodes have started")
        time.sleep(2.0)  # rounds, so that everything that a node loads is loaded
        os.kill(nodes[2].pid, signal.SIGSTOP)
        await_line(nodes[1], "waiting for neighbors")
        before = [cpu_of(each.pid) for each in nodes]
        time.sleep(IDLE_SECONDS)
        found = []
        for i in (0, 1):
            memory = psutil.Process(nodes[i].pid).memory_full_info()
            found.append(
                {
                    "idle": (cpu_of(nodes[i].pid) - before[i]) / IDLE_SECONDS,
                    "rss": memory.rss / MIB,
                    "pss": memory.pss / MIB,
                    "uss": memory.uss / MIB,
                }
            )
        return found


def boss(stack: ExitStack, method: str, rounds: int) -> tuple[subprocess.Popen[str], str]:
    """A coordinator, and where it listens."""
    flags = ("--topology", "path:3", "--method", method, "--rounds", str(rounds))
    process = started(stack, "dlag-coordinator", *flags, "--bind", "tcp://127.0.0.1:*")
    line = await_line(process, "listening on")
    return process, line.split("listening on ")[1].split()[0]


def node(stack: ExitStack, address: str, i: int, limit: Limit) -> subprocess.Popen[str]:
    """One node, within its limits from its first instruction on."""
    groups = stack.enter_context(control_groups(i, limit))

    def enter() -> None:
        os.nice(limit.nice)
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    return started(stack, "dlag-node", "--coordinator", address, "--id", str(i), enter=enter)


def started(stack: ExitStack, name: str, *words: str, enter=None) -> subprocess.Popen[str]:  # type: ignore[no-untyped-def]
    """One of the console scripts, running this tree's code; killed at the latest at the end."""
    process = subprocess.Popen(
        [sys.executable, str(Path(sys.executable).with_name(name)), *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *extra()])},
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=enter,
    )
    stack.callback(ended, process)
    return process


def extra() -> list[str]:
    """What the caller wants on the path beside this tree."""
    return [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]


def ended(process: subprocess.Popen[str]) -> None:
    """Gone, whatever it was doing."""
    if process.returncode is None and process.poll() is None:
        process.kill()
        process.wait()
    assert process.stderr is not None
    process.stderr.close()


def await_line(process: subprocess.Popen[str], words: str) -> str:
    """The first line of its log with these words."""
    assert process.stderr is not None
    for line in process.stderr:
        if words in line:
            return line
    raise SystemExit(f"{process.args}: {words!r} never came")


@contextmanager
def control_groups(i: int, limit: Limit) -> Iterator[list[Path]]:
    """Fresh groups with the limits in them, removed afterwards."""
    if (CGROUPS / "cgroup.controllers").exists():
        group = CGROUPS / f"dlag-frugality-{os.getpid()}-{i}"
        wanted = {
            group / "cpu.max": limit.cpu and f"{limit.cpu * 100_000:.0f} 100000",
            group / "memory.max": limit.memory and str(limit.memory << 20),
        }
    else:
        name = f"dlag-frugality-{os.getpid()}-{i}"
        wanted = {
            CGROUPS / "cpu" / name / "cpu.cfs_quota_us": limit.cpu and f"{limit.cpu * 100_000:.0f}",
            CGROUPS / "memory" / name / "memory.limit_in_bytes": limit.memory
            and str(limit.memory << 20),
        }
    groups = sorted({file.parent for file, value in wanted.items() if value})
    for group in groups:
        group.mkdir()
    for file, value in wanted.items():
        if value:
            file.write_text(value)
    try:
        yield groups
    finally:
        for group in groups:
            for _ in range(100):  # its process may still be on its way out
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.1)


def cpu_of(pid: int) -> float:
    """User and system time of a process so far."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def row(method: str, limit: Limit, f: Figures) -> str:
    """One line of the table."""
    role = "leaf" if f.node == 0 else "root"
    return (
        f"| `{method}` | {limit.name} | {role} | {f.rss:.0f} | {f.pss:.0f} | {f.uss:.0f} "
        f"| {f.peak:.0f} | {f.start_seconds:.1f} | {f.start_cpu:.2f} | {f.round_cpu * 1e3:.2f} "
        f"| {f.seconds:.1f} | {f.idle:.2%} |"
    )


def report(lines: list[str], held: bool) -> str:
    """The figures as markdown."""
    load = os.getloadavg()[0]
    return f"""# What a node takes of its device

`python benchmarks/frugality.py`, heart on path:3, {ROUNDS} rounds, {os.cpu_count()} cores, \
{platform.machine()}, Python {platform.python_version()}; load average at the end {load:.1f}.
Memory in MiB, while a neighbor is silent; idle is CPU in those {IDLE_SECONDS:.0f} s, of a core. \
Start-up is until the node listens for its neighbors.

| method | limit | node | RSS | PSS | USS | peak RSS | start, s | start, CPU s | CPU a round, ms \
| all rounds, s | idle |
| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(lines)}

{"PASS" if held else "FAIL"}: a leaf has at most {MOST_RSS["tree"]:.0f} MiB resident with `tree` \
and {MOST_RSS["dlag"]:.0f} with `dlag`, and idles at no more than {MOST_IDLE:.0%} of a core.
"""


if __name__ == "__main__":
    sys.exit(main())
