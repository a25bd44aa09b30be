"""History of each model and segment, from what passes through the processors.

All of it happens in the thread that works, so nothing is read while it changes. Memory is bounded,
however long the stream is and however many models it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers.stream.columns import by_key
from abers_connectors.dashboard.history import ModelHistory
from abers_connectors.dashboard.model_view import ModelView
from abers_connectors.dashboard.models import model_monitors, model_statuses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream import Outputs, Processor
    from abers_connectors.dashboard.models import Key, ModelStatus

__all__ = ["ObservedModel", "Observer"]

_WINDOWS = 64  # of a model: points enough for a screen
_MODELS = 100  # whose history is kept
_DELAYS = 1_000  # labels whose delays are kept, of all models


class ObservedModel(NamedTuple):
    """Monitor of a model, of all processors together, and its history."""

    monitor: TaskMonitor
    history: ModelHistory

    def view(self) -> ModelView:
        """Return what a page shows."""
        return ModelView.of(self.monitor, self.history)


class Observer:
    """Keeps the history of models; all-time scores are those of the processors' monitors."""

    def __init__(self) -> None:
        self._processors: dict[int, Processor] = {}
        self._histories: dict[Key, ModelHistory] = {}
        self._delays = np.empty(0)

    def hold(self, processors: Mapping[int, Processor]) -> None:
        """Set the current processors, by partition number."""
        self._processors = dict(processors)

    def take(self, processor: Processor, outputs: Outputs) -> None:
        """Add the outputs of a processor, once they are committed."""
        self._drop(processor, outputs.retired)
        if (settled := outputs.settled_batch) is None or not len(settled.keys):
            return
        delays = np.maximum(settled.delays[-_DELAYS:], 0) / 1000
        self._delays = np.concatenate([self._delays, delays])[-_DELAYS:]
        keys, alarms = processor.keys, [alarm for _, alarm in outputs.alarms]
        for number, rows in by_key(settled.keys):
            key = keys[number]
            if (history := self._history(key, processor)) is not None:
                mine = [one for one in alarms if (one.model, one.segment) == key]
                history.take(settled.take(rows), [processor.monitors[number]], mine)

    def _drop(self, processor: Processor, retired: Sequence[str]) -> None:
        """Forget models that were retired and that no processor has."""
        if retired:
            having = [processor, *self._processors.values()]
            gone = {*retired} - {model for one in having for model, _ in one.keys}
            kept = {key: one for key, one in self._histories.items() if key[0] not in gone}
            self._histories = kept

    def _history(self, key: Key, processor: Processor) -> ModelHistory | None:
        """Return the history of a key; None if too many models have one."""
        if key not in self._histories and len(self._histories) < _MODELS:
            self._histories[key] = ModelHistory(processor.settings, _WINDOWS)
        return self._histories.get(key)

    def delay(self) -> float | None:
        """Return the median delay of the last labels, in seconds of event time."""
        return float(np.median(self._delays)) if len(self._delays) else None

    def waiting(self) -> tuple[int, int]:
        """Return the numbers of pending observations and of early labels."""
        pairs = [processor.waiting for processor in self._processors.values()]
        return sum(pending for pending, _ in pairs), sum(early for _, early in pairs)

    def models(self) -> list[ModelStatus]:
        """Return the models, the one with most labels first."""
        return model_statuses(self._monitors())

    def view(self, key: Key) -> ModelView | None:
        """Return what a page shows of a model and segment; None if there is no such model."""
        monitors = self._monitors().get(key)
        return None if monitors is None else self._model(key, monitors).view()

    def kept(self) -> dict[Key, ObservedModel]:
        """Return the models with a history, the one with most labels first.

        While there is room, models without a history follow, such as those of a restored state.
        """
        known = self._monitors()
        keys = [one.key for one in model_statuses(known)]
        others = [key for key in keys if key not in self._histories]
        chosen = {*self._histories, *others[: _MODELS - len(self._histories)]}
        return {key: self._model(key, known[key]) for key in keys if key in chosen}

    def _model(self, key: Key, monitors: Sequence[TaskMonitor]) -> ObservedModel:
        history = self._histories.get(key)
        if history is None:
            history = ModelHistory(next(iter(self._processors.values())).settings)
        return ObservedModel(type(monitors[0]).total(monitors), history)

    def _monitors(self) -> dict[Key, list[TaskMonitor]]:
        return model_monitors(self._processors.values())
