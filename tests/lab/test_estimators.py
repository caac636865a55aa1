"""The estimators: scikit-learn's own checks, and its own solutions to six digits and more."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from scipy.sparse import random_array
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from coordinator.datasets import load_dataset
from coordinator.plan import RunSettings
from dlag_lab.estimators import DecentralizedLogisticRegression, DecentralizedRidge, load_model
from dlag_lab.runs import Run, RunRequest
from dlag_node.data.model import load_model_file
from dlag_node.errors import ConfigError
from tests.datasets import path_of


def heart() -> tuple[Any, Any]:
    data = load_dataset("heart")
    return data.rows.matrix(), data.labels


def adult() -> tuple[Any, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path, features = path_of("as a1a", Path(folder))
        data = load_dataset(str(path), dim=features)
    return data.rows.matrix(), data.labels


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["bad", "good"])[y]


def exact(C: float) -> LogisticRegression:
    return LogisticRegression(
        C=C, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1_000
    )


@pytest.mark.parametrize(
    "made",
    [DecentralizedLogisticRegression(), DecentralizedRidge()],
    ids=lambda e: type(e).__name__,
)
def test_scikit_learn_s_own_checks_pass(made: Any) -> None:
    results = check_estimator(made, on_skip=None)
    assert sum(each["status"] == "passed" for each in results) >= 45


@pytest.mark.parametrize("data", [heart, adult, cancer])
@pytest.mark.parametrize("C", [0.1, 1.0])
def test_cross_validation_finds_scikit_learn_s_coefficients(data: Any, C: float) -> None:
    X, y = data()
    ours = DecentralizedLogisticRegression(C, fit_intercept=False, random_state=0)
    found, expected = (
        cross_validate(each, X, y, cv=3, return_estimator=True, error_score="raise")
        for each in (ours, exact(C))
    )
    for one, other in zip(found["estimator"], expected["estimator"], strict=True):
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found["test_score"], expected["test_score"])
    assert np.array_equal(cross_val_score(ours, X, y, cv=3), found["test_score"])


@pytest.mark.parametrize("intercept_scaling", [1.0, 10.0])
def test_the_intercept_is_liblinear_s(intercept_scaling: float) -> None:
    X, y = heart()
    ours = DecentralizedLogisticRegression(intercept_scaling=intercept_scaling).fit(X, y)
    theirs = LogisticRegression(
        solver="liblinear", intercept_scaling=intercept_scaling, tol=1e-12, max_iter=10_000
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("method", ["tree", "lazy-admm"])
def test_ridge_is_scikit_learn_s(method: str) -> None:
    X, y = load_diabetes(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    ours = DecentralizedRidge(3.0, fit_intercept=False, method=method, tol=1e-7).fit(X, y)
    theirs = Ridge(3.0, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-9)


def test_scaling_on_the_mesh_is_scaling_in_a_pipeline() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    ours = DecentralizedLogisticRegression(scale="standard", topology="grid:3x3").fit(X, y)
    plain = DecentralizedLogisticRegression(topology="grid:3x3")
    piped = make_pipeline(StandardScaler(), plain).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), piped.decision_function(X), atol=1e-5)


def test_three_classes_by_one_against_the_rest() -> None:
    X, y = load_iris(return_X_y=True)
    ours = OneVsRestClassifier(DecentralizedLogisticRegression(fit_intercept=False)).fit(X, y)
    theirs = OneVsRestClassifier(exact(1.0)).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_too_few_rounds_are_said() -> None:
    X, y = heart()
    with pytest.warns(ConvergenceWarning, match=r"after 3 rounds the coefficients are known to be"):
        DecentralizedLogisticRegression(max_rounds=3).fit(X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"backend": "cloud"}, "backend 'cloud': expected one of simulator, processes"),
        ({"tol": 0.0}, "tol = 0.0: expected a positive number"),
        ({"C": -1.0}, "lambda = -"),
        ({"topology": "moebius:4"}, "moebius"),
        ({"topology": "ring:300"}, "270 samples for 300 nodes"),
    ],
)
def test_bad_parameters_are_refused(change: dict[str, Any], words: str) -> None:
    X, y = heart()
    with pytest.raises(ConfigError, match=words):
        DecentralizedLogisticRegression(**change).fit(X, y)


async def test_real_processes_end_with_the_simulator_s_bits_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a running event loop, as in a notebook."""
    assert asyncio.get_running_loop().is_running()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    X, y = heart()
    before = set(psutil.Process().children(recursive=True))
    asked: dict[str, Any] = {"topology": "path:3", "random_state": 5, "scale": "minmax"}
    real = DecentralizedLogisticRegression(backend="processes", **asked).fit(X, y)
    simulated = DecentralizedLogisticRegression(**asked).fit(X, y)
    assert real.coef_.tobytes() == simulated.coef_.tobytes()
    assert real.intercept_.tobytes() == simulated.intercept_.tobytes()
    assert real.n_iter_ == simulated.n_iter_
    assert set(psutil.Process().children(recursive=True)) == before
    assert not list(tmp_path.iterdir())


def test_sparse_samples_stay_sparse_on_the_way_to_real_processes() -> None:
    X = random_array((90, 400), density=0.02, rng=np.random.default_rng(3), format="csr")
    y = np.where(X @ np.linspace(-1.0, 1.0, 400) > 0, 1, 0)
    asked: dict[str, Any] = {"topology": "path:2", "random_state": 5, "method": "dlag"}
    asked |= {"max_rounds": 30, "tol": 1.0}
    real = DecentralizedLogisticRegression(backend="processes", **asked).fit(X, y)
    simulated = DecentralizedLogisticRegression(**asked).fit(X, y)
    assert real.coef_.tobytes() == simulated.coef_.tobytes()
    assert real.n_iter_ == simulated.n_iter_


@pytest.mark.parametrize("problem", ["logistic", "ridge"])
def test_a_node_s_model_is_an_estimator(tmp_path: Path, problem: str) -> None:
    settings = RunSettings(topology="path:3", problem=problem, scale="standard", intercept=1.0)
    request = RunRequest(settings=settings, mode="simulate", target=1e-9, out=tmp_path / "run")
    Run(request).execute()
    path = tmp_path / "run" / "nodes" / "node-002.model.json"
    made, model = load_model(path), load_model_file(path)
    data = load_dataset("heart")
    scores = model.scores(data.rows)
    predicted = made.predict(data.rows.matrix())
    np.testing.assert_allclose(predicted, model.decide(scores), rtol=1e-10)
    assert made.score(data.rows.matrix(), data.labels) > 0.4
