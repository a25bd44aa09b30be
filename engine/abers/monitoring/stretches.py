"""Scores over time, in bounded memory.

Governing rule: each stretch of a stream is judged by a monitor of its own. All stretches but the
last are equally long; when there are too many of them, every two neighbours become one. So what is
known of a stream depends neither on how it was batched nor on a random choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Passage", "Stretches"]

_SHORTEST = 5  # predictions in a stretch to begin with: a short stream has points enough


class _Judge(Protocol):
    """What is asked of a monitor."""

    def update(self, rows: Floats, labels: Floats, /) -> None:
        """Judge predictions whose labels have come, in their order."""
        ...

    @classmethod
    def total(cls, many: Sequence[Self], /) -> Self:
        """Add up monitors, at least one."""
        ...


M = TypeVar("M", bound=_Judge)


class Passage(NamedTuple, Generic[M]):
    """What happened in some consecutive stretches.

    Attributes
    ----------
    end
        How many predictions had been judged at its end.
    labels
        How many of them belong to it.
    monitor
        What judged these.
    """

    end: int
    labels: int
    monitor: M


class Stretches(Generic[M]):
    """Monitors of consecutive stretches of a stream.

    Parameters
    ----------
    monitor
        Makes a monitor that has seen nothing.
    most
        How many there are at most, an even number.

    Attributes
    ----------
    count
        Predictions judged.
    size
        How many a stretch holds.

    Examples
    --------
    >>> import numpy as np
    >>> from abers.monitoring import BinaryMonitor
    >>> stretches = Stretches(lambda: BinaryMonitor(raw=False))
    >>> rows = np.repeat([[0.3, 0.5, 0.5]], 12, axis=0)
    >>> stretches.update(rows, np.arange(12) % 2.0)
    >>> [(one.end, one.labels, one.monitor.calibrated.brier) for one in stretches.passages()]
    [(5, 5, 0.25), (10, 5, 0.25), (12, 2, 0.25)]
    """

    def __init__(self, monitor: Callable[[], M], most: int = 256) -> None:
        self.count, self.size = 0, _SHORTEST
        self._make, self._most = monitor, most
        self._monitors: list[M] = []

    def update(self, rows: Floats, labels: Floats) -> None:
        """Judge predictions whose labels have come, in their order.

        Parameters
        ----------
        rows, labels
            As the monitor takes them.
        """
        done = 0
        while done < len(labels):
            if self.count == self.size * len(self._monitors):
                self._begin()
            room = self.size * len(self._monitors) - self.count
            part = slice(done, done + room)
            self._monitors[-1].update(rows[part], labels[part])
            taken = min(room, len(labels) - done)
            self.count += taken
            done += taken

    def _begin(self) -> None:
        """Begin a stretch, all others being full."""
        if len(self._monitors) == self._most:
            neighbours = zip(self._monitors[::2], self._monitors[1::2], strict=True)
            self._monitors = [_joined(pair) for pair in neighbours]
            self.size *= 2
        self._monitors.append(self._make())

    def passages(self, span: int = 1) -> Iterator[Passage[M]]:
        """Give what happened up to the end of each stretch.

        Parameters
        ----------
        span
            In how many stretches before that end; fewer at the beginning.

        Yields
        ------
        Passage
            One for each stretch, in their order.
        """
        for last in range(1, len(self._monitors) + 1):
            first = max(last - span, 0)
            end = min(last * self.size, self.count)
            yield Passage(end, end - first * self.size, _joined(self._monitors[first:last]))


def _joined(many: Sequence[M]) -> M:
    return type(many[0]).total(many)
