"""Hundreds of faults on meshes of real processes: every run ends, with the undisturbed run's bits.

Each run has its schedule of faults, drawn from its seed: nodes are killed (one, two neighbors, or
all), stopped and continued, their wires cut, slowed, torn in the middle of a frame or made to say
things twice, their disk fills up, their clock jumps. A run that ends of a full disk is resumed. Its
theta_sha256, rounds and message counts must then be those of the simulator, where nothing happens.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from coordinator.plan import RunSettings
from dlag_lab.faults.faults import possible_kinds
from dlag_lab.faults.soak import Outcome, disturbed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "soak.md"
METHODS = (
    "ssda",
    "dlag",
    "dlag:promise=2",
    "dlag:predict=linear,promise=3",
    "mdlag:promise=2",
    "mdlag-all:promise=2",
    "lazy-admm:promise=3",
    "tree",
    "adfs:edges=5",
)
TOPOLOGIES = ("grid:3x3", "grid:5x5")
ROUNDS = {"tree": 120}  # of the others: 300


@dataclass(frozen=True, slots=True)
class Disturbed:
    """One run of the soak, and what became of it."""

    settings: RunSettings
    outcome: Outcome


def main() -> int:
    """Run all, print the table, write it down; 0 where nothing differs."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--faults", type=int, default=50, help="due in each run")
    options.add_argument("--seeds", type=int, default=1)
    options.add_argument("--methods", nargs="+", default=METHODS)
    options.add_argument("--topologies", nargs="+", default=TOPOLOGIES)
    options.add_argument("--no-results", action="store_true", help="write nothing down")
    asked = options.parse_args()
    logging.disable(logging.WARNING)
    kinds = possible_kinds()
    runs = []
    for topology in asked.topologies:
        for method in asked.methods:
            for seed in range(asked.seeds):
                rounds = ROUNDS.get(method, 300)
                settings = RunSettings(method=method, topology=topology, rounds=rounds, seed=seed)
                runs.append(soak(settings, faults=asked.faults, kinds=kinds))
                print(line(runs[-1]), flush=True)
    report = table(runs, kinds)
    print(report)
    if not asked.no_results:
        RESULTS.write_text(report, encoding="utf-8")
    return 1 if any(run.outcome.wrong for run in runs) else 0


def soak(settings: RunSettings, *, faults: int, kinds: Sequence[str]) -> Disturbed:
    """One run; what went wrong is kept in its folder, for who must find out why."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    outcome = disturbed(
        settings, folder, faults=faults, kinds=kinds, checkpoint=1 + settings.seed % 3
    )
    if not outcome.wrong:
        shutil.rmtree(folder)
    return Disturbed(settings, outcome)


def line(run: Disturbed) -> str:
    """One run in one line."""
    settings, outcome = run.settings, run.outcome
    verdict = f"DIFFERS in {', '.join(outcome.wrong)}" if outcome.wrong else "the same bits"
    return (
        f"{settings.topology} {settings.method} seed {settings.seed}: "
        f"{outcome.faults.total()} faults, {outcome.killed} processes killed, "
        f"{outcome.resumes} resumes, {outcome.seconds:.0f} s: {verdict}"
    )


def table(runs: Sequence[Disturbed], kinds: Sequence[str]) -> str:
    """The figures as markdown, with the command and the machine."""
    total: Counter[str] = sum((run.outcome.faults for run in runs), Counter())
    same = sum(not run.outcome.wrong for run in runs)
    head = f"""# Faults on meshes of real processes

`python {" ".join([Path(sys.argv[0]).name, *sys.argv[1:]])}`, {os.cpu_count()} cores, \
{platform.machine()}, Python {platform.python_version()}.

{total.total()} faults in {len(runs)} runs; {same} of {len(runs)} ended with the bits, rounds, \
messages, bytes and gradients of the undisturbed run.

"""
    return head + "".join(by_kind(total, kinds)) + "\n" + "".join(by_run(runs))


def by_kind(total: Counter[str], kinds: Sequence[str]) -> Iterator[str]:
    """How many faults of each kind were done."""
    yield "| fault | times |\n| --- | ---: |\n"
    for kind in kinds:
        yield f"| {kind} | {total[kind]} |\n"


def by_run(runs: Sequence[Disturbed]) -> Iterator[str]:
    """One line a run."""
    yield "| topology | method | seed | faults | killed | resumes | seconds | same bits |\n"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |\n"
    for run in runs:
        settings, outcome = run.settings, run.outcome
        yield (
            f"| {settings.topology} | {settings.method} | {settings.seed} "
            f"| {outcome.faults.total()} | {outcome.killed} | {outcome.resumes} "
            f"| {outcome.seconds:.0f} "
            f"| {'no: ' + ', '.join(outcome.wrong) if outcome.wrong else 'yes'} |\n"
        )


if __name__ == "__main__":
    sys.exit(main())
