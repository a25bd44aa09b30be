"""A Parquet file as a source.

The number of rows of a batch depends on the memory they may take, which is known before they are
read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from abers.exceptions import RecordError
from abers_connectors.extras import extra
from abers_connectors.files.formats import file_format
from abers_connectors.mapping.needed_columns import require_columns
from abers_connectors.regular_files import open_regular
from abers_connectors.sources.base import Batch, require_records
from abers_connectors.sources.digest import ColumnDigest
from abers_connectors.sources.parquet_bounds import Memory
from abers_connectors.sources.parquet_file import opened
from abers_connectors.sources.parquet_sizes import sized_pieces
from abers_connectors.sources.record_batch_mapper import RecordBatchMapper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from abers_connectors.sources.base import Position, SourceOptions
    from abers_connectors.sources.parquet_file import ParquetFile

__all__ = ["ParquetSource"]


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

    def first_fields(self) -> Sequence[str] | None:
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
