"""An adapter that makes a learner of a scikit-learn classifier with `partial_fit`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers.exceptions import ParameterError
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.arrays import Floats

__all__ = ["SklearnClassifier"]

_CLASSES = (0, 1)
_METHODS = ("partial_fit", "predict_proba")


class SklearnClassifier:
    """A binary scikit-learn classifier as a learner.

    Parameters
    ----------
    classifier
        A classifier with `partial_fit` and `predict_proba`, new or fitted to labels 0 and 1.
    features
        Names of the features, in the order of the columns that the classifier sees.

    Raises
    ------
    ParameterError
        If the classifier lacks one of the two methods.

    Notes
    -----
    An observation without one of the features becomes a dead letter, as does one with a feature
    that must be a number. Fit a classifier that cannot learn from its first rows, such as
    `GaussianNB` with variances of zero, to some rows before.

    Examples
    --------
    >>> from abers.learners.sklearn_adapters import SklearnClassifier
    >>> from sklearn.linear_model import SGDClassifier
    >>> model = SGDClassifier(loss="log_loss", random_state=0)
    >>> learner = SklearnClassifier(model, ["amount"])
    >>> learner.score({"amount": 1.0})
    0.5
    >>> for _ in range(20):
    ...     learner.learn({"amount": -1.0}, 0)
    ...     learner.learn({"amount": 1.0}, 1)
    >>> learner.score({"amount": 1.0}) > 0.9
    True
    """

    def __init__(self, classifier: Any, features: Sequence[str]) -> None:  # noqa: ANN401
        for method in _METHODS:
            if not hasattr(classifier, method):
                msg = (
                    f"{shown(classifier)} has no {method}; choose a classifier that learns one "
                    "label after another and predicts probabilities, such as "
                    "SGDClassifier(loss='log_loss')"
                )
                raise ParameterError(msg)
        self._classifier, self._features = classifier, tuple(features)

    def score(self, x: dict[str, Any]) -> float:
        """Return the probability of label 1, or 1/2 before the first label."""
        if not hasattr(self._classifier, "classes_"):
            return 0.5
        return float(self._classifier.predict_proba(self._row(x))[0, 1])

    def learn(self, x: dict[str, Any], value: int) -> None:
        """Learn the features and the label of one observation."""
        self._classifier.partial_fit(self._row(x), [value], classes=_CLASSES)

    def _row(self, x: dict[str, Any]) -> Floats:
        return np.array([[x[name] for name in self._features]], np.float64)
