"""What metrics and watching cost: rounds a second of a mesh with and without who looks at it.

Two meshes as in rounds.py (25 processes on a 5x5 grid, no compute, which makes any cost look as
large as it can) run side by side and take turns at being looked at (twins.py), on the same cores as
those who look:

    nobody      nobody looks at either: what the measuring itself makes of two equal meshes
    metrics     every node serves metrics, and each is scraped as often as deploy/prometheus says
    watched     every node publishes, dlag watch listens, and one browser is told
    both        both

Those who look take CPU time from both meshes alike: that is measured by itself, and counts too. The
verdict is by the sum, at the far end of the confidence interval.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import expm1, sqrt
from pathlib import Path
from statistics import mean, stdev
from time import monotonic

from onlookers import onlookers
from threadpoolctl import threadpool_limits
from turns import DIMS, ROOT, TOPOLOGY
from twins import MESHES, SLOT_SECONDS, Mode, costs

RESULTS = ROOT / "benchmarks" / "results" / "watching.md"
MODES = (
    Mode("nobody"),
    Mode("metrics", metrics=True),
    Mode("watched", watched=True),
    Mode("both", metrics=True, watched=True),
)
ROUNDS = 18_000  # of each mesh and mode
ALLOWED = 0.05  # of the rounds a second
SIGMAS = 1.96  # 95 % of a normal distribution


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one mode, as shares of the rounds a second."""

    pairs: int  # of slots
    nodes: float  # what their rounds lose
    error: float  # of that, half of the 95 % interval
    onlookers: float  # of the machine's CPU time

    @property
    def most(self) -> float:
        """All of it, at the far end of the interval."""
        return self.nodes + self.error + self.onlookers

    @property
    def least(self) -> float:
        """All of it, at the near end."""
        return self.nodes - self.error + self.onlookers


def measure(mode: Mode, address: str, spent: Callable[[], float], *, rounds: int) -> Cost:
    """One run of the two meshes."""
    begun, before = monotonic(), spent()
    found = costs(mode, address, dim=DIMS[0], rounds=rounds)
    machine = (monotonic() - begun) * (os.cpu_count() or 1)
    return Cost(
        len(found),
        -expm1(-mean(found)),
        SIGMAS * stdev(found) / sqrt(len(found)),
        # half as many looks as at a mesh with the machine to itself
        MESHES * (spent() - before) / machine,
    )


def main() -> int:
    """Measure, print the table, write it down; 0 where the requirement is met."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=ROUNDS, help="of each mesh and mode")
    asked = options.parse_args()
    threadpool_limits(1)
    found = {}
    with onlookers() as (address, spent):
        for mode in MODES:
            cost = found[mode.name] = measure(mode, address, spent, rounds=asked.rounds)
            print(f"{mode.name}: {cost.nodes:.1%} +- {cost.error:.1%}, {cost.pairs} pairs of slots")
    report = "".join(table(found))
    print(report)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(report)
    return 0 if "PASS" in report else 1


def table(found: dict[str, Cost]) -> Iterator[str]:
    """The figures as markdown, with the command, the machine and the verdict."""
    yield f"""# What metrics and watching cost, no compute

`python {" ".join([Path(sys.argv[0]).name, *sys.argv[1:]])}`, two meshes of {TOPOLOGY},
tcp loopback, {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}.
Means over pairs of slots of {SLOT_SECONDS:g} s, with 95 % confidence intervals.

| looks | pairs | rounds/s lost by the nodes | CPU of those who look | together, at most |
| --- | ---: | ---: | ---: | ---: |
"""
    for name, cost in found.items():
        yield (
            f"| {name} | {cost.pairs} | {cost.nodes:.1%} +- {cost.error:.1%} "
            f"| {cost.onlookers:.1%} | {cost.most:.1%} |\n"
        )
    dearest = max(found.values(), key=lambda cost: cost.most)
    yield (
        f"\n{verdict([*found.values()])}: at most {dearest.most:.1%} of the rounds a second, "
        f"{ALLOWED:.0%} allowed\n"
    )


def verdict(found: Sequence[Cost]) -> str:
    """Whether the requirement is met; UNDECIDED where the intervals do not tell."""
    if all(cost.most <= ALLOWED for cost in found):
        return "PASS"
    return "FAIL" if any(cost.least > ALLOWED for cost in found) else "UNDECIDED"


if __name__ == "__main__":
    sys.exit(main())
