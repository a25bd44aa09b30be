"""Classifiers and regressors of river as learners.

Governing rule: river is imported when a learner is asked for, never before,
because that takes most of a second; and a stream can be replayed, so a learner
that draws numbers gets a fixed seed.
"""

# ruff: noqa: PLC0415 - the imports inside functions are the rule above

from __future__ import annotations

import importlib
import importlib.util
import inspect
from typing import TYPE_CHECKING, Any

from abers.exceptions import MissingExtraError, ParameterError

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
"""Short names; any other river classifier goes by its full one. The logistic regression is for
two classes only, the others are for any number."""

REGRESSORS = {
    "forest": "river.forest.ARFRegressor",
    "linear": "river.linear_model.LinearRegression",
    "tree": "river.tree.HoeffdingTreeRegressor",
}
"""The same for labels that are numbers."""

USUAL = {"binary": "logistic", "multiclass": "softmax", "regression": "linear"}
"""The learner of each task where none is named."""

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
        """Give the probability of label 1; 1/2 as long as no label was seen."""
        probabilities = self._classifier.predict_proba_one(x)
        if not probabilities:
            return 0.5
        # Rounding in a learner may go a little beyond 1; a NaN stays one, and is refused.
        return min(float(probabilities.get(True, 0.0)), 1.0)

    def learn(self, x: dict[Any, Any], value: float) -> None:
        """Learn features and label."""
        self._classifier.learn_one(x, bool(value))


class RiverFolds:
    """K copies of a binary classifier, each of which never learns its own fold.

    Parameters
    ----------
    make
        Makes a copy.
    folds
        How many.

    Examples
    --------
    >>> RiverFolds(lambda: make("logistic"), 3).score({"amount": 3.0})
    [0.5, 0.5, 0.5]
    """

    def __init__(self, make: Callable[[], RiverClassifier], folds: int) -> None:
        self._copies = [make() for _ in range(folds)]

    def score(self, x: dict[Any, Any]) -> list[float]:
        """Give the probability of label 1 by each copy."""
        return [copy.score(x) for copy in self._copies]

    def learn(self, x: dict[Any, Any], value: float, fold: int) -> None:
        """Have all copies but one learn features and label."""
        for number, copy in enumerate(self._copies):
            if number != fold:
                copy.learn(x, value)


class RiverMultiClassifier:
    """A river classifier of several classes as a learner.

    Parameters
    ----------
    classifier
        Any multi-class classifier, or a pipeline that ends in one.
    classes
        The classes.

    Examples
    --------
    >>> from river.naive_bayes import GaussianNB
    >>> RiverMultiClassifier(GaussianNB(), ["cat", "dog"]).score({"weight": 4.0})
    {'cat': 0.5, 'dog': 0.5}
    """

    def __init__(self, classifier: Classifier | Pipeline, classes: Sequence[str]) -> None:
        self._classifier, self._classes = classifier, tuple(classes)

    def score(self, x: dict[Any, Any]) -> dict[str, float]:
        """Give the probabilities of the classes; all equal as long as no label was seen."""
        found = self._classifier.predict_proba_one(x)
        if not found:
            return dict.fromkeys(self._classes, 1.0 / len(self._classes))
        return {name: float(found.get(name, 0.0)) for name in self._classes}

    def learn(self, x: dict[Any, Any], value: str) -> None:
        """Learn features and label."""
        self._classifier.learn_one(x, value)


class RiverRegressor:
    """A river regressor as a learner.

    Parameters
    ----------
    regressor
        Any regressor, or a pipeline that ends in one.

    Examples
    --------
    >>> from river.linear_model import LinearRegression
    >>> RiverRegressor(LinearRegression()).score({"age": 3.0})
    0.0
    """

    def __init__(self, regressor: Regressor | Pipeline) -> None:
        self._regressor = regressor

    def score(self, x: dict[Any, Any]) -> float:
        """Give the prediction."""
        return float(self._regressor.predict_one(x))

    def learn(self, x: dict[Any, Any], value: float) -> None:
        """Learn features and label."""
        self._regressor.learn_one(x, value)


def make(name: str) -> RiverClassifier:
    """Make a learner of labels 0 and 1 by name, behind a standard scaler.

    Parameters
    ----------
    name
        A key of `LEARNERS`, or the full name of a river classifier, which is made with its
        defaults.

    Returns
    -------
    RiverClassifier
        The learner.

    Raises
    ------
    ParameterError
        If there is no such classifier, or it needs arguments.
    MissingExtraError
        If river is not installed.
    """
    return RiverClassifier(_scaled(_made(name, LEARNERS)))


def make_multi(name: str, classes: Sequence[str]) -> RiverMultiClassifier:
    """Make a learner of several classes by name; as `make`.

    Parameters
    ----------
    name
        As of `make`.
    classes
        They.

    Returns
    -------
    RiverMultiClassifier
        The learner.

    Raises
    ------
    ParameterError
        As of `make`, or if the classifier knows two classes only.
    MissingExtraError
        If river is not installed.
    """
    classifier = _made(name, LEARNERS)
    if not classifier._multiclass:  # noqa: SLF001 - how river's own checks ask
        msg = f"{name} knows two classes only; choose softmax, or another of {', '.join(LEARNERS)}"
        raise ParameterError(msg)
    return RiverMultiClassifier(_scaled(classifier), classes)


def make_regressor(name: str) -> RiverRegressor:
    """Make a learner of labels that are numbers by name; as `make`, the label standardised too.

    Parameters
    ----------
    name
        A key of `REGRESSORS`, or the full name of a river regressor.

    Returns
    -------
    RiverRegressor
        The learner.

    Raises
    ------
    ParameterError
        If there is no such regressor, or it needs arguments.
    MissingExtraError
        If river is not installed.
    """
    from river.preprocessing import TargetStandardScaler

    regressor = TargetStandardScaler(regressor=_made(name, REGRESSORS))
    return RiverRegressor(_scaled(regressor))


def _scaled(estimator: Classifier | Regressor) -> Pipeline:
    from river.preprocessing import StandardScaler

    return StandardScaler() | estimator


def _made(name: str, short: Mapping[str, str]) -> Any:  # noqa: ANN401 - classifier or regressor
    """Make an estimator of the kind that the short names are of."""
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
    """Find a classifier or a regressor of river by its full name."""
    from river.base import Classifier, Regressor

    base = Regressor if what == "regressor" else Classifier
    module, _, attribute = path.rpartition(".")
    if not module.startswith("river."):
        return None
    try:
        kind = getattr(importlib.import_module(module), attribute, None)
    except ImportError:  # no such module, or one that needs a library of its own
        return None
    return kind if inspect.isclass(kind) and issubclass(kind, base) else None
