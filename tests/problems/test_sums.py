"""Sums of our own order: the same bits interpreted, compiled, and on every processor's BLAS."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlag_node.problems import dot, kernels, matrix_product, norm, square, sums, total
from dlag_node.problems.compiling import Kernel, compile_kernels
from dlag_node.problems.sums import LANES, dot_in_lanes, square_in_lanes
from tests.problems.test_compiling import FunctionType

compile_kernels()

LENGTHS = st.one_of(
    st.integers(0, 20), st.sampled_from([13, 127, 128, 129, 255, 256, 257, 1000, 4099])
)


def interpreted(kernel: Kernel[..., Any]) -> Any:
    """The kernel as Python runs it, calling the others so."""
    names = dict(vars(sums))
    for name, value in list(names.items()):
        if isinstance(value, Kernel):
            names[name] = FunctionType(value.py_func.__code__, names, name)
    return names[kernel.py_func.__name__]


SLOW_DOT, SLOW_SQUARE = interpreted(dot_in_lanes), interpreted(square_in_lanes)


def by_the_formula(u: np.ndarray, v: np.ndarray) -> float:
    """The docstring's sum with numpy's elementwise operations alone."""
    whole = len(u) - len(u) % LANES
    lanes, rest = np.zeros(LANES), 0.0
    for block in range(0, whole, LANES):
        lanes = lanes + u[block : block + LANES] * v[block : block + LANES]
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    for a, b in zip(u[whole:].tolist(), v[whole:].tolist(), strict=True):
        rest = rest + a * b
    return float(lanes[0] + rest) if whole else rest


@settings(max_examples=80, deadline=None)
@given(LENGTHS, st.sampled_from([1.0, 1e-160, 1e160]), st.integers(0, 10**6))
def test_a_sum_has_the_same_bits_interpreted_compiled_and_by_its_formula(
    n: int, size: float, seed: int
) -> None:
    u, v = size * np.random.default_rng(seed).normal(size=(2, n))
    with np.errstate(all="ignore"):
        expected = by_the_formula(u, v)
        slow, slow_square = SLOW_DOT(u.tolist(), v.tolist()), SLOW_SQUARE(u.tolist())
    assert repr(dot(u, v)) == repr(float(slow)) == repr(expected)
    assert repr(square(u)) == repr(float(slow_square)) == repr(dot(u, u))


def test_sums_are_what_they_are_called() -> None:
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, 1000))
    assert dot(u, v) == pytest.approx(float(u @ v), rel=1e-13)
    assert norm(u) == pytest.approx(float(np.linalg.norm(u)), rel=1e-14)
    assert total(u) == pytest.approx(float(u.sum()), rel=1e-12)
    A, B = rng.normal(size=(4, 7)), rng.normal(size=(7, 3))
    np.testing.assert_allclose(matrix_product(A, B), A @ B, rtol=1e-13)


@pytest.mark.filterwarnings("error")
def test_a_sum_that_no_float_holds_is_inf_or_nan_without_a_warning() -> None:
    large = np.full(300, 1e200)
    assert square(large) == np.inf
    assert np.isnan(dot(large * np.where(np.arange(300) % 2, 1.0, -1.0), large))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its words are those of x86-64")
@pytest.mark.parametrize(
    "kernel",
    [dot_in_lanes, square_in_lanes, kernels.dense_dot, kernels.dense_add_row],
    ids=lambda kernel: kernel.__name__,
)
def test_no_kernel_fuses_a_product_into_a_sum(kernel: Kernel[..., Any]) -> None:
    """A fused product is rounded once, an interpreted one twice: other bits."""
    compiled = numba.njit(kernel.py_func)
    A, v = np.ones((2, 300)), np.ones(300)
    arguments = {1: (v,), 2: (v, v), 3: (A, 0, v), 4: (A, 0, 0.5, v)}
    compiled(*arguments[kernel.py_func.__code__.co_argcount])
    (code,) = compiled.inspect_asm().values()
    assert "mulsd" in code or "mulpd" in code
    assert "fmadd" not in code


PROBE = """
import hashlib
import numpy as np, scipy.sparse as sp
from threadpoolctl import threadpool_info
from dlag_node.graphs import gossip_matrix, parse_topology, spectrum_of
from dlag_node.problems import LOGISTIC, Problem, dot, rows_of, square
{more}
rng = np.random.default_rng(0)
digest, blas = hashlib.sha256(), 0
for n in range(1, 400):
    u, v = rng.normal(size=(2, n))
    digest.update(np.array([square(u), dot(u, v)]).tobytes())
    blas = hash((blas, float(u.dot(v))))
A = rng.normal(size=(60, 13))
for matrix in (A, sp.csr_array(A)):
    f = Problem(rows_of(matrix), np.sign(A[:, 0]), LOGISTIC, n0=60, lam=0.01)
    theta = rng.normal(size=13)
    numbers = [f.value(theta), f.L, f.L_sample, f.L_sum, f.root_sum]
    digest.update(np.array(numbers).tobytes() + f.gradient(theta).tobytes())
    digest.update(f.hessian_vector(theta, theta).tobytes())
for spec in ("grid:5x5", "ring:7"):
    U = gossip_matrix(parse_topology(spec, seed=0), "metropolis")
    digest.update(np.array(spectrum_of(U).values).tobytes())
print(digest.hexdigest(), blas, threadpool_info()[0]["architecture"])
"""


def on_kernels(coretype: str, more: str = "") -> list[str]:
    """What the probe says where BLAS has these kernels: our bits, its own bits, their name."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(more=more)],
        env=os.environ | {"OPENBLAS_CORETYPE": coretype, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of x86-64")
def test_what_decides_has_the_same_bits_whatever_kernels_blas_chooses() -> None:
    ours, theirs, name = on_kernels("Haswell")
    others, their_others, other_name = on_kernels("Prescott")
    if name == other_name:
        pytest.skip(f"this BLAS has {name} kernels whatever it is asked for")
    assert theirs != their_others  # BLAS itself does differ
    assert ours == others
    compiled = "from dlag_node.problems.compiling import compile_kernels; compile_kernels()"
    assert on_kernels("Haswell", compiled)[0] == ours
