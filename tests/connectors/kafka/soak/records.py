"""Records of a soak: observations as time goes by, late labels, and models that come and go.

The times of events are those of the wall clock, so that delays and alerts are real.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import TYPE_CHECKING

from tests.connectors.kafka.chaos.tasks import BINARY
from tests.connectors.kafka.chaos.traffic import Sent, bad_record, observed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Records"]

_NEW = 9  # new models in a unit of time
_LIVE = 6  # models that are live at the same time, each for two thirds of a unit
_BURST = 8  # labels of the last of so many parts of a unit come at its end, all at once
_AHEAD = 240_000  # milliseconds; less than limits.max_clock_skew
_BAD = 0.001  # share of records that are not events


class Records:
    """Draws observations at a steady rate, and their labels, which are late.

    Parameters
    ----------
    seed
        Seed of the draws.
    rate
        Observations a second.
    unit
        Seconds of the unit of time, of which the mean delay of a label is a quarter.
    now
        Time of the first observation, in milliseconds.

    Attributes
    ----------
    labels_stopped
        Whether labels are kept back; they come at once when it ends.
    """

    def __init__(self, seed: int, rate: float, unit: float, now: int) -> None:
        """Begin."""
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._step, self._unit = round(1000 / rate), 1000 * unit
        self._began = self._next = now
        self._number = 0
        self._due: list[tuple[int, int, Sent]] = []
        self.labels_stopped = False

    def due(self, now: int) -> list[Sent]:
        """Return the records up to a time that were not returned yet."""
        found = [one for time in range(self._next, now, self._step) for one in self._at(time)]
        if not self.labels_stopped and not self._gathering(now):
            found += self._labels(now)
        return found

    def rest(self, now: int) -> list[Sent]:
        """Return the labels that are still to come, as far as a service believes their times.

        The others never come: a label of far in the future is a dead letter.
        """
        return [*self._labels(now + _AHEAD)]

    def _gathering(self, now: int) -> bool:
        """Return whether labels wait for the end of a unit."""
        return (now - self._began) % self._unit > self._unit * (1 - 1 / _BURST)

    def _labels(self, now: int) -> Iterator[Sent]:
        while self._due and self._due[0][0] <= now:
            yield heapq.heappop(self._due)[-1]

    def _at(self, now: int) -> Iterator[Sent]:
        self._next, self._number = now + self._step, self._number + 1
        number, model = self._number, self._model(now)
        for one in observed(self._random, number, now, model, BINARY, self._unit / 4):
            if one.topic == "labels":
                heapq.heappush(self._due, (one.time, number, one))
            else:
                yield one
        if self._random.random() < _BAD:
            yield bad_record(self._random, number, now, model, BINARY)

    def _model(self, now: int) -> str:
        """Draw one of the newest models: they all come and go, so their state has a bound."""
        newest = int((now - self._began) * _NEW / self._unit)
        return f"model-{newest + self._random.randrange(_LIVE)}"
