"""The simulator: one process, any order, the same bits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_lab.referee import Referee
from dlag_lab.simulate import Simulator
from dlag_node.rounds import Record
from tests.methods.plans import Run, heart_plan, simulate, small_plan

METHODS = ["ssda:stop=epochs:4", "msda:stop=epochs:4", "dlag:stop=epochs:4", "mdlag:stop=epochs:4"]


def assert_same_bits(one: Run, other: Run) -> None:
    np.testing.assert_array_equal(one.Theta, other.Theta)
    assert one.timeless == other.timeless
    assert one.measured == other.measured


@pytest.mark.parametrize("method", METHODS)
def test_any_order_of_events_gives_the_same_bits_on_the_grid(method: str) -> None:
    ordered = simulate(heart_plan(method), 30)
    for shuffle in (0, 1):
        assert_same_bits(ordered, simulate(heart_plan(method), 30, shuffle=shuffle))


@pytest.mark.parametrize("method", METHODS)
def test_any_order_of_events_gives_the_same_bits_on_a_ring(method: str, tmp_path: Path) -> None:
    plan = small_plan(tmp_path, method, topology="ring:7", problem="logistic")
    ordered = simulate(plan, 30)
    assert plan.nodes == 7
    for shuffle in range(5):
        assert_same_bits(ordered, simulate(plan, 30, shuffle=shuffle))


def test_a_shuffled_run_to_a_target_ends_with_the_same_round(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "dlag:solver=closed,D=10")
    ordered = simulate(plan, 500, target=1e-3)
    assert 20 < len(ordered.records) < 500
    assert_same_bits(ordered, simulate(plan, 500, target=1e-3, shuffle=3))


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bits_and_another_does_not(
    method: str, tmp_path: Path
) -> None:
    one, again, other = (
        simulate(small_plan(tmp_path, method, seed=seed, topology="ring:7"), 10)
        for seed in (3, 3, 4)
    )
    assert_same_bits(one, again)
    assert not np.array_equal(one.Theta, other.Theta)


def test_each_worker_draws_from_a_stream_of_its_own(tmp_path: Path) -> None:
    # the same samples everywhere, nothing to agree on: only the draws can differ
    samples = "1 1:1 2:0.5\n-1 1:0.3 2:-1\n" * 3
    plan = small_plan(
        tmp_path,
        "ssda:solver=svrg,stop=epochs:1",
        topology="ring:3",
        problem="logistic",
        samples=samples,
    )
    streams = [engine.method.oracle.rng for engine in Simulator(plan).engines]  # type: ignore[attr-defined]
    draws = {tuple(stream.integers(1 << 30, size=4)) for stream in streams}
    assert len(draws) == 3


def test_the_files_of_a_run_hold_every_round(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "dlag:solver=closed", topology="ring:4")
    run = simulate(plan, 12)
    referee = Referee(plan, target=None, rounds=12, report=lambda _: None)
    final = Simulator(plan).run(referee, records=tmp_path / "nodes")
    for node in range(4):
        lines = (tmp_path / "nodes" / f"node-{node:03d}.jsonl").read_text().splitlines()
        records = [Record.from_json(line) for line in lines]
        thetas = np.fromfile(tmp_path / "nodes" / f"node-{node:03d}.theta", "<f8")
        assert [record.k for record in records] == list(range(12))
        assert [record.exchanges for record in records] == [row[node] for row in run.sent]
        assert all(record.wait == 0 for record in records)
        np.testing.assert_array_equal(thetas.reshape(12, -1), run.Theta[:, node])
        np.testing.assert_array_equal(final[node], run.Theta[-1, node])
