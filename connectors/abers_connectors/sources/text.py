"""A JSON Lines or CSV file, or standard input, as a source.

A batch is decoded in one call. If that fails it is decoded record by record, with the same result,
so a bad record costs time and nothing else.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from abers.exceptions import RecordError
from abers.stream.cells import BadRecordError
from abers.stream.fields import root
from abers_connectors.files.compression import DamagedError, chunks
from abers_connectors.files.formats import STANDARD, file_format
from abers_connectors.mapping.bad_record import checked, too_large
from abers_connectors.mapping.needed_columns import require_columns
from abers_connectors.sources.base import (
    Batch,
    Origin,
    SourceOptions,
    batch_of,
    require_records,
)
from abers_connectors.sources.csv_dialect import Dialect
from abers_connectors.sources.digest import TextDigest
from abers_connectors.sources.line_formats import UNREADABLE, CsvFormat, JsonLinesFormat, RawRecords
from abers_connectors.sources.lines import OversizedLine, is_blank, lines, require_text, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from abers_connectors.sources.base import Position
    from abers_connectors.sources.lines import RawLine

__all__ = ["TextSource"]

_BATCH_RECORDS = 5000
_FIRST = 100  # records of JSON that are read in advance for their fields


class TextSource:
    """A file of lines, or standard input, which is named "-".

    If a file is growing, a last record without the end of its line is left until it has one.
    """

    def __init__(self, path: str, options: SourceOptions) -> None:
        self.name = "standard input" if path == STANDARD else path
        self._path, self._format = path, file_format(path, options.format)
        self._schema = options.schema(text=self._format.format == "csv")
        self._limit, self._growing = options.max_record_bytes, options.growing
        self._delimiter, self._decimal = options.delimiter, options.decimal
        self._left = False
        self._share: float | None = None

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position: a number of records to skip, and their digest.

        Data that is damaged or not text, and an unusable CSV header, is a RecordError; a missing
        CSV column a ParameterError; and a StateError says that the records to skip differ.
        """
        self._digest = TextDigest(self.name, position)
        skip, known = self._digest.skip, self._digest.known
        done, line = 0, 0
        standard = self._path == STANDARD
        with nullcontext(sys.stdin.buffer) if standard else Path(self._path).open("rb") as file:
            try:
                for records in self._records(file):
                    line = records.numbers[-1]
                    self._share = None if standard else _share(file)
                    if done < skip:
                        records, done = self._skipped(records, skip - done, done)  # noqa: PLW2901
                    if records.raws:
                        batch = self._batch(records, done)
                        done += batch.records
                        yield batch
            except DamagedError as error:
                msg = f"{self.name} after line {line}: {error}"
                raise RecordError(msg) from error
        require_records(self.name, done, known)
        if self._left:
            warnings.warn(
                f"{self.name}: the last record has no end yet, and is left for the next run; if "
                "nothing is to follow, end its line",
                stacklevel=2,
            )

    def fraction(self) -> float | None:
        """Return the share of the file that has been read; None for a stream without a size."""
        return self._share

    def first_fields(self) -> Sequence[str] | None:
        """Return the columns, or the fields of the first records; None without a record.

        There are no columns if the first record of JSON is bad, or the header of CSV.
        """
        try:
            with Path(self._path).open("rb") as file:
                for records in self._unchecked(file):
                    if raws := [raw for raw in records.raws if not is_blank(raw)]:
                        return self._line_format.first_fields(raws[:_FIRST])
        except RecordError:
            return ()
        return None

    def _records(self, file: BinaryIO) -> Iterator[RawRecords]:
        """Yield some raw records at a time, at least one."""
        checked = False
        for records in self._unchecked(file):
            if not checked and self._line_format.columns is not None:
                require_columns(self._schema, self.name, self._line_format.columns)
                self._digest.add_header(self._line_format.columns)
                checked = True
            for piece in _pieces(len(records.raws)):
                yield RawRecords(records.numbers[piece], records.raws[piece])

    def _unchecked(self, file: BinaryIO) -> Iterator[RawRecords]:
        """Yield the raw records, with any columns."""
        reads, given = self._schema.reads, self._format
        self._line_format: CsvFormat | JsonLinesFormat = (
            CsvFormat(self.name, reads, self._limit, self._keeps, self._dialect())
            if given.format == "csv"
            else JsonLinesFormat(reads)
        )
        self._left = False
        read = chunks(file, given.compression)
        text = require_text(self.name, read, growing=self._growing)
        yield from self._line_format.records(lines(text, self._limit, self._keeps))

    def _dialect(self) -> Dialect:
        fields = self._schema.fields
        numbers = () if self._decimal == "." else (*fields.scored, fields.label)
        commas = frozenset(name for path in numbers for name in root(path))
        given = self._delimiter is not None
        return Dialect(self._delimiter or self._format.separator, given=given, commas=commas)

    def _keeps(self, line: RawLine) -> bool:
        """Return whether a last line without its end is a record."""
        keeps = not self._growing or is_blank(line) or self._line_format.is_complete(line)
        self._left |= not keeps
        return keeps

    def _batch(self, records: RawRecords, done: int) -> Batch:
        """Return the batch of raw records, before which `done` were read."""
        numbers, raws = records
        good: Sequence[int] = range(len(raws))
        broken: dict[int, BadRecordError] = {}
        try:
            columns = self._line_format.many(raws)
        except UNREADABLE:
            filled = [row for row, raw in enumerate(raws) if not is_blank(raw)]
            numbers, raws = [numbers[row] for row in filled], [raws[row] for row in filled]
            good, broken = self._readable(raws)
            columns = self._line_format.many([raws[row] for row in good]) if good else {}
        self._digest.add(raws)
        reading = self._schema.read(columns, [done + row + 1 for row in good])
        return batch_of(
            reading,
            good,
            broken,
            lambda row: self._origin(numbers[row], raws[row]),
            self._digest.position(),
        )

    def _readable(self, raws: Sequence[RawLine]) -> tuple[list[int], dict[int, BadRecordError]]:
        """Return which raw records can be decoded, and why the others cannot."""
        good, broken = [], {}
        for row, raw in enumerate(raws):
            try:
                if isinstance(raw, OversizedLine):
                    raise too_large(raw.size, self._limit)
                checked(raw, self._line_format.one)
                good.append(row)
            except BadRecordError as error:
                broken[row] = error
        return good, broken

    def _skipped(self, records: RawRecords, skip: int, done: int) -> tuple[RawRecords, int]:
        """Skip so many records, or all; blank lines do not count."""
        numbers, raws = records
        filled = [index for index, raw in enumerate(raws) if not is_blank(raw)]
        self._digest.add([raws[index] for index in filled[:skip]])
        if len(filled) <= skip:
            return RawRecords((), ()), done + len(filled)
        first = filled[skip]
        return RawRecords(numbers[first:], raws[first:]), done + skip

    def _origin(self, number: int, raw: RawLine) -> Origin:
        return Origin(f"{self.name} line {number}", shown(raw))


def _share(file: BinaryIO) -> float | None:
    status = os.fstat(file.fileno())
    sized = stat.S_ISREG(status.st_mode) and status.st_size
    return file.tell() / status.st_size if sized else None


def _pieces(size: int) -> Iterator[slice]:
    """Yield the slices that divide so many records into batches of about `_BATCH_RECORDS`."""
    step = -(-size // max(1, round(size / _BATCH_RECORDS)))
    return (slice(start, start + step) for start in range(0, size, step or 1))
