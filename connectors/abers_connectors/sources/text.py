"""A JSON Lines or CSV file, or standard input, as a source.

Digests of the records that were read, by which a later run recognizes a file. Equal records have
equal digests, however they are divided, compressed or ended. So a file that grew or was compressed
again is the same file, and one with other records is not.

A batch is decoded in one call. If that fails it is decoded record by record, with the same result,
so a bad record costs time and nothing else.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from abc import ABC, abstractmethod
from collections import defaultdict
from contextlib import nullcontext
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np

from abers.exceptions import RecordError, StateError
from abers.stream.arrow_columns import is_moment, numbers, text_ends, valid_rows
from abers.stream.cells import BadRecordError, root
from abers_connectors.extras import extra
from abers_connectors.files import STANDARD, DamagedError, chunks, file_format
from abers_connectors.mapping import checked, require_columns, too_large
from abers_connectors.sources.base import Batch, Origin, SourceOptions, batch_of, require_records
from abers_connectors.sources.line_formats import (
    HEAD,
    UNREADABLE,
    CsvFormat,
    Dialect,
    JsonLinesFormat,
    OversizedLine,
    RawRecords,
    is_blank,
    lines,
    require_text,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from abers_connectors.sources.base import Enough, Position
    from abers_connectors.sources.line_formats import RawLine

__all__ = ["ColumnDigest", "TextSource"]

_hash = partial(blake2b, digest_size=16)


class _Digest(ABC):
    """A digest that is compared, on the way, with those of earlier positions.

    The position says where to continue, and how far the input was read before (`resume_point`).
    """

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        self._name = name
        start = position or {}
        given = (start, start.get("ahead") or {})
        self._due = [one for one in given if one.get("records")]
        self.skip: int = start.get("records", 0)
        self.records = 0

    @property
    def known(self) -> int:
        """Least number of records of the input, as so many were read before."""
        return max([one["records"] for one in self._due], default=0)

    def add(self, rows: Sequence[Any]) -> None:
        """Add records; raise a StateError if they differ from those of an earlier position."""
        while self._due and (left := self._due[0]["records"] - self.records) <= len(rows):
            self._take(rows[:left])
            rows = rows[left:]
            self.records += left
            self._require_equal(self._due.pop(0))
        self._take(rows)
        self.records += len(rows)

    def position(self) -> Position:
        """Return the number of records read, with their digest."""
        return {"records": self.records, "digest": self.value()}

    def _require_equal(self, before: Position) -> None:
        if not _are_equal(before["digest"], self.value()):
            msg = (
                f"input {self._name} is not what was read before: its first {before['records']} "
                "records differ; put the old file back, or remove state and outputs to start anew"
            )
            raise StateError(msg)

    @abstractmethod
    def value(self) -> Any:  # noqa: ANN401 - what JSON can hold
        """Return the digest of all records so far."""

    @abstractmethod
    def _take(self, rows: Sequence[Any]) -> None: ...


def _are_equal(before: object, now: object) -> bool:
    if not isinstance(before, dict) or not isinstance(now, dict):
        return before == now
    # Another mapping reads other columns; those that both read must agree.
    common = before.keys() & now.keys()
    return bool(common) and all(before[name] == now[name] for name in common)


class TextDigest(_Digest):
    r"""The digest of raw records, none of them blank.

    >>> one, other = TextDigest(), TextDigest()
    >>> one.add([b"a", b"b"])
    >>> other.add([b"a\r"])
    >>> other.add([b"b"])
    >>> one.position() == other.position()
    True
    """

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        super().__init__(name, position)
        self._hash = _hash()

    def add_header(self, columns: Iterable[str]) -> None:
        """Add the names of columns, which are not a record."""
        self._take([column.encode() for column in columns])

    def value(self) -> str:
        """Return the digest."""
        return self._hash.hexdigest()

    def _take(self, rows: Sequence[RawLine]) -> None:
        try:
            texts = [*map(bytes.strip, rows)]  # type: ignore[arg-type]
        except TypeError:  # an oversized line
            texts = []
        if not texts or max(map(len, texts)) > HEAD:
            texts = [*map(_canonical, rows)]
        self._hash.update(b"\n".join([*texts, b""]))


def _canonical(raw: RawLine) -> bytes:
    """Return a record without its end, and independent of the size limit."""
    if isinstance(raw, OversizedLine):
        return b"%b %d" % (raw.head, raw.size)
    text = raw.strip()
    return text if len(text) <= HEAD else b"%b %d" % (text[:HEAD], len(text))


class ColumnDigest(_Digest):
    """The digests of Arrow columns, one for each name."""

    def __init__(self, name: str = "", position: Position | None = None) -> None:
        super().__init__(name, position)
        self._hashes: defaultdict[str, defaultdict[str, Any]] = defaultdict(
            lambda: defaultdict(_hash)
        )

    def value(self) -> dict[str, str]:
        """Return the digest of each column."""
        return {
            name: _hash(b"".join(parts[part].digest() for part in sorted(parts))).hexdigest()
            for name, parts in self._hashes.items()
        }

    def _take(self, rows: pa.RecordBatch) -> None:
        if not len(rows):
            return
        for name, column in zip(rows.schema.names, rows.columns, strict=True):
            for part, data in _parts(column):
                self._hashes[name][part].update(data)


def _parts(column: pa.Array) -> Iterator[tuple[str, Any]]:
    """Yield a column as bytes that do not depend on how it is divided."""
    arrow = extra("pyarrow", "Parquet")
    types, kind = arrow.types, column.type
    valid = valid_rows(column)
    yield "valid", np.ones(len(column), bool) if valid is None else valid
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind):
        yield "values", np.ascontiguousarray(numbers(column))
    elif is_moment(kind):
        yield "values", np.ascontiguousarray(numbers(column, np.int64))
    elif types.is_string(kind) or types.is_large_string(kind):
        ends = text_ends(column)
        yield "lengths", np.diff(ends).astype(np.int64)
        yield "values", memoryview(column.buffers()[2] or b"")[ends[0] : ends[-1]]
    elif not types.is_null(kind):
        rows = (_as_json(column.slice(row, 1)) for row in range(len(column)))
        yield "values", b"\n".join([*rows, b""])


def _as_json(value: pa.Array) -> bytes:
    try:
        return msgspec.json.encode(value.to_pylist(), enc_hook=str)
    except (ValueError, OverflowError):  # such as invalid UTF-8, or a year after 9999
        return b""


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

    def first_fields(self, enough: Enough = bool) -> Sequence[str] | None:
        """Return the columns, or the fields of the first records; None without a record.

        There are no columns if the first record of JSON is bad, or the header of CSV. Fields of
        JSON are those of as many of the first records as it takes.
        """
        found: dict[str, None] | None = None
        try:
            with Path(self._path).open("rb") as file:
                for records in self._unchecked(file):
                    raws = [raw for raw in records.raws if not is_blank(raw)]
                    for piece in range(0, len(raws), _FIRST):
                        more = self._line_format.first_fields(raws[piece : piece + _FIRST])
                        found = (found or {}) | dict.fromkeys(more)
                        if self._line_format.columns is not None or not found or enough(found):
                            return [*found]
        except RecordError:
            return [*(found or ())]
        return None if found is None else [*found]

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
