"""A few events with their journal entry, without columns of a few rows.

Plain events are processed one at a time, as `abers.stream.single_event` does, and what their entry
has of them is noted on the way. If any event is not plain, all of them make a batch.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.stream.event_notes import EventNotes
from abers.stream.events import DeadLetter, Observation
from abers.stream.journal import JournalEntry, counted, encoded_extra, settings_digest
from abers.stream.outputs import Outputs
from abers.stream.rows import ObjectRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers.stream.events import Event, Output
    from abers.stream.state import ProcessorState

__all__ = ["record_few"]

_MOST = 32  # events: more are faster as a batch


def record_few(
    state: ProcessorState, events: Sequence[Event]
) -> tuple[Outputs, JournalEntry] | None:
    """Process a few plain events, and return their outputs and entry.

    The outputs are without `settled_batch` and alarms, since monitors and tests take the events
    later. None if the events are to make a batch; nothing has changed then. A ParameterError is
    raised, before anything changes, if an extra field cannot be encoded.
    """
    if state.broken or not state.outcomes or not 0 < len(events) <= _MOST:
        return None
    single = state.single
    known = [found for found in map(single.known, events) if found is not None]
    if len(known) < len(events):
        return None
    fields = [one.extra for one in events if type(one) is Observation]
    extra = encoded_extra(fields) if any(fields) else b""
    notes = EventNotes()
    made = [single.take(event, *found, notes) for event, found in zip(events, known, strict=True)]
    return _outputs(state, made), _entry(state, notes, extra)


def _entry(state: ProcessorState, notes: EventNotes, extra: bytes) -> JournalEntry:
    """Return the entry of events that are noted, and are the last that a state took."""
    repeats = state.task.repeats
    return JournalEntry(
        settings=settings_digest(state.settings),
        labels=bytes(notes.labels),
        rejected=[],
        ids=notes.ids,
        times=_packed("q", notes.times),
        new_models=[],
        new_keys=[],
        models=_packed("I", notes.models),
        keys=_packed("I", notes.keys),
        scores=_packed("d", notes.scores),
        values=_packed("d", notes.values),
        predictions=b"" if repeats else _packed("d", notes.predictions),
        n_labels=b"" if repeats else _packed("q", notes.n_labels),
        features=None,
        extra=extra,
        counters=counted(state.join.counters),
        retired=[],
    )


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
