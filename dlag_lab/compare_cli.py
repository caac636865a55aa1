"""`dlag compare`: several methods on one problem, from flags to table, csv and figures."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from coordinator.options import LogLevel, takes_run_settings
from coordinator.plan import RunSettings
from dlag_lab.compare import Comparison, Outcome, base_of, labels, meanings, split_methods
from dlag_lab.compare_table import Row, console_table, markdown, notes, row_of, write_csv
from dlag_lab.compare_view import CompareView
from dlag_lab.folder import write_json
from dlag_lab.options import (
    DEFAULT_TARGET,
    EXIT_NOT_REACHED,
    Figures,
    Rounds,
    Target,
    Timeout,
)
from dlag_lab.report import print_whole
from dlag_lab.result import RunResult
from dlag_lab.runs import Interrupted
from dlag_lab.units import small, some
from dlag_node.process import EXIT_INTERRUPTED, EXIT_TERMINATED, set_up_logging

Methods = Annotated[
    str,
    typer.Option(
        envvar="DLAG_METHODS",
        help="What to compare: ssda,dlag:gamma=1e-5,D=20,msda. A comma separates where a method's "
        "name follows; a semicolon always does.",
    ),
]
Seeds = Annotated[int, typer.Option(help="Run each method with N seeds, from --seed on.")]
Mode = Annotated[
    Literal["simulate", "mesh"],
    typer.Option(help="One process without sockets, or real processes: the same counts."),
]
Base = Annotated[
    str | None, typer.Option(help="The method that ratios refer to [default: the first].")
]
Out = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_OUT", help="Folder of the comparison [default: runs/compare-TIME]."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Run again what is finished; without it that is kept.")
]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write every run's row as JSON to this file too.")
]


@partial(takes_run_settings, without=frozenset({"method"}))
def compare(
    settings: RunSettings,
    methods: Methods,
    seeds: Seeds = 1,
    mode: Mode = "simulate",
    base: Base = None,
    rounds: Rounds = None,
    target: Target = None,
    out: Out = None,
    force: Force = False,
    json: Json = None,
    figures: Figures = True,
    neighbor_timeout: Timeout = 120.0,
    log_level: LogLevel = "warning",
) -> None:
    """Several methods on the same problem, graph and seeds: what each costs to the target."""
    set_up_logging("dlag", log_level)
    chosen = split_methods(methods)
    against = base_of(chosen, base)
    if target is None and rounds is None:
        target = DEFAULT_TARGET
    comparison = Comparison(
        methods=chosen,
        settings=settings if rounds is None else replace(settings, rounds=rounds),
        seeds=seeds,
        mode=mode,
        target=target,
        out=out or Path("runs") / f"compare-{datetime.now():%Y%m%d-%H%M%S}",
        force=force,
        neighbor_timeout=neighbor_timeout,
    )
    outcomes = _execute(comparison)
    rows = [row_of(outcome) for outcome in outcomes]
    paths = _write(comparison, rows, against)
    if json is not None:
        write_json(json, {"base": against, "target": target, "rows": [asdict(r) for r in rows]})
    if figures:
        paths += _draw(comparison, outcomes, rows, against)
    _show(comparison, outcomes, rows, against, paths)
    if not any(outcome.reached for outcome in outcomes):
        raise typer.Exit(EXIT_NOT_REACHED)


def _execute(comparison: Comparison) -> list[Outcome]:
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


def _write(comparison: Comparison, rows: Sequence[Row], base: str) -> list[Path]:
    paths = [comparison.out / "compare.csv", comparison.out / "table.md"]
    write_csv(paths[0], rows)
    paths[1].write_text(markdown(rows, base, _heading(comparison, base)), encoding="utf-8")
    return paths


def _draw(
    comparison: Comparison, outcomes: Sequence[Outcome], rows: Sequence[Row], base: str
) -> list[Path]:
    from dlag_lab import figures  # brings matplotlib: only when something is drawn

    called = labels(comparison.methods)
    groups: dict[str, list[RunResult]] = {}
    for outcome in outcomes:
        if outcome.result is not None:
            groups.setdefault(called[outcome.method], []).append(outcome.result)
    if not groups:
        return []
    explained = [line for line in meanings(comparison.methods) if " #" in line]
    if comparison.seeds == 1:
        single = [(label, runs[0]) for label, runs in groups.items()]
        curves = figures.convergence(single, explained)
    else:
        curves = figures.bands(list(groups.items()), explained)
    paths = figures.save(curves, comparison.out / "figures", "convergence")
    costs = figures.costs(rows, called, base=base, lines=[_heading(comparison, base), *explained])
    if costs is not None:
        paths += figures.save(costs, comparison.out / "figures", "costs")
    return paths


def _heading(comparison: Comparison, base: str) -> str:
    settings, called = comparison.settings, labels(comparison.methods)
    until = f"{settings.rounds} rounds" if comparison.target is None else small(comparison.target)
    last = settings.seed + comparison.seeds - 1
    seeds = f"seed {last}" if comparison.seeds == 1 else f"median of seeds {settings.seed}..{last}"
    return (
        f"Cost to {until} on {settings.topology}, {settings.data}, shards {settings.shards}, "
        f"{seeds}; ratios to {called[base]}"
    )


def _show(
    comparison: Comparison,
    outcomes: Sequence[Outcome],
    rows: Sequence[Row],
    base: str,
    paths: Sequence[Path],
) -> None:
    console = Console(highlight=False)
    console.print(_heading(comparison, base), style="bold", soft_wrap=True)
    console.print()
    print_whole(console, console_table(rows, base))
    kept = sum(outcome.kept for outcome in outcomes)
    said = notes(rows)
    if kept:
        said.append(f"{some(kept, 'run')} of {len(rows)} finished earlier and kept")
    for line in [*said, *map(str, paths), f"run folders: {comparison.out}"]:
        console.print(f" {line}", soft_wrap=True, markup=False)
