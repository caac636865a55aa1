"""Tables in parquet files, by pyarrow where it is installed; block by block, as in an .npz."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dlag_node.data.storage import BLOCK_BYTES, blank
from dlag_node.data.table import Table, split_label
from dlag_node.errors import ConfigError
from dlag_node.problems import rows_of


def read_parquet(path: Path, label: str | None) -> Table:
    """The columns of numbers of a parquet file; null is not a number."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as exc:
        raise ConfigError(
            f"{path}: parquet needs pyarrow: pip install 'dlag-mesh[parquet]', "
            "or write the table as .csv or .npz"
        ) from exc
    try:
        with path.open("rb") as raw, pq.ParquetFile(raw) as file:
            names = list(file.schema_arrow.names)
            at, features = split_label(names, label, str(path))
            samples = file.metadata.num_rows
            A = blank(samples, len(features))
            labels = None if at is None else np.empty(samples)
            done = 0
            for batch in file.iter_batches(max(1, BLOCK_BYTES // (8 * len(names)))):
                end = done + batch.num_rows
                for column, k in enumerate(features):
                    A[done:end, column] = _numbers(batch.column(k), names[k], path)
                if at is not None and labels is not None:
                    labels[done:end] = _numbers(batch.column(at), names[at], path)
                done = end
    except pa.ArrowException as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    try:
        return Table(rows_of(A), labels, tuple(names[k] for k in features))
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def _numbers(column: object, name: str, path: Path) -> np.ndarray:
    import pyarrow as pa

    assert isinstance(column, pa.Array)
    if column.null_count:
        raise ConfigError(f"{path}: column {name!r} has empty places: expected a number in each")
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise ConfigError(f"{path}: column {name!r} is of type {kind}: expected numbers")
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
