"""Budget of the live page, and rate of the stream.

The cost of a frame and its page is measured in seconds of a core, not of the clock, so a busy
machine does not count twice. The pause after each keeps the share of the core right.
"""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["SHARE", "Budget", "Rate"]

SHARE = 0.05
"""Share of one core that all frames and pages together may use."""

_SPAN = 10  # samples that a rate goes over
_SAMPLE_SECONDS = 1.0  # between two samples
_NEW = 0.25  # weight of the newest frame in the mean cost


class Budget:
    """Allowance of CPU time: the next frame is made once the last frames are paid for.

    The clock is monotonic; `cpu` returns the seconds of a core that the calling thread has used.

    Examples
    --------
    >>> used = iter([0.0, 0.02])
    >>> budget = Budget(lambda: 100.0, lambda: next(used))
    >>> with budget.spent():
    ...     pass
    >>> budget.left(100.3), budget.left(100.5)
    (False, True)
    """

    def __init__(self, clock: Callable[[], float], cpu: Callable[[], float]) -> None:
        self._clock, self._cpu = clock, cpu
        self._due = clock()
        self._costs = {True: 0.0, False: 0.0}
        self._lock = Lock()

    @property
    def pace(self) -> float:
        """Seconds from one frame to the next, by the cost of the last frames."""
        return sum(self._costs.values()) / SHARE

    def left(self, now: float) -> bool:
        """Return whether a frame may be made now."""
        return now >= self._due

    def pause(self, until: float) -> None:
        """Make no frame before this moment."""
        with self._lock:
            self._due = max(self._due, until)

    @contextmanager
    def spent(self, *, drawing: bool = False) -> Iterator[None]:
        """Charge the CPU time of a `with` block, in which a frame is made or its page drawn."""
        began = self._cpu()
        try:
            yield
        finally:
            used = self._cpu() - began
            with self._lock:
                mean = self._costs[drawing]
                self._costs[drawing] = mean + (_NEW if mean else 1.0) * (used - mean)
                self._due = max(self._due, self._clock()) + used / SHARE


class Rate:
    """Rate of events, from a sample a second of a monotonic clock."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._due = self._began = clock()
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SPAN)

    def due(self, now: float) -> bool:
        """Return whether a second has passed since the last sample."""
        return now >= self._due

    def add(self, now: float, events: int) -> None:
        """Add a sample: the number of events so far."""
        self._due = now + _SAMPLE_SECONDS
        self._samples.append((now, events))

    def recent(self) -> float | None:
        """Return the rate over the last seconds; None while there are too few samples."""
        if not self._samples:
            return None
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / (last - first) if last > first else None

    def overall(self, now: float, events: int) -> float | None:
        """Return the rate since the beginning."""
        seconds = now - self._began
        return events / seconds if seconds else None
