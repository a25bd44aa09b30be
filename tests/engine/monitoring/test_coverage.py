"""The monitor of tracked intervals, against counts and the trackers that it reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from tests.engine.monitoring import contract

from abers.monitoring import CoverageMonitor, ScoredRows, TrackedRows, measure, task_monitor

if TYPE_CHECKING:
    from collections.abc import Callable

COVERED = np.array([True, True, False, True, False, True, True, False])
WIDTHS = np.array([0.1, 10.0, 0.0, 0.7, 0.0, 10.0, 0.2, 0.3])
WHOLE = WIDTHS == 10.0
EMPTY = np.array([False, False, True, False, True, False, False, False])
SCORED = ScoredRows(np.zeros(8), tracked=TrackedRows(0.8, COVERED, WIDTHS, WHOLE, EMPTY))
COUNTS = {"tracked_width": 21.3 / 8, "tracked_whole": 2 / 8, "tracked_empty": 2 / 8}


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
    """The monitor keeps the contract of all monitors."""
    check(CoverageMonitor, SCORED)


def test_without_a_tracker_the_rows_are_counted() -> None:
    """A window has the coverage of its rows, and no bound."""
    assert numbers(fed()) == pytest.approx({"tracked_coverage": 5 / 8, **COUNTS})


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
    assert len(figure.rows) == 6
    contract.figures_are_data(lambda: fed(Fixed(0.8, 100.0, 3, 4, 1)), SCORED)


def test_the_task_decides_on_the_monitor() -> None:
    """Only a regression with tracked intervals has it, also after a restore."""
    for tracked in (True, False):
        monitor = task_monitor("regression", tracked=tracked, levels=(0.5,))
        again = task_monitor("regression", contract.states(monitor), tracked=tracked, levels=(0.5,))
        for one in (monitor, again):
            assert [type(other) for other in one.others] == [CoverageMonitor] * tracked


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
        (-1, 0, 0, 0, (0.0, 0, 0)),
        (2, 3, 0, 0, (0.0, 2, 0)),
        (2, 0, 3, 0, (0.0, 2, 0)),
        (2, 0, 0, 3, (0.0, 2, 0)),
        (2, 0, 0, 0, (math.nan, 2, 0)),
        (2, 0, 0, 0, (-1.0, 2, 0)),
        (2, 0, 0, 0),
    ],
)
def test_damaged_states_are_refused(state: tuple[Any, ...]) -> None:
    """A state that no monitor has is a ValueError."""
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        CoverageMonitor.restore(state)
