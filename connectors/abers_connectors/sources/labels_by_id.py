"""Labels that name no model, each for every model that has an observation of its id.

The observations are read once more, before the first label, for their ids and models alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from abers.stream.column_types import objects
from abers_connectors.sources.merge import MergedSource
from abers_connectors.sources.ordered import unordered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.sources.base import Batch, Origin, Position, Source

__all__ = ["LabelsById", "labels_by_id"]


def labels_by_id(both: MergedSource) -> MergedSource:
    """Return observations and labels, the labels for the models of the observations."""
    observations, labels = both.sources
    return MergedSource([observations, LabelsById(labels, unordered(observations))])


class LabelsById:
    """The labels of a source, with the models of observations; all else stays as it is.

    A label of an id that no observation has keeps its own model, and meets none.
    """

    def __init__(self, labels: Source, observations: Source) -> None:
        self.name = labels.name
        self._labels, self._observations = labels, observations
        self._models: Mapping[str, Sequence[str]] | None = None

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position of the labels."""
        if self._models is None:
            self._models = _models(self._observations)
        for batch in self._labels.batches(position):
            yield _of_models(batch, self._models)

    def fraction(self) -> float | None:
        """Return the share of the labels that has been read."""
        return self._labels.fraction()


def _models(observations: Source) -> dict[str, tuple[str, ...]]:
    """Return the models of each id, in the order of their first observations."""
    found: dict[str, tuple[str, ...]] = {}
    for batch in observations.batches():
        events = batch.events
        for id_, model in zip(events.ids.tolist(), events.models.tolist(), strict=True):
            before = found.get(id_, ())
            if model not in before:
                found[id_] = (*before, model)
    return found


def _of_models(batch: Batch, models: Mapping[str, Sequence[str]]) -> Batch:
    """Return a batch with a row for each model of a label."""
    events = batch.events
    pairs = zip(events.ids.tolist(), events.models.tolist(), strict=True)
    of = [models.get(id_, (model,)) for id_, model in pairs]
    rows = np.repeat(np.arange(len(of)), [*map(len, of)])
    found = replace(events.take(rows), models=objects([one for names in of for one in names]))
    bad = [one._replace(row=int(np.searchsorted(rows, one.row))) for one in batch.bad]

    def origin(row: int) -> Origin:
        return batch.origin(int(rows[row]))

    return replace(batch, events=found, bad=bad, origin=origin)
