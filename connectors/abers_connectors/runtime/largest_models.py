"""The models with most of the predictions of a process, and the memory that each takes.

One process does all the work of a model, so a model with a large share is the first to be too much
for it. A share is of the predictions of the last minutes: a model that is hot now shows, however
long the others have run.
"""

from __future__ import annotations

import time
from collections import Counter
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.runtime.state_size import model_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from abers.stream import Processor

__all__ = ["LargeModel", "LargestModels"]

_LISTED = 10
_PERIOD = 300.0  # seconds after which the older of two counts is dropped


class LargeModel(NamedTuple):
    """A model with a large share of the predictions."""

    model: str
    predictions: int  # since the beginning of its state
    share: float  # of all predictions of the last 5 to 10 minutes, or else of all time
    bytes: int  # of memory, estimated


class LargestModels:
    """Finds the models with the largest shares, whenever it is called; the clock is monotonic.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> processor, largest = Processor(), LargestModels()
    >>> names = ["a", "a", "a", "b"]
    >>> events = [Observation(str(n), n, m, score=0.5) for n, m in enumerate(names)]
    >>> _ = processor.process_many(events)
    >>> [(one.model, one.predictions, one.share) for one in largest([processor])]
    [('a', 3, 0.75), ('b', 1, 0.25)]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._older: Counter[str] | None = None  # predictions by model
        self._newer: Counter[str] = Counter()
        self._since = clock()  # when the newer were counted

    def __call__(self, processors: Iterable[Processor]) -> list[LargeModel]:
        """Return the largest shares, the largest first."""
        processors = [*processors]
        counts = _predictions(processors)
        recent = self._recent(counts)
        whole = recent.total() or 1
        found = nlargest(_LISTED, recent, key=lambda model: (recent[model], model))
        sizes = _sizes(processors, {*found})
        return [LargeModel(one, counts[one], recent[one] / whole, sizes[one]) for one in found]

    def _recent(self, counts: Counter[str]) -> Counter[str]:
        """Return how many predictions came lately; all of them if none did."""
        if self._older is None:
            self._older = self._newer = counts
        elif self._clock() - self._since >= _PERIOD:
            self._older, self._newer, self._since = self._newer, counts, self._clock()
        return counts - self._older or +counts


def _predictions(processors: Iterable[Processor]) -> Counter[str]:
    """Count all predictions by model."""
    counts = Counter[str]()
    for one in processors:
        for (model, _), made in zip(one.keys, one.made, strict=False):
            counts[model] += made
    return counts


def _sizes(processors: Iterable[Processor], models: set[str]) -> Counter[str]:
    """Estimate the bytes of memory of some models."""
    sizes = Counter[str]()
    for one in processors:
        for model, held in one.holdings(models).items():
            sizes[model] += model_bytes(one, held)
    return sizes
