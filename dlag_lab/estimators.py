"""scikit-learn estimators that are trained by a mesh, and by which its models are used.

    DecentralizedLogisticRegression   C sum_j log(1 + exp(-b_j score_j)) + ||w||^2 / 2
    DecentralizedRidge                sum_j (score_j - b_j)^2 + alpha ||w||^2

are scikit-learn's LogisticRegression(C=...) and Ridge(alpha=...), with one difference: an intercept
is the coefficient of a constant feature of value `intercept_scaling` and is regularised as all
others are, as in liblinear. Every f_i has to be strongly convex for the mesh's methods.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from coordinator.plan import RunSettings
from dlag_lab.training import train
from dlag_node.data.model import load_model_file

# in full float64: where f is flat the rounding of float32 hides the way to the last digits
METHOD = "tree:form=f8"
_SEEDS = 2**31 - 1


class _Linear(BaseEstimator):  # type: ignore[misc]
    """What both have: settings of a mesh, a fit by it, scores."""

    def _train(self, X: Any, labels: Any, problem: str, lam: float) -> None:
        random = check_random_state(self.random_state)
        settings = RunSettings(
            method=self.method,
            topology=self.topology,
            problem=problem,
            lam=lam,
            data="memory",
            scale=self.scale,
            intercept=float(self.intercept_scaling) if self.fit_intercept else 0.0,
            shards=self.shards,
            rounds=self.max_rounds,
            seed=int(random.randint(_SEEDS)),
        )
        found = train(X, labels, settings, backend=self.backend, tol=self.tol)
        if not found.proven:
            warnings.warn(
                f"after {found.rounds} rounds the coefficients are known to be within "
                f"{found.bound:.3g} of the optimum, not {self.tol:g}: scale the features "
                "(scale='standard'), regularise more, or allow more rounds",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.coef_: Any = found.coefficients
        self.intercept_: Any = found.intercept
        self.n_iter_ = found.rounds

    def _scores(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return X @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class DecentralizedLogisticRegression(ClassifierMixin, _Linear):  # type: ignore[misc]
    """l2-regularised logistic regression of two classes by a mesh of workers.

    C, fit_intercept, intercept_scaling   as LogisticRegression's, with liblinear's intercept
    topology, method, shards              of the mesh: as the flags of `dlag run`
    scale                                 none, minmax or standard: what the mesh agrees on
    tol                                   it ends when all workers' coefficients are proven to be
                                          within this of the optimum, or when f cannot tell
    max_rounds                            ... or with a ConvergenceWarning after so many
    backend                               simulator, or processes: a coordinator and real nodes
    random_state                          decides shards, random graphs and random draws

    `coef_` and `intercept_` are for samples as they are, whatever the scaling. For more than two
    classes wrap it in scikit-learn's OneVsRestClassifier.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        topology: str = "ring:4",
        method: str = METHOD,
        shards: str = "even",
        scale: str = "none",
        tol: float = 1e-8,
        max_rounds: int = 1_000,
        backend: str = "simulator",
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.topology = topology
        self.method = method
        self.shards = shards
        self.scale = scale
        self.tol = tol
        self.max_rounds = max_rounds
        self.backend = backend
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on a mesh among whose workers the samples are dealt."""
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2
        )
        check_classification_targets(y)
        kind = type_of_target(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}: expected two classes, or wrap it in OneVsRestClassifier"
            )
        if len(self.classes_) < 2:
            raise ValueError(f"one class, {self.classes_[0]!r}, and no other: expected two classes")
        labels = np.where(codes == 1, 1.0, -1.0)
        self._train(X, labels, "logistic", 1.0 / (2.0 * self.C * len(labels)))
        self.coef_ = self.coef_[None, :]
        self.intercept_ = np.array([self.intercept_])
        return self

    def decision_function(self, X: Any) -> Any:
        """Positive where the second class is the likelier one."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """The likelier class of every sample."""
        scores = self._scores(X)
        return self.classes_[(scores > 0).astype(int)]

    def predict_proba(self, X: Any) -> Any:
        """The probabilities of both classes."""
        second = 1.0 / (1.0 + np.exp(-np.clip(self._scores(X), -700.0, 700.0)))
        return np.column_stack([1.0 - second, second])

    def predict_log_proba(self, X: Any) -> Any:
        """Their logarithms."""
        scores = self._scores(X)
        return -np.column_stack([np.logaddexp(0.0, scores), np.logaddexp(0.0, -scores)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class DecentralizedRidge(RegressorMixin, _Linear):  # type: ignore[misc]
    """Ridge regression by a mesh of workers; the parameters are those of its sister's."""

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        topology: str = "ring:4",
        method: str = METHOD,
        shards: str = "even",
        scale: str = "none",
        tol: float = 1e-8,
        max_rounds: int = 1_000,
        backend: str = "simulator",
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.topology = topology
        self.method = method
        self.shards = shards
        self.scale = scale
        self.tol = tol
        self.max_rounds = max_rounds
        self.backend = backend
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train on a mesh among whose workers the samples are dealt."""
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=np.float64,
            y_numeric=True,
            ensure_min_samples=2,
        )
        self._train(X, y.astype(np.float64), "ridge", self.alpha / (2.0 * len(y)))
        return self

    def predict(self, X: Any) -> Any:
        """The prediction for every sample."""
        return self._scores(X)


def load_model(path: Path | str) -> DecentralizedLogisticRegression | DecentralizedRidge:
    """A node's model file as an estimator that is fitted already, for raw samples."""
    model = load_model_file(Path(path))
    w, b = model.raw()
    made: DecentralizedLogisticRegression | DecentralizedRidge
    if model.classes:
        made = DecentralizedLogisticRegression(method=str(model.provenance.get("method", "tree")))
        made.classes_ = np.array(model.classes)
        made.coef_, made.intercept_ = w[None, :], np.array([b])
    else:
        made = DecentralizedRidge(method=str(model.provenance.get("method", "tree")))
        made.coef_, made.intercept_ = w, b
    made.n_features_in_ = model.dim
    if model.names is not None:
        made.feature_names_in_ = np.array(model.names, dtype=object)
    return made
