"""The paper's comparison with ADFS: covtype on the 10x10 grid, its Figures 4 and 5.

300 epochs of accelerated gradient descent on shards with L_i/mu_i = 40, warm started, end at the
level of rounding, and take hours on one machine. The dual methods run here with another solver
that goes to rounding too (`chord`), so that rounds and messages are those of the paper's choice;
what its 300 epochs would cost is a product: 300 m_i sample gradients a worker and round. On the
first rounds of the paper's own choice, `agreement` shows that nothing else differs.
"""

from __future__ import annotations

import bz2
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from coordinator.plan import RunSettings
from dlag_lab.compare_table import Row
from dlag_lab.folder import RunFolder
from dlag_lab.paper.claims import GRADIENTS, MESSAGES, Costs, Verdict, because, more
from dlag_lab.paper.experiment import Experiment, PaperFigure
from dlag_lab.result import Ints, RunResult
from dlag_node.errors import ConfigError
from dlag_node.methods import parse_method

DATA = "covtype.libsvm.binary.scale.bz2"
SAMPLES = 581_012
EPOCHS = 300
_PARAMETERS = "gamma=1e-5,c=1e-5,D=50"
_STAND_IN = "solver=chord,stop=exact:1e-14"
PAPERS_OWN = f"solver=agd,stop=epochs:{EPOCHS}"
DLAG = ("DLAG-1e-5,50", f"dlag:{_PARAMETERS},{_STAND_IN}")
MDLAG = ("MDLAG-1e-5,50", f"mdlag:{_PARAMETERS},{_STAND_IN}")
ADFS = ("ADFS", "adfs:edges=180")  # as many in a round as the grid has

_OUR_SOLVER = (
    "Simulated in one process. DLAG and MDLAG solve their subproblems by `chord` to a gradient "
    "norm of 1e-14; the column of sample gradients is what that evaluated, and the claims and "
    f"Figure 5 take {EPOCHS} m_i a worker and round instead."
)
_OUR_ROUNDS = (
    "ADFS draws one edge of its augmented graph at a time; a round here has 180 edges between "
    "workers, 360 messages. Its sample gradients are proximal steps, each a handful of slopes of "
    "one sample."
)
NOTES = (_OUR_SOLVER, _OUR_ROUNDS)


def covtype(samples: int = SAMPLES) -> Experiment:
    """The experiment on so many samples."""

    def in_epochs(row: Row) -> float | None:
        if row.method == ADFS[1] or row.rounds_to_target is None:
            return row.gradients_to_target
        return row.rounds_to_target * EPOCHS * samples

    def judge(rows: Sequence[Row]) -> list[Verdict]:
        costs, lazy = Costs(rows), dict([DLAG, MDLAG])
        adfs = dict([ADFS])
        return [
            because(
                more(
                    costs, ADFS, lazy, MESSAGES,
                    "ADFS needs more communication than DLAG and MDLAG",
                ),
                "MDLAG exchanges K times a round (8 on this grid), and only the first is lazy; our "
                "ADFS draws by the best probabilities for its authors' weights, not by theirs "
                "(section 4)",
            ),
            more(
                costs, DLAG, adfs, in_epochs,
                "ADFS has a better stochastic gradient complexity than DLAG "
                f"({EPOCHS} epochs a round)",
            ),
            more(
                costs, MDLAG, adfs, in_epochs,
                "ADFS has a better stochastic gradient complexity than MDLAG "
                f"({EPOCHS} epochs a round)",
            ),
            more(
                costs, DLAG, adfs, GRADIENTS,
                "and than DLAG with the gradients that were really evaluated here",
            ),
            more(
                costs, MDLAG, adfs, GRADIENTS,
                "and than MDLAG with the gradients that were really evaluated here",
            ),
        ]  # fmt: skip

    return Experiment(
        name="covtype",
        title=f"covtype, {samples:,} samples, on the 10x10 grid (the paper's Figures 4 and 5)",
        methods={method: name for name, method in (DLAG, MDLAG, ADFS)},
        settings=RunSettings(topology="grid:10x10", data=DATA),
        target=1e-7,
        seeds=1,
        figures=(
            PaperFigure(4, "Messages", "figure-4-communication"),
            PaperFigure(5, "Sample gradients", "figure-5-gradients", cost=gradients_as_stated),
        ),
        judge=judge,
        notes=NOTES,
    )


def gradients_as_stated(result: RunResult) -> Ints:
    """Sample gradients up to each round, with 300 epochs for the dual methods."""
    if parse_method(result.method).name == "adfs":
        counted: Ints = result.records.gradients.sum(axis=1).cumsum()
        return counted
    return np.arange(1, result.rounds + 1, dtype=np.int64) * EPOCHS * int(result.run["n0"])


def subsample(source: Path, rows: int, target: Path) -> None:
    """Write `rows` of the samples, drawn evenly without replacement, always the same ones."""
    if target.exists():
        return
    with bz2.open(source, "rb") as file:
        lines = file.readlines()
    if not 0 < rows <= len(lines):
        raise ConfigError(f"rows = {rows}: expected 1 to {len(lines)}")
    kept = np.sort(np.random.default_rng(0).choice(len(lines), size=rows, replace=False))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.tmp")
    temporary.write_bytes(b"".join(lines[j] for j in kept))
    temporary.replace(target)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two runs round by round: whether they told the same, and how far their thetas differ."""

    method: str
    rounds: int
    same_decisions: bool
    skips: int
    theta: float  # largest |difference| of a coordinate, all workers and rounds

    def __str__(self) -> str:
        said = "the same decisions" if self.same_decisions else "DIFFERENT decisions"
        return (
            f"{self.method}: {self.rounds} rounds with {EPOCHS} epochs of AGD and with chord: "
            f"{said} in all exchanges ({self.skips} messages skipped), "
            f"thetas within {self.theta:.2g}"
        )


def agreement(own: RunResult, stand_in: RunResult) -> Agreement:
    """The paper's own choice of solver against ours, over the rounds that both have."""
    rounds = min(own.rounds, stand_in.rounds)
    same = bool((own.records.exchanges[:rounds] == stand_in.records.exchanges[:rounds]).all())
    assert own.path is not None
    assert stand_in.path is not None
    folders = [RunFolder(own.path), RunFolder(stand_in.path)]
    away = 0.0
    for node in range(own.nodes):
        a, b = (folder.thetas(node, int(own.run["dim"]))[:rounds] for folder in folders)
        away = max(away, float(np.abs(a - b).max()))
    skips = int(own.records.skipped[:rounds].sum())
    return Agreement(parse_method(own.method).name, rounds, same, skips, away)


def pairs() -> list[tuple[str, str]]:
    """Each dual method with the paper's solver, and with ours."""
    return [(own.replace(_STAND_IN, PAPERS_OWN), own) for own in (DLAG[1], MDLAG[1])]


def settings_for(experiment: Experiment, *, data: str, data_dir: str | None) -> RunSettings:
    """The experiment's settings with the data where they lie."""
    return replace(experiment.settings, data=data, data_dir=data_dir)
