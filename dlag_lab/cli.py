"""`dlag`: run a mesh, simulate one, look at what came out."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from threadpoolctl import threadpool_limits

from coordinator.options import LogLevel, takes_run_settings
from coordinator.plan import RunSettings
from dlag_lab.compare_cli import compare
from dlag_lab.executing import execute, request_for, show
from dlag_lab.fleet_cli import prepare, referee
from dlag_lab.folder import RunFolder
from dlag_lab.network.spec import parse_network
from dlag_lab.options import (
    Checkpoint,
    Figures,
    Force,
    Heartbeat,
    Json,
    Network,
    Out,
    Restarts,
    Rounds,
    Target,
    Timeout,
    Watch,
)
from dlag_lab.paper.cli import app as paper
from dlag_lab.predict_cli import predict
from dlag_lab.replan import replan
from dlag_lab.resuming import settings_of
from dlag_lab.running import ask_to_stop
from dlag_lab.runs import DEFAULT_RESTARTS, RunRequest
from dlag_lab.theory_cli import theory
from dlag_lab.watch.cli import watch as watch_mesh
from dlag_node.doctor.cli import command as doctor
from dlag_node.net.sockets import HEARTBEAT
from dlag_node.outputs import to_folder
from dlag_node.process import run_command, set_up_logging
from dlag_node.trust.cli import app as keys

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Decentralized learning with lazy and approximate dual gradients, on a mesh of processes.",
    epilog="Exit codes: 0 done, 1 failed, 2 wrong settings, 3 target not reached, "
    "130 interrupted, 143 terminated.",
)

Shuffle = Annotated[
    int | None,
    typer.Option(help="Draw the order of events from this seed; the bits stay the same."),
]


@app.command("run")
@takes_run_settings
def run_mesh(
    settings: RunSettings,
    rounds: Rounds = None,
    target: Target = None,
    out: Out = None,
    force: Force = False,
    json: Json = None,
    figures: Figures = True,
    neighbor_timeout: Timeout = 120.0,
    heartbeat: Heartbeat = HEARTBEAT,
    checkpoint: Checkpoint = 0,
    restarts: Restarts = DEFAULT_RESTARTS,
    network: Network = None,
    watch: Watch = None,
    log_level: LogLevel = "warning",
) -> None:
    """Train on a mesh of real processes: a coordinator and one node process per worker."""
    set_up_logging("dlag", log_level)
    request = request_for(settings, "mesh", rounds=rounds, target=target, out=out, force=force)
    request = replace(
        request,
        neighbor_timeout=neighbor_timeout,
        heartbeat=heartbeat,
        checkpoint=checkpoint,
        restarts=restarts,
        network=None if network is None else parse_network(network),
        watch=watch,
    )
    execute(request, json=json, figures=figures)


@app.command("resume")
def resume(
    folder: Annotated[Path, typer.Argument(help="The folder of a run with --checkpoint.")],
    json: Json = None,
    figures: Figures = True,
    neighbor_timeout: Timeout = 120.0,
    heartbeat: Heartbeat = HEARTBEAT,
    restarts: Restarts = DEFAULT_RESTARTS,
    watch: Watch = None,
    log_level: LogLevel = "warning",
) -> None:
    """Go on with an interrupted run, every node from its last checkpoint: the same bits."""
    set_up_logging("dlag", log_level)
    settings, target, checkpoint = settings_of(folder)
    request = RunRequest(
        settings=settings,
        mode="mesh",
        target=target,
        out=folder,
        neighbor_timeout=neighbor_timeout,
        heartbeat=heartbeat,
        checkpoint=checkpoint,
        restarts=restarts,
        resume=True,
        watch=watch,
    )
    execute(request, json=json, figures=figures)


@app.command("replan")
def replan_run(
    folder: Annotated[Path, typer.Argument(help="The folder of a run with --checkpoint.")],
    without: Annotated[str, typer.Option(help="Nodes that never come back, as in 7,9.")],
    out: Annotated[
        Path | None,
        typer.Option(
            callback=to_folder, help="Folder of the new run [default: FOLDER-without-7-9]."
        ),
    ] = None,
) -> None:
    """Plan an interrupted run anew without some of its nodes; dlag resume goes on with the rest.

    Their samples leave the problem. The others begin where they were, if the method can.
    """
    threadpool_limits(1)
    out = out or folder.with_name(f"{folder.name}-without-{without.replace(',', '-')}")
    found = replan(folder, without, out)
    lost, before = found.samples_lost, found.samples_before
    typer.echo(f"lost: nodes {list(found.lost)}, and {lost} of {before} samples with them")
    typer.echo(f"left: {len(found.formerly)} nodes, ids close up: were {list(found.formerly)}")
    typer.echo(
        f"they begin where they were after round {found.rounds}"
        if found.warm
        else "they begin at 0: " + ("no round was saved" if not found.rounds else "by this method")
    )
    typer.echo(f"to go on: dlag resume {out}")


@app.command("stop")
def stop(
    folder: Annotated[Path, typer.Argument(help="The folder of a run that is under way.")],
) -> None:
    """Ask a run to stop: all nodes do, after the same round, and the result is written."""
    pid = ask_to_stop(folder)
    typer.echo(f"asked process {pid} to stop the run in {folder}")


@app.command("simulate")
@takes_run_settings
def simulate(
    settings: RunSettings,
    rounds: Rounds = None,
    target: Target = None,
    out: Out = None,
    force: Force = False,
    json: Json = None,
    figures: Figures = True,
    shuffle: Shuffle = None,
) -> None:
    """The same run in one process without sockets: the same bits, counts and folder."""
    request = request_for(settings, "simulate", rounds=rounds, target=target, out=out, force=force)
    execute(replace(request, shuffle=shuffle), json=json, figures=figures)


@app.command("report")
def report(folder: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Table and figures again, from the run folder alone."""
    show(RunFolder(folder), figures=True)


app.add_typer(keys, name="keys")
app.command("prepare")(prepare)
app.command("referee")(referee)
app.command("compare")(compare)
app.command("theory")(theory)
app.command("predict")(predict)
app.command("watch")(watch_mesh)
app.command("doctor")(doctor)
app.add_typer(paper, name="paper")


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run_command(app, sys.argv[1:], "dlag"))
