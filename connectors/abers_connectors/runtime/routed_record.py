"""Records of the routed topic, which are seen as the records of the inputs that they come from.

The router writes a record as it is, with one more header, its origin. So whatever a task says or
writes about a record names the record of the input. The positions of a task are those of the routed
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

__all__ = ["ORIGIN", "RoutedOrigin", "RoutedRecord", "origins"]

ORIGIN = "abers.origin"
"""The last header of a routed record."""

_ORIGIN = struct.Struct(">BIqq")
_LABELS, _UNREAD, _BAD_HEADERS = 1, 2, 4  # bits of the first byte


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

    def encoded(self) -> bytes:
        """Return the value of the header."""
        which, partition, offset, timestamp, unread, bad_headers = self
        bits = which | _UNREAD * unread | _BAD_HEADERS * bad_headers
        return _ORIGIN.pack(bits, partition, offset, timestamp)

    @classmethod
    def decoded(cls, value: bytes) -> RoutedOrigin:
        """Return the origin in a header, which has the right size."""
        bits, partition, offset, timestamp = _ORIGIN.unpack(value)
        return cls(
            bits & _LABELS,
            partition,
            offset,
            timestamp,
            bool(bits & _UNREAD),
            bool(bits & _BAD_HEADERS),
        )


def encoded_origins(records: Sequence[Record], inputs: Sequence[int]) -> list[bytes]:
    """Return `RoutedOrigin.encoded` of records with readable models, faster."""
    return [
        _ORIGIN.pack(which, one.partition, one.offset, one.timestamp)
        for which, one in zip(inputs, records, strict=True)
    ]


class RoutedRecord(msgspec.Struct, gc=False):
    """A `runtime.transport.Record` of an input, which a router has routed."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    unread: bool  # the router could not read its model


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
        which, partition, offset, timestamp, unread, bad_headers = origin
        headers: Headers = BadHeaders() if bad_headers else one.headers[:-1]
        records.append(
            RoutedRecord(
                topics[which], partition, offset, timestamp, one.key, one.value, headers, unread
            )
        )
        inputs.append(which)
    read_at = [one.offset for one in merged.records]
    return merged._replace(records=records, inputs=inputs, read_at=read_at)


def _origin(headers: Headers) -> RoutedOrigin | None:
    if not headers:
        return None
    name, value = headers[-1]
    if name != ORIGIN or value is None or len(value) != _ORIGIN.size:
        return None
    return RoutedOrigin.decoded(value)
