"""A new plan for a run some of whose nodes never come back: the others go on, warm started.

The lost nodes leave with their samples: the problem becomes that of the samples that are left, on
the graph that is left. Every other node's last checkpoint gives its theta. All begin at the mean of
those, theta, with the gradients of the new problem there less their mean, which sum to zero
(`methods.beginning`): the multipliers of the old problem would not, since the lost node's part of
the sum is gone with it. The new run folder holds a state folder for each of them, as if all had
been saved before round 0; `dlag resume` starts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coordinator.plan import Plan, RunSettings
from coordinator.without import parse_without
from dlag_lab.folder import RunFolder
from dlag_lab.keyring import Keyring
from dlag_lab.resuming import settings_of
from dlag_lab.runs import RunRequest, described
from dlag_lab.simulate import Array
from dlag_lab.workers import Workers
from dlag_node.errors import ConfigError
from dlag_node.methods.beginning import Beginnable
from dlag_node.rounds import Engine
from dlag_node.rounds.checkpoint import Owner
from dlag_node.rounds.keeper import Keeper
from dlag_node.rounds.state_folder import Place, StateFolder
from dlag_node.rounds.worker import engine_for, problem_of


@dataclass(frozen=True, slots=True)
class Replanned:
    """What was lost, and how the others begin."""

    lost: tuple[int, ...]  # ids in the old run
    formerly: tuple[int, ...]  # the old id of each node of the new one
    samples: int  # that are left
    samples_before: int
    rounds: int  # that the old run had made everywhere
    warm: bool

    @property
    def samples_lost(self) -> int:
        """How many left the problem with their nodes."""
        return self.samples_before - self.samples

    def to_json(self) -> dict[str, Any]:
        """For run.json."""
        return {
            "lost": list(self.lost),
            "formerly": list(self.formerly),
            "samples_lost": self.samples_lost,
            "samples_before": self.samples_before,
            "rounds_before": self.rounds,
            "warm": self.warm,
        }


def replan(source: Path, without: str, out: Path) -> Replanned:
    """Make the run folder `out` of the run in `source`, without these of its nodes."""
    settings, target, every = settings_of(source)
    if not every:
        raise ConfigError(f"{source} has no checkpoints: it was run without --checkpoint")
    old = Plan(settings)
    lost = parse_without(without, old.nodes)
    if not lost:
        raise ConfigError("without nobody: expected the ids of nodes that never come back")
    kept = tuple(i for i in range(old.nodes) if i not in lost)
    ends = [_last(RunFolder(source).state_path(i)) for i in kept]
    smaller = replace(settings, without=_named(settings, old, lost))
    plan = Plan(smaller)
    workers = Workers(plan, [place.bound for place, _ in ends])
    rounds = min(engine.rounds for _, engine in ends)
    warm = rounds > 0 and all(isinstance(each.method, Beginnable) for each in workers.engines)
    if warm:
        _begin(workers, np.mean([engine.method.theta for _, engine in ends], axis=0))
    found = Replanned(lost, kept, plan.n0, old.n0, rounds, warm)
    request = RunRequest(settings=smaller, mode="mesh", target=target, out=out, checkpoint=every)
    folder = RunFolder.create(out, force=False)
    folder.write_run(described(request, workers) | {"replanned": found.to_json()})
    keys = Keyring(folder.keys_path, plan.nodes)  # new ones: ids have changed hands
    for node, (place, engine) in enumerate(zip(workers.places, workers.engines, strict=True)):
        _save(folder.state_path(node), _keyed(place, keys), engine, every)
    return found


def _named(settings: RunSettings, old: Plan, lost: Sequence[int]) -> str:
    """All that are lost by now, as the plan has it: by the ids of the whole topology."""
    before = parse_without(settings.without, old.nodes + len(old.lost))
    ids = [i for i in range(old.nodes + len(old.lost)) if i not in before]
    return ",".join(map(str, sorted([*before, *(ids[i] for i in lost)])))


def _last(state: Path) -> tuple[Place, Engine]:
    """A node's place, and its engine as the last checkpoint has it."""
    if not (state / "place").exists():
        raise ConfigError(f"{state} holds no place in a run: is that node lost, too?")
    with StateFolder(state) as folder:
        place = folder.place()
        assert place is not None
        engine = engine_for(place.enrol, place.assignment, problem_of(place.enrol, place.samples()))
        owner = Owner(place.enrol.run, place.assignment.config, place.enrol.node)
        Keeper(folder, owner, every=1).recall(engine)
    return place, engine


def _begin(workers: Workers, theta: Array) -> None:
    """Every method at theta, with its part of gradients that sum to zero."""
    gradients = np.array([problem.gradient(theta) for problem in workers.problems])
    for engine, g in zip(workers.engines, gradients - gradients.mean(axis=0), strict=True):
        assert isinstance(engine.method, Beginnable)
        engine.method.begin_at(theta.copy(), g)


def _keyed(place: Place, keys: Keyring) -> Place:
    """The place with its neighbors' keys, as the coordinator tells them."""
    peers = tuple(replace(each, key=keys.public(each.node)) for each in place.assignment.peers)
    return replace(place, assignment=replace(place.assignment, peers=peers))


def _save(state: Path, place: Place, engine: Engine, every: int) -> None:
    with StateFolder(state) as folder:
        folder.write_place(place)
        owner = Owner(place.enrol.run, place.assignment.config, place.enrol.node)
        Keeper(folder, owner, every=every).save(engine)
