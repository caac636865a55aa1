"""The flags that several of the laboratory's commands take, said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlag_node.outputs import to_file

DEFAULT_TARGET = 1e-7
EXIT_NOT_REACHED = 3

Rounds = Annotated[
    int | None,
    typer.Option(envvar="DLAG_ROUNDS", help="Run exactly N rounds; with --target at most N."),
]
Target = Annotated[
    float | None,
    typer.Option(
        envvar="DLAG_TARGET",
        help="End once the worst node's f(theta_i) - f* is below this "
        f"[default: {DEFAULT_TARGET:g} unless --rounds is given].",
    ),
]
Figures = Annotated[bool, typer.Option(help="Draw the figures at the end.")]
Checkpoint = Annotated[
    int,
    typer.Option(
        envvar="DLAG_CHECKPOINT",
        help="Nodes save themselves every N rounds: one that is killed is started again, and "
        "dlag resume goes on with an interrupted run; 0: neither.",
    ),
]
Restarts = Annotated[
    int, typer.Option(help="With --checkpoint: start a killed node again so many times.")
]
Network = Annotated[
    str | None,
    typer.Option(
        envvar="DLAG_NETWORK",
        help="Every node on a host of its own, over a network like "
        "delay=20ms,jitter=5ms,loss=1%,rate=10mbit (one way; needs root).",
    ),
]
Watch = Annotated[
    str | None,
    typer.Option(
        help="Show the run in the browser, at host:port; port 0 is any free one. "
        "dlag watch FOLDER shows it again afterwards.",
    ),
]
Timeout = Annotated[float, typer.Option(help="Seconds a node waits for a neighbor's frame.")]
Heartbeat = Annotated[
    float,
    typer.Option(
        envvar="DLAG_HEARTBEAT",
        help="Seconds from ping to ping on a link, by the node that opened it; 0: no pings.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_OUT", help="Run folder [default: runs/METHOD-TIME]."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a run folder that exists.")]
Json = Annotated[
    Path | None,
    typer.Option("--json", callback=to_file, help="Write the result as JSON to this file too."),
]
