"""All methods on the paper's first problem: a table, and no claim of the paper's."""

from __future__ import annotations

from coordinator.plan import RunSettings
from dlag_lab.paper.experiment import Experiment
from dlag_node.methods import METHODS as EVERY

_NAMES = (
    "ssda", "msda", "dlag", "mdlag", "extra", "exact-diffusion", "diging", "admm", "fgm", "cola",
    "dsba", "adfs",
)  # fmt: skip

METHODS = Experiment(
    name="methods",
    title="all methods, heart on the 5x5 grid",
    methods={name: name for name in _NAMES if name in EVERY},
    settings=RunSettings(rounds=20_000),  # of ADFS one round is one edge
    target=1e-7,
    seeds=5,
    figures=(),
    judge=lambda _: [],
    notes=(
        "The same table: `dlag compare --methods " + ",".join(_NAMES) + " --seeds 5 "
        "--rounds 20000 --target 1e-7`.",
        (
            "Sample gradients: of DSBA and ADFS proximal steps of one sample; of ADMM those of its "
            "Newton steps."
        ),
    ),
)
