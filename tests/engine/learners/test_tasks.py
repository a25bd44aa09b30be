"""Learners of several classes, and of labels that are numbers, by river."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from river.base import Classifier

from abers import ParameterError
from abers.learners.river_adapters import (
    LEARNERS,
    REGRESSORS,
    RiverMultiClassifier,
    make_multi,
    make_regressor,
)
from abers.stream import Label, Observation, Processor, Settings

if TYPE_CHECKING:
    from river.base.typing import ClfTarget, FeatureName

CLASSES = ("cat", "dog", "owl")
MANY = [name for name in LEARNERS if name != "logistic"]


def features(number: int) -> dict[str, float]:
    """Return features that distinguish a class from the others."""
    return {name: float(number == i) for i, name in enumerate("abc")}


@pytest.mark.parametrize("name", [*MANY, "river.tree.ExtremelyFastDecisionTreeClassifier"])
def test_a_learner_gives_probabilities_of_all_classes(name: str) -> None:
    """Every learner of several classes gives a probability for each, which follow the labels."""
    learner = make_multi(name, CLASSES)
    for number in [0, 1, 2] * 60:
        learner.learn(features(number), CLASSES[number])
    for number, label in enumerate(CLASSES):
        found = learner.score(features(number))
        assert list(found) == list(CLASSES)
        assert math.isclose(sum(found.values()), 1.0, abs_tol=1e-6)
        assert max(found, key=found.__getitem__) == label


@pytest.mark.parametrize("name", MANY)
def test_a_learner_that_saw_no_label_says_all_are_equal(name: str) -> None:
    """Before the first label all classes are equally probable."""
    found = make_multi(name, CLASSES).score({"a": 1.0})
    assert found == dict.fromkeys(CLASSES, pytest.approx(1 / 3))


def test_a_class_never_seen_has_no_probability() -> None:
    """A class that had no label yet has the probability 0."""
    learner = make_multi("tree", CLASSES)
    learner.learn({"a": 1.0}, "dog")
    assert learner.score({"a": 1.0}) == {"cat": 0.0, "dog": 1.0, "owl": 0.0}


class Fixed(Classifier):
    """A classifier that always answers the same."""

    def __init__(self, answer: dict[Any, float]) -> None:
        self.answer = answer

    def predict_proba_one(self, *_: object, **__: object) -> dict[ClfTarget, float]:
        """Return the fixed answer."""
        return self.answer

    def learn_one(self, x: dict[FeatureName, float], y: ClfTarget, **_: object) -> None:
        """Learn nothing."""


def test_nan_is_left_to_the_processor() -> None:
    """A NaN of a learner stays one, and becomes a dead letter."""
    learner = RiverMultiClassifier(Fixed({"cat": math.nan, "dog": 1.0}), CLASSES)
    assert math.isnan(learner.score({})["cat"])
    settings = Settings(task="multiclass", classes=CLASSES)
    (dead_letter,) = Processor(settings, learner=learner).process(Observation("a", 0, x={}))
    assert getattr(dead_letter, "reason", None) == "bad-score"


def test_classes_of_others_are_left_out() -> None:
    """Only the classes of the settings have a score."""
    learner = RiverMultiClassifier(Fixed({"cat": 0.5, "emu": 0.5}), CLASSES)
    assert learner.score({}) == {"cat": 0.5, "dog": 0.0, "owl": 0.0}


@pytest.mark.parametrize("name", ["logistic", "river.linear_model.Perceptron"])
def test_a_learner_of_two_classes_is_refused(name: str) -> None:
    """A binary classifier is refused for several classes, with the names of others."""
    with pytest.raises(ParameterError, match=f"{name} knows two classes only; choose softmax"):
        make_multi(name, CLASSES)


@pytest.mark.parametrize("name", [*REGRESSORS, "river.linear_model.PARegressor"])
def test_a_regressor_follows_the_labels(name: str) -> None:
    """Every short name, and any full one, gives numbers that follow the labels."""
    learner = make_regressor(name)
    assert learner.score({"a": 0.5}) == 0.0
    for number in range(300):
        learner.learn({"a": float(number % 2)}, 3.0 + 4.0 * (number % 2))
    low, high = learner.score({"a": 0.0}), learner.score({"a": 1.0})
    assert type(low) is type(high) is float
    assert low < 5.0 < high


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("logistic", "no such learner; short names are forest, linear, tree, and other regressors"),
        ("river.tree.HoeffdingTreeClassifier", "no such learner"),
        ("river.ensemble.BaggingRegressor", "cannot be made with its defaults"),
    ],
)
def test_a_name_that_is_no_regressor(name: str, message: str) -> None:
    """A learner that is not a regressor is refused, with the names of some."""
    with pytest.raises(ParameterError, match=message):
        make_regressor(name)


@pytest.mark.parametrize("name", ["tree.HoeffdingTreeRegressor", "nowhere.Nothing"])
def test_a_name_that_is_no_learner_of_classes(name: str) -> None:
    """A regressor is refused for several classes."""
    with pytest.raises(ParameterError, match="no such learner"):
        make_multi(f"river.{name}", CLASSES)


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        (Settings(task="multiclass", classes=CLASSES, learner="bayes"), CLASSES),
        (Settings(task="multiclass", classes=CLASSES, learner="softmax"), CLASSES),
        (Settings(task="regression", learner="linear"), (1.0, 2.0, 3.0)),
        (Settings(task="regression", learner="forest"), (1.0, 2.0, 3.0)),
    ],
    ids=str,
)
def test_a_learner_by_name_in_a_stream(settings: Settings, labels: Any) -> None:  # noqa: ANN401
    """The processor makes the learner of its task, and goes on with it after a restore."""
    p = Processor(settings)
    for i in range(60):
        p.process(Observation(f"a{i}", i, x=features(i % 3)))
        p.process(Label(f"a{i}", i, value=labels[i % 3]))
    key = b"a secret of tests"
    restored = Processor.restore(p.snapshot(key=key), settings, key=key)
    last = [Observation(f"b{i}", 60, x=features(i)) for i in range(3)]
    found: Any = p.process_many(last)
    assert found == restored.process_many(last)
    assert not any(count for name, count in p.counters.items() if name.startswith("dead"))
    scores = [one.score for one in found]
    tops = [max(s, key=s.__getitem__) if isinstance(s, dict) else s for s in scores]
    assert tops == (list(labels) if settings.classes else sorted(tops))
