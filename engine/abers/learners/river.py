"""Classifiers of river as learners.

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
    from river.base import Classifier
    from river.compose import Pipeline

__all__ = ["LEARNERS", "RiverClassifier", "make", "require_river"]

LEARNERS = {
    "bayes": "river.naive_bayes.GaussianNB",
    "forest": "river.forest.ARFClassifier",
    "logistic": "river.linear_model.LogisticRegression",
    "tree": "river.tree.HoeffdingTreeClassifier",
}
"""Short names; any other river classifier goes by its full one."""

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


def make(name: str) -> RiverClassifier:
    """Make a learner by name, behind a standard scaler.

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
    require_river()
    from river.preprocessing import StandardScaler

    kind = _named(LEARNERS.get(name, name))
    if kind is None:
        msg = (
            f"{name}: no such learner; short names are {', '.join(LEARNERS)}, and other "
            f"classifiers of river go by their full name, such as {LEARNERS['tree']}"
        )
        raise ParameterError(msg)
    seed = {"seed": _SEED} if "seed" in inspect.signature(kind).parameters else {}
    try:
        classifier = kind(**seed)
    except Exception as error:
        msg = f"{name} cannot be made with its defaults ({error}); choose another learner"
        raise ParameterError(msg) from error
    return RiverClassifier(StandardScaler() | classifier)


def _named(path: str) -> type[Classifier] | None:
    """Find a classifier of river by its full name."""
    from river.base import Classifier

    module, _, attribute = path.rpartition(".")
    if not module.startswith("river."):
        return None
    try:
        kind = getattr(importlib.import_module(module), attribute, None)
    except ImportError:  # no such module, or one that needs a library of its own
        return None
    return kind if inspect.isclass(kind) and issubclass(kind, Classifier) else None
