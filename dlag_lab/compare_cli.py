"""`dlag compare`: several methods on one problem, from flags to table, csv and figures."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from coordinator.options import STOPS, LogLevel, takes_run_settings
from coordinator.plan import RunSettings
from dlag_lab.compare import Comparison, base_of, split_methods
from dlag_lab.compare_report import carry_out, draw, show, write_tables
from dlag_lab.compare_table import row_of
from dlag_lab.folder import write_json
from dlag_lab.network.spec import parse_network
from dlag_lab.options import (
    DEFAULT_TARGET,
    EXIT_NOT_REACHED,
    Figures,
    Network,
    Rounds,
    Target,
    Timeout,
)
from dlag_node.outputs import to_file
from dlag_node.process import set_up_logging

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
    Path | None,
    typer.Option(
        "--json", callback=to_file, help="Write every run's row as JSON to this file too."
    ),
]


@partial(takes_run_settings, without=frozenset({"method"}) | STOPS)
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
    network: Network = None,
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
        network=None if network is None else parse_network(network),
    )
    outcomes = carry_out(comparison)
    rows = [row_of(outcome) for outcome in outcomes]
    paths = write_tables(comparison, rows, against)
    if json is not None:
        write_json(json, {"base": against, "target": target, "rows": [asdict(r) for r in rows]})
    if figures:
        paths += draw(comparison, outcomes, rows, against)
    show(comparison, outcomes, rows, against, paths)
    if not any(outcome.reached for outcome in outcomes):
        raise typer.Exit(EXIT_NOT_REACHED)
