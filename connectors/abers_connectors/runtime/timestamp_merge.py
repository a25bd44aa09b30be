"""Merge of a task's two inputs by the timestamps of their records.

The earlier of the next two records is applied first, and of two records of the same time the label.
So nothing is applied before the next record of both inputs is known. An input without a next
record is skipped only when it is known to have ended, or when waiting for it took long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from abers_connectors.runtime.transport import size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.runtime.transport import Record

__all__ = ["LABELS", "OBSERVATIONS", "MergedRecords", "TimestampMerge"]

OBSERVATIONS, LABELS = 0, 1
"""Numbers of the inputs. An input that holds both counts as observations."""


class MergedRecords(NamedTuple):
    """Records in the order in which they are applied."""

    records: list[Record]
    inputs: list[int]  # input of each record
    size: int = 0  # as by `transport.size_of`

    def __add__(self, more: MergedRecords) -> MergedRecords:  # type: ignore[override]
        """Append other records."""
        return MergedRecords(
            self.records + more.records, self.inputs + more.inputs, self.size + more.size
        )


class TimestampMerge:
    """Records of a task's one or two inputs that were read and not yet applied.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def record(name, timestamp):
    ...     return SimpleNamespace(
    ...         name=name, timestamp=timestamp, key=None, value=b"", headers=[]
    ...     )
    >>> merge = TimestampMerge(2)
    >>> merge.add(OBSERVATIONS, [record("a", 5), record("b", 9)])
    >>> merge.add(LABELS, [record("label of a", 5)])
    >>> [one.name for one in merge.take(10, 1000, [False, False]).records]
    ['label of a']
    >>> [one.name for one in merge.take(10, 1000, [False, True]).records]
    ['a', 'b']
    """

    def __init__(self, inputs: int) -> None:
        self._queues: list[list[Record]] = [[] for _ in range(inputs)]
        self._sizes: list[list[int]] = [[] for _ in range(inputs)]

    def add(self, which: int, records: Sequence[Record]) -> None:
        """Add records of an input."""
        self._queues[which] += records
        self._sizes[which] += map(size_of, records)

    def queued(self, which: int) -> tuple[int, int]:
        """Return the number of queued records of an input, and their size."""
        return len(self._queues[which]), sum(self._sizes[which])

    def missing(self) -> int | None:
        """Return the input that the records of the other wait for, or None."""
        filled = [*map(bool, self._queues)]
        return filled.index(False) if any(filled) and not all(filled) else None

    def take(self, max_records: int, max_bytes: int, ended: Sequence[bool]) -> MergedRecords:
        """Remove and return the next records; `ended` are the inputs to skip without a record.

        One record is always returned, even if its size is more than `max_bytes`.
        """
        merged, taken, size = MergedRecords([], []), [0] * len(self._queues), 0
        for which in self._order(max_records, ended):
            if size >= max_bytes:
                break
            at = taken[which]
            merged.records.append(self._queues[which][at])
            merged.inputs.append(which)
            size += self._sizes[which][at]
            taken[which] = at + 1
        for which, count in enumerate(taken):
            del self._queues[which][:count], self._sizes[which][:count]
        return merged._replace(size=size)

    def _order(self, max_records: int, ended: Sequence[bool]) -> list[int]:
        """Return the inputs of the next records, in order."""
        if len(self._queues) == 1:
            return [OBSERVATIONS] * min(max_records, len(self._queues[0]))
        observations, labels = self._queues
        order: list[int] = []
        row = label_row = 0
        row_end, label_end = len(observations), len(labels)
        while len(order) < max_records and row < row_end and label_row < label_end:
            if labels[label_row].timestamp <= observations[row].timestamp:
                order.append(LABELS)
                label_row += 1
            else:
                order.append(OBSERVATIONS)
                row += 1
        if label_row == label_end and ended[LABELS]:
            order += [OBSERVATIONS] * (row_end - row)
        elif row == row_end and ended[OBSERVATIONS]:
            order += [LABELS] * (label_end - label_row)
        return order[:max_records]
