"""Monitors of forecasts in a loop, `abers.monitor`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import abers
from abers import LabelError, ScoreError, TimeError

ROWS = st.lists(st.tuples(st.integers(0, 1), st.floats(0.0, 1.0)), max_size=90)


@given(ROWS, st.lists(st.integers(0, 90), max_size=5))
def test_parts_make_no_difference(rows: list[tuple[int, float]], cuts: list[int]) -> None:
    """Rows that come in parts give the report on all rows at once."""
    y, p = ([row[k] for row in rows] for k in (0, 1))
    watch = abers.monitor()
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for begin, end in pairwise(ends):
        watch.update(y[begin:end], p[begin:end])
    report, whole = watch.report(), abers.report(y, p)
    assert str(report) == str(whole)
    assert report.answers == whole.answers == watch.answers
    assert report.figures == whole.figures


def test_one_by_one() -> None:
    """Single numbers, of Python or numpy, are rows of their own."""
    watch = abers.monitor()
    watch.update(1, 0.75, 10)
    watch.update(np.int64(0), np.float64(0.5), np.datetime64(20, "ms"))
    assert watch.report() == abers.report([1, 0], [0.75, 0.5], [10, 20])
    assert watch.verdict.labels == 2
    text = f"2 labels, waiting, log loss {watch.report().log_loss:.4f} nats"
    assert repr(watch) == f"ForecastMonitor: {text}"


def test_a_report_stays() -> None:
    """Later forecasts do not change a report."""
    watch = abers.monitor()
    watch.update([0, 1], [0.25, 0.75])
    report = watch.report()
    watch.update([0, 1], [0.9, 0.1])
    assert report == abers.report([0, 1], [0.25, 0.75])


def test_the_tolerance_is_that_of_the_verdict() -> None:
    """A monitor takes the tolerance of its verdict."""
    assert abers.monitor(tolerance=2.0).verdict.tolerance == 2.0


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        (([0, 3], [0.5, 0.5], [7, 8]), LabelError, "row 1: label 3"),
        (([0, 1], [0.5, 1.5], [7, 8]), ScoreError, r"row 1: forecast 1\.5"),
        (([0, 1], [0.5, 0.5], [8, 4]), TimeError, "row 1: time 4 is before 5, the last one"),
        ((0, 0.5), TimeError, "earlier forecasts came with a time; do so again"),
    ],
)
def test_bad_rows_change_nothing(columns: tuple[Any, ...], error: type, message: str) -> None:
    """Rows of which one is wrong are refused whole."""
    watch = abers.monitor()
    watch.update([1, 0], [0.5, 0.25], [3, 5])
    before = watch.report()
    with pytest.raises(error, match=message):
        watch.update(*columns)
    assert watch.report() == before
    watch.update(1, 0.5, 5)
    assert watch.verdict.labels == 3


def test_a_time_after_rows_without_is_an_error() -> None:
    """Either all forecasts have a time or none."""
    watch = abers.monitor()
    watch.update([], [], [])
    watch.update(1, 0.5)
    with pytest.raises(TimeError, match="earlier forecasts came without a time; do so again"):
        watch.update(1, 0.5, 5)
