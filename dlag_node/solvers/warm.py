"""Compiled kernels, ready before the first round: from numba's cache, or compiled into it once."""

from __future__ import annotations

import fcntl
import hashlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import llvmlite.binding  # type: ignore[import-untyped]
import numba
import numpy as np
import scipy.sparse as sp
from numba.core.dispatcher import Dispatcher
from numpy.typing import NDArray

from dlag_node.problems import (
    LOGISTIC,
    DenseRows,
    Problem,
    dot,
    eigenvalues,
    kernels,
    losses,
    rows_of,
    spectra,
    square,
    sums,
)
from dlag_node.problems.compiling import Kernel
from dlag_node.solvers import agd, katyusha, prox, subproblem, svrg
from dlag_node.solvers.oracle import Oracle
from dlag_node.solvers.stops import Stop

_MODULES: tuple[ModuleType, ...] = (
    sums, spectra, losses, kernels, subproblem, katyusha, svrg, agd, prox,
)  # fmt: skip
_NAME = "dlag-warm-up"


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What a warm-up did: kernels compiled, kernels loaded from the cache, seconds in all."""

    compiled: int
    loaded: int
    seconds: float


def warm_up() -> WarmUp:
    """Load every kernel from numba's cache, or compile it there.

    Of processes that start together on a cold cache one compiles, under a file lock beside the
    cache, and leaves a mark when all is stored. With the mark in place nobody takes the lock:
    loading needs none, and a mesh's nodes load side by side.
    """
    began, before = perf_counter(), _counts()
    directory = _directories()[0]
    mark = directory / f"{_NAME}-{_fingerprint()}"
    if not mark.exists():
        with _locked(directory):
            if not mark.exists():
                _forget_stored_kernels()
                _touch_every_kernel()
                mark.touch()
    _touch_every_kernel()
    after = _counts()
    return WarmUp(after[0] - before[0], after[1] - before[1], perf_counter() - began)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{_NAME}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed, also by a crash
        yield


def _fingerprint() -> str:
    """What compiled code depends on: the sources of all kernels, the compiler, the processor."""
    stats = [Path(str(module.__file__)).stat() for module in _MODULES]
    sources = [(each.st_mtime_ns, each.st_size) for each in stats]  # as numba itself tells them
    machine = (numba.__version__, sys.version, llvmlite.binding.get_host_cpu_name())
    return hashlib.sha256(repr((sources, machine)).encode()).hexdigest()[:16]


def _forget_stored_kernels() -> None:
    """Drop numba's indices: it looks at a kernel's own file only, not at those of its callees."""
    for directory in _directories():
        for index in directory.glob("*.nbi"):
            index.unlink(missing_ok=True)


def _touch_every_kernel() -> None:
    """Run each kernel once, with the array types that a Problem has; the loss is a number to it."""
    A, labels = np.eye(3, 2), np.array([1.0, -1.0, 1.0])
    theta, shown = np.ones(2), np.ones(2)
    shown.flags.writeable = False  # a vector that went through the engine, a type of its own
    sums.sum_of_lanes(np.zeros(sums.LANES))
    eigenvalues(np.eye(2))
    for u in (theta, shown):
        square(u)
        for v in (theta, shown):
            dot(u, v)
    for matrix in (A, sp.csr_array(A)):
        f = Problem(rows_of(matrix), labels, LOGISTIC, n0=3, lam=0.1)
        for point in (theta, shown):
            f.value(point)
            f.gradient(point)
            f.rows.bends(f.loss.code, f.labels, point)
            f.hessian_vector(point, theta)
        _touch_formulas(f, theta)
        for solver in ("katyusha", "svrg", "agd"):
            for stop in (Stop("epochs", 1), Stop("relative", 0.5)):
                Oracle(f, solver=solver, stop=stop, rng=np.random.default_rng(0))(theta, theta)


def _touch_formulas(f: Problem, theta: NDArray[np.float64]) -> None:
    """The scalar kernels, which are otherwise compiled into their callers only."""
    if isinstance(f.rows, DenseRows):
        kernels.dense_dot(f.rows.A, 0, theta)
    else:
        kernels.sparse_dot(f.rows.values, f.rows.columns, f.rows.start, 0, theta)
        f.rows.weighted_gram(np.ones(f.samples))
    f.rows.add_row(0, 0.0, theta)
    f.slopes_at_zero()
    prox.margin_of(f.loss.code, 1.0, f.loss.curvature, 1.0, 0.5, 0.5)
    for formula in (losses.loss_value, losses.loss_slope, losses.loss_bend):
        formula(f.loss.code, 1.0, 1.0)


def _kernels() -> list[Any]:
    named = [each for module in _MODULES for each in vars(module).values()]
    found = [each.dispatcher if isinstance(each, Kernel) else each for each in named]
    return list({id(each): each for each in found if isinstance(each, Dispatcher)}.values())


def _directories() -> list[Path]:
    """Where numba stores the kernels: one directory for each directory of sources."""
    return sorted({Path(kernel.stats.cache_path) for kernel in _kernels()})


def _counts() -> tuple[int, int]:
    """Signatures compiled and signatures loaded so far, over all kernels."""
    stats = [kernel.stats for kernel in _kernels()]
    compiled = sum(sum(each.cache_misses.values()) for each in stats)
    return compiled, sum(sum(each.cache_hits.values()) for each in stats)
