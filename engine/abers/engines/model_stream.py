"""The events of one model, which come as tables in the order of time, and its outputs.

Rows of the last time so far wait for the next table, since another row of that time may be a label,
and labels come first. Labels that become known later than their rows wait for their time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from abers.arrow_values import require_pyarrow
from abers.exceptions import ParameterError, RecordError
from abers.stream.arrow_fields import models_and_times
from abers.stream.columns import Events
from abers.stream.event_order import filled_times, time_order
from abers.stream.processor import Processor

if TYPE_CHECKING:
    import pyarrow as pa

    from abers.arrays import Integers
    from abers.stream.arrow_fields import FieldNames
    from abers.stream.arrow_tables import ArrowOutputs
    from abers.stream.settings import Settings

__all__ = ["ModelStream", "of_one_model"]

_END = np.iinfo(np.int64).max


def of_one_model(settings: Settings) -> Settings:
    """Return settings for a model by itself: it is not retired, for there is no other."""
    return msgspec.structs.replace(settings, retire_after=None)


class ModelStream:
    """A model with a processor of its own, so that its outputs depend on no other model.

    Parameters
    ----------
    model
        Its name, for errors.
    settings, fields, outcomes
        As of `process_history`.
    """

    def __init__(
        self, model: str, settings: Settings, fields: FieldNames | None, *, outcomes: bool
    ) -> None:
        self._model, self._fields = model, fields
        self._processor = Processor(of_one_model(settings), outcomes=outcomes)
        self._held: tuple[pa.Table, Integers] | None = None  # rows of the last time
        self._awaited: Events | None = None  # labels that are known later
        self._last: int | None = None  # time of the last row
        self._rows = 0
        self._events = 0

    def take(self, table: pa.Table, *, last: bool = False) -> list[ArrowOutputs]:
        """Process the next rows, at least one, and the last ones or not; return their outputs."""
        times = self._times(table)
        self._rows += len(times)
        self._last = int(times[-1])
        if self._held is not None:
            table = require_pyarrow().concat_tables([self._held[0], table])
            times = np.concatenate([self._held[1], times])
        if last:  # two small batches take longer than one
            self._held = None
            return self._process(self._ordered(table, times), _END)
        cut = int(np.searchsorted(times, self._last))
        # A slice would keep the whole table in memory.
        self._held = table.take(np.arange(cut, len(times))), times[cut:]
        return self._process(self._ordered(table.slice(0, cut), times[:cut]), self._last)

    def finish(self) -> list[ArrowOutputs]:
        """Process what waits, when no more rows come."""
        held, self._held = self._held, None
        return [] if held is None else self._process(self._ordered(*held), _END)

    def _times(self, table: pa.Table) -> Integers:
        """Return the times of rows; a row without one is at the time of the row before it."""
        _, column = models_and_times(table, self._fields)
        times = filled_times(column, self._last)
        previous = np.concatenate([times[:1] if self._last is None else [self._last], times[:-1]])
        if (back := np.flatnonzero(times < previous)).size:
            row = int(back[0])
            msg = f"model {self._model!r}: its row {self._rows + row + 1} is at {times[row]}, after"
            msg += f" a row at {previous[row]}; sort the events of each model by time"
            raise RecordError(msg)
        return times

    def _ordered(self, table: pa.Table, times: Integers) -> Events | None:
        """Return the events of rows by time, and after them labels that are known later."""
        if not len(times):
            return None
        try:
            events = Events.from_arrow(table, self._fields, self._processor.settings)
        except ParameterError as error:
            msg = f"model {self._model!r}, in its rows up to {self._rows}: {error}"
            raise ParameterError(msg) from None
        if (self._fields or {}).get("label_time") is not None:
            return events
        late = (times[1:] == times[:-1]) & events.labels[1:] & ~events.labels[:-1]
        return events.take(time_order(times, events.labels)) if late.any() else events

    def _process(self, events: Events | None, end: int) -> list[ArrowOutputs]:
        """Process events, and labels that are known before the end."""
        if (self._fields or {}).get("label_time") is not None:
            events = self._known(events, end)
        if events is None or not len(events):
            return []
        outputs = self._processor.process_batch(events)
        tables = outputs.to_arrow()
        if outputs.dead_letters:
            where = tables.dead_letters.column("where").to_pylist()
            for number, (_, letter) in enumerate(outputs.dead_letters):
                if letter.row is not None:
                    place = self._events + letter.row + 1
                    where[number] = f"event {place} of model {self._model!r}"
            position = tables.dead_letters.column_names.index("where")
            located = tables.dead_letters.set_column(
                position, "where", require_pyarrow().array(where, "string")
            )
            tables = tables._replace(dead_letters=located)
        self._events += len(events)
        return [tables]

    def _known(self, events: Events | None, end: int) -> Events | None:
        """Return what is known before the end, by time, and keep the other labels."""
        parts = [one for one in (self._awaited, events) if one is not None]
        if not parts:
            return None
        merged = Events.joined(parts)
        # Labels that waited come first at equal times: their rows are all before these.
        merged = merged.take(np.argsort(filled_times(merged.times), kind="stable"))
        cut = int(np.searchsorted(filled_times(merged.times), end))
        self._awaited = merged[cut:] if cut < len(merged) else None
        return merged[:cut]
