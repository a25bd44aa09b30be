"""Merge of the records of several inputs by their timestamps.

The earliest of the next records is applied first, and of two records of the same time that of the
later input: a label before an observation. So nothing is applied before the next record of each
input is known. An input without a next record is skipped only when it is known to have ended, or
when waiting for it took long enough.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from abers_connectors.runtime.transport import sizes_of

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
    read_at: Sequence[int] | None = None  # offsets in the routed topic, of records from there

    def __add__(self, more: MergedRecords) -> MergedRecords:  # type: ignore[override]
        """Append other records."""
        return MergedRecords(
            self.records + more.records, self.inputs + more.inputs, self.size + more.size
        )


class TimestampMerge:
    """Records of several inputs that were read and not yet applied.

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
        self.inputs = inputs
        self._queues: list[list[Record]] = [[] for _ in range(inputs)]
        self._sizes: list[list[int]] = [[] for _ in range(inputs)]
        self._times: list[list[int]] = [[] for _ in range(inputs)]
        self._total = [0] * inputs  # of the sizes

    def add(self, which: int, records: Sequence[Record]) -> None:
        """Add records of an input."""
        self._queues[which] += records
        sizes = sizes_of(records)
        self._sizes[which] += sizes
        self._total[which] += sum(sizes)
        self._times[which] += [one.timestamp for one in records]

    def queued(self, which: int) -> tuple[int, int]:
        """Return the number of queued records of an input, and their size."""
        return len(self._queues[which]), self._total[which]

    def missing(self) -> int | None:
        """Return an input that the records of others wait for, or None."""
        filled = [*map(bool, self._queues)]
        return filled.index(False) if any(filled) and not all(filled) else None

    def head(self, ended: Sequence[bool]) -> int | None:
        """Return the timestamp of the next record; None while it is unknown."""
        known = all(one or times for one, times in zip(ended, self._times, strict=True))
        return min((times[0] for times in self._times if times), default=None) if known else None

    def take(
        self,
        max_records: int,
        max_bytes: int,
        ended: Sequence[bool],
        until: float = math.inf,
    ) -> MergedRecords:
        """Remove and return the next records; `ended` are the inputs to skip without a record.

        None of several inputs is later than `until`. One record is always returned, even if its
        size is more than `max_bytes`.
        """
        order = self._order(max_records, ended, until)
        sizes = [*map(iter, self._sizes)]
        total = [*accumulate(next(sizes[which]) for which in order)]
        del order[bisect_left(total, max_bytes) + 1 :]
        queues = [*map(iter, self._queues)]
        records = [next(queues[which]) for which in order]
        for which in {*order}:
            count = order.count(which)
            self._total[which] -= sum(self._sizes[which][:count])
            for column in (self._queues, self._sizes, self._times):
                del column[which][:count]
        return MergedRecords(records, order, total[len(order) - 1] if order else 0)

    def _order(self, max_records: int, ended: Sequence[bool], until: float) -> list[int]:
        """Return the inputs of the next records, in order."""
        if len(self._queues) == 1:
            return [OBSERVATIONS] * min(max_records, len(self._queues[0]))
        if self.missing() is None and not self._queues[0]:
            return []
        # The first of the queues goes in order of the latest time so far: what is earlier than a
        # record before it follows that at once. Later inputs come first where times are equal.
        inputs = [*reversed(range(len(self._queues)))]
        most = max(1, 2 * max_records // len(inputs))  # of an input, however unequal they are
        times = [
            np.maximum.accumulate(np.array(self._times[one][:most], np.int64)) for one in inputs
        ]
        ends = np.cumsum([*map(len, times)])
        latest = np.concatenate(times)
        rows = np.argsort(latest, kind="stable")
        places = np.empty(len(rows), np.int64)
        places[rows] = np.arange(len(rows))
        certain = max_records  # records before which nothing can come that is not known
        for one, part, end in zip(inputs, times, ends.tolist(), strict=True):
            if not ended[one] or len(part) < len(self._times[one]):
                certain = min(certain, int(places[end - 1]) + 1 if len(part) else 0)
        if until < math.inf:
            certain = min(certain, int(np.count_nonzero(latest <= until)))
        found: list[int] = np.repeat(inputs, [*map(len, times)])[rows[:certain]].tolist()
        return found
