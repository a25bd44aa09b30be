"""Distributions drawn, `abers.plotting.distribution_figures`, read back from the figure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from abers import ParameterError
from abers.batch import BetaCDF
from abers.plotting import band, curve, fan_chart, interval_bars
from abers.regression import PredictiveDistribution

BAND = PredictiveDistribution([1.0, 2.0], [0.0, 0.25, 0.75], [0.25, 0.75, 1.0])
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def traces(drawn: Any) -> dict[str, Any]:  # noqa: ANN401 - a figure
    """Return the traces by name."""
    return {trace.name: trace for trace in drawn.data if trace.name}


def height(trace: Any, t: float) -> float:  # noqa: ANN401 - a trace
    """Return the value of a step function: horizontal first, then vertical."""
    assert trace.line.shape == "hv"
    return float(trace.y[np.searchsorted(trace.x, t, side="right") - 1])


@given(
    steps=st.sets(st.integers(-20, 20), max_size=6),
    label=st.none() | st.integers(-40, 40),
    seed=st.integers(0, 99),
)
def test_a_band_is_drawn_as_it_is(steps: set[int], label: int | None, seed: int) -> None:
    """All three CDFs have their values along the whole axis, up to both ends."""
    values = np.sort(np.random.default_rng(seed).random((2, len(steps) + 1)))
    values.sort(axis=0)
    distribution = PredictiveDistribution(sorted(map(float, steps)), *values)
    drawn = distribution.plot(label, name="metres")
    low, high = drawn.layout.xaxis.range
    assert (drawn.layout.xaxis.title.text, low < high) == ("metres", True)
    places = [*distribution.thresholds.tolist(), *([] if label is None else [label])]
    assert all(low < place < high for place in places)
    found = traces(drawn)
    for name, cdf in (
        ("lower CDF", distribution.lower),
        ("upper CDF", distribution.upper),
        ("merged CDF", distribution.cdf),
    ):
        assert (found[name].x[0], found[name].x[-1]) == (low, high)
        for t in np.linspace(low, high, 23).tolist():
            assert height(found[name], t) == cdf(t)
    assert found["upper CDF"].fill == "tonexty"  # next: the lower CDF, drawn just before
    assert [trace.name for trace in drawn.data][:2] == ["lower CDF", "upper CDF"]
    assert ("label" in found) == (label is not None)


def test_masses_at_infinity_are_shown() -> None:
    """Annotations at the corners show the mass beyond the axis, if any."""
    notes = [note.text for note in BAND.plot().layout.annotations]
    assert notes == ["20 % below all thresholds", "20 % above all thresholds"]
    whole = PredictiveDistribution([1.0, 2.0], [0.0, 0.5, 1.0])
    assert whole.plot().layout.annotations == ()


def test_a_label_is_a_line_of_its_own() -> None:
    """The label is a vertical line at its value, and widens the axis."""
    drawn = BAND.plot(9.0)
    assert (traces(drawn)["label"].x, traces(drawn)["label"].y) == ((9.0, 9.0), (0.0, 1.0))
    assert drawn.layout.xaxis.range[1] > 9.0


@pytest.mark.parametrize("label", [math.nan, math.inf])
def test_a_label_that_is_no_number(label: float) -> None:
    """A label that is not finite cannot be drawn."""
    with pytest.raises(ParameterError, match=r"label=.* is not a finite number"):
        BAND.plot(label)


@pytest.mark.parametrize("place", [0.0, 5.0, -3e300])
def test_one_step_has_a_width(place: float) -> None:
    """An axis has a margin around a single threshold, and around none."""
    drawn = band([place], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0])
    low, high = drawn.layout.xaxis.range
    assert low < place < high
    nothing = band([], [0.0], [1.0], [0.5])
    assert nothing.layout.xaxis.range[0] < nothing.layout.xaxis.range[1]
    assert traces(nothing)["upper CDF"].y == (1.0, 1.0)


def test_an_axis_ends_where_numbers_do() -> None:
    """The largest doubles have no margin around them, and are drawn."""
    most = 1.7976931348623157e308
    assert band([-most, most], [0, 0, 1], [0, 1, 1], [0, 0.5, 1]).layout.xaxis.range == (
        -most,
        most,
    )


@pytest.mark.parametrize("label", [None, 40.0])
def test_a_continuous_cdf(label: float | None) -> None:
    """Its points are those of the CDF, from the lowest to the highest that are drawn."""
    normal = stats.norm(5.0, 2.0)
    drawn = BetaCDF().distribution(normal).plot(label, name="metres")  # it has learned nothing
    found = traces(drawn)
    low, high = drawn.layout.xaxis.range
    assert low < found["CDF"].x[0] < found["CDF"].x[-1] < high
    assert found["CDF"].y == pytest.approx(normal.cdf(found["CDF"].x))
    assert found["CDF"].y[0] == pytest.approx(0.0025)
    assert found["CDF"].y[-1] == pytest.approx(0.9975)
    assert ("label" in found, high > 40.0) == (label is not None,) * 2


def test_a_fan_is_sorted_by_its_places() -> None:
    """Each interval lies between its two quantiles, the widest behind the others."""
    quantiles = np.arange(15.0).reshape(3, 5)
    labels = [2.5, 7.5, 12.5]
    drawn = fan_chart([3.0, 1.0, 2.0], quantiles, LEVELS, labels=labels, scores=labels)
    names = [trace.name for trace in drawn.data]
    assert names == ["", "90 %", "", "50 %", "median", "raw", "label"]
    assert all(trace.x == (1.0, 2.0, 3.0) for trace in drawn.data)
    order = [1, 2, 0]
    for row, column in enumerate([0, 4, 1, 3, 2]):
        assert drawn.data[row].y == tuple(quantiles[order, column])
    assert [drawn.data[row].fill for row in (1, 3)] == ["tonexty", "tonexty"]
    assert drawn.data[6].y == (7.5, 12.5, 2.5)


def test_an_interval_without_an_end_fills_the_figure() -> None:
    """An infinite quantile is drawn at the edge of the figure, beyond everything that is finite."""
    quantiles = [[-math.inf, 1.0, math.inf], [0.0, 1.0, 2.0]]
    drawn = fan_chart([1, 2], quantiles, [0.1, 0.5, 0.9], labels=[1.0, 5.0])
    low, high = drawn.layout.yaxis.range
    assert (low < 0.0, high > 5.0) == (True, True)
    assert (drawn.data[0].y, drawn.data[1].y) == ((low, 0.0), (high, 2.0))


def test_without_a_median() -> None:
    """Levels without a median are valid."""
    drawn = fan_chart([1], [[0.0, 1.0]], [0.25, 0.75])
    assert [*traces(drawn)] == ["50 %"]


@pytest.mark.parametrize("levels", [[0.1, 0.5, 0.8], [0.5, 0.6], [0.1]])
def test_levels_that_bound_no_intervals(levels: list[float]) -> None:
    """Levels that have no counterpart bound no central interval."""
    with pytest.raises(ParameterError, match="are not symmetric; give 1 - q for each q"):
        fan_chart([1], [[0.0] * len(levels)], levels)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"quantiles": [[0.0, 1.0]]}, r"quantiles has shape \(1, 2\), not \(2, 2\)"),
        ({"quantiles": [[0.0], [1.0]]}, r"quantiles has shape \(2, 1\), not \(2, 2\)"),
        ({"labels": [1.0]}, r"labels has shape \(1,\), not \(2,\); give one for each"),
        ({"scores": 1.0}, r"scores has shape \(\), not \(2,\)"),
    ],
)
def test_arrays_that_do_not_belong_together(more: dict[str, Any], message: str) -> None:
    """The error names the array that is too short or too long."""
    rest: dict[str, Any] = {"x": [1.0, 2.0], "quantiles": [[0.0, 1.0]] * 2, "levels": [0.1, 0.9]}
    with pytest.raises(ParameterError, match=message):
        fan_chart(**(rest | more))


def test_a_cdf_of_another_length() -> None:
    """A CDF has a value before the first threshold and after each one."""
    with pytest.raises(ParameterError, match=r"heights has shape \(1,\), not \(2,\)"):
        curve([1.0, 2.0], [0.5])
    with pytest.raises(ParameterError, match=r"upper has shape \(1,\), not \(2,\)"):
        band([1.0], [0.0, 1.0], [1.0], [0.0, 1.0])


def test_bars_of_intervals_stand_apart() -> None:
    """Each prediction has a bar a level, infinite ends reach the edge, half of a gap is free."""
    quantiles = [[0.0, 1.0, 2.0], [-np.inf, 2.0, 3.0]]
    drawn = interval_bars.drawing([2, 6], quantiles, [0.1, 0.5, 0.9], [1.5, 9.0])
    low, _ = drawn.layout["yaxis"]["range"]
    bars, median, label = drawn.data
    assert (bars["x"], bars["width"], bars["base"]) == ([2.0, 6.0], 2.0, [0.0, low])
    assert bars["y"] == [2.0, 3.0 - low]
    assert (median["y"], median["mode"]) == ([1.0, 2.0], "markers")
    assert label["y"] == [1.5, 9.0]
    with pytest.raises(ParameterError, match="symmetric"):
        interval_bars.drawing([1], [[0.0, 1.0]], [0.1, 0.5], [1.0])
