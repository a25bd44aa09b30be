"""Scores over time, `abers.monitoring.windows`, against lists that are kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.monitoring.scored import binary, regression

from abers.monitoring import (
    BinaryForecasts,
    BinaryMonitor,
    Monitor,
    RegressionMonitor,
    ScoredRows,
    WindowedMonitor,
    figures_over_time,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.monitoring import Figure, Number


class Kept(Monitor):
    """A monitor that stores all labels."""

    def __init__(self) -> None:
        """Start without labels."""
        self.labels: list[float] = []

    def update(self, scored: ScoredRows) -> None:
        """Store the labels of a batch."""
        assert scored.scores is not None
        assert scored.scores.tolist() == scored.labels.tolist()
        self.labels += scored.labels.tolist()

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Join the labels in order."""
        return cls.restore([label for one in many for label in one.labels])

    def summary(self) -> list[Number]:
        """Return no numbers."""
        return []

    def state(self) -> tuple[float, ...]:
        """Return all labels."""
        return tuple(self.labels)

    @classmethod
    def restore(cls, state: Sequence[float]) -> Self:
        """Return the monitor with these labels."""
        whole = cls()
        whole.labels = [*state]
        return whole


def filled(batches: list[int], most: int = 4) -> WindowedMonitor[Kept]:
    """Return windows of consecutive numbers, added in batches."""
    windowed = WindowedMonitor(Kept, most)
    for size in batches:
        labels = np.arange(windowed.count, windowed.count + size, dtype=float)
        windowed.update(ScoredRows(labels, scores=labels))
    return windowed


@given(
    batches=st.lists(st.integers(0, 60), max_size=12),
    most=st.sampled_from([2, 4, 10]),
    span=st.integers(1, 5),
)
def test_every_prediction_is_in_its_window(batches: list[int], most: int, span: int) -> None:
    """A window has the labels just before its end; none is lost, and there are not too many."""
    count = sum(batches)
    windowed = filled(batches, most)
    assert windowed.count == count
    windows = [*windowed.windows(span)]
    size, before = windowed.size, span - 1
    assert [one.end for one in windows] == [*range(size, count, size), *([count] if count else [])]
    assert len(windows) <= most
    assert size == 5 or len(windows) > most // 2  # no coarser than it has to be
    for row, one in enumerate(windows):
        first = max(row - before, 0) * size
        assert one.monitor.labels == [*map(float, range(first, one.end))]
        assert one.labels == len(one.monitor.labels)


@given(batches=st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_batches_make_no_difference(batches: list[int]) -> None:
    """However predictions are batched, the windows are the same."""
    one = [window.monitor.labels for window in filled(batches).windows()]
    other = [window.monitor.labels for window in filled([sum(batches)]).windows()]
    assert one == other


@pytest.mark.parametrize("count", [3, 1_000, 2_561, 100_000])
def test_all_windows_together_are_the_stream(count: int) -> None:
    """The last window over everything has the scores of the whole stream."""
    rng = np.random.default_rng(count)
    rows = np.sort(rng.random((count, 3)), axis=1)
    labels = (rng.random(count) < rows[:, 1]).astype(float)
    whole = BinaryMonitor(raw=True)
    whole.update(binary(rows, labels))
    windowed = WindowedMonitor(lambda: BinaryMonitor(raw=True))
    windowed.update(binary(rows, labels))
    *_, last = windowed.windows(span=256)
    assert last.labels == last.end == count
    for name, means in whole.views().items():
        assert last.monitor.views()[name] == pytest.approx(means)


def over_time(p1: list[float], label: list[float], *, raw: bool) -> dict[str, Figure]:
    """Return the figures of forecasts, a window of five each."""
    labels, p = np.repeat(label, 5), np.repeat(p1, 5)
    forecasts = {"calibrated": BinaryForecasts(p, labels)}
    if raw:
        forecasts["raw"] = BinaryForecasts(np.full(len(p), 0.5), labels)
    windowed = WindowedMonitor(lambda: BinaryMonitor(raw=raw))
    windowed.update(ScoredRows(labels, forecasts, np.zeros(len(p))))
    return {one.id: one for one in figures_over_time([*windowed.windows()])}


def test_figures_over_time() -> None:
    """Each number with a chart has a figure, whose points are the windows."""
    found = over_time([0.5, 1.0], [1.0, 1.0], raw=True)
    assert [*found] == ["over-log_loss", "over-brier", "over-width"]
    brier = found["over-brier"]
    assert (brier.title, brier.data["y_name"]) == ("Brier score over time", "squared error")
    assert brier.data["x"] == [5, 10]
    assert brier.data["views"] == {"raw": [0.25, 0.25], "calibrated": [0.25, 0.0]}
    assert brier.columns == ["labels so far", "over", "raw", "calibrated"]
    assert brier.rows == [[5, 5, 0.25, 0.25], [10, 5, 0.25, 0.0]]
    assert found["over-width"].data["views"] == {"calibrated": [0.0, 0.0]}


def test_a_view_without_a_number_has_no_line() -> None:
    """Without raw forecasts there is no raw line; values that are not finite are gaps."""
    found = over_time([0.5, 0.0], [0.0, 1.0], raw=False)
    loss = found["over-log_loss"]
    assert loss.columns == ["labels so far", "over", "calibrated"]
    assert loss.data["views"]["calibrated"] == [pytest.approx(0.6931, abs=1e-4), None]
    assert loss.rows[1] == [10, 5, None]


def test_a_number_that_is_never_finite_has_no_figure() -> None:
    """A line without a point is not drawn, and neither is a stream without a label."""
    assert "over-log_loss" not in over_time([0.0, 0.0], [1.0, 1.0], raw=False)
    assert figures_over_time([]) == []


def test_figures_say_what_they_leave_out() -> None:
    """The caption of a mean without infinite terms says so."""
    labels, quantiles = np.zeros(5), np.array([[-1.0, 0.0, 1.0]] * 5)
    windowed = WindowedMonitor(lambda: RegressionMonitor([0.25, 0.5, 0.75]))
    rows = np.column_stack([labels, quantiles])
    windowed.update(regression([0.25, 0.5, 0.75], rows, labels))
    pinball, width = figures_over_time([*windowed.recent()])
    assert pinball.caption.endswith("Infinite losses are left out.")
    assert (width.id, width.title) == ("over-width", "Width of the 50 % interval over time")
    assert width.caption.endswith("infinite or unknown.")
