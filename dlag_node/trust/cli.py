"""`dlag keys`, and `python -m dlag_node.trust` where there is no laboratory: makes keys and tokens.

Every command may be given again: what exists stays as it is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlag_node.errors import ConfigError
from dlag_node.outputs import to_file, to_folder
from dlag_node.trust.keys import admit, make_pair, make_token, public_path
from dlag_node.wire.limits import MAX_NODES

COORDINATOR, ADMITTED = "coordinator.key", "admitted"

Insecure = Annotated[
    bool,
    typer.Option(
        "--insecure",
        envvar="DLAG_INSECURE",
        help="Run without keys though others can reach us: anybody may come in.",
    ),
]

Post = Annotated[
    Path | None,
    typer.Option(
        envvar="DLAG_POST",
        help="With --key: make our pair where there is none, put the public half there (NAME.pub, "
        "in a folder that all processes of the run share), and wait for those of whom we call.",
    ),
]

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Make key pairs and one-time tokens; what exists stays as it is.",
)


@app.command("mesh")
def mesh(
    folder: Annotated[Path, typer.Argument(callback=to_folder, help="Where to make them.")],
    nodes: Annotated[int, typer.Option(help="How many nodes; each key is bound to its id.")],
) -> None:
    """Keys of a coordinator and of all its nodes, and the list that admits them."""
    make_mesh(folder, nodes)
    typer.echo(f"{folder}: {COORDINATOR}, node-000.key to node-{nodes - 1:03d}.key, {ADMITTED}")


@app.command("pair")
def pair(
    path: Annotated[
        Path,
        typer.Argument(callback=to_file, help="The secret half; the public one is NAME.pub."),
    ],
    admitted: Annotated[
        Path | None,
        typer.Option("--admit", callback=to_file, help="Add the public key to this list too."),
    ] = None,
    node: Annotated[int | None, typer.Option("--id", help="The only id that it may have.")] = None,
) -> None:
    """One key pair, of a node or of a coordinator."""
    if path.suffix != ".key":
        raise ConfigError(f"{path}: expected a name that ends in .key")
    made = make_pair(path)
    if admitted is not None:
        admit(admitted, {made.public: node})
    elif node is not None:
        raise ConfigError(f"id = {node}: expected --admit too, the list that says so")
    typer.echo(f"{public_path(path)}: {made.public.hex()}")


@app.command("token")
def token(
    tokens: Annotated[
        Path, typer.Argument(callback=to_file, help="The coordinator's list: it keeps a hash.")
    ],
    path: Annotated[
        Path, typer.Argument(callback=to_file, help="File for the token itself, for one node.")
    ],
) -> None:
    """A token with which one node may join whose key is on no list."""
    make_token(tokens, path)
    typer.echo(f"{path}: give it to the node, as --token")


def make_mesh(folder: Path, nodes: int) -> None:
    """What the command `mesh` makes."""
    if not 1 <= nodes <= MAX_NODES:
        raise ConfigError(f"nodes = {nodes}: expected 1 to {MAX_NODES}")
    make_pair(folder / COORDINATOR)
    pairs = [make_pair(node_key(folder, node)) for node in range(nodes)]
    admit(folder / ADMITTED, {each.public: node for node, each in enumerate(pairs)})


def node_key(folder: Path, node: int) -> Path:
    """Where the key of a node lies in a folder that `mesh` made."""
    return folder / f"node-{node:03d}.key"
