"""JSON Lines and CSV: bytes to lines, lines to raw records, and these to columns.

No more than one chunk and one line of the allowed length is kept; of a longer line only its head
and length. An unreadable record costs no other. In CSV a quoted field may span lines, but only if
that results in a record with as many fields as the header; otherwise its first line alone is a bad
record. Records that are all bad for one reason, or no UTF-8, are an error of the file.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter, deque
from itertools import chain, filterfalse, islice, repeat
from operator import contains
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from abers.exceptions import RecordError
from abers.stream.cells import BadRecordError, Cells, objects
from abers.stream.readers import number
from abers_connectors.files import chunks, file_format
from abers_connectors.mapping import JsonColumns, csv_fault, not_utf8

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from abers.stream.cells import RawColumns

__all__ = [
    "HEAD",
    "UNREADABLE",
    "CsvFormat",
    "Dialect",
    "JsonLinesFormat",
    "OversizedLine",
    "RawLine",
    "RawRecords",
    "has_decimal_commas",
    "is_blank",
    "lines",
    "require_text",
    "shown",
]

_SHOWN_CHARACTERS = 1000  # of an oversized line in a message
HEAD = 4 * _SHOWN_CHARACTERS
"""Bytes kept of an oversized line, enough for the characters shown."""

_MARK = b"\xef\xbb\xbf"  # byte order mark, which some programs write first
_SIGNATURE = 4  # first bytes, by which a format is recognized
_UTF16 = "text in UTF-16 or UTF-32; write it in UTF-8, as iconv does"
_OTHERS = {
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
    b"\x1f\x8b": "compressed by gzip; end the name of the file in .gz, or unpack it",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; end the name of the file in .zst, or unpack it",
    b"PAR1": "a Parquet file; end its name in .parquet",
    b"PK\x03\x04": "a zip archive; unpack it",
}
_NOTHING = b"\xef\xbb\xbf\0\r\n \t"
"""Bytes of a file without content: byte order marks, NULs and white space."""


class OversizedLine(NamedTuple):
    """Head and length of a line that is too long."""

    head: bytes
    size: int


RawLine: TypeAlias = bytes | OversizedLine


class _PartialLine:
    """A line that comes in parts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self.size = 0

    def add(self, part: bytes) -> None:
        """Add a part, or just its length."""
        self.size += len(part)
        if self.size <= self._limit:
            self._parts.append(part)
        elif sum(map(len, self._parts)) < HEAD:
            self._parts.append(part[:HEAD])
        if self.size > self._limit:
            self._parts = [b"".join(self._parts)[:HEAD]]

    def take(self) -> RawLine:
        """Return the line, and start another."""
        whole, size = b"".join(self._parts), self.size
        self._parts, self.size = [], 0
        return whole if size <= self._limit else OversizedLine(whole, size)


def lines(
    chunks: Iterable[bytes], limit: int, keeps: Callable[[RawLine], bool] = lambda _: True
) -> Iterator[list[RawLine]]:
    r"""Split chunks into lines.

    A list has the lines that a chunk completes, without their ends; a line with more than `limit`
    bytes is oversized. `keeps` says whether a last line without its end counts.

    >>> list(lines([b"one\ntw", b"o\n\nlonger", b" line"], limit=5))
    [[b'one'], [b'two', b''], [OversizedLine(head=b'longer line', size=11)]]
    """
    unfinished, first = _PartialLine(limit), True
    for chunk in chunks:
        found: list[RawLine] = [*chunk.split(b"\n")]
        last = found.pop()
        if found:
            unfinished.add(found[0])  # type: ignore[arg-type]
            found[0] = unfinished.take()
            if len(chunk) > limit:
                found = [_limited(line, limit) for line in found]
            yield _unmarked(found) if first else found
            first = False
        unfinished.add(last)  # type: ignore[arg-type]
    if unfinished.size:
        found = [unfinished.take()]
        found = _unmarked(found) if first else found
        if keeps(found[0]):
            yield found


def _limited(line: RawLine, limit: int) -> RawLine:
    if isinstance(line, OversizedLine) or len(line) <= limit:
        return line
    return OversizedLine(line[:HEAD], len(line))


def _unmarked(found: list[RawLine]) -> list[RawLine]:
    if isinstance(found[0], bytes):
        found[0] = found[0].removeprefix(_MARK)
    return found


def is_blank(line: RawLine) -> bool:
    """Return whether a line has nothing but white space."""
    return isinstance(line, bytes) and not line.strip()


def shown(line: RawLine) -> str:
    """Return a line as text, with any bytes; an oversized line as its head and length."""
    if isinstance(line, bytes):
        return line.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    head = line.head.decode("utf-8", "backslashreplace")[:_SHOWN_CHARACTERS]
    return f"{head}… ({line.size} bytes)"


def require_text(name: str, chunks: Iterable[bytes], *, growing: bool) -> Iterator[bytes]:
    r"""Yield the bytes of a file as they are, after a check that they may be lines of text.

    A RecordError says that the file `name` has another format, that its lines end in \r alone,
    or that it has nothing but a byte order mark or NUL bytes. A `growing` file may be continued.
    """
    check = _TextCheck()
    for chunk in chunks:
        check.add(chunk)
        if problem := check.other_format():
            msg = f"{name} is {problem}"
            raise RecordError(msg)
        yield chunk
    if problem := check.at_end(growing=growing):
        msg = f"{name} {problem}"
        raise RecordError(msg)


class _TextCheck:
    """What is known of the bytes so far."""

    def __init__(self) -> None:
        self._head, self._last = b"", b""
        self._empty, self._odd = True, False
        self._ends, self._returns = False, False

    def add(self, chunk: bytes) -> None:
        """Add a chunk; after the first line there is nothing left to check."""
        if len(self._head) < _SIGNATURE:
            self._head += chunk[: _SIGNATURE - len(self._head)]
        if self._empty:
            self._empty = not chunk.strip(_NOTHING)
            self._odd |= not self._empty or bool(chunk.strip(b"\r\n \t"))
        if not self._ends:
            self._ends = b"\n" in chunk
            self._returns |= b"\r" in self._last + chunk[:-1]
            self._last = chunk[-1:]

    def other_format(self) -> str | None:
        """Describe the format, if it is not UTF-8 by its first bytes."""
        for head, problem in _OTHERS.items():
            if self._head.startswith(head):
                return problem
        if len(self._head) < _SIGNATURE:
            return None
        # NULs alone may be a hole before good records, as log rotation leaves it.
        return _UTF16 if b"\0" in self._head[:2] and self._head.strip(b"\0") else None

    def at_end(self, *, growing: bool) -> str | None:
        """Describe what is wrong with the whole file."""
        if not self._ends and (self._returns or (self._last == b"\r" and not growing)):
            return r"has lines that end in \r alone; end them in \n"
        if self._empty and self._odd and not growing:
            return "has no record: it has only a byte order mark or NUL bytes"
        return None


SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "vertical bar"}
"""The characters that separate fields in files that people have, and their names."""

_SHOWN = 80  # characters of a line
_ENOUGH = 2  # records that say the same


def require_separator(name: str, line: str, header: Sequence[str], separator: str) -> None:
    """Raise a RecordError if the names in the header of a file have another separator."""
    for other in SEPARATORS if len(header) == 1 else ():
        if other != separator and other in line:
            msg = (
                f"{name}: the names in the first line, {_quoted(line)}, are separated by "
                f"{SEPARATORS[other]}s, not by {SEPARATORS[separator]}s; name it in "
                "input.delimiter (--delimiter)"
            )
            raise RecordError(msg)


def require_fit(name: str, line: str, header: Sequence[str], sizes: Iterable[int | None]) -> None:
    """Raise a RecordError if all records have the same number of fields, and the header another.

    Records of one field are junk, which says nothing of the header.

    Parameters
    ----------
    name
        The file, for the message.
    line, header
        The first line, and the names in it.
    sizes
        Numbers of fields of the first records; None for an unreadable record.
    """
    found = [*sizes]
    if len(found) < _ENOUGH or len({*found}) > 1 or found[0] in {None, 1, len(header)}:
        return
    size = found[0] or 0
    if line.startswith("#") or len(header) == 1:
        what = f"the first line, {_quoted(line)}, does not name the {size} columns"
        remedy = "remove the lines above the names"
    elif len(header) > size:
        what = f"the first line has {len(header)} names, and each line below has {size} fields"
        remedy = "remove the names that have no values, or complete the lines"
    else:
        what = f"the first line has {len(header)} names, and each line below has {size} fields"
        remedy = "name every column, and remove what stands above the names"
    msg = f"{name}: {what}; {remedy}"
    raise RecordError(msg)


def _quoted(line: str) -> str:
    return repr(line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…")


_COMMA = re.compile(r"\s*[+-]?\d*,\d+\s*%?\s*", re.ASCII)
_POINT = re.compile(r"\s*[+-]?\d*\.\d+\s*%?\s*", re.ASCII)
_SAMPLE = 100  # lines


class Dialect(NamedTuple):
    """How fields are separated, and in which columns decimals follow a comma."""

    delimiter: str = ","
    given: bool = False  # whether the first line has no say in the delimiter
    commas: frozenset[str] = frozenset()

    def seen(self, line: str) -> Dialect:
        """Return the dialect of a file with this first line, if it shows only one delimiter.

        Examples
        --------
        >>> Dialect().seen("id;score").delimiter, Dialect().seen("id;a,b").delimiter
        (';', ',')
        """
        found = [one for one in SEPARATORS if one in line]
        known = self.given or len(found) != 1
        return self._replace(delimiter=self.delimiter if known else found[0], given=True)

    def plain(self, column: str, cells: Sequence[str]) -> Sequence[str]:
        """Return the cells of a column with a point before decimals; a BadRecordError if it can't.

        Examples
        --------
        >>> Dialect(commas=frozenset(["p"])).plain("p", ["0,5", "1", "-"])
        ['0.5', '1', '-']
        """
        if column not in self.commas or {",", "."}.isdisjoint("".join(cells)):
            return cells
        return [*map(_plain, cells)]


def _plain(cell: str) -> str:
    if "." in cell and math.isfinite(_number(cell)):
        detail = f"{cell!r} has a point, where decimals follow a comma; write 0,5, or no point"
        raise BadRecordError("bad-record", detail)
    plain = cell.replace(",", ".")
    return plain if math.isfinite(_number(plain)) else cell


def _number(cell: str) -> float:
    return number(cell.rstrip().removesuffix("%"))


def has_decimal_commas(path: str) -> bool:
    """Return whether the first lines of a CSV file have commas in numbers, and points in none.

    Commas that separate fields are in no number.
    """
    given = file_format(path)
    if given.format != "csv":
        return False
    try:
        with Path(path).open("rb") as file:
            found = chain.from_iterable(lines(chunks(file, given.compression), 1 << 20))
            header, *texts = [shown(one) for one in islice(found, _SAMPLE) if not is_blank(one)]
        cells = [*_cells(texts, Dialect(given.separator).seen(header).delimiter)]
    except (ValueError, csv.Error):  # no line, or damaged; the run says what is wrong
        return False
    return any(map(_COMMA.fullmatch, cells)) and not any(map(_POINT.fullmatch, cells))


def _cells(texts: Iterable[str], delimiter: str) -> Iterable[str]:
    """Return the fields of lines that are not quoted."""
    return chain.from_iterable(csv.reader(texts, delimiter=delimiter, quoting=csv.QUOTE_NONE))


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
        for row, raw in enumerate(raws):
            try:
                found |= dict.fromkeys(self._decode(raw))  # type: ignore[arg-type]
            except UNREADABLE:
                if not row:
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
            raise BadRecordError("bad-record", csv_fault(error)) from None
        if len(row) != len(columns):
            separator = SEPARATORS[self._dialect.delimiter]
            detail = (
                f"fields: {len(row)} on the line, {len(columns)} in the header; "
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
        except UnicodeDecodeError as error:
            msg = f"{self._name}: line 1: {not_utf8(error)}"
            raise RecordError(msg) from None
        except (AttributeError, ValueError, csv.Error):
            msg = f"{self._name}: the first line is not a header; write the column names there"
            raise RecordError(msg) from None
        self._first = shown(raw)
        require_separator(self._name, self._first, header, self._dialect.delimiter)
        header = [name.strip() for name in header]
        if repeated := [one for one, count in Counter(header).items() if count > 1 and one]:
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
