"""Prequential scores, against their definitions written out over the whole list."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import LabelError, ScoreError
from abers.monitoring import PrequentialScores

# Edges of the bins, their neighbours and the ends, beside ordinary forecasts.
EDGES = [k / 10 for k in range(11)]
FORECASTS = st.one_of(
    st.floats(0, 1),
    st.sampled_from(EDGES),
    st.sampled_from([math.nextafter(edge, 0.0) for edge in EDGES]),
)
PAIRS = st.lists(st.tuples(FORECASTS, st.integers(0, 1)), min_size=1, max_size=60)


def scored(pairs: list[tuple[float, int]]) -> PrequentialScores:
    """Return the scores of a list of forecasts with their labels."""
    scores = PrequentialScores()
    for forecast, label in pairs:
        scores.update(forecast, label)
    return scores


def ece(pairs: list[tuple[float, int]]) -> float:
    """Return the expected calibration error by its definition, bin by bin."""
    total = 0.0
    for low, high in pairwise(EDGES):
        inside = [(p, y) for p, y in pairs if low <= p < high or (high == 1.0 and p == 1.0)]
        if inside:
            mean_p = sum(p for p, _ in inside) / len(inside)
            mean_y = sum(y for _, y in inside) / len(inside)
            total += len(inside) / len(pairs) * abs(mean_p - mean_y)
    return total


@given(PAIRS)
def test_scores_equal_their_definitions(pairs: list[tuple[float, int]]) -> None:
    """Count, Brier score and calibration error are those of the whole list at once."""
    scores = scored(pairs)
    assert scores.count == len(pairs)
    assert scores.brier == pytest.approx(sum((y - p) ** 2 for p, y in pairs) / len(pairs))
    assert scores.ece == pytest.approx(ece(pairs), abs=1e-12)


@given(PAIRS)
def test_log_loss_counts_what_is_infinite(pairs: list[tuple[float, int]]) -> None:
    """The log loss is the mean, or infinite with the number of impossible forecasts next to it."""
    given_to_label = [p if y else 1.0 - p for p, y in pairs]
    scores = scored(pairs)
    assert scores.infinite == given_to_label.count(0.0)
    if scores.infinite:
        assert scores.log_loss == math.inf
    else:
        expected = -sum(map(math.log, given_to_label)) / len(pairs)
        assert scores.log_loss == pytest.approx(expected)


@given(PAIRS)
def test_bins_hold_every_forecast_once(pairs: list[tuple[float, int]]) -> None:
    """Each bin has the mean forecast and the share of label 1 between its edges."""
    bins = scored(pairs).bins()
    for (low, high), found in zip(pairwise(EDGES), bins, strict=True):
        inside = [(p, y) for p, y in pairs if low <= p < high or (high == 1.0 and p == 1.0)]
        assert found.labels == len(inside)
        if inside:
            assert found.forecast == pytest.approx(sum(p for p, _ in inside) / len(inside))
            assert found.share == pytest.approx(sum(y for _, y in inside) / len(inside))
        else:
            assert math.isnan(found.forecast)
            assert math.isnan(found.share)


def test_an_edge_belongs_to_the_bin_above() -> None:
    """0.7 and the forecast just below it lie in different bins, so their errors do not cancel."""
    below = math.nextafter(0.7, 0.0)
    assert scored([(0.7, 1), (below, 0)]).ece == pytest.approx(0.5)
    assert scored([(0.7, 1), (0.75, 0)]).ece == pytest.approx(0.225)


def test_the_last_bin_is_closed_on_both_sides() -> None:
    """A forecast of 1 shares the last bin with a forecast of 0.9."""
    assert scored([(1.0, 0), (0.9, 1)]).ece == pytest.approx(0.45)


def test_nothing_scored_yet() -> None:
    """Before the first label every mean is NaN, not an error and not 0."""
    scores = PrequentialScores()
    assert scores.count == 0
    assert all(map(math.isnan, (scores.log_loss, scores.brier, scores.ece)))


@pytest.mark.parametrize("forecast", [-0.1, 1.5, math.nan, math.inf])
def test_a_forecast_outside_the_unit_interval_is_refused(forecast: float) -> None:
    """An invalid forecast is named in the error, and nothing is counted."""
    scores = PrequentialScores()
    with pytest.raises(ScoreError, match=str(forecast)):
        scores.update(forecast, 1)
    assert scores.count == 0


def test_a_label_that_is_none_is_refused() -> None:
    """A label outside {0, 1} raises, and nothing is counted."""
    scores = PrequentialScores()
    with pytest.raises(LabelError, match="2"):
        scores.update(0.5, 2)
    assert scores.count == 0
    assert math.isnan(scores.log_loss)
