"""Kernels interpreted and compiled: the same bits, and a compiler only where it is worth it."""

from __future__ import annotations

import subprocess
import sys
from types import FunctionType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlag_node.problems import LOGISTIC, SQUARED, kernels, losses
from dlag_node.problems.compiling import Kernel, compile_kernels
from dlag_node.problems.rows import SparseRows, rows_of

compile_kernels()


def interpreted() -> dict[str, Any]:
    """All kernels as Python runs them, each calling the others so."""
    names = {**vars(losses), **vars(kernels)}
    for name, value in list(names.items()):
        if hasattr(value, "py_func"):
            names[name] = FunctionType(value.py_func.__code__, names, name)
    return names


SLOW = interpreted()
ENDS = st.sampled_from([1.0, 1e-3, 1e3, 1e160])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), ENDS, ENDS, st.integers(0, 10**6), st.booleans())
def test_an_interpreted_kernel_gives_the_bits_of_the_compiled_one(
    samples: int, dim: int, size: float, far: float, seed: int, dense: bool
) -> None:
    rng = np.random.default_rng(seed)
    A = size * rng.normal(size=(samples, dim)) * (rng.random((samples, dim)) < 0.7)
    b = np.where(rng.random(samples) < 0.5, 1.0, -1.0)
    theta = far * rng.normal(size=dim)
    import scipy.sparse as sp

    rows = rows_of(A if dense else sp.csr_array(A))
    kind = "dense" if dense else "sparse"
    if isinstance(rows, SparseRows):
        arrays: tuple[Any, ...] = (rows.values, rows.columns, rows.start)
    else:
        arrays = (rows.A,)
    with np.errstate(all="ignore"):
        compare(kind, arrays, b, theta)


def compare(kind: str, arrays: tuple[Any, ...], b: np.ndarray, theta: np.ndarray) -> None:
    dim = len(theta)
    for loss in (LOGISTIC, SQUARED):
        slow, fast = np.zeros(dim), np.zeros(dim)
        SLOW[f"{kind}_add_slopes"](*arrays, loss.code, b, theta, 0.25, slow)
        getattr(kernels, f"{kind}_add_slopes")(*arrays, loss.code, b, theta, 0.25, fast)
        assert slow.tobytes() == fast.tobytes()
        for name in ("sum_losses", "bends"):
            slow = SLOW[f"{kind}_{name}"](*arrays, loss.code, b, theta)
            fast = getattr(kernels, f"{kind}_{name}")(*arrays, loss.code, b, theta)
            assert np.asarray(slow).tobytes() == np.asarray(fast).tobytes()
    if kind == "sparse":
        slow, fast = np.zeros((dim, dim)), np.zeros((dim, dim))
        SLOW["sparse_weighted_gram"](*arrays, b, slow)
        kernels.sparse_weighted_gram(*arrays, b, fast)
        assert slow.tobytes() == fast.tobytes()


HELD = """
import numpy as np
from dlag_node.problems import kernels
from dlag_node.problems.compiling import compile_kernels
held, names = kernels.dense_dot, dict(vars(kernels))
A, v = np.eye(2), np.ones(2)
before = held(A, 1, v)
compile_kernels()
assert dict(vars(kernels)) == names
assert held(A, 1, v) == before
assert held.dispatcher.signatures
"""


def test_a_kernel_is_compiled_wherever_it_is_held_and_no_module_changes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELD], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_interpreted_kernel_overflows_in_silence() -> None:
    def squared(x: Any) -> Any:
        return x * x

    assert np.isinf(Kernel(squared)(np.float64(1e200)))


PROBE = """
import sys
import numpy as np
from dlag_node.problems import LOGISTIC, DenseRows, Problem
{more}
rng = np.random.default_rng(0)
rows, labels = DenseRows(rng.normal(size=({samples}, 13))), np.ones({samples})
f = Problem(rows, labels, LOGISTIC, n0=5_000, lam=0.1)
for _ in range({times}):
    f.gradient(np.zeros(13))
print("numba" in sys.modules, "scipy" in sys.modules)
"""


@pytest.mark.parametrize(
    ("samples", "times", "more", "loaded"),
    [
        (13, 100, "import dlag_node.cli; from dlag_node.methods import tree", "False False"),
        (13, 6_000, "", "True True"),
        (400, 2, "", "False False"),
        (1_000, 1, "", "True True"),
        (13, 1, "from dlag_node.methods import dlag", "True True"),
    ],
)
def test_a_compiler_is_loaded_where_it_is_worth_it(
    samples: int, times: int, more: str, loaded: str
) -> None:
    program = PROBE.format(samples=samples, times=times, more=more)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout.strip() == loaded, done.stderr
