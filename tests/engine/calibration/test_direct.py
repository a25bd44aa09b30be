"""Direct isotonic regression: `abers.calibration.baselines`."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.engine.cases import OPTIONS, SCORES, aging, observations, stream
from tests.engine.oracle import Oracle

from abers import LabelError, ScoreError
from abers.calibration import DirectIsotonic


def naive(oracle: Oracle, score: float) -> float:
    """Fit, and take the value at the nearest score, the smaller one of two.

    Distances are differences of doubles, which cannot tell apart what lies far beyond both.
    """
    fit = dict(oracle.fit())
    below = [known for known in fit if known <= score][-1:]
    above = [known for known in fit if known >= score][:1]
    if not fit:
        return 0.5
    return float(fit[min([*below, *above], key=lambda known: abs(known - score))])


@given(observations(), st.lists(SCORES, min_size=1, max_size=8))
@example([(0.0, 0, 1.0), (1.0, 1, 1.0)], [0.5, math.nextafter(0.5, 1)])
@example([(-1.7e308, 0, 1.0), (1.7e308, 1, 1.0)], [1e308, -1e308, 0.0])
def test_obeys_the_definition(bag: list[tuple[float, int, float]], queries: list[float]) -> None:
    """The prediction is the isotonic fit at the nearest score kept, at any weights and ties."""
    calibrator, oracle = DirectIsotonic(), Oracle()
    for score, label, weight in bag:
        calibrator.learn_one(score, label, weight=weight)
        oracle.learn(score, label, weight)
    asked = [*queries, *(score for score, _, _ in bag)]
    expected = [naive(oracle, score) for score in asked]
    assert [calibrator.predict_one(score) for score in asked] == expected
    assert calibrator.predict_many(asked).tolist() == expected


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_forgets_and_learns_in_batches(options: dict[str, Any]) -> None:
    """With each rule of forgetting, learning many is learning each, and is the definition."""
    data = stream(options, 40)
    many, loop, oracle = DirectIsotonic(**options), DirectIsotonic(**options), Oracle(**options)
    many.learn_many(data.scores, data.labels, weights=data.weights, times=data.times)
    for i in range(40):
        score, label, weight = float(data.scores[i]), int(data.labels[i]), float(data.weights[i])
        when = {"time": float(data.times[i])} if data.times is not None else {}
        loop.learn_one(score, label, weight=weight, **when)
        oracle.learn(score, label, weight, **when)
    assert aging(options) == (data.times is not None)
    asked = [i / 50 for i in range(-5, 60)]
    expected = [naive(oracle, score) for score in asked]
    assert many.predict_many(asked).tolist() == expected
    assert [loop.predict_one(score) for score in asked] == expected
    assert len(many) == len(loop) == len(oracle)


def test_of_two_nearest_scores_the_smaller_counts() -> None:
    """Half-way between two calibration scores it is the value of the smaller one."""
    calibrator = DirectIsotonic()
    calibrator.learn_many([0.25, 0.75], [0, 1])
    assert calibrator.predict_many([0.5, math.nextafter(0.5, 1), 0.0, 1.0]).tolist() == [0, 1, 0, 1]


def test_copies_and_describes_itself() -> None:
    """A copy goes its own way; empty, it is true and says 1/2."""
    calibrator = DirectIsotonic()
    assert (bool(calibrator), calibrator.predict_one(0.3)) == (True, 0.5)
    twin = copy.deepcopy(calibrator)
    twin.learn_one(0.3, 1)
    assert (len(calibrator), len(twin), twin.predict_one(0.3)) == (0, 1, 1.0)
    assert repr(twin) == "<DirectIsotonic() of 1 observations>"


def test_bad_input_is_refused() -> None:
    """NaN scores and strange labels are refused, and nothing is learned."""
    calibrator = DirectIsotonic()
    with pytest.raises(ScoreError, match="nan"):
        calibrator.predict_one(float("nan"))
    with pytest.raises(ScoreError, match="row 1"):
        calibrator.learn_many([0.1, float("inf")], [0, 1])
    with pytest.raises(LabelError):
        calibrator.learn_one(0.1, 2)
    assert len(calibrator) == 0
