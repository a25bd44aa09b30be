"""Known faults of other packages, each as a test that fails where abers has it too.

A name says whose fault it is, and what is wrong; what is right follows from the
definition. What venn-abers and MAPIE answer is shown next to it, by the smallest input that does,
in the releases of constraints.txt: when a release fixes a fault its test fails, and that half of it
goes. The other packages are not installed here. Faults of wrappers are named in
tests/engine/river and tests/engine/sklearn, but for those of MAPIE.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from mapie.calibration import VennAbersCalibrator
from scipy.optimize import isotonic_regression
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.conformance.peers import (
    EVERY_PEER,
    MAPIE,
    VENN_ABERS,
    coupled,
    ends,
    means,
    two_columns,
    unbounded_means,
)

from abers import LabelError, OneVsOne, OneVsRest, ScoreError, VennAbers, VennInterval
from abers.batch import IVAR, UnboundedIVAR
from abers.calibration import brier_merge, cross_log_merge
from abers.regression import IVAPR
from abers.sklearn import VennAbersCalibratedClassifier

if TYPE_CHECKING:
    from types import ModuleType

    from sklearn.pipeline import Pipeline


def calibrated(**options: float) -> VennAbers:
    """Make a calibrator of some labels."""
    calibrator = VennAbers(**options)  # type: ignore[arg-type]
    times = np.arange(5.0) if options else None
    calibrator.learn_many([0.1, 0.4, 0.4, 0.6, 0.8], [0, 1, 0, 1, 1], times=times)
    return calibrator


# venn-abers 1.5.4 and MAPIE 1.6.0, which has its code


def test_mapie_the_upper_end_is_not_one_above_all_scores() -> None:
    """Above the largest score p1 is 1, and below the smallest p0 is 0, exactly.

    MAPIE repeats the last slope there (venn-abers 1.4.6 did): after one label 0 it is 1/2, and so
    an object that scored higher than anything seen is merged to 1/3 instead of 1/2.
    """
    assert ends(MAPIE, [0.4], [0], [0.5]).tolist() == [[0.0, 0.5]]
    assert ends(VENN_ABERS, [0.4], [0], [0.5]).tolist() == [[0.0, 1.0]]
    alone = VennAbers()
    alone.learn_one(0.4, 0)
    assert alone.predict_one(0.5) == (0.0, 1.0)
    assert calibrated().predict_one(0.9).p1 == 1.0
    assert calibrated().predict_one(0.05).p0 == 0.0


def test_mapie_a_prefit_pipeline_is_fitted_anew() -> None:
    """What was fitted already stays as it is.

    MAPIE with cv="prefit" fits the transformers of a pipeline to the calibration data, so that the
    model is no longer asked what it was trained on.
    """

    def fitted() -> Pipeline:
        rng = np.random.default_rng(1)
        x = rng.normal(size=(50, 1))
        return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, x[:, 0] > 0)

    x, y = np.array([[10.0], [11.0], [12.0]]), np.array([False, True, True])
    theirs, ours = fitted(), fitted()
    mean = ours[0].mean_.item()
    VennAbersCalibrator(theirs, cv="prefit").fit(x, y)
    VennAbersCalibratedClassifier(ours, cv="prefit").fit(x, y)
    assert theirs[0].mean_.item() == 11.0
    assert ours[0].mean_.item() == mean


def test_venn_abers_mean_interval_is_upside_down_with_tied_scores() -> None:
    """The interval for a mean has its ends in order, however many scores are equal.

    The lower end of venn-abers takes one label of a tie for all of them.
    """
    scores, labels = [0.25, 0.5, 0.75, 0.75], [0.25, 0.25, 1.0, 1.0]
    assert means(scores, labels, [0.25]).tolist() == [[0.625, 0.5]]
    calibrator = IVAR(0.25, 1.0)
    calibrator.learn_many(scores, labels)
    assert calibrator.predict_one(0.25) == pytest.approx((0.25, 0.5))
    calibrator = IVAR(0.0, 1.0)
    calibrator.learn_many([0.5] * 4 + [0.7] * 3, [0.0, 1.0, 0.2, 0.9, 0.1, 1.0, 0.4])
    for score in (0.4, 0.5, 0.6, 0.7, 0.8):
        low, high = calibrator.predict_one(score)
        assert low <= high


def test_venn_abers_unbounded_mean_interval_is_upside_down_with_tied_scores() -> None:
    """Nor has the interval without bounds, which clips the labels before."""
    scores, labels = [0.75, 0.25, 0.75, 0.25], [1.0, 0.0, 1.0, 0.0]
    assert unbounded_means(scores, labels, [0.25])[0] == pytest.approx((1 / 2, 1 / 3))
    calibrator = UnboundedIVAR()
    calibrator.learn_many(scores, labels)
    assert calibrator.predict_one(0.25) == (0.0, 1 / 3, 0.0, 1.0)


@EVERY_PEER
def test_venn_abers_a_score_that_is_no_number_gets_a_prediction(peer: ModuleType) -> None:
    """NaN is refused, alone and in an array; it sorts above every score for both peers."""
    assert ends(peer, [0.2, 0.4], [0, 1], [float("nan")]).tolist() == [[0.5, 1.0]]
    with pytest.raises(ScoreError, match="nan"):
        calibrated().predict_one(float("nan"))
    with pytest.raises(ScoreError, match="row 1"):
        calibrated().predict_many([0.5, float("nan")])


@EVERY_PEER
def test_venn_abers_a_label_of_two_makes_a_probability_above_one(peer: ModuleType) -> None:
    """A label that is neither 0 nor 1 is refused."""
    assert ends(peer, [0.2, 0.4], [0, 2], [0.3]).tolist() == [[0.0, 1.5]]
    with pytest.raises(LabelError):
        VennAbers().learn_many([0.2, 0.4], [0, 2])


def test_venn_abers_rounds_what_it_learns_and_not_what_it_is_asked() -> None:
    """A score is rounded by a user who wishes it, before the question as well.

    With `precision` both peers round the calibration scores alone: 0.123 is learned as 0.12, so
    that a query of 0.123 is above it.
    """
    scores, labels = [0.123, 0.123, 0.5], [1, 0, 1]
    for peer in (VENN_ABERS, MAPIE):
        assert ends(peer, scores, labels, [0.123]).tolist() == [[1 / 3, 2 / 3]]
        assert ends(peer, scores, labels, [0.123], precision=2).tolist() == [[1 / 3, 1.0]]
    calibrator = VennAbers()
    calibrator.learn_many(np.round(scores, 2), labels)
    assert calibrator.predict_one(round(0.123, 2)) == (1 / 3, 2 / 3)


def test_venn_abers_labels_from_one_on_crash() -> None:
    """Whole numbers from 1 on are labels like any other; MAPIE takes them too."""
    thirds = np.full((3, 3), 1 / 3)
    for name in ("one_vs_one", "one_vs_all"):
        with pytest.raises(IndexError):
            coupled(VENN_ABERS, thirds, [1, 2, 3], thirds, name)
        assert coupled(MAPIE, thirds, [1, 2, 3], thirds, name).sum() == pytest.approx(3.0)
    for kind in (OneVsRest, OneVsOne):
        calibrator = kind([1, 2, 3])
        calibrator.learn_many(thirds, [1, 2, 3])
        assert calibrator.predict_many(thirds)[0].sum() == pytest.approx(3.0)


@EVERY_PEER
@pytest.mark.parametrize("name", ["one_vs_one", "one_vs_all"])
def test_venn_abers_a_class_without_labels_loses_its_column(peer: ModuleType, name: str) -> None:
    """A class that was never a label keeps its place among the probabilities."""
    assert coupled(peer, np.full((3, 3), 1 / 3), [0, 1, 1], np.full((1, 3), 1 / 3), name).size == 2
    for kind in (OneVsRest, OneVsOne):
        calibrator = kind(["a", "b", "c"])
        calibrator.learn_many(np.full((2, 3), 1 / 3), ["a", "b"])
        assert [*calibrator.predict_one({"a": 0.5, "b": 0.5}).p] == ["a", "b", "c"]


def test_mapie_a_class_without_labels_lends_its_scores() -> None:
    """The score of a class is its own column, whichever classes have been labels.

    With labels 0 and 2 MAPIE takes the second column for class 2, whose own score means nothing.
    """
    scores, labels = np.array([[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]]), [0, 2]
    sure, unsure = np.array([[0.1, 0.1, 0.8]]), np.array([[0.1, 0.1, 0.0]])
    kind = "one_vs_one"
    same = [coupled(MAPIE, scores, labels, queries, kind).tolist() for queries in (sure, unsure)]
    assert same[0] == same[1]
    calibrator = OneVsOne([0, 1, 2])
    calibrator.learn_many(scores, labels)
    (one,), (other,) = (calibrator.predict_many(queries)[0] for queries in (sure, unsure))
    assert one[2] > other[2]


def test_venn_abers_the_brier_merge_is_not_made() -> None:
    """The Brier merge of (1/2, 1) is 5/8; given scores, venn-abers makes the log merge, 2/3."""
    scores, labels = two_columns([0.1, 0.4, 0.35, 0.8]), np.array([0, 1, 0, 1])
    found = VENN_ABERS.VennAbersCalibrator().predict_proba(
        p_cal=scores, y_cal=labels, p_test=two_columns([0.5]), loss="brier"
    )
    assert found[0, 1] == pytest.approx(2 / 3)
    calibrator = VennAbers()
    calibrator.learn_many(scores[:, 1], labels)
    assert calibrator.predict_one(0.5).merged_brier == 5 / 8


@pytest.mark.native
def test_venn_abers_many_folds_underflow() -> None:
    """The geometric mean of a hundred ends of 1/2001 is 1/2001; a product of them is 0."""
    low, high = np.zeros((1, 100)), np.full((1, 100), 1 / 2001)
    assert VENN_ABERS.geo_mean(high).tolist() == [0.0]
    assert cross_log_merge(low, high)[0] == pytest.approx(1 / 2002)


@pytest.mark.once
def test_venn_abers_silences_numpy_when_imported() -> None:
    """An import changes nothing: with venn-abers the program's own divisions by 0 go unnoticed."""
    for package, setting in (("venn_abers", "ignore"), ("abers", "warn")):
        words = f"import numpy, {package}; print(numpy.geterr()['divide'])"
        ran = subprocess.run([sys.executable, "-c", words], capture_output=True, check=True)
        assert ran.stdout.decode().strip() == setting


# Others


def test_scikit_learn_small_differences_are_rounded_away() -> None:
    """Scores that differ by less than 1e-15 are different ones."""
    scores, labels = [1e-16, 2e-16, 3e-16], [0, 1, 1]
    theirs = IsotonicRegression().fit(scores, labels).predict(scores)
    assert theirs == pytest.approx([2 / 3] * 3)
    calibrator = VennAbers()
    calibrator.learn_many(scores, labels)
    assert [calibrator.isotonic(score) for score in scores] == [0.0, 1.0, 1.0]


def test_scipy_separates_equal_scores_by_their_place() -> None:
    """Equal scores are pooled; scipy is given no scores, and leaves that to its users."""
    labels = [0, 1, 1, 0]
    assert isotonic_regression(labels).x == pytest.approx([0.0, 2 / 3, 2 / 3, 2 / 3])
    calibrator = VennAbers()
    calibrator.learn_many([0.5] * 4, labels)
    assert calibrator.isotonic(0.5) == 0.5


def test_online_cp_separates_equal_scores_by_their_arrival() -> None:
    """The order in which labels of one score arrive makes no difference."""
    one, other = VennAbers(), VennAbers()
    one.learn_many([0.5, 0.5, 0.5, 0.2], [0, 1, 1, 0])
    other.learn_many([0.5, 0.2, 0.5, 0.5], [1, 0, 1, 0])
    assert one.predict_one(0.5) == other.predict_one(0.5)
    assert one.to_bytes() == other.to_bytes()


def test_online_cp_the_brier_merge_is_the_plain_mean() -> None:
    """It is the mean drawn towards 1/2 by the width of the interval."""
    assert VennInterval(0.5, 1.0).merged_brier == 0.75 + 0.5 * (0.5 - 0.75)
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
