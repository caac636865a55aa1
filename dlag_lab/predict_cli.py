"""`dlag predict`: what a model says of the samples in a file, and how often it is right."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from dlag_node.data import read_table
from dlag_node.data.model import Model, load_model_file
from dlag_node.data.reading import has_names
from dlag_node.errors import ConfigError, StorageError
from dlag_node.outputs import to_file
from dlag_node.problems import Array

ModelFile = Annotated[Path, typer.Argument(help="A model that a node left behind.")]
DataFile = Annotated[
    Path, typer.Argument(help="Samples: LIBSVM text, .csv, .npz, .npy or .parquet.")
]
Label = Annotated[
    str | None, typer.Option(envvar="DLAG_LABEL", help="Where the labels are, if there are any.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", callback=to_file, help="Write predictions there as csv, a line a sample."
    ),
]


def predict(model: ModelFile, data: DataFile, label: Label = None, out: Out = None) -> None:
    """Score a file by a model; with labels, say how good it is."""
    made = load_model_file(model)
    by_name = made.names is not None and has_names(data)
    table = read_table(data, label=label, dim=None if by_name else made.dim)
    if made.names is not None and table.names is not None:
        table = table.with_features(made.names, f"{data}", "the model")
    elif table.names is not None:
        typer.echo(
            "dlag: the model has no names of features: columns are taken in their order", err=True
        )
    scores = made.scores(table.rows)
    if out is not None:
        write_predictions(made, scores, out)
    typer.echo(f"{len(scores)} samples, {made.problem}, {made.dim} features")
    if table.labels is not None:
        for name, value in quality(made, scores, table.labels).items():
            typer.echo(f"{name} {value:.6g}")


def quality(model: Model, scores: Array, labels: Array) -> dict[str, float]:
    """Accuracy and mean log loss, or R^2 and the root of the mean square error."""
    if model.classes:
        if not np.isin(labels, model.classes).all():
            raise ConfigError(f"labels beside the model's classes {list(model.classes)}")
        signs = np.where(labels == model.classes[1], 1.0, -1.0)
        right = float(np.mean(model.decide(scores) == labels))
        return {"accuracy": right, "log loss": float(np.mean(np.logaddexp(0.0, -signs * scores)))}
    residual = float(np.mean((scores - labels) ** 2))
    variance = float(np.var(labels))
    return {
        "R2": 1.0 - residual / variance if variance > 0 else float(residual == 0),
        "root mean square error": float(np.sqrt(residual)),
    }


def write_predictions(model: Model, scores: Array, path: Path) -> None:
    """A csv of predictions; with the second class's probability, where there are classes."""
    columns = {"prediction": model.decide(scores)}
    if model.classes:
        columns["probability"] = 1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="", encoding="ascii") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    except OSError as exc:
        raise StorageError(f"cannot write {path}: {exc}") from exc
