"""A Parquet file as a source of events.

Governing rule: record batches become events column by column, and only if a
value among them is not plainly right row by row. `max_record_bytes` is no limit
here: what is large in a column is in memory before it can be looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from abers.exceptions import RecordError
from abers_connectors._columns import Given
from abers_connectors.extras import extra
from abers_connectors.files.columns import require_columns
from abers_connectors.files.digest import ColumnDigest
from abers_connectors.records import (
    Bad,
    BadRecordError,
    Batch,
    Origin,
    gathered,
    require_records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors._columns import Columns
    from abers_connectors.fields import Mapper
    from abers_connectors.records import Position, Row

__all__ = ["ParquetSource"]

BATCH = 16_384  # rows: fewer would cost a third more for each
_SAMPLE, _OFTEN = 64, 8  # rows that are looked at, and how often a text stands in them at least
_BUFFERS = 2  # of numbers; texts have their lengths besides
_NOT_TEXT = "a value of the row is no valid text or moment; write the file with valid ones"


class ParquetSource:
    """One Parquet file.

    Parameters
    ----------
    path
        The file.
    mapper
        From records, or from columns, to events.
    """

    def __init__(self, path: str, mapper: Mapper) -> None:
        self.name = path
        self._mapper = mapper
        self._arrow, self._parquet = (
            extra("pyarrow", "Parquet"),
            extra("pyarrow.parquet", "Parquet"),
        )
        self._done, self._rows = 0, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches after a position: a number of rows to be skipped, and their hashes.

        Raises
        ------
        RecordError
            If the file is damaged.
        ParameterError
            If it lacks a column.
        StateError
            If the rows to be skipped are not there, or are others.
        """
        self._digest = ColumnDigest(self.name, position)
        self._done = self._digest.skip
        try:
            with self._parquet.ParquetFile(self.name) as file:
                columns = file.schema_arrow.names
                require_columns(self.name, columns, self._mapper)
                self._rows = file.metadata.num_rows
                require_records(self.name, self._rows, self._digest.known)
                wanted = [name for name in columns if name in self._mapper.reads]
                for table in self._tables(file, wanted):
                    self._digest.add(table)
                    yield self._batch(table)
        except (self._arrow.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            msg = f"{self.name} after row {self._done}: {error}"
            raise RecordError(msg) from error

    def fraction(self) -> float | None:
        """Give the share of the rows that have been read."""
        return self._done / self._rows if self._rows else None

    def _tables(self, file: Any, wanted: list[str]) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        """Read the rows that are not done yet, of the columns that are looked at."""
        skip = self._done
        for read in file.iter_batches(BATCH, columns=wanted):
            table = self._plain(read)
            if skip:
                done, table = table.slice(0, skip), table.slice(skip)
                self._digest.add(done)
                skip -= done.num_rows
            if table.num_rows:
                yield table

    def _plain(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """Make milliseconds of the moments, and numbers and texts of what stands for such."""
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

    def _batch(self, table: pa.RecordBatch) -> Batch:
        first, self._done = self._done, self._done + table.num_rows
        columns = self._columns(table)
        events = None if columns is None else self._mapper.columns(columns)
        if events is None:
            return self._row_by_row(table, first)
        position = self._digest.position()
        return Batch(events, (), position, len(events), lambda row: self._origin(table, row, first))

    def _columns(self, table: pa.RecordBatch) -> Columns | None:
        """Give the columns as numpy has them; None if it cannot have one of them."""
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
                continue  # as if it were not there
            else:
                return None
            column = column.cast(kind)  # noqa: PLW2901
            there = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
            try:
                found[name] = Given(_values(column.fill_null(nothing)), there)
            except self._arrow.ArrowException:  # a text that is not UTF-8
                return None
        return found

    def _row_by_row(self, table: pa.RecordBatch, first: int) -> Batch:
        rows: list[Row] = []
        kept: list[int] = []
        bad: list[Bad] = []
        for row, record in enumerate(_records(table)):
            try:
                rows.append(self._row(record, first + row + 1))
            except BadRecordError as error:
                origin = self._origin(table, row, first)
                bad.append(Bad(len(rows), error.reason, error.detail, origin))
            else:
                kept.append(row)
        return Batch(
            gathered(rows),
            bad,
            self._digest.position(),
            table.num_rows,
            lambda row: self._origin(table, kept[row], first),
        )

    def _row(self, record: dict[str, Any] | None, number: int) -> Row:
        if record is None:
            raise BadRecordError("not-utf8", _NOT_TEXT)
        return self._mapper.row(record, number)

    def _origin(self, table: pa.RecordBatch, row: int, first: int) -> Origin:
        (record,) = _records(table.slice(row, 1))
        raw = "" if record is None else msgspec.json.encode(record, enc_hook=str).decode()
        return Origin(f"{self.name} row {first + row + 1}", raw)


def _values(column: pa.Array) -> NDArray[Any]:
    """Give a column without nulls as numpy has it; a text that is often repeated is one object."""
    sample = column.slice(0, _SAMPLE)
    if sample.type.num_buffers > _BUFFERS and len(sample.unique()) * _OFTEN <= len(sample):
        coded = column.dictionary_encode()
        values = coded.dictionary.to_numpy(zero_copy_only=False)[coded.indices.to_numpy()]
    else:
        values = column.to_numpy(zero_copy_only=False)
    return cast("NDArray[Any]", values)


def _records(table: pa.RecordBatch) -> Sequence[dict[str, Any] | None]:
    """Give the rows, None for one that Python cannot hold."""
    try:
        rows: list[dict[str, Any] | None] = table.to_pylist()
    except ValueError:  # of which wrong UTF-8 is one
        if table.num_rows == 1:
            return [None]
        return [_records(table.slice(row, 1))[0] for row in range(table.num_rows)]
    return rows
