"""Outputs of a history of many models, each in the order of its time."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrow_values import require_pyarrow
from abers.engines.model_stream import ModelStream
from abers.exceptions import RecordError
from abers.stream.arrow_fields import models_and_times
from abers.stream.arrow_tables import ArrowOutputs
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from abers.stream.arrow_fields import FieldNames
    from abers.stream.column_types import Column

__all__ = ["process_history"]

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
