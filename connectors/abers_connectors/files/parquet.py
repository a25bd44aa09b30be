"""A Parquet file as a source of events.

Governing rule: record batches become events column by column, and only if a
value among them is not plainly right row by row. How many rows a batch has is
decided by what they may take, before they are read; and a row that is larger
than a record may be becomes no Python object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from abers.exceptions import RecordError
from abers_connectors._columns import Given
from abers_connectors._raw import too_large
from abers_connectors.extras import extra
from abers_connectors.files.columns import require_columns
from abers_connectors.files.digest import ColumnDigest
from abers_connectors.files.parquet_bounds import opened, row_groups, rows_at_once
from abers_connectors.files.parquet_sizes import pieces, sizes
from abers_connectors.records import (
    Bad,
    BadRecordError,
    Batch,
    Origin,
    gathered,
    require_records,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors._columns import Columns
    from abers_connectors.fields import Mapper
    from abers_connectors.records import Position, Row

__all__ = ["ParquetSource"]

_SHOWN = 1000  # bytes of a value in the text of a row that is too large
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
    limit
        How many bytes the columns of a row that are read may have.
    """

    def __init__(self, path: str, mapper: Mapper, limit: int) -> None:
        self.name = path
        self._mapper, self._limit = mapper, limit
        self._arrow = extra("pyarrow", "Parquet")
        extra("pyarrow.parquet", "Parquet")
        self._done, self._rows = 0, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches after a position: a number of rows to be skipped, and their hashes.

        Raises
        ------
        RecordError
            If the file is damaged, or takes too much memory.
        ParameterError
            If it lacks a column.
        StateError
            If the rows to be skipped are not there, or are others.
        """
        self._digest = ColumnDigest(self.name, position)
        self._done = self._digest.skip
        try:
            with opened(self.name) as file:
                columns = file.schema_arrow.names
                require_columns(self.name, columns, self._mapper)
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
                        yield self._made(part.slice(done), found[done:])
        except (self._arrow.ArrowException, OSError, RecordError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the disk's fault, not the file's
            msg = f"{self.name} after row {self._done}: {error}"
            raise RecordError(msg) from error

    def fraction(self) -> float | None:
        """Give the share of the rows that have been read."""
        return self._done / self._rows if self._rows else None

    def _parts(
        self,
        file: Any,  # noqa: ANN401 - pyarrow is untyped
        wanted: list[str],
    ) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Read all rows, of the columns that are looked at, and their sizes."""
        groups = row_groups(self.name)
        for group in range(file.metadata.num_row_groups):
            most = rows_at_once(self.name, file, groups[group], wanted)
            for table in file.iter_batches(most, row_groups=[group], columns=wanted):
                found = sizes(table)
                for start, stop in pieces(found, self._limit):
                    yield table.slice(start, stop - start), found[start:stop]

    def _made(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> Batch:
        """Make a batch, which has the rows that are too large as bad ones."""
        small = self._small(table, found)
        self._digest.add(small)
        if (found > self._limit).any():
            return self._without_large(table, found)
        return self._batch(small)

    def _small(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> pa.RecordBatch:
        """Give the rows plainly, with nulls in place of those that are too large."""
        large = found > self._limit
        if large.any():
            table = table.take(self._arrow.array(np.arange(len(found)), mask=large))
        return self._plain(table)

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

    def _without_large(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> Batch:
        """Make a batch in which rows that are too large are bad ones."""
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
        """Show what is small of a row that is too large."""
        one = table.slice(row, 1)
        names = [name for name in one.schema.names if sizes(one.select([name]))[0] <= _SHOWN]
        raw = self._origin(self._plain(one.select(names)), 0, first + row).raw if names else ""
        return Origin(f"{self.name} row {first + row + 1}", f"{raw}… ({found[row]} bytes)")

    def _batch(self, table: pa.RecordBatch) -> Batch:
        first, self._done = self._done, self._done + table.num_rows
        columns = self._columns(table)
        events = None if columns is None else self._mapper.columns(columns)
        if events is None:
            return self._row_by_row(table, first)
        position = self._digest.position()
        return Batch(
            events, (), position, len(events), lambda row: self._origin(table, row, first + row)
        )

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

    def _row_by_row(
        self,
        table: pa.RecordBatch,
        first: int,
        large: Mapping[int, tuple[BadRecordError, Origin]] = {},
    ) -> Batch:
        """Make a batch of some rows, among which others were too large."""
        rows: list[Row] = []
        kept: list[tuple[int, int]] = []  # places in the table, and in the file
        bad: list[Bad] = []
        records = enumerate(_records(table))
        for number in range(first, first + table.num_rows + len(large)):
            if number - first in large:
                error, origin = large[number - first]
                bad.append(Bad(len(rows), error.reason, error.detail, origin))
                continue
            row, record = next(records)
            try:
                rows.append(self._row(record, number + 1))
            except BadRecordError as error:
                origin = self._origin(table, row, number)
                bad.append(Bad(len(rows), error.reason, error.detail, origin))
            else:
                kept.append((row, number))
        return Batch(
            gathered(rows),
            bad,
            self._digest.position(),
            table.num_rows + len(large),
            lambda row: self._origin(table, *kept[row]),
        )

    def _row(self, record: dict[str, Any] | None, number: int) -> Row:
        if record is None:
            raise BadRecordError("not-utf8", _NOT_TEXT)
        return self._mapper.row(record, number)

    def _origin(self, table: pa.RecordBatch, row: int, number: int) -> Origin:
        (record,) = _records(table.slice(row, 1))
        raw = "" if record is None else msgspec.json.encode(record, enc_hook=str).decode()
        return Origin(f"{self.name} row {number + 1}", raw)


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
