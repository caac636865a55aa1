"""The plan: the same settings, the same words to everybody; and shards as bytes."""

from __future__ import annotations

import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import coordinator.datasets
from coordinator.plan import Plan, RunSettings
from dlag_node.errors import ConfigError
from dlag_node.problems import DenseRows, SparseRows, rows_of, shard_bytes, shard_from
from dlag_node.problems.shard import stored_entries
from dlag_node.wire.control import Report

HEART = Path(coordinator.datasets.__file__).with_name("bundled") / "heart_scale"
BASE = RunSettings(topology="grid:2x3")


def reports(plan: Plan) -> list[Report]:
    return [
        Report(
            f"tcp://10.0.0.{i}:9",
            len(plan.parts[i]),
            0.1 + i / 100,
            1.0 + i,
            2.0 + i,
            3.0 + i,
            4.0 + i,
        )
        for i in range(plan.nodes)
    ]


def config_of(settings: RunSettings) -> str:
    plan = Plan(settings)
    (config,) = {each.config for each in plan.assignments(reports(plan))}
    return config


def test_the_same_settings_give_the_same_assignments_in_another_run() -> None:
    one, two = Plan(BASE), Plan(BASE)
    assert one.run != two.run
    assert one.assignments(reports(one)) == two.assignments(reports(two))
    for i in range(one.nodes):
        (enrol, body), (other, same) = one.enrolment(i), two.enrolment(i)
        assert replace(enrol, run="") == replace(other, run="")
        assert body == same


def shifted_heart(folder: Path) -> str:
    """Heart with one sample less."""
    lines = HEART.read_text().splitlines(keepends=True)
    (folder / "shorter").write_text("".join(lines[:-1]))
    return str(folder / "shorter")


CHANGES: dict[str, object] = {
    "method": "ssda",
    "preset": "theory",
    "topology": "grid:3x2",
    "weights": "max-degree",
    "problem": "ridge",
    "lam": 0.02,
    "data": None,  # a file of the test's
    "label": "y",
    "scale": "minmax",
    "intercept": 1.0,
    "shards": "even",
    "without": "3",
    "rounds": 4_999,
    "tol": 1e-6,
    "max_seconds": 60.0,
    "seed": 1,
}


def test_every_setting_is_tried_below() -> None:
    assert {field.name for field in fields(RunSettings)} == {*CHANGES, "data_dir"}


@pytest.mark.parametrize("name", CHANGES)
def test_the_config_hash_follows_every_setting(tmp_path: Path, name: str) -> None:
    change = CHANGES[name] if name != "data" else shifted_heart(tmp_path)
    assert config_of(replace(BASE, **{name: change})) != config_of(BASE)


def test_the_config_hash_follows_what_the_nodes_report() -> None:
    plan = Plan(BASE)
    first = plan.assignments(reports(plan))[0].config
    for change in ({"mu": 0.01}, {"L": 50.0}):
        changed = [replace(each, **change) for each in reports(plan)]
        assert plan.assignments(changed)[0].config != first


def test_the_config_hash_does_not_follow_the_last_bits_of_what_they_report() -> None:
    """Another processor's LAPACK has others, and the referee is on a host of its own."""
    plan = Plan(BASE)
    told = reports(plan)
    names = ("mu", "L", "L_sample", "L_sum", "root_sum")
    near = [
        replace(each, **{name: getattr(each, name) * (1 + 1e-14) for name in names})
        for each in told
    ]
    assert near != told
    assert plan.assignments(near)[0].config == plan.assignments(told)[0].config


def test_the_config_hash_does_not_depend_on_where_a_graph_or_labels_lie(tmp_path: Path) -> None:
    places = []
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        graph = tmp_path / name / "graph.txt"
        graph.write_text("0 1\n1 2\n2 3\n", encoding="ascii")
        np.save(tmp_path / name / "X.npy", np.eye(8))
        np.save(tmp_path / name / "y.npy", np.tile([-1.0, 1.0], 4))
        files = {part: str(tmp_path / name / f"{part}.npy") for part in ("X", "y")}
        settings = replace(BASE, topology=str(graph), data=files["X"], label=files["y"])
        places.append(replace(settings, shards="even"))
    assert config_of(places[0]) == config_of(places[1])
    assert config_of(places[0]) == config_of(replace(places[0], topology="path:4"))


def test_the_config_hash_does_not_depend_on_how_a_number_is_said() -> None:
    said = replace(BASE, lam=np.float64(0.5), intercept=1, max_seconds=60)
    assert config_of(said) == config_of(replace(BASE, lam=0.5, intercept=1.0, max_seconds=60.0))
    assert repr(said.lam) == "0.5"  # as it stands in the words to a coordinator


def test_the_config_hash_does_not_depend_on_where_the_data_lies(tmp_path: Path) -> None:
    places = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        shutil.copy(HEART, folder / "set.txt")
        places.append(replace(BASE, data="set.txt", data_dir=str(folder)))
    assert config_of(places[0]) == config_of(places[1])
    assert config_of(places[0]) == config_of(replace(BASE, data=str(HEART)))


@pytest.mark.parametrize(
    "topology", ["grid:2x3", "ring:5", "star:9", "complete:4", "path:2", "erdos:12,0.4"]
)
@pytest.mark.parametrize("weights", ["metropolis", "max-degree", "laplacian"])
def test_an_assignment_is_a_row_of_U(topology: str, weights: str) -> None:
    plan = Plan(replace(BASE, topology=topology, weights=weights))
    assigned = plan.assignments(reports(plan))
    # a row has at most n terms, each rounded once: n * eps * the largest
    tolerance = plan.nodes * np.finfo(float).eps * np.abs(plan.U).max()
    for i, each in enumerate(assigned):
        ids = [peer.node for peer in each.peers]
        assert ids == sorted(ids)
        assert i not in ids
        assert abs(each.own_weight + sum(peer.weight for peer in each.peers)) <= tolerance
        for peer in each.peers:
            assert peer.address == f"tcp://10.0.0.{peer.node}:9"
            assert {p.node: p.weight for p in assigned[peer.node].peers}[i] == peer.weight
        assert each.mu_min == 0.1
        assert each.L_max == float(plan.nodes)
        assert each.L_sample == 1.0 + plan.nodes
        assert each.census is not None
        assert each.census.edges == plan.graph.edges
        assert each.census.L_sum == tuple(3.0 + j for j in range(plan.nodes))
        assert each.census.root_sum == tuple(4.0 + j for j in range(plan.nodes))
        assert len(each.spectrum) == plan.nodes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rounds": 0}, "rounds = 0: expected at least 1"),
        ({"seed": -1}, "seed = -1: expected a whole number of at least 0"),
        ({"scale": "max"}, "scale 'max': expected one of none, minmax, standard"),
        ({"intercept": -1.0}, "intercept = -1.0: expected a number of at least 0"),
    ],
)
def test_settings_out_of_range_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        replace(BASE, **change)


def test_more_nodes_than_samples_are_refused() -> None:
    with pytest.raises(ConfigError, match="270 samples for 271 nodes"):
        Plan(RunSettings(topology="path:271"))


FINITE = st.floats(-1e300, 1e300)


@given(samples=st.integers(1, 6), dim=st.integers(1, 6), data=st.data())
def test_a_dense_shard_comes_back_bit_for_bit(samples: int, dim: int, data: st.DataObject) -> None:
    entries = st.lists(FINITE, min_size=samples * dim, max_size=samples * dim)
    A = np.array(data.draw(entries)).reshape(samples, dim)
    labels = np.array(data.draw(st.lists(FINITE, min_size=samples, max_size=samples)))
    body = shard_bytes(DenseRows(A), labels)
    assert len(body) == 8 * samples * (dim + 1)
    rows, same = shard_from(body, samples=samples, dim=dim, entries=None)
    assert isinstance(rows, DenseRows)
    assert rows.A.tobytes() == A.tobytes()
    assert same.tobytes() == labels.tobytes()


@given(samples=st.integers(1, 6), dim=st.integers(1, 6), seed=st.integers(0, 99))
def test_a_sparse_shard_comes_back_bit_for_bit(samples: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    made = rows_of(sp.random_array((samples, dim), density=0.4, rng=rng, format="csr"))
    assert isinstance(made, SparseRows)
    labels = rng.normal(size=samples)
    entries = stored_entries(made)
    assert entries is not None
    body = shard_bytes(made, labels)
    assert len(body) == 8 * (2 * samples + 2 * entries + 1)
    rows, same = shard_from(bytearray(body), samples=samples, dim=dim, entries=entries)
    assert isinstance(rows, SparseRows)
    assert rows.dim == dim
    for name in ("values", "columns", "start"):
        assert getattr(rows, name).tobytes() == getattr(made, name).tobytes()
    assert same.tobytes() == labels.tobytes()


def sparse_shard(
    columns: tuple[int, ...] = (0, 4, 2),
    start: tuple[int, ...] = (0, 2, 3),
) -> bytes:
    """Two samples of five features with three stored entries."""
    return b"".join(
        [
            np.array([1.0, -1.0]).astype("<f8").tobytes(),
            np.array([0.5, 0.25, 2.0]).astype("<f8").tobytes(),
            np.array(columns).astype("<i8").tobytes(),
            np.array(start).astype("<i8").tobytes(),
        ]
    )


def test_the_shard_that_is_damaged_below_is_good() -> None:
    rows, labels = shard_from(sparse_shard(), samples=2, dim=5, entries=3)
    assert rows.matrix().toarray().tolist() == [[0.5, 0, 0, 0, 0.25], [0, 0, 2.0, 0, 0]]
    assert labels.tolist() == [1.0, -1.0]


DAMAGED: dict[str, tuple[bytes, int | None, str]] = {
    "empty": (b"", 3, "a shard of 0 bytes: expected 88"),
    "a byte short": (sparse_shard()[:-1], 3, "a shard of 87 bytes: expected 88"),
    "a byte long": (sparse_shard() + b"\0", 3, "a shard of 89 bytes: expected 88"),
    "more entries announced": (sparse_shard(), 4, "a shard of 88 bytes: expected 104"),
    "announced as dense": (sparse_shard(), None, "a shard of 88 bytes: expected 96"),
    "column 5 of 5": (sparse_shard(columns=(0, 5, 2)), 3, "a column outside 0 to 4"),
    "column -1": (sparse_shard(columns=(0, -1, 2)), 3, "a column outside 0 to 4"),
    "column 2^63 - 1": (sparse_shard(columns=(0, 2**63 - 1, 2)), 3, "a column outside 0 to 4"),
    "starts that fall": (sparse_shard(start=(0, 4, 3)), 3, "row starts are not in order"),
    "starts below 0": (sparse_shard(start=(0, -1, 3)), 3, "row starts are not in order"),
    "first start": (sparse_shard(start=(1, 2, 3)), 3, "row starts are not in order"),
    "last start, less": (sparse_shard(start=(0, 2, 2)), 3, "row starts are not in order"),
    "last start, more": (sparse_shard(start=(0, 2, 4)), 3, "row starts are not in order"),
    "a difference that overflows": (
        sparse_shard(start=(0, -(2**63), 3)),
        3,
        "row starts are not in order",
    ),
}


@pytest.mark.parametrize(("body", "entries", "words"), DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_shard_is_refused(body: bytes, entries: int | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        shard_from(body, samples=2, dim=5, entries=entries)
