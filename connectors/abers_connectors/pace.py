"""Replaying history as fast as it happened, or so many times faster.

Governing rule: an event is let through once as much time has passed since the
first as lay between them in event time, divided by the speed; nothing is
reordered, and the clock of the machine decides nothing else.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from abers.exceptions import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers.stream import Events

__all__ = ["Pace", "speed"]

_TOGETHER = 0.02  # seconds: events due within them are processed together
_SHORTEST = 1e-6  # seconds that are not worth a sleep, nor resolved by every clock
_LONGEST = 3600.0  # seconds of one sleep; the system refuses very long ones
_DAY = 24 * 3600 * 1000
_YEAR = 366 * _DAY
_AGREED = 3  # events, before a long gap is believed
_MEANWHILE = 0.25  # seconds of one sleep, where there is something to be done in between


def speed(text: str) -> float | None:
    """Read a speed: "1x", "10x", "0.5x", or "max", which is None.

    Raises
    ------
    ParameterError
        If it is none of these.

    Examples
    --------
    >>> speed("10x"), speed("max")
    (10.0, None)
    """
    if text == "max":
        return None
    try:
        number = float(text.removesuffix("x"))
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        msg = f"--speed {text!r} is no speed; write 1x, 10x, 0.5x or max"
        raise ParameterError(msg)
    return number


class Pace:
    """Lets events through at a multiple of the speed at which they happened.

    One wrong time holds nothing up: of events more than a day ahead of all before them the first
    two come at once, and where they are more than a year ahead, nobody waits for the year.

    Parameters
    ----------
    speed
        The multiple.
    clock, sleep
        Those of the machine, in seconds.
    """

    def __init__(
        self,
        speed: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._milliseconds = 1000 * speed  # of event time in a second
        self._far = 0  # events in a row that were further ahead than a day
        self._clock, self._sleep = clock, sleep
        self._started = False
        self._began = 0.0  # when the first event came
        self._first = self._latest = 0  # event times

    def meanwhile(self, work: Callable[[], None]) -> None:
        """Have something done several times a second while nothing is due."""
        sleep = self._sleep

        def asleep(seconds: float) -> None:
            work()
            sleep(min(seconds, _MEANWHILE))

        self._sleep = asleep

    def __call__(self, events: Events) -> Iterator[Events]:
        """Give consecutive events when they are due, those due together at once."""
        for due in self.due(events.times.tolist()):
            yield events[due]

    def due(self, times: Sequence[int]) -> Iterator[slice]:
        """Give the places of consecutive times when they are due; as for events."""
        first = 0
        while first < len(times):
            self._wait_for(times[first])
            due, last = self._now() + _TOGETHER * self._milliseconds, first + 1
            while last < len(times) and times[last] <= due:
                last += 1
            yield slice(first, last)
            first = last

    def _now(self) -> float:
        """Give the event time that has come."""
        return self._first + (self._clock() - self._began) * self._milliseconds

    def _wait_for(self, time_: int) -> None:
        if not self._started:
            self._started, self._began = True, self._clock()
            self._first = self._latest = time_
        ahead = time_ - self._latest
        self._far = self._far + 1 if ahead > _DAY else 0
        if 0 < self._far < _AGREED:
            return
        if ahead > _YEAR:
            self._began, self._first, self._latest = self._clock(), time_, time_
            return
        self._latest = max(time_, self._latest)
        while (seconds := (time_ - self._now()) / self._milliseconds) > _SHORTEST:
            self._sleep(min(seconds, _LONGEST))
