"""A run that misses its target says whether more rounds would help."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, nextafter
from pathlib import Path

import pytest

from dlag_lab.outlook import outlook
from dlag_lab.report import render
from dlag_lab.result import RunResult
from tests.lab.synthetic import asked, write_run


def ended(
    folder: Path,
    suboptimality: Callable[[int], float],
    *,
    target: float | None = 1e-6,
    rounds: int = 100,
) -> RunResult:
    run = asked(target=target, advice="lower gamma")
    return write_run(folder / "run", run, rounds=rounds, suboptimality=suboptimality).load()


def test_a_slow_run_says_how_many_rounds_more_it_takes(tmp_path: Path) -> None:
    result = ended(tmp_path, lambda k: 0.97**k)
    said = outlook(result)
    assert said is not None
    # 1e-6 takes log(1e-6) / log(0.97) = 453.6 rounds; the worst of the last 25 is that of round 75
    assert "fell from 0.218 to 0.102 in the last 25 rounds: at this pace some 379 more" in said
    assert said in render(result)


@pytest.mark.parametrize("grows", [1.0, 1.01])
def test_a_run_that_goes_round_in_circles_says_what_to_change(grows: float, tmp_path: Path) -> None:
    result = ended(tmp_path, lambda k: 1.75 * grows**k * (1 + 0.5 * cos(k)))
    said = outlook(result)
    assert said is not None
    assert said.startswith("the suboptimality does not fall, or hardly: up to ")
    assert said.endswith(" in those before; lower gamma")


def test_a_run_that_met_its_target_has_nothing_to_say(tmp_path: Path) -> None:
    assert outlook(ended(tmp_path, lambda k: 0.5**k)) is None


def test_a_run_without_a_target_is_spoken_of_only_when_it_came_nowhere(tmp_path: Path) -> None:
    assert outlook(ended(tmp_path / "a", lambda k: 0.99**k, target=None)) is None
    stays = ended(tmp_path / "b", lambda k: max(1e-3, 0.5**k), target=None)
    assert outlook(stays) is None
    circles = outlook(ended(tmp_path / "c", lambda _: 1.0, target=None))
    assert circles is not None
    assert "does not fall" in circles


def test_a_pace_that_is_no_pace_promises_nothing(tmp_path: Path) -> None:
    said = outlook(ended(tmp_path, lambda k: 1 - 1e-4 * k))
    assert said is not None
    assert said.startswith("the suboptimality does not fall, or hardly: up to ")
    assert said.endswith("; lower gamma")


def test_a_handful_of_rounds_tells_nothing(tmp_path: Path) -> None:
    assert outlook(ended(tmp_path, lambda _: 1.0, rounds=7)) is None


def test_a_fall_by_the_last_bit_is_none(tmp_path: Path) -> None:
    last = nextafter(2.0, 0.0)
    said = outlook(ended(tmp_path, lambda k: nextafter(last, 0.0) if k >= 75 else last))
    assert said is not None
    assert "does not fall" in said
