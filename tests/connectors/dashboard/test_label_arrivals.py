"""How long no label came, `abers_connectors.dashboard.feed`."""

from __future__ import annotations

from statistics import median

import pytest

from abers_connectors.dashboard.feed import LabelArrivals


@pytest.mark.parametrize("gaps", [[1.0, 2.0, 3.0], [60.0, 600.0, 90.0], [3_600.0]])
def test_labels_are_missing_after_three_median_gaps_and_a_minute(gaps: list[float]) -> None:
    """A silence begins after three times the median gap, and a minute; it is in whole minutes."""
    arrivals, now = LabelArrivals(), 5.0
    arrivals.note(now, 1)
    for number, gap in enumerate(gaps):
        now += gap
        arrivals.note(now, 2 + number)
    least = max(3 * median(gaps), 60.0)
    assert arrivals.silence(now + least - 0.01) is None
    assert arrivals.silence(now + least) == least // 60 * 60
    assert arrivals.age(now + 7.0) == 7.0


def test_before_two_labels_nothing_is_missing() -> None:
    """Without a gap between labels, nobody knows how long labels take."""
    arrivals = LabelArrivals()
    assert (arrivals.age(9.0), arrivals.silence(9.0)) == (None, None)
    arrivals.note(9.0, 1)
    assert arrivals.silence(90_000.0) is None
