"""A Parquet file as a source.

Record batches become events column by column, or row by row if a value needs a closer look. The
number of rows of a batch depends on the memory they may take, which is known before they are read.
A row that exceeds the size limit never becomes a Python object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from abers.exceptions import RecordError
from abers_connectors.extras import extra
from abers_connectors.files.formats import file_format
from abers_connectors.mapping.bad_record import BadRecordError, too_large
from abers_connectors.mapping.columns import FieldColumn
from abers_connectors.sources.base import Batch, Origin, batch_by_row, require_records
from abers_connectors.sources.digest import ColumnDigest
from abers_connectors.sources.parquet_bounds import opened, row_groups, rows_at_once
from abers_connectors.sources.parquet_sizes import pieces, sizes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors.mapping.columns import FieldColumns
    from abers_connectors.mapping.rows import Row
    from abers_connectors.sources.base import Position, SourceOptions

__all__ = ["ParquetSource"]

_SHOWN_BYTES = 1000  # of a value in the text of a row that is too large
_SAMPLE_ROWS = 64
_MIN_REPEATS = 8  # average count of a string that is worth a dictionary
_BUFFERS = 2  # of a column of numbers; one of strings has a third
_INVALID = "a value of the row is not a valid string or time; write the file with valid ones"


class ParquetSource:
    """A Parquet file."""

    def __init__(self, path: str, options: SourceOptions) -> None:
        file_format(path, options.format)
        self.name = path
        self._mapper, self._limit = options.mapper(), options.max_record_bytes
        self._arrow = extra("pyarrow", "Parquet")
        extra("pyarrow.parquet", "Parquet")
        self._done, self._rows = 0, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position: a number of rows to skip, and their digests.

        A file that is damaged or takes too much memory is a RecordError; a missing column a
        ParameterError; and a StateError says that the rows to skip are missing, or differ.
        """
        self._digest = ColumnDigest(self.name, position)
        self._done = self._digest.skip
        try:
            with opened(self.name) as file:
                columns = file.schema_arrow.names
                self._mapper.require_columns(self.name, columns)
                self._rows = file.metadata.num_rows
                require_records(self.name, self._rows, self._digest.known)
                wanted = [name for name in columns if name in self._mapper.reads]
                skip = self._digest.skip
                for part, found in self._parts(file, wanted):
                    done = min(skip, part.num_rows)
                    skip -= done
                    if done:
                        self._digest.add(self._small(part.slice(0, done), found[:done]))
                    if done < part.num_rows:
                        yield self._batch(part.slice(done), found[done:])
        except (self._arrow.ArrowException, OSError, RecordError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # a fault of the disk, not of the file
            msg = f"{self.name} after row {self._done}: {error}"
            raise RecordError(msg) from error

    def fraction(self) -> float | None:
        """Return the share of the rows that has been read."""
        return self._done / self._rows if self._rows else None

    def first_fields(self) -> Sequence[str] | None:
        """Return the columns, none if the file is damaged; None if it has no row."""
        try:
            with opened(self.name) as file:
                names: list[str] = file.schema_arrow.names
                return names if file.metadata.num_rows else None
        except (self._arrow.ArrowException, OSError, RecordError, UnicodeDecodeError):
            return ()

    def _parts(
        self,
        file: Any,  # noqa: ANN401 - pyarrow is untyped
        wanted: list[str],
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yield all rows, with the columns that are read, and their sizes."""
        groups = row_groups(self.name)
        for group in range(file.metadata.num_row_groups):
            most = rows_at_once(self.name, file, groups[group], wanted)
            for table in file.iter_batches(most, row_groups=[group], columns=wanted):
                found = sizes(table)
                for start, stop in pieces(found, self._limit):
                    yield table.slice(start, stop - start), found[start:stop]

    def _batch(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> Batch:
        """Return the batch of some rows; those that are too large are bad records."""
        small = self._small(table, found)
        self._digest.add(small)
        if (found > self._limit).any():
            return self._without_large(table, found)
        return self._by_column(small)

    def _small(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> pa.RecordBatch:
        """Return the rows as plain values, with nulls for those that are too large."""
        large = found > self._limit
        if large.any():
            table = table.take(self._arrow.array(np.arange(len(found)), mask=large))
        return self._plain(table)

    def _plain(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Return times in milliseconds, decimals as floats and dictionaries as their values."""
        types, columns = self._arrow.types, []
        for column in table.columns:
            kind = column.type
            if types.is_dictionary(kind):
                column = column.dictionary_decode()  # noqa: PLW2901
            elif types.is_timestamp(kind) and kind.tz is not None:
                ticks = self._arrow.timestamp("ms", kind.tz)
                column = column.cast(ticks, safe=False).cast(self._arrow.int64())  # noqa: PLW2901
            elif types.is_decimal(kind):
                column = column.cast(self._arrow.float64())  # noqa: PLW2901
            columns.append(column)
        return self._arrow.RecordBatch.from_arrays(columns, table.schema.names)

    def _without_large(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> Batch:
        """Return the batch in which rows that are too large are bad records."""
        first, self._done = self._done, self._done + table.num_rows
        small = np.flatnonzero(found <= self._limit)
        large = {
            row: (too_large(int(found[row]), self._limit), self._head(table, row, first, found))
            for row in np.flatnonzero(found > self._limit).tolist()
        }
        return self._row_by_row(self._plain(table.take(self._arrow.array(small))), first, large)

    def _head(
        self, table: pa.RecordBatch, row: int, first: int, found: NDArray[np.int64]
    ) -> Origin:
        """Return the origin of a row that is too large, with its small values."""
        one = table.slice(row, 1)
        names = [name for name in one.schema.names if sizes(one.select([name]))[0] <= _SHOWN_BYTES]
        raw = self._origin(self._plain(one.select(names)), 0, first + row).raw if names else ""
        return Origin(f"{self.name} row {first + row + 1}", f"{raw}… ({found[row]} bytes)")

    def _by_column(self, table: pa.RecordBatch) -> Batch:
        first, self._done = self._done, self._done + table.num_rows
        columns = self._columns(table)
        events = None if columns is None else self._mapper.columns(columns)
        if events is None:
            return self._row_by_row(table, first)
        position = self._digest.position()
        return Batch(
            events, (), position, len(events), lambda row: self._origin(table, row, first + row)
        )

    def _columns(self, table: pa.RecordBatch) -> FieldColumns | None:
        """Return the columns as numpy arrays; None if one has a type that numpy lacks."""
        types, found = self._arrow.types, {}
        nothing: float | str  # in place of a null
        for name, column in zip(table.schema.names, table.columns, strict=True):
            kind = column.type
            if types.is_integer(kind) and kind != self._arrow.uint64():
                kind, nothing = self._arrow.int64(), 0
            elif types.is_floating(kind):
                kind, nothing = self._arrow.float64(), 0.0
            elif types.is_boolean(kind):
                nothing = False
            elif types.is_string(kind) or types.is_large_string(kind):
                nothing = ""
            elif types.is_null(kind):
                continue  # as if there were no such column
            else:
                return None
            column = column.cast(kind)  # noqa: PLW2901
            valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
            try:
                found[name] = FieldColumn(_values(column.fill_null(nothing)), valid)
            except self._arrow.ArrowException:  # a text that is not UTF-8
                return None
        return found

    def _row_by_row(
        self,
        table: pa.RecordBatch,
        first: int,
        large: Mapping[int, tuple[BadRecordError, Origin]] = {},
    ) -> Batch:
        """Return the batch of some rows, among which others were too large."""
        records = _records(table)
        total = len(records) + len(large)
        small = [number for number in range(total) if number not in large]
        rows = {number: row for row, number in enumerate(small)}  # in the table

        def read(number: int) -> Row:
            if number in large:
                raise large[number][0]
            if (record := records[rows[number]]) is None:
                raise BadRecordError("not-utf8", _INVALID)
            return self._mapper.row(record, first + number + 1)

        def origin(number: int) -> Origin:
            if number in large:
                return large[number][1]
            return self._origin(table, rows[number], first + number)

        return batch_by_row(range(total), read, origin, self._digest.position())

    def _origin(self, table: pa.RecordBatch, row: int, number: int) -> Origin:
        (record,) = _records(table.slice(row, 1))
        raw = "" if record is None else msgspec.json.encode(record, enc_hook=str).decode()
        return Origin(f"{self.name} row {number + 1}", raw)


def _values(column: pa.Array) -> NDArray[Any]:
    """Return a column without nulls as an array; a frequent string is one object."""
    sample = column.slice(0, _SAMPLE_ROWS)
    if sample.type.num_buffers > _BUFFERS and len(sample.unique()) * _MIN_REPEATS <= len(sample):
        coded = column.dictionary_encode()
        values = coded.dictionary.to_numpy(zero_copy_only=False)[coded.indices.to_numpy()]
    else:
        values = column.to_numpy(zero_copy_only=False)
    return cast("NDArray[Any]", values)


def _records(table: pa.RecordBatch) -> Sequence[dict[str, Any] | None]:
    """Return the rows, None for one that Python cannot represent."""
    try:
        rows: list[dict[str, Any] | None] = table.to_pylist()
    except ValueError:  # such as invalid UTF-8
        if table.num_rows == 1:
            return [None]
        return [_records(table.slice(row, 1))[0] for row in range(table.num_rows)]
    return rows
