"""What may be read of a processor: its counts, clocks, calibrators and monitors."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers.stream import accounts, known_ids
from abers.stream.pending_store import EARLY, FINISHED, PENDING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream.columns import Events
    from abers.stream.history import ModelHistory
    from abers.stream.known_ids import KnownIds
    from abers.stream.state import ProcessorState

__all__ = ["ModelHoldings", "ProcessorView"]


class ModelHoldings(NamedTuple):
    """What a processor keeps of a model, in all its segments."""

    keys: Sequence[int]  # numbers of its pairs of model and segment
    labels: int  # in its calibrators
    pending: int  # observations that wait for labels
    known: int  # labels that wait for observations, and finished ids that are remembered


class ProcessorView:
    """The properties of a processor; reading them changes nothing."""

    _state: ProcessorState

    @property
    def clock(self) -> int | None:
        """The latest clock of all models, in milliseconds; None before the first event."""
        return self._state.join.store.clock

    @property
    def counters(self) -> dict[str, int]:
        """Counts of events by kind and result."""
        return self._state.join.counters

    @property
    def waiting(self) -> tuple[int, int]:
        """Number of observations that wait for labels, and of labels that wait for observations."""
        store = self._state.join.store
        return store.count(PENDING), store.count(EARLY)

    @property
    def known_count(self) -> int:
        """Number of ids that are known: those that wait, and finished ids."""
        return known_ids.known_count(self._state.join)

    def known_ids(self) -> Iterator[KnownIds]:
        """Yield the ids that are known; see `abers.stream.known_ids`."""
        return known_ids.known_ids(self._state.join, self._state.task)

    def waits(self) -> Events:
        """Return the end of each wait for a label, as events.

        A processor that takes them waits for no label, as if each wait were over: it is for the end
        of a stream that is all there is.
        """
        return self._state.join.waits()

    @property
    def accounts(self) -> dict[str, int]:
        """How all events and predictions ended, or wait; see `abers.stream.accounts`."""
        store = self._state.join.store
        return accounts.numbers(self.counters, store.undecided(), store.count(EARLY))

    @property
    def late_delays(self) -> Sequence[int]:
        """Delays of the last 1,000 late labels, in milliseconds, since the processor was made."""
        return [*self._state.join.late_delays]

    @property
    def held(self) -> tuple[int, int]:
        """Number of labels that all calibrators hold, and of finished ids that are remembered."""
        return self._state.calibration.labels, self._state.join.store.count(FINISHED)

    @property
    def keys(self) -> Sequence[tuple[str, str]]:
        """Model and segment of each calibrator, by its number."""
        return [*self._state.join.names.pairs]

    @property
    def made(self) -> Sequence[int]:
        """Number of predictions of each calibrator since the beginning of the state."""
        found: list[int] = self._state.calibration.made.tolist()
        return found

    def holdings(self, models: Collection[str]) -> dict[str, ModelHoldings]:
        """Return what is kept of some models; those that are not known are left out.

        Examples
        --------
        >>> from abers.stream import Label, Observation, Processor
        >>> processor = Processor()
        >>> pair = [Observation("a", 1, score=0.5), Label("a", 2, value=1)]
        >>> _ = processor.process_many([*pair, Observation("b", 3, score=0.5)])
        >>> processor.holdings(["default", "other"])
        {'default': ModelHoldings(keys=[0], labels=1, pending=1, known=1)}
        """
        keys: dict[str, list[int]] = {}
        for key, (model, _) in enumerate(self.keys):
            if model in models:
                keys.setdefault(model, []).append(key)
        return {model: self._holdings_of(model, of_model) for model, of_model in keys.items()}

    def _holdings_of(self, model: str, keys: Sequence[int]) -> ModelHoldings:
        store, number = self._state.join.store, self._state.join.names.models[model]
        size = self._state.calibration.calibrators.size
        pending, early, finished = (
            store.count_of(kind, number) for kind in (PENDING, EARLY, FINISHED)
        )
        return ModelHoldings(keys, sum(map(size, keys)), pending, early + finished)

    @property
    def monitors(self) -> Sequence[TaskMonitor]:
        """Monitors of the predictions, one for each model and segment; none if switched off."""
        return self._state.watched().monitors or ()

    @property
    def histories(self) -> Sequence[ModelHistory]:
        """Histories of the predictions, one for each model and segment; none if switched off."""
        return self._state.watched().histories

    @property
    def monitor(self) -> TaskMonitor | None:
        """Monitor of all predictions together; None before the first."""
        many = self.monitors
        return type(many[0]).total(many) if many else None
