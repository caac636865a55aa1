"""The referee grants rounds in blocks; a target met in block b ends the run with block b + 1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dlag_lab.referee import BLOCK_ROUNDS, Measurement, Referee
from dlag_node.problems import Array
from tests.methods.matrix_form import shards_of
from tests.methods.plans import simulate, small_plan

assert BLOCK_ROUNDS == 10


class Hall:
    """A referee and the thetas that it is shown: everybody's far from the optimum, or at it."""

    def __init__(self, folder: Path, *, target: float | None, rounds: int) -> None:
        plan = small_plan(folder, "ssda:solver=closed", topology="path:2")
        self.measured: list[Measurement] = []
        self.referee = Referee(plan, target=target, rounds=rounds, report=self.measured.append)

    def play(self, rounds: int, *, good: bool = False) -> None:
        for _ in range(rounds):
            for node in range(2):
                self.referee.take(node, self.theta(good)[None, :])

    def theta(self, good: bool) -> Array:
        star = self.referee.theta_star
        return star if good else star + 1.0

    @property
    def horizon(self) -> tuple[int, bool]:
        return self.referee.horizon.rounds, self.referee.horizon.final


def test_without_a_target_all_rounds_are_granted_at_once(tmp_path: Path) -> None:
    for rounds in (1, 7, 10, 23):
        assert Hall(tmp_path, target=None, rounds=rounds).horizon == (rounds, True)


def test_rounds_alone_are_exact(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "ssda:solver=closed", topology="ring:4")
    for rounds in (1, 7, 23):
        assert len(simulate(plan, rounds).records) == rounds
        assert len(simulate(plan, rounds, target=1e-30).records) == rounds


def test_one_block_is_always_granted_ahead_of_the_one_under_judgement(tmp_path: Path) -> None:
    hall = Hall(tmp_path, target=1e-6, rounds=1000)
    assert hall.horizon == (20, False)
    hall.play(9)
    assert hall.horizon == (20, False)
    hall.play(1)
    assert hall.horizon == (30, False)
    hall.play(10)
    assert hall.horizon == (40, False)


@pytest.mark.parametrize(
    ("before", "reached", "granted"),
    [(0, 1, 20), (8, 9, 20), (9, 10, 20), (10, 11, 30), (19, 20, 30), (24, 25, 40)],
)
def test_a_target_met_in_block_b_ends_with_block_b_plus_1(
    before: int, reached: int, granted: int, tmp_path: Path
) -> None:
    hall = Hall(tmp_path, target=1e-6, rounds=1000)
    hall.play(before)
    assert hall.referee.reached is None
    hall.play(1, good=True)
    assert hall.referee.reached == reached
    assert hall.horizon == (granted, True)
    hall.play(granted - reached)  # what is worse afterwards takes nothing back
    assert hall.referee.reached == reached
    assert hall.horizon == (granted, True)


def test_the_limit_cuts_the_blocks_short(tmp_path: Path) -> None:
    assert Hall(tmp_path, target=1e-6, rounds=7).horizon == (7, True)
    assert Hall(tmp_path, target=1e-6, rounds=20).horizon == (20, True)
    hall = Hall(tmp_path, target=1e-6, rounds=25)
    assert hall.horizon == (20, False)
    hall.play(10)
    assert hall.horizon == (25, True)


def test_a_target_met_in_the_last_block_ends_at_the_limit(tmp_path: Path) -> None:
    hall = Hall(tmp_path, target=1e-6, rounds=25)
    hall.play(22)
    hall.play(1, good=True)
    assert hall.horizon == (25, True)


@pytest.mark.parametrize("shuffle", [None, 0, 1])
def test_a_run_ends_with_the_block_after_the_one_that_met_the_target(
    shuffle: int | None, tmp_path: Path
) -> None:
    run = simulate(small_plan(tmp_path, "ssda:solver=closed"), 1000, target=1e-4, shuffle=shuffle)
    errors = [each.suboptimality for each in run.measured]
    reached = 1 + next(k for k, error in enumerate(errors) if error <= 1e-4)
    assert len(run.records) == (-(-reached // 10) + 1) * 10


def test_a_round_is_judged_once_everybody_has_finished_it(tmp_path: Path) -> None:
    hall = Hall(tmp_path, target=1e-6, rounds=100)
    far, star = hall.theta(False), hall.theta(True)
    hall.referee.take(0, np.array([star, star]))  # two rounds ahead of the other
    assert hall.measured == []
    hall.referee.take(1, far[None, :])
    assert [each.k for each in hall.measured] == [0]
    hall.referee.take(1, star[None, :])
    assert [each.k for each in hall.measured] == [0, 1]
    assert hall.referee.reached == 2  # the worst node counts


def test_a_measurement_is_the_worst_node_and_the_farthest_from_the_mean(tmp_path: Path) -> None:
    plan = small_plan(tmp_path, "ssda:solver=closed", topology="ring:4")
    run = simulate(plan, 5)
    shards = shards_of(plan)
    A, b = np.vstack(shards.A), np.concatenate(shards.b)

    def f(theta: Array) -> float:
        return float(np.mean((A @ theta - b) ** 2) / 2 + shards.lam * theta @ theta)

    H = A.T @ A / len(b) + 2 * shards.lam * np.eye(A.shape[1])
    best = f(np.linalg.solve(H, A.T @ b / len(b)))
    for Theta, seen in zip(run.Theta, run.measured, strict=True):
        assert seen.suboptimality == pytest.approx(max(map(f, Theta)) - best, abs=1e-14)
        away = np.linalg.norm(Theta - Theta.mean(axis=0), axis=1)
        assert seen.consensus_error == pytest.approx(away.max(), rel=1e-12)
