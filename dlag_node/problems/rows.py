"""The samples a_j of a shard as rows of a matrix, dense or compressed, behind one interface."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dlag_node.errors import ConfigError
from dlag_node.problems import kernels
from dlag_node.problems.compiling import visit

# scipy costs 20 MiB and a quarter of a second to load, and dense shards do without it: the
# functions below import it when they are called.

Array = NDArray[np.float64]
Index = NDArray[np.int64]

# Entries of a matrix that are copied at a time (32 MiB): the matrix itself may be mapped.
_PIECE = 1 << 22

# C-contiguous, aligned, writable: compiled kernels are specialised to it, and bytes off the wire,
# which are read-only, would make every process compile its own.
_OWN: Final = ("C", "A", "W")


@dataclass(frozen=True, slots=True, eq=False)
class DenseRows:
    """Rows a_j of a C-contiguous float64 matrix A."""

    A: Array

    @property
    def samples(self) -> int:
        """m_i, the number of rows."""
        return int(self.A.shape[0])

    @property
    def dim(self) -> int:
        """The number of features."""
        return int(self.A.shape[1])

    def dot(self, j: int, v: Array) -> float:
        """<a_j, v>."""
        enter(self, v, j=j)
        return float(kernels.dense_dot(self.A, j, v))

    def add_row(self, j: int, scale: float, out: Array) -> None:
        """out += scale * a_j."""
        enter(self, out, j=j)
        kernels.dense_add_row(self.A, j, scale, out)

    def add_slopes(self, code: int, b: Array, theta: Array, scale: float, out: Array) -> None:
        """out += scale * sum_j l'(<a_j, theta>) a_j."""
        enter(self, theta, out, each=b)
        visit(self.A.size)
        kernels.dense_add_slopes(self.A, code, b, theta, scale, out)

    def sum_losses(self, code: int, b: Array, theta: Array) -> float:
        """sum_j l(<a_j, theta>)."""
        enter(self, theta, each=b)
        visit(self.A.size)
        return float(kernels.dense_sum_losses(self.A, code, b, theta))

    def bends(self, code: int, b: Array, theta: Array) -> Array:
        """l''(<a_j, theta>) for every j."""
        enter(self, theta, each=b)
        visit(self.A.size)
        out: Array = kernels.dense_bends(self.A, code, b, theta)
        return out

    def weighted_gram(self, weights: Array) -> Array:
        """sum_j w_j a_j a_j^T, dim x dim."""
        enter(self, each=weights)
        gram: Array = np.zeros((self.dim, self.dim))
        for part in self._parts():
            A = self.A[part]
            gram += (A * weights[part, None]).T @ A
        return gram

    def square_norms(self) -> Array:
        """||a_j||^2 for every j."""
        visit(self.A.size)
        norms: Array = kernels.dense_square_norms(self.A)
        return norms

    def products(self, weights: Array, v: Array) -> Array:
        """sum_j w_j <a_j, v> a_j."""
        enter(self, v, each=weights)
        out = np.zeros(self.dim)
        visit(self.A.size)
        kernels.dense_add_products(self.A, weights, v, out)
        return out

    def weighted_norms(self, weights: Array) -> Array:
        """sum_t w_t a_jt^2 for every j."""
        norms: Array = np.empty(self.samples)
        for part in self._parts():
            A = self.A[part]
            norms[part] = (A * A) @ weights
        return norms

    def take(self, indices: Index) -> DenseRows:
        """The rows of these indices, copied."""
        return DenseRows(np.ascontiguousarray(self.A[indices]))

    def matrix(self) -> Array:
        """The rows as a matrix for numpy's operators."""
        return self.A

    def _parts(self) -> Iterator[slice]:
        """All rows at once, or, of a matrix too large to copy, some at a time."""
        step = max(1, _PIECE // max(1, self.dim))
        for first in range(0, self.samples, step):
            yield slice(first, first + step)


@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Rows a_j in compressed form: row j has `values[start[j]:start[j+1]]` at `columns[...]`."""

    values: Array
    columns: Index
    start: Index
    dim: int

    @property
    def samples(self) -> int:
        """m_i, the number of rows."""
        return len(self.start) - 1

    def dot(self, j: int, v: Array) -> float:
        """<a_j, v>."""
        enter(self, v, j=j)
        return float(kernels.sparse_dot(self.values, self.columns, self.start, j, v))

    def add_row(self, j: int, scale: float, out: Array) -> None:
        """out += scale * a_j."""
        enter(self, out, j=j)
        kernels.sparse_add_row(self.values, self.columns, self.start, j, scale, out)

    def add_slopes(self, code: int, b: Array, theta: Array, scale: float, out: Array) -> None:
        """out += scale * sum_j l'(<a_j, theta>) a_j."""
        enter(self, theta, out, each=b)
        visit(self.values.size)
        kernels.sparse_add_slopes(self.values, self.columns, self.start, code, b, theta, scale, out)

    def sum_losses(self, code: int, b: Array, theta: Array) -> float:
        """sum_j l(<a_j, theta>)."""
        enter(self, theta, each=b)
        visit(self.values.size)
        return float(
            kernels.sparse_sum_losses(self.values, self.columns, self.start, code, b, theta)
        )

    def bends(self, code: int, b: Array, theta: Array) -> Array:
        """l''(<a_j, theta>) for every j."""
        enter(self, theta, each=b)
        visit(self.values.size)
        out: Array = kernels.sparse_bends(self.values, self.columns, self.start, code, b, theta)
        return out

    def weighted_gram(self, weights: Array) -> Array:
        """sum_j w_j a_j a_j^T, dim x dim, dense."""
        enter(self, each=weights)
        gram: Array = np.zeros((self.dim, self.dim))
        visit(self.values.size)
        kernels.sparse_weighted_gram(self.values, self.columns, self.start, weights, gram)
        return gram

    def square_norms(self) -> Array:
        """||a_j||^2 for every j."""
        visit(self.values.size)
        norms: Array = kernels.sparse_square_norms(self.values, self.start)
        return norms

    def products(self, weights: Array, v: Array) -> Array:
        """sum_j w_j <a_j, v> a_j."""
        enter(self, v, each=weights)
        out = np.zeros(self.dim)
        visit(self.values.size)
        kernels.sparse_add_products(self.values, self.columns, self.start, weights, v, out)
        return out

    def weighted_norms(self, weights: Array) -> Array:
        """sum_t w_t a_jt^2 for every j."""
        A = self.matrix()
        norms: Array = A.multiply(A) @ weights
        return norms

    def take(self, indices: Index) -> SparseRows:
        """The rows of these indices, copied."""
        taken = rows_of(self.matrix()[indices])
        assert isinstance(taken, SparseRows)
        return taken

    def matrix(self) -> Any:
        """The rows as a scipy.sparse matrix for its operators."""
        import scipy.sparse as sp

        return sp.csr_array((self.values, self.columns, self.start), (self.samples, self.dim))


Rows = DenseRows | SparseRows


def enter(rows: Rows, *vectors: Array, each: Array | None = None, j: int = 0) -> None:
    """The door to compiled loops, which index without looking: ConfigError unless all shapes fit.

    `vectors` have an entry a feature, `each` has one a sample, and row j is there.
    """
    for v in vectors:
        if v.shape != (rows.dim,):
            raise ConfigError(f"a vector of {v.size} entries for samples of {rows.dim} features")
    if each is not None and each.shape != (rows.samples,):
        raise ConfigError(f"{each.size} numbers, one a sample, for {rows.samples} samples")
    if not 0 <= j < rows.samples:
        raise ConfigError(f"sample {j} of {rows.samples}")


def rows_of(matrix: Any) -> Rows:
    """Rows from anything numpy or scipy.sparse understands; non-finite entries are refused."""
    if hasattr(matrix, "tocsr"):
        import scipy.sparse as sp

        csr = sp.csr_array(matrix)
        csr.sum_duplicates()
        entries = np.require(csr.data, np.float64, _OWN)
        rows: Rows = SparseRows(
            entries,
            csr.indices.astype(np.int64),
            csr.indptr.astype(np.int64),
            int(csr.shape[1]),
        )
    else:
        entries = np.require(matrix, np.float64, _OWN)
        if entries.ndim != 2:
            raise ConfigError(f"samples of shape {entries.shape}: expected a matrix")
        rows = DenseRows(entries)
    flat = entries.reshape(-1)
    for first in range(0, flat.size, _PIECE):  # a matrix may be mapped, and larger than memory
        if not np.isfinite(flat[first : first + _PIECE]).all():
            raise ConfigError("the samples contain a value that is not finite")
    return rows
