"""One Parquet file of a data set as a source, and what its footer says of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import RecordError
from abers.stream.arrow_columns import is_text
from abers_connectors.extras import extra
from abers_connectors.sources.parquet_sizes import pieces, sizes
from abers_connectors.sources.record_batch_mapper import RecordBatchMapper
from abers_connectors.sources.row_groups import least_time, wanted_groups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from abers_connectors.sources.base import Batch, Position, SourceOptions
    from abers_connectors.sources.data_files import DataFile
    from abers_connectors.sources.row_groups import Part

__all__ = ["DataFileSource", "FilePlan"]

_ROWS = 16_384  # of a batch
_BYTES = 32 << 20  # of a batch
_BUFFER = 1 << 16  # bytes read ahead of a column
_GONE = "was there when the data set was listed, and is gone; keep the files until the replay ends"


class FilePlan(NamedTuple):
    """What is read of a file."""

    file: DataFile
    columns: Sequence[str]  # all of the file, and those of its path
    kinds: Mapping[str, str]  # what the columns that are read hold
    groups: Sequence[int]  # row groups that may have wanted rows
    rows: int  # in these
    first: int  # a time that none of the rows is before

    @classmethod
    def of(
        cls, file: DataFile, part: Part, reads: Collection[str], time: str, model: str
    ) -> FilePlan:
        """Read the footer of a file; a RecordError if that is not possible."""
        with _opened(file) as parquet:
            schema = parquet.schema_arrow
            names = [*schema.names, *(one for one in file.partition if one not in schema.names)]
            kinds = {
                name: _kind(schema.field(name).type) if name in schema.names else "strings"
                for name in names
                if name in reads
            }
            groups = wanted_groups(parquet, part, time, model)
            rows = sum(parquet.metadata.row_group(group).num_rows for group in groups)
            return cls(file, names, kinds, groups, rows, least_time(parquet, groups, time))

    def require_same(self, first: FilePlan) -> None:
        """Raise a RecordError if the columns that are read are not those of the first file."""
        for name in sorted(self.kinds.keys() | first.kinds.keys()):
            here, there = self.kinds.get(name), first.kinds.get(name)
            if here != there:
                msg = (
                    f"the schema changes: the column {name} is {here or 'missing'} in "
                    f"{self.file.name}, and {there or 'missing'} in {first.file.name}; write the "
                    "files with one schema, or replay those of each schema by themselves"
                )
                raise RecordError(msg)


class DataFileSource:
    """The wanted row groups of a file."""

    def __init__(self, plan: FilePlan, options: SourceOptions) -> None:
        self.name = plan.file.name
        self._plan, self._limit = plan, options.max_record_bytes
        self._mapper = RecordBatchMapper(self.name, options.mapper(), self._limit)

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield all batches, with the position of none."""
        del position
        with _opened(self._plan.file) as parquet:
            for group in self._plan.groups:
                done = sum(parquet.metadata.row_group(one).num_rows for one in range(group))
                for table in self._tables(parquet, group):
                    found = sizes(table)
                    for start, stop in pieces(found, self._limit):
                        part, size = table.slice(start, stop - start), found[start:stop]
                        small = self._mapper.small(part, size)
                        yield self._mapper.batch(part, size, small, done + start, {})
                    done += table.num_rows

    def fraction(self) -> float | None:
        """Return None: the data set knows."""
        return None

    def _tables(self, parquet: Any, group: int) -> Iterator[pa.RecordBatch]:  # noqa: ANN401
        """Yield the rows of a row group, with the columns that are read."""
        arrow, partition = extra("pyarrow", "Parquet"), self._plan.file.partition
        there = [name for name in parquet.schema_arrow.names if name in self._plan.kinds]
        added = [name for name in self._plan.kinds if name not in there]
        for table in parquet.iter_batches(
            _rows_at_once(parquet, group, there), row_groups=[group], columns=there
        ):
            columns = table.columns
            for name in added:
                value = arrow.scalar(partition[name], arrow.string())
                columns.append(arrow.repeat(value, table.num_rows))
            yield arrow.RecordBatch.from_arrays(columns, [*table.schema.names, *added])


@contextmanager
def _opened(file: DataFile) -> Iterator[Any]:
    """Open a file as a stream of pages; errors have its name."""
    arrow = extra("pyarrow", "Parquet")
    parquet = extra("pyarrow.parquet", "Parquet")
    try:
        with file.open() as handle:
            yield parquet.ParquetFile(handle, pre_buffer=False, buffer_size=_BUFFER)
    except FileNotFoundError as error:
        msg = f"{file.name} {_GONE}"
        raise RecordError(msg) from error
    except (arrow.ArrowException, OSError, EOFError) as error:
        msg = f"{file.name} cannot be read ({error}); write it again, or remove it"
        raise RecordError(msg) from error


def _rows_at_once(parquet: Any, group: int, names: Collection[str]) -> int:  # noqa: ANN401
    """Return the number of rows of a row group that are read at once."""
    found = parquet.metadata.row_group(group)
    rows: int = found.num_rows
    size: int = sum(
        found.column(number).total_uncompressed_size
        for number in range(found.num_columns)
        if found.column(number).path_in_schema.split(".")[0] in names
    )
    return max(1, min(_ROWS, _BYTES * rows // max(size, 1)))


def _kind(kind: pa.DataType) -> str:
    """Return what a column holds, the same for types that are read alike."""
    types = extra("pyarrow", "Parquet").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if is_text(kind):
        return "strings"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_timestamp(kind) and kind.tz is not None:
        return "times with a zone"
    return f"of type {kind}"
