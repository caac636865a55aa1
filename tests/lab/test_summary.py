"""The summary counts exactly what the records say."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.summary import refreshed, summarise, theta_sha256
from tests.lab.synthetic import GRADIENTS, HEADER, PAYLOAD, RATE, TOKEN, asked, period, write_run

DEGREES = [2, 3, 3, 2, 3, 4, 4, 3, 3, 4, 4, 3, 2, 3, 3, 2]


def sent_by(rounds: int) -> int:
    return sum(d * math.ceil(rounds / period(i)) for i, d in enumerate(DEGREES))


def test_totals_are_exact(tmp_path: Path) -> None:
    result = write_run(tmp_path / "run").load()
    summary = summarise(result.run, result.records, result.trajectory, seconds=9.5)
    sent, possible = sent_by(300), 300 * 48
    assert (summary["nodes"], summary["edges"]) == (16, 24)
    assert summary["rounds"] == summary["exchanges"] == 300
    assert summary["deltas_sent"] == sent
    assert summary["deltas_skipped"] == possible - sent
    assert summary["bytes_payload"] == sent * PAYLOAD
    assert summary["bytes_sent"] == sent * (PAYLOAD + HEADER) + (possible - sent) * TOKEN
    assert summary["sample_gradients"] == 300 * 16 * GRADIENTS
    assert summary["suboptimality"] == pytest.approx(0.4 * RATE**299)
    assert summary["consensus_error"] == pytest.approx(0.4 * RATE**299 / 7)
    assert summary["preset"] == "paper"
    assert summary["topology"] == "grid:4x4"
    assert summary["seconds"] == 9.5
    assert sum(summary["seconds_by_kind"].values()) == pytest.approx(9.5)


def test_to_target_counts_the_round_that_reaches_it(tmp_path: Path) -> None:
    run = asked(target=0.4 * RATE**100)
    result = write_run(tmp_path / "run", run, suboptimality=lambda k: 0.4 * RATE**k).load()
    summary = summarise(result.run, result.records, result.trajectory)
    assert summary["rounds_to_target"] == 101
    assert summary["deltas_to_target"] == sent_by(101)
    assert summary["gradients_to_target"] == 101 * 16 * GRADIENTS
    skipped = 101 * 48 - sent_by(101)
    assert summary["seconds_to_target"] is None
    assert summary["bytes_to_target"] == sent_by(101) * (PAYLOAD + HEADER) + skipped * TOKEN


def test_the_time_to_the_target_is_that_of_its_rounds(tmp_path: Path) -> None:
    run = asked(target=0.4 * RATE**100)
    result = write_run(tmp_path / "run", run, suboptimality=lambda k: 0.4 * RATE**k).load()
    records = result.records
    nothing, first = 0 * records.wait, np.arange(300)[:, None] < 101
    slow = replace(records, compute=nothing + np.where(first, 3.0, 1.0), wait=nothing)
    summary = summarise(result.run, slow, result.trajectory, seconds=10.0)
    assert summary["seconds_to_target"] == pytest.approx(10 * 303 / (303 + 199))
    still = replace(records, compute=nothing, wait=nothing)
    summary = summarise(result.run, still, result.trajectory, seconds=10.0)
    assert summary["seconds_to_target"] is None


@pytest.mark.parametrize("target", [None, 1e-30])
def test_a_target_never_reached_or_asked_is_null(tmp_path: Path, target: float | None) -> None:
    result = write_run(tmp_path / "run", asked(target=target), rounds=5).load()
    summary = summarise(result.run, result.records, result.trajectory)
    for field in ("rounds", "deltas", "gradients", "bytes", "seconds"):
        assert summary[f"{field}_to_target"] is None


def test_only_the_first_of_several_exchanges_is_lazy(tmp_path: Path) -> None:
    result = write_run(tmp_path / "run", asked(method="mdlag"), rounds=48, K=4).load()
    summary = summarise(result.run, result.records, result.trajectory)
    assert summary["exchanges"] == 192
    assert summary["deltas_skipped"] == 48 * 48 - sent_by(48)
    assert summary["deltas_sent"] == sent_by(48) + 3 * 48 * 48
    np.testing.assert_allclose(result.lazy_share, [1 - 1 / period(i) for i in range(16)])


def test_a_summary_is_computed_again_from_the_folder_alone(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run")
    result = folder.load()
    summary = summarise(
        result.run,
        result.records,
        result.trajectory,
        seconds=3.0,
        bytes_control=4321,
        theta_sha256="ab",
        startup={"seconds": 1.5},
        memory={"peak_mb": 81.0},
    )
    folder.write_summary(summary)
    assert folder.load().summary == summary
    assert refreshed(folder.load()) == summary


def test_the_simulators_times_are_summed(tmp_path: Path) -> None:
    result = write_run(tmp_path / "run", asked(mode="simulate"), rounds=5).load()
    kinds = summarise(result.run, result.records, result.trajectory)["seconds_by_kind"]
    assert kinds == {
        "compute": pytest.approx(result.records.compute.sum()),
        "wait": pytest.approx(result.records.wait.sum()),
    }


def test_theta_is_hashed_in_id_order_as_little_endian() -> None:
    thetas = [np.array([1.0, 2.0]), np.array([3.0, 4.0])]
    expected = hashlib.sha256(np.array([1, 2, 3, 4], dtype="<f8").tobytes()).hexdigest()
    assert theta_sha256(thetas) == expected
    assert theta_sha256([theta.astype(">f8") for theta in thetas]) == expected
    assert theta_sha256(thetas[::-1]) != expected
