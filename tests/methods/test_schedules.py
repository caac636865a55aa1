"""Who speaks when: every method in the most unfair order there is, against what it declares."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from coordinator.plan import Plan
from dlag_lab.simulate import engines_of
from dlag_node.methods import METHODS
from dlag_node.methods.flow import EVERYBODY_SPEAKS
from dlag_node.rounds import Engine
from tests.methods.plans import simulate, small_plan
from tests.rounds.meshes import held, run_unfairly

EASY = {"fgm": "fgm:eps=1e-5,solver=newton"}
PROMISING = [
    "dlag:promise=1",
    "dlag:promise=2",
    "dlag:promise=3,predict=linear,form=f4",
    "dlag:promise=6,gamma=0.01",
    "dlag:promise=2,rule=steps,tau=2.0",
    "mdlag:promise=2",
    "mdlag:promise=2,K=4,gamma=0.01",
    "mdlag-all:promise=2,K=3,gamma=0.01",
    "lazy-extra:promise=2,tau=4.0",
    "lazy-exact-diffusion:promise=3",
    "lazy-admm:promise=2",
]
TOLD = [f"{name}:promise=0" for name in METHODS if name.startswith(("dlag", "mdlag", "lazy"))]
SILENT = [*PROMISING, "adfs", "adfs:edges=3", "tree"]
ALL = [*dict.fromkeys([*(EASY.get(name, name) for name in METHODS), *TOLD, *SILENT])]
GRAPHS = ["erdos:9,0.4", "path:4", "star:5"]


class Look:
    """How far apart neighbors were, and what was held; each can be answered wherever it is."""

    def __init__(self, engines: list[Engine]) -> None:
        self.engines = engines
        self.partners = self.others = self.held = 0

    def __call__(self) -> None:
        for engine in self.engines:
            partners = engine.method.schedule.partners
            for j in engine.barrier.neighbors:
                ahead = engine.seq - self.engines[j].seq
                if partners is None or j in partners:
                    self.partners = max(self.partners, ahead)
                else:
                    self.others = max(self.others, ahead)
                self.held = max(self.held, held(engine, j))
                engine.frames_from(j, self.engines[j].seq)


def unfair(plan: Plan, rounds: int, *, seed: int, slow: int | None) -> Look:
    look = Look(engines_of(plan))
    run_unfairly(look.engines, rounds, seed, look, slow=slow)
    return look


@pytest.mark.grid
@pytest.mark.parametrize("topology", GRAPHS)
@pytest.mark.parametrize("method", ALL)
def test_the_order_of_events_changes_nothing_and_nobody_is_too_far_ahead(
    method: str, topology: str, tmp_path: Path
) -> None:
    rounds = 130 if method.startswith("adfs") else 20
    plan = small_plan(tmp_path, method, topology=topology, problem="logistic")
    run = simulate(plan, rounds)
    quiet = sum(record.quiet for row in run.records for record in row)
    if run.engines[0].method.schedule == EVERYBODY_SPEAKS:
        assert quiet == 0
    assert quiet > 0 or method not in SILENT
    for seed, slow in ((0, None), (1, 0), (2, plan.nodes - 1)):
        look = unfair(plan, rounds, seed=seed, slow=slow)
        thetas = np.array([engine.method.theta for engine in look.engines])
        assert np.array_equal(thetas, run.Theta[-1])
        lead = look.engines[0].window.lead
        assert max(look.partners, look.others) <= lead
        assert look.held <= lead + 1
    shuffled = simulate(plan, rounds, shuffle=3)
    assert np.array_equal(shuffled.Theta, run.Theta)
    assert shuffled.timeless == run.timeless


def test_the_tree_has_no_narrower_window(tmp_path: Path) -> None:
    """Parents and children are up to 3 depth - 1 apart; two that exchange nothing, 4 depth - 1."""
    plan = small_plan(tmp_path, "tree", topology="erdos:9,0.4")
    looks = [unfair(plan, 6, seed=seed, slow=seed % 9) for seed in range(20)]
    depth = looks[0].engines[0].method.parameters["depth"]
    assert depth == 2
    assert max(look.partners for look in looks) == 5
    assert max(look.others for look in looks) == 7 == looks[0].engines[0].window.lead
