"""Whole runs with promises beside those without: what they reach, and in how many rounds."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import pytest

from dlag_node.errors import ConvergenceError
from dlag_node.methods.dual import DualAscent
from dlag_node.rounds import Engine
from tests.methods.plans import Run, heart_plan, simulate

TARGET = 1e-7
EXACT = "solver=newton,stop=exact:1e-10"
MOST_ROUNDS = 1.05  # of those without promises
INSTANCES = range(200 if os.environ.get("DLAG_TEST_FULL") else 12)


class Slack:
    """The lazy condition summed over all workers, round by round."""

    def __init__(self) -> None:
        self.gaps: dict[int, float] = {}
        self.bounds: dict[int, float] = {}
        self.overdue = 0
        self.silent = 0

    def look(self, engine: Engine) -> None:
        method = engine.method
        assert isinstance(method, DualAscent)
        decided = method.channel.decided
        self.gaps[method.k] = self.gaps.get(method.k, 0.0) + decided.gap
        self.bounds[method.k] = self.bounds.get(method.k, 0.0) + decided.bound
        self.overdue += decided.overdue
        self.silent += not decided.send

    @property
    def ratio(self) -> float:
        """The largest sum of left sides over that of right sides; 1 is what Lemma 2 needs."""
        return max(gap / self.bounds[k] for k, gap in self.gaps.items() if gap)


def rounds_of(run: Run) -> int | None:
    """After how many iterations the target was met; None: never."""
    errors = (each.suboptimality for each in run.measured)
    return next((k for k, error in enumerate(errors) if error <= TARGET), None)


# SSDA's messages; at most 0.5 of them, and 0.38 with prediction.
@pytest.mark.parametrize(
    ("predict", "R", "share"), [("predict=none", 2, 0.5), ("predict=linear", 3, 0.38)]
)
@pytest.mark.parametrize(("seed", "ssda"), [(0, 42_880), (1, 40_560), (2, 34_480)])
def test_on_the_reference_instance_the_sum_of_the_lazy_conditions_is_never_broken(
    seed: int, ssda: int, predict: str, R: int, share: float
) -> None:
    slack = Slack()
    plan = heart_plan(f"dlag:{predict},promise={R}", seed=seed)
    run = simulate(plan, 900, target=TARGET, finished=slack.look)
    rounds = rounds_of(run)
    before = rounds_of(simulate(heart_plan(f"dlag:{predict}", seed=seed), 900, target=TARGET))
    assert rounds is not None
    assert before is not None
    assert rounds <= MOST_ROUNDS * before
    assert sum(each.deltas for row in run.records[:rounds] for each in row) <= share * ssda
    assert slack.ratio <= 0.5
    assert slack.overdue <= 0.01 * slack.silent
    assert slack.silent > 5_000


@dataclass(frozen=True, slots=True)
class Instance:
    """A run on heart, drawn at random."""

    topology: str
    shards: str
    lam: float
    gamma: float
    D: int
    weights: str
    seed: int

    def run(self, more: str) -> int | None:
        given = f"gamma={self.gamma:.3g},c=1e-4,D={self.D},{self.weights},{EXACT}{more}"
        plan = heart_plan(
            f"dlag:{given}",
            topology=self.topology,
            shards=self.shards,
            lam=self.lam,
            seed=self.seed,
        )
        try:
            return rounds_of(simulate(plan, 1_500, target=TARGET))
        except ConvergenceError:
            return None


def instance(number: int) -> Instance:
    rng = np.random.default_rng((14, number))
    n = int(rng.integers(4, 17))
    graphs = [f"path:{n}", f"ring:{n}", f"star:{n}", f"complete:{n}", f"erdos:{n},0.5", "grid:4x4"]
    shards = ["even", "uneven:1,4", "uneven:1,10", "labels:1"]
    return Instance(
        topology=str(rng.choice(graphs)),
        shards=str(rng.choice(shards)),
        lam=float(10 ** rng.uniform(-2, -1)),
        gamma=float(10 ** rng.uniform(-6, -2.5)),
        D=int(rng.integers(3, 60)),
        weights=str(rng.choice(["weights=given", "weights=curvature,constants=tight,mu=own"])),
        seed=number,
    )


@pytest.mark.parametrize("number", INSTANCES)
def test_no_instance_is_lost_that_converges_without_promises(number: int) -> None:
    drawn = instance(number)
    before = drawn.run("")
    if before is None:
        pytest.skip("does not converge without promises either")
    for R in (2, 3):
        rounds = drawn.run(f",promise={R}")
        assert rounds is not None, drawn
        assert rounds <= MOST_ROUNDS * before + 1, drawn
