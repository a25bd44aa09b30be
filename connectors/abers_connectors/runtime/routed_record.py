"""Records of the routed topic, which are seen as the records of the inputs that they come from.

The router writes a record as it is, with one more header, its origin. So each message and each
output of a task names the record of the input. The positions of a task are those of the routed
topic.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from abers_connectors.runtime.transport import BadHeaders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.runtime.timestamp_merge import MergedRecords
    from abers_connectors.runtime.transport import Headers, Record

__all__ = ["ORIGIN", "Beginning", "RoutedOrigin", "RoutedRecord", "origins"]

ORIGIN = "abers.origin"
"""The last header of a routed record."""

_ORIGIN, _SIZE = struct.Struct(">BIqq"), struct.Struct(">I")
_PREVIEW = 1_000  # bytes of a value that is too large to be routed
_LABELS, _UNREAD, _BAD_HEADERS, _LOOKED_UP = 1, 2, 4, 8  # bits of the first byte


class RoutedOrigin(NamedTuple):
    """Where a routed record comes from.

    Examples
    --------
    >>> origin = RoutedOrigin(1, 3, 17, 1_700_000_000_000)
    >>> RoutedOrigin.decoded(origin.encoded()) == origin
    True
    """

    which: int  # input: 0 for observations, 1 for labels
    partition: int
    offset: int
    timestamp: int
    unread: bool = False  # the router could not read its model
    bad_headers: bool = False  # its headers could not be decoded, and are lost
    whole: int = 0  # its bytes, if it is too large to be routed: then only its beginning is there
    looked_up: bool = False  # the header before this says what the router found of its id

    def encoded(self) -> bytes:
        """Return the value of the header."""
        which, partition, offset, timestamp, unread, bad_headers, whole, looked_up = self
        bits = which | _UNREAD * unread | _BAD_HEADERS * bad_headers | _LOOKED_UP * looked_up
        size = _SIZE.pack(whole) if whole else b""
        return _ORIGIN.pack(bits, partition, offset, timestamp) + size

    @classmethod
    def decoded(cls, value: bytes | None) -> RoutedOrigin | None:
        """Return the origin in a header; None if it has the wrong size."""
        size = 0 if value is None else len(value)
        if value is None or size not in {_ORIGIN.size, _ORIGIN.size + _SIZE.size}:
            return None
        bits, partition, offset, timestamp = _ORIGIN.unpack_from(value)
        whole = _SIZE.unpack_from(value, _ORIGIN.size)[0] if size > _ORIGIN.size else 0
        return cls(
            bits & _LABELS,
            partition,
            offset,
            timestamp,
            bool(bits & _UNREAD),
            bool(bits & _BAD_HEADERS),
            whole,
            bool(bits & _LOOKED_UP),
        )


def encoded_origins(
    records: Sequence[Record], inputs: Sequence[int], found: Sequence[object] = ()
) -> list[bytes]:
    """Return `RoutedOrigin.encoded` of records with readable models, faster.

    Of each record `found` has the header with what was found of its id, or None.
    """
    bits = inputs
    if any(found):
        bits = [
            which if one is None else which | _LOOKED_UP
            for which, one in zip(inputs, found, strict=True)
        ]
    return [
        _ORIGIN.pack(which, one.partition, one.offset, one.timestamp)
        for which, one in zip(bits, records, strict=True)
    ]


class RoutedRecord(msgspec.Struct, gc=False):
    """A `runtime.transport.Record` of an input, which a router has routed, without its headers."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    unread: bool  # the router could not read its model
    whole: int  # its bytes, if it was too large to be routed
    found: Headers = ()  # the header with what the router found of its id, if it looked that up

    @classmethod
    def of(cls, record: Record, origin: RoutedOrigin, topic: str) -> RoutedRecord:
        """Return a record of the routed topic as that of the topic that it comes from."""
        own = -1 - origin.looked_up  # headers of the router
        headers: Headers = BadHeaders() if origin.bad_headers else record.headers[:own]
        return cls(
            topic,
            origin.partition,
            origin.offset,
            origin.timestamp,
            record.key,
            record.value,
            headers,
            origin.unread,
            origin.whole,
            record.headers[own:-1],
        )


class Beginning(NamedTuple):
    """What is routed of a record that is too large: a `runtime.transport.Record`."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    value: bytes
    whole: int  # bytes of the record
    key: None = None
    headers: Headers = ()

    @classmethod
    def of(cls, record: Record, whole: int) -> Beginning:
        """Return the beginning of a record with so many bytes."""
        value = (record.value or b"")[:_PREVIEW]
        place = record.topic, record.partition, record.offset
        return cls(*place, record.timestamp, value, whole)


def origins(merged: MergedRecords, topics: Sequence[str]) -> MergedRecords:
    """Return records of the routed topic as those of the inputs, which have these names.

    A record that no router wrote stays as it is. All keep their offsets in the routed topic.
    """
    records: list[Record] = []
    inputs: list[int] = []
    for one in merged.records:
        origin = _origin(one.headers)
        if origin is None:
            records.append(one)
            inputs.append(0)
            continue
        records.append(RoutedRecord.of(one, origin, topics[origin.which]))
        inputs.append(origin.which)
    read_at = [one.offset for one in merged.records]
    return merged._replace(records=records, inputs=inputs, read_at=read_at)


def _origin(headers: Headers) -> RoutedOrigin | None:
    if not headers:
        return None
    name, value = headers[-1]
    return RoutedOrigin.decoded(value) if name == ORIGIN else None
