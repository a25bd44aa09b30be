"""Mini-batches without rows, which no model of river or scikit-learn may see."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pytest
from river import compat, linear_model, naive_bayes, preprocessing
from sklearn.linear_model import SGDClassifier
from tests.engine.river.streams import frame, phishing

from abers import ParameterError
from abers.river import (
    CrossVennAbersClassifier,
    VennAbersClassifier,
    VennAbersMultiClassifier,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": linear_model.LogisticRegression,
    "scaled": lambda: preprocessing.StandardScaler() | linear_model.LogisticRegression(),
    "scaled bayes": lambda: preprocessing.StandardScaler() | naive_bayes.GaussianNB(),  # type: ignore[no-untyped-call]
}
WRAPPERS = [VennAbersClassifier, CrossVennAbersClassifier, VennAbersMultiClassifier]

on_each_wrapper = pytest.mark.parametrize("wrapper", WRAPPERS)
on_each_model = pytest.mark.parametrize("name", MODELS)


@on_each_model
@on_each_wrapper
@pytest.mark.parametrize("rows", [0, 40])
def test_nobody_learns_from_nothing(wrapper: Callable[[Any], Any], name: str, rows: int) -> None:
    """A mini-batch without rows changes nothing, before the first label and later."""
    X, y = frame(phishing(80))  # noqa: N806 - river's name
    model = wrapper(MODELS[name]())
    if rows:
        model.learn_many(X[:rows], y[:rows])
    before = pickle.dumps(model)
    model.learn_many(X[:0], y[:0])
    model.learn_many(X[:0], y[:0], w=y[:0].astype(float))
    assert pickle.dumps(model) == before
    model.learn_many(X[rows:], y[rows:])
    expected = pickle.loads(before)  # noqa: S301 - its own
    expected.learn_many(X[rows:], y[rows:])
    x = X.iloc[0].to_dict()
    assert model.predict_proba_one(x) == expected.predict_proba_one(x)


@on_each_model
@on_each_wrapper
def test_no_rows_no_predictions(wrapper: Callable[[Any], Any], name: str) -> None:
    """Without rows there are no predictions, in a frame of the same kind, and no error."""
    X, y = frame(phishing(40))  # noqa: N806 - river's name
    model = wrapper(MODELS[name]())
    model.learn_many(X, y)
    assert model.predict_proba_many(X[:0]).shape[0] == 0
    assert model.predict_many(X[:0]).tolist() == []
    arrow = pa.table(X[:0].to_dict("list"))
    assert model.predict_proba_many(arrow).num_rows == 0
    assert model.predict_many(arrow).to_pylist() == []


def test_a_model_of_scikit_learn_is_not_asked() -> None:
    """A model of scikit-learn, which refuses arrays without rows, is not called with them."""
    X, y = frame(phishing(40))  # noqa: N806 - river's name
    names = y.map({False: "no", True: "yes"})
    learner = compat.SKL2RiverClassifier(SGDClassifier(loss="log_loss"), classes=["no", "yes"])
    model = VennAbersMultiClassifier(learner)
    model.learn_many(X, names)
    model.learn_many(X[:0], names[:0])
    assert model.predict_many(X[:0]).tolist() == []
    assert set(model.predict_many(X)) <= {"no", "yes"}


@on_each_wrapper
@pytest.mark.parametrize(("labels", "rows"), [(0, 3), (3, 0), (2, 3)])
def test_each_row_has_a_label(wrapper: Callable[[Any], Any], labels: int, rows: int) -> None:
    """Another number of labels than of rows is refused, and nothing is learned."""
    X, y = frame(phishing(40))  # noqa: N806 - river's name
    model = wrapper(MODELS["scaled"]())
    model.learn_many(X, y)
    before = pickle.dumps(model)
    with pytest.raises(ParameterError, match=f"y has {labels} rows, X has {rows}"):
        model.learn_many(X[:rows], pd.Series(y[:labels]))
    assert pickle.dumps(model) == before
