"""Seconds, packets and bytes to the target over networks of different kinds: 25 hosts, heart.

One process and one network namespace a host; packets and bytes are the kernel's. Every run is
whole: rounds until the worst node's f(theta_i) - f* is at most 1e-7, none of it estimated. A run
goes on for up to two blocks of ten rounds after that; its seconds are scaled to the target by the
share of the nodes' computing and waiting that lies before it. Delays are one way: each exchange
crosses a link once. A rate is that of each link, in each direction.

Finished runs are rows of networks.csv and are not made again: after Ctrl-C the same command goes
on. Needs root (docs/operating.md). Only the last lines, table and figure: --draw.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

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
# With what each is called in the tables.
METHODS = {
    "ssda": "ssda",
    "msda": "msda",
    "dlag": "dlag, tokens",
    "dlag:promise=2": "dlag, promise",
    "dlag:predict=linear,promise=3": "dlag, promise and prediction",
    "mdlag": "mdlag, tokens",
    "mdlag:promise=2": "mdlag, promise",
    "lazy-admm:promise=off": "lazy-admm, tokens",
    "lazy-admm:promise=3": "lazy-admm, promise",
    "adfs:edges=20": "adfs",
    "tree": "tree",
}
DRAWN = ("ssda", "dlag", "dlag:promise=2", "dlag:predict=linear,promise=3", "tree")
PROMISED = ("dlag:promise=2", "dlag:predict=linear,promise=3")
DELAYS = {"delay=0ms": 0.0, "delay=5ms": 5.0, "delay=20ms": 20.0, "delay=100ms": 100.0}  # ms
RATES = {  # Mbit/s; the last: none
    "rate=20kbit": 0.02,
    "rate=100kbit": 0.1,
    "rate=10mbit": 10.0,
    "delay=0ms": 1_000.0,
}
NETWORKS = tuple(dict.fromkeys([*DELAYS, *RATES]))
NO_DELAY_AT = 1.5  # where a logarithmic axis shows 0
GRID, STAR = "grid:5x5", "star:25"
SEEDS = range(5)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a method is to run."""

    topology: str
    network: str
    seed: int
    method: str


def places() -> list[Place]:
    """Every run of the tables: those with few packets to spare on five seeds."""
    found = [Place(GRID, network, 0, method) for network in NETWORKS for method in METHODS]
    for network in ("delay=0ms", "delay=20ms", "delay=100ms"):
        for seed in SEEDS:
            found += [Place(GRID, network, seed, method) for method in ("ssda", *PROMISED)]
    for network in ("delay=0ms", "delay=100ms", "rate=20kbit"):
        found += [Place(STAR, network, 0, method) for method in ("ssda", "dlag", *PROMISED)]
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Row:
    """One whole run."""

    topology: str
    network: str
    seed: int
    method: str
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
    """Make the runs that are missing, then the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", default=NETWORKS, help="only these")
    parser.add_argument("--topologies", nargs="+", default=(GRID, STAR), help="only these")
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS, help="only these")
    parser.add_argument("--draw", action="store_true", help="no runs")
    options = parser.parse_args()
    threadpool_limits(1)  # as in every node
    done = {Place(row.topology, row.network, row.seed, row.method) for row in read()}
    for place in () if options.draw else places():
        asked = place.network in options.networks and place.topology in options.topologies
        if asked and place.seed in options.seeds and place not in done:
            make(place)
    rows = read()
    TABLE.write_text(page(rows), encoding="utf-8")
    print(TABLE.read_text(encoding="utf-8"))
    draw([row for row in rows if row.topology == GRID and row.seed == 0])


def make(place: Place) -> None:
    """One run, appended to the file."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        settings = RunSettings(
            method=place.method, topology=place.topology, shards="uneven:1,10", seed=place.seed
        )
        request = RunRequest(
            settings=settings,
            mode="mesh",
            target=TARGET,
            out=Path(folder) / "run",
            network=parse_network(place.network),
        )
        row = row_of(Run(request).execute(), place, load)
    fresh = not CSV.exists()
    with CSV.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)])
        if fresh:
            writer.writeheader()
        writer.writerow(asdict(row))
    print(
        f"{place.topology:9s} {place.network:13s} {place.seed} {place.method:30s} "
        f"{row.seconds_to_target:8.2f} s, {row.kernel_packets:7d} packets, load {load:.1f}",
        flush=True,
    )


def row_of(result: RunResult, place: Place, load: float) -> Row:
    """What the run cost; it must have met its target."""
    summary, records = result.summary, result.records
    reached = summary["rounds_to_target"]
    assert reached is not None, f"{place}: {summary['suboptimality']}"
    exchanges = np.strings.str_len(records.exchanges).max(axis=1)
    wire = summary["network"]
    return Row(
        **asdict(place),
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


def page(rows: Sequence[Row]) -> str:
    """The page of results."""
    first = [row for row in rows if row.topology == GRID and row.seed == 0]
    star = [row for row in rows if row.topology == STAR]
    shas: dict[tuple[str, int, str], set[str]] = {}
    for row in rows:
        shas.setdefault((row.topology, row.seed, row.method), set()).add(row.theta_sha256)
    apart = [" ".join(map(str, where)) for where, found in shas.items() if len(found) > 1]
    exchanges = {METHODS[row.method]: row.exchanges_to_target for row in first}
    loads = [row.load for row in rows] or [0.0]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Linux {platform.release()}"

    def times_delay(row: Row) -> str:
        floor = row.exchanges_to_target * DELAYS[row.network] / 1e3
        return f"{row.seconds_to_target / floor:.2f}"

    slow = [row for row in first if DELAYS.get(row.network)]
    return f"""# Time, packets and bytes to the target over networks

`benchmarks/networks.py`, {machine}.

25 nodes until the worst of them is within {TARGET:g}, heart, uneven:1,10, one process and one
network namespace a node, keys on. Whole runs, nothing estimated, one of each.
Delays are one way; a rate is that of each link, in each direction. {min(loads):.0f} to
{max(loads):.0f} processes wanted the machine's cores in the minute before a run.

## Packets and bytes against SSDA

What the kernel counted on the nodes' mesh interfaces in the whole run, as a share of what it
counted for SSDA on the same network and seed; Ethernet, IP and TCP headers, acknowledgements,
opening and heartbeats included. {GRID}, seeds 0 to {max(SEEDS)}: packets, then bytes; the largest
of the row in bold.

{shares_by_seed(rows)}

## Seconds on {GRID}, seed 0

{grid(first, lambda row: f"{row.seconds_to_target:.2f}")}

Exchanges to the target: {", ".join(f"{m} {count(exchanges[m])}" for m in exchanges)}. Where
everybody speaks in each of them, each takes at least one delay. The seconds above as multiples of
that (exchanges x one-way delay):

{grid(slow, times_delay)}

In kB and packets:

{grid(first, on_wire)}

## {STAR}, seed 0

Seconds, and kB and packets:

{grid(star, lambda row: f"{row.seconds_to_target:.2f}")}

{grid(star, on_wire)}

Runs whose final bits differ from network to network: {", ".join(apart) or "none"}. Packets that the
emulator could not take in time: {sum(row.dropped for row in rows)}.
"""


def shares_by_seed(rows: Sequence[Row]) -> str:
    """The table of shares, a line for each network and method."""
    by_place = {(r.network, r.seed, r.method): r for r in rows if r.topology == GRID}
    lines = [["network", "method", *(f"seed {seed}" for seed in SEEDS)]]
    lines.append(["---", "---", *["---:" for _ in SEEDS]])
    for network in ("delay=0ms", "delay=20ms", "delay=100ms"):
        for method in PROMISED:
            pairs = [
                (by_place.get((network, seed, method)), by_place.get((network, seed, "ssda")))
                for seed in SEEDS
            ]
            shares = [
                None
                if own is None or base is None
                else (
                    own.kernel_packets / base.kernel_packets,
                    own.kernel_bytes / base.kernel_bytes,
                )
                for own, base in pairs
            ]
            worst = max((each for each in shares if each), default=None)
            cells = [
                "-"
                if each is None
                else f"{'**' * (each is worst)}{each[0]:.3f}{'**' * (each is worst)}, {each[1]:.3f}"
                for each in shares
            ]
            lines.append([network, METHODS[method], *cells])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def on_wire(row: Row) -> str:
    """Kilobytes and packets."""
    return f"{count(round(row.kernel_bytes / 1e3))}, {count(row.kernel_packets)}"


def grid(rows: Sequence[Row], cell: Callable[[Row], str]) -> str:
    """A markdown table, one line a method and one column a network."""
    networks = [each for each in NETWORKS if any(row.network == each for row in rows)]
    lines = [["method", *networks], ["---", *["---:"] * len(networks)]]
    for method, name in METHODS.items():
        found = {row.network: row for row in rows if row.method == method}
        if found:
            cells = [cell(found[each]) if each in found else "-" for each in networks]
            lines.append([name, *cells])
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
            caption="Whole runs, one of each, 25 processes on 2 cores: "
            "what lies left and far right is mostly computing.\n"
            "Delay is one way, on every link and in both directions; the rate is that of each "
            "link, in each direction.",
        )
        left, right = figure.subplots(1, 2, sharey=True)
        for i, method in enumerate(DRAWN):
            color, dashes = stroke(i)
            seconds = {row.network: row.seconds_to_target for row in rows if row.method == method}
            for axes, networks in ((left, DELAYS), (right, RATES)):
                known = [each for each in networks if each in seconds]
                axes.plot(
                    [networks[each] or NO_DELAY_AT for each in known],
                    [seconds[each] for each in known],
                    color=color,
                    ls=dashes,
                    marker="o",
                    ms=4.5,
                    label=METHODS[method],
                )
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
    slow = {row.method: row for row in rows if row.network == "delay=100ms"}
    if not {"ssda", *PROMISED} <= slow.keys():
        return "Time to the target over networks"
    base, lazy = slow["ssda"], slow[PROMISED[1]]
    seconds = lazy.seconds_to_target / base.seconds_to_target
    packets = lazy.kernel_packets / base.kernel_packets
    shares = f"{seconds:.2f} of SSDA's seconds, {packets:.2f} of its packets"
    return f"Promise and prediction at 100 ms: {shares}"


if __name__ == "__main__":
    main()
