"""A comparison from its runs to what people see: tables, csv, figures, the words on the console."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from dlag_lab.compare import Comparison, Outcome, meanings
from dlag_lab.compare_table import Row, console_table, markdown, notes, write_csv
from dlag_lab.compare_view import CompareView
from dlag_lab.interrupts import Interrupted
from dlag_lab.result import RunResult
from dlag_lab.tables import print_whole
from dlag_lab.units import small, some
from dlag_node.process import EXIT_INTERRUPTED, EXIT_TERMINATED


def carry_out(comparison: Comparison) -> list[Outcome]:
    """Make the runs; an interruption says how to go on, and ends the process."""
    threadpool_limits(1)  # as in every node: the same bits
    outcomes: list[Outcome] = []
    runs = len(comparison.requests)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        with CompareView(runs) as view:
            for outcome in comparison.execute(view):
                outcomes.append(outcome)
                # a mesh's event loop leaves the signals as the system has them
                signal.signal(signal.SIGTERM, _terminate)
    except (Interrupted, KeyboardInterrupt) as exc:
        typer.echo(
            f"dlag: interrupted; {len(outcomes)} of {some(runs, 'run')} finished and kept in "
            f"{comparison.out}: the same command with --out {comparison.out}, without --force, "
            "goes on from there",
            err=True,
        )
        code = exc.code if isinstance(exc, Interrupted) else EXIT_INTERRUPTED
        raise typer.Exit(code) from exc
    return outcomes


def _terminate(*_: object) -> None:
    sys.exit(EXIT_TERMINATED)


def write_tables(comparison: Comparison, rows: Sequence[Row], base: str) -> list[Path]:
    """compare.csv and table.md."""
    paths = [comparison.out / "compare.csv", comparison.out / "table.md"]
    write_csv(paths[0], rows)
    paths[1].write_text(
        markdown(rows, base, comparison.called, heading(comparison, base)), encoding="utf-8"
    )
    return paths


def draw(
    comparison: Comparison, outcomes: Sequence[Outcome], rows: Sequence[Row], base: str
) -> list[Path]:
    """The figures that every comparison has."""
    from dlag_lab import figures  # brings matplotlib: only when something is drawn

    called = comparison.called
    groups: dict[str, list[RunResult]] = {}
    for outcome in outcomes:
        if outcome.result is not None:
            groups.setdefault(called[outcome.method], []).append(outcome.result)
    if not groups:
        return []
    explained = [line for line in meanings(called) if " #" in line]
    if comparison.seeds == 1:
        single = [(label, runs[0]) for label, runs in groups.items()]
        curves = figures.convergence(single, explained)
    else:
        curves = figures.bands(list(groups.items()), explained)
    paths = figures.save(curves, comparison.out / "figures", "convergence")
    costs = figures.costs(rows, called, base=base, lines=[heading(comparison, base), *explained])
    if costs is not None:
        paths += figures.save(costs, comparison.out / "figures", "costs")
    return paths


def heading(comparison: Comparison, base: str) -> str:
    """What was compared on what, in a line."""
    settings, called = comparison.settings, comparison.called
    until = f"{settings.rounds} rounds" if comparison.target is None else small(comparison.target)
    last = settings.seed + comparison.seeds - 1
    seeds = f"seed {last}" if comparison.seeds == 1 else f"median of seeds {settings.seed}..{last}"
    return (
        f"Cost to {until} on {settings.topology}, {settings.data}, shards {settings.shards}, "
        f"{seeds}; ratios to {called[base]}"
    )


def show(
    comparison: Comparison,
    outcomes: Sequence[Outcome],
    rows: Sequence[Row],
    base: str,
    paths: Sequence[Path],
) -> None:
    """The table on the console, and where everything lies."""
    console = Console(highlight=False)
    console.print(heading(comparison, base), style="bold", soft_wrap=True)
    console.print()
    print_whole(console, console_table(rows, base, comparison.called))
    kept = sum(outcome.kept for outcome in outcomes)
    said = notes(rows, comparison.called)
    if kept:
        said.append(f"{some(kept, 'run')} of {len(rows)} finished earlier and kept")
    for line in [*said, *map(str, paths), f"run folders: {comparison.out}"]:
        console.print(f" {line}", soft_wrap=True, markup=False)
