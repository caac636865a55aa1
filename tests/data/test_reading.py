"""Tables from every format: the same numbers, and the words with which bad files are refused."""

from __future__ import annotations

import hashlib
import io
import re
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import random_array, save_npz

from dlag_node.data import read_table, storage
from dlag_node.data.arrays import write_npz as write_rows
from dlag_node.errors import ConfigError, StorageError
from dlag_node.problems import DenseRows, SparseRows, rows_of

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 5))
Y = RNG.integers(0, 2, 40).astype(float)
SPARSE = random_array(X.shape, density=0.3, rng=RNG, format="csr")
NAMES = ("age", "dose", "a b", "c,d", "e")


def write_libsvm(folder: Path) -> Path:
    path = folder / "local.libsvm"
    lines = (
        f"{y!r} " + " ".join(f"{k}:{v!r}" for k, v in enumerate(x.tolist(), 1))
        for x, y in zip(X, Y.tolist(), strict=True)
    )
    path.write_text("\n".join(lines))
    return path


def write_csv(folder: Path) -> Path:
    path = folder / "local.csv"
    header = 'age,ill,dose,"a b","c,d",e'
    rows = np.column_stack([X[:, :1], Y, X[:, 1:]])
    path.write_text("\n".join([header, *(",".join(map(repr, row)) for row in rows.tolist())]))
    return path


def write_npz(folder: Path, **change: np.ndarray) -> Path:
    np.savez(folder / "local.npz", **({"X": X, "ill": Y} | change))
    return folder / "local.npz"


def write_packed_npz(folder: Path) -> Path:
    np.savez_compressed(folder / "local.npz", X=X, ill=Y.astype(np.int8))
    return folder / "local.npz"


def write_npy(folder: Path) -> Path:
    np.save(folder / "labels.npy", Y)
    np.save(folder / "local.npy", X)
    return folder / "local.npy"


def write_parquet(folder: Path) -> Path:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"age": X[:, 0], "ill": Y.astype(np.int32)}
    columns |= dict(zip(NAMES[1:], X[:, 1:].T, strict=True))
    pq.write_table(pa.table(columns), folder / "local.parquet", row_group_size=7)
    return folder / "local.parquet"


WRITERS = [write_libsvm, write_csv, write_npz, write_packed_npz, write_npy, write_parquet]


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_every_format_holds_the_same_table(tmp_path: Path, write: Callable[[Path], Path]) -> None:
    path = write(tmp_path)
    label = str(tmp_path / "labels.npy") if path.suffix == ".npy" else "ill"
    table = read_table(path, label=label)
    assert isinstance(table.rows, DenseRows)
    assert np.array_equal(table.rows.A, X)
    assert table.rows.A.flags.c_contiguous
    assert table.rows.A.flags.aligned
    assert table.rows.A.flags.writeable  # or compiled loops would be compiled again
    assert np.array_equal(table.known_labels("it"), Y)
    assert table.names == (NAMES if path.suffix in (".csv", ".parquet") else None)
    raw = path.read_bytes()
    if path.suffix == ".npy":
        raw += (tmp_path / "labels.npy").read_bytes()
    assert table.sha256 == hashlib.sha256(raw).hexdigest()


@pytest.mark.parametrize("write", [write_csv, write_npz, write_npy, write_parquet])
def test_labels_may_be_missing_until_somebody_needs_them(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    table = read_table(write(tmp_path))
    assert table.labels is None
    with pytest.raises(ConfigError, match="the file: expected --label to say where the labels are"):
        table.known_labels("the file")


def test_the_labels_of_an_npz_are_called_y_unless_said(tmp_path: Path) -> None:
    assert np.array_equal(read_table(write_npz(tmp_path, y=1.0 - Y)).known_labels("it"), 1.0 - Y)
    other = read_table(write_npz(tmp_path, y=1.0 - Y), label="ill")
    assert np.array_equal(other.known_labels("it"), Y)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i4", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_other_numbers_become_float64(tmp_path: Path, dtype: str, order: str) -> None:
    A = np.asarray(X > 0 if dtype == "?" else 10 * X, dtype=dtype, order=order)  # type: ignore[call-overload]
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "a.npz", X=A)
    for name in ("a.npy", "a.npz"):
        rows = read_table(tmp_path / name).rows
        assert np.array_equal(rows.matrix(), A.astype(np.float64))


def test_a_large_matrix_is_unpacked_into_a_file_and_one_in_an_npy_is_used_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "IN_MEMORY_BYTES", 100)
    monkeypatch.setattr(storage, "BLOCK_BYTES", 100)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    maps = Path("/proc/self/maps")
    unpacked = read_table(write_packed_npz(tmp_path), label="ill").rows
    assert np.array_equal(unpacked.matrix(), X)
    assert f"{tmp_path}/" in maps.read_text()
    in_place = read_table(write_npy(tmp_path)).rows
    assert str(tmp_path / "local.npy") in maps.read_text()
    assert np.array_equal(in_place.matrix(), X)
    in_place.matrix()[0, 0] = 7.0  # private: the file stays as it is
    assert np.load(tmp_path / "local.npy")[0, 0] == X[0, 0]
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(StorageError, match=r"no room for 1600 bytes in .*nowhere \(TMPDIR\)"):
        read_table(write_packed_npz(tmp_path))


def test_sparse_samples_lie_in_an_npz_as_they_are(tmp_path: Path) -> None:
    rows = rows_of(random_array((300, 20_000), density=1e-3, rng=RNG, format="csr"))
    assert isinstance(rows, SparseRows)
    labels = RNG.normal(size=300)
    write_rows(tmp_path / "own.npz", rows, labels)
    save_npz(tmp_path / "scipy.npz", rows.matrix())
    assert (tmp_path / "own.npz").stat().st_size < 200_000  # 48 MB as a dense matrix
    table = read_table(tmp_path / "own.npz")
    assert np.array_equal(table.known_labels("it"), labels)
    for found in (table.rows, read_table(tmp_path / "scipy.npz").rows):
        assert isinstance(found, SparseRows)
        assert found.dim == rows.dim
        for name in ("values", "columns", "start"):
            assert np.array_equal(getattr(found, name), getattr(rows, name)), name


def bad_csv(text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "bad.csv").write_text(text)
        return folder / "bad.csv"

    return write


def bad_npz(**arrays: np.ndarray) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        np.savez(folder / "bad.npz", **arrays)
        return folder / "bad.npz"

    return write


def bad_sparse(**change: np.ndarray) -> Callable[[Path], Path]:
    members = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr}
    members |= {"shape": np.array(SPARSE.shape), "format": np.array(b"csr"), "y": Y}
    return bad_npz(**(members | change))


def bad_bytes(name: str, raw: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(raw)
        return folder / name

    return write


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "csv: empty": (bad_csv(""), "no column 'y'"),
    "csv: header alone": (bad_csv("a,y\n"), "holds no sample"),
    "csv: label alone": (bad_csv("y\n1\n"), "no column beside the label"),
    "csv: no such label": (bad_csv("a,b\n1,2\n"), "no column 'y': expected one of a, b"),
    "csv: a name twice": (bad_csv("a,a,y\n1,2,3\n"), "column 'a' comes twice"),
    "csv: text": (bad_csv("a,y\n1,2\nred,3\n"), "could not convert string 'red'"),
    "csv: empty place": (bad_csv("a,y\n1,2\n,3\n"), "could not convert string ''"),
    "csv: short line": (bad_csv("a,b,y\n1,2,3\n1,2\n"), "number of columns changed from 3 to 2"),
    "csv: more numbers than names": (bad_csv("a,y\n1,2,3\n"), "3 numbers a line under 2 names"),
    "csv: nan": (bad_csv("a,y\nnan,1\n"), "a value that is not finite"),
    "csv: label inf": (bad_csv("a,y\n1,inf\n"), "a label is not finite"),
    "npz: no X": (bad_npz(y=Y), "has no array 'X'; it has y"),
    "npz: no y": (bad_npz(X=X), "has no array 'y'; it has X"),
    "npz: no zip": (bad_bytes("bad.npz", b"hello"), "cannot read .*: File is not a zip file"),
    "npz: vector": (bad_npz(X=Y, y=Y), r"an array of shape \(40,\): expected a matrix"),
    "npz: labels in two axes": (bad_npz(X=X, y=X), "expected one label a sample"),
    "npz: other length": (bad_npz(X=X, y=Y[:9]), r"labels of shape \(9,\): expected \(40,\)"),
    "npz: text": (bad_npz(X=X.astype(str), y=Y), "entries of type <U.*: expected numbers"),
    "npz: objects": (bad_npz(X=X.astype(object), y=Y), "entries of type object: expected numbers"),
    "npz: complex": (bad_npz(X=1j * X, y=Y), "entries of type complex128: expected numbers"),
    "npz: nan": (bad_npz(X=X * np.nan, y=Y), "a value that is not finite"),
    "npz: sparse, by columns": (bad_sparse(format=np.array(b"csc")), "expected the form csr"),
    "npz: sparse, an index too large": (
        bad_sparse(indices=SPARSE.indices + 3),
        "cannot read .*: (indices|column index)",
    ),
    "npz: sparse, an index below 0": (
        bad_sparse(indices=SPARSE.indices - 3),
        "cannot read .*: (indices|column index)",
    ),
    "npz: sparse, indices of floats": (
        bad_sparse(indices=SPARSE.indices.astype(float)),
        "indices: entries of type float64: expected whole numbers",
    ),
    "npz: sparse, fewer rows": (bad_sparse(indptr=SPARSE.indptr[:-1]), "cannot read .*"),
    "npz: sparse, rows that go back": (
        bad_sparse(indptr=np.r_[0, SPARSE.nnz, SPARSE.indptr[2:]]),
        "cannot read .*: .*non-decreasing",
    ),
    "npz: sparse, more entries than stored": (
        bad_sparse(indptr=SPARSE.indptr * 9),
        "cannot read .*",
    ),
    "npz: sparse, three axes": (bad_sparse(shape=np.array([4, 2, 5])), r"expected two axes"),
    "npz: sparse, no rows at all": (bad_sparse(shape=np.array([-40, 5])), r"expected two axes"),
    "npz: sparse, nan": (bad_sparse(data=SPARSE.data * np.nan), "a value that is not finite"),
    "npz: none": (bad_npz(X=X[:0], y=Y[:0]), "holds no sample"),
}


@pytest.mark.parametrize(("write", "words"), BAD.values(), ids=BAD)
def test_a_bad_file_is_refused_with_the_reason(
    tmp_path: Path, write: Callable[[Path], Path], words: str
) -> None:
    path = write(tmp_path)
    with pytest.raises(ConfigError, match=words) as caught:
        read_table(path, label="y")
    assert path.name in str(caught.value)


def test_a_bad_parquet_file_is_refused_with_the_reason(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = bad_bytes("bad.parquet", b"PAR1")(tmp_path)
    with pytest.raises(ConfigError, match=r"cannot read .*bad\.parquet"):
        read_table(path)
    for column, words in (
        (pa.array([1.0, None]), "column 'a' has empty places"),
        (pa.array(["x", "y"]), "column 'a' is of type string: expected numbers"),
        (pa.array([1.0, float("nan")]), "a value that is not finite"),
    ):
        pq.write_table(pa.table({"a": column, "y": [0, 1]}), path)
        with pytest.raises(ConfigError, match=words):
            read_table(path, label="y")


@pytest.mark.parametrize("cut", [3, 60, 200, 1_500])
def test_a_truncated_npy_is_refused(tmp_path: Path, cut: int) -> None:
    path = bad_bytes("short.npy", npy(X)[:cut])(tmp_path)
    with pytest.raises(ConfigError, match=r"short\.npy"):
        read_table(path)


def test_a_damaged_npz_is_refused(tmp_path: Path) -> None:
    path = write_packed_npz(tmp_path)
    raw = bytearray(path.read_bytes())
    raw[200] ^= 0xFF
    path.write_bytes(raw)
    with pytest.raises(ConfigError, match=re.escape(f"cannot read {path}: ")):
        read_table(path)


def test_a_member_that_ends_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", npy(X)[:-8])
    with pytest.raises(ConfigError, match="X: ends 8 bytes too early"):
        read_table(path)


def test_without_pyarrow_a_parquet_file_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bad_bytes("table.parquet", b"")(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"pip install 'dlag-mesh\[parquet\]'"):
        read_table(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*none\.csv: .*No such file"):
        read_table(tmp_path / "none.csv")


def test_dim_holds_for_every_format(tmp_path: Path) -> None:
    assert read_table(write_csv(tmp_path), label="ill", dim=5).rows.dim == 5
    with pytest.raises(ConfigError, match="has 5 features: expected dim = 6"):
        read_table(write_csv(tmp_path), label="ill", dim=6)
