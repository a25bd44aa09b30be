"""What connectors exchange: events in batches that know where they came from, rows out.

Governing rule: a position says how far a stream was read or written, in values
that JSON can hold; whoever goes on from the position of a batch neither repeats
a record nor loses one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, cast

import msgspec

from abers import stream
from abers.exceptions import RecordError, StateError
from abers.stream.columns import column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "Bad",
    "BadRecordError",
    "Batch",
    "DeadRecord",
    "Labelled",
    "Origin",
    "Position",
    "Row",
    "Sink",
    "Source",
    "beyond",
    "gathered",
    "require_records",
    "row_of",
]

Position: TypeAlias = dict[str, Any]


class BadRecordError(RecordError):
    """A record is no event.

    Parameters
    ----------
    reason
        A short name, one of a fixed set: what the counters go by.
    detail
        A sentence: what is wrong, and how to mend it.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


class Origin(NamedTuple):
    """Where an event stands in its source, for messages and dead letters.

    Parameters
    ----------
    where
        In words: "scores.jsonl line 17".
    raw
        The text of its record.
    """

    where: str
    raw: str


class Bad(NamedTuple):
    """A record that is no event.

    Parameters
    ----------
    row
        Number of events of the batch before it.
    reason, detail
        Those of the `BadRecordError`.
    origin
        Where it stands, and its text.
    """

    row: int
    reason: str
    detail: str
    origin: Origin


class Labelled(NamedTuple):
    """An observation of a historical stream, whose label is known but not yet out.

    Parameters
    ----------
    observation
        What is to be predicted.
    value
        Its label; nothing may look at it before it is released.
    """

    observation: stream.Observation
    value: Any


Row: TypeAlias = "stream.Event | Labelled"
"""What a record becomes: those of one source are all events, or all labelled observations."""


def gathered(rows: Sequence[Row]) -> stream.Events:
    """Make columns of rows.

    Examples
    --------
    >>> gathered([Labelled(stream.Observation("a", 1, score=0.5), 1)]).awaited
    array([1])
    """
    if not rows or not isinstance(rows[0], Labelled):
        return stream.Events.of(cast("Sequence[stream.Event]", rows))
    observations, values = zip(*cast("Sequence[Labelled]", rows), strict=True)
    return replace(stream.Events.of(observations), awaited=column(values))


def row_of(events: stream.Events) -> Row:
    """Give the row that a single one was gathered of."""
    (event,) = events
    if events.awaited is None:
        return event
    return Labelled(cast("stream.Observation", event), events.awaited.tolist()[0])


@dataclass(frozen=True, slots=True)
class Batch:
    """Some consecutive events of a source.

    Parameters
    ----------
    events
        In the order of the source; of historical observations their labels are `awaited`.
    bad
        The records among them that are no events, in order.
    position
        Where the source goes on after them.
    records
        How many records were read for them; blank lines are none.
    origin
        Tells where the event of a row stands. It keeps the texts of the batch alive.
    """

    events: stream.Events
    bad: Sequence[Bad]
    position: Position
    records: int
    origin: Callable[[int], Origin]


class Source(Protocol):
    """A stream of events."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Give the batches after a position, or all of them, or raise a RecordError."""
        ...

    def fraction(self) -> float | None:
        """Say how much has been read, from 0 to 1, or None if that cannot be known."""
        ...


def beyond(at: Position | None, known: Position | None) -> Position | None:
    """Give a place to go on from, at which a source also has what was read behind it before.

    A source that is read again from an earlier place compares what lies between, if its positions
    tell what was read.

    Parameters
    ----------
    at
        Where to go on.
    known
        A later position of the same source, up to which it was read.
    """
    tells = known is not None and not known.keys().isdisjoint({"digest", "known"})
    return {**(at or {}), "ahead": known} if tells else at


def require_records(name: str, there: int, before: int) -> None:
    """Refuse, with a StateError, an input that has fewer records than were read of it before."""
    if there < before:
        msg = (
            f"input {name} has {there} records, but {before} were read before; put back what is "
            "missing, or remove state and outputs to start anew"
        )
        raise StateError(msg)


class Sink(Protocol):
    """Where predictions, outcomes or dead letters go."""

    def write(self, rows: Sequence[msgspec.Struct]) -> None:
        """Take some rows, of the one type that the sink was made for."""
        ...

    def commit(self) -> Position | None:
        """Make all that was written durable, and say how much that is; None if nothing is."""
        ...

    def close(self) -> None:
        """Commit, and take no more."""
        ...

    def discard(self) -> None:
        """Take no more, and leave nothing that was not committed, as far as that can be."""
        ...


class DeadRecord(msgspec.Struct, frozen=True, gc=False):
    """A line of the dead letters: a record that changed nothing.

    Parameters
    ----------
    reason, detail
        Why, as a short name and as a sentence that says how to mend it.
    where, raw
        Those of its origin.
    """

    reason: str
    detail: str
    where: str
    raw: str
