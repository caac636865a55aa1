"""What nodes say of their samples, what is agreed from it, and what that does to the samples."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from coordinator.datasets import load_dataset
from dlag_node.data import (
    Agreement,
    HeldData,
    HeldFile,
    Spread,
    Summary,
    Table,
    agree,
    storage,
    summarise,
)
from dlag_node.errors import ConfigError, StorageError
from dlag_node.problems import LOGISTIC, SQUARED, Array, DenseRows, Loss, SparseRows, rows_of
from tests.datasets import raw_heart


def table(X: Array, labels: Array, names: tuple[str, ...] | None = None) -> Table:
    return Table(rows_of(X), labels, names)


def agreed(
    tables: list[Table], *, loss: Loss = LOGISTIC, scale: str = "none", intercept: float = 0.0
) -> Agreement:
    said = {f"node {i}": summarise(each, scale, who="it") for i, each in enumerate(tables)}
    return agree(said, loss=loss, scale=scale, intercept=intercept)


def parts(seed: int, nodes: int, spread: float = 100.0) -> list[Table]:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, nodes)
    centres, widths = rng.normal(size=4) * spread, np.exp(rng.normal(size=4))
    labels = rng.integers(0, 2, sizes.sum()).astype(float)
    labels[:2] = 0.0, 1.0
    X = centres + widths * rng.normal(size=(sizes.sum(), 4))
    cuts = np.cumsum(sizes)[:-1]
    return [table(*each) for each in zip(np.split(X, cuts), np.split(labels, cuts), strict=True)]


@given(seed=st.integers(0, 10_000), nodes=st.integers(1, 6))
def test_scaling_by_parts_is_scaling_the_whole(seed: int, nodes: int) -> None:
    tables = parts(seed, nodes)
    X = np.concatenate([each.rows.matrix() for each in tables])
    for scale, scaler in (
        ("minmax", MinMaxScaler((-1, 1))),
        ("standard", StandardScaler()),
    ):
        how = agreed(tables, scale=scale)
        ours = np.concatenate([how.rows(each.rows).matrix() for each in tables])
        if len(X) > 2:  # of two values scikit-learn's rounding differs in what is constant
            # both subtract a centre of about 100 from values as large: eps * 100 / width
            np.testing.assert_allclose(ours, scaler.fit_transform(X), atol=1e-10)


def test_a_constant_feature_becomes_zero() -> None:
    X = np.column_stack([np.full(12, 1e6 + 0.1), np.arange(12.0), np.zeros(12)])
    for scale in ("minmax", "standard"):
        tables = [table(X[:5], np.arange(5) % 2.0), table(X[5:], np.arange(7) % 2.0)]
        rows = agreed(tables, scale=scale).rows(tables[0].rows).matrix()
        assert not rows[:, [0, 2]].any()
        assert np.ptp(rows[:, 1]) > 0


def test_blocks_change_nothing_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    (whole,) = parts(1, 1)
    before = {scale: agreed([whole], scale=scale) for scale in ("minmax", "standard")}
    monkeypatch.setattr(storage, "BLOCK_BYTES", 64)
    monkeypatch.setattr(storage, "IN_MEMORY_BYTES", 64)
    for scale, how in before.items():
        again = agreed([whole], scale=scale)
        np.testing.assert_allclose(again.scaling(4), how.scaling(4), rtol=1e-13)
        assert np.array_equal(
            how.rows(whole.rows).matrix(),
            (whole.rows.matrix() - how.scaling(4)[0]) * how.scaling(4)[1],
        )


def test_raw_heart_scaled_to_one_is_the_paper_s_heart() -> None:
    X, labels = raw_heart()
    raw = Table(rows_of(X), labels)
    ours = agreed([raw], scale="minmax").rows(raw.rows).matrix()
    # the file has six digits
    np.testing.assert_allclose(ours, load_dataset("heart").rows.matrix(), atol=1e-6)


def test_nothing_to_do_leaves_the_very_same_rows() -> None:
    (whole,) = parts(1, 1)
    assert agreed([whole]).rows(whole.rows) is whole.rows


@pytest.mark.parametrize("scale", ["none", "minmax", "standard"])
@pytest.mark.parametrize("intercept", [0.0, 2.5])
def test_sparse_rows_become_what_dense_ones_do(scale: str, intercept: float) -> None:
    rng = np.random.default_rng(5)
    sparse = sp.random_array((30, 6), density=0.3, rng=rng, format="csr")
    labels = rng.integers(0, 2, 30).astype(float)
    tables = [Table(rows_of(each), labels) for each in (sparse, sparse.toarray())]
    how = agreed(tables, scale=scale, intercept=intercept)
    ours, dense = (how.rows(each.rows) for each in tables)
    assert isinstance(dense, DenseRows)
    assert isinstance(ours, SparseRows) == (scale == "none")  # a shift leaves no zeros
    matrix = ours.matrix() if isinstance(ours, DenseRows) else ours.matrix().toarray()
    assert np.array_equal(matrix, dense.A)
    assert dense.dim == 6 + how.extra
    if intercept:
        assert (dense.A[:, -1] == intercept).all()


def test_classes_are_agreed_where_nodes_have_one_each() -> None:
    X = np.ones((3, 2))
    tables = [table(X, np.full(3, 7.0)), table(X, np.full(3, -2.0)), table(X, [7.0, -2.0, 7.0])]
    how = agreed(tables)
    assert how.classes == (-2.0, 7.0)
    assert how.labels(np.array([7.0, -2.0])).tolist() == [1.0, -1.0]
    with pytest.raises(ConfigError, match=r"a label beside the agreed classes \[-2.0, 7.0\]"):
        how.labels(np.array([1.0]))
    ridge = agreed(tables, loss=SQUARED)
    assert ridge.classes == ()
    assert ridge.labels(np.array([7.0, -2.0])).tolist() == [7.0, -2.0]


def said(**change: object) -> Summary:
    good: dict[str, object] = {
        "samples": 10,
        "dim": 2,
        "names": None,
        "labels": (-1.0, 1.0),
        "scale": "none",
        "spread": None,
    }
    return Summary(**(good | change))  # type: ignore[arg-type]


HUGE = Spread(np.array([-1e308, 0.0]).tobytes(), np.array([1e308, 1.0]).tobytes())
DISAGREEMENTS: dict[str, tuple[list[Summary], str]] = {
    "dimensions": (
        [said(), said(dim=3), said()],
        r"the number of features: 2 on node 0, node 2; 3 on node 1 \(LIBSVM text does not say",
    ),
    "names": (
        [said(names="a" * 64), said(names="b" * 64)],
        "the features' names: sha256 aaaaaaaaaaaa on node 0; sha256 bbbbbbbbbbbb on node 1",
    ),
    "names and none": (
        [said(names="a" * 64), said()],
        "names: sha256 aaaaaaaaaaaa on node 0; no names on node 1",
    ),
    "labels": (
        [said(), said(labels=(0.0, 1.0)), said(labels=(1.0,))],
        "the labels: -1, 1 on node 0; 0, 1 on node 1; 1 on node 2",
    ),
    "three classes": (
        [said(labels=(0.0,)), said(labels=(1.0,)), said(labels=(2.0,))],
        "the labels: 0 on node 0; 1 on node 1; 2 on node 2",
    ),
    "many labels": ([said(), said(labels=None)], "more than two different labels: node 1;"),
    "one class": ([said(labels=(1.0,)), said(labels=(1.0,))], "all labels are 1: expected two"),
    "scales": (
        [said(), said(scale="minmax", spread=HUGE)],
        "--scale: none on node 0; minmax on node 1",
    ),
}


@pytest.mark.parametrize(("summaries", "words"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_those_who_do_not_agree_are_named(summaries: list[Summary], words: str) -> None:
    named = {f"node {i}": each for i, each in enumerate(summaries)}
    with pytest.raises(ConfigError, match=words):
        agree(named, loss=LOGISTIC, scale="none", intercept=0.0)


def test_the_run_s_scaling_is_the_nodes_own() -> None:
    with pytest.raises(ConfigError, match="node 0: --scale none, the run has --scale minmax"):
        agree({"node 0": said()}, loss=LOGISTIC, scale="minmax", intercept=0.0)


def test_a_thousand_nodes_that_all_differ_make_a_short_reason() -> None:
    with pytest.raises(ConfigError) as caught:
        agree(
            {f"node {i}": said(dim=1 + i) for i in range(1_000)},
            loss=LOGISTIC,
            scale="none",
            intercept=0.0,
        )
    assert len(str(caught.value)) < 500


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_no_numbers_make_a_scaling_that_is_not_finite(scale: str) -> None:
    tiny = np.array([0.0, 5e-324])
    for first, second in ((np.array([-1e308, 0.0]), np.array([1e308, 1.0])), (0 * tiny, tiny)):
        spread = Spread(first.tobytes(), second.tobytes())
        other = Spread((-first).tobytes(), second.tobytes())
        named = {"node 0": said(scale=scale, spread=spread)}
        named["node 1"] = said(scale=scale, spread=other)
        with suppress(ConfigError):  # or else every number of it can be used
            how = agree(named, loss=LOGISTIC, scale=scale, intercept=0.0)
            assert np.isfinite(how.scaling(2)).all()


def csv_file(folder: Path, samples: int) -> Path:
    lines = [f"{j},{j * j},{j % 2}" for j in range(samples)]
    (folder / "own.csv").write_text("\n".join(["a,b,y", *lines]))
    return folder / "own.csv"


def test_few_samples_tell_nothing_of_their_features(tmp_path: Path) -> None:
    file = HeldFile(csv_file(tmp_path, 9), "y")
    assert HeldData(file).open().summary.spread is None
    with pytest.raises(ConfigError, match=r"has 9 samples: --scale minmax would .* at least 10 \("):
        HeldData(file, "minmax").open()
    told = HeldData(file, "minmax", min_samples=9).open().summary.spread
    assert told is not None
    assert [each.tolist() for each in told.vectors] == [[0.0, 0.0], [8.0, 64.0]]


def test_a_file_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    file = HeldData(HeldFile(csv_file(tmp_path, 9), "y")).open().file
    assert file.path.is_absolute()
    assert file.table().rows.samples == 9
    csv_file(tmp_path, 8)
    with pytest.raises(StorageError, match=r"own\.csv has changed since the run began: sha256 "):
        file.table()
