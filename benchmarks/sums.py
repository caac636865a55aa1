"""What sums in an order of our own cost, against BLAS's dot, which they took the place of.

Both take turns, and the figure is the median over the turns of the ratio of two neighbors in time.
`norm` is ||v||^2 as the lazy conditions ask for it; `round` is a whole round of `lazy-extra` on a
ring of four in one process, with its two or three norms a node. Interpreted is what a node runs
that has not loaded a compiler.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from coordinator.plan import Plan, RunSettings
from dlag_lab.simulate import Simulator
from dlag_node.methods import channel, guard
from dlag_node.problems import Array, square
from dlag_node.problems.compiling import compile_kernels
from dlag_node.problems.sums import dot, square_in_lanes
from dlag_node.wire.observing import Horizon

RESULTS = Path(__file__).parent / "results" / "sums.md"
TURNS = 41
SECONDS = 0.01  # a turn, at least
ALLOWED = 1.1


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: microseconds, and the ratio of neighbors in time."""

    what: str
    dim: int
    ours: float
    theirs: float
    ratio: float


def blas_square(v: Array) -> float:
    """||v||^2 as it was computed before."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(v.dot(v))


def blas_norm(v: Array) -> float:
    """||v|| as it was computed before."""
    return sqrt(blas_square(v))


def main() -> int:
    """Measure, print and write down; 1 if anything costs more than it may."""
    with threadpool_limits(1):
        compile_kernels()
        lines = [interpreted(13), *(norms(dim) for dim in (13, 1_000, 100_000))]
        lines += [dots(dim) for dim in (13, 100_000)]
        lines += [rounds(dim) for dim in (13, 100_000)]
    kernels = threadpool_info()[0]["architecture"]
    report = table(lines, kernels)
    print(report)
    before = RESULTS.read_text() if RESULTS.exists() else ""
    kept = [
        part for part in before.split("\n\n# ") if part and f"BLAS kernels {kernels}," not in part
    ]
    parts = [part.removeprefix("# ").strip("\n") for part in (*kept, report)]
    RESULTS.write_text("# " + "\n\n# ".join(parts) + "\n")
    return 0 if all(line.ratio <= ALLOWED for line in lines) else 1


def interpreted(dim: int) -> Line:
    """||v||^2 in a process without a compiler."""
    v, slow = np.random.default_rng(0).normal(size=dim), square_in_lanes.py_func
    return compared("norm, interpreted", dim, lambda: slow(v.tolist()), lambda: blas_square(v))


def norms(dim: int) -> Line:
    """||v||^2 of one vector."""
    v = np.random.default_rng(0).normal(size=dim)
    return compared("norm", dim, lambda: square(v), lambda: blas_square(v))


def dots(dim: int) -> Line:
    """<u, v> of two vectors, as L-BFGS and Newton's step length ask for it."""
    u, v = np.random.default_rng(0).normal(size=(2, dim))

    def by_blas() -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(u.dot(v))

    return compared("dot", dim, lambda: dot(u, v), by_blas)


class Endless:
    """A judge that lets a run go on, round by round."""

    def __init__(self) -> None:
        self.horizon = Horizon(0, final=True)

    def take(self, node: int, thetas: Array) -> None:
        """Nothing to judge."""

    def grant(self) -> None:
        """One more round."""
        self.horizon = Horizon(self.horizon.rounds + 1, final=True)


def rounds(dim: int) -> Line:
    """A round of four nodes with a sample each."""
    with TemporaryDirectory() as folder:
        data = Path(folder) / "data.libsvm"
        lines = (f"{j - 1.5} {j + 1}:1 {dim - j}:-1\n" for j in range(4))
        data.write_text("".join(lines))
        settings = RunSettings(
            method="lazy-extra", topology="ring:4", data=str(data), problem="ridge", shards="even"
        )
        simulator, judge = Simulator(Plan(settings)), Endless()

    def go_on() -> None:
        judge.grant()
        simulator.run(judge)

    def go_on_by_blas() -> None:
        kept = channel.square, guard.norm
        channel.square, guard.norm = blas_square, blas_norm  # type: ignore[assignment]
        go_on()
        channel.square, guard.norm = kept

    return compared("round", dim, go_on, go_on_by_blas)


def compared(what: str, dim: int, ours: Callable[[], object], theirs: Callable[[], object]) -> Line:
    """Turns of both."""
    times = 1
    while seconds(theirs, times) < SECONDS:
        times *= 2
    taken = [(seconds(ours, times), seconds(theirs, times)) for _ in range(TURNS)]
    own, other = (1e6 * median(each) / times for each in zip(*taken, strict=True))
    return Line(what, dim, own, other, median(a / b for a, b in taken))


def seconds(work: Callable[[], object], times: int) -> float:
    """How long it takes so many times."""
    began = perf_counter()
    for _ in range(times):
        work()
    return perf_counter() - began


def table(lines: list[Line], kernels: str) -> str:
    """The figures as markdown, with the machine."""
    return "".join(_table(lines, kernels))


def _table(lines: list[Line], kernels: str) -> Iterator[str]:
    yield f"""# Sums of our own order against BLAS kernels {kernels}, one thread

`python benchmarks/sums.py`, Python {platform.python_version()}, numpy {np.__version__}, \
{platform.machine()}; medians of {TURNS} turns. Allowed: {ALLOWED} times.

| what | d | ours, us | BLAS, us | ratio | |
| --- | ---: | ---: | ---: | ---: | --- |
"""
    for line in lines:
        fits = "ok" if line.ratio <= ALLOWED else "TOO SLOW"
        yield (
            f"| {line.what} | {line.dim:,} | {line.ours:.2f} | {line.theirs:.2f} "
            f"| {line.ratio:.2f} | {fits} |\n"
        )


if __name__ == "__main__":
    sys.exit(main())
