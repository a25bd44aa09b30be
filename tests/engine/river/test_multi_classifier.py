"""A river classifier of several classes: `abers.river.multi_classifier`.

The oracle is a learner beside `OneVsRest` or `OneVsOne`, driven by hand.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import datasets, evaluate, linear_model, metrics, multiclass, preprocessing, stream, tree
from tests.engine.river.streams import Events, Scripted, frame, phishing

from abers import LabelError, OneVsOne, OneVsRest, ParameterError, ScoreError, WeightError
from abers.river import VennAbersMultiClassifier

KINDS: dict[str, Any] = {"one-vs-rest": OneVsRest, "one-vs-one": OneVsOne}
DELAY = 50


def segments(n: int) -> Events:
    """Take the first events of a stream of seven classes."""
    return [*datasets.ImageSegments().take(n)]  # type: ignore[no-untyped-call]  # of river


def grown() -> Any:  # noqa: ANN401 - river's trees are not typed
    """Make a learner that knows several classes."""
    return tree.HoeffdingTreeClassifier(grace_period=20)


def batcher() -> Any:  # noqa: ANN401 - a pipeline
    """Make a learner of several classes that takes mini-batches."""
    several = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    return preprocessing.StandardScaler() | several


@pytest.mark.parametrize("strategy", KINDS)
def test_delayed_labels_are_never_predicted_again(strategy: str) -> None:
    """With ids and a delay of 50 exactly the predicted scores are learned: bit for bit by hand."""
    events = segments(250)
    learner, calibrator = grown(), KINDS[strategy]()
    waiting, expected = {}, {}
    for i, x, y in stream.simulate_qa(events, None, DELAY):
        if y is None:
            waiting[i] = learner.predict_proba_one(x)
            expected[i] = calibrator.predict_one(waiting[i]).p
        else:
            calibrator.learn_one(waiting.pop(i), y)
            learner.learn_one(x, y)
    with_ids: Any = ((x, y, {"id": i}) for i, (x, y) in enumerate(events))
    model = VennAbersMultiClassifier(grown(), strategy)
    metric = metrics.CrossEntropy()  # type: ignore[no-untyped-call]  # of river
    steps = evaluate.iter_progressive_val_score(
        with_ids, model, metric, delay=DELAY, step=1, yield_predictions=True
    )
    assert [step["Prediction"] for step in steps] == [expected[i] for i in range(len(events))]


@pytest.mark.parametrize("strategy", KINDS)
def test_intervals_are_those_of_the_calibrator(strategy: str) -> None:
    """Each class has its interval, and the probabilities sum to one."""
    learner, calibrator = grown(), KINDS[strategy](window=40)
    model = VennAbersMultiClassifier(grown(), strategy, window=40)
    for x, y in segments(100):
        _, low, high = calibrator.predict_one(scores := learner.predict_proba_one(x))
        expected = {label: (low[label], high[label]) for label in low}
        assert model.predict_proba_one(x, with_interval=True) == expected
        probabilities = model.predict_proba_one(x)
        assert not probabilities or math.isclose(sum(probabilities.values()), 1.0)
        calibrator.learn_one(scores, y)
        learner.learn_one(x, y)
        model.learn_one(x, y)


def test_before_learning_there_are_no_classes() -> None:
    """Before the first label nothing is predicted, as river has it."""
    model = VennAbersMultiClassifier(grown())
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_proba_one({"a": 1.0}, with_interval=True) == {}
    assert model.predict_one({"a": 1.0}) is None


@pytest.mark.parametrize("strategy", KINDS)
@pytest.mark.parametrize("labels", [(1, 2, 3), ("a", "b", "c"), (np.int64(7), np.int64(8))])
def test_labels_of_any_kind(strategy: str, labels: tuple[Any, ...]) -> None:
    """Labels 1 to K, strings and numpy's numbers are classes like any others."""
    model = VennAbersMultiClassifier(Scripted(), strategy)
    for label in labels * 3:
        model.learn_one({"scores": {each: 1.0 / len(labels) for each in labels}}, label)
    assert set(model.predict_proba_one({"scores": {}})) == {*labels}


@pytest.mark.parametrize("strategy", KINDS)
def test_a_class_missing_from_calibration_is_answered(strategy: str) -> None:
    """A class that the learner scores but no label had keeps its place; so does one forgotten."""
    model = VennAbersMultiClassifier(Scripted(), strategy, window=2)
    for label in ("a", "b", "b"):
        model.learn_one({"scores": {"a": 0.5, "b": 0.3, "c": 0.2}}, label)
    found = model.predict_proba_one({"scores": {"d": 0.4}}, with_interval=True)
    assert set(found) == {"a", "b", "c", "d"}
    assert all(0.0 <= low <= high <= 1.0 for low, high in found.values())


@pytest.mark.parametrize("label", [None, 0.5, ("a", "b"), math.nan])
def test_a_label_that_is_no_class(label: object) -> None:
    """A label is a string, a whole number or a truth value; others leave all as it was."""
    model = VennAbersMultiClassifier(Scripted())
    model.predict_proba_one({"scores": {"a": 1.0}}, id=1)
    before = pickle.dumps(model)
    with pytest.raises(LabelError, match="not a string, an integer"):
        model.learn_one({"scores": {"a": 1.0}}, label, id=1)
    assert pickle.dumps(model) == before


def test_a_score_of_nan_gets_no_prediction() -> None:
    """A score that is no finite number is refused, by class, and nothing is learned."""
    model = VennAbersMultiClassifier(Scripted())
    before = pickle.dumps(model)
    for call in (model.predict_proba_one, model.predict_one):
        with pytest.raises(ScoreError, match="class 'a'"):
            call({"scores": {"a": math.nan}}, id=1)
    with pytest.raises(ScoreError, match="class 'a'"):
        model.learn_one({"scores": {"a": math.nan}}, "a")
    assert pickle.dumps(model) == before


def test_more_classes_than_asked_for() -> None:
    """One class more than `max_classes` is refused, alone and in a mini-batch, before learning."""
    model = VennAbersMultiClassifier(Scripted(), max_classes=2)
    for label in ("a", "b"):
        model.learn_one({"scores": {"a": 0.5, "b": 0.5}}, label)
    before = pickle.dumps(model)
    with pytest.raises(LabelError, match="max_classes=2"):
        model.learn_one({"scores": {}}, "c")
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    "options", [{"strategy": "pairs"}, {"max_classes": 1}, {"window": 3, "max_age": 1.0}]
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    """Options are refused when the wrapper is made."""
    with pytest.raises(ParameterError):
        VennAbersMultiClassifier(Scripted(), **options)


@pytest.mark.parametrize("strategy", KINDS)
def test_mini_batches_are_scored_whole_before_they_are_learned(strategy: str) -> None:
    """Predicting and learning by mini-batches is what learner and calibrator give by hand."""
    learner, calibrator = batcher(), KINDS[strategy](half_life=50.0)
    model = VennAbersMultiClassifier(batcher(), strategy, half_life=50.0)
    events = segments(120)
    for start in range(0, len(events), 20):
        X, y = frame(events[start : start + 20])  # noqa: N806 - river's name
        times, w = np.arange(start, start + 20.0), np.linspace(0.5, 2.0, 20)
        found = model.predict_proba_many(X, time=times)
        rows = learner.predict_proba_many(X).to_dict("records") or [{}] * 20
        for i, (row, time) in enumerate(zip(rows, times, strict=True)):
            expected = calibrator.predict_one(row, time).p
            assert {label: found.iloc[i][label] for label in found.columns} == expected
        best = [None] * 20 if found.empty else found.idxmax(axis="columns").tolist()
        assert model.predict_many(X, time=times).tolist() == best
        for row, label, weight, time in zip(rows, y, w, times, strict=True):
            calibrator.learn_one(row, label, weight=weight, time=time)
        given = pd.Series(w)
        learner.learn_many(X, y, w=given)
        model.learn_many(X, y, w=given, time=times)


def test_a_bad_row_teaches_nobody() -> None:
    """A mini-batch with a bad label, weight or class too many is refused whole."""
    model = VennAbersMultiClassifier(batcher(), max_classes=7)
    X, y = frame(segments(70))  # noqa: N806 - river's name
    model.learn_many(X, y)
    before = pickle.dumps(model)
    for label in (None, "one more"):
        with pytest.raises(LabelError):
            model.learn_many(X, y.astype(object).where(y.index != 33, label))
    with pytest.raises(WeightError):
        model.learn_many(X, y, w=[1.0] * 69 + [0.0])
    assert pickle.dumps(model) == before


def test_two_classes_are_classes_too() -> None:
    """A stream of truth values works as one of two classes."""
    model = VennAbersMultiClassifier(grown())
    for x, y in phishing(50):
        model.learn_one(x, y)
    assert set(model.predict_proba_one(phishing(1)[0][0])) == {False, True}
