"""Rates at which labels of each class come: weights that make labels stand for all observations.

The definition is in fractions: a label of class y weighs its weight over the rate of y, in units of
2**-30, and so does a query, with the class that it is given.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.cases import BEYOND, LABELS, SCORES, WEIGHTS, check
from tests.engine.validity import miscalibrated

from abers import NotHeldError, ParameterError, ProtectedVennAbers, VennAbers, WeightError
from abers.arrays import LEARN, PREDICT, REMOVE
from abers.batch import Mondrian
from abers.calibration.sets import among_labelled

if TYPE_CHECKING:
    from collections.abc import Sequence

UNIT = 2**30
Row = tuple[float, int, float]  # score, label, weight

RATES = st.tuples(*[st.one_of(st.sampled_from((1.0, 0.5, 0.3)), st.floats(0.01, 1.0))] * 2)
BAGS = st.lists(st.tuples(SCORES, LABELS, WEIGHTS), max_size=20)


def units(weight: float, rate: float) -> int:
    """Return a weight over a rate in units: each of the three is rounded to units, half up."""
    factor = round(UNIT / rate)
    return int(Fraction(round(Fraction(weight) * UNIT) * factor, UNIT) + Fraction(1, 2))


def fitted(rows: Sequence[tuple[float, int, int]], score: float) -> Fraction:
    """Return the isotonic regression of rows of score, label and units at one of the scores."""
    groups: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for s, label, weight in rows:
        groups[s][label] += weight
    scores = sorted(groups)
    weights = [0, *accumulate(sum(groups[s]) for s in scores)]
    ones = [0, *accumulate(groups[s][1] for s in scores)]
    at = scores.index(score)
    return max(
        min(
            Fraction(ones[c] - ones[a], weights[c] - weights[a])
            for c in range(at + 1, len(scores) + 1)
        )
        for a in range(at + 1)
    )


def defined(
    bag: Sequence[Row], rates: tuple[float, float], score: float, weight: float
) -> tuple[float, float]:
    """Return both ends for a query by the definition, each correctly rounded."""
    rows = [(s, label, units(w, rates[label])) for s, label, w in bag]
    p0, p1 = (
        fitted([*rows, (score, label, units(weight, rates[label]))], score) for label in (0, 1)
    )
    return float(p0), float(p1)


def taught(bag: Sequence[Row], **options: Any) -> VennAbers:  # noqa: ANN401 - of a calibrator
    """Return a calibrator that learned a bag."""
    calibrator = VennAbers(**options)
    for score, label, weight in bag:
        calibrator.learn_one(score, label, weight=weight)
    return calibrator


@given(BAGS, RATES, SCORES, WEIGHTS)
def test_each_end_has_its_own_weight(
    bag: list[Row], rates: tuple[float, float], score: float, weight: float
) -> None:
    """Labels weigh their weight over their rate, and so does the query at each end."""
    calibrator = taught(bag, label_rates=rates)
    found = calibrator.predict_one(score + 0.0, weight=weight)
    assert tuple(found) == defined([(s + 0.0, y, w) for s, y, w in bag], rates, score, weight)
    check(calibrator)


@given(
    st.lists(st.tuples(SCORES, LABELS), min_size=1, max_size=12),
    st.tuples(*[st.sampled_from((1.0, 0.5, 0.3, 0.01))] * 2),
)
def test_leaving_each_row_out_is_calibrated_by_weight(
    rows: list[tuple[float, int]], rates: tuple[float, float]
) -> None:
    """The prediction of each row by the others is the full fit, whose level sets mean what came."""
    full = [(s + 0.0, label, units(1.0, rates[label])) for s, label in rows]
    levels: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for row, (score, label) in enumerate(rows):
        others = rows[:row] + rows[row + 1 :]
        calibrator = taught([(s, y, 1.0) for s, y in others], label_rates=rates)
        p = calibrator.predict_one(score)[label]
        assert p == float(fitted(full, score + 0.0))
        levels[p][0] += full[row][2] * label
        levels[p][1] += full[row][2]
    for p, (ones, weight) in levels.items():
        assert p == float(Fraction(ones, weight))


@pytest.mark.parametrize("window", [None, 30])
def test_labels_that_are_missing_by_class(window: int | None) -> None:
    """With half of the labels of class 0, p_Y is calibrated by rates, and without them is not."""
    rng = np.random.default_rng(3)
    draws, bag = 3_000, 30
    scores = np.round(rng.random((draws, bag + 1)), 1)
    chance = 0.1 + 0.7 * scores
    odds = chance / (chance + (1.0 - chance) * 0.5)
    odds[:, -1] = chance[:, -1]  # a query is any observation, with or without a label
    labels = (rng.random(scores.shape) < odds).astype(np.int64)
    steps = np.tile([LEARN] * bag + [PREDICT], (draws, 1))
    columns = [steps, scores, labels]
    if window is None:
        columns = [np.concatenate([one, one[:, :bag]], axis=1) for one in columns]
        columns[0][:, bag + 1 :] = REMOVE
    kinds, *rest = (one.ravel() for one in columns)
    truth = labels[:, -1]
    for rates, is_right in (((0.5, 1.0), True), ((1.0, 1.0), False)):
        answers = VennAbers(window=window, label_rates=rates).run(kinds, *rest)
        p0, p1 = (end[kinds == PREDICT] for end in answers)
        wrong = miscalibrated(np.where(truth == 1, p1, p0), truth)
        assert (wrong == []) == is_right


@given(BAGS, RATES, st.lists(SCORES, min_size=64, max_size=70))
def test_batches_predict_as_single_calls(
    bag: list[Row], rates: tuple[float, float], queries: list[float]
) -> None:
    """Arrays of labels and queries, by a table too, give what single calls give."""
    calibrator = taught(bag, label_rates=rates)
    many = VennAbers(label_rates=rates)
    scores, labels, weights = ([row[k] for row in bag] for k in range(3))
    many.learn_many(scores, labels, weights=weights)
    assert many.to_bytes() == calibrator.to_bytes()
    for _ in range(2):
        found = many.predict_many(queries)
        single = [calibrator.predict_one(score) for score in queries]
        assert [*zip(*map(np.ndarray.tolist, found), strict=True)] == single
    check(many)


def test_equal_rates_change_no_prediction() -> None:
    """Only the ratio of the rates is in a prediction."""
    bag = [(0.1, 0, 1.0), (0.4, 1, 1.0), (0.35, 0, 1.0), (0.8, 1, 1.0)]
    plain, half = taught(bag), taught(bag, label_rates=(0.5, 0.5))
    queries = np.linspace(0.0, 1.0, 21)
    assert np.array_equal(plain.predict_many(queries), half.predict_many(queries))


@given(BAGS, RATES)
def test_what_was_learned_can_be_removed(bag: list[Row], rates: tuple[float, float]) -> None:
    """Removing each label with its weight leaves nothing."""
    calibrator = taught(bag, label_rates=rates)
    for score, label, weight in bag:
        calibrator.remove_one(score, label, weight=weight)
    assert calibrator.to_bytes() == VennAbers(label_rates=rates).to_bytes()
    with pytest.raises(NotHeldError):
        calibrator.remove_one(BEYOND, 1)


@pytest.mark.parametrize("rule", [{}, {"window": 3}, {"max_age": 5.0}, {"half_life": 2.0}])
def test_rates_are_saved(rule: dict[str, Any]) -> None:
    """A restored calibrator has the rates, tells them, and goes on with them."""
    one = VennAbers(**rule, label_rates=(0.25, 1.0))
    timed = one.max_age or one.half_life
    times = [1.0, 2.0, 3.0, 4.0] if timed else None
    one.learn_many([0.1, 0.4, 0.35, 0.8], [0, 1, 0, 1], times=times)
    other = VennAbers.from_bytes(one.to_bytes())
    assert other.label_rates == (0.25, 1.0)
    assert "label_rates=(0.25, 1.0)" in repr(other)
    for each in (one, other):
        each.learn_one(0.5, 0, time=5.0 if timed else None)
    assert other.to_bytes() == one.to_bytes()
    assert other.predict_one(0.5) == one.predict_one(0.5)


def test_a_refused_batch_changes_nothing() -> None:
    """A batch whose weights over their rates are too heavy is refused as a whole."""
    calibrator = VennAbers(window=10, label_rates=(1e-6, 1.0))
    calibrator.learn_one(0.5, 0)
    before = calibrator.to_bytes()
    with pytest.raises(WeightError, match="row 2"):
        calibrator.learn_many([0.1, 0.2, 0.3], [0, 0, 0], weights=[4e3, 4e3, 4e3])
    assert calibrator.to_bytes() == before
    with pytest.raises(WeightError, match="out of range"):
        calibrator.learn_one(0.5, 1, weight=5e3)


def test_labels_that_are_too_many_for_their_rate() -> None:
    """At the least rate 8,589 labels fill the sum of weights, which the error explains."""
    full = 2**33 // 10**6
    calibrator = VennAbers(label_rates=(1e-6, 1.0))
    calibrator.learn_many([0.5] * full, [0] * full)
    before = calibrator.to_bytes()
    with pytest.raises(WeightError, match=r"would pass 8589934592; forget earlier; with"):
        calibrator.learn_one(0.5, 0)
    with pytest.raises(WeightError, match=r"^row 0: .* 8589934592; forget earlier; with"):
        calibrator.learn_many([0.5], [0])
    assert calibrator.to_bytes() == before


@pytest.mark.parametrize(
    "rates", [(0.0, 1.0), (0.5,), (0.5, 1.0, 1.0), (1.0, 1.5), (0.5, float("nan")), 0.5, "ab", None]
)
def test_rates_must_be_shares(rates: Any) -> None:  # noqa: ANN401 - anything
    """Rates that are not two shares above 0 are refused, in a sentence that says what they are."""
    with pytest.raises(ParameterError, match=r"must be two shares from 0.000001 to 1: of the"):
        VennAbers(label_rates=rates)


def test_each_category_has_the_rates() -> None:
    """Calibrators of categories learn by the rates of the calibrator that they are made like."""
    by_class = Mondrian(lambda: VennAbers(label_rates=(0.5, 1.0)))
    alone = VennAbers(label_rates=(0.5, 1.0))
    for score, label in ((0.1, 0), (0.4, 1), (0.35, 0), (0.8, 1)):
        by_class.learn_one("a", score, label)
        alone.learn_one(score, label)
    assert by_class.predict_one("a", 0.5) == alone.predict_one(0.5)


def test_a_protected_probability_takes_no_rates() -> None:
    """Its bound is about labels that come, so it has no such option."""
    options: dict[str, Any] = {"label_rates": (0.5, 1.0)}
    with pytest.raises(TypeError, match="label_rates"):
        ProtectedVennAbers(**options)


def test_probabilities_among_labelled_observations() -> None:
    """Odds are multiplied by the ratio of the rates; equal rates change nothing."""
    p = np.array([0.0, 0.2, 0.5, 1.0])
    assert among_labelled(p, (0.5, 1.0)).tolist() == [0.0, 0.2 / (0.2 + 0.8 * 0.5), 2 / 3, 1.0]
    assert among_labelled(p, (0.3, 0.3)) is p
