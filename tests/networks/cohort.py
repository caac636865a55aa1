"""Patients of 25 hospitals: raw measurements in their own units, more of them here than there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coordinator.datasets import Dataset
from coordinator.plan import Plan, RunSettings
from dlag_lab.referee import optimum
from dlag_node.data import Agreement, Table, agree, summarise
from dlag_node.problems import LOGISTIC, Problem, rows_of

HOSTS = 25
NAMES = ("age", "pressure", "cholesterol", "platelets", "creatinine", "height", "troponin", "ill")
# mean and spread of each, from a ten-thousandth to a hundred thousand: hopeless without scaling
_MEANS = np.array([61.0, 132.0, 5.4, 2.5e5, 92.0, 1.71, 2e-4])
_SPREADS = np.array([12.0, 18.0, 1.1, 6e4, 25.0, 0.09, 1e-4])
_WEIGHTS = np.array([0.9, 0.6, 0.5, -0.2, 0.7, 0.0, 1.2])  # of one spread above the mean

_random = np.random.default_rng(41)
SIZES = _random.integers(11, 60, size=HOSTS)
X = _MEANS + _SPREADS * _random.normal(size=(SIZES.sum(), len(_MEANS)))
_odds = (X - _MEANS) / _SPREADS @ _WEIGHTS - 0.5
_ILL = np.where(_random.logistic(size=len(X)) < _odds, 1.0, 0.0)
PARTS = np.split(np.column_stack([X, _ILL]), np.cumsum(SIZES)[:-1])  # as the hosts' files have them
STRANGERS = _MEANS + _SPREADS * _random.normal(size=(2, len(_MEANS)))  # no hospital's patients


def pooled(parts: Sequence[np.ndarray] = PARTS) -> tuple[Problem, np.ndarray]:
    """f of these parts together, scaled as all of them, and theta*: for the judge alone."""
    settings = RunSettings(topology="grid:5x5", scale="standard", intercept=1.0)
    together = np.vstack(parts)
    table = Table(rows_of(together[:, :-1]), together[:, -1])
    problem = Plan(settings, Dataset("pooled", table, table.labels)).pooled()
    return problem, optimum(problem)[0]


def agreed() -> Agreement:
    """What is done alike to all samples."""
    said = {"all": summarise(Table(rows_of(X), _ILL), "standard", who="all")}
    return agree(said, loss=LOGISTIC, scale="standard", intercept=1.0)
