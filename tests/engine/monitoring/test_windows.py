"""Scores over time, `abers.monitoring.windows`, against lists that are kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self, TypeVar

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
    Totals,
    WindowedMonitor,
    axis_dates,
    figures_over_time,
    joined_windows,
    recent_windows,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from abers.monitoring import Figure, Number


M = TypeVar("M", bound=Monitor)


class Kept(Monitor):
    """A monitor of sums: the number of its labels, their sum, and that of their squares."""

    name = "kept"

    def __init__(self) -> None:
        """Start without labels."""
        self.sums = [0, 0, 0]

    def update(self, scored: ScoredRows) -> None:
        """Add the labels of a batch."""
        assert scored.scores is not None
        assert scored.scores.tolist() == scored.labels.tolist()
        labels = [int(one) for one in scored.labels.tolist()]
        self.sums = sums([*labels], self.sums)

    @classmethod
    def total(cls, many: Sequence[Self]) -> Self:
        """Add the sums."""
        return cls.restore(
            [sum(column) for column in zip(*(one.sums for one in many), strict=True)]
        )

    def summary(self) -> list[Number]:
        """Return no numbers."""
        return []

    def state(self) -> tuple[int, ...]:
        """Return the sums."""
        return tuple(self.sums)

    @classmethod
    def restore(cls, state: Sequence[int]) -> Self:
        """Return the monitor with these sums."""
        whole = cls()
        whole.sums = [*state]
        return whole


def windowed_by(kind: type[M], most: int = 64) -> WindowedMonitor[M]:
    """Return empty windows of a monitor."""
    return WindowedMonitor(lambda totals: kind.restore(totals[kind.name]), most)


def sums(labels: Iterable[int], before: Sequence[int] = (0, 0, 0)) -> list[int]:
    """Return the sums of labels and of what was before."""
    columns = zip(*((1, one, one * one) for one in labels), strict=True)
    return [a + b for a, b in zip(before, map(sum, columns), strict=False)] or [*before]


def time(number: int) -> int:
    """Return the event time of a label: out of order, and different for each."""
    return 1_000 * (number ^ 3) + 7


def filled(batches: list[int], most: int = 4) -> tuple[WindowedMonitor[Kept], Kept]:
    """Return windows of consecutive numbers, added in batches, and their monitor."""
    windowed, monitor = windowed_by(Kept, most), Kept()
    for size in filter(None, batches):
        numbers = range(windowed.count, windowed.count + size)
        labels = np.array(numbers, np.float64)
        times = np.array([time(one) for one in numbers])
        windowed.update(monitor, ScoredRows(labels, scores=labels), times)
    return windowed, monitor


@given(
    batches=st.lists(st.integers(0, 300), max_size=12),
    most=st.sampled_from([2, 4, 10]),
)
def test_every_prediction_is_in_its_window(batches: list[int], most: int) -> None:
    """All windows but the last are equally long, none is lost, and there are not too many."""
    count = sum(batches)
    windowed, monitor = filled(batches, most)
    assert windowed.count == count
    assert monitor.sums == sums(range(count))
    windows, size = windowed.windows(monitor), windowed.size
    assert [one.end for one in windows] == [*range(size, count, size), *([count] if count else [])]
    assert len(windows) <= most
    assert size == 40 or len(windows) > most // 2  # no coarser than it has to be
    first = 0
    for one in windows:
        numbers = range(first, one.end)
        assert one.monitor.sums == sums(numbers)
        assert one.labels == len(numbers)
        assert (one.first, one.last) == (min(map(time, numbers)), max(map(time, numbers)))
        first = one.end


@given(batches=st.lists(st.integers(0, 300), min_size=1, max_size=12), more=st.integers(0, 200))
def test_batches_and_restarts_make_no_difference(batches: list[int], more: int) -> None:
    """However predictions are batched, and after a restart, the windows are the same."""
    one, monitor = filled(batches)
    other = filled([1] * sum(batches))[0]
    assert one.state() == other.state()
    restored, rest = windowed_by(Kept, 4), Kept.restore(monitor.state())
    restored.load(*one.state())
    whole, all_of_it = filled([*batches, more])
    labels = np.arange(one.count, one.count + more, dtype=np.float64)
    times = np.array([time(int(number)) for number in labels], np.int64)
    if more:
        restored.update(rest, ScoredRows(labels, scores=labels), times)
    assert restored.state() == whole.state()
    windows = zip(restored.windows(rest), whole.windows(all_of_it), strict=True)
    assert all(a.monitor.sums == b.monitor.sums and a[:4] == b[:4] for a, b in windows)


@pytest.mark.parametrize(
    "spoilt",
    [
        (-1, 0, 0, []),
        (10, 0, 0, [Totals(40, 0, 1, (1, 1, 1))]),
        (90, 0, 0, [Totals(80, 0, 1, (1, 1, 1)), Totals(40, 0, 1, (1, 1, 1))]),
        (90, 0, 0, [Totals(40, 2, 1, (1, 1, 1))]),
        (90, 0, 0, [Totals(40 * n, 0, 1, (1, 1, 1)) for n in range(1, 9)]),
        (90, 0, 0, [Totals(0, 0, 1, (1, 1, 1))]),
    ],
)
def test_what_cannot_be_a_state(spoilt: tuple[int, int, int, list[Totals]]) -> None:
    """Negative counts, points out of order or of one window, and impossible times are refused."""
    with pytest.raises(ValueError, match=r"history|windows"):
        windowed_by(Kept, 4).load(*spoilt)


@pytest.mark.parametrize("count", [3, 1_000, 2_561, 100_000])
def test_all_windows_together_are_the_stream(count: int) -> None:
    """The sum of all windows has the scores of the whole stream."""
    rng = np.random.default_rng(count)
    rows = np.sort(rng.random((count, 3)), axis=1)
    labels = (rng.random(count) < rows[:, 1]).astype(float)
    whole = BinaryMonitor(raw=True)
    windowed = windowed_by(BinaryMonitor)
    windowed.update(whole, binary(rows, labels), np.arange(count))
    together = BinaryMonitor.total([one.monitor for one in windowed.windows(whole)])
    for name, means in whole.views().items():
        assert together.views()[name] == pytest.approx(means)


@given(sizes=st.lists(st.integers(1, 300), min_size=2, max_size=5))
def test_windows_of_several_streams(sizes: list[int]) -> None:
    """Windows of several streams are put in the order of their times, and lose nothing."""
    streams = [filled([size], most=10) for size in sizes]
    found = joined_windows([one.windows(monitor) for one, monitor in streams], 10)
    assert len(found) <= 10
    assert found[-1].end == sum(sizes)
    assert [one.end - one.labels for one in found] == [0, *(one.end for one in found[:-1])]
    assert [one.last for one in found] == sorted(one.last for one in found)
    assert (
        Kept.total([one.monitor for one in found]).sums
        == Kept.total([monitor for _, monitor in streams]).sums
    )


@pytest.mark.parametrize("count", [1, 10, 11, 64])
def test_recent_windows(count: int) -> None:
    """A point is the mean over the windows of the last tenth of the stream."""
    windowed, monitor = filled([40 * count], most=64)
    for number, one in enumerate(recent_windows(windowed.windows(monitor)), 1):
        first = max(number - -(-count // 10), 0)
        assert one.monitor.sums == sums(range(40 * first, 40 * number))


def over_time(
    p1: list[float], label: list[float], *, raw: bool, first: int = 0
) -> dict[str, Figure]:
    """Return the figures of forecasts, a window of forty each."""
    labels, p = np.repeat(label, 40), np.repeat(p1, 40)
    forecasts = {"calibrated": BinaryForecasts(p, labels)}
    if raw:
        forecasts["raw"] = BinaryForecasts(np.full(len(p), 0.5), labels)
    monitor, windowed = BinaryMonitor(raw=raw), windowed_by(BinaryMonitor)
    times = first + np.arange(len(p))
    windowed.update(monitor, ScoredRows(labels, forecasts, np.zeros(len(p))), times)
    return {one.id: one for one in figures_over_time(windowed.windows(monitor))}


def test_figures_over_time() -> None:
    """Each number with a chart has a figure, whose points are the windows."""
    found = over_time([0.5, 1.0], [1.0, 1.0], raw=True)
    assert [*found] == ["over-log_loss", "over-brier", "over-width"]
    brier = found["over-brier"]
    assert (brier.title, brier.data["y_name"]) == ("Brier score over time", "squared error")
    assert brier.data["x"] == [40, 80]
    assert brier.data["views"] == {"raw": [0.25, 0.25], "calibrated": [0.25, 0.0]}
    assert brier.columns == ["labels so far", "over", "raw", "calibrated"]
    assert brier.rows == [[40, 40, 0.25, 0.25], [80, 40, 0.25, 0.0]]
    assert found["over-width"].data["views"] == {"calibrated": [0.0, 0.0]}


def test_figures_have_dates() -> None:
    """Where event times are dates, they are the axis, and the table has those of each point."""
    found = over_time([0.5, 1.0], [1.0, 1.0], raw=True, first=1_700_000_000_000)["over-brier"]
    assert found.data["dates"] == [1_700_000_000_039, 1_700_000_000_079]
    assert found.columns == ["labels so far", "over", "first", "last", "raw", "calibrated"]
    assert found.rows[0][:4] == [40, 40, "2023-11-14 22:13:20 UTC", "2023-11-14 22:13:20 UTC"]
    assert over_time([0.5], [1.0], raw=True)["over-brier"].data["dates"] is None


def test_an_axis_of_dates_never_goes_back() -> None:
    """A time before that of the point before is shown as that; one row number, and none is."""
    days = [1_700_000_000_000, 1_690_000_000_000, 1_710_000_000_000]
    assert axis_dates(days) == [days[0], days[0], days[2]]
    assert axis_dates([*days, 5]) is None
    assert axis_dates([]) is None


def test_a_view_without_a_number_has_no_line() -> None:
    """Without raw forecasts there is no raw line; values that are not finite are gaps."""
    found = over_time([0.5, 0.0], [0.0, 1.0], raw=False)
    loss = found["over-log_loss"]
    assert loss.columns == ["labels so far", "over", "calibrated"]
    assert loss.data["views"]["calibrated"] == [pytest.approx(0.6931, abs=1e-4), None]
    assert loss.rows[1] == [80, 40, None]


def test_a_number_that_is_never_finite_has_no_figure() -> None:
    """A line without a point is not drawn, and neither is a stream without a label."""
    assert "over-log_loss" not in over_time([0.0, 0.0], [1.0, 1.0], raw=False)
    assert figures_over_time([]) == []


def test_figures_say_what_they_leave_out() -> None:
    """The caption of a mean without infinite terms says so."""
    labels, quantiles = np.zeros(5), np.array([[-1.0, 0.0, 1.0]] * 5)
    monitor = RegressionMonitor([0.25, 0.5, 0.75])
    windowed = windowed_by(RegressionMonitor)
    rows = np.column_stack([labels, quantiles])
    windowed.update(monitor, regression([0.25, 0.5, 0.75], rows, labels), np.arange(5))
    pinball, width = figures_over_time([*recent_windows(windowed.windows(monitor))])
    assert pinball.caption.endswith("Infinite losses are left out.")
    assert (width.id, width.title) == ("over-width", "Width of the 50 % interval over time")
    assert width.caption.endswith("infinite or unknown.")
