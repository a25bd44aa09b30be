"""The nearest that scikit-learn has to the six scorers of Vovk & Petej.

As with Weka, an object is the number of a row, missing values are filled in by what
was trained on, and a score is the probability of label 1.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from abers import Platt

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from abers.batch import Scorer
    from benchmarks.papers.encoded import Encoded

    Floats = NDArray[np.float64]
    Labels = NDArray[np.uint8]
    Rows = NDArray[np.int64]

__all__ = ["quiet", "scorer"]

_PRUNING = [0.0, 0.002, 0.005, 0.01, 0.02, 0.05]
_FOLDS = 3


def scorer(data: Encoded, name: str) -> Scorer:
    """Make a scorer of rows of a data set."""
    if name == "NB":
        return _naive_bayes(data)

    def train(rows: Rows, labels: Labels) -> Callable[[Rows], Floats]:
        model = make_pipeline(_filled(data.levels), _estimator(name, len(data.levels)))
        quiet(model, data.features[rows], labels)
        if name != "SVM":
            return lambda asked: np.asarray(model.predict_proba(data.features[asked])[:, 1])
        sigmoid = Platt()
        sigmoid.learn_many(model.decision_function(data.features[rows]), labels)
        return lambda asked: sigmoid.predict_many(model.decision_function(data.features[asked]))

    return train


def quiet(model: Any, features: Floats, labels: Any) -> Any:  # noqa: ANN401 - scikit-learn's
    """Fit a model that may stop early on purpose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(features, labels)


def _estimator(name: str, features: int) -> Any:  # noqa: ANN401 - scikit-learn has no types
    tree = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=2, random_state=0)
    if name == "J":
        return GridSearchCV(tree, {"ccp_alpha": _PRUNING}, cv=_FOLDS)
    if name == "JB":
        return BaggingClassifier(tree, n_estimators=10, random_state=0)
    if name == "LR":
        return LogisticRegression(C=1e8, max_iter=5_000)
    if name == "SVM":
        return SVC(kernel="linear")
    hidden = ((features + 2) // 2,)
    return MLPClassifier(hidden, "logistic", solver="lbfgs", max_iter=100, random_state=0)


def _filled(levels: tuple[int, ...]) -> ColumnTransformer:
    numbers = [j for j, n in enumerate(levels) if not n]
    nominal = [j for j, n in enumerate(levels) if n]
    mean = SimpleImputer(keep_empty_features=True)
    mode = SimpleImputer(strategy="most_frequent", keep_empty_features=True)
    coded = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [
            ("numbers", Pipeline([("fill", mean), ("scale", MinMaxScaler())]), numbers),
            ("nominal", Pipeline([("fill", mode), ("code", coded)]), nominal),
        ]
    )


def _naive_bayes(data: Encoded) -> Scorer:
    """Kernel densities for numbers, Laplace's counts for words; what is missing is left out."""

    def train(rows: Rows, labels: Labels) -> Callable[[Rows], Floats]:
        counts = np.array([(labels == label).sum() for label in (0, 1)]) + 1.0

        def score(asked: Rows) -> Floats:
            logs = np.tile(np.log(counts / counts.sum()), (len(asked), 1))
            for j, levels in enumerate(data.levels):
                column = data.features[:, j]
                for label in (0, 1):
                    seen = column[rows[labels == label]]
                    seen = seen[~np.isnan(seen)]
                    density = _counted(seen, levels) if levels else _kernels(seen, column[rows])
                    there = ~np.isnan(column[asked])
                    logs[there, label] += np.log(density(column[asked][there]))
            odds = np.clip(logs[:, 0] - logs[:, 1], -700.0, 700.0)  # exp must stay finite
            return np.asarray(1.0 / (1.0 + np.exp(odds)))

        return score

    return train


def _counted(seen: Floats, levels: int) -> Callable[[Floats], Floats]:
    shares = np.bincount(seen.astype(np.int64), minlength=levels) + 1.0
    shares /= shares.sum()
    return lambda asked: np.asarray(shares[asked.astype(np.int64)], np.float64)


def _kernels(seen: Floats, column: Floats) -> Callable[[Floats], Floats]:
    """Estimate as Weka does: normal kernels of width range / sqrt(n), or more for coarse data."""
    distinct = np.unique(column[~np.isnan(column)])
    if not seen.size or len(distinct) < 2:  # noqa: PLR2004 - one class only
        return np.ones_like
    precision = float(np.diff(distinct).mean())
    width = max(float(np.ptp(seen)) / len(seen) ** 0.5, precision / 6.0)

    def density(asked: Floats) -> Floats:
        z = (asked[:, np.newaxis] - seen) / width
        return np.asarray(np.exp(-0.5 * z**2).mean(axis=1) / width + 1e-75)

    return density
