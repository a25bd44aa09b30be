"""JSON Lines and CSV: from lines to raw records, from raw records to mappings.

Governing rule: what cannot be read costs one record and no other. A line of
JSON is a record; in CSV a quote may go on over lines, but only where that ends
in a record of the header's length, and otherwise its first line is a bad record
alone.
"""

from __future__ import annotations

import csv
from collections import Counter, deque
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

from abers.exceptions import RecordError
from abers.stream.columns import objects
from abers_connectors import _json
from abers_connectors._columns import Given
from abers_connectors._json import Json
from abers_connectors.files.lines import Line, Oversized, is_blank
from abers_connectors.records import BadRecordError, Row, gathered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from abers.stream import Events
    from abers_connectors._paths import Record
    from abers_connectors._typed import Typed
    from abers_connectors.fields import Mapper

__all__ = ["UNREADABLE", "Csv", "Format", "Frames", "JsonLines"]

UNREADABLE = (*_json.UNREADABLE, csv.Error)
"""What `Format.events` raises if a raw record needs a closer look."""

_FIELD_LIMIT = 2**31 - 1  # the limit of a record is another, and checked before


class Frames(NamedTuple):
    """Raw records, and the numbers of the lines where they begin."""

    numbers: Sequence[int]
    raws: Sequence[Line]


class Format(Protocol):
    """How a format makes records of lines; `columns` are known once the first frames are."""

    columns: Sequence[str] | None

    def frames(self, blocks: Iterable[list[Line]]) -> Iterator[Frames]:
        """Find the records in the lines, blank ones among them."""
        ...

    def events(self, raws: Sequence[Line], mapper: Mapper, done: int) -> Events:
        """Read raw records, before which `done` were read.

        Of these none may be bad or blank, or it raises one of `UNREADABLE` or a BadRecordError.
        """
        ...

    def row(self, raw: bytes, mapper: Mapper, number: int) -> Row:
        """Read one raw record of valid UTF-8, as it is read among others; or a BadRecordError."""
        ...

    def is_whole(self, line: Line) -> bool:
        """Say whether a line is a record to which no more can belong, though its end is missing."""
        ...


class JsonLines(Json):
    """One JSON object a line."""

    columns: Sequence[str] | None = None

    def __init__(self, typed: Typed | None = None) -> None:
        super().__init__(typed, "a line")

    def frames(self, blocks: Iterable[list[Line]]) -> Iterator[Frames]:
        """Take each line as a record."""
        number = 1
        for block in blocks:
            yield Frames(range(number, number + len(block)), block)
            number += len(block)

    def events(self, raws: Sequence[Line], mapper: Mapper, done: int) -> Events:
        """Read all lines."""
        return self.read(raws, mapper, count(done + 1))  # type: ignore[arg-type]

    def row(self, raw: bytes, mapper: Mapper, number: int) -> Row:
        """Read one line."""
        return self.read_one(raw, mapper, number)

    def is_whole(self, line: Line) -> bool:
        """Say whether a line is an object: no part of one is an object itself."""
        try:
            self.decode(line)  # type: ignore[arg-type]
        except UNREADABLE:
            return False
        return True


class Csv:
    """Rows below a header with the names of the columns.

    Parameters
    ----------
    name
        Of the file, for messages.
    limit
        How many bytes a record may have.
    keeps
        Whether lines that a quote holds together up to the end, the first of them given, are
        records without it; by default they are.
    """

    def __init__(
        self, name: str, limit: int, keeps: Callable[[Line], bool] = lambda _: True
    ) -> None:
        self.columns: Sequence[str] | None = None
        self._name, self._limit, self._keeps = name, limit, keeps
        csv.field_size_limit(_FIELD_LIMIT)

    def frames(self, blocks: Iterable[list[Line]]) -> Iterator[Frames]:
        """Take each line as a record, but those that a quote holds together as one."""
        open_: list[Line] = []  # lines from the one on in which a quote was opened
        number = 1
        for block in blocks:
            waiting = [*open_, *block]
            frames, open_ = self._framed(waiting, number, at_end=False)
            number += len(waiting) - len(open_)
            yield from self._below_header(frames)
        if open_ and self._keeps(open_[0]):
            yield from self._below_header(self._framed(open_, number, at_end=True)[0])

    def events(self, raws: Sequence[Line], mapper: Mapper, done: int) -> Events:
        """Read all rows."""
        columns = self.columns or ()
        rows = _rows(raw.decode() for raw in raws)  # type: ignore[union-attr]
        if len(rows) != len(raws) or {len(row) for row in rows} != {len(columns)}:
            raise csv.Error
        texts = zip(columns, zip(*rows, strict=True), strict=True)
        events = mapper.columns(
            {name: Given(objects(found)) for name, found in texts if name in mapper.reads}
        )
        if events is not None:
            return events
        records = (dict(zip(columns, row, strict=True)) for row in rows)
        return gathered(list(map(mapper.row, records, count(done + 1))))

    def row(self, raw: bytes, mapper: Mapper, number: int) -> Row:
        """Read one row."""
        return mapper.row(self._record(raw), number)

    def is_whole(self, _line: Line) -> bool:
        """Say no: 0.5 may become 0.57, and there may be one more column."""
        return False

    def _record(self, raw: bytes) -> Record:
        columns = self.columns or ()
        try:
            (row,) = _rows([raw.decode()])
        except (csv.Error, ValueError) as error:
            detail = f"{error}; see that every quote is closed"
            raise BadRecordError("bad-record", detail) from None
        if len(row) != len(columns):
            detail = (
                f"{len(row)} of the header's {len(columns)} fields; "
                "complete the line, or quote a field that holds a comma"
            )
            raise BadRecordError("bad-record", detail)
        return dict(zip(columns, row, strict=True))

    def _framed(self, found: list[Line], number: int, *, at_end: bool) -> tuple[Frames, list[Line]]:
        """Find the records in some lines; the lines of one that has no end yet are left over."""
        if not any(b'"' in line for line in found if isinstance(line, bytes)):
            return Frames(range(number, number + len(found)), found), []
        numbers, raws = [], []
        rest = deque(found)
        while rest:
            size = self._lines_of_record(rest, at_end=at_end)
            if size is None:
                break
            numbers.append(number)
            raws.append(_joined([rest.popleft() for _ in range(size)]))
            number += size
        return Frames(numbers, raws), list(rest)

    def _lines_of_record(self, rest: deque[Line], *, at_end: bool) -> int | None:
        """Count the lines of the record that comes first; None if its end is not there yet."""
        if not _opens(rest[0]):
            return 1
        parts: list[bytes] = []
        length = -1
        for line in rest:
            if isinstance(line, Oversized):
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
            rows = _rows([raw.decode()])
        except (csv.Error, UnicodeDecodeError):
            return False
        return len(rows) == 1 and (self.columns is None or len(rows[0]) == len(self.columns))

    def _below_header(self, frames: Frames) -> Iterator[Frames]:
        numbers, raws = frames
        if self.columns is None:
            start = next((row for row, raw in enumerate(raws) if not is_blank(raw)), len(raws))
            if start == len(raws):
                return
            self.columns = self._header(raws[start])
            numbers, raws = numbers[start + 1 :], raws[start + 1 :]
        yield Frames(numbers, raws)

    def _header(self, raw: Line) -> list[str]:
        try:
            (header,) = _rows([raw.decode()])  # type: ignore[union-attr]
        except (AttributeError, ValueError, csv.Error):
            msg = f"{self._name}: the first line is no header; write the names of the columns there"
            raise RecordError(msg) from None
        twins = [column for column, count in Counter(header).items() if count > 1 and column]
        if twins:
            msg = f"{self._name}: two columns are called {twins[0]}; rename one of them"
            raise RecordError(msg)
        return header


def _rows(texts: Iterable[str]) -> list[list[str]]:
    return list(csv.reader(texts, strict=True, skipinitialspace=True))


def _opens(line: Line) -> bool:
    """Say whether a quote is opened in a line and not closed."""
    if isinstance(line, Oversized) or line.count(b'"') % 2 == 0:
        return False
    try:
        _rows([line.decode("latin-1")])  # bytes may be wrong; quotes are quotes all the same
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def _joined(parts: list[Line]) -> Line:
    return parts[0] if len(parts) == 1 else b"\n".join(parts)  # type: ignore[arg-type]
