"""Outputs as Arrow tables, with the schemas of the Parquet files that connectors write."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.arrow_values import require_pyarrow
from abers.stream.arrow_buffers import new_array, repeated_array
from abers.stream.dead_letter_record import TIMED_OUT, DeadLetterRecord
from abers.stream.events import Alarm
from abers.stream.row_columns import columns_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from abers.stream.events import DeadLetter
    from abers.stream.row_columns import RowColumn
    from abers.stream.rows import Rows

__all__ = [
    "REPEATED",
    "ArrowOutputs",
    "ArrowRows",
    "alarm_table",
    "dead_letter_table",
    "rows_table",
]

REPEATED = ("model", "segment", "reason")
"""Columns that often have one value in a whole batch."""


class ArrowOutputs(NamedTuple):
    """Outputs of a batch as Arrow tables; the schema of each is the same for every batch.

    Attributes
    ----------
    predictions, outcomes
        The fields of the task's `Prediction` and `Outcome` behind `v`, the version of the schema:
        `int64`, `double`, `bool`, and `string`. Nested fields, such as the scores of several
        classes and the extra fields, are JSON. Outcomes are None if they are switched off.
    dead_letters
        Fields of a dead letter as connectors write it: `reason`, `detail`, `where` ("row 3",
        counted from 1, or "unmatched label (timed out)"), and the event as JSON in `raw`. The
        fields of a record in a topic are null.
    alarms
        The fields of `Alarm`.
    """

    predictions: pa.Table
    outcomes: pa.Table | None
    dead_letters: pa.Table
    alarms: pa.Table


class ArrowRows:
    """Conversion of rows of one type to record batches of one schema.

    Examples
    --------
    >>> from abers.stream import Alarm
    >>> ArrowRows(Alarm).schema.names[:3]
    ['model', 'segment', 'view']
    """

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self._arrow = arrow = require_pyarrow()
        self._columns = columns_of(kind)
        types: dict[type | None, Any] = {
            str: arrow.string(),
            int: arrow.int64(),
            float: arrow.float64(),
            bool: arrow.bool_(),
            None: arrow.string(),
        }
        self.schema: pa.Schema = arrow.schema(
            [(one.name, types[one.type]) for one in self._columns]
        )
        nothing = [arrow.nulls(0, field.type) for field in self.schema]
        self._empty = arrow.RecordBatch.from_arrays(nothing, schema=self.schema)

    def batch(self, rows: Sequence[msgspec.Struct]) -> pa.RecordBatch:
        """Return rows as a record batch."""
        if not rows:
            return self._empty
        arrays = [
            self._array(rows, column, field.type)
            for column, field in zip(self._columns, self.schema, strict=True)
        ]
        return self._arrow.RecordBatch.from_arrays(arrays, schema=self.schema)

    def table(self, rows: Sequence[msgspec.Struct]) -> pa.Table:
        """Return rows as a table."""
        return self._arrow.Table.from_batches([self.batch(rows)], self.schema)

    @staticmethod
    def _array(rows: Sequence[msgspec.Struct], column: RowColumn, kind: pa.DataType) -> pa.Array:
        if column.is_constant(rows):
            return repeated_array(column.default, kind, len(rows))
        values = column.values(rows)
        if column.name in REPEATED and len(only := {*values.tolist()}) == 1:
            return repeated_array(only.pop(), kind, len(values))
        return new_array(values, kind)


# Making one takes longer than a small batch.
_conversion: Callable[[type[msgspec.Struct]], ArrowRows] = cache(ArrowRows)


def rows_table(rows: Rows[Any]) -> pa.Table:
    """Return rows by columns as a table."""
    return _conversion(rows.kind).table(rows)


def alarm_table(alarms: Sequence[Alarm]) -> pa.Table:
    """Return alarms as a table."""
    return _conversion(Alarm).table(alarms)


def dead_letter_table(rejected: Sequence[DeadLetter]) -> pa.Table:
    """Return dead letters as a table."""
    return _conversion(DeadLetterRecord).table([*map(_record, rejected)])


def _record(letter: DeadLetter) -> DeadLetterRecord:
    where = TIMED_OUT if letter.row is None else f"row {letter.row + 1}"
    try:
        raw = msgspec.json.encode(letter.event, enc_hook=repr).decode()
    except (ValueError, RecursionError):  # such as a string that is not UTF-8
        raw = repr(letter.event)
    return DeadLetterRecord(letter.reason, letter.detail, where, raw=raw)
