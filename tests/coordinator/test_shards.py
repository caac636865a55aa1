"""Shards: exact partitions, the same for the same seed, and the reference counts."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.datasets import load_dataset
from coordinator.shards import split
from dlag_node.errors import ConfigError

SPECS = ["even", "uneven:1,10", "uneven:0.001,1000", "labels:0.001", "labels:0.5", "labels:1e9"]


@pytest.mark.parametrize("spec", SPECS)
@given(
    nodes=st.integers(1, 40), extra=st.integers(0, 200), seed=st.integers(0, 2**64), data=st.data()
)
def test_every_sample_goes_to_exactly_one_worker(
    spec: str, nodes: int, extra: int, seed: int, data: st.DataObject
) -> None:
    n0 = nodes + extra
    positive = data.draw(st.integers(0, n0))
    labels = np.where(np.arange(n0) < positive, 1.0, -1.0)
    shards = split(spec, labels, nodes=nodes, seed=seed)
    assert len(shards) == nodes
    assert all(len(shard) >= 1 and shard.dtype == np.int64 for shard in shards)
    assert sorted(np.concatenate(shards).tolist()) == list(range(n0))
    if spec == "even":
        sizes = [len(shard) for shard in shards]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("spec", SPECS)
def test_the_seed_decides(spec: str) -> None:
    labels = np.where(np.arange(300) % 3 == 0, 1.0, -1.0)

    def dealt(seed: int) -> list[list[int]]:
        return [shard.tolist() for shard in split(spec, labels, nodes=7, seed=seed)]

    assert dealt(5) == dealt(5)
    assert dealt(5) != dealt(6)


def test_heart_on_25_workers_has_the_reference_counts() -> None:
    labels = load_dataset("heart").labels
    counts = [len(shard) for shard in split("uneven:1,10", labels, nodes=25, seed=0)]
    reference = "13 7 3 2 16 18 13 15 12 19 17 2 17 3 15 5 17 12 7 10 2 4 14 14 13"
    assert counts == [int(word) for word in reference.split()]


def test_uneven_shards_are_blocks_of_the_second_draw() -> None:
    shards = split("uneven:1,10", np.zeros(270), nodes=25, seed=3)
    rng = np.random.default_rng(3)
    p = rng.uniform(1, 10, 25)
    assert np.array_equal(np.concatenate(shards), rng.permutation(270))
    sizes = np.array([len(shard) for shard in shards])
    assert np.abs(sizes - 270 * p / p.sum()).max() <= 1


def test_who_gets_his_one_sample_anyway_takes_it_from_the_fullest() -> None:
    # p over a range of 10^6 leaves most workers below one sample
    sizes = [len(shard) for shard in split("uneven:0.001,1000", np.zeros(12), nodes=10, seed=0)]
    assert sum(sizes) == 12
    assert min(sizes) == 1


def test_a_small_alpha_parts_the_labels_and_a_large_one_mixes_them() -> None:
    labels = np.where(np.arange(4000) < 2000, 1.0, -1.0)

    def skew(alpha: str) -> float:
        shards = split(f"labels:{alpha}", labels, nodes=10, seed=1)
        return float(np.mean([abs(labels[shard].mean()) for shard in shards]))

    assert skew("0.05") > 0.8
    assert skew("1000") < 0.1


BAD = [
    ("odd", "unknown shards 'odd': expected even, uneven:a,b or labels:alpha"),
    ("", "unknown shards ''"),
    ("even:3", "unknown shards 'even:3'"),
    ("uneven:1", "unknown shards 'uneven:1'"),
    ("uneven:-1,3", "unknown shards 'uneven:-1,3'"),
    ("uneven:nan,3", "unknown shards 'uneven:nan,3'"),
    ("uneven:3,3", "a = 3, b = 3, expected 0 < a < b"),
    ("uneven:10,1", "a = 10, b = 1, expected 0 < a < b"),
    ("uneven:0,1", "a = 0, b = 1, expected 0 < a < b"),
    ("uneven:1,1e999", "a = 1, b = inf, expected 0 < a < b <= 1e+09"),
    ("labels:", "unknown shards 'labels:'"),
    ("labels:0", "alpha = 0, expected 0.001 to 1e+09"),
    ("labels:1e400", "alpha = inf, expected 0.001 to 1e+09"),
]


@pytest.mark.parametrize(("spec", "words"), BAD)
def test_a_bad_spec_is_refused_with_its_values(spec: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        split(spec, np.zeros(10), nodes=3, seed=0)


def test_impossible_shares_are_refused() -> None:
    with pytest.raises(ConfigError, match="9 samples for 10 nodes"):
        split("even", np.zeros(9), nodes=10, seed=0)
    with pytest.raises(ConfigError, match="0 nodes"):
        split("even", np.zeros(9), nodes=0, seed=0)
    with pytest.raises(ConfigError, match="seed = -2"):
        split("even", np.zeros(9), nodes=3, seed=-2)
    with pytest.raises(ConfigError, match="500 different labels: expected at most 100"):
        split("labels:1", np.arange(500.0), nodes=3, seed=0)
