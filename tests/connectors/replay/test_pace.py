"""The pace of a replay, by a clock that only sleeping advances."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abers import ParameterError
from abers.stream import Events, Observation
from abers_connectors.replay.run import Pace, parse_speed

DAY = 86_400_000


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        """Return the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.slept.append(seconds)
        self.now += seconds


def let_through(
    times: list[int], speed: float, size: int = 1000
) -> tuple[list[tuple[float, list[int]]], Clock]:
    """Return the groups that were yielded, with their seconds since the start; and the clock."""
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
    """An event is due after its time since the first event, divided by the speed."""
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
    """An event with an earlier time than those before it is due at once."""
    found, _ = let_through([0, 1_000, 500, 1_000], 1.0)
    assert [times for _, times in found] == [[0], [1_000, 500, 1_000]]


def test_one_wrong_time_is_not_waited_for() -> None:
    """An event far ahead of all others is due at once, and the others at their times."""
    for wrong in (2**53, 300 * DAY):
        found, clock = let_through([0, wrong, 1_000, 2_000], 1.0)
        assert [at for at, _ in found] == pytest.approx([0.0, 0.0, 1.0, 2.0])
        assert clock.now == pytest.approx(1002.0)


def test_a_wrong_beginning_is_not_waited_for() -> None:
    """A gap of half a century after a wrong first time is skipped."""
    since = 20_000 * DAY
    found, _ = let_through([0, since, since + 1_000, since + 2_000, since + 3_000], 1.0)
    assert [at for at, _ in found] == pytest.approx([0.0, 0.0, 0.0, 0.0, 1.0])


def test_long_waits_are_taken_in_parts() -> None:
    """The system refuses very long sleeps, so a gap of months is slept an hour at a time."""
    found, clock = let_through([0, 300 * DAY, 300 * DAY + 1, 300 * DAY + 2_000], 1.0)
    assert max(clock.slept) == 3600.0
    assert found[-1][0] == pytest.approx(300 * 86400 + 2)


def test_other_work_runs_while_nothing_is_due() -> None:
    """A function is called before each of the short sleeps until the next event is due."""
    clock = Clock()
    pace = Pace(1.0, clock=clock, sleep=clock.sleep)
    calls: list[float] = []
    pace.meanwhile(lambda: calls.append(clock.now))
    list(pace(Events.of([Observation("a", time, score=0.5) for time in (0, 1_000)])))
    assert calls == [1000.0, 1000.25, 1000.5, 1000.75]
    assert clock.slept == [0.25] * 4


@given(st.lists(st.integers(0, 100_000), max_size=30), st.integers(1, 7))
def test_nothing_is_lost_reordered_or_early(times: list[int], size: int) -> None:
    """In any batches, events keep their order, and none is early."""
    found, _ = let_through(times, 10.0, size)
    assert [time for _, group in found for time in group] == times
    for at, group in found:
        assert group[0] <= times[0] + at * 10_000 + 0.1


@pytest.mark.parametrize(
    ("text", "multiple"), [("1x", 1.0), ("10x", 10.0), ("0.5x", 0.5), ("3", 3.0), ("max", None)]
)
def test_speeds(text: str, multiple: float | None) -> None:
    """A multiple, with or without its x, or no limit."""
    assert parse_speed(text) == multiple


@pytest.mark.parametrize("text", ["", "x", "fast", "0x", "-1x", "nanx", "inf", "10y", "1xx"])
def test_what_is_no_speed(text: str) -> None:
    """Anything else is refused with examples."""
    with pytest.raises(ParameterError, match=r"is not a speed; write 1x, 10x, 0\.5x or max"):
        parse_speed(text)
