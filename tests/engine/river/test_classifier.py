"""A binary river classifier with a calibrator: `abers.river.classifier` and its base classes.

The oracle is a learner and a calibrator side by side, driven by hand.
"""

from __future__ import annotations

import copy
import math
import pickle
import random
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from river import evaluate, linear_model, metrics, preprocessing, stream, tree
from tests.engine.river.streams import Events, Noted, Scripted, Weightless, frame, phishing, scaled

from abers import (
    CrossVennAbers,
    LabelError,
    MissingIdWarning,
    OneVsRest,
    ParameterError,
    ProtectedVennAbers,
    ScoreError,
    TimeError,
    VennAbers,
    WeightError,
    registry,
)
from abers.river import VennAbersClassifier

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers.base import Calibrator

    Make = Callable[[], Calibrator[float, int, Any, Any]]

DELAY = 50
KINDS = [
    registry.find(name, "binary")
    for name in registry.names("binary")
    if registry.capabilities(name, "binary").score != "folds"
]


def scripted(p: float) -> dict[str, Any]:
    """Make features for which `Scripted` answers p."""
    return {"scores": {False: 1.0 - p, True: p}}


def served(prediction: Any) -> Any:  # noqa: ANN401 - of any calibrator
    """Return the probability of a prediction, protected or merged."""
    if hasattr(prediction, "probability"):
        return prediction.probability
    return getattr(prediction, "merged", prediction)


def by_hand(events: Events, delay: int, make: Make = ProtectedVennAbers) -> list[float]:
    """Score when predicted, learn that score when the label comes: the definition."""
    learner, calibrator = scaled(), make()
    waiting: dict[int, float] = {}
    found = {}
    for i, x, y in stream.simulate_qa(events, None, delay):
        if y is None:
            waiting[i] = learner.predict_proba_one(x)[True]
            found[i] = served(calibrator.predict_one(waiting[i], number=i))
        else:
            calibrator.learn_one(waiting.pop(i), y, number=i)
            learner.learn_one(x, y)
    return [found[i] for i in range(len(events))]


def progressive(model: Any, events: Events, delay: int) -> list[float]:  # noqa: ANN401 - a pipeline
    """Let river run the stream, with ids, and return what was predicted."""
    with_ids: Any = ((x, y, {"id": f"order-{i}"}) for i, (x, y) in enumerate(events))
    metric = metrics.LogLoss()  # type: ignore[no-untyped-call]  # of river
    steps = evaluate.iter_progressive_val_score(
        with_ids, model, metric, delay=delay, step=1, yield_predictions=True
    )
    return [step["Prediction"][True] for step in steps]


# The protocol of ids


def test_delayed_labels_are_never_predicted_again() -> None:
    """With ids and a delay of 50 exactly the predicted scores are learned: bit for bit by hand."""
    events = phishing(400)
    expected = by_hand(events, DELAY)
    assert progressive(VennAbersClassifier(scaled()), events, DELAY) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_any_binary_calibrator_can_be_given(kind: Make) -> None:
    """A calibrator that is given predicts and learns in place, and its ends are the interval."""
    events, calibrator = phishing(200), kind()
    model = VennAbersClassifier(scaled(), calibrator=calibrator)
    assert progressive(model, events, DELAY) == by_hand(events, DELAY, kind)
    assert model.calibrator is calibrator
    x = events[0][0]
    answer = calibrator.predict_one(model.classifier.predict_proba_one(x)[True])
    ends = answer[:2] if isinstance(answer, tuple) else (answer, answer)
    assert model.predict_proba_one(x, with_interval=True)[True] == ends


def test_a_clone_has_learned_nothing() -> None:
    """A clone has the options and the calibrator as they were given."""
    model = VennAbersClassifier(scaled(), calibrator=VennAbers(window=20))
    for x, y in phishing(30):
        model.learn_one(x, y)
    clone = model.clone()
    assert len(model.calibrator) == 20
    assert clone.calibrator == VennAbers(window=20)
    copied = model.clone(include_attributes=True)
    assert copied.calibrator == model.calibrator
    assert copied.calibrator is not model.calibrator
    assert VennAbersClassifier(scaled(), window=9).clone().calibrator == ProtectedVennAbers(9)


# The promise


def test_the_loss_is_at_most_the_price_above_that_of_the_learner() -> None:
    """Against an adversary, with delays, lost and dropped labels: at most the price in nats."""
    rng = random.Random(7)  # noqa: S311 - no secret
    model = VennAbersClassifier(Scripted(), max_pending=30)
    waiting: dict[int, tuple[float, float]] = {}
    raw = protected = 0.0
    for i in range(1_500):
        p = rng.choice([0.1, 0.9])
        waiting[i] = p, model.predict_proba_one(scripted(p), id=i)[True]
        model.predict_proba_one(scripted(1.0 - p), with_interval=True, id=i)
        waiting.pop(i - 30, None)  # dropped
        if i % 40 == 39:  # labels of those that wait contradict their mean forecast
            label = sum(one for _, one in waiting.values()) < len(waiting) / 2
            for id_, (score, served_then) in waiting.items():
                if rng.random() < 0.1:
                    model.expire_one(id_)
                    continue
                model.learn_one(scripted(0.5), label, id=id_)
                raw -= math.log(score if label else 1.0 - score)
                protected -= math.log(served_then if label else 1.0 - served_then)
            waiting.clear()
    losses = model.calibrator.expert_losses()
    assert losses["raw"] == pytest.approx(raw)
    assert losses["protected"] == pytest.approx(protected)
    assert model.calibrator.lanes <= 31
    assert protected - raw <= model.calibrator.price


def test_an_id_that_expires_or_is_dropped_awaits_no_label() -> None:
    """The calibrator stops waiting for ids that expire or are dropped; unknown ones are no one."""
    model = VennAbersClassifier(Scripted(), max_pending=3)
    for i in range(5):
        model.predict_proba_one(scripted(0.3), id=i)
    assert (model.calibrator.awaiting, model.dropped) == (3, 2)
    model.expire_one(4)
    for unknown in (4, 0, "x"):
        model.expire_one(unknown)
    assert model.calibrator.awaiting == 2
    model.learn_one(scripted(0.3), 1, id=4)
    assert (model.unmatched, len(model.calibrator)) == (1, 0)
    other = VennAbersClassifier(Scripted(), calibrator=VennAbers())
    other.predict_proba_one(scripted(0.3), id=1)
    other.expire_one(1)
    other.learn_one(scripted(0.3), 1, id=1)
    assert other.unmatched == 1


def test_ids_work_inside_a_pipeline() -> None:
    """As the last step of a pipeline too, whose scaler moves on meanwhile."""
    events = phishing(400)
    model = preprocessing.StandardScaler() | VennAbersClassifier(linear_model.LogisticRegression())
    assert progressive(model, events, DELAY) == by_hand(events, DELAY)


def test_without_ids_a_delay_is_another_thing() -> None:
    """Without an id the features are scored anew when the label comes, which gives other scores."""
    events = phishing(400)
    model, predicted = VennAbersClassifier(scaled()), {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i, x, y in stream.simulate_qa(events, None, DELAY):
            if y is None:
                predicted[i] = model.predict_proba_one(x)[True]
            else:
                model.learn_one(x, y)
    assert [predicted[i] for i in range(len(events))] != by_hand(events, DELAY)
    assert [each.category for each in caught] == [MissingIdWarning]


def test_without_a_delay_ids_change_nothing() -> None:
    """Where labels come at once, the score is the same with an id and without."""
    events, model = phishing(300), VennAbersClassifier(scaled())
    for (x, y), expected in zip(events, by_hand(events, 0), strict=True):
        assert model.predict_proba_one(x)[True] == expected
        model.learn_one(x, y)


def test_prediction_without_an_id_has_no_side_effect() -> None:
    """Predicting in every way leaves the model as it was, to the byte."""
    model = VennAbersClassifier(scaled())
    events = phishing(30)
    for x, y in events:
        model.learn_one(x, y)
    before = pickle.dumps(model)
    for x, _ in events:
        model.predict_one(x)
        model.predict_proba_one(x, with_interval=True)
    model.predict_proba_many(frame(events)[0])
    assert pickle.dumps(model) == before


def test_the_first_prediction_of_an_id_stands() -> None:
    """An id that waits is not scored again: it answers and is learned by its first score."""
    model = VennAbersClassifier(Scripted())
    model.learn_one(scripted(0.5), 1)
    assert model.predict_proba_one(scripted(0.9), with_interval=True, id=1)[True] == (0.5, 1.0)
    assert model.predict_proba_one(scripted(0.1), with_interval=True, id=1)[True] == (0.5, 1.0)
    model.learn_one(scripted(0.1), 0, id=1)
    expected = VennAbers()
    expected.learn_many([0.5, 0.9], [1, 0])
    for p in (0.05, 0.1, 0.5, 0.7, 0.9, 0.95):
        found = model.predict_proba_one(scripted(p), with_interval=True)[True]
        assert found == expected.predict_one(p)


def test_a_label_takes_its_score_away() -> None:
    """A second label of one id finds nothing, teaches the learner alone, and is counted."""
    learner = Scripted()
    model = VennAbersClassifier(learner)
    model.predict_proba_one(scripted(0.3), id="a")
    for _ in range(2):
        model.learn_one(scripted(0.3), 1, id="a")
    assert (model.unmatched, len(learner.learned)) == (1, 2)
    once = VennAbers()
    once.learn_one(0.3, 1)
    found = model.predict_proba_one(scripted(0.3), with_interval=True)[True]
    assert found == once.predict_one(0.3)


def test_the_oldest_pending_is_dropped_and_counted() -> None:
    """With one id more than `max_pending` the oldest is forgotten, and its label is unmatched."""
    model = VennAbersClassifier(Scripted(), max_pending=2)
    for i in range(3):
        model.predict_proba_one(scripted(i / 4), id=i)
    assert model.dropped == 1
    for i in range(3):
        model.learn_one(scripted(i / 4), 1, id=i)
    assert model.unmatched == 1
    assert model.predict_proba_one(scripted(0.25), with_interval=True)[True] == (0.5, 1.0)


def test_what_waits_survives_a_pickle() -> None:
    """A pickled model goes on with the scores that wait, bit for bit."""
    events = phishing(120)
    model = VennAbersClassifier(scaled())
    for i, (x, _) in enumerate(events[:60]):
        model.predict_proba_one(x, id=i)
    for restored in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):  # noqa: S301 - ours
        other = copy.deepcopy(model)
        for i, (x, y) in enumerate(events[:60]):
            other.learn_one(x, y, id=i)
            restored.learn_one(x, y, id=i)
        for x, _ in events[60:]:
            assert restored.predict_proba_one(x) == other.predict_proba_one(x)


# What is answered


def test_before_the_first_label_the_probability_is_that_of_the_learner() -> None:
    """Without labels the answer is near that of the learner, never 1/2 for everything."""
    model = VennAbersClassifier(Scripted())
    for i, p in enumerate([0.1, 0.5, 0.8]):
        found = model.predict_proba_one(scripted(p), id=i)
        assert found == pytest.approx({False: 1.0 - p, True: p}, abs=0.01)


def test_before_learning_both_labels_are_there() -> None:
    """A model that has learned nothing knows both labels, and nothing about them."""
    for learner in (linear_model.LogisticRegression(), tree.HoeffdingTreeClassifier()):
        model = VennAbersClassifier(learner)
        assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
        vacuous = {False: (0.0, 1.0), True: (0.0, 1.0)}
        assert model.predict_proba_one({"a": 1.0}, with_interval=True) == vacuous


@pytest.mark.parametrize(("answer", "score"), [({}, 0.5), ({False: 1.0}, 0.0), ({True: 1.0}, 1.0)])
def test_the_score_of_a_learner_that_knows_little(answer: dict[bool, float], score: float) -> None:
    """A learner without labels scores 1/2, and one that never saw True 0."""
    model = VennAbersClassifier(Scripted())
    model.learn_one({"scores": answer}, 1)
    expected = VennAbers()
    expected.learn_one(score, 1)
    for p in (0.0, 0.25, 0.5, 0.75, 1.0):
        found = model.predict_proba_one(scripted(p), with_interval=True)[True]
        assert found == expected.predict_one(p)


def test_the_interval_of_false_is_the_other_side() -> None:
    """The interval of False is that of True seen from 1, and the merge lies between."""
    model = VennAbersClassifier(scaled(), calibrator=VennAbers())
    for x, y in phishing(100):
        model.learn_one(x, y)
        low, high = model.predict_proba_one(x, with_interval=True)[True]
        assert model.predict_proba_one(x, with_interval=True)[False] == (1.0 - high, 1.0 - low)
        assert low <= model.predict_proba_one(x)[True] <= high


def test_a_window_forgets() -> None:
    """With a window only the last labels count."""
    model = VennAbersClassifier(Scripted(), window=3)
    for label in [False] * 5 + [True] * 3:
        model.learn_one(scripted(0.5), label)
    assert model.predict_proba_one(scripted(0.5), with_interval=True)[True] == (0.75, 1.0)


def test_times_are_those_of_the_observation() -> None:
    """With `max_age` the time comes with the prediction and waits with the score."""
    model, expected = VennAbersClassifier(Scripted(), max_age=10.0), VennAbers(max_age=10.0)
    for i in range(20):
        model.predict_proba_one(scripted(i / 20), id=i, time=float(i))
    for i in range(20):
        model.learn_one(scripted(0.0), i % 3 == 0, id=i)
        expected.learn_one(i / 20, int(i % 3 == 0), time=float(i))
    for time in (15.0, 19.0, 25.0):
        found = model.predict_proba_one(scripted(0.7), with_interval=True, time=time)[True]
        assert found == expected.predict_one(0.7, time)
    with pytest.raises(TimeError):
        model.learn_one(scripted(0.5), 1)


# Keywords and weights


def test_weights_go_to_both() -> None:
    """A weight is learned by the learner and by the calibrator."""
    learner = Noted()
    model = VennAbersClassifier(learner)
    model.learn_one({}, 1, w=3.0)
    assert learner.notes == [("predict", None), ("learn", 3.0)]
    assert model.predict_proba_one({}, with_interval=True)[True] == (0.75, 1.0)


def test_keywords_reach_only_who_takes_them() -> None:
    """Keywords go to the methods of the learner that name them, and `id` to none."""
    learner = Noted()
    model = VennAbersClassifier(learner)
    model.predict_proba_one({}, id=1, tone="high", w=5.0)
    model.learn_one({}, 0, id=1, tone="low", w=2.0)
    assert learner.notes == [("predict", "high"), ("learn", 2.0)]
    bare = VennAbersClassifier(Weightless())
    bare.learn_one({}, 1, w=3.0)
    assert bare.predict_proba_one({}, with_interval=True)[True] == (0.75, 1.0)


# What is refused


@pytest.mark.parametrize("label", ["spam", 2, -1, None, 0.5, math.nan, [True]])
def test_a_third_label_raises(label: object) -> None:
    """Labels other than True and False, or 1 and 0, are refused; nobody learns them."""
    learner = Scripted()
    model = VennAbersClassifier(learner)
    model.predict_proba_one(scripted(0.3), id=1)
    before = pickle.dumps(model)
    for id_ in (None, 1):
        with pytest.raises(LabelError, match="VennAbersMultiClassifier"):
            model.learn_one(scripted(0.3), label, id=id_)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("label", [True, 1, 1.0, np.True_, np.int64(1)])
def test_what_equals_a_label_is_one(label: object) -> None:
    """Numbers and numpy's truth values are labels, and the learner gets a plain one."""
    learner = Scripted()
    VennAbersClassifier(learner).learn_one(scripted(0.3), label)
    assert learner.learned[0][1] is True


@pytest.mark.parametrize(
    ("score", "message"),
    [(math.nan, "finite"), (math.inf, "finite"), (1.2, "not a probability"), (-1e-9, "not a prob")],
)
def test_a_score_of_nan_gets_no_prediction(score: float, message: str) -> None:
    """A score that is no probability is refused, in prediction and learning, and leaves no id."""
    learner = Scripted()
    model = VennAbersClassifier(learner)
    before = pickle.dumps(model)
    with pytest.raises(ScoreError, match=message):
        model.predict_proba_one(scripted(score), id=1)
    with pytest.raises(ScoreError, match=message):
        model.learn_one(scripted(score), 1)
    with pytest.raises(ScoreError, match=message):
        model.predict_proba_one(scripted(score), with_interval=True)
    assert pickle.dumps(model) == before


def test_a_bad_weight_or_time_changes_nothing() -> None:
    """A refused weight or time leaves learner, calibrator, and what waits, as they were."""
    model = VennAbersClassifier(Scripted())
    model.predict_proba_one(scripted(0.5), id=1)
    before = pickle.dumps(model)
    for id_ in (None, 1):
        with pytest.raises(WeightError):
            model.learn_one(scripted(0.5), 1, id=id_, w=-1.0)
        with pytest.raises(TimeError):
            model.learn_one(scripted(0.5), 1, id=id_, time=1.0)
    with pytest.raises(TimeError):
        model.predict_proba_one(scripted(0.5), id=2, time=1.0)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    "options", [{"window": 0}, {"window": 5, "half_life": 1.0}, {"max_pending": 0}]
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    """Options are refused when the wrapper is made."""
    with pytest.raises(ParameterError):
        VennAbersClassifier(Scripted(), **options)


@pytest.mark.parametrize("given", [OneVsRest(), CrossVennAbers(), VennAbers, "ivap", 3])
def test_what_is_not_a_calibrator_of_one_score(given: Any) -> None:  # noqa: ANN401 - anything
    """A calibrator of another task, a class and a name are refused."""
    with pytest.raises(ParameterError, match="must be a calibrator of one score and two labels"):
        VennAbersClassifier(Scripted(), calibrator=given)


def test_a_calibrator_with_options_beside_it_or_labels_to_come() -> None:
    """A rule of forgetting next to a calibrator is refused, and one that awaits other labels."""
    with pytest.raises(ParameterError, match="its own rule of forgetting"):
        VennAbersClassifier(Scripted(), window=5, calibrator=VennAbers())
    calibrator = ProtectedVennAbers()
    calibrator.predict_one(0.5, number=0)
    with pytest.raises(ParameterError, match="awaits labels"):
        VennAbersClassifier(Scripted(), calibrator=calibrator)


# Mini-batches


def batches_by_hand(events: Events, size: int, make: Make) -> list[float]:
    """Score a batch whole, then learn it whole."""
    learner, calibrator = scaled(), make()
    found: list[float] = []
    for start in range(0, len(events), size):
        X, y = frame(events[start : start + size])  # noqa: N806 - river's name
        scores = learner.predict_proba_many(X)[True].tolist()
        found += [served(calibrator.predict_one(score)) for score in scores]
        for score, label in zip(scores, y, strict=True):
            calibrator.learn_one(score, label)
        learner.learn_many(X, y)
    return found


@pytest.mark.parametrize("make", [ProtectedVennAbers, VennAbers])
@pytest.mark.parametrize("size", [1, 7, 50])
def test_mini_batches_are_scored_whole_before_they_are_learned(make: Make, size: int) -> None:
    """Predicting and learning by mini-batches is what a learner and a calibrator give by hand."""
    events, model, found = phishing(200), VennAbersClassifier(scaled(), calibrator=make()), []
    for start in range(0, len(events), size):
        X, y = frame(events[start : start + size])  # noqa: N806 - river's name
        X.index = pd.RangeIndex(1_000, 1_000 + len(X))
        answer = model.predict_proba_many(X)
        assert list(answer.columns) == [False, True]
        assert (answer.index == X.index).all()
        assert (model.predict_many(X) == (answer[True] > answer[False])).all()
        found += answer[True].tolist()
        model.learn_many(X, y)
    assert found == batches_by_hand(events, size, make)


def test_mini_batches_of_another_kind_of_frame() -> None:
    """A mini-batch of Arrow gives the same, as Arrow; its names are strings."""
    events = phishing(100)
    X, y = frame(events)  # noqa: N806 - river's name
    pandas, arrow = (VennAbersClassifier(linear_model.LogisticRegression()) for _ in range(2))
    pandas.learn_many(X, y)
    arrow.learn_many(pa.table(X.to_dict("list")), pa.chunked_array([y.tolist()]))
    found = arrow.predict_proba_many(pa.table(X.to_dict("list")))
    assert found["True"].to_pylist() == pandas.predict_proba_many(X)[True].tolist()
    labels = arrow.predict_many(pa.table(X.to_dict("list")))
    assert labels.to_pylist() == pandas.predict_many(X).tolist()


def test_a_bad_row_teaches_nobody() -> None:
    """A mini-batch with a bad label, weight or time is refused whole."""
    events, model = phishing(20), VennAbersClassifier(scaled())
    X, y = frame(events)  # noqa: N806 - river's name
    model.learn_many(X, y)
    before = pickle.dumps(model)
    with pytest.raises(LabelError, match="row 3"):
        model.learn_many(X, y.astype(object).where(y.index != 3, "spam"))
    with pytest.raises(WeightError, match="row 2"):
        model.learn_many(X, y, w=pd.Series([1.0, 1.0, -1.0] + [1.0] * 17))
    with pytest.raises(TimeError):
        model.learn_many(X, y, time=3.0)
    assert pickle.dumps(model) == before


def test_a_mini_batch_has_no_ids() -> None:
    """An id with a mini-batch is refused: it would be scored again."""
    X, y = frame(phishing(5))  # noqa: N806 - river's name
    model = VennAbersClassifier(scaled())
    for call in (model.predict_proba_many, model.predict_many):
        with pytest.raises(ParameterError, match="one by one"):
            call(X, id=1)
    with pytest.raises(ParameterError, match="one by one"):
        model.learn_many(X, y, id=[1, 2, 3, 4, 5])


@pytest.mark.parametrize("w", [2.0, [1.0, 2.0, 3.0, 0.5, 1.0]])
def test_weights_and_times_of_a_mini_batch(w: Any) -> None:  # noqa: ANN401 - one or many
    """One weight, or one a row, goes to both; so do times to the calibrator."""
    X, y = frame(phishing(5))  # noqa: N806 - river's name
    model, learner = VennAbersClassifier(scaled(), half_life=2.0), scaled()
    calibrator, times = ProtectedVennAbers(half_life=2.0), np.arange(5.0)
    scores = learner.predict_proba_many(X)[True]
    calibrator.learn_many(scores, y, weights=np.broadcast_to(w, 5), times=times)
    given = w if isinstance(w, float) else pd.Series(w)
    learner.learn_many(X, y, w=given)
    model.learn_many(X, y, w=given, time=times)
    scores = learner.predict_proba_many(X)[True]
    expected = calibrator.predict_many(scores, times=np.full(5, 6.0)).probability
    assert model.predict_proba_many(X, time=6.0)[True].tolist() == expected.tolist()


def test_a_learner_without_mini_batches_says_so() -> None:
    """Mini-batches are refused where the learner has none."""
    X, y = frame(phishing(5))  # noqa: N806 - river's name
    model = VennAbersClassifier(tree.HoeffdingTreeClassifier())
    with pytest.raises(AttributeError, match="predict_proba_many"):
        model.learn_many(X, y)
