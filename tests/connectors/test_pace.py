"""History at a multiple of its speed, by a clock that only the pace itself moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.stream import Events, Observation
from abers_connectors.pace import Pace, speed

DAY = 86_400_000


class Clock:
    """A clock that stands still but for sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        """Give the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Move on."""
        self.slept.append(seconds)
        self.now += seconds


def let_through(
    times: list[int], speed: float, size: int = 1000
) -> tuple[list[tuple[float, list[int]]], Clock]:
    """Return when events of some times were let through, in seconds since the beginning."""
    clock = Clock()
    pace = Pace(speed, clock=clock, sleep=clock.sleep)
    events = Events.of([Observation("a", time, score=0.5) for time in times])
    found = [
        (clock.now - 1000.0, [one.time for one in group])
        for first in range(0, len(events), size)
        for group in pace(events[first : first + size])
    ]
    return found, clock


@pytest.mark.parametrize(("multiple", "seconds"), [(1.0, 10.0), (10.0, 1.0), (0.5, 20.0)])
def test_time_between_events_is_kept(multiple: float, seconds: float) -> None:
    """An event comes so much later than the first as its time is, divided by the speed."""
    found, _ = let_through([5_000, 15_000, 35_000], multiple)
    expected = [(0.0, [5_000]), (seconds, [15_000]), (3 * seconds, [35_000])]
    assert [times for _, times in found] == [times for _, times in expected]
    assert [at for at, _ in found] == pytest.approx([at for at, _ in expected])


def test_what_is_due_together_comes_at_once() -> None:
    """Events within a fiftieth of a second are not waited for one by one."""
    found, clock = let_through([0, 10, 20, 21, 30], 1.0)
    assert [times for _, times in found] == [[0, 10, 20], [21, 30]]
    assert len(clock.slept) == 1


def test_what_is_late_does_not_wait() -> None:
    """An event that is behind others comes when it stands in the stream."""
    found, _ = let_through([0, 1_000, 500, 1_000], 1.0)
    assert [times for _, times in found] == [[0], [1_000, 500, 1_000]]


def test_one_wrong_time_is_not_waited_for() -> None:
    """An event far ahead of all others comes at once, and the others when they are due."""
    for wrong in (2**53, 300 * DAY):
        found, clock = let_through([0, wrong, 1_000, 2_000], 1.0)
        assert [at for at, _ in found] == pytest.approx([0.0, 0.0, 1.0, 2.0])
        assert clock.now == pytest.approx(1002.0)


def test_a_wrong_beginning_is_not_waited_for() -> None:
    """Where the first time is half a century too early, nobody waits for half a century."""
    since = 20_000 * DAY
    found, _ = let_through([0, since, since + 1_000, since + 2_000, since + 3_000], 1.0)
    assert [at for at, _ in found] == pytest.approx([0.0, 0.0, 0.0, 0.0, 1.0])


def test_long_waits_are_taken_in_parts() -> None:
    """The system refuses very long sleeps, so a gap of months is slept an hour at a time."""
    found, clock = let_through([0, 300 * DAY, 300 * DAY + 1, 300 * DAY + 2_000], 1.0)
    assert max(clock.slept) == 3600.0
    assert found[-1][0] == pytest.approx(300 * 86400 + 2)


@given(st.lists(st.integers(0, 100_000), max_size=30), st.integers(1, 7))
def test_nothing_is_lost_reordered_or_early(times: list[int], size: int) -> None:
    """Whatever the batches, events keep their order, and none comes before it is due."""
    found, _ = let_through(times, 10.0, size)
    assert [time for _, group in found for time in group] == times
    for at, group in found:
        assert group[0] <= times[0] + at * 10_000 + 0.1


@pytest.mark.parametrize(
    ("text", "multiple"), [("1x", 1.0), ("10x", 10.0), ("0.5x", 0.5), ("3", 3.0), ("max", None)]
)
def test_speeds(text: str, multiple: float | None) -> None:
    """A multiple, with or without its x, or no limit."""
    assert speed(text) == multiple


@pytest.mark.parametrize("text", ["", "x", "fast", "0x", "-1x", "nanx", "inf", "10y", "1xx"])
def test_what_is_no_speed(text: str) -> None:
    """Anything else is refused with examples."""
    with pytest.raises(ParameterError, match=r"is no speed; write 1x, 10x, 0\.5x or max"):
        speed(text)
