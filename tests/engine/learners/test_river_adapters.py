"""Classifiers of river as learners: probabilities, names, and what can be repeated."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from river.base import Classifier

from abers import ParameterError
from abers.learners.river_adapters import LEARNERS, RiverClassifier, make

if TYPE_CHECKING:
    from river.base.typing import ClfTarget, FeatureName


@pytest.mark.parametrize("name", [*LEARNERS, "river.linear_model.Perceptron"])
def test_a_learner_gives_probabilities_and_learns(name: str) -> None:
    """Every short name, and any full one, gives probabilities that follow the labels."""
    learner = make(name)
    for label in [0, 1] * 100:
        learner.learn({"a": float(label), "b": 1.0 - label}, label)
    low, high = learner.score({"a": 0.0, "b": 1.0}), learner.score({"a": 1.0, "b": 0.0})
    assert 0.0 <= low < 0.5 < high <= 1.0


def test_a_learner_that_saw_no_label_says_one_half() -> None:
    """Before the first label the probability is 1/2."""
    assert make("tree").score({"a": 1.0}) == 0.5


def test_a_learner_that_saw_only_negatives_says_nought() -> None:
    """A class never seen has the probability 0."""
    learner = make("tree")
    learner.learn({"a": 1.0}, 0)
    assert learner.score({"a": 1.0}) == 0.0


@pytest.mark.parametrize("count", [60, pytest.param(150, marks=pytest.mark.long)])
def test_a_random_learner_can_be_repeated(count: int) -> None:
    """A learner with random draws gives equal scores in processes with different hash seeds."""
    program = """
import sys
from abers.learners.river_adapters import make
learner = make("forest")
for n in range(int(sys.argv[1])):
    x = {"a": n % 7 / 7, "b": n % 11 / 11}
    print(learner.score(x))
    learner.learn(x, int(n % 7 > n % 3))
"""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program, str(count)],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert first.count(b"\n") == count


class Fixed(Classifier):
    """A classifier that always answers the same."""

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def predict_proba_one(self, *_: object, **__: object) -> dict[ClfTarget, float]:
        """Return the fixed answer."""
        return {False: 1.0 - self.probability, True: self.probability}

    def learn_one(self, x: dict[FeatureName, float], y: ClfTarget, **_: object) -> None:
        """Learn nothing."""


def test_a_sum_that_rounds_beyond_one_is_one() -> None:
    """A probability a rounding error above 1 is 1; NaN stays NaN, to be refused."""
    assert RiverClassifier(Fixed(math.nextafter(1.0, 2.0))).score({}) == 1.0
    assert RiverClassifier(Fixed(0.25)).score({}) == 0.25
    assert math.isnan(RiverClassifier(Fixed(math.nan)).score({}))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tre", "no such learner; short names are bayes, forest, logistic, softmax, tree"),
        ("sklearn.svm.SVC", "no such learner"),
        ("river.nowhere.Nothing", "no such learner"),
        ("river.tree.Nothing", "no such learner"),
        ("river.tree.HoeffdingTreeRegressor", "no such learner"),
        ("river.ensemble.BaggingClassifier", "cannot be made with its defaults"),
        ("river.anomaly.QuantileFilter", "no such learner"),
    ],
)
def test_a_name_that_is_no_learner(name: str, message: str) -> None:
    """An unknown or unusable learner is refused, with the reason."""
    with pytest.raises(ParameterError, match=message):
        make(name)
