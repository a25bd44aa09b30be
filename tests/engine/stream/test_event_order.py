"""The order of events by time, `abers.stream.columns`."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abers.stream.columns import observations_before, released_order, time_order

TIMES = st.lists(st.integers(0, 4), max_size=8)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=10))
def test_labels_come_first_at_equal_times(events: list[tuple[int, bool]]) -> None:
    """The order is that of Python's stable sort by time, labels first."""
    times = np.array([time for time, _ in events], np.int64)
    labels = np.array([label for _, label in events], bool)
    by_rule = sorted(range(len(events)), key=lambda row: (events[row][0], not events[row][1]))
    assert time_order(times, labels).tolist() == by_rule


@given(TIMES, st.data())
def test_a_label_is_released_at_its_time(times: list[int], data: st.DataObject) -> None:
    """Before a label are the observations of earlier times, and its own."""
    clocks = sorted(times)
    due = [clock + data.draw(st.integers(0, 3)) for clock in clocks]
    found = observations_before(
        np.array(clocks, np.int64), np.array(due, np.int64), np.arange(1, len(clocks) + 1)
    )
    for row, (count, at) in enumerate(zip(found.tolist(), due, strict=True)):
        assert count == max(sum(clock < at for clock in clocks), row + 1)


@given(TIMES, st.data())
def test_released_labels_are_in_order(times: list[int], data: st.DataObject) -> None:
    """Observations are by time, each label after its own, and no later than its time allows."""
    rows = [row for row in range(len(times)) if data.draw(st.booleans())]
    due = [times[row] + data.draw(st.integers(0, 3)) for row in rows]
    order = released_order(
        np.array(times, np.int64), np.array(due, np.int64), np.array(rows, np.int64)
    ).tolist()
    n = len(times)
    assert sorted(order) == list(range(n + len(rows)))
    observed = [one for one in order if one < n]
    assert observed == sorted(range(n), key=lambda row: times[row])
    for number, (row, at) in enumerate(zip(rows, due, strict=True)):
        label = order.index(n + number)
        assert row in order[:label]
        assert all(times[one] >= at for one in order[label:] if one < n)
        earlier = [one for one in order[:label] if one < n and times[one] >= at]
        assert not earlier or observed.index(row) >= observed.index(earlier[-1])
