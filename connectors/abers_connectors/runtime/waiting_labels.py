"""The records of labels that wait in the router for their observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import msgspec

from abers_connectors.runtime.transport import sizes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from abers_connectors.runtime.transport import Record

__all__ = ["WaitingLabel", "WaitingLabels"]


class WaitingLabel(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A `runtime.transport.Record` that waits, as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return a record without what its client keeps with it."""
        return cls(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [*record.headers],
        )


class WaitingLabels:
    """Records of labels, by ascending offsets."""

    def __init__(self, labels: Iterable[WaitingLabel] = ()) -> None:
        self._labels: dict[int, WaitingLabel] = {}
        self.bytes = 0
        """Their memory, as by `transport.sizes_of`."""
        for one in labels:
            self.add(one)

    def __len__(self) -> int:
        """Return their number."""
        return len(self._labels)

    def __iter__(self) -> Iterator[int]:
        """Return their offsets."""
        return iter(self._labels)

    def all(self) -> list[WaitingLabel]:
        """Return all of them."""
        return [*self._labels.values()]

    def first(self) -> int | None:
        """Return the offset of the first of them, or None."""
        return next(iter(self._labels), None)

    def add(self, record: Record) -> None:
        """Add the record with the largest offset."""
        label = WaitingLabel.of(record)
        self._labels[label.offset] = label
        self.bytes += sum(sizes_of([label]))

    def pop(self, offset: int) -> WaitingLabel:
        """Remove and return a record."""
        label = self._labels.pop(offset)
        self.bytes -= sum(sizes_of([label]))
        return label
