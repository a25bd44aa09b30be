"""Models of the processors, as pages and reports read them.

All of it happens in the thread that works, so nothing is read while it changes.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.pages.model_findings import LatestOutcomes, ModelDetails
from abers_connectors.dashboard.model_history import joined_history
from abers_connectors.dashboard.models import model_monitors, model_statuses
from abers_connectors.dashboard.reference_period import ReferencePeriod
from abers_connectors.runtime.model_index import ModelIndex

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.arrays import Integers
    from abers.monitoring import TaskMonitor
    from abers.stream import Outputs, Processor
    from abers.stream.history import ModelHistory
    from abers_connectors.dashboard.model_history import JoinedHistory
    from abers_connectors.dashboard.models import Key, ModelStatus
    from abers_connectors.dashboard.reference_period import Reference
    from abers_connectors.replay.options import Period

__all__ = ["ObservedModel", "Observer"]

_DELAYS = 1_000  # labels with delays that are kept, of all models


class ObservedModel(NamedTuple):
    """Monitor and history of a model, of all processors together."""

    monitor: TaskMonitor
    history: JoinedHistory
    reference: Reference | None = None

    def details(self) -> ModelDetails:
        """Return what a page shows of the history."""
        history = self.history
        return ModelDetails(
            alarms=history.alarms,
            experts_over_time=history.experts,
            outcomes=LatestOutcomes(history.last, history.levels) if len(history.last) else None,
            reference=None if self.reference is None else self.reference.shares,
        )


class Observer:
    """Reads the models of processors; their scores and histories are those of the processors.

    A reference period is scored too. The index has all models as of its last update.
    """

    def __init__(self, reference: Period | None = None, index: ModelIndex | None = None) -> None:
        self.index = ModelIndex() if index is None else index
        self._reference = None if reference is None else ReferencePeriod(reference)
        self._processors: dict[int, Processor] = {}
        self._delays = np.empty(0)
        self.labels = 0
        """Number of labelled predictions."""
        self.latest: int | None = None
        """Largest event time of these labels."""

    def hold(self, processors: Mapping[int, Processor]) -> None:
        """Set the current processors, by partition number."""
        self._processors = dict(processors)

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Add the outputs of a processor, once they are committed."""
        if outputs.settled_batch is not None and len(outputs.settled_batch.times):
            self._note(outputs.settled_batch.times + outputs.settled_batch.delays)
            delays = np.maximum(outputs.settled_batch.delays[-_DELAYS:], 0) / 1000
            self._delays = np.concatenate([self._delays, delays])[-_DELAYS:]
            if self._reference is not None:
                self._reference.take(processor, outputs.settled_batch)

    def _note(self, times: Integers) -> None:
        """Note the event times of labels."""
        self.labels += len(times)
        latest = int(np.max(times))
        self.latest = latest if self.latest is None else max(self.latest, latest)

    def delay(self) -> float | None:
        """Return the median delay of the last labels, in seconds of event time."""
        return float(np.median(self._delays)) if len(self._delays) else None

    def waiting(self) -> tuple[int, int]:
        """Return the numbers of pending observations and of early labels."""
        pairs = [processor.waiting for processor in self._processors.values()]
        return sum(pending for pending, _ in pairs), sum(early for _, early in pairs)

    def update(self) -> None:
        """Update the index, at a bounded cost."""
        self.index.update(self._processors)

    def models(self) -> list[ModelStatus]:
        """Return the models as they are now, the worst first: slow with many."""
        return model_statuses(self.monitors())

    def total(self, key: Key) -> TaskMonitor | None:
        """Return the monitor of a model, of all processors together; None without the model."""
        monitors = [monitor for _, monitor in self._found(key)]
        return type(monitors[0]).total(monitors) if monitors else None

    def monitors(self) -> dict[Key, list[TaskMonitor]]:
        """Return the monitors of each model, one a processor that has it."""
        return model_monitors(self._processors.values())

    def observed(self, key: Key) -> ObservedModel:
        """Return a model that there is."""
        return self._model(self._found(key), [key])

    def whole(self) -> ObservedModel:
        """Return all models together; there is at least one."""
        processors = self._processors.values()
        found = [
            each
            for one in processors
            for each in zip(one.keys, one.histories, one.monitors, strict=False)
        ]
        if len(processors) > 1:
            found.sort(key=itemgetter(0))  # sums depend on their order
        pairs = [(history, monitor) for _, history, monitor in found]
        return self._model(pairs, [key for one in processors for key in one.keys])

    def _found(self, key: Key) -> list[tuple[ModelHistory, TaskMonitor]]:
        """Return the history and the monitor of a key in each processor that has it."""
        found = []
        for one in self._processors.values():
            for known, history, monitor in zip(one.keys, one.histories, one.monitors, strict=False):
                if known == key:
                    found.append((history, monitor))
        return found

    def _model(
        self, found: Sequence[tuple[ModelHistory, TaskMonitor]], keys: Sequence[Key]
    ) -> ObservedModel:
        monitors = [monitor for _, monitor in found]
        settings = next(iter(self._processors.values())).settings
        levels = settings.quantiles if settings.task == "regression" else ()
        reference = None if self._reference is None else self._reference.of(dict.fromkeys(keys))
        total = type(monitors[0]).total(monitors)
        return ObservedModel(total, joined_history(found, levels), reference)
