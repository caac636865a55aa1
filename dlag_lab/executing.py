"""What the commands that run something have in common: the request, its execution, the report."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import typer
from rich.console import Console
from threadpoolctl import threadpool_limits

from coordinator.plan import RunSettings
from dlag_lab.folder import RunFolder, write_json
from dlag_lab.interrupts import Interrupted
from dlag_lab.options import DEFAULT_TARGET, EXIT_NOT_REACHED
from dlag_lab.outlook import outlook
from dlag_lab.report import print_report, write_report
from dlag_lab.runs import Run, RunRequest
from dlag_node.methods import parse_method
from dlag_node.outputs import to_folder
from dlag_node.process import EXIT_INTERRUPTED, EXIT_TERMINATED


def execute(request: RunRequest, *, json: Path | None, figures: bool) -> None:
    """Run to the end, write the folder, print the report; typer.Exit where that is no success."""
    threadpool_limits(1)  # as in every node: the same bits
    # the mesh has its own way to end; a simulation ends where it stands
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_TERMINATED))
    try:
        result = Run(request, watched=_say_where).execute()
    except Interrupted as exc:
        typer.echo(f"dlag: interrupted; what there is lies in {request.out}", err=True)
        raise typer.Exit(exc.code) from exc
    except KeyboardInterrupt as exc:
        typer.echo(f"dlag: interrupted; what there is lies in {request.out}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from exc
    if json is not None:
        write_json(json, result.summary)
    show(RunFolder(request.out), figures=figures)
    if request.target is not None and result.summary["rounds_to_target"] is None:
        expected = outlook(result) or "too few to tell more"
        typer.echo(
            f"dlag: target {request.target:g} not reached in {result.rounds} rounds: {expected}",
            err=True,
        )
        raise typer.Exit(EXIT_NOT_REACHED)


def show(folder: RunFolder, *, figures: bool) -> None:
    """The report of a run folder, on the terminal and, with its figures, in the folder."""
    result = folder.load()
    paths = write_report(folder, result) if figures else []
    print_report(result, Console(), paths)


def request_for(
    settings: RunSettings,
    mode: Literal["mesh", "simulate", "referee"],
    *,
    rounds: int | None,
    target: float | None,
    out: Path | None,
    force: bool,
) -> RunRequest:
    """What was asked, with the defaults that depend on each other."""
    if target is None and rounds is None and settings.tol is None:
        target = DEFAULT_TARGET
    if rounds is not None:
        settings = replace(settings, rounds=rounds)
    out = to_folder(out or _fresh_folder(settings))
    return RunRequest(settings=settings, mode=mode, target=target, out=out, force=force)


def _fresh_folder(settings: RunSettings) -> Path:
    name = parse_method(settings.method, settings.preset).name
    return Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"


def _say_where(url: str) -> None:
    typer.echo(f"dlag: watch at {url}", err=True)
