"""Quantile calibration, `abers.batch.pit_maps`: against counting."""

from __future__ import annotations

import pickle
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

from abers import ParameterError, ScoreError, StateError
from abers.arrays import packed
from abers.batch import QuantileCalibration
from abers.regression import PredictiveDistribution
from abers.serialization import pack, seal

PITS = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(0.0, 1.0))
MANY = st.lists(PITS, max_size=20)


def taught(values: Any, **options: Any) -> QuantileCalibration:  # noqa: ANN401 - anything it takes
    """Make a calibrator that has learned the values."""
    calibrator = QuantileCalibration(**options)
    calibrator.learn_many(values)
    return calibrator


@given(MANY.filter(len), st.lists(PITS))
def test_a_probability_is_mapped_to_the_share_of_values_up_to_it(
    values: list[float], asked: list[float]
) -> None:
    """The map is a count over n, for a number and for an array."""
    calibrator = taught(values)
    expected = [sum(v <= u for v in values) / len(values) for u in asked]
    assert [calibrator.calibrated(u) for u in asked] == expected
    assert calibrator.calibrated(np.array(asked).reshape(1, -1)).tolist() == [expected]


@given(MANY, st.integers(1, 6))
def test_a_window_keeps_the_last_values(values: list[float], window: int) -> None:
    """One by one and at once, what is left is the last `window` values."""
    many, one = taught(values, window=window), QuantileCalibration(window=window)
    for value in values:
        one.learn_one(value)
    assert many.to_bytes() == one.to_bytes()
    grid = np.linspace(0.0, 1.0, 21)
    assert np.array_equal(one.calibrated(grid), taught(values[-window:]).calibrated(grid))
    assert len(one) == min(window, len(values))


@given(MANY.filter(len))
def test_a_continuous_base_has_its_cdf_mapped_everywhere(values: list[float]) -> None:
    """The steps lie where the base CDF reaches the values, those of 0 and 1 at infinity."""
    base, calibrator = stats.norm(3.0, 2.0), taught(values)
    found = calibrator.distribution(base)
    t = np.linspace(-4.0, 10.0, 57)
    # A value may be the base CDF at a point of the grid, where rounding decides.
    near = np.abs(base.cdf(t)[:, None] - np.array(values)).min(axis=1) < 1e-12
    assert np.array_equal(found.cdf(t)[~near], calibrator.calibrated(base.cdf(t))[~near])
    assert found.mass_below == values.count(0.0) / len(values)


def test_steps_at_the_ends_of_a_bounded_base_are_kept() -> None:
    """A value of 1 is a step at the upper end of the base's support, not a loss of mass."""
    found = taught([0.25, 0.5, 0.5, 1.0]).distribution(stats.uniform(0.0, 4.0))
    assert found.thresholds.tolist() == [1.0, 2.0, 4.0]
    assert found.cdf(found.thresholds).tolist() == [0.25, 0.75, 1.0]


@given(MANY.filter(len))
def test_a_step_base_has_its_merged_cdf_mapped(values: list[float]) -> None:
    """At every threshold and before the first the merged CDF is mapped; the support stays."""
    base = PredictiveDistribution(
        [1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0], support=(-5.0, 5.0)
    )
    calibrator = taught(values)
    found = calibrator.distribution(base)
    t = np.array([0.0, 1.0, 1.5, 2.0, 3.0])
    assert np.array_equal(found.cdf(t), calibrator.calibrated(base.cdf(t)))
    assert found.support == (-5.0, 5.0)


def test_an_empty_calibrator_is_vacuous() -> None:
    """It says 1/2 of everything and its distributions rule nothing out."""
    empty = QuantileCalibration()
    step = PredictiveDistribution([1.0], [0.0, 1.0], support=(0.0, 2.0))
    assert empty.calibrated(0.1) == 0.5
    assert empty.distribution(step).support == (0.0, 2.0)
    for found in (empty.distribution(step), empty.distribution(stats.norm())):
        assert (found.lower(3.0), found.upper(-3.0), found.cdf(0.0)) == (0.0, 1.0, 0.5)


def test_it_mends_a_base_that_is_too_narrow() -> None:
    """Intervals of a base with half the true spread are calibrated after 5 000 labels."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=7_000)
    y = centres + rng.normal(size=7_000)
    calibrator = taught(stats.norm(centres, 0.5).cdf(y)[:5_000])
    u = calibrator.calibrated(stats.norm(centres, 0.5).cdf(y)[5_000:])
    assert np.mean((u > 0.1) & (u <= 0.9)) == pytest.approx(0.8, abs=0.03)
    low, high = calibrator.distribution(stats.norm(0.0, 0.5)).interval(0.8)
    assert (low, high) == pytest.approx(stats.norm.interval(0.8), abs=0.08)


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan, np.inf, "much", None])
def test_what_is_no_probability_is_refused(bad: Any) -> None:  # noqa: ANN401
    """Nothing is learned, and a batch names the row."""
    calibrator = taught([0.5])
    before = calibrator.to_bytes()
    with pytest.raises(ScoreError):
        calibrator.learn_one(bad)
    with pytest.raises(ScoreError, match="row 1"):
        calibrator.learn_many([0.1, bad])
    assert calibrator.to_bytes() == before


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_only_probabilities_are_mapped(bad: float) -> None:
    """Others are refused, in an array too."""
    with pytest.raises(ScoreError, match="not in"):
        taught([0.5]).calibrated(bad)
    with pytest.raises(ScoreError, match="not in"):
        taught([0.5]).calibrated(np.array([[0.5], [bad]]))


def test_a_base_without_quantiles_in_order_is_refused() -> None:
    """A base whose quantiles are NaN, such as a normal of spread 0, is named."""
    with pytest.raises(ParameterError, match="fix its ppf"):
        taught([0.2, 0.5]).distribution(stats.norm(0.0, -1.0))


def test_a_window_is_a_positive_number() -> None:
    """Anything else is refused."""
    with pytest.raises(ParameterError, match="window=0"):
        QuantileCalibration(window=0)


@pytest.mark.parametrize("options", [{}, {"window": 3}])
def test_a_saved_calibrator_goes_on_as_before(options: dict[str, int]) -> None:
    """Saved and pickled ones stay equal through more labels."""
    calibrator = taught([0.9, 0.1, 0.4, 0.4], **options)
    others = [QuantileCalibration.from_bytes(calibrator.to_bytes())]
    others.append(pickle.loads(pickle.dumps(calibrator)))  # noqa: S301 - own bytes
    for each in (calibrator, *others):
        each.learn_one(0.7)
        assert each.to_bytes() == calibrator.to_bytes()
        assert repr(each) == repr(calibrator)
    assert bool(QuantileCalibration())
    assert calibrator.window == options.get("window")


def test_the_order_of_arrival_does_not_show_without_a_window() -> None:
    """Saved bytes are in canonical order."""
    assert taught([0.1, 0.9]).to_bytes() == taught([0.9, 0.1]).to_bytes()


def test_damaged_and_senseless_bytes_are_refused() -> None:
    """Changed bytes, and good seals over values that no calibrator holds, are no calibrator."""
    blob = taught([0.1, 0.9], window=3).to_bytes()
    for at in range(len(blob)):
        with pytest.raises(StateError):
            QuantileCalibration.from_bytes(blob[:at] + bytes([blob[at] ^ 1]) + blob[at + 1 :])
    window = np.array([0, 2], "<u8")

    def column(values: Any) -> bytes:  # noqa: ANN401
        return b"".join(packed(np.array(values)))

    for pieces in (
        [window[:1].tobytes(), column([0.9, 0.1])],
        [window[1:].tobytes(), column([0.1, 0.2, 0.3])],
        [window[:1].tobytes(), column([1.5])],
        [window[:1].tobytes(), column(np.array([0, 1], np.uint8))],
        [window[:1].tobytes(), column([0.5])[:-1]],
        [window[:1].tobytes()],
    ):
        with pytest.raises(StateError):
            QuantileCalibration.from_bytes(seal(b"abersQC\x01", pack(pieces)))
