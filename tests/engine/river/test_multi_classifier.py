"""A river classifier of several classes: `abers.river.multi_classifier`.

The oracle is a learner next to `OneVsRest` or `OneVsOne`, driven by hand.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
from typing import Any

import numpy as np
import pandas as pd
import pytest
from river import datasets, evaluate, linear_model, metrics, multiclass, preprocessing, stream, tree
from tests.engine.river.streams import Events, Scripted, frame, phishing

from abers import (
    LabelError,
    OneVsOne,
    OneVsRest,
    ParameterError,
    ProtectedMultiClass,
    ScoreError,
    TimeError,
    VennAbers,
    WeightError,
)
from abers.river import VennAbersMultiClassifier

KINDS: dict[str, Any] = {"one-vs-rest": OneVsRest, "one-vs-one": OneVsOne}
MAKE: dict[str, Any] = {"protected": lambda: None, **KINDS}
DELAY = 50


def windowed(strategy: str) -> dict[str, Any]:
    """Return the options of a wrapper whose calibrator has a window of two labels."""
    return {"calibrator": KINDS[strategy](window=2)} if strategy in KINDS else {"window": 2}


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
    model = VennAbersMultiClassifier(grown(), calibrator=KINDS[strategy]())
    metric = metrics.CrossEntropy()  # type: ignore[no-untyped-call]  # of river
    steps = evaluate.iter_progressive_val_score(
        with_ids, model, metric, delay=DELAY, step=1, yield_predictions=True
    )
    assert [step["Prediction"] for step in steps] == [expected[i] for i in range(len(events))]


@pytest.mark.parametrize("strategy", KINDS)
def test_intervals_are_those_of_the_calibrator(strategy: str) -> None:
    """Each class has its interval, and the probabilities sum to one."""
    learner, calibrator = grown(), KINDS[strategy](window=40)
    model = VennAbersMultiClassifier(grown(), calibrator=KINDS[strategy](window=40))
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


@pytest.mark.parametrize("strategy", MAKE)
@pytest.mark.parametrize("labels", [(1, 2, 3), ("a", "b", "c"), (np.int64(7), np.int64(8))])
def test_labels_of_any_kind(strategy: str, labels: tuple[Any, ...]) -> None:
    """Labels 1 to K, strings and numpy's numbers are classes like any others."""
    model = VennAbersMultiClassifier(Scripted(), calibrator=MAKE[strategy]())
    for label in labels * 3:
        model.learn_one({"scores": {each: 1.0 / len(labels) for each in labels}}, label)
    assert set(model.predict_proba_one({"scores": {}})) == {*labels}


@pytest.mark.parametrize("strategy", MAKE)
def test_a_class_missing_from_calibration_is_answered(strategy: str) -> None:
    """A class that the learner scores but no label had keeps its place; so does one forgotten."""
    model = VennAbersMultiClassifier(Scripted(), **windowed(strategy))
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
    "options", [{"max_classes": 1}, {"window": 3, "max_age": 1.0}, {"window": 0}, {"window": 2.5}]
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    """Options are refused when the wrapper is made."""
    with pytest.raises(ParameterError):
        VennAbersMultiClassifier(Scripted(), **options)


@pytest.mark.parametrize("strategy", KINDS)
def test_mini_batches_are_scored_whole_before_they_are_learned(strategy: str) -> None:
    """Predicting and learning by mini-batches is what learner and calibrator give by hand."""
    learner, calibrator = batcher(), KINDS[strategy](half_life=50.0)
    model = VennAbersMultiClassifier(batcher(), calibrator=KINDS[strategy](half_life=50.0))
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


# The protected default


def thirds(*weights: float) -> dict[str, Any]:
    """Return features for which `Scripted` answers so."""
    return {"scores": dict(zip("abc", weights, strict=True))}


def test_by_default_it_is_the_protected_calibrator() -> None:
    """With ids and all classes known, it is a `ProtectedMultiClass` by hand, bit for bit."""
    rng = random.Random(1)  # noqa: S311 - no secret
    model, calibrator = VennAbersMultiClassifier(Scripted()), ProtectedMultiClass([*"abc"])
    for i in range(150):
        x = thirds(*(4 * one for one in rng.choice([(0.5, 0.25, 0.25), (0.25, 0.25, 0.5)])))
        shares = {label: score / 4 for label, score in x["scores"].items()}  # divided by the sum
        expected = calibrator.predict_one(shares, number=i)
        assert model.predict_proba_one(x, id=i) == expected.p
        intervals = {label: (expected.low[label], expected.high[label]) for label in "abc"}
        assert model.predict_proba_one(x, with_interval=True, id=i) == intervals
        if i % 3:
            model.learn_one(x, label := rng.choice("abc"), id=i)
            calibrator.learn_one(shares, label, number=i)
    assert model.calibrator == calibrator
    assert model.calibrator.awaiting == 50


def test_the_loss_is_at_most_the_price_above_that_of_the_learner() -> None:
    """Delays, lost and dropped labels, and a class that comes late: at most the price in nats."""
    rng = random.Random(7)  # noqa: S311 - no secret
    model = VennAbersMultiClassifier(Scripted(), max_pending=30)
    for label in "ab":
        model.learn_one({"scores": {"a": 0.5, "b": 0.5}}, label)
    waiting: dict[int, tuple[dict[str, float], dict[Any, float]]] = {}
    raw = ours = 0.0
    for i in range(900):
        known = "abc" if i >= 400 else "ab"
        if i == 400:  # the class comes with a label, and nothing that waits is covered any more
            model.learn_one({"scores": {"a": 0.5, "b": 0.5}}, "c")
            assert model.calibrator.awaiting == 0
            waiting.clear()
        x = dict(zip(known, rng.choice([(0.9, 0.05, 0.05), (0.05, 0.9, 0.05)]), strict=False))
        x = {label: score / sum(x.values()) for label, score in x.items()}
        waiting[i] = x, model.predict_proba_one({"scores": x}, id=i)
        waiting.pop(i - 30, None)  # dropped
        if i % 40 == 39:  # labels of those that wait contradict their mean forecast
            label = min(known, key=lambda one: sum(p[one] for _, p in waiting.values()))
            for id_, (scores, served) in waiting.items():
                if rng.random() < 0.1:
                    model.expire_one(id_)
                    continue
                model.learn_one({"scores": {}}, label, id=id_)
                clipped = {one: min(max(p, 1e-6), 1 - 1e-6) for one, p in scores.items()}
                raw -= math.log(clipped[label] / sum(clipped.values()))
                ours -= math.log(served[label])
            waiting.clear()
    losses = model.calibrator.expert_losses()
    alone = 2 * math.log(2.0) - math.log(1e-6 / (1.0 + 1e-6))  # labels without ids
    assert losses["raw"] == pytest.approx(raw + alone)
    assert model.calibrator.lanes <= 31
    assert ours - raw <= model.calibrator.price


def test_before_a_choice_there_is_no_calibrator() -> None:
    """One class is certain, and its labels are not learned; the second makes the calibrator."""
    model = VennAbersMultiClassifier(Scripted())
    model.learn_one({"scores": {}}, "a")
    assert model.predict_proba_one({"scores": {}}, id=1) == {"a": 1.0}
    assert model.predict_proba_one({"scores": {}}, with_interval=True) == {"a": (0.0, 1.0)}
    assert model.calibrator is None
    model.learn_one({"scores": {"a": 1.0}}, "b", id=1)
    made: Any = model.calibrator
    assert (made.classes, len(made)) == (("a", "b"), 1)
    model.expire_one(1)
    assert model.unmatched == 0


def test_a_prediction_without_an_id_makes_no_class_known() -> None:
    """A class that only a prediction without an id had is in the answer, and forgotten again."""
    model = VennAbersMultiClassifier(Scripted())
    for label in "ab":
        model.learn_one(thirds(0.5, 0.5, 0.0), label)
    before = pickle.dumps(model)
    found = model.predict_proba_one({"scores": {"a": 0.5, "b": 0.25, "d": 0.25}})
    assert set(found) == {*"abcd"}
    assert math.fsum(found.values()) == pytest.approx(1.0)
    assert pickle.dumps(model) == before
    model.predict_proba_one({"scores": {"d": 1.0}}, id=1)
    assert model.calibrator.classes == ("a", "b", "c", "d")


def test_what_is_refused_makes_no_class_known() -> None:
    """A bad weight or time, and a class too many, leave the classes as they were."""
    model = VennAbersMultiClassifier(Scripted(), max_classes=4)
    for known in ([], ["a"], ["b", "c"]):
        for label in known:
            model.learn_one({"scores": {}}, label)
        before = pickle.dumps(model)
        with pytest.raises(WeightError):
            model.learn_one({"scores": {"d": 1.0}}, "d", w=0.0)
        with pytest.raises(TimeError):
            model.learn_one({"scores": {}}, "d", time=3.0)
        with pytest.raises(LabelError, match="max_classes=4"):
            model.learn_one({"scores": dict.fromkeys("abcde", 0.2)}, "a")
        assert pickle.dumps(model) == before


def test_copies_and_clones() -> None:
    """A copy goes on with what waits, bit for bit; a clone has learned nothing."""
    model = VennAbersMultiClassifier(grown(), window=30)
    events = segments(120)
    for i, (x, _) in enumerate(events):
        model.predict_proba_one(x, id=i)
        if i >= 10:
            model.learn_one(*events[i - 10], id=i - 10)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - ours
        assert other.calibrator == model.calibrator
        other.learn_one(*events[-1], id=len(events) - 1)
        assert other.calibrator.awaiting == model.calibrator.awaiting - 1
    clone = model.clone()
    assert (clone.window, clone.calibrator) == (30, None)
    assert VennAbersMultiClassifier(grown(), calibrator=OneVsOne()).clone().calibrator == OneVsOne()


@pytest.mark.parametrize("given", [VennAbers(), OneVsRest, "one-vs-rest", 3])
def test_what_is_not_a_calibrator_of_several_classes(given: Any) -> None:  # noqa: ANN401 - anything
    """A calibrator of another task, a class and a name are refused."""
    with pytest.raises(ParameterError, match="must be a calibrator of several classes"):
        VennAbersMultiClassifier(Scripted(), calibrator=given)
