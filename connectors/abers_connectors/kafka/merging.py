"""The two inputs of a shard as one, by the time of their records.

Governing rule: of the next records of both inputs the earlier one is applied
first, at the same time the label, so nothing is applied before both are known;
an input of which nothing is there is passed over only when it is known to be at
its end, or when waiting for it has taken long enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from abers_connectors.kafka.transport import Record

__all__ = ["LABELS", "OBSERVATIONS", "Merge", "Taken", "size_of"]

OBSERVATIONS, LABELS = 0, 1
"""The inputs. One that holds both counts as the first."""


class Taken(NamedTuple):
    """Records in the order in which they are applied, and the input of each."""

    records: list[Record]
    inputs: list[int]


class Merge:
    """What was read of the inputs of a shard and is not yet applied.

    Parameters
    ----------
    inputs
        How many there are: 1 or 2.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> def record(name, timestamp):
    ...     return SimpleNamespace(name=name, timestamp=timestamp, key=None, value=b"")
    >>> merge = Merge(2)
    >>> merge.add(OBSERVATIONS, [record("seen", 5), record("seen later", 9)])
    >>> merge.add(LABELS, [record("told", 5)])
    >>> [one.name for one in merge.take(10, 1000, [False, False]).records]
    ['told']
    >>> [one.name for one in merge.take(10, 1000, [False, True]).records]
    ['seen', 'seen later']
    """

    def __init__(self, inputs: int) -> None:
        self._waiting: list[list[Record]] = [[] for _ in range(inputs)]
        self._next = [0] * inputs
        self._bytes = [0] * inputs

    def add(self, which: int, records: Sequence[Record]) -> None:
        """Take what was read of an input."""
        self._waiting[which] += records
        self._bytes[which] += sum(map(size_of, records))

    def held(self, which: int) -> tuple[int, int]:
        """Count the records of an input, and their bytes."""
        return len(self._waiting[which]) - self._next[which], self._bytes[which]

    def lacking(self) -> int | None:
        """Name the input that the records of the other wait for; None if there is none such."""
        there = [self.held(which)[0] > 0 for which in range(len(self._waiting))]
        return there.index(False) if any(there) and not all(there) else None

    def take(self, most: int, most_bytes: int, ended: Sequence[bool]) -> Taken:
        """Take the next records.

        Parameters
        ----------
        most, most_bytes
            How many at most, and how many bytes, but for one record, which is always taken.
        ended
            For each input whether it is passed over when nothing of it is there.

        Returns
        -------
        Taken
            They.
        """
        taken = Taken([], [])
        if len(self._waiting) == 1:
            self._take_of(OBSERVATIONS, most, most_bytes, taken)
        else:
            self._take_both(most, most_bytes, ended, taken)
        for which, records in enumerate(self._waiting):
            del records[: self._next[which]]
            self._next[which] = 0
        return taken

    def _take_both(self, most: int, most_bytes: int, ended: Sequence[bool], taken: Taken) -> None:
        seen, told = self._waiting
        while len(taken.records) < most and most_bytes > 0:
            at, label_at = self._next
            if at < len(seen) and label_at < len(told):
                which = int(told[label_at].timestamp <= seen[at].timestamp)
            elif at < len(seen) and ended[LABELS]:
                which = OBSERVATIONS
            elif label_at < len(told) and ended[OBSERVATIONS]:
                which = LABELS
            else:
                return
            most_bytes -= self._one(which, taken)

    def _take_of(self, which: int, most: int, most_bytes: int, taken: Taken) -> None:
        while len(taken.records) < most and most_bytes > 0 and self.held(which)[0]:
            most_bytes -= self._one(which, taken)

    def _one(self, which: int, taken: Taken) -> int:
        record = self._waiting[which][self._next[which]]
        self._next[which] += 1
        size = size_of(record)
        self._bytes[which] -= size
        taken.records.append(record)
        taken.inputs.append(which)
        return size


def size_of(record: Record) -> int:
    """Count the bytes of a record, as far as they matter."""
    return len(record.key or b"") + len(record.value or b"")
