"""Datasets: the bundled one, files of every packing, and agreement with scikit-learn."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import lzma
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from coordinator.datasets import load_dataset
from dlag_node.errors import ConfigError
from dlag_node.problems import DenseRows, SparseRows
from tests.datasets import names, path_of

TEXT = b"1 1:2 2:3\n2 1:4\n"


def test_heart_is_bundled() -> None:
    heart = load_dataset("heart")
    assert heart.name == "heart"
    assert heart.sha256 == "5defa0a4c4c5bdaf3f55ae3828310252e8565c13ee37ce279e0b86d82e7f4ce9"
    assert isinstance(heart.rows, DenseRows)
    assert heart.rows.A.shape == (270, 13)
    assert np.abs(heart.rows.A).max() == 1.0
    assert (int((heart.labels == -1).sum()), int((heart.labels == 1).sum())) == (150, 120)


@pytest.mark.parametrize("name", names())
def test_scikit_learn_reads_the_same(name: str, tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    path, features = path_of(name, tmp_path)
    ours = load_dataset(str(path), dim=features)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's own deprecations are not ours to fix
        X, y = load_svmlight_file(str(path), n_features=features)
    matrix = ours.rows.matrix()
    assert np.array_equal(ours.labels, y)
    if isinstance(ours.rows, DenseRows):
        assert np.array_equal(matrix, X.toarray())
    else:
        assert (matrix != X).nnz == 0
    assert isinstance(ours.rows, DenseRows) == (X.nnz > 0.25 * X.shape[0] * X.shape[1])


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_a_file_may_be_compressed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(pack(TEXT))
    tiny = load_dataset(str(path))
    assert tiny.name == "tiny"
    assert np.array_equal(tiny.rows.matrix(), [[2.0, 3.0], [4.0, 0.0]])
    assert tiny.labels.tolist() == [1.0, 2.0]
    assert tiny.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("left", [0.5, 0.9])
def test_a_truncated_file_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes], left: float
) -> None:
    packed = pack(TEXT * 2000)
    path = tmp_path / "short"
    path.write_bytes(packed[: int(left * len(packed))])
    with pytest.raises(ConfigError, match=re.escape(f"cannot read {path}: ")):
        load_dataset(str(path))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_damaged_file_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(bytes(TEXT * 2000)))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "damaged"
    path.write_bytes(packed)
    with pytest.raises(ConfigError, match="damaged"):
        load_dataset(str(path))


def test_a_bare_name_is_found_in_the_data_folder(tmp_path: Path) -> None:
    (tmp_path / "tiny").write_bytes(TEXT)
    assert load_dataset("tiny", data_dir=tmp_path).rows.samples == 2


def test_a_missing_file_is_told_with_the_places_looked_at(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no dataset 'nosuch'") as caught:
        load_dataset("nosuch", data_dir=tmp_path)
    assert str(tmp_path / "nosuch") in str(caught.value)
    assert str(Path("nosuch").absolute()) in str(caught.value)
    with pytest.raises(ConfigError, match="looked for"):
        load_dataset("x" * 300)
    with pytest.raises(ConfigError, match="looked for"):
        load_dataset(str(tmp_path))


def test_a_csv_is_a_dataset_too(tmp_path: Path) -> None:
    path = tmp_path / "tiny.csv"
    path.write_text("age,ill,dose\n30,1,0.5\n40,0,1.5\n")
    tiny = load_dataset(str(path), label="ill")
    assert np.array_equal(tiny.rows.matrix(), [[30.0, 0.5], [40.0, 1.5]])
    assert tiny.labels.tolist() == [1.0, 0.0]
    with pytest.raises(ConfigError, match=r"expected --label .*; its columns: age, ill, dose"):
        load_dataset(str(path))


def test_few_stored_entries_make_sparse_rows(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"1 1:1\n2 8:2\n")
    sparse = load_dataset(str(path)).rows
    assert isinstance(sparse, SparseRows)
    assert np.array_equal(sparse.matrix().toarray()[:, [0, 7]], [[1, 0], [0, 2]])
    path.write_bytes(b"1 1:1\n2 2:2\n")
    assert isinstance(load_dataset(str(path)).rows, DenseRows)


def test_dim_widens_and_never_cuts(tmp_path: Path) -> None:
    path = tmp_path / "tiny"
    path.write_bytes(TEXT)
    assert load_dataset(str(path), dim=5).rows.dim == 5
    with pytest.raises(ConfigError, match="uses index 2: expected none above dim = 1"):
        load_dataset(str(path), dim=1)


def test_a_file_without_features_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bare"
    path.write_bytes(b"1\n2\n")
    with pytest.raises(ConfigError, match="stores no feature at all"):
        load_dataset(str(path))
