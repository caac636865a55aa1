"""Tables in numpy's files. A matrix in an .npy file is mapped; one in an .npz is unpacked once.

Sparse samples lie in an .npz as scipy.sparse.save_npz puts them there, in the form csr.

A float64 matrix in C order in an .npy file is used where it lies. Members of an .npz are neither
aligned nor, in general, uncompressed: they are copied block by block to where `blank` puts them,
which is a mapped file if they are large. Nothing is ever unpickled.
"""

from __future__ import annotations

import lzma
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from dlag_node.data.storage import blank, blocks, mapped
from dlag_node.data.table import Table
from dlag_node.errors import ConfigError
from dlag_node.problems import Array, DenseRows, Rows, rows_of

_SPARSE = ("data", "indices", "indptr", "shape", "format")  # as scipy.sparse.save_npz calls them
_FLOAT = np.dtype("<f8")
_FORMAT_BYTES = 1 << 10  # of a member that holds three letters below numpy's header

# What zipfile, numpy and the decompressors raise at damaged archives, between them.
DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    ValueError,
)


def read_npy(path: Path, labels: Path | None) -> Table:
    """The matrix of one .npy file, and the labels of another."""
    with path.open("rb") as file:
        shape, fortran, dtype = _header(file, str(path), axes=2)
        if dtype == _FLOAT and not fortran and shape[0] * shape[1]:
            _whole(path, file.tell() + 8 * shape[0] * shape[1])
            A = mapped(file.fileno(), file.tell(), shape[0], shape[1])
        else:
            A = _filled(file, shape, fortran, dtype, str(path))
    return _table(A, None if labels is None else _vector_of(labels), str(path))


def read_npz(path: Path, label: str | None) -> Table:
    """The matrix `X` of an .npz file, and the labels `y` (or another array, if it is named)."""
    A: Any
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
            sparse = "X" not in names and names.issuperset(_SPARSE)
            for name in (*(() if sparse else ["X"]), *([label] if label is not None else [])):
                if name not in names:
                    found = ", ".join(sorted(names)[:20])
                    raise ConfigError(f"{path} has no array {name!r}; it has {found}")
            if sparse:
                A = _sparse(archive, str(path))
            else:
                with archive.open("X.npy") as file:
                    A = _filled(file, *_header(file, f"{path}, X", axes=2), f"{path}, X")
            wanted, labels = label or "y", None
            if wanted in names:
                with archive.open(f"{wanted}.npy") as file:
                    labels = _vector(file, f"{path}, {wanted}")
    except DAMAGED as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    return _table(A, labels, str(path))


def write_npz(path: Path, rows: Rows, labels: Array) -> None:
    """Rows and labels for `read_npz`, which gives back the same rows, dense or sparse."""
    if isinstance(rows, DenseRows):
        np.savez(path, X=rows.A, y=labels)
        return
    members = (rows.values, rows.columns, rows.start, (rows.samples, rows.dim), b"csr")
    np.savez(
        path,
        allow_pickle=False,
        y=labels,
        **dict(zip(_SPARSE, map(np.asarray, members), strict=True)),
    )


def _sparse(archive: zipfile.ZipFile, where: str) -> Any:
    """The matrix of scipy's, every index checked: compiled loops trust them."""
    import scipy.sparse as sp  # 20 MiB, which those who have dense samples do without

    with archive.open("format.npy") as file:
        if not file.read(_FORMAT_BYTES).endswith(b"csr"):
            raise ConfigError(f"{where}: a sparse matrix: expected the form csr")
    found = {}
    for name in ("data", "indices", "indptr", "shape"):
        with archive.open(f"{name}.npy") as file:
            found[name] = _vector(file, f"{where}, {name}", whole=name != "data")
    shape = tuple(found["shape"].tolist())
    if len(shape) != 2 or min(shape) < 0:
        raise ConfigError(f"{where}: a sparse matrix of shape {shape}: expected two axes")
    A = sp.csr_array((found["data"], found["indices"], found["indptr"]), shape=shape)
    A.check_format(full_check=True)
    return A


def _table(A: Any, labels: Array | None, where: str) -> Table:
    try:
        return Table(rows_of(A), labels)
    except ConfigError as exc:
        raise ConfigError(f"{where}: {exc}") from exc


def _header(file: IO[bytes], where: str, *, axes: int) -> tuple[tuple[int, ...], bool, Any]:
    """Shape, order and type of the array that follows; only numbers, and so many axes."""
    try:
        version = npy.read_magic(file)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except ValueError as exc:
        raise ConfigError(f"{where}: not an array of numpy's: {exc}") from exc
    if dtype.kind not in "fiub":
        raise ConfigError(f"{where}: entries of type {dtype}: expected numbers")
    if len(shape) != axes:
        kind = "a matrix, one row a sample" if axes == 2 else "one label a sample"
        raise ConfigError(f"{where}: an array of shape {shape}: expected {kind}")
    return shape, fortran, dtype


def _filled(
    file: IO[bytes], shape: tuple[int, ...], fortran: bool, dtype: Any, where: str
) -> Array:
    """The matrix that follows its header, as float64 in C order, block by block."""
    samples, dim = shape
    if fortran:  # columns one after the other: whole, in memory
        raw = _exactly(file, dtype.itemsize * samples * dim, where)
        return np.frombuffer(raw, dtype).reshape(dim, samples).T.astype(np.float64, order="C")
    A = blank(samples, dim)
    for rows in blocks(samples, dim):
        count = (rows.stop - rows.start) * dim
        raw = _exactly(file, dtype.itemsize * count, where)
        A[rows] = np.frombuffer(raw, dtype).reshape(-1, dim)
    return A


def _vector_of(path: Path) -> Array:
    with path.open("rb") as file:
        labels: Array = _vector(file, str(path))
    return labels


def _vector(file: IO[bytes], where: str, *, whole: bool = False) -> Any:
    """One number after the other, as float64, or, where they are to be `whole`, as int64."""
    shape, _, dtype = _header(file, where, axes=1)
    if whole and dtype.kind not in "iu":
        raise ConfigError(f"{where}: entries of type {dtype}: expected whole numbers")
    raw = _exactly(file, dtype.itemsize * shape[0], where)
    return np.frombuffer(raw, dtype).astype(np.int64 if whole else np.float64)


def _exactly(file: IO[bytes], size: int, where: str) -> bytes:
    raw = file.read(size)
    if len(raw) != size:
        raise ConfigError(f"{where}: ends {size - len(raw)} bytes too early")
    return raw


def _whole(path: Path, size: int) -> None:
    found = path.stat().st_size
    if found < size:
        raise ConfigError(f"{path}: ends {size - found} bytes too early")
