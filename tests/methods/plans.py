"""Small plans for the tests of the methods, and what the simulator makes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from coordinator.plan import Plan, RunSettings
from dlag_lab.referee import Measurement, Referee
from dlag_lab.simulate import Simulator
from dlag_node.methods.dual import DualAscent
from dlag_node.problems import Array
from dlag_node.rounds import Engine, Record

SAMPLES, DIM, LAM = 60, 4, 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A simulated run: Theta[k, i] is theta_i^k, records[k][i] what worker i did in round k."""

    engines: list[Engine]
    Theta: Array
    records: list[list[Record]]
    measured: list[Measurement]

    @property
    def sent(self) -> list[list[str]]:
        """Who sent and who kept silent, round by round: the letters of the records."""
        return [[record.exchanges for record in row] for row in self.records]

    @property
    def timeless(self) -> list[list[Record]]:
        """The records without their seconds, the only thing that depends on the machine."""
        return [[replace(record, compute=0.0, wait=0.0) for record in row] for row in self.records]

    def messages(self, rounds: int | None = None) -> int:
        """Deltas over directed edges, in all or in the first rounds."""
        return sum(record.deltas for row in self.records[:rounds] for record in row)


class States:
    """x, y, P, theta_hat of every worker after every round, each as (rounds, n, d)."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[int, list[Array]]] = defaultdict(lambda: defaultdict(list))

    def keep(self, engine: Engine) -> None:
        assert isinstance(engine.method, DualAscent)
        for name in ("x", "y", "P", "theta_hat"):
            self._kept[name][engine.node].append(getattr(engine.method, name).copy())

    def __getitem__(self, name: str) -> Array:
        kept = self._kept[name]
        return np.array([kept[node] for node in sorted(kept)]).transpose(1, 0, 2)


def small_plan(folder: Path, method: str, **settings: object) -> Plan:
    """A plan on a few samples, ridge with made-up targets unless told otherwise.

    `samples` may be the text of another LIBSVM file, such as `made_up` makes.
    """
    asked = {"topology": "grid:3x3", "problem": "ridge", "lam": LAM, "shards": "uneven:1,4"}
    asked |= settings
    path = folder / "samples.txt"
    path.write_text(str(asked.pop("samples", None) or made_up(str(asked["problem"]))))
    return Plan(RunSettings(method=method, data=str(path), **asked))  # type: ignore[arg-type]


def heart_plan(method: str, **settings: object) -> Plan:
    """The reference instance: heart on the 5x5 grid, uneven shards, lambda = 0.01."""
    return Plan(RunSettings(method=method, **settings))  # type: ignore[arg-type]


def simulate(
    plan: Plan,
    rounds: int,
    *,
    target: float | None = None,
    shuffle: int | None = None,
    prepare: Callable[[list[Engine]], None] = lambda _: None,
    finished: Callable[[Engine], None] = lambda _: None,
) -> Run:
    """Run the plan in the simulator, and keep every theta and every record."""
    simulator = Simulator(plan, shuffle=shuffle)
    prepare(simulator.engines)
    thetas: list[list[Array]] = [[] for _ in simulator.engines]
    records: list[list[Record]] = [[] for _ in simulator.engines]
    measured: list[Measurement] = []

    def keep(engine: Engine) -> None:
        assert engine.last_record is not None
        thetas[engine.node].append(engine.method.theta.copy())
        records[engine.node].append(engine.last_record)
        finished(engine)

    referee = Referee(plan, target=target, rounds=rounds, report=measured.append)
    simulator.run(referee, finished=keep)
    Theta = np.array(thetas).transpose(1, 0, 2)
    return Run(
        simulator.engines, Theta, [list(row) for row in zip(*records, strict=True)], measured
    )


def made_up(problem: str, seed: int = 5) -> str:
    """Normal features, labels by a linear model with noise, as LIBSVM text."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(SAMPLES, DIM))
    b = A @ rng.normal(size=DIM) + rng.normal(size=SAMPLES)
    if problem == "logistic":
        b = np.where(b > 0, 1.0, -1.0)
    lines = (
        " ".join([f"{label!r}", *(f"{t}:{a!r}" for t, a in enumerate(row, 1))])
        for label, row in zip(b.tolist(), A.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"
