"""Seconds to the target over networks of different kinds: 25 hosts, one process each, heart 5x5.

Every run is whole: rounds until the worst node's f(theta_i) - f* is at most 1e-7, none of it
estimated. A run goes on for up to two blocks of ten rounds after that; its seconds are scaled to
the target by the share of the nodes' computing and waiting that lies before it. Delays are one
way: each exchange crosses a link once. A rate is that of each link, in each direction.

Finished runs are rows of networks.csv and are not made again: after Ctrl-C the same command goes
on. Needs root (docs/operating.md). Only the last lines, table and figure: --draw.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from coordinator.plan import RunSettings
from dlag_lab.figures.style import framed, look, quiet_grid, save, stroke
from dlag_lab.network.spec import parse_network
from dlag_lab.result import RunResult
from dlag_lab.runs import Run, RunRequest
from dlag_lab.units import count

ROOT = Path(__file__).resolve().parents[1]
CSV = ROOT / "benchmarks" / "results" / "networks.csv"
TABLE = ROOT / "benchmarks" / "results" / "networks.md"
IMAGES = ROOT / "docs" / "images"

TARGET = 1e-7
METHODS = ("ssda", "msda", "dlag", "lazy-admm", "tree")
DELAYS = {"delay=0ms": 0.0, "delay=5ms": 5.0, "delay=20ms": 20.0, "delay=100ms": 100.0}  # ms
RATES = {  # Mbit/s; the last: none
    "rate=20kbit": 0.02,
    "rate=100kbit": 0.1,
    "rate=10mbit": 10.0,
    "delay=0ms": 1_000.0,
}
NETWORKS = tuple(dict.fromkeys([*DELAYS, *RATES]))
NO_DELAY_AT = 1.5  # where a logarithmic axis shows 0


@dataclass(frozen=True, slots=True)
class Row:
    """One whole run."""

    network: str
    method: str
    repeat: int
    seconds_to_target: float
    seconds: float
    rounds: int
    rounds_to_target: int
    exchanges_to_target: int
    deltas_to_target: int
    kernel_bytes: int  # of the whole run, headers and acknowledgements included
    kernel_packets: int
    dropped: int
    load: float  # processes that wanted a core in the minute before
    theta_sha256: str


def main() -> None:
    """Make the runs that are missing, then the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--draw", action="store_true", help="no runs")
    options = parser.parse_args()
    threadpool_limits(1)  # as in every node
    if not options.draw:
        for repeat in range(options.repeats):
            for network in options.networks:
                for method in options.methods:
                    make(network, method, repeat)
    rows = read()
    TABLE.write_text(table(rows), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
    draw(rows)


def make(network: str, method: str, repeat: int) -> None:
    """One run, appended to the file, unless it is there."""
    wanted = (network, method, repeat)
    if any((row.network, row.method, row.repeat) == wanted for row in read()):
        return
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        request = RunRequest(
            settings=RunSettings(method=method, topology="grid:5x5", shards="uneven:1,10"),
            mode="mesh",
            target=TARGET,
            out=Path(folder) / "run",
            network=parse_network(network),
        )
        row = row_of(Run(request).execute(), network, method, repeat, load)
    fresh = not CSV.exists()
    with CSV.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        if fresh:
            writer.writeheader()
        writer.writerow(asdict(row))
    print(f"{network:14s} {method:10s} {row.seconds_to_target:8.2f} s, load {load:.1f}", flush=True)


def row_of(result: RunResult, network: str, method: str, repeat: int, load: float) -> Row:
    """What the run cost; it must have met its target."""
    summary, records = result.summary, result.records
    reached = summary["rounds_to_target"]
    assert reached is not None, f"{method} on {network}: {summary['suboptimality']}"
    exchanges = np.strings.str_len(records.exchanges).max(axis=1)
    wire = summary["network"]
    return Row(
        network=network,
        method=method,
        repeat=repeat,
        seconds_to_target=round(summary["seconds_to_target"], 4),
        seconds=round(summary["seconds"], 4),
        rounds=summary["rounds"],
        rounds_to_target=reached,
        exchanges_to_target=int(exchanges[:reached].sum()),
        deltas_to_target=summary["deltas_to_target"],
        kernel_bytes=wire["bytes"],
        kernel_packets=wire["packets"],
        dropped=wire["dropped"],
        load=round(load, 1),
        theta_sha256=summary["theta_sha256"],
    )


def read() -> list[Row]:
    """Every finished run."""
    if not CSV.exists():
        return []
    kinds = {
        field.name: {"int": int, "float": float, "str": str}[field.type] for field in fields(Row)
    }
    with CSV.open(encoding="utf-8", newline="") as file:
        return [
            Row(**{name: kinds[name](text) for name, text in line.items()})
            for line in csv.DictReader(file)
        ]


def seconds_of(rows: Sequence[Row], network: str, method: str) -> float | None:
    """The median of the repeats."""
    found = all_seconds(rows, network, method)
    return median(found) if found else None


def all_seconds(rows: Sequence[Row], network: str, method: str) -> list[float]:
    """Of every repeat."""
    return [r.seconds_to_target for r in rows if (r.network, r.method) == (network, method)]


def table(rows: Sequence[Row]) -> str:
    """The page of results."""
    methods = [each for each in METHODS if any(row.method == each for row in rows)]
    networks = [each for each in NETWORKS if any(row.network == each for row in rows)]
    slow = [each for each in networks if DELAYS.get(each)]
    exchanges = {row.method: row.exchanges_to_target for row in rows}

    def spent(method: str, network: str) -> str:
        found = seconds_of(rows, network, method)
        return "-" if found is None else f"{found:.2f}"

    def times_delay(method: str, network: str) -> str:
        found, floor = seconds_of(rows, network, method), exchanges[method] * DELAYS[network] / 1e3
        return "-" if found is None else f"{found / floor:.2f}"

    def on_wire(method: str, network: str) -> str:
        mine = [row for row in rows if (row.network, row.method) == (network, method)]
        if not mine:
            return "-"
        kilobytes = round(median(row.kernel_bytes for row in mine) / 1e3)
        return f"{count(kilobytes)}, {count(round(median(row.kernel_packets for row in mine)))}"

    apart = [m for m in methods if len({row.theta_sha256 for row in rows if row.method == m}) > 1]
    times = set(Counter((row.network, row.method) for row in rows).values())
    repeats = " or ".join(map(str, sorted(times)))
    loads = [row.load for row in rows]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}"
    return f"""# Time to the target over networks

`benchmarks/networks.py`, {machine}.

Seconds until the worst of 25 nodes is within {TARGET:g}, heart on grid:5x5, one process and one
network namespace a node. Whole runs, nothing estimated; median of {repeats}.
Delays are one way; a rate is that of each link, in each direction. {min(loads):.0f} to
{max(loads):.0f} processes wanted the machine's cores in the minute before a run.

{grid(methods, networks, spent)}

Exchanges to the target: {", ".join(f"{m} {count(exchanges[m])}" for m in methods)}. Each takes at
least one delay. The seconds above as multiples of that (exchanges x one-way delay):

{grid(methods, slow, times_delay)}

What the kernel counted on the nodes' mesh interfaces in the whole run, in kB and packets; Ethernet,
IP and TCP headers, acknowledgements, opening and heartbeats included:

{grid(methods, networks, on_wire)}

Methods whose final bits differ from network to network: {", ".join(apart) or "none"}. Packets that
the emulator could not take in time: {sum(row.dropped for row in rows)}.
"""


def grid(methods: Sequence[str], networks: Sequence[str], cell: Callable[[str, str], str]) -> str:
    """A markdown table, one line a method."""
    lines = [["method", *networks], ["---", *["---:"] * len(networks)]]
    lines += [[method, *(cell(method, network) for network in networks)] for method in methods]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw(rows: Sequence[Row]) -> None:
    """Delay on the left, rate on the right, seconds to the target on both."""
    with look():
        figure = framed(
            9.5,
            5.1,
            title=finding(rows),
            lines="Seconds until the worst of 25 nodes is within 1e-7; heart data on a 5x5 grid, "
            "one process and one network namespace a node.",
            caption="Whole runs, median and range where repeated, 25 processes on 2 cores: "
            "what lies left and far right is mostly computing.\n"
            "Delay is one way, on every link and in both directions; the rate is that of each "
            "link, in each direction.",
        )
        left, right = figure.subplots(1, 2, sharey=True)
        for i, method in enumerate(METHODS):
            color, dashes = stroke(i)
            for axes, places in ((left, DELAYS), (right, RATES)):
                points = [
                    (at or NO_DELAY_AT, found)
                    for network, at in places.items()
                    if (found := all_seconds(rows, network, method))
                ]
                at = [place for place, _ in points]
                axes.plot(
                    at,
                    [median(found) for _, found in points],
                    color=color,
                    ls=dashes,
                    marker="o",
                    ms=4.5,
                    label=method,
                )
                low, high = ([pick(found) for _, found in points] for pick in (min, max))
                axes.vlines(at, low, high, color=color, lw=4, alpha=0.3)
        for axes in (left, right):
            axes.set_xscale("log")
            axes.set_yscale("log")
            quiet_grid(axes)
            axes.minorticks_off()
        left.set_xticks([NO_DELAY_AT, 5, 20, 100], ["0", "5 ms", "20 ms", "100 ms"])
        right.set_xticks(list(RATES.values()), ["20 k", "100 k", "10 M", "no limit"])
        left.set_xlabel("one-way delay of a link")
        right.set_xlabel("rate of a link, bit/s")
        left.set_ylabel("seconds to 1e-7")
        left.set_yticks([0.1, 1, 10, 100], ["0.1", "1", "10", "100"])
        left.legend(loc="lower right", ncols=2, handlelength=1.6)
        save(figure, IMAGES, "networks")


def finding(rows: Sequence[Row]) -> str:
    """The figure's title, from its numbers."""
    slow = {method: seconds_of(rows, "delay=100ms", method) for method in METHODS}
    known = {method: spent for method, spent in slow.items() if spent is not None}
    if "ssda" not in known or len(known) < 2:
        return "Time to the target over networks"
    best = min(known, key=lambda each: known[each])
    return f"At 100 ms, {best} is {known['ssda'] / known[best]:.1f} times as fast as SSDA"


if __name__ == "__main__":
    main()
