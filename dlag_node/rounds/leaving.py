"""What a node leaves behind: the model that it ended with, and where that is from."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dlag_node.data.model import Model
from dlag_node.methods.flow import Array
from dlag_node.wire.control import Assignment, Enrol


def model_path(folder: Path, node: int) -> Path:
    """Where a node's model lies among the records of a run."""
    return folder / f"node-{node:03d}.model.json"


def model_of(
    enrol: Enrol,
    assignment: Assignment,
    theta: Array,
    *,
    rounds: int,
    names: tuple[str, ...] | None = None,
) -> Model:
    """The model of theta_i after so many rounds."""
    agreed = enrol.agreement
    shift, factor = agreed.scaling(enrol.dim)
    return Model(
        problem=enrol.problem,
        classes=agreed.classes,
        coefficients=theta[: enrol.dim].copy(),
        intercept=float(theta[-1]) * agreed.intercept if agreed.extra else 0.0,
        scale=agreed.scale,
        shift=shift,
        factor=factor,
        names=names,
        provenance={
            "run": enrol.run,
            "config": assignment.config,
            "node": enrol.node,
            "nodes": len(assignment.spectrum),
            "method": assignment.method,
            "preset": assignment.preset,
            "rounds": rounds,
            "lambda": enrol.lam,
            "intercept_scaling": agreed.intercept,
            "samples": enrol.samples,
            "n0": enrol.n0,
            "version": version("dlag-mesh"),
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
