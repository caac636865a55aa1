"""What a node says of its samples before anybody can plan a run, and nothing else of them.

The two vectors of `spread` are there only if the node's operator agreed to a scaling, and are what
that scaling needs: the least and the largest value of each feature (minmax), or its mean and the
sum of its squared deviations from it (standard). Of a single sample either is the sample itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dlag_node.data.storage import blocks
from dlag_node.data.table import Table
from dlag_node.errors import ConfigError
from dlag_node.problems import Array, DenseRows, Rows

SCALES = ("none", "minmax", "standard")
_FLOAT = np.dtype("<f8")


@dataclass(frozen=True, slots=True)
class Spread:
    """Two numbers a feature, little-endian float64: see above."""

    first: bytes
    second: bytes

    @property
    def vectors(self) -> tuple[Array, Array]:
        """Both as arrays."""
        return vector(self.first), vector(self.second)


@dataclass(frozen=True, slots=True)
class Summary:
    """One node's samples in a few words."""

    samples: int
    dim: int
    names: str | None  # sha256 of the features' names in order; None: the file names none
    labels: tuple[float, ...] | None  # the different ones, up to two; None: more
    scale: str
    spread: Spread | None  # None: no scaling


def summarise(table: Table, scale: str, *, who: str) -> Summary:
    """What there is to say of a table for this scaling."""
    check_scale(scale)
    found = np.unique(table.known_labels(who))
    return Summary(
        samples=table.rows.samples,
        dim=table.rows.dim,
        names=None if table.names is None else names_hash(table.names),
        labels=tuple(map(float, found)) if len(found) <= 2 else None,
        scale=scale,
        spread=None if scale == "none" else spread_of(table.rows, scale),
    )


def check_scale(scale: str) -> None:
    """ConfigError unless there is such a scaling."""
    if scale not in SCALES:
        raise ConfigError(f"scale {scale!r}: expected one of {', '.join(SCALES)}")


def names_hash(names: tuple[str, ...]) -> str:
    """One hash for the features' names in their order."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()


def spread_of(rows: Rows, scale: str) -> Spread:
    """Least and largest, or mean and squared deviations, of every feature, in one pass."""
    if scale == "minmax":
        low, high = np.full(rows.dim, np.inf), np.full(rows.dim, -np.inf)
        for A in dense_blocks(rows):
            low, high = np.minimum(low, A.min(axis=0)), np.maximum(high, A.max(axis=0))
        return Spread(low.astype(_FLOAT).tobytes(), high.astype(_FLOAT).tobytes())
    parts = []
    for A in dense_blocks(rows):
        mean = A.mean(axis=0)
        parts.append((len(A), mean, np.square(A - mean).sum(axis=0)))
    mean, deviations = pooled_moments(parts)
    return Spread(mean.astype(_FLOAT).tobytes(), deviations.astype(_FLOAT).tobytes())


def pooled_moments(parts: list[tuple[int, Array, Array]]) -> tuple[Array, Array]:
    """Mean and squared deviations of all, from count, mean and squared deviations of each part."""
    total, mean, deviations = parts[0]
    for count, its_mean, its_deviations in parts[1:]:
        away = its_mean - mean
        deviations = deviations + its_deviations + away * away * (total * count / (total + count))
        mean = mean + away * (count / (total + count))
        total += count
    return mean, deviations


def dense_blocks(rows: Rows) -> Iterator[Array]:
    """All rows in turn, some at a time, as dense matrices."""
    for part in blocks(rows.samples, rows.dim):
        yield dense_block(rows, part)


def dense_block(rows: Rows, part: slice) -> Array:
    """Some of the rows as a dense matrix."""
    if isinstance(rows, DenseRows):
        return rows.A[part]
    block: Array = rows.matrix()[part].toarray()
    return block


def vector(raw: bytes) -> Array:
    """The numbers in these bytes."""
    return np.frombuffer(raw, _FLOAT).astype(np.float64)
