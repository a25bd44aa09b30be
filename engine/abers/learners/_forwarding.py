"""Which keywords a learner takes.

Governing rule: signatures are read once, when a learner is wrapped; what a method does not name
is not handed on to it, unless it takes any keyword.
"""

from __future__ import annotations

import inspect
from typing import Any

from river.compose import Pipeline

__all__ = ["Forwarding"]

_METHODS = (
    "learn_one",
    "predict_one",
    "predict_proba_one",
    "learn_many",
    "predict_proba_many",
)


class Forwarding:
    """The keywords that each method of a learner takes.

    Parameters
    ----------
    learner
        Any estimator of river, or a pipeline.
    """

    def __init__(self, learner: Any) -> None:  # noqa: ANN401 - no type has all the methods
        self._taken = {method: _keywords(learner, method) for method in _METHODS}

    def __call__(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return those of the keywords that a method takes."""
        taken = self._taken[method]
        if taken is None:
            return given
        return {name: value for name, value in given.items() if name in taken}


def _keywords(learner: Any, method: str) -> frozenset[str] | None:  # noqa: ANN401 - as above
    """Names of what a method takes; None if it takes anything, or is missing."""
    if method.endswith("_many") and isinstance(learner, Pipeline):
        learner = learner[-1]  # here a pipeline hands on all that it is given
    if not hasattr(learner, method):
        return None
    parameters = inspect.signature(getattr(learner, method)).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return frozenset(each.name for each in parameters)
