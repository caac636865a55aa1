"""The summary counts exactly what the records say."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dlag_lab.folder import RunFolder
from dlag_lab.summary import bytes_always_sending, refreshed, summarise, theta_sha256
from tests.cluster.meshes import finish
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


def test_a_skipped_message_is_a_token_or_nothing(tmp_path: Path) -> None:
    """Workers 1, 5, 9 and 13 promise their silences: nothing of theirs is on the wire."""
    result = write_run(tmp_path / "run", quiet=lambda i, _: i % 4 == 1).load()
    summary = summarise(result.run, result.records, result.trajectory)
    sent, quiet = sent_by(300), 150 * (3 + 4 + 4 + 3)
    assert summary["deltas_sent"] == sent
    assert summary["quiet"] == quiet
    assert summary["tokens_sent"] == 300 * 48 - sent - quiet
    assert summary["deltas_skipped"] == 300 * 48 - sent
    assert summary["bytes_frames"] == sent * (PAYLOAD + HEADER) + summary["tokens_sent"] * TOKEN
    always = 300 * 48 * PAYLOAD, 300 * 48 * (PAYLOAD + HEADER)
    assert bytes_always_sending(result.records) == always
    assert result.skip_share == 1 - sent / (300 * 48)


def test_where_no_delta_stands_alone_its_frame_is_that_of_a_token(tmp_path: Path) -> None:
    """As in the older records of `tree`: in every round of every worker there are tokens."""
    result = write_run(tmp_path / "run", rounds=12).load()
    records = replace(result.records, skips=result.records.skips + 1)
    payload, frames = bytes_always_sending(records)
    messages = int((records.deltas + records.skips).sum())
    assert payload == messages * PAYLOAD
    around = int((records.sent_bytes - records.payload_bytes).sum()) / messages
    assert frames == pytest.approx(payload + messages * around, abs=1)


def test_overdue_and_slack_are_summed_over_the_workers(tmp_path: Path) -> None:
    def condition(i: int, k: int) -> tuple[float, float]:
        if k == 0:
            return 9.0, 0.0  # nobody is silent in it
        if k == 7:
            return (40.0 if i == 3 else 0.5), 5.0  # one beyond its bound, all together within
        return (0.0 if i % 2 else 1.0), 4.0

    folder = write_run(tmp_path / "run", condition=condition, overdue=lambda i, k: (i, k) == (3, 7))
    summary = summarise(folder.load().run, folder.load().records, folder.load().trajectory)
    assert summary["overdue"] == 1
    assert summary["slack_ratio"] == (40.0 + 15 * 0.5) / (16 * 5.0)


def test_a_condition_that_one_worker_does_not_tell_is_nobodys(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "run",
        rounds=9,
        condition=lambda i, k: (2.0, 1.0) if (i, k) != (5, 4) else (None, None),
    )
    result = folder.load()
    assert summarise(result.run, result.records, result.trajectory)["slack_ratio"] == 2.0
    only_4 = replace(result.records, gap=np.where(np.arange(9)[:, None] == 4, 1.0, np.nan))
    assert summarise(result.run, only_4, result.trajectory)["slack_ratio"] is None


def test_the_slack_of_a_simulated_run_is_that_of_its_files(tmp_path: Path) -> None:
    finish("simulate", tmp_path / "run", method="dlag:promise=2", topology="grid:3x3", rounds=80)
    lines = [
        [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]
        for path in sorted((tmp_path / "run" / "nodes").glob("*.jsonl"))
    ]
    ratios = []
    for k in range(1, 80):
        gaps, bounds = ([each[k].get(name) for each in lines] for name in ("gap", "bound"))
        if None not in (*gaps, *bounds):
            ratios.append(sum(gaps) / sum(bounds))
    summary = RunFolder(tmp_path / "run").load().summary
    assert summary["slack_ratio"] == (pytest.approx(max(ratios)) if ratios else None)
    assert summary["overdue"] == sum(line.get("overdue", 0) for each in lines for line in each)
    assert all(0 < ratio <= 1 for ratio in [summary["slack_ratio"]] if ratio is not None)


@pytest.mark.parametrize("method", ["ssda", "tree"])
def test_a_method_without_the_papers_condition_has_no_slack_ratio(
    tmp_path: Path, method: str
) -> None:
    result = write_run(tmp_path / "run", asked(method=method), rounds=4).load()
    summary = summarise(result.run, result.records, result.trajectory)
    assert (summary["slack_ratio"], summary["overdue"]) == (None, 0)


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
        wire={"packets": 7, "bytes": 900, "counted_by": "interfaces"},
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
