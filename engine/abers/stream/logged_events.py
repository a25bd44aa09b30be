"""A few events with their journal entry, without columns of a few rows.

Plain events are processed one at a time, as `abers.stream.single_event` does, and what their entry
has of them is noted on the way. If any event is not plain, all of them make a batch.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.events import DeadLetter, Observation
from abers.stream.journal import JournalEntry, counted, encoded_extra, settings_digest
from abers.stream.outputs import Outputs
from abers.stream.rows import ObjectRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.events import Event, Output
    from abers.stream.state import ProcessorState
    from abers.stream.tasks.base import PredictionRows

__all__ = ["EntryColumns", "record_few"]

_MOST = 32  # events: more are faster as a batch


class EntryColumns:
    """The columns of a journal entry of plain events, an event at a time.

    Raises a ParameterError if an extra field of these events cannot be encoded.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        extra = [one.extra for one in events if type(one) is Observation]
        self._extra = encoded_extra(extra) if any(extra) else b""
        self._labels = bytearray()
        self._ids: list[str] = []
        self._times: list[int] = []
        self._models: list[int] = []
        self._keys: list[int] = []
        self._scores: list[float] = []
        self._values: list[float] = []
        self._predictions: list[float] = []
        self._n_labels: list[int] = []

    def add(self, event: Event, model: int, key: int, given: Any) -> None:  # noqa: ANN401 - a score or a label
        """Note a valid event, before it is processed."""
        self._ids.append(event.id)
        self._times.append(event.time)
        self._models.append(model)
        if type(event) is Observation:
            self._labels.append(0)
            self._keys.append(key)
            self._scores += given
        else:
            self._labels.append(1)
            self._values.append(given)

    def predicted(self, row: Sequence[float], n_labels: int) -> None:
        """Note a prediction."""
        self._predictions += row
        self._n_labels.append(n_labels)

    def predicted_rows(self, issued: PredictionRows) -> None:
        """Note the predictions of a batch."""
        for row, n_labels in zip(issued.rows.tolist(), issued.n_labels.tolist(), strict=True):
            self.predicted(row, n_labels)

    def entry(self, state: ProcessorState) -> JournalEntry:
        """Return the entry of these events, which are the last that a state took."""
        repeats = state.task.repeats
        return JournalEntry(
            settings=settings_digest(state.settings),
            labels=bytes(self._labels),
            rejected=[],
            ids=self._ids,
            times=_packed("q", self._times),
            new_models=[],
            new_keys=[],
            models=_packed("I", self._models),
            keys=_packed("I", self._keys),
            scores=_packed("d", self._scores),
            values=_packed("d", self._values),
            predictions=b"" if repeats else _packed("d", self._predictions),
            n_labels=b"" if repeats else _packed("q", self._n_labels),
            features=None,
            extra=self._extra,
            counters=counted(state.join.counters),
            retired=[],
        )


def record_few(
    state: ProcessorState, events: Sequence[Event]
) -> tuple[Outputs, JournalEntry] | None:
    """Process a few plain events, and return their outputs and entry.

    The outputs are without `settled_batch` and alarms, since monitors and tests take the events
    later. None if the events are to make a batch; nothing has changed then.
    """
    if state.broken or not state.outcomes or not 0 < len(events) <= _MOST:
        return None
    single = state.single
    known = [found for found in map(single.known, events) if found is not None]
    if len(known) < len(events):
        return None
    columns = EntryColumns(events)
    made = [single.take(event, *found, columns) for event, found in zip(events, known, strict=True)]
    return _outputs(state, made), columns.entry(state)


def _outputs(state: ProcessorState, made: Sequence[Sequence[Output]]) -> Outputs:
    """Return the outputs of each event by kind."""
    kinds: tuple[list[Any], ...] = ([], [], [])
    rows: tuple[list[int], ...] = ([], [], [])
    for row, outputs in enumerate(made):
        for one in outputs:
            kind = _kind(state, one)
            kinds[kind].append(one)
            rows[kind].append(row)
    predictions, outcomes, dead = kinds
    return Outputs(
        ObjectRows(state.task.prediction, predictions),
        ObjectRows(state.task.outcome, outcomes),
        [*zip(rows[2], dead, strict=True)],
        np.array(rows[0], np.int64),
        np.array(rows[1], np.int64),
    )


def _kind(state: ProcessorState, output: Output) -> int:
    """Return 0 for a prediction, 1 for an outcome, 2 for a dead letter."""
    kind = type(output)
    return 0 if kind is state.task.prediction else 1 if kind is not DeadLetter else 2


def _packed(kind: str, values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}{kind}", *values)
