"""The warning about late labels without ids: `abers.river._wrapper`."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from river import datasets, evaluate, linear_model, metrics, preprocessing
from tests.engine.river.streams import phishing, scaled

from abers import MissingIdWarning
from abers.river import (
    CrossVennAbersClassifier,
    VennAbersClassifier,
    VennAbersMultiClassifier,
    VennAbersRegressor,
)
from abers.river._wrapper import MissingIdCheck

ACCURACY: Any = metrics.Accuracy
WRAPPERS: list[Any] = [
    VennAbersClassifier(scaled()),
    CrossVennAbersClassifier(scaled(), folds=2),
    VennAbersMultiClassifier(scaled()),
    VennAbersRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression()),
]


def late(model: Any, delay: int, *, ids: bool) -> None:  # noqa: ANN401 - a wrapper
    """Predict each event, and learn its label a number of events later."""
    events = phishing(30)
    for i, (x, _) in enumerate(events):
        model.predict_one(x, **({"id": i} if ids else {}))
        if i >= delay:
            past = i - delay
            model.learn_one(*events[past], **({"id": past} if ids else {}))


@pytest.mark.parametrize("delay", [1, 7])
@pytest.mark.parametrize("model", WRAPPERS)
def test_late_labels_without_ids_are_a_warning_once(model: Any, delay: int) -> None:  # noqa: ANN401
    """A wrapper warns once, names the remedy, and points at the call; its clone warns again."""
    for each in (model.clone(), model.clone()):
        with pytest.warns(MissingIdWarning, match=r"pass the same id=…") as caught:
            late(each, delay, ids=False)
        assert len(caught) == 1
        line = Path(__file__).read_text(encoding="utf-8").splitlines()[caught[0].lineno - 1]
        assert "model.learn_one(*events[past]" in line
        late(pickle.loads(pickle.dumps(each)), delay, ids=False)  # noqa: S301 - our own


@pytest.mark.parametrize("model", WRAPPERS)
def test_no_warning_without_a_reason(model: Any) -> None:  # noqa: ANN401 - a wrapper
    """Labels at once, labels with ids and labels without predictions are no reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        late(model.clone(), 0, ids=False)
        late(model.clone(), 7, ids=True)
        trained = model.clone()
        for x, y in phishing(20):
            trained.learn_one(x, y)
            trained.predict_one(x)


def test_no_warning_in_the_evaluations_of_river() -> None:
    """River's progressive validation of a pipeline that ends in a wrapper has no warning."""
    pipeline = preprocessing.StandardScaler() | VennAbersClassifier(
        linear_model.LogisticRegression()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate.progressive_val_score(datasets.Phishing().take(100), pipeline, ACCURACY())


def test_river_evaluates_late_labels_with_a_warning() -> None:
    """River's progressive validation with a delay and without ids has the warning."""
    with pytest.warns(MissingIdWarning):
        evaluate.progressive_val_score(
            datasets.Phishing().take(100),
            VennAbersClassifier(scaled()),
            ACCURACY(),
            delay=9,
        )


def test_labels_of_some_predictions_are_no_reason() -> None:
    """A label for the last of several predictions, or for features never predicted, is in time."""
    check = MissingIdCheck()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for x in ({"a": 1}, {"a": 2}):
            check.predicted(x)
        check.learned({"a": 2})
        for x in ({"a": 1}, {"a": 2}):
            check.predicted(x)
        check.learned({"a": 3})


def test_features_that_cannot_be_compared_are_no_error() -> None:
    """Arrays among the features are not compared."""
    check, value = MissingIdCheck(), np.arange(3)
    for _ in range(2):
        check.predicted({"a": value.copy()})
    check.learned({"a": value.copy()})


def test_the_memory_is_bounded() -> None:
    """However many predictions there are, the check keeps a hundred, and copies keep none."""
    check = MissingIdCheck()
    for i in range(1_000):
        check.predicted({"a": i})
    assert len(check._first) == 100  # noqa: SLF001 - the bound
    assert pickle.loads(pickle.dumps(check))._first == []  # noqa: S301, SLF001 - our own
    with pytest.warns(MissingIdWarning):
        check.learned({"a": 0})
