"""Tables of models in the order of time: the events of one, and the outputs of many.

Rows of the last time so far wait for the next table, since another row of that time may be a label,
and labels come first. Labels that become known later than their rows wait for their time.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.arrays import require_pyarrow
from abers.exceptions import ParameterError, RecordError
from abers.stream.arrow_columns import models_and_times
from abers.stream.columns import Events, filled_times, time_order
from abers.stream.outputs import ArrowOutputs
from abers.stream.processor import Processor
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from abers.arrays import Integers
    from abers.stream.arrow_columns import FieldNames
    from abers.stream.cells import Column

__all__ = ["ModelStream", "of_one_model", "process_history"]

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


_CHUNK_ROWS = 1 << 19
"""Rows that are grouped by model at once: some 50 MB, and thousands of rows for each of 100 models.
A batch of fewer rows of a model takes longer for each."""


def process_history(  # noqa: PLR0913 - two inputs, and options
    batches: Iterable[pa.RecordBatch | pa.Table],
    settings: Settings | None = None,
    fields: FieldNames | None = None,
    *,
    outcomes: bool = True,
    consecutive: bool = False,
    chunk_rows: int = _CHUNK_ROWS,
) -> Iterator[ArrowOutputs]:
    """Yield the outputs of a history of some models.

    Parameters
    ----------
    batches
        The events in tables or record batches, those of each model in the order of time.
    settings
        The task, the calibrators and the limits, which hold for each model by itself.
    fields
        Columns by field, as of `Events.from_arrow`.
    outcomes
        Whether a label that settles a prediction gives an outcome.
    consecutive
        Whether the rows of each model are consecutive. A model that has ended takes no memory then.
    chunk_rows
        Number of rows that are grouped by model at once; twice as many are in memory.

    Yields
    ------
    ArrowOutputs
        Outputs of a chunk of rows, by model. A dead letter is located by its model, and by the
        number of its event among those of the model.

    Raises
    ------
    RecordError
        If a row is before another of its model, or a model ends and comes back.
    ParameterError
        If a column is missing or has an unusable type, or the learner is an object.

    Notes
    -----
    **Guarantee.** The outputs of a model are those of a `Processor` that takes its events alone,
    by time, labels first at equal times, otherwise in their order. They do not depend on other
    models, on the batches, or on the chunks.

    Examples
    --------
    >>> import pyarrow as pa
    >>> columns = {"id": ["a", "a"], "time": [1, 2], "score": [0.5, None], "label": [None, 1]}
    >>> [one.predictions.num_rows for one in process_history([pa.table(columns)])]
    [1]
    """
    settings = settings or Settings()
    streams: dict[str, ModelStream] = {}
    ended: set[str] = set()
    following = _chunks(batches, chunk_rows)
    table = next(following, None)
    while table is not None:
        later = next(following, None)
        found: list[ArrowOutputs] = []
        models, _ = models_and_times(table, fields)
        for model, rows in _grouped_rows(table, models):
            last = later is None or (consecutive and model != models[-1])
            if model in ended:
                msg = f"model {model!r} comes back after other models; sort by model, then by time"
                raise RecordError(msg)
            if model not in streams:
                streams[model] = ModelStream(model, settings, fields, outcomes=outcomes)
            found += streams[model].take(rows, last=last)
        if consecutive:
            over = [model for model in streams if model != models[-1]]
            found += chain.from_iterable(streams.pop(model).finish() for model in over)
            ended.update(over)
        if found:
            yield _joined(found)
        table = later
    if last := [*chain.from_iterable(one.finish() for one in streams.values())]:
        yield _joined(last)


def _chunks(batches: Iterable[pa.RecordBatch | pa.Table], rows: int) -> Iterator[pa.Table]:
    """Join batches to tables of at least so many rows, but for the last; none is empty."""
    arrow = require_pyarrow()
    waiting: list[Any] = []
    for batch in batches:
        if batch.num_rows:
            waiting.append(arrow.table(batch))
        if sum(one.num_rows for one in waiting) >= rows:
            yield arrow.concat_tables(waiting)
            waiting = []
    if waiting:
        yield arrow.concat_tables(waiting)


def _grouped_rows(table: pa.Table, keys: Column | Sequence[Any]) -> Iterator[tuple[Any, pa.Table]]:
    """Yield each key of a table with its rows, in their order."""
    values = keys.tolist() if isinstance(keys, np.ndarray) else keys
    numbers = {key: number for number, key in enumerate(dict.fromkeys(values))}
    codes = np.fromiter(map(numbers.__getitem__, values), np.int64, len(values))
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        table, codes = table.take(order), codes[order]
    ends = np.searchsorted(codes, np.arange(1, len(numbers) + 1))
    start = 0
    for key, end in zip(numbers, ends.tolist(), strict=True):
        yield key, table.slice(start, end - start)
        start = end


def _joined(parts: Sequence[ArrowOutputs]) -> ArrowOutputs:
    join = require_pyarrow().concat_tables
    return ArrowOutputs(
        join([one.predictions for one in parts]),
        None if parts[0].outcomes is None else join([one.outcomes for one in parts]),
        join([one.dead_letters for one in parts]),
        join([one.alarms for one in parts]),
    )
