"""A river regressor with predictive distributions: `abers.river.regressor`.

The oracle is a regressor next to an `IVAPR`, driven by hand.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import pytest
from river import datasets, evaluate, linear_model, metrics, preprocessing, stream
from river.conf.interval import Interval
from tests.engine.river.streams import Events, Scripted

from abers import LabelError, ParameterError, ScoreError, TimeError, VennAbers, WeightError
from abers.regression import IVAPR, ProtectedIVAPR
from abers.river import VennAbersRegressor

DELAY = 20


def approval(n: int) -> Events:
    """Take the first events of a stream of numbers."""
    return [*datasets.TrumpApproval().take(n)]  # type: ignore[no-untyped-call]  # of river


def scaled() -> Any:  # noqa: ANN401 - a pipeline
    """Make a learner that changes with every label."""
    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


@pytest.mark.parametrize("inside", [False, True])
def test_delayed_labels_are_never_predicted_again(inside: bool) -> None:  # noqa: FBT001 - a case
    """With ids exactly the predicted scores are learned, bit for bit by hand; in a pipeline too."""
    events = approval(80)
    learner, calibrator = scaled(), IVAPR()
    waiting, expected = {}, {}
    for i, x, y in stream.simulate_qa(events, None, DELAY):
        if y is None:
            waiting[i] = learner.predict_one(x)
            median = calibrator.predict_one(waiting[i]).quantile(0.5)
            expected[i] = median if math.isfinite(median) else waiting[i]
        else:
            calibrator.learn_one(waiting.pop(i), y)
            learner.learn_one(x, y)
    model: Any = VennAbersRegressor(scaled(), point="median")
    if inside:
        last = VennAbersRegressor(linear_model.LinearRegression(intercept_lr=0.1), point="median")
        model = preprocessing.StandardScaler() | last
    with_ids: Any = ((x, y, {"id": i}) for i, (x, y) in enumerate(events))
    metric = metrics.MAE()  # type: ignore[no-untyped-call]  # of river
    steps = evaluate.iter_progressive_val_score(
        with_ids, model, metric, delay=DELAY, step=1, yield_predictions=True
    )
    assert [step["Prediction"] for step in steps] == [expected[i] for i in range(len(events))]


def test_intervals_and_distributions_are_those_of_the_calibrator() -> None:
    """At every step distribution, interval and point are those of the score by hand."""
    learner, calibrator = scaled(), IVAPR(window=30, support=(0.0, 100.0))
    model = VennAbersRegressor(scaled(), 0.8, window=30, support=(0.0, 100.0))
    for x, y in approval(60):
        expected = calibrator.predict_one(learner.predict_one(x))
        assert model.predict_distribution_one(x) == expected
        lower, upper = expected.interval(0.8)
        assert model.predict_one(x, with_interval=True) == Interval(lower, upper)
        assert model.predict_one(x) == learner.predict_one(x)
        calibrator.learn_one(learner.predict_one(x), y)
        learner.learn_one(x, y)
        model.learn_one(x, y)


@pytest.mark.parametrize("point", ["learner", "median"])
def test_before_learning_the_point_is_the_learners(point: str) -> None:
    """When nothing is learned the point is the learner's, and the interval is everything."""
    model = VennAbersRegressor(Scripted(), point=point)
    assert model.predict_one({"scores": 3.5}) == 3.5
    assert model.predict_one({"scores": 3.5}, with_interval=True) == Interval(-math.inf, math.inf)


def test_the_first_prediction_of_an_id_stands() -> None:
    """Point, interval and distribution of one id have one score, which its label takes away."""
    model, expected = VennAbersRegressor(Scripted()), IVAPR()
    assert model.predict_one({"scores": 1.0}, id="a") == 1.0
    assert model.predict_one({"scores": 2.0}, id="a") == 1.0
    model.predict_distribution_one({"scores": 3.0}, id="a")
    model.learn_one({"scores": 4.0}, 7.0, id="a")
    model.learn_one({"scores": 4.0}, 8.0, id="a")
    expected.learn_one(1.0, 7.0)
    for score in (0.5, 1.0, 1.5, 4.0):
        assert model.predict_distribution_one({"scores": score}) == expected.predict_one(score)
    assert model.unmatched == 1


def test_weights_and_times_reach_the_calibrator() -> None:
    """A weight is the calibrator's too, and a time waits with its score."""
    model, expected = VennAbersRegressor(Scripted(), max_age=5.0), IVAPR(max_age=5.0)
    for i in range(10):
        model.predict_one({"scores": i % 4}, id=i, time=float(i))
        model.learn_one({}, float(i), id=i, w=0.5 + i % 2)
        expected.learn_one(i % 4, float(i), weight=0.5 + i % 2, time=float(i))
    for time in (9.0, 12.0):
        found = model.predict_distribution_one({"scores": 2.0}, time=time)
        assert found == expected.predict_one(2.0, time)


@pytest.mark.parametrize("score", [math.nan, math.inf, None])
@pytest.mark.parametrize("point", ["learner", "median"])
def test_a_score_of_nan_gets_no_prediction(point: str, score: object) -> None:
    """A prediction that is no finite number is refused everywhere, and nothing is kept."""
    model, x = VennAbersRegressor(Scripted(), point=point), {"scores": score}
    before = pickle.dumps(model)
    for refused in (
        lambda: model.predict_one(x, id=1),
        lambda: model.predict_one(x, with_interval=True, id=1),
        lambda: model.predict_distribution_one(x, id=1),
        lambda: model.learn_one(x, 1.0),
    ):
        with pytest.raises(ScoreError, match="finite"):
            refused()
    assert pickle.dumps(model) == before


def test_bad_labels_weights_and_times_change_nothing() -> None:
    """What is refused leaves the model as it was, with an id and without."""
    model = VennAbersRegressor(Scripted(), support=(0.0, 10.0))
    model.predict_one({"scores": 1.0}, id=1)
    before = pickle.dumps(model)
    for id_ in (None, 1):
        for y in (math.nan, "high", None, 11.0):
            with pytest.raises(LabelError):
                model.learn_one({"scores": 1.0}, y, id=id_)
        with pytest.raises(WeightError):
            model.learn_one({"scores": 1.0}, 2.0, id=id_, w=0.0)
        with pytest.raises(TimeError):
            model.learn_one({"scores": 1.0}, 2.0, id=id_, time=3.0)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    "options",
    [
        {"point": "mean"},
        {"confidence_level": 0.0},
        {"confidence_level": 1.0},
        {"confidence_level": math.nan},
        {"window": 0},
        {"support": (1.0, 0.0)},
        {"max_pending": 0},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    """Options are refused when the wrapper is made."""
    with pytest.raises(ParameterError):
        VennAbersRegressor(Scripted(), **options)


# A protected calibrator


@pytest.mark.parametrize("point", ["learner", "median"])
def test_a_protected_calibrator_by_hand(point: str) -> None:
    """Whatever is predicted holds a lane under its id; all are those of a calibrator by hand."""
    events, support = approval(60), (0.0, 100.0)
    learner, calibrator = scaled(), ProtectedIVAPR(support)
    model = VennAbersRegressor(scaled(), 0.8, point, calibrator=ProtectedIVAPR(support))
    waiting = {}
    for i, x, y in stream.simulate_qa(events, None, DELAY):
        if y is None:
            waiting[i] = learner.predict_one(x)
            expected = calibrator.predict_one(waiting[i], number=i)
            middle = expected.quantile(0.5) if point == "median" else waiting[i]
            assert model.predict_one(x, id=i) == middle
            lower, upper = expected.interval(0.8)
            assert model.predict_one(x, with_interval=True, id=i) == Interval(lower, upper)
            assert model.predict_distribution_one(x, id=i) == expected
            assert model.calibrator.awaiting == len(waiting)
        else:
            calibrator.learn_one(waiting.pop(i), y, number=i)
            learner.learn_one(x, y)
            model.learn_one(x, y, id=i)
    assert model.calibrator == calibrator
    losses = calibrator.expert_losses()
    assert losses["protected"] <= losses["base"] + calibrator.price


def test_pending_scores_are_dropped_from_the_calibrator_too() -> None:
    """Ids that expire or are dropped await no label; a label beyond the support changes nothing."""
    model = VennAbersRegressor(
        Scripted(), max_pending=2, calibrator=ProtectedIVAPR(support=(0.0, 9.0))
    )
    for i in range(4):
        model.predict_one({"scores": float(i)}, id=i)
    assert (model.calibrator.awaiting, model.dropped) == (2, 2)
    before = pickle.dumps(model)
    with pytest.raises(LabelError):
        model.learn_one({"scores": 1.0}, 9.5, id=3)
    assert pickle.dumps(model) == before
    model.expire_one(3)
    assert pickle.loads(pickle.dumps(model)).calibrator.awaiting == 1  # noqa: S301 - ours
    clone = model.clone()
    assert (clone.calibrator, clone.max_pending) == (ProtectedIVAPR(support=(0.0, 9.0)), 2)


def test_calibrators_that_do_not_fit() -> None:
    """Another task, quantiles as scores, and options next to a calibrator are refused."""
    quantiles = ProtectedIVAPR((0.0, 1.0), scores="quantiles")
    for given in (VennAbers(), quantiles, IVAPR, "ivapr"):
        with pytest.raises(ParameterError, match="must be a calibrator of distributions"):
            VennAbersRegressor(Scripted(), calibrator=given)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="its own support"):
        VennAbersRegressor(Scripted(), support=(0.0, 1.0), calibrator=IVAPR())
    with pytest.raises(ParameterError, match="its own rule of forgetting"):
        VennAbersRegressor(Scripted(), window=5, calibrator=IVAPR())
