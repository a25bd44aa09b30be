"""Labels that do not meet their observations, told in time.

Governing rule: a label that is early meets its observation soon, so the number of
those that wait stays what it is; where it grows with the labels that come, they
lie in other partitions than their observations, and nothing else would say so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.stream import Processor

__all__ = ["Unmatched"]

_LEAST = 1_000  # labels that tell
_SHARE = 0.2


class _Shard(Protocol):
    @property
    def place(self) -> _Place: ...
    @property
    def processor(self) -> Processor: ...


class _Place(Protocol):
    @property
    def partition(self) -> int: ...


class _Sums(NamedTuple):
    """Of all shards: the labels that came, those without observation, and the event time."""

    shards: frozenset[int]
    labels: int
    alone: int
    clock: int


class Unmatched:
    """Looks at shards now and then.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from abers.stream import Label, Processor
    >>> shard = SimpleNamespace(place=SimpleNamespace(partition=0), processor=Processor())
    >>> unmatched = Unmatched()
    >>> unmatched.look([shard], 0.0)
    >>> _ = shard.processor.process_many([Label(f"a{n}", n, value=1) for n in range(1000)])
    >>> unmatched.look([shard], 0.0)[:42]
    '1,000 of the last 1,000 labels have met no'
    """

    def __init__(self) -> None:
        self._before: _Sums | None = None
        self._told = False

    def look(self, shards: Iterable[_Shard], delay: float) -> str | None:
        """Say whether too many labels stay without observation.

        Parameters
        ----------
        shards
            All that the process has.
        delay
            How much later than its observation a label usually is, in seconds of event time:
            what came within less tells nothing.

        Returns
        -------
        str or None
            A sentence, if over a fifth of at least 1,000 labels do; it is said once.
        """
        now, before = _sums(shards), self._before
        if before is None or before.shards != now.shards or now.labels < before.labels:
            self._before = now
            return None
        came, alone = now.labels - before.labels, now.alone - before.alone
        if came < _LEAST or now.clock - before.clock < delay * 1000:
            return None
        self._before = now
        if self._told or alone <= _SHARE * came:
            return None
        self._told = True
        return _worded(came, alone)


def _sums(shards: Iterable[_Shard]) -> _Sums:
    labels = alone = clock = 0
    numbers = set()
    for shard in shards:
        counters = shard.processor.counters
        labels += counters["labels_in"]
        alone += counters["unknown_labels"] + shard.processor.waiting[1]
        clock = max(clock, shard.processor.clock or 0)
        numbers.add(shard.place.partition)
    return _Sums(frozenset(numbers), labels, alone, clock)


def _worded(came: int, alone: int) -> str:
    return (
        f"{alone:,} of the last {came:,} labels have met no observation. Unless those are of "
        "observations from before the start, labels lie in other partitions than their "
        "observations: by another key, or by another partitioner (librdkafka's default is CRC32, "
        "Java's is murmur2); `abers check --connect` compares them"
    )
