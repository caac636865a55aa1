"""One step of Katyusha and of SVRG against one step of scikit-learn's SAG, on the same samples.

The three take turns within one run, and the figure is the median over the turns of the ratio of
two neighbors in time: what slows the machine down slows all of them. A step of each costs one
sample gradient. `step` times the inner steps alone; `pass` times whole epochs, full gradients
included, per sample gradient. SAG's set-up is left out by subtracting a shorter run.
"""

from __future__ import annotations

import argparse
import bz2
import io
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import sklearn
from sklearn.datasets import load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model._sag import sag_solver

from dlag_node.problems import LOGISTIC, SQUARED, Array, Loss, Problem, rows_of
from dlag_node.solvers import warm_up
from dlag_node.solvers.katyusha import Katyusha
from dlag_node.solvers.subproblem import Subproblem
from dlag_node.solvers.svrg import SVRG

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "solver_steps.md"
ALLOWED = 1.5  # times a SAG step
LAM = 0.01  # the paper's lambda
TURNS = 9
STEPS = 120_000  # at least so many steps a turn
COVTYPE_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Case:
    """One set of samples, as numpy or scipy.sparse has it."""

    name: str
    A: Any
    labels: Array


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: nanoseconds, and ratios to SAG's step."""

    case: str
    loss: str
    solver: str
    step: float
    sag: float
    step_ratio: float
    pass_ratio: float


def main() -> None:
    """Measure every case that is there, print the table and write it down."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data-dir", type=Path, default=ROOT.parent / "shared" / "data")
    folder = options.parse_args().data_dir
    warnings.simplefilter("ignore", ConvergenceWarning)
    warm_up()
    lines = [
        line
        for case in cases(folder)
        for loss in (LOGISTIC, SQUARED)
        for line in measure(case, loss)
    ]
    report = table(lines)
    print(report)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(report)


def cases(folder: Path) -> Iterator[Case]:
    """heart_scale and covtype's first rows dense, a9a and w8a sparse; what is absent is named."""
    bundled = ROOT / "coordinator" / "bundled" / "heart_scale"
    heart = bundled if bundled.exists() else folder / "heart_scale"
    covtype = folder / "covtype.libsvm.binary.scale.bz2"
    for name, path in (
        ("heart_scale", heart),
        ("covtype", covtype),
        ("a9a", folder / "a9a.gz"),
        ("w8a", folder / "w8a.gz"),
    ):
        if not path.exists():
            print(f"{name}: left out, {path} is absent (see --data-dir)", file=sys.stderr)
            continue
        A, b = first_rows(path, COVTYPE_ROWS) if path is covtype else load_svmlight_file(str(path))
        labels = np.where(b == b.max(), 1.0, -1.0)
        dense = name in ("heart_scale", "covtype")
        A.indptr, A.indices = A.indptr.astype(np.int32), A.indices.astype(np.int32)  # SAG's own
        yield Case(name, np.ascontiguousarray(A.toarray()) if dense else A, labels)


def first_rows(path: Path, count: int) -> tuple[Any, Array]:
    """The first rows of a compressed file, without reading the rest."""
    with bz2.open(path) as lines:
        head = b"".join(next(lines) for _ in range(count))
    A, b = load_svmlight_file(io.BytesIO(head))
    return A, b


def measure(case: Case, loss: Loss) -> Iterator[Line]:
    """Turns of SAG, Katyusha and SVRG."""
    m = case.A.shape[0]
    f = Problem(rows_of(case.A), case.labels, loss, n0=m, lam=LAM)
    sub = Subproblem(f)
    rng = np.random.default_rng(0)
    epochs = max(1, STEPS // (2 * m))
    solvers = {"katyusha": Katyusha(sub), "svrg": SVRG(sub)}
    turns: dict[str, list[tuple[float, float, float]]] = {name: [] for name in solvers}
    for _ in range(TURNS):
        sag = sag_step(case, f)
        for name, solver in solvers.items():
            theta, inner = np.zeros(f.dim), 0.0
            advance = solver.stepper(theta)
            for _ in range(epochs):
                sub.gradient(theta)  # not timed: `advance` is told that it is in place
                inner += seconds(advance, rng.integers(m, size=(1, 2 * m)), True)
            whole = seconds(advance, rng.integers(m, size=(epochs, 2 * m)), False)
            steps = epochs * 2 * m
            turns[name].append((inner / steps, whole / (1.5 * steps), sag))
    for name, taken in turns.items():
        yield Line(
            f"{case.name} {m} x {f.dim} {'sparse' if sub.sparse else 'dense'}",
            loss.name,
            name,
            median(step for step, _, _ in taken) * 1e9,
            median(sag for _, _, sag in taken) * 1e9,
            median(step / sag for step, _, sag in taken),
            median(each / sag for _, each, sag in taken),
        )


def seconds(advance: Callable[..., None], draws: np.ndarray[Any, Any], measured: bool) -> float:
    """How long `advance` takes; draws are made outside, as SAG's cost next to nothing."""
    began = perf_counter()
    advance(draws, measured)
    return perf_counter() - began


def sag_step(case: Case, f: Problem) -> float:
    """Seconds of one SAG step: a run of 2n passes less one of n, over their n m steps."""
    m, passes = f.samples, max(1, STEPS // f.samples)
    labels = np.maximum(case.labels, 0.0) if f.loss is LOGISTIC else case.labels  # SAG's {0, 1}
    largest = float(f.rows.square_norms().max())

    def run(count: int) -> tuple[float, int]:
        began = perf_counter()
        _, done, _ = sag_solver(
            case.A,
            labels,
            loss="log" if f.loss is LOGISTIC else "squared",
            alpha=f.mu * m,
            beta=0.0,
            max_iter=count,
            tol=-1.0,  # never: every pass is made
            random_state=0,
            check_input=False,
            max_squared_sum=largest,
        )
        return perf_counter() - began, done

    short, few = run(passes)
    long, many = run(2 * passes)
    assert many - few == passes
    return (long - short) / (passes * m)


def table(lines: list[Line]) -> str:
    """The figures as markdown, with the command and the machine."""
    head = f"""# Solver steps against scikit-learn's SAG

`python benchmarks/solver_steps.py`, Python {platform.python_version()}, numpy {np.__version__}, \
scikit-learn {sklearn.__version__}, {platform.machine()}. lambda = {LAM}; medians of {TURNS} turns.
Allowed: a step of at most {ALLOWED} times SAG's. `pass` is a whole epoch per sample gradient.

| samples | problem | solver | step, ns | SAG step, ns | step ratio | pass ratio | |
| --- | --- | --- | ---: | ---: | ---: | ---: | --- |
"""
    body = "".join(
        f"| {line.case} | {line.loss} | {line.solver} | {line.step:.0f} | {line.sag:.0f} "
        f"| {line.step_ratio:.2f} | {line.pass_ratio:.2f} "
        f"| {'ok' if line.step_ratio <= ALLOWED else 'TOO SLOW'} |\n"
        for line in lines
    )
    return head + body


if __name__ == "__main__":
    main()
