"""The flags that the commands of `dlag paper` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dlag_node.outputs import to_file, to_folder

Seeds = Annotated[int, typer.Option(help="Run each method with N seeds, from --seed on.")]
Seed = Annotated[int, typer.Option(help="The first seed.")]
ExactRounds = Annotated[int, typer.Option(help="Compare over N rounds.")]
Rounds = Annotated[int | None, typer.Option(help="At most N rounds a run.")]
Target = Annotated[float, typer.Option(help="The worst node's f(theta_i) - f* to get down to.")]
Out = Annotated[
    Path,
    typer.Option(envvar="DLAG_OUT", callback=to_folder, help="Folder; what is finished is kept."),
]
Write = Annotated[
    Path | None,
    typer.Option(
        callback=to_file,
        help="Put claims and table into this document, between the command's markers.",
    ),
]
Raw = Annotated[
    Path | None,
    typer.Option(exists=True, dir_okay=False, help="LIBSVM's unscaled `heart`: tried too."),
]
DataDir = Annotated[
    str | None,
    typer.Option(envvar="DLAG_DATA_DIR", help="Folder that holds the data file."),
]
Rows = Annotated[
    int | None, typer.Option(help="Take N of the samples, always the same ones [default: all].")
]
