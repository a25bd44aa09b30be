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

    from abers.stream import Event

__all__ = ["Pace", "speed"]

_TOGETHER = 0.02  # seconds: events due within them are processed together


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
        msg = f"speed {text!r} is none; write 1x, 10x, 0.5x or max"
        raise ParameterError(msg)
    return number


class Pace:
    """Lets events through at a multiple of the speed at which they happened.

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
        self._clock, self._sleep = clock, sleep
        self._began: tuple[float, int] | None = None  # when the first event came, and its time

    def __call__(self, events: Sequence[Event]) -> Iterator[Sequence[Event]]:
        """Give the events of a batch when they are due, those due together at once."""
        first = 0
        while first < len(events):
            self._wait_for(events[first].time)
            due, last = self._now() + _TOGETHER * self._milliseconds, first + 1
            while last < len(events) and events[last].time <= due:
                last += 1
            yield events[first:last]
            first = last

    def _now(self) -> float:
        """Give the event time that has come."""
        at, time_ = self._began or (self._clock(), 0)
        return time_ + (self._clock() - at) * self._milliseconds

    def _wait_for(self, time_: int) -> None:
        if self._began is None:
            self._began = (self._clock(), time_)
        ahead = time_ - self._now()
        if ahead > 0:
            self._sleep(ahead / self._milliseconds)
