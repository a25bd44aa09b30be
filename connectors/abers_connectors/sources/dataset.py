"""Data sets of many Parquet files as a source: folders, patterns, buckets, and tables of a lake.

The files, or the version of the table, are those of the moment in which the data set is first read.
Files that overlap in time are merged; what lies outside the wanted part is not read, as far as
paths and statistics tell.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import RecordError, StateError
from abers.stream.arrow_columns import is_moment, is_text
from abers_connectors.extras import extra
from abers_connectors.mapping import require_columns
from abers_connectors.sources.base import Batch, require_records
from abers_connectors.sources.merge import TimedSource, lazily_merged
from abers_connectors.sources.parquet import RecordBatchMapper, opened
from abers_connectors.sources.parquet_bounds import Memory, sized_pieces
from abers_connectors.sources.table_files import table_files
from abers_connectors.sources.time_range import Part, least_time, wanted_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import pyarrow as pa

    from abers_connectors.sources.base import Enough, Origin, Position, SourceOptions
    from abers_connectors.sources.parquet import ParquetFile
    from abers_connectors.sources.table_files import DataFile, FileColumns, FileList

__all__ = ["DataFileSource", "DatasetSource"]

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


_ROWS = 16_384  # of a batch
_PLANNERS = 16  # footers of a bucket that are read at once
_REMEDY = (
    "replay fewer models (--model) or less time (--since, --until), or write the data set again, "
    "sorted by time"
)


class _Plan(NamedTuple):
    """The files to read, and what identifies all of them."""

    files: list[FilePlan]
    version: str
    columns: Sequence[str]


class DatasetSource:
    """A data set of Parquet files."""

    def __init__(self, name: str, options: SourceOptions, part: Part | None = None) -> None:
        extra("pyarrow.parquet", "a data set of Parquet files")
        self.name = name
        self._options, self._part = options, part or Part()
        self._listed: FileList | None = None
        self._rows, self._done = 0, 0

    def within(self, part: Part) -> DatasetSource:
        """Return the data set without what surely lies outside a part."""
        return DatasetSource(self.name, self._options, part)

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position: a number of records, and the version.

        Raises
        ------
        RecordError
            If a file is damaged or gone, if the columns of the files differ, or if too many of
            them overlap in time.
        ParameterError
            If there is no file, or a column is missing.
        StateError
            If the files are not those of the position.
        """
        at = position or {"records": 0, "version": None}
        plan = self._plan(at["version"])
        if plan.columns:
            require_columns(self._options.schema(), self.name, plan.columns)
        self._rows, self._done = sum(one.rows for one in plan.files), 0
        require_records(self.name, self._rows, at["records"])
        records = 0
        for batch in self._merged(plan.files):
            self._done = records = records + batch.records
            if records > at["records"]:
                yield replace(batch, position={"records": records, "version": plan.version})

    def fraction(self) -> float | None:
        """Return the share of the rows that has been read."""
        return self._done / self._rows if self._rows else None

    def first_fields(self, enough: Enough = bool) -> Sequence[str] | None:  # noqa: ARG002 - has all
        """Return the columns of the first file, none if it is damaged; None if there is no row."""
        with suppress(RecordError):
            plan = self._plan(None)
            return plan.columns if sum(one.rows for one in plan.files) else None
        return ()

    def _plan(self, version: str | None) -> _Plan:
        """Read the footers of all files that may have wanted rows, and compare them."""
        fields = self._options.fields
        if self._listed is None or (version and version != self._listed.version):
            self._listed = table_files(self.name, self._part, fields.time, fields.model, version)
        files, found = self._listed
        if version is not None and version != found:
            msg = f"input {self.name} is not what was read before: its files have changed; put "
            msg += "them back, or remove state and outputs to start anew"
            raise StateError(msg)
        reads = self._options.schema().reads

        def plan(number: int) -> FilePlan:
            return FilePlan.of(files[number], self._part, reads, fields.time, fields.model)

        pool = ThreadPoolExecutor(_PLANNERS)
        try:
            plans = [*pool.map(plan, range(len(files)))]
        finally:  # an error, or the signal that ends the process, does not wait for the rest
            pool.shutdown(wait=False, cancel_futures=True)
        columns: Sequence[str] = plans[0].columns if plans else ()
        for one in plans[1:]:
            one.require_same(plans[0])
        return _Plan([one for one in plans if one.groups], found, columns)

    def _merged(self, files: Sequence[FilePlan]) -> Iterator[Batch]:
        memory = Memory()
        sources = [
            TimedSource(one.first, DataFileSource(one, self._options, memory)) for one in files
        ]
        if len(sources) == 1:
            yield from sources[0].source.batches()
            return
        for batch in lazily_merged(sources, self.name, _REMEDY):
            yield from _pieces(batch)


def _pieces(batch: Batch) -> Iterator[Batch]:
    """Yield a batch in parts of limited size; a bad record comes with the event before it."""
    events, first = batch.events, 0
    for stop in [*range(_ROWS, len(events), _ROWS), len(events)]:
        bad = [one for one in batch.bad if first < one.row <= stop or one.row == first == 0]
        bad = [one._replace(row=one.row - first) for one in bad]
        part, unlabelled = events[first:stop], batch.unlabelled if first == 0 else 0
        records = len(part) + len(bad) + unlabelled
        yield Batch(part, bad, {}, records, _shifted(batch.origin, first), unlabelled)
        first = stop


def _shifted(origin: Callable[[int], Origin], first: int) -> Callable[[int], Origin]:
    return lambda row: origin(first + row)
