"""river's bundled streams and classifiers, as they come."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import islice
from typing import TYPE_CHECKING

import pytest
from river import datasets
from river.base import Classifier

from abers import ParameterError, RecordError
from abers_connectors.records import Observation
from abers_connectors.river_streams import (
    LEARNERS,
    BundledStream,
    RiverLearner,
    bundled_streams,
    learner,
)

if TYPE_CHECKING:
    from river.base.typing import ClfTarget, FeatureName


def observation(label: int = 1, **x: float) -> Observation:
    """Return an observation with features."""
    return Observation(1, "1", 1, label, x)


@pytest.mark.parametrize("name", sorted(bundled_streams()))
def test_what_is_bundled_is_binary_and_there(name: str) -> None:
    """Each stream found gives labels 0 and 1 from the installed files, numbered from 1."""
    source = BundledStream(name)
    rows = list(islice(source, 1000))
    assert {type(one.label) for one in rows} == {int}
    assert {one.label for one in rows} == {0, 1}
    assert [one.position for one in rows] == list(range(1, 1001))
    assert (rows[-1].id, rows[-1].time) == ("1000", 1000)
    assert source.where(1000) == f"{name} observation 1000"


def test_what_would_be_downloaded_is_not_offered() -> None:
    """Neither remote streams nor other tasks are in the list."""
    assert not {"CreditCard", "Elec2", "ImageSegments", "TrumpApproval"} & set(bundled_streams())


def test_the_features_are_those_of_river() -> None:
    """Features and labels are passed on as river gives them."""
    rows = islice(BundledStream("Phishing"), 50)
    assert [(one.x, bool(one.label)) for one in rows] == list(islice(datasets.Phishing(), 50))


def test_the_fraction_grows_to_one() -> None:
    """The share of the stream that was read ends at all of it."""
    source = BundledStream("Phishing")
    assert source.fraction() == 0.0
    shares = [source.fraction() for _ in source]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


@pytest.mark.parametrize("name", [*LEARNERS, "river.linear_model.Perceptron"])
def test_a_learner_gives_probabilities_and_learns(name: str) -> None:
    """Every short name, and any full one, gives probabilities that follow the labels."""
    scorer = learner(name)
    for label in [0, 1] * 100:
        scorer.learn(observation(label, a=float(label), b=1.0 - label))
    low, high = scorer.score(observation(a=0.0, b=1.0)), scorer.score(observation(a=1.0, b=0.0))
    assert 0.0 <= low < 0.5 < high <= 1.0


def test_a_learner_that_saw_no_label_says_one_half() -> None:
    """A learner that knows no class yet has nothing to say."""
    assert learner("tree").score(observation(a=1.0)) == 0.5


def test_a_learner_that_saw_only_negatives_says_nought() -> None:
    """A class never seen has the probability 0."""
    scorer = learner("tree")
    scorer.learn(observation(0, a=1.0))
    assert scorer.score(observation(a=1.0)) == 0.0


def test_a_random_learner_can_be_repeated() -> None:
    """Two processes, with other hashes, give the same scores with a learner that draws numbers."""
    program = """
from itertools import islice
from abers_connectors.river_streams import BundledStream, learner
scorer = learner("forest")
for one in islice(BundledStream("Bananas"), 150):
    print(scorer.score(one))
    scorer.learn(one)
"""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )
    assert first == second
    assert first.count(b"\n") == 150


class Fixed(Classifier):
    """A classifier that always answers the same."""

    def __init__(self, probability: float) -> None:
        self.probability = probability

    def predict_proba_one(self, *_: object, **__: object) -> dict[ClfTarget, float]:
        """Answer."""
        return {False: 1.0 - self.probability, True: self.probability}

    def learn_one(self, x: dict[FeatureName, float], y: ClfTarget, **_: object) -> None:
        """Refuse, as a classifier may."""
        msg = f"cannot learn {x} {y}"
        raise ArithmeticError(msg)


def test_a_sum_that_rounds_beyond_one_is_one() -> None:
    """A probability a rounding error above 1 is 1; NaN stays NaN, for the calibrator to refuse."""
    assert RiverLearner(Fixed(math.nextafter(1.0, 2.0)), "fixed").score(observation()) == 1.0
    assert RiverLearner(Fixed(0.25), "fixed").score(observation()) == 0.25
    assert math.isnan(RiverLearner(Fixed(math.nan), "fixed").score(observation()))


def test_a_learner_that_fails_is_named() -> None:
    """What a learner raises on features that it cannot use becomes one sentence."""
    scorer = RiverLearner(Fixed(0.5), "fixed")
    message = r"fixed failed at observation 1 \(ArithmeticError: cannot learn .*; choose another"
    with pytest.raises(RecordError, match=message):
        scorer.learn(observation())


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tre", r"no such learner; short names are .*; did you mean tree\?"),
        ("sklearn.svm.SVC", "no such learner"),
        ("river.nowhere.Nothing", "no such learner"),
        ("river.tree.Nothing", "no such learner"),
        ("river.tree.HoeffdingTreeRegressor", "no such learner"),
        ("river.ensemble.BaggingClassifier", "cannot be made with its defaults"),
        ("river.anomaly.QuantileFilter", "no such learner"),
    ],
)
def test_a_name_that_is_no_learner(name: str, message: str) -> None:
    """What cannot be a learner is refused, with the reason."""
    with pytest.raises(ParameterError, match=message):
        learner(name)


def test_river_is_imported_late() -> None:
    """Importing the module costs nothing; river comes with the first stream or learner."""
    program = "import sys, abers_connectors.river_streams; sys.exit('river' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
