"""Tables in text files: LIBSVM, plain or compressed, and csv. They are read into memory."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import re
import warnings
import zlib
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from dlag_node.data.libsvm import Samples, read_libsvm
from dlag_node.data.table import Table, split_label
from dlag_node.errors import ConfigError
from dlag_node.problems import DenseRows, Rows, SparseRows, rows_of

# From this share of stored entries on, a dense row is both smaller and faster than a sparse one
# (a stored entry takes 16 bytes, a dense one 8).
_DENSE_FROM = 0.25


def read_libsvm_file(path: Path, dim: int | None) -> Table:
    """The samples of LIBSVM text; `dim` features, or as many as the largest index says."""
    try:
        with path.open("rb") as file, _unpacked(file) as plain:
            stored = read_libsvm(plain, str(path))
    except (EOFError, zlib.error, lzma.LZMAError) as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc
    if dim is not None and dim < stored.dim:
        raise ConfigError(f"{path} uses index {stored.dim}: expected none above dim = {dim}")
    width = stored.dim if dim is None else dim
    if width < 1:
        raise ConfigError(f"{path} stores no feature at all: expected index:value on some line")
    return Table(_rows(stored, width), stored.labels)


def read_csv(path: Path, label: str | None) -> Table:
    """Numbers below a line of names, separated by commas."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            names = [name.strip() for name in next(csv.reader(file), [])]
            at, features = split_label(names, label, str(path))
            with warnings.catch_warnings(action="ignore"):  # that there is nothing: said below
                values = np.loadtxt(file, delimiter=",", quotechar='"', comments=None, ndmin=2)
        except (ValueError, csv.Error) as exc:
            raise ConfigError(f"{path}, below its header: {_said(exc)}") from exc
    if values.size == 0:
        raise ConfigError(f"{path} holds no sample: expected lines of numbers below the header")
    if values.shape[1] != len(names):
        raise ConfigError(f"{path}: {values.shape[1]} numbers a line under {len(names)} names")
    rows = _finite_rows(values[:, features] if at is not None else values, path)
    labels = None if at is None else values[:, at].copy()
    return Table(rows, labels, tuple(names[k] for k in features))


def _said(error: Exception) -> str:
    """numpy's words without its advice to programmers."""
    return re.sub(r"; use `usecols`.*", "", str(error).rstrip("."))


def _finite_rows(values: NDArray[np.float64], path: Path) -> Rows:
    try:
        return rows_of(values)
    except ConfigError as exc:
        raise ConfigError(f"{path}: {exc}") from exc


def _unpacked(file: BinaryIO) -> BinaryIO:
    """The text behind a file, by what the file begins with and not by what it is called."""
    head = file.read(6)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(file))
    if head.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(file))
    if head.startswith(b"\xfd7zXZ\x00"):
        return cast(BinaryIO, lzma.open(file))
    return file


def _rows(stored: Samples, dim: int) -> Rows:
    n0 = len(stored.labels)
    if len(stored.values) <= _DENSE_FROM * n0 * dim:
        return SparseRows(stored.values, stored.columns, stored.start, dim)
    A: NDArray[np.float64] = np.zeros((n0, dim))
    A[np.repeat(np.arange(n0), np.diff(stored.start)), stored.columns] = stored.values
    return DenseRows(A)
