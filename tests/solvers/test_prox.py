"""The one-dimensional equation of a proximal step, against another root finder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

from dlag_node.problems import LOGISTIC, SQUARED, Loss
from dlag_node.solvers.prox import margin_of

LABELS = st.sampled_from([-1.0, 1.0])
POINTS = st.floats(-1e3, 1e3)
WEIGHTS = st.one_of(st.floats(-3.9, 0.0), st.floats(0.0, 10.0), st.floats(0.0, 1e6))


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    margin(LOGISTIC, 1.0, 0.0, 0.0, 0.0)  # compiling is no part of an example's time


def margin(loss: Loss, b: float, C: float, beta: float, start: float) -> float:
    return float(margin_of(loss.code, b, loss.curvature, C, beta, start))


@given(b=LABELS, C=WEIGHTS, beta=POINTS, start=POINTS)
def test_logistic_as_brentq_has_it(b: float, C: float, beta: float, start: float) -> None:
    def r(s: float) -> float:
        return s - C * b * expit(-b * s) - beta

    width = abs(C) + 1.0
    expected = brentq(r, beta - width, beta + width, xtol=1e-14, rtol=1e-15)
    found = margin(LOGISTIC, b, C, beta, start)
    # r is rounded to an ulp of its largest term, and its slope is at least this
    slope = min(1.0, 1.0 + C / 4)
    terms = abs(beta) + abs(C) + 1.0
    assert abs(found - expected) <= 16 * np.finfo(float).eps * terms / slope


@given(b=POINTS, C=st.floats(-0.9, 1e6), beta=POINTS, start=POINTS)
def test_squared_in_closed_form(b: float, C: float, beta: float, start: float) -> None:
    expected = (beta + C * b) / (1.0 + C)
    terms = (abs(beta) + abs(C * b)) / (1.0 + C) + abs(expected)
    smallest = 4 * np.finfo(float).smallest_normal  # below it a float has fewer digits
    assert abs(margin(SQUARED, b, C, beta, start) - expected) <= 1e-13 * terms + smallest


@pytest.mark.parametrize("start", [0.0, -1e300, 1e300])
@pytest.mark.parametrize("beta", [-1e300, -40.0, 0.0, 40.0, 1e300])
def test_far_starts_and_far_points_end(beta: float, start: float) -> None:
    s = margin(LOGISTIC, 1.0, 2.0, beta, start)
    assert beta <= s <= beta + 2.0
    assert s - 2.0 * expit(-s) == pytest.approx(beta, rel=1e-14, abs=1e-14)


def test_zero_weight_is_no_step() -> None:
    assert margin(LOGISTIC, -1.0, 0.0, 0.75, 3.0) == 0.75
