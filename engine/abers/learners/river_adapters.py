"""Adapters that make learners of river's classifiers and regressors.

Importing river takes most of a second, so it is imported when the first learner is made. A replay
repeats a stream, so a model that draws random numbers gets a fixed seed.
"""

# ruff: noqa: PLC0415 - river is imported inside functions, see above

from __future__ import annotations

import importlib
import importlib.util
import inspect
from typing import TYPE_CHECKING, Any

from abers.exceptions import MissingExtraError, ParameterError
from abers.learners.workarounds import is_multiclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from river.base import Classifier, Regressor
    from river.compose import Pipeline

__all__ = [
    "LEARNERS",
    "REGRESSORS",
    "USUAL",
    "RiverClassifier",
    "RiverFolds",
    "RiverMultiClassifier",
    "RiverRegressor",
    "make",
    "make_multi",
    "make_regressor",
    "require_river",
]

LEARNERS = {
    "bayes": "river.naive_bayes.GaussianNB",
    "forest": "river.forest.ARFClassifier",
    "logistic": "river.linear_model.LogisticRegression",
    "softmax": "river.linear_model.SoftmaxRegression",
    "tree": "river.tree.HoeffdingTreeClassifier",
}
"""Short names of classifiers; any other river classifier goes by its full name. The logistic
regression takes two classes only, the others any number."""

REGRESSORS = {
    "forest": "river.forest.ARFRegressor",
    "linear": "river.linear_model.LinearRegression",
    "tree": "river.tree.HoeffdingTreeRegressor",
}
"""Short names of regressors; any other river regressor goes by its full name."""

USUAL = {"binary": "logistic", "multiclass": "softmax", "regression": "linear"}
"""The default learner of each task."""

_SEED = 1


def require_river() -> None:
    """Raise a MissingExtraError if river is not installed."""
    if importlib.util.find_spec("river") is None:
        msg = "river's streams and learners need river; install it: pip install 'abers[river]'"
        raise MissingExtraError(msg)


class RiverClassifier:
    """A binary river classifier as a learner.

    Parameters
    ----------
    classifier
        Any binary classifier, or a pipeline that ends in one.

    Examples
    --------
    >>> from river.linear_model import LogisticRegression
    >>> RiverClassifier(LogisticRegression()).score({"amount": 3.0})
    0.5
    """

    def __init__(self, classifier: Classifier | Pipeline) -> None:
        self._classifier = classifier

    def score(self, x: dict[Any, Any]) -> float:
        """Return the probability of label 1, or 1/2 before the first label."""
        probabilities = self._classifier.predict_proba_one(x)
        if not probabilities:
            return 0.5
        # A model may round to just above 1. A NaN stays a NaN, which the processor refuses.
        return min(float(probabilities.get(True, 0.0)), 1.0)

    def learn(self, x: dict[Any, Any], value: float) -> None:
        """Learn the features and the label of one observation."""
        self._classifier.learn_one(x, bool(value))


class RiverFolds:
    """Copies of a binary classifier that `make` makes, each trained on all folds but its own.

    Examples
    --------
    >>> RiverFolds(lambda: make("logistic"), 3).score({"amount": 3.0})
    [0.5, 0.5, 0.5]
    """

    def __init__(self, make: Callable[[], RiverClassifier], folds: int) -> None:
        self._copies = [make() for _ in range(folds)]

    def score(self, x: dict[Any, Any]) -> list[float]:
        """Return the probability of label 1 by each copy."""
        return [copy.score(x) for copy in self._copies]

    def learn(self, x: dict[Any, Any], value: float, fold: int) -> None:
        """Train all copies but that of the fold on the features and the label."""
        for number, copy in enumerate(self._copies):
            if number != fold:
                copy.learn(x, value)


class RiverMultiClassifier:
    """A river classifier of several classes as a learner; see `RiverClassifier`.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> RiverMultiClassifier(GaussianNB(), ["cat", "dog"]).score({"weight": 4.0})
    {'cat': 0.5, 'dog': 0.5}
    """

    def __init__(self, classifier: Classifier | Pipeline, classes: Sequence[str]) -> None:
        self._classifier, self._classes = classifier, tuple(classes)

    def score(self, x: dict[Any, Any]) -> dict[str, float]:
        """Return the probability of each class; all are equal before the first label."""
        found = self._classifier.predict_proba_one(x)
        if not found:
            return dict.fromkeys(self._classes, 1.0 / len(self._classes))
        return {name: float(found.get(name, 0.0)) for name in self._classes}

    def learn(self, x: dict[Any, Any], value: str) -> None:
        """Learn the features and the label of one observation."""
        self._classifier.learn_one(x, value)


class RiverRegressor:
    """A river regressor, or a pipeline that ends in one, as a learner.

    Examples
    --------
    >>> from river.linear_model import LinearRegression
    >>> RiverRegressor(LinearRegression()).score({"age": 3.0})
    0.0
    """

    def __init__(self, regressor: Regressor | Pipeline) -> None:
        self._regressor = regressor

    def score(self, x: dict[Any, Any]) -> float:
        """Return the prediction."""
        return float(self._regressor.predict_one(x))

    def learn(self, x: dict[Any, Any], value: float) -> None:
        """Learn the features and the label of one observation."""
        self._regressor.learn_one(x, value)


def make(name: str) -> RiverClassifier:
    """Make a learner for labels 0 and 1 by name, behind a standard scaler.

    Parameters
    ----------
    name
        A key of `LEARNERS`, or the full name of a river classifier, which gets its default
        parameters.

    Returns
    -------
    RiverClassifier
        The learner, which has learned nothing.

    Raises
    ------
    ParameterError
        If there is no such classifier, or it needs arguments.
    MissingExtraError
        If river is not installed.
    """
    return RiverClassifier(_scaled(_made(name, LEARNERS)))


def make_multi(name: str, classes: Sequence[str]) -> RiverMultiClassifier:
    """Make a learner for several classes by name, as `make` does.

    It also raises a ParameterError if the classifier takes two classes only.
    """
    classifier = _made(name, LEARNERS)
    if not is_multiclass(classifier):
        msg = f"{name} knows two classes only; choose softmax, or another of {', '.join(LEARNERS)}"
        raise ParameterError(msg)
    return RiverMultiClassifier(_scaled(classifier), classes)


def make_regressor(name: str) -> RiverRegressor:
    """Make a learner for numeric labels by name, as `make` does, of `REGRESSORS`.

    Features and labels are standardised.
    """
    from river.preprocessing import TargetStandardScaler

    regressor = TargetStandardScaler(regressor=_made(name, REGRESSORS))
    return RiverRegressor(_scaled(regressor))


def _scaled(estimator: Classifier | Regressor) -> Pipeline:
    from river.preprocessing import StandardScaler

    return StandardScaler() | estimator


def _made(name: str, short: Mapping[str, str]) -> Any:  # noqa: ANN401 - classifier or regressor
    """Make a classifier or a regressor, by its short or its full name."""
    require_river()
    what = "regressor" if short is REGRESSORS else "classifier"
    kind = _named(short.get(name, name), what)
    if kind is None:
        msg = (
            f"{name}: no such learner; short names are {', '.join(short)}, and other "
            f"{what}s of river go by their full name, such as {short['tree']}"
        )
        raise ParameterError(msg)
    seed = {"seed": _SEED} if "seed" in inspect.signature(kind).parameters else {}
    try:
        return kind(**seed)
    except Exception as error:
        msg = f"{name} cannot be made with its defaults ({error}); choose another learner"
        raise ParameterError(msg) from error


def _named(path: str, what: str) -> type[Any] | None:
    """Return a classifier or a regressor of river by its full name, or None."""
    from river.base import Classifier, Regressor

    base = Regressor if what == "regressor" else Classifier
    module, _, attribute = path.rpartition(".")
    if not module.startswith("river."):
        return None
    try:
        kind = getattr(importlib.import_module(module), attribute, None)
    except ImportError:  # the module does not exist, or needs a library that is missing
        return None
    return kind if inspect.isclass(kind) and issubclass(kind, base) else None
