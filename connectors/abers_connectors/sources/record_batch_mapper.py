"""Arrow record batches as batches of events.

Record batches become events column by column, or row by row if a value needs a closer look. A row
that exceeds the size limit never becomes a Python object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from abers.stream.arrow_buffers import new_array
from abers.stream.arrow_columns import numpy_column, plain_array
from abers_connectors.extras import extra
from abers_connectors.mapping.bad_record import BadRecordError, too_large
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.sources.base import Batch, Origin, batch_by_row
from abers_connectors.sources.parquet_sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors.mapping.columns import FieldColumns
    from abers_connectors.mapping.mapper import Mapper
    from abers_connectors.mapping.rows import Row
    from abers_connectors.sources.base import Position

__all__ = ["RecordBatchMapper"]

_SHOWN_BYTES = 1000  # of a value in the text of a row that is too large
_INVALID = "a value of the row is not a valid string or time; write the file with valid ones"


class RecordBatchMapper:
    """The mapping of the record batches of a file; messages have its name.

    Rows have more bytes than the limit if they are too large.
    """

    def __init__(self, name: str, mapper: Mapper, limit: int) -> None:
        self._name, self._mapper, self._limit = name, mapper, limit
        self._arrow = extra("pyarrow", "Parquet")

    def batch(
        self,
        table: pa.RecordBatch,
        found: NDArray[np.int64],
        small: pa.RecordBatch,
        first: int,
        position: Position,
    ) -> Batch:
        """Return the batch of rows; those that are too large are bad records.

        Parameters
        ----------
        table, found
            The rows, and their sizes.
        small
            What `small` returns of them.
        first
            Number of the rows before them in the file.
        position
            The position after them.
        """
        if (found > self._limit).any():
            return self._without_large(table, found, first, position)
        return self._by_column(small, first, position)

    def small(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the rows as plain values, with nulls for those that are too large."""
        large = found > self._limit
        if large.any():
            table = table.take(new_array(np.arange(len(found)), self._arrow.int64(), ~large))
        return self._plain(table)

    def _plain(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Return times in milliseconds, decimals as floats and dictionaries as their values."""
        columns = [plain_array(column) for column in table.columns]
        return self._arrow.RecordBatch.from_arrays(columns, table.schema.names)

    def _without_large(
        self, table: pa.RecordBatch, found: NDArray[np.int64], first: int, position: Position
    ) -> Batch:
        """Return the batch in which rows that are too large are bad records."""
        small = np.flatnonzero(found <= self._limit)
        large = {
            row: (int(found[row]), self._head(table, row, first, found))
            for row in np.flatnonzero(found > self._limit).tolist()
        }
        plain = self._plain(table.take(new_array(small, self._arrow.int64())))
        return self._row_by_row(plain, first, position, large)

    def _head(
        self, table: pa.RecordBatch, row: int, first: int, found: NDArray[np.int64]
    ) -> Origin:
        """Return the origin of a row that is too large, with its small values."""
        one = table.slice(row, 1)
        names = [name for name in one.schema.names if sizes(one.select([name]))[0] <= _SHOWN_BYTES]
        raw = self._origin(self._plain(one.select(names)), 0, first + row).raw if names else ""
        return Origin(f"{self._name} row {first + row + 1}", f"{raw}… ({found[row]} bytes)")

    def _by_column(self, table: pa.RecordBatch, first: int, position: Position) -> Batch:
        columns = self._columns(table)
        events = None if columns is None else self._mapper.columns(columns)
        if events is None:
            return self._row_by_row(table, first, position)
        return Batch(
            events, (), position, len(events), lambda row: self._origin(table, row, first + row)
        )

    def _columns(self, table: pa.RecordBatch) -> FieldColumns | None:
        """Return the columns as numpy arrays; None if one has a type that numpy lacks."""
        found: dict[str, FieldColumn] = {}
        for name, array in zip(table.schema.names, table.columns, strict=True):
            if self._arrow.types.is_null(array.type):
                continue  # as if there were no such column
            if (column := numpy_column(array)) is None:
                return None
            found[name] = FieldColumn(*column)
        return found

    def _row_by_row(
        self,
        table: pa.RecordBatch,
        first: int,
        position: Position,
        large: Mapping[int, tuple[int, Origin]] = {},
    ) -> Batch:
        """Return the batch of some rows, among which others were too large, of known sizes."""
        records = _records(table)
        total = len(records) + len(large)
        small = [number for number in range(total) if number not in large]
        rows = {number: row for row, number in enumerate(small)}  # in the table

        def read(number: int) -> Row:
            if number in large:
                raise too_large(large[number][0], self._limit)
            if (record := records[rows[number]]) is None:
                raise BadRecordError("not-utf8", _INVALID)
            return self._mapper.row(record, first + number + 1)

        def origin(number: int) -> Origin:
            if number in large:
                return large[number][1]
            return self._origin(table, rows[number], first + number)

        return batch_by_row(range(total), read, origin, position)

    def _origin(self, table: pa.RecordBatch, row: int, number: int) -> Origin:
        (record,) = _records(table.slice(row, 1))
        raw = "" if record is None else msgspec.json.encode(record, enc_hook=str).decode()
        return Origin(f"{self._name} row {number + 1}", raw)


def _records(table: pa.RecordBatch) -> Sequence[dict[str, Any] | None]:
    """Return the rows, None for one that Python cannot represent."""
    try:
        rows: list[dict[str, Any] | None] = table.to_pylist()
    except ValueError:  # such as invalid UTF-8
        if table.num_rows == 1:
            return [None]
        return [_records(table.slice(row, 1))[0] for row in range(table.num_rows)]
    return rows
