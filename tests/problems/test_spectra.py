"""Eigenvalues of our own order against LAPACK's, and interpreted against compiled."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlag_node.problems import eigenvalues, inverse, rows_of
from dlag_node.problems.compiling import compile_kernels
from dlag_node.problems.spectra import largest_eigenvalue, ql_steps

compile_kernels()

KINDS = ("random", "constant", "diagonal", "low rank", "zero", "apart")


def symmetric(kind: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "constant":
        return n * np.eye(n) - 1.0
    if kind == "diagonal":
        return np.diag(rng.normal(size=n))
    if kind == "zero":
        return np.zeros((n, n))
    if kind == "low rank":
        v = rng.normal(size=(n, 1))
        return v @ v.T
    A = rng.normal(size=(n, n))
    scale = 10.0 ** rng.uniform(-6, 6, n) if kind == "apart" else np.ones(n)
    return (A + A.T) * scale * scale[:, None]


@settings(max_examples=120, deadline=None)
@given(st.sampled_from(KINDS), st.integers(1, 40), st.integers(0, 10**6))
def test_eigenvalues_are_those_of_lapack_to_rounding(kind: str, n: int, seed: int) -> None:
    A = symmetric(kind, n, seed)
    before = A.copy()
    expected = np.linalg.eigvalsh(A)
    size = max(1e-300, float(np.abs(expected).max()))
    np.testing.assert_allclose(eigenvalues(A), expected, rtol=0, atol=4e-15 * n * size)
    assert np.array_equal(A, before)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 10**6), st.booleans())
def test_the_largest_eigenvalue_of_a_gram_matrix_is_found_by_products(
    samples: int, dim: int, seed: int, repeated: bool
) -> None:
    A = np.random.default_rng(seed).normal(size=(samples, dim))
    if repeated:
        A[:] = A[0]
    rows, ones = rows_of(A), np.ones(samples)
    found = largest_eigenvalue(lambda v: rows.products(ones, v), dim, min(samples, dim))
    assert found == pytest.approx(np.linalg.eigvalsh(A.T @ A)[-1], rel=1e-12)


def test_of_many_eigenvalues_close_together_the_largest_is_found() -> None:
    d = np.concatenate((np.linspace(0.0, 1.0, 900), [1.0 + 1e-3]))
    found = largest_eigenvalue(lambda v: d * v, len(d), len(d))
    assert found == pytest.approx(1.0 + 1e-3, rel=1e-12)
    assert largest_eigenvalue(lambda v: 0.0 * v, 5, 5) == 0.0


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 25), st.integers(0, 10**6))
def test_ql_steps_have_the_same_bits_interpreted_and_compiled(n: int, seed: int) -> None:
    diagonal, beside = np.random.default_rng(seed).normal(size=(2, n))
    beside[-1] = 0.0
    slow, slow_beside = diagonal.tolist(), beside.tolist()
    ql_steps.py_func(slow, slow_beside)
    ql_steps(diagonal, beside)
    assert diagonal.tolist() == slow


def test_an_inverse_is_one() -> None:
    A = np.random.default_rng(3).normal(size=(30, 20))
    M = A.T @ A + np.eye(20)
    np.testing.assert_allclose(inverse(M) @ M, np.eye(20), atol=1e-12)
