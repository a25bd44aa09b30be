"""The check that a wrapper gets a river model of its kind."""

from __future__ import annotations

import inspect
from typing import Any, Literal

from river import base
from river.compose import Pipeline

from abers.exceptions import ParameterError
from abers.validation import shown

__all__ = ["require_model"]

_KINDS = {"classifier": base.Classifier, "regressor": base.Regressor}
_EXAMPLES = {
    "classifier": "linear_model.LogisticRegression()",
    "regressor": "linear_model.LinearRegression()",
}
_OTHER_WRAPPERS = {"classifier": "VennAbersRegressor", "regressor": "VennAbersClassifier"}
_SKLEARN_WRAPPERS = {
    "classifier": "VennAbersCalibratedClassifier",
    "regressor": "VennAbersCalibratedRegressor",
}


def require_model(model: Any, kind: Literal["classifier", "regressor"]) -> None:  # noqa: ANN401 - checked here
    """Raise a ParameterError unless the model is a river model of a kind, or ends in one.

    Parameters
    ----------
    model
        What the wrapper got as the parameter that is named as the kind.
    kind
        "classifier" or "regressor".
    """
    last = model
    while isinstance(last, Pipeline) and last.steps:
        last = last[-1]
    empty = isinstance(last, Pipeline)  # river cannot ask for its class
    if not empty and isinstance(last, _KINDS[kind]):
        return
    ends = f" ends in {type(last).__name__}, which" if last is not model else ""
    msg = f"{kind}={_named(model)}{ends} is not a river {kind}; {_remedy(last, kind)}"
    raise ParameterError(msg)


def _named(model: Any) -> str:  # noqa: ANN401 - anything
    """Name a model by its class: river shows one in many lines."""
    if inspect.isclass(model):
        name: str = model.__name__
        return name
    return f"{type(model).__name__}(…)" if isinstance(model, base.Base) else shown(model)


def _remedy(last: Any, kind: str) -> str:  # noqa: ANN401 - anything
    if inspect.isclass(last):
        return f"pass an instance, {last.__name__}(…), not the class"
    if not isinstance(last, Pipeline) and isinstance(last, base.Classifier | base.Regressor):
        return f"use {_OTHER_WRAPPERS[kind]} for it, or pass a {kind}, such as {_EXAMPLES[kind]}"
    if callable(getattr(last, "fit", None)):
        return (
            f"use abers.sklearn.{_SKLEARN_WRAPPERS[kind]} for a scikit-learn model, or pass a "
            f"river model, such as {_EXAMPLES[kind]}"
        )
    return f"pass one, such as {_EXAMPLES[kind]}, or a pipeline that ends in one"
