"""Arrivals of labels by the clock of the page, and how long none came."""

from __future__ import annotations

from collections import deque
from statistics import median

__all__ = ["LabelArrivals"]

_GAPS = 100  # that the median is of
_TIMES = 3  # the median gap, from which labels count as missing
_MINUTE = 60.0


class LabelArrivals:
    """Times at which labels came; the clock is monotonic, in seconds.

    Examples
    --------
    >>> arrivals = LabelArrivals()
    >>> for now, labels in ((10.0, 1), (40.0, 2), (70.0, 2)):
    ...     arrivals.note(now, labels)
    >>> arrivals.age(70.0), arrivals.silence(70.0), arrivals.silence(150.0)
    (30.0, None, 60.0)
    """

    def __init__(self) -> None:
        self._labels = 0
        self._last: float | None = None
        self._gaps: deque[float] = deque(maxlen=_GAPS)

    def note(self, now: float, labels: int) -> None:
        """Note how many labels came so far."""
        if labels == self._labels:
            return
        if self._last is not None:
            self._gaps.append(now - self._last)
        self._labels, self._last = labels, now

    def age(self, now: float) -> float | None:
        """Return how long ago the last label came; None before the first."""
        return None if self._last is None else now - self._last

    def silence(self, now: float) -> float | None:
        """Return for how many whole minutes no label came, in seconds; None while labels come.

        Labels are missing after three times the median gap between them, and at least a minute.
        """
        age = self.age(now)
        if age is None or not self._gaps or age < max(_TIMES * median(self._gaps), _MINUTE):
            return None
        return age // _MINUTE * _MINUTE
