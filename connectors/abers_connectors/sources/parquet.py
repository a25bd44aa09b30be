"""A Parquet file as a source.

Parquet files that are read in little memory, from a disk or a bucket, alone or many at once. This
is the only way in which a Parquet file is read: what it takes is known before it is read.

Arrow record batches as batches of events. A schema reads their columns. A row that exceeds the size
limit never becomes a Python object.

The number of rows of a batch depends on the memory they may take, which is known before they are
read.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.exceptions import RecordError
from abers.stream.arrow_columns import is_moment, new_array, plain_array, raw_columns
from abers_connectors.extras import extra
from abers_connectors.files import file_format
from abers_connectors.mapping import require_columns, too_large
from abers_connectors.regular_files import open_regular
from abers_connectors.sources.base import Batch, Origin, batch_of, require_records
from abers_connectors.sources.parquet_bounds import Memory, rows_at_once, sized_pieces, sizes
from abers_connectors.sources.parquet_pages import row_groups
from abers_connectors.sources.text import ColumnDigest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from abers.stream.columns import Schema
    from abers_connectors.sources.base import Enough, Position, SourceOptions
    from abers_connectors.sources.parquet_bounds import MemoryShare
    from abers_connectors.sources.parquet_pages import RowGroup

__all__ = ["ParquetFile", "ParquetSource", "RecordBatchMapper", "opened"]

_MAX_FOOTER_BYTES = 2 << 20  # each byte may take 250 of memory
_LISTED = 20_000  # columns, or row groups
_BUFFER = 1 << 16  # bytes read ahead of a column
_TAIL = 1 << 16  # bytes read at once of the end of a file
_END = 8  # bytes after the footer: its length, and a mark
_COLUMN_BYTES = 2048  # of memory for a column of a row group in a footer
_parsing = Lock()  # footers take most memory while they are parsed


class ParquetFile:
    """An open Parquet file: its columns, its row groups and, on demand, its rows."""

    def __init__(
        self,
        handle: Any,  # noqa: ANN401 - pyarrow has no types
        groups: list[RowGroup],
        parquet: Any,  # noqa: ANN401
        memory: MemoryShare,
    ) -> None:
        self._handle, self.groups, self._parquet, self._memory = handle, groups, parquet, memory
        self.names: list[str] = parquet.schema_arrow.names
        _require_distinct(parquet.schema_arrow)
        self.schema_arrow: pa.Schema = parquet.schema_arrow
        self.schema = parquet.schema  # as the format has it
        self.rows = sum(group.rows for group in groups)

    def record_batches(self, group: int, wanted: Collection[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group, with some columns.

        Raises
        ------
        RecordError
            If a page header is damaged, or reading takes too much memory.
        """
        named = [name for name in self.names if name in wanted]
        columns = self.groups[group].columns
        rows = rows_at_once(self._handle, self.schema, columns, named, self._memory)
        yield from self._parquet.iter_batches(rows, row_groups=[group], columns=named)


@contextmanager
def opened(handle: Any, memory: Memory) -> Iterator[ParquetFile]:  # noqa: ANN401
    """Open a file that can be read and sought in; files that are open at once share a `Memory`.

    Raises
    ------
    RecordError
        If the footer is damaged or too large, or two columns have one name.
    """
    parquet = extra("pyarrow.parquet", "Parquet")
    footer, tail = _read_footer(handle)
    limits = {
        "thrift_string_size_limit": _MAX_FOOTER_BYTES,
        "thrift_container_size_limit": _LISTED,
    }
    with _parsing:
        end = parquet.ParquetFile(extra("pyarrow", "Parquet").BufferReader(tail), **limits)
        groups = row_groups(footer)
    count = len(end.schema) + sum(len(group.columns) for group in groups)
    with memory.share(count * _COLUMN_BYTES) as own:
        # Without a buffer it would read all row groups at once.
        file = parquet.ParquetFile(
            handle, metadata=end.metadata, pre_buffer=False, buffer_size=_BUFFER, **limits
        )
        yield ParquetFile(handle, groups, file, own)


def _require_distinct(fields: pa.Schema | pa.StructType, within: str = "") -> None:
    """Raise a RecordError for two columns of one name, or two fields of one name in a struct."""
    types = extra("pyarrow", "Parquet").types
    seen: set[str] = set()
    for field in fields:
        if field.name in seen:
            msg = f"two columns have the name {within}{field.name}; rename one of them"
            raise RecordError(msg)
        seen.add(field.name)
        if types.is_struct(field.type):
            _require_distinct(field.type, f"{within}{field.name}.")


def _read_footer(handle: Any) -> tuple[bytes, bytes]:  # noqa: ANN401
    """Return the footer, which may be empty, and the end of the file from there."""
    size = handle.seek(0, os.SEEK_END)
    tail = _read(handle, max(0, size - _TAIL), size)
    length = int.from_bytes(tail[-_END : -_END // 2], "little")
    if length > size - _END:
        return b"", tail
    if length > _MAX_FOOTER_BYTES:
        msg = (
            f"the footer has {length} bytes, more than {_MAX_FOOTER_BYTES}; "
            "write the file again with larger row groups, or fewer columns"
        )
        raise RecordError(msg)
    if length + _END > len(tail):
        tail = _read(handle, size - _END - length, size)
    return tail[-_END - length : -_END], tail


def _read(handle: Any, start: int, stop: int) -> bytes:  # noqa: ANN401
    handle.seek(start)
    return bytes(handle.read(stop - start))


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


class ParquetSource:
    """A Parquet file."""

    def __init__(self, path: str, options: SourceOptions) -> None:
        file_format(path, options.format)
        self.name = path
        self._schema, self._limit = options.schema(), options.max_record_bytes
        self._arrow = extra("pyarrow", "Parquet")
        extra("pyarrow.parquet", "Parquet")
        self._rows = RecordBatchMapper(path, self._schema, self._limit)
        self._done, self._count = 0, 0

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position: a number of rows to skip, and their digests.

        A file that is damaged or takes too much memory is a RecordError; a missing column a
        ParameterError; and a StateError says that the rows to skip are missing, or differ.
        """
        self._digest = ColumnDigest(self.name, position)
        self._done = self._digest.skip
        try:
            with self._opened() as file:
                columns = file.names
                require_columns(self._schema, self.name, columns)
                self._count = file.rows
                require_records(self.name, self._count, self._digest.known)
                skip = self._digest.skip
                for part, found in self._parts(file):
                    done = min(skip, part.num_rows)
                    skip -= done
                    if done:
                        self._digest.add(self._rows.small(part.slice(0, done), found[:done]))
                    if done < part.num_rows:
                        yield self._batch(part.slice(done), found[done:])
        except (self._arrow.ArrowException, OSError, RecordError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # a fault of the disk, not of the file
            of_rows = isinstance(error, RecordError)
            what = (
                error if of_rows else f"{str(error).rstrip('.')}; write the file again as Parquet"
            )
            msg = f"{self.name} after row {self._done}: {what}"
            raise RecordError(msg) from error

    def fraction(self) -> float | None:
        """Return the share of the rows that has been read."""
        return self._done / self._count if self._count else None

    def first_fields(self, enough: Enough = bool) -> Sequence[str] | None:  # noqa: ARG002 - has all
        """Return the columns, none if the file is damaged; None if it has no row."""
        try:
            with self._opened() as file:
                return file.names if file.rows else None
        except (self._arrow.ArrowException, OSError, RecordError, UnicodeDecodeError):
            return ()

    @contextmanager
    def _opened(self) -> Iterator[ParquetFile]:
        with open_regular(self.name) as handle, opened(handle, Memory()) as file:
            yield file

    def _parts(self, file: ParquetFile) -> Iterator[tuple[pa.RecordBatch, NDArray[np.int64]]]:
        """Yield all rows, with the columns that are read, and their sizes."""
        for group in range(len(file.groups)):
            for table in file.record_batches(group, self._schema.reads):
                yield from sized_pieces(table, self._limit)

    def _batch(self, table: pa.RecordBatch, found: NDArray[np.int64]) -> Batch:
        first, self._done = self._done, self._done + table.num_rows
        small = self._rows.small(table, found)
        self._digest.add(small)
        return self._rows.batch(table, found, small, first, self._digest.position())
