"""The contract of a source.

A source yields batches of events. A batch has a position, in values that JSON can hold: a source
that continues from the position of a batch neither repeats nor loses a record. Bad records do not
end a stream; the batch reports them with their origin.

A source opens its file or connection when `batches` is iterated, not before, and closes it when
the iterator is exhausted or closed. `sources/registry.py` says how a new source gets its name.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from abers.exceptions import StateError
from abers.stream.cells import Fields
from abers.stream.columns import Schema
from abers.stream.schema_columns import UNLABELLED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from abers.stream import Events
    from abers.stream.cells import BadRecordError
    from abers.stream.columns import Reading
    from abers.stream.schema_columns import Kind, Readers

__all__ = [
    "BadRecord",
    "Batch",
    "Enough",
    "HasFields",
    "Origin",
    "Position",
    "Source",
    "SourceOptions",
    "batch_of",
    "require_records",
    "resume_point",
]

Position: TypeAlias = dict[str, Any]
"""How far a stream is read or written, in values that JSON can hold."""


class Origin(NamedTuple):
    """Where an event comes from, for messages and dead letters."""

    where: str  # such as "scores.jsonl line 17"
    raw: str  # text of the record


class BadRecord(NamedTuple):
    """A record that cannot become an event, with what its `BadRecordError` says."""

    row: int  # number of events of the batch before it
    reason: str
    detail: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive events of a source, in its order."""

    events: Events  # the labels of historical observations are `awaited`, None if not known yet
    bad: Sequence[BadRecord]  # those among the events, in order
    position: Position  # after the batch
    records: int  # number of records read for the batch, without blank lines
    origin: Callable[[int], Origin]  # of the event of a row; it keeps the texts in memory
    unlabelled: int = 0  # records without a label so far: observations, or records of labels


class Source(Protocol):
    """A stream of events."""

    @property
    def name(self) -> str:
        """Name for messages."""
        ...

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Yield the batches after a position, by default all; raise a RecordError if it cannot."""
        ...

    def fraction(self) -> float | None:
        """Return the share of the stream that has been read, from 0 to 1; None if unknown."""
        ...


Enough: TypeAlias = "Callable[[Collection[str]], bool]"
"""Whether some fields are all that a reader asks for."""


@runtime_checkable
class HasFields(Protocol):
    """A source with first records that can be read before its schema is known."""

    def first_fields(self, enough: Enough = bool) -> Sequence[str] | None:
        """Return the fields of the first records: none if they are bad; None without a record.

        Where each record has fields of its own, records are read until those found are enough.
        """
        ...


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """How the records of a source become events."""

    fields: Fields = Fields()  # noqa: RUF009 - immutable
    kind: Kind = "mixed"
    readers: Readers | None = None  # by default those of a binary task
    format: str | None = None  # "csv", "jsonl" or "parquet", if the name of a file does not say it
    max_record_bytes: int = 1 << 20  # a larger record is bad; in Parquet, the columns that are read
    growing: bool = False  # whether an incomplete last line is left for the next run
    delimiter: str | None = None  # between fields of CSV; by default the one of the first line
    decimal: str = "."  # before the decimals of numbers in CSV

    def schema(self, *, text: bool = False) -> Schema:
        """Return the schema of the records; `text` says that all cells are text, as in CSV."""
        return Schema(self.fields, self.readers, self.kind, text=text)


def batch_of(
    reading: Reading,
    rows: Sequence[int],
    broken: Mapping[int, BadRecordError],
    origin: Callable[[int], Origin],
    position: Position,
) -> Batch:
    """Return the batch of some records that were decoded, and others that are broken.

    Parameters
    ----------
    reading
        What the decoded records become.
    rows
        Their rows among all records.
    broken
        Why the other records could not be decoded, by row.
    origin
        Origin of the record of a row.
    position
        The position after them.
    """
    count = len(rows) + len(broken)
    if len(reading.events) == count:
        return Batch(reading.events, (), position, count, origin)
    good = [rows[row] for row in reading.rows.tolist()]
    reasons = {row: (error.reason, error.said(reading.front)) for row, error in broken.items()}
    refused = [one for one in reading.refused if one.reason != UNLABELLED]
    reasons |= {rows[row]: (reason, detail) for row, reason, detail in refused}
    bad = [
        BadRecord(bisect(good, row), *reason, origin(row))
        for row, reason in sorted(reasons.items())
    ]
    unlabelled = len(reading.refused) - len(refused)
    return Batch(reading.events, bad, position, count, lambda row: origin(good[row]), unlabelled)


def resume_point(at: Position | None, known: Position | None) -> Position | None:
    """Return a position to continue from, with a later position up to which the source was read.

    A source that is read again from an earlier position compares what lies between with what it
    read before, if its positions have a digest.
    """
    comparable = known is not None and not known.keys().isdisjoint({"digest", "known"})
    return {**(at or {}), "ahead": known} if comparable else at


def require_records(name: str, count: int, before: int) -> None:
    """Raise a StateError for an input that has fewer records than were read of it before."""
    if count < before:
        msg = (
            f"input {name} has {count} records, but {before} were read before; put back what is "
            "missing, or remove state and outputs to start anew"
        )
        raise StateError(msg)
