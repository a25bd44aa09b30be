"""How much of a core the page may use, and how fast the stream goes.

Governing rule: what a frame and its page cost is measured in seconds of a core, not of the clock,
so a busy machine does not count twice. After each there is a pause that keeps the share right.
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
"""Of one core: what all frames and pages together may use."""

_SPAN = 10  # samples that a rate goes over
_EVERY = 1.0  # seconds between two samples
_NEW = 0.25  # weight of the newest frame in the mean cost


class Budget:
    """Allows the next frame once the last ones are paid for.

    Parameters
    ----------
    clock
        Monotonic, in seconds.
    cpu
        Seconds of a core that the calling thread has used.

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
        """Seconds from one frame to the next, by what the last ones cost."""
        return sum(self._costs.values()) / SHARE

    def left(self, now: float) -> bool:
        """Whether a frame may be made now."""
        return now >= self._due

    def pause(self, until: float) -> None:
        """Make no frame before this moment."""
        with self._lock:
            self._due = max(self._due, until)

    @contextmanager
    def spent(self, *, drawing: bool = False) -> Iterator[None]:
        """Charge what a `with` block uses of a core.

        Parameters
        ----------
        drawing
            Whether a page is drawn, rather than a frame made: each frame is followed by its page.
        """
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
    """Events a second, from a sample a second.

    Parameters
    ----------
    clock
        Monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._due = self._began = clock()
        self._samples: deque[tuple[float, int]] = deque(maxlen=_SPAN)

    def due(self, now: float) -> bool:
        """Whether a second has passed since the last sample."""
        return now >= self._due

    def add(self, now: float, events: int) -> None:
        """Note how many events there were so far."""
        self._due = now + _EVERY
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
