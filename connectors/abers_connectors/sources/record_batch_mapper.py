"""Arrow record batches as batches of events.

A schema reads their columns. A row that exceeds the size limit never becomes a Python object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from abers.stream.arrow_buffers import new_array
from abers.stream.arrow_columns import is_moment, plain_array, raw_columns
from abers_connectors.extras import extra
from abers_connectors.mapping.bad_record import too_large
from abers_connectors.sources.base import Batch, Origin, batch_of
from abers_connectors.sources.parquet_sizes import sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.stream.schema import Schema
    from abers_connectors.sources.base import Position

__all__ = ["RecordBatchMapper"]

_SHOWN_BYTES = 1000  # of a value in the text of a row that is too large


class RecordBatchMapper:
    """The mapping of the record batches of a file; messages have its name.

    Rows have more bytes than the limit if they are too large.
    """

    def __init__(self, name: str, schema: Schema, limit: int) -> None:
        self._name, self._schema, self._limit = name, schema, limit
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
        fits = found <= self._limit
        broken = {
            row: too_large(int(found[row]), self._limit) for row in np.flatnonzero(~fits).tolist()
        }
        rows: Sequence[int] = range(len(fits))
        plain = small
        if broken:
            rows = np.flatnonzero(fits).tolist()
            plain = self._plain(table.take(self._at(rows)))
        columns, invalid = raw_columns(plain)

        def origin(row: int) -> Origin:
            if fits[row]:
                return self._origin(self._plain(table.slice(row, 1)), first + row)
            return self._head(table, row, first, found)

        reading = self._schema.read(columns, [first + row + 1 for row in rows], invalid)
        return batch_of(reading, rows, broken, origin, position)

    def _at(self, rows: Sequence[int]) -> pa.Array:
        return new_array(np.array(rows, np.int64), self._arrow.int64())

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

    def _head(
        self, table: pa.RecordBatch, row: int, first: int, found: NDArray[np.int64]
    ) -> Origin:
        """Return the origin of a row that is too large, with its small values."""
        one = table.slice(row, 1)
        names = [name for name in one.schema.names if sizes(one.select([name]))[0] <= _SHOWN_BYTES]
        raw = self._origin(self._plain(one.select(names)), first + row).raw if names else ""
        return Origin(f"{self._name} row {first + row + 1}", f"{raw}… ({found[row]} bytes)")

    def _origin(self, one: pa.RecordBatch, number: int) -> Origin:
        """Return the origin of a row by itself."""
        whole = self._arrow.int64()  # a year after 9999 is no datetime of Python
        columns = [
            column.view(whole) if is_moment(column.type) else column for column in one.columns
        ]
        try:
            (record,) = self._arrow.RecordBatch.from_arrays(columns, one.schema.names).to_pylist()
            raw = msgspec.json.encode(record, enc_hook=str).decode()
        except (ValueError, OverflowError):  # such as invalid UTF-8, or a local year after 9999
            raw = ""
        return Origin(f"{self._name} row {number + 1}", raw)
