"""Parquet files that are read in little memory, from a disk or a bucket, alone or many at once.

This is the only way in which a Parquet file is read: what it takes is known before it is read.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from abers.exceptions import RecordError
from abers_connectors.extras import extra
from abers_connectors.sources.parquet_bounds import rows_at_once
from abers_connectors.sources.parquet_pages import row_groups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import pyarrow as pa

    from abers_connectors.sources.parquet_bounds import Memory, MemoryShare
    from abers_connectors.sources.parquet_pages import RowGroup

__all__ = ["ParquetFile", "opened"]

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
