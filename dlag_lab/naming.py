"""The features' names in the models that nodes left: who deals the samples out alone knows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dlag_node.data.model import load_model_file
from dlag_node.rounds.leaving import model_path


def name_features(folder: Path, names: tuple[str, ...] | None, *, nodes: int) -> None:
    """Write the names into each node's model in `folder`; they do not travel with the samples."""
    if names is None:
        return
    for path in (model_path(folder, node) for node in range(nodes)):
        if path.exists():  # a node that others have started may have left it elsewhere
            replace(load_model_file(path), names=names).save(path)
