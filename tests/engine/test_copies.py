"""Every public class can be pickled and copied, and what comes out behaves as what went in."""

from __future__ import annotations

import copy
import importlib
import inspect
import pickle
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from river import linear_model
from scipy import stats
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier
from tests.surface.python_names import MODULES

import abers
from abers import VennAbers, batch, monitoring, regression, stream
from abers.calibration import UncalibratedClasses
from abers.learners import gaussian, river_adapters, sklearn_adapters
from abers.monitoring import BinaryForecasts, ScoredRows, task_monitor
from abers.regression import PredictiveDistribution
from abers.river import (
    CrossVennAbersClassifier,
    VennAbersClassifier,
    VennAbersMultiClassifier,
    VennAbersRegressor,
)
from abers.serialization import Saveable
from abers.sklearn import VennAbersCalibratedClassifier, VennAbersCalibratedRegressor
from abers.stream import Events, Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.once

P = np.array([0.1, 0.6, 0.7, 0.2] * 30)
Y = np.array([0.0, 1.0, 1.0, 0.0] * 30)
TIMES = np.arange(120)


def pickled(value: Any) -> Any:  # noqa: ANN401 - any object
    """Return the object by way of a pickle."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def public_classes() -> list[type]:
    """Return the public classes of abers of which there can be objects."""
    modules = [importlib.import_module(one) for one in MODULES]
    found = [getattr(one, name) for one in modules for name in sorted(one.__all__)]
    return [
        one
        for one in dict.fromkeys(one for one in found if isinstance(one, type))
        if one.__module__.startswith("abers")
        and not inspect.isabstract(one)
        and not getattr(one, "_is_protocol", False)
        and not one.__module__.startswith("abers.stream.durable")  # of a folder, with its lock
    ]


def scored() -> ScoredRows:
    """Return binary labelled predictions."""
    views = {"raw": BinaryForecasts(P, Y), "calibrated": BinaryForecasts(P, Y)}
    return ScoredRows(Y, views, widths=P)


def updated(value: Any, *columns: Any) -> Any:  # noqa: ANN401 - any object
    """Return an object behind an update."""
    value.update(*columns)
    return value


def multiclass() -> monitoring.MultiClassScores:
    """Return scores of forecasts of three classes."""
    scores = monitoring.MultiClassScores()
    scores.update_many(np.array([[0.7, 0.2, 0.1]]), np.array([1]))
    return scores


def binary() -> monitoring.PrequentialScores:
    """Return scores of forecasts of two classes."""
    scores = monitoring.PrequentialScores()
    scores.update_many(P, Y)
    return scores


def reliability() -> monitoring.Reliability:
    """Return a diagram that counts."""
    kept = monitoring.Reliability()
    kept.update_many(P, Y)
    return kept


def e_process(process: Any) -> Any:  # noqa: ANN401 - either kind
    """Return an e-process with labels that came, and one that waits."""
    for number in range(30):
        process.predict(number, 0.1)
        process.learn(number, number % 2)
    process.predict(30, 0.1)
    return process


def coverage() -> monitoring.DistributionEProcess:
    """Return an e-process of intervals with labels that came."""
    process = monitoring.DistributionEProcess([0.9])
    numbers, values = np.arange(30), Y[:30].reshape(-1, 1)
    for kind in (0, 1):
        kinds = np.full(30, kind, np.uint8)
        process.run(monitoring.EProcessSteps(kinds, numbers, numbers, values))
    return process


def events(*numbers: int) -> list[stream.Event]:
    """Return an observation with its label for each number."""
    return [
        event
        for n in numbers
        for event in (Observation(f"a{n}", n, score=n % 7 / 7), Label(f"a{n}", n, value=n % 2))
    ]


def processor() -> Processor:
    """Return a processor behind some events."""
    made = Processor()
    made.process_many([*events(*range(30)), Observation("waits", 30, score=0.5)])
    return made


def journal_entry() -> stream.JournalEntry:
    """Return the journal entry of a batch."""
    return Processor().process_logged(Events.of(events(1, 2)))[1]


def bag() -> Any:  # noqa: ANN401 - a Venn predictor
    """Return a predictor that learned a few labels."""
    predictor = batch.VennPredictor(batch.NearestNeighbours())
    predictor.learn_many(np.array([0.1, 0.2, 0.8]), [0, 0, 1])
    return predictor


def mondrian() -> Any:  # noqa: ANN401 - of any calibrator
    """Return a calibrator that learned two categories."""
    made = batch.Mondrian(VennAbers)
    made.learn_many(["a", "b"], [0.2, 0.4], [0, 1])
    return made


def identity(_objects: Any, _labels: Any) -> Callable[[Any], Any]:  # noqa: ANN401 - any objects
    """Return a scorer of scores."""
    return np.asarray


def fitted(model: Any) -> Any:  # noqa: ANN401 - either wrapper
    """Return a wrapper of scikit-learn behind `fit`."""
    return model.fit(P.reshape(-1, 1), Y)


def learned(model: Any, labels: Any = Y) -> Any:  # noqa: ANN401 - any wrapper of river
    """Return a wrapper of river behind a few labels."""
    for p, y in zip(P[:20].tolist(), labels[:20].tolist(), strict=True):
        model.predict_one({"x": p})
        model.learn_one({"x": p}, y)
    return model


def calibrator(kind: Callable[..., Any], **options: Any) -> Any:  # noqa: ANN401 - of any task
    """Return a calibrator behind a few labels."""
    made = kind(**options)
    made.learn_many(P, Y.astype(int))
    return made


def bands() -> PredictiveDistribution:
    """Return a distribution."""
    return PredictiveDistribution([0.0, 1.0], [0.0, 0.25, 1.0])


MADE: dict[str, Callable[[], Any]] = {
    "Settings": Settings,
    "Processor": processor,
    "Events": lambda: Events.of(events(1, 2)),
    "JournalEntry": journal_entry,
    "Rows": lambda: Processor().process_batch(Events.of(events(1, 2))).predictions,
    "Capabilities": lambda: VennAbers().capabilities,
    "ForecastMonitor": lambda: updated(abers.monitor(), Y, P),
    "ForecastReport": lambda: abers.report(Y, P, model=["a", "b"] * 60),
    "BinaryMonitor": lambda: updated(task_monitor("binary", raw=True), scored()),
    "MultiClassMonitor": lambda: task_monitor("multiclass", raw=True),
    "RegressionMonitor": lambda: monitoring.RegressionMonitor([0.1, 0.5, 0.9]),
    "PrequentialScores": binary,
    "MultiClassScores": multiclass,
    "Reliability": reliability,
    "ForecastGroups": lambda: updated(monitoring.ForecastGroups(1.25), P, Y),
    "VerdictSequence": lambda: updated(monitoring.VerdictSequence("raw", 1.25), P, Y, TIMES),
    "CalibrationEProcess": lambda: e_process(monitoring.CalibrationEProcess()),
    "DistributionEProcess": coverage,
    "TestedView": lambda: e_process(monitoring.CalibrationEProcess()).views[0],
    "ExchangeabilityEProcess": lambda: updated(monitoring.ExchangeabilityEProcess(), P),
    "LossDifference": lambda: updated(monitoring.LossDifference(), P, P, Y, TIMES),
    "Martingale": lambda: updated(monitoring.Martingale("a"), [1.5, 2.0], [1, 2]),
    "EDetector": lambda: updated(monitoring.EDetector("a"), [1.5, 2.0], [1, 2]),
    "ConfidenceSequence": lambda: monitoring.ConfidenceSequence(10.0, 0.05),
    "Diagram": lambda: monitoring.corp(P, Y),
    "Trail": lambda: monitoring.Trail(max, 8),
    "WindowedMonitor": lambda: monitoring.WindowedMonitor(partial(task_monitor, "binary")),
    "ScoredRows": scored,
    "CoverageTracker": lambda: regression.CoverageTracker(0.9, (0.0, 1.0)),
    "PredictiveDistribution": bands,
    "CalibratedDistribution": lambda: batch.BetaCDF().distribution(stats.norm(1.0, 2.0)),
    "IsotonicTaxonomy": batch.IsotonicTaxonomy,
    "NearestNeighbours": batch.NearestNeighbours,
    "ScoreBins": lambda: batch.ScoreBins([0.2, 0.8]),
    "PredictedClass": lambda: batch.PredictedClass(identity),
    "ByFeature": lambda: batch.ByFeature(0),
    "VennPredictor": bag,
    "Mondrian": mondrian,
    "SimplifiedVennAbers": lambda: batch.SimplifiedVennAbers(identity, P, Y),
    "TransductiveVennAbers": lambda: batch.TransductiveVennAbers(identity, P, Y),
    "Drawing": abers.plotting.Drawing,
    "VennAbersCalibratedClassifier": lambda: fitted(
        VennAbersCalibratedClassifier(LogisticRegression())
    ),
    "VennAbersCalibratedRegressor": lambda: fitted(
        VennAbersCalibratedRegressor(LinearRegression())
    ),
    "VennAbersClassifier": lambda: learned(VennAbersClassifier(linear_model.LogisticRegression())),
    "CrossVennAbersClassifier": lambda: learned(
        CrossVennAbersClassifier(linear_model.LogisticRegression())
    ),
    "VennAbersMultiClassifier": lambda: learned(
        VennAbersMultiClassifier(linear_model.SoftmaxRegression()), Y.astype(int)
    ),
    "VennAbersRegressor": lambda: learned(VennAbersRegressor(linear_model.LinearRegression())),
    "BayesianLinear": gaussian.BayesianLinear,
    "RiverClassifier": lambda: river_adapters.make("logistic"),
    "RiverMultiClassifier": lambda: river_adapters.make_multi("softmax", ("a", "b")),
    "RiverRegressor": lambda: river_adapters.make_regressor("linear"),
    "RiverFolds": lambda: river_adapters.RiverFolds(partial(river_adapters.make, "logistic"), 3),
    "SklearnClassifier": lambda: sklearn_adapters.SklearnClassifier(
        SGDClassifier(loss="log_loss"), ["x"]
    ),
    "OneVsRest": lambda: abers.OneVsRest(["a", "b", "c"]),
    "OneVsOne": lambda: abers.OneVsOne(["a", "b", "c"]),
    "ProtectedMultiClass": lambda: abers.ProtectedMultiClass(["a", "b", "c"]),
    "UncalibratedClasses": lambda: UncalibratedClasses(["a", "b", "c"]),
    "ProtectedIVAPR": lambda: regression.ProtectedIVAPR((0.0, 1.0)),
    "ConformalInterval": lambda: calibrator(batch.ConformalInterval, level=0.8),
    "SelfCalibratingInterval": lambda: calibrator(batch.SelfCalibratingInterval, level=0.8),
    "IVAR": lambda: calibrator(batch.IVAR, y_min=0.0, y_max=1.0),
    "VennMulticalibration": lambda: batch.VennMulticalibration(0.0, 1.0, segments=2),
    "ConfigError": lambda: abers.ConfigError(["one", "two"]),
}


def made(kind: type) -> Any:  # noqa: ANN401 - any object
    """Return an object of a class."""
    if kind.__name__ in MADE:
        return MADE[kind.__name__]()
    if issubclass(kind, Exception):
        return kind("what is wrong")
    if issubclass(kind, tuple):
        return kind(*range(len(kind._fields)))  # type: ignore[attr-defined]  # a NamedTuple
    if issubclass(kind, msgspec.Struct):
        return kind(*[None] * len(kind.__struct_fields__))
    return kind()


def content(value: Any) -> Any:  # noqa: ANN401, PLR0911 - any object
    """Return what an object consists of, in lists and texts that can be compared."""
    if isinstance(value, Processor | Saveable):
        return value.state_bytes()
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, *map(content, value.ravel().tolist())]
    if isinstance(value, msgspec.Struct):
        return content(msgspec.structs.asdict(value))
    if isinstance(value, dict):
        return [[content(key), content(one)] for key, one in value.items()]
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(content, value)]
    if callable(getattr(value, "state", None)):
        return content(value.state())
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, Exception):
        return [str(value), content(vars(value))]
    known = vars(value) if hasattr(value, "__dict__") and not callable(value) else None
    return content(known) if known else re.sub(" at 0x.*", "", repr(value))


CLASSES = pytest.mark.parametrize(
    "kind", public_classes(), ids=lambda one: f"{one.__module__}.{one.__name__}"
)


@CLASSES
def test_is_pickled_and_copied(kind: type) -> None:
    """A pickle and both kinds of copy consist of the same as what they are made of."""
    before = made(kind)
    for after in (pickled(before), copy.deepcopy(before), copy.copy(before)):
        assert type(after) is kind
        assert content(after) == content(before)


LATER: dict[str, Callable[[Any], Any]] = {
    "BinaryMonitor": lambda one: one.update(scored()),
    "CalibrationEProcess": lambda one: one.learn(30, 1),
    "DistributionEProcess": lambda one: one.run(
        monitoring.EProcessSteps(
            np.array([0, 1], np.uint8), np.array([30, 30]), TIMES[:2], np.zeros((2, 1))
        )
    ),
    "EDetector": lambda one: one.update([1.5], [3]),
    "ExchangeabilityEProcess": lambda one: one.update(P),
    "ForecastGroups": lambda one: one.update(P, Y),
    "ForecastMonitor": lambda one: one.update(Y, P),
    "LossDifference": lambda one: one.update(P / 2, P, Y, TIMES),
    "Martingale": lambda one: one.update([1.5], [3]),
    "Mondrian": lambda one: one.learn_one("a", 0.3, 1),
    "MultiClassScores": lambda one: one.update_many(np.array([[0.1, 0.9]]), np.array([1])),
    "PrequentialScores": lambda one: one.update_many(P, Y),
    "Processor": lambda one: one.process_many([Label("waits", 31, value=1), *events(40)]),
    "Reliability": lambda one: one.update_many(P, Y),
    "VennAbers": lambda one: one.learn_one(0.5, 1),
    "VennPredictor": lambda one: one.learn_one(0.4, 1),
    "VerdictSequence": lambda one: one.update(P, Y, TIMES + 120),
}


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("twin", [pickled, copy.deepcopy, copy.copy])
def test_goes_on_alike_and_alone(name: str, twin: Callable[[Any], Any]) -> None:
    """A copy takes what comes later as its original would have, which does not change by it."""
    before = made(next(one for one in public_classes() if one.__name__ == name))
    after, was = twin(before), content(before)
    LATER[name](after)
    assert content(before) == was != content(after)
    LATER[name](before)
    assert content(before) == content(after)


class Counting:
    """A learner that counts its labels."""

    def __init__(self) -> None:
        self.labels = 0

    def score(self, _x: dict[Any, Any]) -> float:
        """Score by the number of labels."""
        return 1.0 / (2 + self.labels)

    def learn(self, _x: dict[Any, Any], _value: float) -> None:
        """Count a label."""
        self.labels += 1


@pytest.mark.parametrize("options", [{"settings": Settings(learner="logistic")}, {"learner": None}])
@pytest.mark.parametrize("twin", [pickled, copy.deepcopy, copy.copy])
def test_a_processor_takes_its_learners_along(
    options: dict[str, Any], twin: Callable[[Any], Any]
) -> None:
    """Learners, options, position and histories come along, and learn by themselves."""
    if "learner" in options:
        options = {"learner": Counting(), "outcomes": False}
    first = Processor(**options)
    first.position = {"partitions": (1, 2)}
    learns: list[stream.Event] = [Observation("a", 1, x={"u": 1.0}), Label("a", 2, value=1)]
    first.process_many(learns)
    second = twin(first)
    assert second.position == first.position
    assert len(second.histories) == len(first.histories)
    more: list[stream.Event] = [Observation("b", 3, x={"u": 1.0}), Label("b", 4, value=0)]
    outputs = second.process_many(more)
    assert first.process_many(more) == outputs
