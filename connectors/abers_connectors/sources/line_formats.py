"""JSON Lines and CSV: lines to raw records, and raw records to columns.

An unreadable record costs no other record. In JSON Lines a line is a record. In CSV a quoted field
may span lines, but only if that results in a record with as many fields as the header; otherwise
its first line alone is a bad record.
"""

from __future__ import annotations

import csv
from collections import Counter, deque
from itertools import filterfalse, islice, repeat
from operator import contains
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers.exceptions import RecordError
from abers.stream.cells import BadRecordError, Cells
from abers.stream.column_types import objects
from abers_connectors.mapping.json_columns import JsonColumns
from abers_connectors.sources.csv_dialect import Dialect
from abers_connectors.sources.csv_header import SEPARATORS, require_fit, require_separator
from abers_connectors.sources.lines import OversizedLine, RawLine, is_blank, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from abers.stream.cells import RawColumns

__all__ = ["UNREADABLE", "CsvFormat", "JsonLinesFormat", "RawRecords"]

UNREADABLE = (
    msgspec.DecodeError,
    UnicodeDecodeError,
    RecursionError,
    TypeError,
    AttributeError,
    csv.Error,
)
"""What `many` of a format raises if the records must be decoded one by one."""

_COMPARED = 1000  # records, with the header
_FIELD_LIMIT = 2**31 - 1  # of the csv module; the size of records is checked before


class RawRecords(NamedTuple):
    """Raw records, and the numbers of their first lines."""

    numbers: Sequence[int]
    raws: Sequence[RawLine]


class JsonLinesFormat:
    """One JSON object per line; only some fields are read."""

    columns: Sequence[str] | None = None  # JSON has none

    def __init__(self, fields: Collection[str]) -> None:
        self._columns = JsonColumns(fields, "a line")
        self._decode = msgspec.json.Decoder(dict[str, Any]).decode

    def records(self, blocks: Iterable[list[RawLine]]) -> Iterator[RawRecords]:
        """Yield each line as a record, blank lines included."""
        number = 1
        for block in blocks:
            yield RawRecords(range(number, number + len(block)), block)
            number += len(block)

    def many(self, raws: Sequence[RawLine]) -> RawColumns:
        """Return the columns of raw records; a bad or blank one raises one of `UNREADABLE`."""
        return self._columns.many(raws)  # type: ignore[arg-type]

    def one(self, raw: bytes) -> RawColumns:
        """Return the columns of one raw record of valid UTF-8, or raise a BadRecordError."""
        return self._columns.one(raw)

    def first_fields(self, raws: Sequence[RawLine]) -> Sequence[str]:
        """Return the fields of the first records, none if the very first is bad."""
        found: dict[str, None] = {}
        for number, raw in enumerate(raws):
            try:
                found |= dict.fromkeys(self._decode(raw))  # type: ignore[arg-type]
            except UNREADABLE:
                if not number:
                    return ()
        return [*found]

    def is_complete(self, line: RawLine) -> bool:
        """Return whether a line without its end is a record: no part of an object is an object."""
        try:
            self._decode(line)  # type: ignore[arg-type]
        except UNREADABLE:
            return False
        return True


class CsvFormat:
    """Rows below a header with the names of the columns; only some columns are read.

    A record has at most `limit` bytes. The file may end within a quoted field: `keeps` gets the
    first line of this field, and returns whether its lines are records.
    """

    def __init__(
        self,
        name: str,
        fields: Collection[str],
        limit: int,
        keeps: Callable[[RawLine], bool] = lambda _: True,
        dialect: Dialect = Dialect(),  # noqa: B008 - immutable
    ) -> None:
        self.columns: Sequence[str] | None = None
        self._dialect, self._first = dialect, ""
        self._fits = False  # whether the header was compared with records
        self._name, self._limit, self._keeps = name, limit, keeps
        self._fields = fields
        csv.field_size_limit(_FIELD_LIMIT)

    def records(self, blocks: Iterable[list[RawLine]]) -> Iterator[RawRecords]:
        """Yield each line as a record, and lines that a quoted field spans as one.

        The `columns` are known with the first records.
        """
        open_: list[RawLine] = []  # lines since a quote was opened
        number = 1
        for block in blocks:
            if not self._dialect.given:
                self._dialect = self._seen(block)
            pending = [*open_, *block]
            found, open_ = self._framed(pending, number, at_end=False)
            number += len(pending) - len(open_)
            yield from self._below_header(found)
        if open_ and self._keeps(open_[0]):
            yield from self._below_header(self._framed(open_, number, at_end=True)[0])

    def many(self, raws: Sequence[RawLine]) -> RawColumns:
        """Return the columns of raw records; a bad or blank one raises one of `UNREADABLE`."""
        try:
            return self._read(raws)
        except BadRecordError as error:
            raise csv.Error from error

    def _read(self, raws: Sequence[RawLine]) -> RawColumns:
        columns = self.columns or ()
        rows = self._rows(map(bytes.decode, raws))  # type: ignore[arg-type]
        if len(rows) != len(raws) or {*map(len, rows)} - {len(columns)}:
            raise csv.Error
        found = zip(columns, zip(*rows, strict=True), strict=True)
        return {
            name: Cells(objects(self._dialect.plain(name, cells)), None, str)
            for name, cells in found
            if name in self._fields
        }

    def one(self, raw: bytes) -> RawColumns:
        """Return the columns of one raw record of valid UTF-8, or raise a BadRecordError."""
        columns = self.columns or ()
        try:
            (row,) = self._rows([raw.decode()])
        except (csv.Error, ValueError) as error:
            detail = f"{error}; see that every quote is closed"
            raise BadRecordError("bad-record", detail) from None
        if len(row) != len(columns):
            separator = SEPARATORS[self._dialect.delimiter]
            detail = (
                f"{len(row)} of the header's {len(columns)} fields; "
                f"complete the line, or quote a field that has a {separator}"
            )
            raise BadRecordError("bad-record", detail)
        return self._read([raw])

    def first_fields(self, _raws: Sequence[RawLine]) -> Sequence[str]:
        """Return the names of the columns."""
        return [*dict.fromkeys(self.columns or ())]

    def is_complete(self, _line: RawLine) -> bool:
        """Return False: 0.5 may become 0.57, and there may be one more column."""
        return False

    def _framed(
        self, found: list[RawLine], number: int, *, at_end: bool
    ) -> tuple[RawRecords, list[RawLine]]:
        """Return the records in some lines, and the lines of an incomplete last record."""
        if not any(map(contains, found, repeat(b'"'))):
            return RawRecords(range(number, number + len(found)), found), []
        numbers, raws = [], []
        rest = deque(found)
        while rest:
            size = self._lines_of_record(rest, at_end=at_end)
            if size is None:
                break
            numbers.append(number)
            raws.append(_joined([rest.popleft() for _ in range(size)]))
            number += size
        return RawRecords(numbers, raws), list(rest)

    def _lines_of_record(self, rest: deque[RawLine], *, at_end: bool) -> int | None:
        """Return the number of lines of the first record; None if its end is missing."""
        if not self._opens(rest[0]):
            return 1
        parts: list[bytes] = []
        length = -1
        for line in rest:
            if isinstance(line, OversizedLine):
                return 1
            parts.append(line)
            length += len(line) + 1
            if length > self._limit:
                return 1
            if len(parts) > 1 and line.count(b'"') % 2:
                return len(parts) if self._is_row(b"\n".join(parts)) else 1
        return 1 if at_end else None

    def _is_row(self, raw: bytes) -> bool:
        try:
            rows = self._rows([raw.decode()])
        except (csv.Error, UnicodeDecodeError):
            return False
        return len(rows) == 1 and (self.columns is None or len(rows[0]) == len(self.columns))

    def _below_header(self, records: RawRecords) -> Iterator[RawRecords]:
        numbers, raws = records
        if self.columns is None:
            start = next((row for row, raw in enumerate(raws) if not is_blank(raw)), len(raws))
            if start == len(raws):
                return
            self.columns = self._header(raws[start])
            numbers, raws = numbers[start + 1 :], raws[start + 1 :]
        filled = [*islice(filterfalse(is_blank, raws), 0 if self._fits else _COMPARED)]
        if filled:
            self._fits = True
            require_fit(self._name, self._first, self.columns, self._sizes(filled))
        yield RawRecords(numbers, raws)

    def _sizes(self, raws: Sequence[RawLine]) -> list[int | None]:
        """Return the number of fields of each record; None for an unreadable record."""
        try:
            rows = self._rows(map(bytes.decode, raws))  # type: ignore[arg-type]
        except (TypeError, ValueError, csv.Error):
            rows = []
        return [*map(len, rows)] if len(rows) == len(raws) else [*map(self._size, raws)]

    def _size(self, raw: RawLine) -> int | None:
        """Return the number of fields of a record; None if it is unreadable."""
        try:
            (row,) = self._rows([raw.decode()])  # type: ignore[union-attr]
        except (AttributeError, ValueError, csv.Error):
            return None
        return len(row)

    def _header(self, raw: RawLine) -> list[str]:
        try:
            (header,) = self._rows([raw.decode()])  # type: ignore[union-attr]
        except (AttributeError, ValueError, csv.Error):
            msg = f"{self._name}: the first line is not a header; write the column names there"
            raise RecordError(msg) from None
        self._first = shown(raw)
        require_separator(self._name, self._first, header, self._dialect.delimiter)
        repeated = [column for column, count in Counter(header).items() if count > 1 and column]
        if repeated:
            msg = f"{self._name}: two columns have the name {repeated[0]}; rename one of them"
            raise RecordError(msg)
        return header

    def _rows(self, texts: Iterable[str]) -> list[list[str]]:
        return list(
            csv.reader(texts, delimiter=self._dialect.delimiter, strict=True, skipinitialspace=True)
        )

    def _seen(self, block: Sequence[RawLine]) -> Dialect:
        """Return the dialect that the first line shows, if a block has it."""
        first = next(filterfalse(is_blank, block), None)
        return self._dialect if first is None else self._dialect.seen(shown(first))

    def _opens(self, line: RawLine) -> bool:
        """Return whether a quote is opened in a line and not closed."""
        if isinstance(line, OversizedLine) or line.count(b'"') % 2 == 0:
            return False
        try:
            self._rows(
                [line.decode("latin-1")]
            )  # bytes may be wrong; quotes are quotes all the same
        except csv.Error as error:
            return "unexpected end" in str(error)
        return False


def _joined(parts: list[RawLine]) -> RawLine:
    return parts[0] if len(parts) == 1 else b"\n".join(parts)  # type: ignore[arg-type]
