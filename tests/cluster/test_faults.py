"""Faults of every kind on a mesh of real processes: it ends, with the undisturbed run's bits."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from coordinator.plan import RunSettings
from dlag_lab.faults.faults import KINDS, draw, possible_kinds
from dlag_lab.faults.soak import disturbed

NEIGHBORS = [[1], [0, 2], [1]]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("method", ["dlag", "tree"])
def test_a_fault_of_every_kind_changes_no_bit(method: str, tmp_path: Path) -> None:
    settings = RunSettings(method=method, topology="grid:2x3", rounds=160, seed=1)
    kinds = possible_kinds()
    outcome = disturbed(settings, tmp_path, faults=len(kinds), kinds=kinds)
    assert outcome.wrong == ()
    assert outcome.faults == dict.fromkeys(kinds, 1)
    assert outcome.killed >= 6 + 2 + 1
    assert outcome.resumes >= 1


def test_a_schedule_is_drawn_from_its_seed() -> None:
    def schedule(seed: int) -> list[object]:
        return [*draw(seed, faults=30, rounds=50, neighbors=NEIGHBORS, kinds=KINDS)]

    assert schedule(3) == schedule(3) != schedule(4)


def test_a_schedule_has_every_kind_equally_often_and_fits_the_run() -> None:
    faults = draw(Random().randrange(1000), faults=30, rounds=50, neighbors=NEIGHBORS, kinds=KINDS)
    for kind in KINDS:
        assert sum(fault.kind == kind for fault in faults) == 3
    assert faults == sorted(faults, key=lambda fault: fault.k)
    assert all(5 <= fault.k < 50 for fault in faults)
    for fault in faults:
        if fault.kind == "kill two neighbors":
            first, second = fault.victims
            assert second in NEIGHBORS[first]
