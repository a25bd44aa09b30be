"""What may be read of a processor: its counts, clocks, calibrators and monitors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.stream import accounts, known_ids
from abers.stream.pending_store import EARLY, FINISHED, PENDING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers.monitoring import TaskMonitor
    from abers.stream.columns import Events
    from abers.stream.history import ModelHistory
    from abers.stream.known_ids import KnownIds
    from abers.stream.state import ProcessorState

__all__ = ["ProcessorView"]


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
