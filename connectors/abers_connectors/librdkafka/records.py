"""Records as the runtime reads them: with attributes, where librdkafka's messages have methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from confluent_kafka import Message

__all__ = ["FetchedRecord", "records_of", "size_of"]


_OVERHEAD = 300  # bytes of a record besides its key and value


class FetchedRecord(msgspec.Struct, gc=False):
    """A `runtime.transport.Record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]


def records_of(messages: Iterable[Message]) -> list[FetchedRecord]:
    """Return the records of messages without an error.

    Copying the parts costs less than calling the message for each of them where it is used.
    """
    return [
        FetchedRecord(
            one.topic(),  # type: ignore[arg-type] # a message without an error has a place
            one.partition(),  # type: ignore[arg-type]
            one.offset(),  # type: ignore[arg-type]
            one.timestamp()[1],
            one.key(),
            one.value(),
            one.headers() or (),  # type: ignore[arg-type] # as they were read
        )
        for one in messages
    ]


def size_of(record: FetchedRecord) -> int:
    """Return about how many bytes of memory a record takes."""
    return _OVERHEAD + len(record.key or b"") + len(record.value or b"")
