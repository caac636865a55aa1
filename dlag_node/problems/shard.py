"""A shard as bytes: labels, then rows, little-endian and without any structure to trust."""

from __future__ import annotations

import numpy as np

from dlag_node.errors import ConfigError
from dlag_node.problems.rows import Array, DenseRows, Rows, SparseRows

_FLOAT = np.dtype("<f8")
_INT = np.dtype("<i8")


def shard_bytes(rows: Rows, labels: Array) -> bytes:
    """Labels (m floats), then a dense matrix (m * dim floats) or values, columns and row starts."""
    parts: list[np.ndarray] = [labels.astype(_FLOAT)]
    if isinstance(rows, DenseRows):
        parts.append(np.ascontiguousarray(rows.A, dtype=_FLOAT))
    else:
        parts += [rows.values.astype(_FLOAT), rows.columns.astype(_INT), rows.start.astype(_INT)]
    return b"".join(part.tobytes() for part in parts)


def stored_entries(rows: Rows) -> int | None:
    """How many values are stored; None for dense rows, which store all."""
    return None if isinstance(rows, DenseRows) else len(rows.values)


def shard_from(
    body: bytes | bytearray, *, samples: int, dim: int, entries: int | None
) -> tuple[Rows, Array]:
    """Rows and labels from the bytes of `shard_bytes`; bytes that do not fit are a ConfigError.

    Compiled loops index without looking, so every index is checked here.
    """
    numbers = samples + (samples * dim if entries is None else 2 * entries + samples + 1)
    if len(body) != 8 * numbers:
        raise ConfigError(f"a shard of {len(body)} bytes: expected {8 * numbers}")
    labels = np.frombuffer(body, _FLOAT, samples).astype(np.float64)
    if entries is None:
        A = np.frombuffer(body, _FLOAT, offset=8 * samples).reshape(samples, dim)
        # writable: compiled loops know read-only arrays as another type
        return DenseRows(np.require(A, np.float64, ["C", "W"])), labels
    offset = 8 * samples
    values = np.frombuffer(body, _FLOAT, entries, offset)
    columns = np.frombuffer(body, _INT, entries, offset + 8 * entries)
    start = np.frombuffer(body, _INT, samples + 1, offset + 16 * entries)
    in_order = start[0] == 0 and start[-1] == entries and bool((np.diff(start) >= 0).all())
    if not in_order:
        raise ConfigError("a shard whose row starts are not in order")
    if entries and not (columns.min() >= 0 and columns.max() < dim):
        raise ConfigError(f"a shard with a column outside 0 to {dim - 1}")
    native = (values.astype(np.float64), columns.astype(np.int64), start.astype(np.int64))
    return SparseRows(*native, dim), labels
