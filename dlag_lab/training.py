"""A mesh for data in memory: brought up, run until its result is proven, and gone again."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from coordinator.datasets import Dataset
from coordinator.plan import Plan, RunSettings
from dlag_lab.certificate import Array, Certificate
from dlag_lab.folder import RunFolder
from dlag_lab.interrupts import apart
from dlag_lab.mesh import LocalMesh
from dlag_lab.simulate import Simulator
from dlag_node.data import Table
from dlag_node.data.arrays import write_npz
from dlag_node.errors import ConfigError
from dlag_node.problems import rows_of

BACKENDS = ("simulator", "processes")
_TIMEOUT = 120.0  # seconds that a node waits for a neighbor


@dataclass(frozen=True, slots=True)
class Trained:
    """Where a mesh ended: a linear model of raw samples, and how far it is from the optimum."""

    coefficients: Array
    intercept: float
    rounds: int
    bound: float  # on the distance of every node's theta to theta*
    proven: bool  # that this is enough: see `certificate`


def train(X: Any, labels: Array, settings: RunSettings, *, backend: str, tol: float) -> Trained:
    """The model that a mesh agrees on; node 0's, which all others hold to within the bound."""
    if backend not in BACKENDS:
        raise ConfigError(f"backend {backend!r}: expected one of {', '.join(BACKENDS)}")
    if not tol > 0:
        raise ConfigError(f"tol = {tol}: expected a positive number")
    data = Dataset("X", Table(rows_of(X), labels), labels)
    with threadpool_limits(1):  # the same bits as on any mesh
        plan = Plan(settings, data)
        judge = Certificate(plan.pooled(), nodes=plan.nodes, tol=tol, rounds=settings.rounds)
        run = _simulated if backend == "simulator" else _on_processes
        theta = run(plan, judge)
    agreed, dim = plan.terms.agreement, plan.terms.dim
    shift, factor = agreed.scaling(dim)
    w = theta[:dim] * factor
    constant = float(theta[dim]) * agreed.intercept if agreed.extra else 0.0
    return Trained(w, constant - float(w @ shift), judge.judged, judge.bound, judge.proven)


def _simulated(plan: Plan, judge: Certificate) -> Array:
    return Simulator(plan).run(judge)[0]


def _on_processes(plan: Plan, judge: Certificate) -> Array:
    """A coordinator and a process per node, as `dlag run` has them, on a folder that goes again."""
    with tempfile.TemporaryDirectory(prefix="dlag-") as name:
        path = Path(name) / "data.npz"
        write_npz(path, plan.dataset.rows, plan.dataset.labels)
        folder = RunFolder.create(Path(name) / "run", force=False)
        mesh = LocalMesh(
            replace(plan.settings, data=str(path)),
            nodes=plan.nodes,
            dim=plan.dim,
            referee=judge,
            folder=folder.path,
            neighbor_timeout=_TIMEOUT,
        )
        apart(mesh.run())
        theta: Array = folder.thetas(0, plan.dim)[-1]
        return theta
