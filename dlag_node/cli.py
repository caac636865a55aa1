"""`dlag-node`: one worker as a process of its own."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from dlag_node.configuration import Configuration, takes_configuration
from dlag_node.data import MIN_SAMPLES, HeldData, HeldFile
from dlag_node.errors import ConfigError
from dlag_node.net.node import run_node
from dlag_node.net.settings import NodeSettings, parse_neighbors
from dlag_node.net.sockets import HEARTBEAT
from dlag_node.outputs import to_file, to_folder
from dlag_node.process import run_command, run_process, set_up_logging
from dlag_node.rounds.keeper import DEFAULT_EVERY
from dlag_node.trust.cli import Insecure, Post

log = logging.getLogger(__name__)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


Coordinator = Annotated[
    str | None,
    typer.Option(
        envvar="DLAG_COORDINATOR",
        help="Where the coordinator listens: tcp://host:port. Not needed to go on from --state.",
    ),
]
Bind = Annotated[
    str,
    typer.Option(envvar="DLAG_BIND", help="Where to listen for neighbors; port * is any free one."),
]
Advertise = Annotated[
    str | None,
    typer.Option(
        envvar="DLAG_ADVERTISE", help="Where neighbors reach us; where we listen if not said."
    ),
]
NodeId = Annotated[
    int | None, typer.Option("--id", envvar="DLAG_ID", help="Ask for this id; else any free one.")
]
Out = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_OUT", help="Folder for this node's records and theta snapshots."),
]
Observer = Annotated[
    str | None,
    typer.Option(envvar="DLAG_OBSERVER", help="A laboratory that watches: tcp://host:port."),
]
Watch = Annotated[
    str | None,
    typer.Option(
        envvar="DLAG_WATCH",
        help="Tell dlag watch, which listens at tcp://host:port, how we stand; it cannot answer.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        envvar="DLAG_METRICS",
        help="Serve Prometheus metrics at host:port; port 0 is any free one, the log says which.",
    ),
]
JoinTimeout = Annotated[
    float,
    typer.Option(envvar="DLAG_JOIN_TIMEOUT", help="Seconds to wait for the coordinator."),
]
NeighborTimeout = Annotated[
    float,
    typer.Option(envvar="DLAG_NEIGHBOR_TIMEOUT", help="Seconds to wait for a neighbor's frame."),
]
Heartbeat = Annotated[
    float,
    typer.Option(
        envvar="DLAG_HEARTBEAT",
        help="Seconds from ping to ping on the connections that this node made; one without an "
        "answer for three times as long is made anew; 0: no pings.",
    ),
]
State = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_STATE",
        help="Folder for this node's checkpoints: started again, it goes on from there.",
    ),
]
Checkpoint = Annotated[
    int, typer.Option(envvar="DLAG_CHECKPOINT", help="With --state: save every so many rounds.")
]
Durable = Annotated[
    bool,
    typer.Option(
        "--durable",
        envvar="DLAG_DURABLE",
        help="Checkpoints survive a power cut, and not only a killed process; slower.",
    ),
]
Key = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_KEY", help="This node's secret key, as `dlag keys` makes it."),
]
CoordinatorKey = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_COORDINATOR_KEY", help="The coordinator's public key."),
]
ObserverKey = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_OBSERVER_KEY", help="The laboratory's public key."),
]
WatchKey = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_WATCH_KEY", help="The public key of dlag watch."),
]
Token = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_TOKEN",
        help="File with a one-time token, for a key that the coordinator does not know yet.",
    ),
]
Neighbor = Annotated[
    list[str] | None,
    typer.Option(help="A neighbor that is not where it was: 7=tcp://host:port; may be repeated."),
]
Data = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_DATA",
        help="Samples of this node's own, which never leave it: LIBSVM text, .csv, .npz, .npy or "
        ".parquet. The coordinator must have been started with --data nodes.",
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        envvar="DLAG_LABEL",
        help="Where their labels are: a column, an .npz file's array (y), for an .npy another one.",
    ),
]
Dim = Annotated[
    int | None,
    typer.Option(envvar="DLAG_DIM", help="Features of LIBSVM text that may not use its last ones."),
]
Scale = Annotated[
    str,
    typer.Option(
        envvar="DLAG_SCALE",
        help="What may be told of the features for their scaling, as on the coordinator: none, "
        "minmax (least and largest values) or standard (means and variances).",
    ),
]
MinSamples = Annotated[
    int,
    typer.Option(
        envvar="DLAG_MIN_SAMPLES", help="With --scale: refuse to tell that of fewer samples."
    ),
]
Model = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_MODEL",
        help="Where the model goes at the end, .json or .npz; if not said, into --out.",
    ),
]
LogLevel = Annotated[
    str, typer.Option(envvar="DLAG_LOG_LEVEL", help="debug, info, warning or error.")
]
Lifeline = Annotated[int | None, typer.Option(hidden=True)]


@app.command()
@takes_configuration
def node(
    configuration: Configuration,
    coordinator: Coordinator = None,
    bind: Bind = "tcp://127.0.0.1:*",
    advertise: Advertise = None,
    node_id: NodeId = None,
    out: Out = None,
    observer: Observer = None,
    watch: Watch = None,
    metrics: Metrics = None,
    join_timeout: JoinTimeout = 600.0,
    neighbor_timeout: NeighborTimeout = 120.0,
    heartbeat: Heartbeat = HEARTBEAT,
    state: State = None,
    checkpoint: Checkpoint = DEFAULT_EVERY,
    durable: Durable = False,
    key: Key = None,
    coordinator_key: CoordinatorKey = None,
    observer_key: ObserverKey = None,
    watch_key: WatchKey = None,
    token: Token = None,
    post: Post = None,
    insecure: Insecure = False,
    neighbor: Neighbor = None,
    data: Data = None,
    label: Label = None,
    dim: Dim = None,
    scale: Scale = "none",
    min_samples: MinSamples = MIN_SAMPLES,
    model: Model = None,
    log_level: LogLevel = "info",
    lifeline: Lifeline = None,
) -> None:
    """Join a run as one worker: neighbors come from the coordinator, then it trains.

    So do its samples, unless it has some of its own (--data).

    Exit codes: 0 done, 1 failed, 2 wrong settings, 130 interrupted, 143 terminated.
    """
    name = "node" if node_id is None else f"node-{node_id:03d}"
    set_up_logging(name, log_level)
    log.info("%s", configuration)
    settings = settings_of(
        coordinator=coordinator,
        bind=bind,
        advertise=advertise,
        node_id=node_id,
        out=out,
        observer=observer,
        watch=watch,
        metrics=metrics,
        join_timeout=join_timeout,
        neighbor_timeout=neighbor_timeout,
        heartbeat=heartbeat,
        state=state,
        checkpoint=checkpoint,
        durable=durable,
        key=key,
        coordinator_key=coordinator_key,
        observer_key=observer_key,
        watch_key=watch_key,
        token=token,
        post=post,
        insecure=insecure,
        neighbor=neighbor,
        data=data,
        label=label,
        dim=dim,
        scale=scale,
        min_samples=min_samples,
        model=model,
    )
    raise typer.Exit(run_process(lambda: run_node(settings), name=name, lifeline=lifeline))


def settings_of(
    *,
    node_id: int | None,
    neighbor: list[str] | None,
    data: Path | None,
    label: str | None,
    dim: int | None,
    scale: str,
    min_samples: int,
    **others: Any,
) -> NodeSettings:
    """What the flags mean together, checked; `others` are settings by their own names."""
    to_folder(others["out"])
    to_folder(others["state"])
    to_file(others["model"])
    return NodeSettings(
        node=node_id,
        neighbors=parse_neighbors(neighbor or []),
        data=_held(data, label, dim, scale, min_samples),
        **others,
    )


def _held(
    path: Path | None, label: str | None, dim: int | None, scale: str, min_samples: int
) -> HeldData | None:
    if path is None:
        if label is not None or dim is not None or scale != "none":
            raise ConfigError(
                "--label, --dim and --scale are about samples of the node's own: expected --data"
            )
        return None
    return HeldData(HeldFile(path, label, dim), scale, min_samples)


def run(argv: list[str]) -> int:
    """The command with these arguments; returns its exit code."""
    return run_command(app, argv, "dlag-node")


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run(sys.argv[1:]))
