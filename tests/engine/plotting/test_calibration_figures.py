"""Reliability, coverage and PIT values drawn, `abers.plotting.calibration_figures`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from abers import ParameterError, plotting
from abers.monitoring import PrequentialScores
from abers.plotting import coverage, pit_histogram, reliability


def test_reliability_by_bins() -> None:
    """A point stands for each bin that has forecasts, with two standard errors of its share."""
    labels = [*[1] * 4, *[0] * 12, *[1] * 4]
    raw_forecasts = [*[0.125] * 16, 0.9, 1.0, 1.0, 0.9]
    views = {"raw": raw_forecasts, "calibrated": [0.5] * 20}
    diagonal, raw, calibrated = reliability(labels, views).data
    assert (diagonal.x, diagonal.y) == ((0.0, 1.0), (0.0, 1.0))
    assert (raw.name, raw.x, raw.y) == ("raw", (0.125, 0.95), (0.25, 1.0))
    assert raw.error_y.array == pytest.approx([2.0 * (0.25 * 0.75 / 16) ** 0.5, 0.0])
    assert (calibrated.x, calibrated.y, calibrated.customdata) == ((0.5,), (0.4,), (20.0,))
    assert calibrated.error_y.array == pytest.approx([2.0 * (0.4 * 0.6 / 20) ** 0.5])


def test_reliability_of_one_array() -> None:
    """An array of forecasts needs no name; its bins are those of `PrequentialScores`."""
    rng = np.random.default_rng(1)
    p = rng.random(500).round(2)
    y = rng.random(500) < p
    scores = PrequentialScores()
    scores.update_many(p, y)
    _, drawn = reliability(y, p, title="Mine").data
    assert drawn.name == "forecasts"
    assert drawn.customdata == tuple(one.labels for one in scores.bins())
    assert drawn.x == pytest.approx([one.forecast for one in scores.bins()])
    assert drawn.y == pytest.approx([one.share for one in scores.bins()])


def test_views_differ_by_more_than_colour() -> None:
    """Raw and calibrated have a dash and a marker of their own."""
    _, raw, calibrated = reliability([1], {"raw": [0.5], "calibrated": [0.5]}).data
    assert raw.line.color != calibrated.line.color
    assert raw.line.dash != calibrated.line.dash
    assert raw.marker.symbol != calibrated.marker.symbol


def test_coverage_against_nominal() -> None:
    """A point stands for each level; before the first label bars have no length."""
    diagonal, calibrated = coverage([0.5, 0.9], {"calibrated": [0.4, 1.0]}, 96).data
    assert diagonal.x == diagonal.y
    assert (calibrated.x, calibrated.y) == ((0.5, 0.9), (0.4, 1.0))
    assert calibrated.error_y.array == pytest.approx([0.1, 0.0])
    assert len(coverage([0.5], {"calibrated": [math.nan]}, 0).data) == 2


def test_a_histogram_is_a_density() -> None:
    """The bars have an area of 1, and chance is drawn around the height of 1."""
    drawn = pit_histogram([10, 30, 20, 40])
    bars, one, below, above = drawn.data
    assert sum(bars.y) / 4 == pytest.approx(1.0)
    assert bars.x == (0.125, 0.375, 0.625, 0.875)
    assert one.y == (1.0, 1.0)
    # A count is binomial: n/K expected, variance n (1/K) (1 - 1/K).
    deviation = math.sqrt(100 * 0.25 * 0.75) / 25
    assert above.y == pytest.approx([1 + 2 * deviation] * 2)
    assert below.y == pytest.approx([1 - 2 * deviation] * 2)


def test_chance_allows_no_negative_density() -> None:
    """With few labels the lower line of two standard errors is cut off at 0."""
    _, _, below, above = pit_histogram([1, 0, 0, 0]).data
    assert below.y == (0.0, 0.0)
    assert above.y == pytest.approx([1 + 2 * 3**0.5] * 2)


def test_a_histogram_of_nothing() -> None:
    """Before the first label all bars are empty."""
    assert pit_histogram(np.zeros(5)).data[0].y == (0.0,) * 5


def test_columns_that_do_not_belong_together() -> None:
    """A view whose columns are not equally long is named."""
    with pytest.raises(ParameterError, match="y has 1 rows, p has 2"):
        reliability([1], {"raw": [0.1, 0.9]})
    with pytest.raises(ParameterError, match=r"coverage of calibrated has shape \(1,\)"):
        coverage([0.5, 0.9], {"calibrated": [0.5]}, 10)


def test_a_histogram_stands_below_the_diagram() -> None:
    """Its heights are shares of the forecasts in equal bins, on an axis of its own below."""
    view, band = ([0.1, 0.9], [0.2, 0.9]), ([0.1, 0.9], [0.0, 0.8], [0.2, 1.0])
    counts = {"calibrated": [30, 10], "raw, 2024": [0, 5]}
    views = {"calibrated": view, "raw, 2024": view}
    drawn = plotting.corp.drawing(views, {"calibrated": band}, counts)
    below = [one for one in drawn.data if one.get("yaxis") == "y2"]
    assert [(one["name"], one["x"], one["y"]) for one in below] == [
        ("calibrated", [0.0, 0.5, 1.0], [0.75, 0.25, 0.25]),
        ("raw, 2024", [0.0, 0.5, 1.0], [0.0, 1.0, 1.0]),
    ]
    assert [one["customdata"] for one in below] == [[30, 10, 10], [0, 5, 5]]
    assert drawn.layout["yaxis2"]["domain"][1] < drawn.layout["yaxis"]["domain"][0]
    later = next(one for one in drawn.data if one["name"] == "raw, 2024")
    assert (later["line"]["dash"], later["mode"]) == ("dot", "lines")
