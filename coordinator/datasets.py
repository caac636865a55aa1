"""The samples of a run: the bundled heart set, or any LIBSVM file, plain or compressed."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from coordinator.libsvm import Samples, read_libsvm
from dlag_node.errors import ConfigError
from dlag_node.problems import LOGISTIC, Array, DenseRows, Loss, Rows, SparseRows, binary_labels

LIBSVM_SETS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/"
_HEART = Path(__file__).with_name("bundled") / "heart_scale"
# From this share of stored entries on, a dense row is both smaller and faster than a sparse one
# (a stored entry takes 16 bytes, a dense one 8).
_DENSE_FROM = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """n0 samples with their labels, under a name and the sha256 of the file as it is stored."""

    name: str
    rows: Rows
    labels: Array
    sha256: str


def load_dataset(
    source: str, loss: Loss, *, data_dir: Path | None = None, dim: int | None = None
) -> Dataset:
    """The dataset `heart`, or that of a file: a path, or a bare name to be found in `data_dir`.

    The file is LIBSVM text, plain or compressed by gzip, bzip2 or xz. The logistic loss takes its
    labels through `binary_labels`, ridge takes them as they are. `dim` is for files which do not
    happen to use their last features. (A file called `heart` is reached as `./heart`.)
    """
    path = _HEART if source == "heart" else _find(source, data_dir)
    stored, sha256 = _read(path)
    if dim is not None and dim < stored.dim:
        raise ConfigError(f"{path} uses index {stored.dim}: expected none above dim = {dim}")
    width = stored.dim if dim is None else dim
    if width < 1:
        raise ConfigError(f"{path} stores no feature at all: expected index:value on some line")
    labels = stored.labels
    if loss == LOGISTIC:
        try:
            labels = binary_labels(labels)
        except ConfigError as exc:
            raise ConfigError(f"{path}: {exc}") from exc
    name = source if source == "heart" else path.name
    return Dataset(name, _rows(stored, width), labels, sha256)


def _find(source: str, data_dir: Path | None) -> Path:
    places = [Path(source)]
    if data_dir is not None and places[0].name == source:
        places.append(data_dir / source)
    for place in places:
        with suppress(OSError):  # a folder we may not enter: say below that we looked there
            if place.is_file():
                return place
    looked = " and ".join(str(place.absolute()) for place in places)
    raise ConfigError(
        f"no dataset {source!r}: expected heart (bundled) or a LIBSVM file; looked for {looked}. "
        f"LIBSVM's own sets are at {LIBSVM_SETS}; name their folder by --data-dir or DLAG_DATA_DIR"
    )


def _read(path: Path) -> tuple[Samples, str]:
    try:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            with _unpacked(file) as text:
                return read_libsvm(text, str(path)), sha256
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as exc:
        raise ConfigError(f"cannot read {path}: {exc}") from exc


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
