"""The records of a day: 500 models, labels that are late by what they say, and a drift.

The times of events are those of the wall clock, so that delays and alerts are real.
"""

from __future__ import annotations

import heapq
from random import Random
from typing import TYPE_CHECKING

from tests.connectors.kafka.chaos.traffic import Sent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.connectors.day.schemas import Schemas

__all__ = ["BUSY", "MODELS", "WAIT", "DayRecords"]

MODELS = 500
BUSY = "model-0"
"""The model with the most observations, the only one that ever drifts."""

WAIT = 1.5
"""Units of time for which an observation waits for its label; all labels come before."""

_SHARE = 0.25  # of the busy model
_DELAYS = 0.05, 0.25  # units of time by which a label 0, and a label 1, is late on average
_LATEST = 1.2  # units
_UNLABELLED, _TWICE, _EARLY, _KEYLESS = 0.05, 0.01, 0.02, 0.1  # shares


class DayRecords:
    """Draws observations at a steady rate, and their labels, of which those that say 1 come later.

    Parameters
    ----------
    schemas
        The schemas of the records.
    seed
        Seed of the draws.
    rate
        Observations a second.
    unit
        Seconds of the unit of time.
    now
        Time of the first observation, in milliseconds.

    Attributes
    ----------
    drifting
        Whether the scores of the busy model say the opposite of what comes.
    made
        Number of observations with a label, and number of those whose label is 1.
    """

    def __init__(self, schemas: Schemas, seed: int, rate: float, unit: float, now: int) -> None:
        """Begin."""
        self._schemas = schemas
        self._random = Random(seed)  # noqa: S311 - not for secrets
        self._step, self._unit = round(1000 / rate), 1000 * unit
        self._next, self._number = now, 0
        self._due: list[tuple[int, int, Sent]] = []
        self.drifting = False
        self.made = [0, 0]

    def due(self, now: int) -> list[Sent]:
        """Return the records up to a time that were not returned yet."""
        found = [one for time in range(self._next, now, self._step) for one in self._at(time)]
        while self._due and self._due[0][0] <= now:
            found.append(heapq.heappop(self._due)[-1])
        return found

    def rest(self, now: int) -> list[Sent]:
        """Return the labels that are still to come."""
        del now
        found, self._due = [one for _, _, one in sorted(self._due)], []
        return found

    def _at(self, now: int) -> Iterator[Sent]:
        random, schemas = self._random, self._schemas
        self._next, self._number = now + self._step, self._number + 1
        name = f"o{self._number}"
        busy = random.random() < _SHARE
        model = BUSY if busy else f"model-{random.randrange(1, MODELS)}"
        score = round(random.uniform(0.02, 0.98), 4)
        more = {"channel": random.choice(["app", "web"])} if schemas.evolved else {}
        value = schemas.written(
            schemas.observation, id=name, time=now, model=model, score=score, **more
        )
        for _ in range(1 + (random.random() < _TWICE)):
            yield Sent("observations", self._key(), value, now, id=name)
        if random.random() < _UNLABELLED:
            return
        p = 1 - score if busy and self.drifting else score
        label = int(random.random() < p)
        self.made[0] += 1
        self.made[1] += label
        late = min(random.expovariate(1 / _DELAYS[label]), _LATEST) * self._unit
        at = now + (-1 if random.random() < _EARLY else int(late))
        value = schemas.written(schemas.label, id=name, time=at, model=model, label=label)
        for _ in range(1 + (random.random() < _TWICE)):
            heapq.heappush(
                self._due, (at, random.randrange(1 << 40), Sent("labels", self._key(), value, at))
            )

    def _key(self) -> bytes | None:
        """Draw a key, which says nothing of the model."""
        return None if self._random.random() < _KEYLESS else self._random.randbytes(4)
