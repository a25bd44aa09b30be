"""The monitor of a binary calibrator, against separate scores and intervals."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.monitoring.scored import binary

from abers import LabelError, ScoreError, VennInterval
from abers.monitoring import BinaryMonitor, PrequentialScores

SHARES = st.floats(0, 1)
ROWS = st.tuples(SHARES, SHARES, SHARES).map(lambda row: (row[0], *sorted(row[1:])))
SETTLED = st.lists(st.tuples(ROWS, st.integers(0, 1)), min_size=1, max_size=30)
Settled = list[tuple[tuple[float, ...], int]]


def watched(settled: Settled, *, raw: bool = True, cuts: tuple[int, ...] = ()) -> BinaryMonitor:
    """Score predictions, in batches that end at the cuts."""
    monitor = BinaryMonitor(raw=raw)
    ends = [0, *sorted({min(cut, len(settled)) for cut in cuts} - {0, len(settled)}), len(settled)]
    for start, end in pairwise(ends):
        rows = np.array([row for row, _ in settled[start:end]])
        labels = np.array([label for _, label in settled[start:end]], float)
        monitor.update(binary(rows, labels, raw=raw))
    return monitor


@given(settled=SETTLED)
def test_both_views_and_the_width(settled: Settled) -> None:
    """Raw scores are scored as they are, calibrated ones by the log merge; the width is a mean."""
    monitor = watched(settled)
    raw, calibrated = PrequentialScores(), PrequentialScores()
    for (score, p0, p1), label in settled:
        raw.update(score, label)
        calibrated.update(VennInterval(p0, p1).merged, label)
    assert monitor.raw is not None
    assert monitor.raw.state() == raw.state()
    assert monitor.calibrated.state() == calibrated.state()
    widths = [p1 - p0 for (_, p0, p1), _ in settled]
    assert monitor.mean_width == pytest.approx(math.fsum(widths) / len(widths), abs=1e-12)


@given(settled=SETTLED, cuts=st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_batches_make_no_difference(settled: Settled, cuts: tuple[int, int]) -> None:
    """However predictions are batched, the sums are equal to the last bit."""
    assert watched(settled, cuts=cuts).state() == watched(settled).state()


@given(settled=SETTLED, raw=st.booleans())
def test_restored(settled: Settled, raw: bool) -> None:  # noqa: FBT001
    """A restored monitor goes on as the saved one would have."""
    monitor = watched(settled, raw=raw)
    other = BinaryMonitor.restore(monitor.state())
    for one in (monitor, other):
        one.update(binary(np.array([[0.5, 0.25, 0.75]]), np.array([1.0])))
    assert other.state() == monitor.state()


def test_restored_from_a_state_without_diagrams() -> None:
    """A state saved without a diagram is restored with an empty diagram."""
    width, calibrated, _ = watched([((0.5, 0.25, 0.75), 1)], raw=False).state()
    monitor = BinaryMonitor.restore((width, calibrated[:6], None))
    monitor.update(binary(np.array([[0.5, 0.25, 0.75]]), np.array([1.0])))
    assert monitor.calibrated.count == 2
    assert monitor.calibrated.reliability is not None
    assert monitor.calibrated.reliability.count == 1


@given(parts=st.lists(SETTLED, min_size=1, max_size=3))
def test_total(parts: list[Settled]) -> None:
    """Monitors added up are the monitor of all predictions together."""
    total = BinaryMonitor.total([watched(part) for part in parts])
    whole = watched([one for part in parts for one in part])
    assert total.calibrated.count == whole.calibrated.count
    assert total.calibrated.brier == pytest.approx(whole.calibrated.brier)
    assert total.calibrated.ece == pytest.approx(whole.calibrated.ece, abs=1e-12)
    assert total.mean_width == pytest.approx(whole.mean_width, abs=1e-12)
    assert total.raw is not None
    assert whole.raw is not None
    assert total.raw.infinite == whole.raw.infinite
    assert total.raw.reliability is not None
    assert whole.raw.reliability is not None
    assert total.raw.reliability.state() == whole.raw.reliability.state()


def test_scores_that_are_no_probabilities() -> None:
    """Without raw forecasts any score is accepted, and none is scored."""
    monitor = watched([((17.0, 0.5, 0.5), 1)], raw=False)
    assert monitor.raw is None
    assert monitor.calibrated.brier == 0.25


def test_nothing_yet() -> None:
    """Before the first label the mean width is not a number."""
    assert math.isnan(BinaryMonitor(raw=True).mean_width)


@pytest.mark.parametrize(
    ("forecasts", "labels", "error"),
    [
        ([0.5, 1.5], [0, 1], ScoreError),
        ([0.5, math.nan], [0, 1], ScoreError),
        ([0.5, 0.5], [0, 2], LabelError),
    ],
)
def test_a_bad_row_counts_nothing(
    forecasts: list[float], labels: list[int], error: type[Exception]
) -> None:
    """A batch with one forecast or label that cannot be used is not counted at all."""
    scores = PrequentialScores()
    with pytest.raises(error):
        scores.update_many(forecasts, labels)
    assert scores.state() == PrequentialScores().state()
