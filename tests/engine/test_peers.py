"""Known faults of other packages, each as a test that fails where abers has it too.

Governing rule: a name says whose fault it is, and what is wrong; what is right follows from the
definition. Faults of wrappers are named in tests/engine/learners.
"""

from __future__ import annotations

import numpy as np
import pytest

from abers import OneVsOne, OneVsRest, ScoreError, VennAbers, VennInterval
from abers.calibration import brier_merge
from abers.regression import IVAPR, IVAR


def calibrated(**options: float) -> VennAbers:
    """Make a calibrator of some labels."""
    calibrator = VennAbers(**options)  # type: ignore[arg-type]
    times = np.arange(5.0) if options else None
    calibrator.learn_many([0.1, 0.4, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1], times=times)
    return calibrator


def test_venn_abers_mean_interval_is_upside_down_with_tied_scores() -> None:
    """The interval for a mean has its ends in order, however many scores are equal."""
    calibrator = IVAR(0.0, 1.0)
    calibrator.learn_many([0.5] * 4 + [0.7] * 3, [0.0, 1.0, 0.2, 0.9, 0.1, 1.0, 0.4])
    for score in (0.4, 0.5, 0.6, 0.7, 0.8):
        low, high = calibrator.predict_one(score)
        assert low <= high


def test_venn_abers_a_score_that_is_no_number_gets_a_prediction() -> None:
    """NaN is refused, alone and in an array."""
    with pytest.raises(ScoreError, match="nan"):
        calibrated().predict_one(float("nan"))
    with pytest.raises(ScoreError, match="row 1"):
        calibrated().predict_many([0.5, float("nan")])


@pytest.mark.parametrize("kind", [OneVsRest, OneVsOne])
def test_venn_abers_labels_from_one_on_crash(kind: type[OneVsRest | OneVsOne]) -> None:
    """Whole numbers from 1 on are labels like any other."""
    calibrator = kind([1, 2, 3])
    calibrator.learn_many(np.full((3, 3), 1 / 3), [1, 2, 3])
    p, _, _ = calibrator.predict_many(np.full((1, 3), 1 / 3))
    assert p.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", [OneVsRest, OneVsOne])
def test_venn_abers_a_class_without_labels_loses_its_column(
    kind: type[OneVsRest | OneVsOne],
) -> None:
    """A class that was never a label keeps its place among the probabilities."""
    calibrator = kind(["a", "b", "c"])
    calibrator.learn_many(np.full((2, 3), 1 / 3), ["a", "b"])
    assert [*calibrator.predict_one({"a": 0.5, "b": 0.5}).p] == ["a", "b", "c"]


def test_mapie_the_upper_end_is_not_one_above_all_scores() -> None:
    """Above the largest score p1 is 1, and below the smallest p0 is 0, exactly."""
    assert calibrated().predict_one(0.9).p1 == 1.0
    assert calibrated().predict_one(0.05).p0 == 0.0


def test_online_cp_equal_scores_are_told_apart_by_their_arrival() -> None:
    """The order in which labels of one score arrive makes no difference."""
    one, other = VennAbers(), VennAbers()
    one.learn_many([0.5, 0.5, 0.5, 0.2], [0, 1, 1, 0])
    other.learn_many([0.5, 0.2, 0.5, 0.5], [1, 0, 1, 0])
    assert one.predict_one(0.5) == other.predict_one(0.5)
    assert one.to_bytes() == other.to_bytes()


def test_online_cp_the_brier_merge_is_the_plain_mean() -> None:
    """It is the mean drawn towards 1/2 by the width of the interval."""
    assert VennInterval(0.5, 1.0).brier == 0.75 + 0.5 * (0.5 - 0.75)
    assert brier_merge(np.array([0.5]), np.array([1.0])).tolist() == [0.625]


def test_streamcal_what_lies_between_is_interpolated_between_bins() -> None:
    """A prediction is that of its own score: it jumps where a score was seen, nowhere else."""
    calibrator = calibrated()
    below, above = calibrator.predict_many([0.41, 0.59])[0].tolist()
    assert below == above
    assert calibrator.predict_one(0.4) != calibrator.predict_one(0.41)


def test_streamcal_forgetting_counts_calls_and_not_time() -> None:
    """With a half-life the same labels weigh the same, however many calls lie between."""
    asked, left_alone = calibrated(half_life=2.0), calibrated(half_life=2.0)
    for _ in range(50):
        asked.predict_one(0.5, 4.0)
    assert asked.predict_one(0.5, 9.0) == left_alone.predict_one(0.5, 9.0)
    assert asked.to_bytes() == left_alone.to_bytes()


def test_calibrated_explanations_a_cdf_falls() -> None:
    """Both CDFs and the merged one rise with the threshold, and the lower is below the upper."""
    rng = np.random.default_rng(7)
    calibrator = IVAPR()
    scores = np.round(rng.random(80), 1)
    calibrator.learn_many(scores, np.round(scores + rng.normal(size=80), 1))
    thresholds = np.linspace(-4.0, 5.0, 181)
    for score in (0.0, 0.35, 0.5, 1.0):
        predicted = calibrator.predict_one(score)
        lower, upper = predicted.lower(thresholds), predicted.upper(thresholds)
        assert (np.diff(lower) >= 0.0).all()
        assert (np.diff(upper) >= 0.0).all()
        assert (np.diff(predicted.cdf(thresholds)) >= 0.0).all()
        assert (lower <= upper).all()


def test_isodistrreg_small_differences_are_rounded_away() -> None:
    """Scores and labels that differ in their last bit are different ones."""
    after = float(np.nextafter(0.5, 1.0))
    calibrator = IVAPR()
    calibrator.learn_many([0.5, after], [after, 0.5])
    assert calibrator.predict_one(0.5).thresholds.tolist() == [0.5, after]
