"""`dlag doctor`: every check of this device, by the settings of the node that it is to be."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dlag_node import cli
from dlag_node.configuration import Configuration, takes_configuration
from dlag_node.doctor.finding import Finding, Level
from dlag_node.doctor.machine import (
    check_clock,
    check_disk,
    check_libraries,
    check_memory,
    check_python,
)
from dlag_node.doctor.reach import check_neighbors, check_port, check_reach
from dlag_node.doctor.speed import check_blas, check_solver
from dlag_node.net.settings import parse_neighbors
from dlag_node.process import EXIT_FAILED

_NOT_ITS = ("ctx", "config", "print_config", "version", "configuration")


def _as_a_node() -> list[inspect.Parameter]:
    """The settings of `dlag-node`: the doctor reads the same file."""
    return [
        each
        for each in inspect.signature(cli.node).parameters.values()
        if each.name not in _NOT_ITS
    ]


def doctor(configuration: Configuration, reach: list[str] | None, **settings: Any) -> None:
    """Check this device, by the settings that dlag-node would have: the same flags and file.

    Exit codes: 0 it can be a node, 1 something is in the way, 2 wrong settings.
    """
    del configuration
    worst = Level.OK
    for finding in findings(
        coordinator=settings["coordinator"],
        neighbors=[*(reach or []), *parse_neighbors(settings["neighbor"] or []).values()],
        bind=settings["bind"],
        state=settings["state"],
    ):
        typer.echo(str(finding))
        worst = finding.level if finding.level is Level.FAIL else worst
    if worst is Level.FAIL:
        raise typer.Exit(EXIT_FAILED)


def findings(
    *, coordinator: str | None, neighbors: list[str], bind: str, state: Path | None
) -> Iterator[Finding]:
    """All checks, one after the other."""
    yield check_python()
    yield check_libraries()
    yield check_clock()
    yield check_memory()
    yield check_disk(state)
    yield check_port(bind)
    yield check_reach("coordinator", coordinator)
    yield from check_neighbors(neighbors)
    yield check_blas()
    yield check_solver()


_Reach = Annotated[
    list[str] | None,
    typer.Option("--reach", help="A neighbor that must be reached: tcp://host:port; repeat."),
]
doctor.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("configuration", inspect.Parameter.KEYWORD_ONLY),
        *_as_a_node(),
        inspect.Parameter("reach", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_Reach),
    ]
)
command = takes_configuration(doctor)
