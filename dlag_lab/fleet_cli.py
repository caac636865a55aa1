"""`dlag prepare` and `dlag referee`: for a mesh whose processes others start, as compose does."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from coordinator.admission import Admission
from coordinator.cli import Admitted, Key
from coordinator.options import LogLevel, takes_run_settings
from coordinator.plan import RunSettings
from dlag_lab.executing import execute, request_for
from dlag_lab.folder import RunFolder
from dlag_lab.keyring import LaboratoryKeys, Speakers
from dlag_lab.network.spec import parse_network
from dlag_lab.options import Figures, Force, Json, Network, Out, Rounds, Target
from dlag_lab.preparing import check, clear_states
from dlag_node.errors import ConfigError
from dlag_node.process import set_up_logging
from dlag_node.trust.cli import Insecure, Post
from dlag_node.trust.loopback import require_loopback
from dlag_node.trust.posting import clear_posts, own_pair

log = logging.getLogger(__name__)

Records = Annotated[
    Path,
    typer.Option(
        envvar="DLAG_RECORDS",
        help="The folder whose nodes/ and state/ the nodes write their records and states into.",
    ),
]
Posts = Annotated[
    Path | None,
    typer.Option(envvar="DLAG_POSTS", help="The folder in which all processes post their keys."),
]
Bind = Annotated[
    str, typer.Option(envvar="DLAG_BIND", help="Where to listen for the nodes that we watch.")
]


@takes_run_settings
def prepare(
    settings: RunSettings,
    records: Records,
    posts: Posts = None,
    rounds: Rounds = None,
    target: Target = None,
    network: Network = None,
    log_level: LogLevel = "info",
) -> None:
    """Check the settings of a mesh of containers, and clear what an earlier run of it has left."""
    set_up_logging("prepare", log_level)
    request = request_for(
        settings, "referee", rounds=rounds, target=target, out=records, force=True
    )
    request = replace(request, network=None if network is None else parse_network(network))
    nodes = check(request).nodes
    log.info(
        "%s on %s: %d nodes%s",
        settings.method,
        settings.topology,
        nodes,
        "" if request.network is None else f", over a network of {request.network}",
    )
    cleared = clear_states(RunFolder(records).state_path(0).parent)
    if cleared:
        log.info("cleared %d state folders of an earlier run", cleared)
    if posts is not None and (cleared := clear_posts(posts)):
        log.info("cleared %d keys of an earlier run", cleared)


@takes_run_settings
def referee(
    settings: RunSettings,
    records: Records,
    bind: Bind = "tcp://127.0.0.1:5556",
    rounds: Rounds = None,
    target: Target = None,
    out: Out = None,
    force: Force = False,
    key: Key = None,
    admitted: Admitted = None,
    post: Post = None,
    insecure: Insecure = False,
    json: Json = None,
    figures: Figures = True,
    network: Network = None,
    log_level: LogLevel = "info",
) -> None:
    """Be the referee of a mesh that others start, with the same settings; report, figures.

    Its nodes need --observer with our address, and --out with a folder that we can read.
    """
    set_up_logging("report", log_level)
    if (key is None) != (admitted is None) or (key is None and post is not None):
        raise ConfigError(
            f"key = {key}, admitted = {admitted}, post = {post}: expected a key and a list of "
            "admitted ones, or neither"
        )
    if key is None:
        require_loopback(bind, unless=insecure)
    request = request_for(settings, "referee", rounds=rounds, target=target, out=out, force=force)
    asked = None if network is None else parse_network(network)
    with ExitStack() as stack:
        keys = None
        if key is not None and admitted is not None:
            pair = stack.enter_context(own_pair(key, post))
            keys = LaboratoryKeys(pair, Speakers(Admission(admitted)))
        request = replace(request, bind=bind, records=records, network=asked, keys=keys)
        execute(request, json=json, figures=figures)
