"""Models that a river wrapper does not take: `abers.river._wrapper`."""

from __future__ import annotations

from typing import Any

import pytest
from river import compat, compose, linear_model, multiclass, naive_bayes, preprocessing, tree
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier

import abers.river as wrappers
from abers import ParameterError

CLASSIFIERS: list[Any] = [
    wrappers.VennAbersClassifier,
    wrappers.CrossVennAbersClassifier,
    wrappers.VennAbersMultiClassifier,
]
SCALER, LINEAR = preprocessing.StandardScaler(), linear_model.LinearRegression()
WRONG_CLASSIFIERS = [
    (LINEAR, r"classifier=LinearRegression\(…\) is not a river classifier; use VennAbersRegressor"),
    (SCALER | LINEAR, r"classifier=Pipeline\(…\) ends in LinearRegression.*use VennAbersRegressor"),
    (SCALER, r"classifier=StandardScaler\(…\) is not a river classifier; pass one, such as"),
    (SCALER | preprocessing.MinMaxScaler(), "ends in MinMaxScaler, which is not a river class"),
    (compose.Pipeline(), r"classifier=Pipeline\(…\) is not a river classifier; pass one"),
    (5, r"classifier=5 is not a river classifier; pass one, such as linear_model\.LogisticReg"),
    (None, "classifier=None is not a river classifier; pass one"),
    (LogisticRegression(), r"classifier=LogisticRegression\(\).*use abers\.sklearn\.VennAbersCal"),
    (naive_bayes.GaussianNB, r"classifier=GaussianNB is not .*pass an instance, GaussianNB\(…\)"),
]
WRONG_REGRESSORS = [
    (
        tree.HoeffdingTreeClassifier(),
        r"regressor=HoeffdingTreeClassifier\(…\) is not .*; use VennAbersClassifier",
    ),
    (LinearRegression(), r"use abers\.sklearn\.VennAbersCalibratedRegressor"),
    (linear_model.LinearRegression, r"pass an instance, LinearRegression\(…\), not the class"),
    ("tree", r"regressor='tree' is not a river regressor; pass one, such as linear_model\.Linear"),
]


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(("model", "message"), WRONG_CLASSIFIERS)
def test_a_wrong_classifier_is_an_error_with_its_remedy(
    kind: Any,  # noqa: ANN401 - a wrapper
    model: object,
    message: str,
) -> None:
    """The constructor names the value, the parameter and the remedy."""
    with pytest.raises(ParameterError, match=message):
        kind(model)


@pytest.mark.parametrize(("model", "message"), WRONG_REGRESSORS)
def test_a_wrong_regressor_is_an_error_with_its_remedy(model: Any, message: str) -> None:  # noqa: ANN401
    """The constructor names the value, the parameter and the remedy."""
    with pytest.raises(ParameterError, match=message):
        wrappers.VennAbersRegressor(model)


@pytest.mark.parametrize(
    "model",
    [
        SCALER | (SCALER | linear_model.LogisticRegression()),
        multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
        compat.convert_sklearn_to_river(SGDClassifier(loss="log_loss"), classes=[False, True]),
        wrappers.VennAbersClassifier(tree.HoeffdingTreeClassifier()),
    ],
)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_nested_and_converted_classifiers_are_classifiers(kind: Any, model: Any) -> None:  # noqa: ANN401
    """A pipeline in a pipeline, a wrapper, and a converted scikit-learn model are accepted."""
    assert kind(model).clone().classifier is not model


def test_nested_regressors_are_regressors() -> None:
    """A wrapper of a regressor is accepted as a regressor."""
    model = SCALER | preprocessing.TargetStandardScaler(LINEAR)
    assert wrappers.VennAbersRegressor(model).regressor is model
