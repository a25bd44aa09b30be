"""One Parquet file of a data set as a source, and what its footer says of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import RecordError
from abers.stream.arrow_columns import is_moment, is_text
from abers_connectors.extras import extra
from abers_connectors.sources.parquet_bounds import Memory
from abers_connectors.sources.parquet_file import opened
from abers_connectors.sources.parquet_sizes import sized_pieces
from abers_connectors.sources.record_batch_mapper import RecordBatchMapper
from abers_connectors.sources.row_groups import least_time, wanted_groups

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from abers_connectors.sources.base import Batch, Position, SourceOptions
    from abers_connectors.sources.data_files import DataFile
    from abers_connectors.sources.file_columns import FileColumns
    from abers_connectors.sources.parquet_file import ParquetFile
    from abers_connectors.sources.row_groups import Part

__all__ = ["DataFileSource", "FilePlan"]

_GONE = "was there when the data set was listed, and is gone; keep the files until the replay ends"


class FilePlan(NamedTuple):
    """What is read of a file."""

    file: DataFile
    view: FileColumns
    columns: Sequence[str]  # all of the table
    kinds: Mapping[str, str]  # what the columns that are read hold
    groups: Sequence[int]  # row groups that may have wanted rows
    rows: int  # in these
    first: int  # a time that none of the rows is before

    @classmethod
    def of(
        cls, file: DataFile, part: Part, reads: Collection[str], time: str, model: str
    ) -> FilePlan:
        """Read the footer of a file; a RecordError if that is not possible."""
        with _opened(file, Memory()) as parquet:
            view = file.columns(parquet.schema_arrow)
            kinds = {one.name: _kind(one.type) for one in view.schema if one.name in reads}
            at, of = view.stored(time), view.stored(model)
            groups = wanted_groups(parquet, part, at, of)
            rows = sum(parquet.groups[group].rows for group in groups)
            first = least_time(parquet, groups, at)
            return cls(file, view, view.schema.names, kinds, groups, rows, first)

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
    """The wanted row groups of a file, which shares memory with all that are open at once."""

    def __init__(self, plan: FilePlan, options: SourceOptions, memory: Memory) -> None:
        self.name = plan.file.name
        self._plan, self._limit, self._memory = plan, options.max_record_bytes, memory
        self._mapper = RecordBatchMapper(self.name, options.schema(), self._limit)

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield all batches, with the position of none."""
        del position
        with _opened(self._plan.file, self._memory) as parquet:
            for group in self._plan.groups:
                done = sum(one.rows for one in parquet.groups[:group])
                for table in self._tables(parquet, group):
                    for part, found in sized_pieces(table, self._limit):
                        small = self._mapper.small(part, found)
                        yield self._mapper.batch(part, found, small, done, {})
                        done += part.num_rows

    def fraction(self) -> float | None:
        """Return None: the data set knows."""
        return None

    def _tables(self, parquet: ParquetFile, group: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a row group, with the columns that are read."""
        view, names = self._plan.view, [*self._plan.kinds]
        for read in parquet.record_batches(group, view.needed(names)):
            yield view.rows(read, names)


@contextmanager
def _opened(file: DataFile, memory: Memory) -> Iterator[ParquetFile]:
    """Open a file; errors have its name."""
    arrow = extra("pyarrow", "Parquet")
    try:
        with file.open() as handle, opened(handle, memory) as parquet:
            yield parquet
    except FileNotFoundError as error:
        msg = f"{file.name} {_GONE}"
        raise RecordError(msg) from error
    except RecordError as error:
        msg = f"{file.name}: {error}"
        raise RecordError(msg) from error
    except (arrow.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        msg = f"{file.name} cannot be read ({error}); write it again, or remove it"
        raise RecordError(msg) from error


def _kind(kind: pa.DataType) -> str:
    """Return what a column holds, the same for types that are read alike."""
    types = extra("pyarrow", "Parquet").types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if is_text(kind):
        return "strings"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if is_moment(kind):
        return "times with a zone"
    return f"of type {kind}"
