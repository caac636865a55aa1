"""`dlag-coordinator`: hands out topology and shards, and never takes part in the optimization."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from coordinator.admission import Admission
from coordinator.draft import Draft
from coordinator.options import LogLevel, takes_run_settings
from coordinator.plan import RunSettings
from coordinator.roster import Roster
from coordinator.server import run_server
from dlag_node.configuration import Configuration, takes_configuration
from dlag_node.errors import ConfigError
from dlag_node.outputs import to_file
from dlag_node.process import run_command, run_process, set_up_logging
from dlag_node.trust.cli import Insecure, Post
from dlag_node.trust.loopback import require_loopback
from dlag_node.trust.posting import own_pair

log = logging.getLogger(__name__)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

Bind = Annotated[
    str,
    typer.Option(envvar="DLAG_BIND", help="Where to listen for nodes; port * is any free one."),
]
Key = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_KEY", help="Our secret key, as `dlag keys` makes it."),
]
Admitted = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_ADMITTED", help="The list of the nodes' public keys, or a folder of them."
    ),
]
Tokens = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_TOKENS", callback=to_file, help="The list of one-time tokens, as hashes."
    ),
]
Hidden = Annotated[int | None, typer.Option(hidden=True)]


@app.command()
@takes_configuration
@takes_run_settings
def coordinator(
    settings: RunSettings,
    configuration: Configuration,
    bind: Bind = "tcp://127.0.0.1:5555",
    key: Key = None,
    admitted: Admitted = None,
    tokens: Tokens = None,
    post: Post = None,
    insecure: Insecure = False,
    log_level: LogLevel = "info",
    announce: Hidden = None,
    lifeline: Hidden = None,
) -> None:
    """Wait for as many nodes as the topology has, give each its part, and watch them start.

    From the start of round 1 on nobody needs the coordinator: it may be stopped.

    Exit codes: 0 all nodes finished, 1 a node failed, 2 wrong settings, 130 interrupted, 143
    terminated.
    """
    set_up_logging("coordinator", log_level)
    log.info("%s", configuration)
    if (key is None) != (admitted is None) or (key is None and (tokens or post) is not None):
        raise ConfigError(
            f"key = {key}, admitted = {admitted}, tokens = {tokens}, post = {post}: expected a key "
            "and a list of admitted ones, or neither"
        )
    with ExitStack() as stack:
        keys = admission = None
        if key is not None and admitted is not None:
            keys = stack.enter_context(own_pair(key, post))
            admission = Admission(admitted, tokens)
        else:
            require_loopback(bind, unless=insecure)
        draft = Draft(settings)

        async def serve() -> None:
            address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            if announce is not None:
                address.add_done_callback(lambda known: _announce(announce, known.result()))
            await run_server(Roster(draft, admission), bind, announce=address, keys=keys)

        raise typer.Exit(run_process(serve, name="coordinator", lifeline=lifeline))


def run(argv: list[str]) -> int:
    """The command with these arguments; returns its exit code."""
    return run_command(app, argv, "dlag-coordinator")


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))


def _announce(descriptor: int, address: str) -> None:
    os.write(descriptor, f"{address}\n".encode())
    os.close(descriptor)
