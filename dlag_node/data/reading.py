"""One reader for all formats: the file's name says which it is."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np

from dlag_node.data import arrays, parquet, text
from dlag_node.data.table import Table
from dlag_node.errors import ConfigError

_READ_BYTES = 1 << 20


def read_table(path: Path, *, label: str | None = None, dim: int | None = None) -> Table:
    """The table in a file; bad files are a ConfigError that says where and what was expected.

    `label` says where the labels are: the column of a .csv or .parquet file, the array of an .npz
    (`y` unless said), for the matrix in an .npy another .npy file. Everything else is LIBSVM text,
    plain or compressed, with the label in front; `dim` is for files of it which do not happen to
    use their last features.
    """
    kind = path.suffix.lower()
    try:
        if kind == ".csv":
            table = text.read_csv(path, label)
        elif kind == ".npz":
            table = arrays.read_npz(path, label)
        elif kind == ".npy":
            table = arrays.read_npy(path, None if label is None else Path(label))
        elif kind == ".parquet":
            table = parquet.read_parquet(path, label)
        else:
            table = text.read_libsvm_file(path, dim)
        files = [path] if kind != ".npy" or label is None else [path, Path(label)]
        sha256 = _sha256(files)
    except OSError as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    _check(table, path, dim)
    return replace(table, sha256=sha256)


def has_names(path: Path) -> bool:
    """Whether the features of such a file have names."""
    return path.suffix.lower() in (".csv", ".parquet")


def _check(table: Table, path: Path, dim: int | None) -> None:
    samples, labels = table.rows.samples, table.labels
    if samples < 1:
        raise ConfigError(f"{path} holds no sample")
    if dim is not None and table.rows.dim != dim:
        raise ConfigError(f"{path} has {table.rows.dim} features: expected dim = {dim}")
    if labels is not None and labels.shape != (samples,):
        raise ConfigError(f"{path}: labels of shape {labels.shape}: expected ({samples},)")
    if labels is not None and not np.isfinite(labels).all():
        raise ConfigError(f"{path}: a label is not finite")


def _sha256(paths: list[Path]) -> str:
    """Over the files' bytes, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(_READ_BYTES):
                digest.update(piece)
    return digest.hexdigest()
