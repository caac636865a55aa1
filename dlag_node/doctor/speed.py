"""How fast it computes: BLAS threads, compiled kernels, steps a second."""

from __future__ import annotations

import os
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from dlag_node.doctor.finding import Finding, ok, warn
from dlag_node.problems import LOGISTIC, DenseRows, Problem
from dlag_node.problems.blas import blas_names
from dlag_node.solvers import Oracle, Stop, warm_up

_SAMPLES, _DIM, _EPOCHS = 13, 13, 2_000  # a shard as the reference run has them
_SLOW = 200_000  # steps a second: a round of 30 epochs on such a shard then takes 4 ms


def check_blas() -> Finding:
    """One thread: more give other bits, and fight with the other programs for the cores.

    It names the kernels too: with others, methods that ask LAPACK have other bits.
    """
    with threadpool_limits(1):
        pools = [each for each in threadpool_info() if each["user_api"] == "blas"]
        threads = max((each["num_threads"] for each in pools), default=1)
    names = ", ".join(blas_names())
    value = f"{threads} thread of {os.cpu_count()} cores, {names or 'no BLAS that we know'}"
    if threads > 1:
        return warn("blas", value, "set OPENBLAS_NUM_THREADS=1")
    return ok("blas", value)


def check_solver() -> Finding:
    """Kernels from the cache, or compiled into it now; then steps of Katyusha."""
    try:
        done = warm_up()
    except (OSError, RuntimeError) as exc:  # numba: no place to keep what it compiles
        value = f"kernels cannot be kept: {exc}"
        return warn("solver", value, "set NUMBA_CACHE_DIR to a folder that this user may write to")
    speed = _steps_a_second()
    value = f"{speed / 1e6:.2f} million steps a second, kernels ready in {done.seconds:.1f} s"
    if done.compiled:
        value += f" ({done.compiled} compiled now, and kept)"
    if speed < _SLOW:
        return warn("solver", value, "give it more of a processor, or a method with fewer steps")
    return ok("solver", value)


def _steps_a_second() -> float:
    rng = np.random.default_rng(0)
    rows = DenseRows(rng.normal(size=(_SAMPLES, _DIM)))
    labels = np.where(rng.random(_SAMPLES) < 0.5, 1.0, -1.0)
    f = Problem(rows, labels, LOGISTIC, n0=20 * _SAMPLES, lam=0.01)
    oracle = Oracle(f, solver="katyusha", stop=Stop("epochs", _EPOCHS), rng=rng)
    at = np.zeros(_DIM)
    began = perf_counter()
    spent = oracle(at, at).sample_gradients
    return spent / (perf_counter() - began)
