"""`dlag watch`: the mesh in a browser, live from what its nodes publish, or from a run folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from coordinator.options import LogLevel
from dlag_node.errors import ConfigError
from dlag_node.net.sockets import check_address
from dlag_node.process import run_command, run_process, set_up_logging
from dlag_node.trust.cli import Insecure
from dlag_node.trust.keys import read_admitted, read_pair
from dlag_node.trust.loopback import require_loopback

DEFAULT_PAGE = "127.0.0.1:8800"

Hidden = Annotated[int | None, typer.Option(hidden=True)]


def watch(
    folder: Annotated[
        Path | None, typer.Argument(help="A run folder: to replay, or of the run that is heard.")
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(
            envvar="DLAG_LISTEN", help="Live: where nodes with --watch publish, tcp://host:port."
        ),
    ] = None,
    page: Annotated[
        str, typer.Option(envvar="DLAG_PAGE", help="Where browsers find the page, host:port.")
    ] = DEFAULT_PAGE,
    key: Annotated[
        Path | None, typer.Option(envvar="DLAG_KEY", help="Our secret key; nodes have the other.")
    ] = None,
    admitted: Annotated[
        Path | None,
        typer.Option(envvar="DLAG_ADMITTED", help="The list of the nodes' public keys."),
    ] = None,
    insecure: Insecure = False,
    log_level: LogLevel = "warning",
    announce: Hidden = None,
    lifeline: Hidden = None,
) -> None:
    """Show a mesh in the browser: a replay of a run folder, or live what its nodes publish.

    It only listens: no run can tell whether it is watched. Ends with Ctrl-C.
    """
    set_up_logging("watch", log_level)
    if folder is None and listen is None:
        raise ConfigError("nothing to watch: expected a run folder, or --listen tcp://host:port")
    if listen is not None:
        check_address(listen, wildcard=True)
    if (key is None) != (admitted is None):
        raise ConfigError(f"key = {key}, admitted = {admitted}: expected both or neither")
    if key is None:
        require_loopback(listen, unless=insecure)

    def say(address: str, url: str) -> None:
        if announce is not None:
            os.write(announce, f"{address} {url}\n".encode())
            os.close(announce)
            return
        heard = f", listening on {address}" if address else ""
        typer.echo(f"dlag watch: {url}{heard}")

    from dlag_lab.watch.listener import Listener
    from dlag_lab.watch.showing import show_live, show_replay  # a web server: loaded where needed

    async def show() -> None:
        if listen is not None:
            keys = None if key is None else read_pair(key)
            known = None if admitted is None else read_admitted(admitted)
            await show_live(folder, page, say, lambda: Listener(listen, keys, known))
        elif folder is not None:
            await show_replay(folder, page, say)

    raise typer.Exit(run_process(show, name="watch", lifeline=lifeline))


def run(argv: list[str]) -> int:
    """The command with these arguments; returns its exit code."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(watch)
    return run_command(app, argv, "dlag watch")
