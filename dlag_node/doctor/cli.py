"""`dlag doctor`: every check of this device, by the settings of the node that it is to be."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
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
from dlag_node.doctor.role import check_data, check_keys, refused
from dlag_node.doctor.speed import check_blas, check_solver
from dlag_node.errors import ConfigError
from dlag_node.net.settings import parse_neighbors
from dlag_node.process import EXIT_FAILED

_OF_THE_PROCESS = ("log_level", "lifeline")  # flags that are no settings of the node
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
    for finding in findings(reach or [], settings):
        typer.echo(str(finding))
        worst = finding.level if finding.level is Level.FAIL else worst
    if worst is Level.FAIL:
        raise typer.Exit(EXIT_FAILED)


def findings(reach: list[str], settings: dict[str, Any]) -> Iterator[Finding]:
    """All checks, one after the other; `settings` by the names of `dlag-node`'s flags."""
    yield check_python()
    yield check_libraries()
    yield check_clock()
    yield check_memory()
    yield check_disk(settings["state"])
    yield check_port(settings["bind"])
    yield from _role(settings)
    yield check_reach("coordinator", settings["coordinator"])
    yield from check_neighbors([*reach, *parse_neighbors(settings["neighbor"] or []).values()])
    yield check_blas()
    yield check_solver()


def _role(settings: dict[str, Any]) -> Iterator[Finding]:
    """What the node would make of its settings; without a coordinator it is too early to say."""
    if settings["coordinator"] is None and settings["state"] is None:
        return
    named = {name: value for name, value in settings.items() if name not in _OF_THE_PROCESS}
    try:
        node = cli.settings_of(**named)
    except ConfigError as exc:
        yield refused(exc)
        return
    yield check_keys(node)
    yield from check_data(node)


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
