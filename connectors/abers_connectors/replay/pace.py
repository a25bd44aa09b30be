"""The pace of a replay: the speed at which the events happened, or a multiple of it.

At speed 10, an event that happened 50 seconds after the first is due 5 seconds after it. The
pace keeps the order of the events. Nothing else in a replay depends on the clock.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.stream import Events

__all__ = ["Pace", "parse_speed"]

_GROUPING_WINDOW = 0.02  # seconds; events that are due within them are yielded together
_MIN_SLEEP = 1e-6  # seconds; some clocks do not resolve shorter times
_MAX_SLEEP = 3600.0  # seconds; the system refuses very long sleeps
_WORK_INTERVAL = 0.25  # seconds of a sleep between two calls of other work
_DAY = 24 * 3600 * 1000  # milliseconds, as event times
_YEAR = 366 * _DAY
_CONFIRMATIONS = 3  # events in a row that are far ahead before their times are believed


def parse_speed(text: str) -> float | None:
    """Return the number of a speed such as "1x", "10x" or "0.5x", or None for "max".

    Raises a ParameterError for any other text.

    Examples
    --------
    >>> parse_speed("10x"), parse_speed("max")
    (10.0, None)
    """
    if text == "max":
        return None
    try:
        number = float(text.removesuffix("x"))
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        msg = f"--speed {text!r} is not a speed; write 1x, 10x, 0.5x or max"
        raise ParameterError(msg)
    return number


class Pace:
    """Yields events at a multiple of the speed at which they happened.

    Wrong event times do not stall a replay. An event that is more than a day ahead of all earlier
    events is due at once, unless the two events before it were far ahead too. A gap of more than a
    year is skipped.
    """

    def __init__(
        self,
        speed: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._milliseconds_per_second = 1000 * speed  # of event time, by the clock
        self._clock, self._sleep = clock, sleep
        self._work: Callable[[], None] = lambda: None
        self._max_sleep = _MAX_SLEEP
        self._started = False
        self._start_clock = 0.0
        self._start_time = 0  # event time that was due at `_start_clock`
        self._latest = 0  # event time
        self._far_ahead = 0  # events in a row that are more than a day ahead

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Call a function several times a second while nothing is due."""
        self._work, self._max_sleep = work, _WORK_INTERVAL

    def __call__(self, events: Events) -> Iterator[Events]:
        """Yield consecutive events in groups, each when its first event is due."""
        for rows in self.due(events.times.tolist()):
            yield events[rows]

    def due(self, times: Sequence[int]) -> Iterator[slice]:
        """Yield the rows of consecutive event times in groups, each when its first time is due."""
        start = 0
        while start < len(times):
            self._wait_for(times[start])
            due = self._due_time() + _GROUPING_WINDOW * self._milliseconds_per_second
            end = start + 1
            while end < len(times) and times[end] <= due:
                end += 1
            yield slice(start, end)
            start = end

    def _due_time(self) -> float:
        """Return the event time that is due now."""
        elapsed = self._clock() - self._start_clock
        return self._start_time + elapsed * self._milliseconds_per_second

    def _wait_for(self, event_time: int) -> None:
        """Sleep until an event time is due; ignore times far ahead until several confirm them."""
        if not self._started:
            self._started = True
            self._restart(event_time)
        ahead = event_time - self._latest
        self._far_ahead = self._far_ahead + 1 if ahead > _DAY else 0
        if 0 < self._far_ahead < _CONFIRMATIONS:
            return
        if ahead > _YEAR:
            self._restart(event_time)
            return
        self._latest = max(event_time, self._latest)
        self._sleep_until(event_time)

    def _restart(self, event_time: int) -> None:
        """Make an event time due now."""
        self._start_clock = self._clock()
        self._start_time = self._latest = event_time

    def _sleep_until(self, event_time: int) -> None:
        rate = self._milliseconds_per_second
        while (seconds := (event_time - self._due_time()) / rate) > _MIN_SLEEP:
            self._work()
            self._sleep(min(seconds, self._max_sleep))
