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

__all__ = ["LABELS", "OBSERVATIONS", "Merge", "Taken"]

OBSERVATIONS, LABELS = 0, 1
"""The inputs. One that holds both counts as the first."""


class Taken(NamedTuple):
    """Records in the order in which they are applied, the input of each, and all their bytes."""

    records: list[Record]
    inputs: list[int]
    size: int = 0

    def extended(self, more: Taken) -> Taken:
        """Put others behind them."""
        return Taken(self.records + more.records, self.inputs + more.inputs, self.size + more.size)


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
        self._sizes: list[list[int]] = [[] for _ in range(inputs)]

    def add(self, which: int, records: Sequence[Record]) -> None:
        """Take what was read of an input."""
        self._waiting[which] += records
        self._sizes[which] += [len(one.key or b"") + len(one.value or b"") for one in records]

    def held(self, which: int) -> tuple[int, int]:
        """Count the records of an input, and the bytes of their keys and values."""
        return len(self._waiting[which]), sum(self._sizes[which])

    def lacking(self) -> int | None:
        """Name the input that the records of the other wait for; None if there is none such."""
        there = [*map(bool, self._waiting)]
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
        order = self._order(most, ended)
        taken, places, size = Taken([], []), [0] * len(self._waiting), 0
        for which in order:
            if size >= most_bytes:
                break
            place = places[which]
            taken.records.append(self._waiting[which][place])
            taken.inputs.append(which)
            size += self._sizes[which][place]
            places[which] = place + 1
        for which, place in enumerate(places):
            del self._waiting[which][:place], self._sizes[which][:place]
        return taken._replace(size=size)

    def _order(self, most: int, ended: Sequence[bool]) -> list[int]:
        """Give the inputs of the next records, in their order."""
        if len(self._waiting) == 1:
            return [OBSERVATIONS] * min(most, len(self._waiting[0]))
        seen, told = self._waiting
        order: list[int] = []
        row = label_row = 0
        seen_end, told_end = len(seen), len(told)
        while len(order) < most and row < seen_end and label_row < told_end:
            if told[label_row].timestamp <= seen[row].timestamp:
                order.append(LABELS)
                label_row += 1
            else:
                order.append(OBSERVATIONS)
                row += 1
        if label_row == told_end and ended[LABELS]:
            order += [OBSERVATIONS] * (seen_end - row)
        elif row == seen_end and ended[OBSERVATIONS]:
            order += [LABELS] * (told_end - label_row)
        return order[:most]
