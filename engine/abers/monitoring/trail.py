"""A number over time, in bounded memory and at even resolution over the whole stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from abers.saveable import CopiedWhole
from abers.serialization import require

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FIRST_SIZE", "Trail"]

FIRST_SIZE = 40
"""Labels in the first windows: few enough for a short stream, and enough to cost little."""


class _Point(Protocol):
    @property
    def labels(self) -> int:
        """Number of labels so far."""


P = TypeVar("P", bound=_Point)


class Trail(CopiedWhole, Generic[P]):
    """Points of a stream, at most one for each window of labels.

    Parameters
    ----------
    joined
        Joins two points of one window, the earlier first.
    most
        Largest number of windows. With more labels each window becomes twice as long.

    Attributes
    ----------
    points
        In the order of the stream.
    size
        Number of labels in a window.

    Examples
    --------
    >>> from typing import NamedTuple
    >>> class Height(NamedTuple):
    ...     labels: int
    ...     height: float
    >>> trail = Trail(lambda a, b: Height(b.labels, max(a.height, b.height)), most=2)
    >>> for labels, height in ((40, 1.0), (80, 3.0), (120, 2.0)):
    ...     trail.note(Height(labels, height))
    >>> trail.points
    [Height(labels=80, height=3.0), Height(labels=120, height=2.0)]
    """

    def __init__(self, joined: Callable[[P, P], P], most: int) -> None:
        self.points: list[P] = []
        self._joined, self._most, self.size = joined, most, FIRST_SIZE

    def reach(self, labels: int) -> None:
        """Make the windows long enough for so many labels."""
        if labels > self.size * self._most:
            while labels > self.size * self._most:
                self.size *= 2
            points, self.points = self.points, []
            for one in points:
                self.points = self._joined_to(self.points, one)

    def note(self, point: P) -> None:
        """Add a point behind all others."""
        self.reach(point.labels)
        self.points = self._joined_to(self.points, point)

    def lacks(self, labels: int) -> bool:
        """Return whether there is no point yet in the window of so many labels."""
        return not self.points or self.points[-1].labels <= (labels - 1) // self.size * self.size

    def with_last(self, point: P) -> list[P]:
        """Return the points, and one behind them that is not added."""
        return self._joined_to(self.points, point)

    def load(self, points: Sequence[P]) -> None:
        """Restore the points of an empty trail; a ValueError if they cannot be some."""
        labels = [one.labels for one in points]
        require(labels == sorted({*labels}) and min(labels, default=1) > 0, "labels of a history")
        for one in points:
            self.note(one)
        require(len(self.points) == len(points), "windows of a history")

    def _joined_to(self, points: Sequence[P], point: P) -> list[P]:
        if points and self._window(points[-1]) == self._window(point):
            return [*points[:-1], self._joined(points[-1], point)]
        return [*points, point]

    def _window(self, point: P) -> int:
        return (point.labels - 1) // self.size
