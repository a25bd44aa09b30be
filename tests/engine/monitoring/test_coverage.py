"""The monitor of tracked intervals, against counts and the trackers that it reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.engine.monitoring import contract

from abers.monitoring import (
    BandCoverageMonitor,
    CoverageMonitor,
    ScoredRows,
    TrackedRows,
    measure,
    task_monitor,
)

if TYPE_CHECKING:
    from collections.abc import Callable

COVERED = np.array([True, True, False, True, False, True, True, False])
WIDTHS = np.array([0.1, 10.0, 0.0, 0.7, 0.0, 10.0, 0.2, 0.3])
WHOLE = WIDTHS == 10.0
EMPTY = np.array([False, False, True, False, True, False, False, False])
SCORES = np.where(EMPTY, np.inf, WIDTHS + ~COVERED)
TRACKED = TrackedRows(0.8, COVERED, WIDTHS, WHOLE, EMPTY, SCORES)
SCORED = ScoredRows(np.zeros(8), tracked=TRACKED)
COUNTS = {
    "tracked_width": 21.3 / 8,
    "tracked_score": 22.3 / 6,
    "tracked_whole": 2 / 8,
    "tracked_empty": 2 / 8,
}
NONE, TWO = (0.0, 0, 0), (0.0, 2, 0)  # states of means


class Fixed(NamedTuple):
    """A tracker whose numbers are known."""

    level: float
    slack: float
    waited: int
    labels: int
    covered: int


def fed(*trackers: Fixed) -> CoverageMonitor:
    """Return a monitor of eight labels for each tracker, or of eight without one."""
    parts = []
    for tracker in trackers or (None,):
        monitor = CoverageMonitor()
        if tracker is not None:
            monitor.watch_tracker(tracker)
        monitor.update(SCORED)
        parts.append(monitor)
    return CoverageMonitor.total(parts)


def numbers(monitor: CoverageMonitor) -> dict[str, float]:
    """Return the numbers by name."""
    return {one.name: one.value for one in monitor.summary()}


@pytest.mark.parametrize("check", contract.CHECKS)
def test_contract(check: Callable[..., None]) -> None:
    """The monitors keep the contract of all monitors."""
    check(CoverageMonitor, SCORED)
    check(BandCoverageMonitor, SCORED)


def test_without_a_tracker_the_rows_are_counted() -> None:
    """A window has the coverage of its rows, and no bound."""
    own = {"tracked_coverage": 5 / 8, "tracked_level": 0.8}
    assert numbers(fed()) == pytest.approx(own | COUNTS)
    assert math.isnan(numbers(CoverageMonitor())["tracked_level"])


def test_the_rows_of_a_window() -> None:
    """The difference of two totals has the rows between them, and their level."""
    monitor = fed()
    earlier = monitor.totals()
    monitor.update(SCORED)
    between = CoverageMonitor.restore(CoverageMonitor.difference(monitor.totals(), earlier))
    assert numbers(between) == pytest.approx(numbers(fed()))
    none = CoverageMonitor.difference(earlier, earlier)
    assert CoverageMonitor.restore(none).labels == 0


def test_a_band_is_never_empty_and_has_no_bound() -> None:
    """Of a band there are coverage, level, width, score, and intervals without a limit."""
    endless = np.where(WHOLE, np.inf, WIDTHS)
    band = TrackedRows(0.8, COVERED, endless, WHOLE, ~(EMPTY | True), np.where(WHOLE, np.inf, 1.0))
    monitor = BandCoverageMonitor()
    monitor.update(ScoredRows(np.zeros(8), tracked=band))
    expected = {
        "tracked_coverage": 5 / 8,
        "tracked_level": 0.8,
        "tracked_width": 1.3 / 6,
        "tracked_score": 1.0,
        "tracked_whole": 2 / 8,
    }
    assert numbers(monitor) == pytest.approx(expected)
    (figure,) = monitor.figures()
    assert figure.data["bars"] == {"covered": 5 / 8, "without a limit": 2 / 8}
    assert [one.infinite for one in monitor.summary()] == [None, None, None, 2, None]


def test_a_tracker_is_read() -> None:
    """The coverage is that of the labels that the tracker knows, and the bound is (H + C) / T."""
    found = numbers(fed(Fixed(0.8, 100.0, 3, 4, 1)))
    of_tracker = {
        "tracked_coverage": 1 / 4,
        "tracked_level": 0.8,
        "tracked_coverage_bound": 103.0 / 4,
    }
    assert found == pytest.approx(of_tracker | COUNTS)
    empty = CoverageMonitor()
    empty.watch_tracker(Fixed(0.8, 100.0, 0, 0, 0))
    assert [name for name, one in numbers(empty).items() if not math.isnan(one)] == [
        "tracked_level"
    ]


def test_a_total_adds_up() -> None:
    """Labels, hits and the distances that trackers allow are added."""
    found = numbers(fed(Fixed(0.8, 100.0, 3, 4, 1), Fixed(0.8, 100.0, 7, 16, 14)))
    assert found["tracked_coverage"] == 15 / 20
    assert found["tracked_coverage_bound"] == 210.0 / 20
    assert {name: found[name] for name in COUNTS} == pytest.approx(COUNTS)


def test_the_figure_has_all_numbers() -> None:
    """Bars are the shares that cover, are whole and are empty; the table has each number."""
    (figure,) = fed(Fixed(0.8, 100.0, 3, 4, 1)).figures()
    assert figure.data["bars"] == {"covered": 5 / 8, "whole support": 2 / 8, "empty": 2 / 8}
    assert len(figure.rows) == 7
    contract.figures_are_data(lambda: fed(Fixed(0.8, 100.0, 3, 4, 1)), SCORED)


def test_the_task_decides_on_the_monitor() -> None:
    """Only a regression with such intervals has it, also after a restore."""
    cases: list[tuple[dict[str, Any], list[type]]] = [
        ({}, []),
        ({"tracked": True}, [CoverageMonitor]),
        ({"banded": True}, [BandCoverageMonitor]),
    ]
    for options, kinds in cases:
        monitor = task_monitor("regression", **options, levels=(0.5,))
        again = task_monitor("regression", contract.states(monitor), **options, levels=(0.5,))
        for one in (monitor, again):
            assert [type(other) for other in one.others] == kinds


def test_each_number_has_a_measure() -> None:
    """Tables look numbers up by their names; the bound and the level are gauges."""
    summary = fed(Fixed(0.8, 100.0, 3, 4, 1)).summary()
    assert [measure(one.name) for one in summary] == [one.measure for one in summary]
    gauges = ["abers_tracked_level", "abers_tracked_coverage_bound"]
    assert [one.metric for one in summary if one.metric] == gauges


def test_rows_without_intervals_are_refused() -> None:
    """Rows that nothing tracked are an error, not zeros."""
    with pytest.raises(ValueError, match="tracked"):
        CoverageMonitor().update(ScoredRows(np.zeros(8)))


@pytest.mark.parametrize(
    "state",
    [
        (-1, 0, 0, 0, NONE, NONE, 0.0),
        (2, 3, 0, 0, TWO, TWO, 0.5),
        (2, 0, 3, 0, TWO, TWO, 0.5),
        (2, 0, 0, 3, TWO, TWO, 0.5),
        (2, 0, 0, 0, (math.nan, 2, 0), TWO, 0.5),
        (2, 0, 0, 0, (-1.0, 2, 0), TWO, 0.5),
        (2, 0, 0, 0, TWO, (-1.0, 2, 0), 0.5),
        (2, 0, 0, 0, TWO, TWO, 1.0),
        (2, 0, 0, 0, TWO, TWO, 0.0),
        (0, 0, 0, 0, NONE, NONE, 0.5),
        (2, 0, 0, 0),
    ],
)
def test_damaged_states_are_refused(state: tuple[Any, ...]) -> None:
    """A state that no monitor has is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        CoverageMonitor.restore(state)
