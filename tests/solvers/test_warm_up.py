"""Kernels are compiled once, whoever starts first, and loaded by everybody else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOGETHER = 4


def start(cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dlag_node.solvers"],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )


def counts(process: subprocess.Popen[str]) -> tuple[int, int]:
    """Kernels compiled and loaded, as the process says in its one line."""
    said, _ = process.communicate(timeout=200)
    assert process.returncode == 0
    (line,) = said.splitlines()
    head, _, tail = line.partition(" s: ")
    assert float(head.removeprefix("kernels ready in ")) > 0
    compiled, cached = tail.split(", ")
    return int(compiled.removesuffix(" compiled")), int(cached.removesuffix(" cached"))


@pytest.fixture(scope="module")
def cold_start(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[tuple[int, int]]]:
    """A cold cache, and what several processes that started together on it did."""
    cache = tmp_path_factory.mktemp("numba")
    return cache, [counts(each) for each in [start(cache) for _ in range(TOGETHER)]]


def test_processes_that_start_together_compile_once(
    cold_start: tuple[Path, list[tuple[int, int]]],
) -> None:
    _, done = cold_start
    compilers = [compiled for compiled, _ in done if compiled]
    assert len(compilers) == 1
    assert sum(loaded > 0 for compiled, loaded in done if not compiled) == TOGETHER - 1


def test_a_later_process_compiles_nothing(
    cold_start: tuple[Path, list[tuple[int, int]]],
) -> None:
    cache, done = cold_start
    compiled, loaded = counts(start(cache))
    assert compiled == 0
    assert loaded == max(count for _, count in done)


def test_real_work_after_a_warm_up_compiles_nothing_either(
    cold_start: tuple[Path, list[tuple[int, int]]],
) -> None:
    cache, _ = cold_start
    script = """
import numpy as np, scipy.sparse as sp
from dlag_node.problems import SQUARED, Problem, rows_of
from dlag_node.solvers import SOLVERS, Oracle, parse_stop, warm, warm_up
warm_up()
before = warm._counts()[0], sum(len(each.signatures) for each in warm._kernels())
A = np.random.default_rng(0).normal(size=(9, 4))
labels = A[:, 0].copy()
A.flags.writeable = labels.flags.writeable = False  # as bytes off the wire are
frozen = np.zeros(4)
frozen.flags.writeable = False
for matrix in (A, sp.csr_array(A)):
    f = Problem(rows_of(matrix), labels, SQUARED, n0=9, lam=0.1)
    for solver in SOLVERS:
        for stop in ("epochs:3", "relative:0.1", "exact:1e-6"):
            o = Oracle(f, solver=solver, stop=parse_stop(stop), rng=np.random.default_rng(0))
            theta = o(frozen, frozen).theta
            f.value(theta), f.gradient(theta), f.hessian_vector(frozen, theta)
after = warm._counts()[0], sum(len(each.signatures) for each in warm._kernels())
assert before == after and before[0] == 0, (before, after)
"""
    subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        check=True,
        timeout=200,
    )
