"""What topics held when somebody looked, read once from the outside.

Governing rule: nothing here is a member of a group or commits anything, so no
live service notices; what is read ends where the topics ended at the start, and
comes in the one order that the times of the records tell, however it arrives.
"""

from __future__ import annotations

import heapq
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import BrokerError, ParameterError
from abers_connectors.kafka.client_settings import reaching
from abers_connectors.kafka.merging import Merge
from abers_connectors.kafka.transport import Partition

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.kafka.transport import Record

__all__ = ["History", "Moment", "Read", "Span"]

_LOOK = 200  # ms of one look at what has come
_HELD = 10_000  # records that may wait of a partition before it is paused
_BYTES = 32 << 20  # or so many bytes
_TOGETHER = 500  # records that a shard gives at once


class Moment(NamedTuple):
    """A place in topics: a time in milliseconds, or an offset of every partition."""

    time: int | None = None
    offset: int | None = None


class Span(NamedTuple):
    """A part of a partition: from one offset to before another."""

    start: int
    end: int


class Read(NamedTuple):
    """A record, with the number of its shard and of its input."""

    shard: int
    which: int
    record: Record


class History:
    """Topics whose partitions of one number belong together.

    Parameters
    ----------
    topics
        One or two, of equally many partitions: observations, labels.
    settings
        Of the client: brokers and security.
    patience
        Seconds that a broker may be silent.

    Attributes
    ----------
    shards
        How many partitions each topic has.
    """

    def __init__(
        self, topics: Sequence[str], settings: Mapping[str, Any], *, patience: float
    ) -> None:
        self._topics, self._settings, self._patience = topics, settings, patience
        with reaching(settings):
            from kafka import KafkaConsumer  # noqa: PLC0415 - an extra

            self._consumer = KafkaConsumer(
                **settings,
                group_id=None,
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="none",
                allow_auto_create_topics=False,
                max_partition_fetch_bytes=8 << 20,
                bootstrap_timeout_ms=int(1000 * patience),
                metrics_enabled=False,
            )
        try:
            self.shards = self._shards()
        except BaseException:
            self.close()
            raise

    def _shards(self) -> int:
        counts = {topic: self._count(topic) for topic in self._topics}
        if len({*counts.values()}) > 1:
            told = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
            msg = f"both inputs need as many partitions ({told}); a label would miss its own"
            raise ParameterError(msg)
        return counts[self._topics[0]]

    def _count(self, topic: str) -> int:
        with self._asking():
            found = self._consumer.partitions_for_topic(topic)
        if not found:
            msg = f"there is no topic {topic}, or it is not allowed to read it"
            raise ParameterError(msg)
        return len(found)

    def part(
        self, since: Moment | None = None, until: Moment | None = None
    ) -> dict[Partition, Span]:
        """Find the offsets of a part of history.

        Parameters
        ----------
        since, until
            From the first record of such a time, to before the first record of such a time; None
            for all there is. What is behind an open transaction is not there yet.

        Returns
        -------
        dict
            A span for each partition, in the order of the shards; it may be empty.
        """
        parts = [
            Partition(topic, number) for number in range(self.shards) for topic in self._topics
        ]
        with self._asking():
            starts = self._consumer.beginning_offsets([_known(one) for one in parts])
            ends = self._consumer.end_offsets([_known(one) for one in parts])
        first, last = self._places(parts, since), self._places(parts, until)
        spans = {}
        for one in parts:
            start, end = starts[_known(one)], ends[_known(one)]
            begins = start if since is None else min(max(start, first.get(one, end)), end)
            stops = end if until is None else min(max(begins, last.get(one, end)), end)
            spans[one] = Span(begins, stops)
        return spans

    def _places(self, parts: Sequence[Partition], moment: Moment | None) -> dict[Partition, int]:
        """Give the offsets of a moment, where there are any."""
        if moment is None or moment.time is None:
            offset = None if moment is None else moment.offset
            return {} if offset is None else dict.fromkeys(parts, offset)
        with self._asking():
            found = self._consumer.offsets_for_times({_known(one): moment.time for one in parts})
        return {one: at.offset for one in parts if (at := found[_known(one)]) is not None}

    def read(self, spans: Mapping[Partition, Span]) -> Iterator[Read]:
        """Read parts of partitions.

        Parameters
        ----------
        spans
            Of all partitions.

        Yields
        ------
        Read
            The records of each shard in the order in which a live service would apply them that
            has all of them at hand, and the shards by the time of their records.

        Raises
        ------
        BrokerError
            If nothing comes any more although there is something.
        """
        reading = _Reading(self._consumer, self._topics, spans, self._patience)
        with self._asking():
            shards = [reading.shard(number) for number in range(self.shards)]
            yield from shards[0] if len(shards) == 1 else heapq.merge(*shards, key=_time)

    def close(self) -> None:
        """Read no more."""
        self._consumer.close(autocommit=False)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with reaching(self._settings):
            yield


class _Reading:
    """Reads spans, holding back the partitions that are ahead of the others."""

    def __init__(
        self,
        consumer: Any,  # noqa: ANN401 - the client has no types
        topics: Sequence[str],
        spans: Mapping[Partition, Span],
        patience: float,
    ) -> None:
        self._consumer, self._topics, self._patience = consumer, topics, patience
        self._left = {one: span for one, span in spans.items() if span.start < span.end}
        self._merges = {one.number: Merge(len(topics)) for one in spans}
        self._moved = time.monotonic()
        consumer.assign([_known(one) for one in self._left])
        for one, span in self._left.items():
            consumer.seek(_known(one), span.start)

    def shard(self, number: int) -> Iterator[Read]:
        """Read the partitions of one number."""
        merge, parts = self._merges[number], [Partition(topic, number) for topic in self._topics]
        while True:
            ended = [one not in self._left for one in parts]
            taken = merge.take(_TOGETHER, _BYTES, ended)
            for record, which in zip(taken.records, taken.inputs, strict=True):
                yield Read(number, which, record)
            if not taken.records:
                if all(ended):
                    return
                self._look()

    def _look(self) -> None:
        """Take what has come."""
        self._hold_back()
        found = self._consumer.poll(_LOOK)
        for one, records in found.items():
            part = Partition(*one)
            end = self._left[part].end
            which = self._topics.index(part.topic)
            self._merges[part.number].add(which, [r for r in records if r.offset < end])
        before = len(self._left), sum(span.start for span in self._left.values())
        for part, span in [*self._left.items()]:
            # Behind the last record there may be marks of transactions, which are none.
            position = self._consumer.position(_known(part))
            self._left[part] = Span(position, span.end)
            if position >= span.end:
                del self._left[part]
        if found or before != (len(self._left), sum(one.start for one in self._left.values())):
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > self._patience:
            part, span = next(iter(self._left.items()))
            msg = (
                f"{part.topic}[{part.number}]@{span.start}: nothing more comes, although there "
                f"are records before @{span.end}; see whether the brokers are well"
            )
            raise BrokerError(msg)

    def _hold_back(self) -> None:
        """Pause what is far ahead or ended, so that what the others wait for comes."""
        full: list[Any] = []
        wanted: list[Any] = []
        for one in map(_partition, self._consumer.assignment()):
            count, size = self._merges[one.number].held(self._topics.index(one.topic))
            held = one not in self._left or count > _HELD or size > _BYTES
            (full if held else wanted).append(_known(one))
        self._consumer.pause(*full)
        self._consumer.resume(*wanted)


def _time(read: Read) -> int:
    return read.record.timestamp


def _known(partition: Partition) -> Any:  # noqa: ANN401 - the client has no types
    from kafka import TopicPartition  # noqa: PLC0415 - an extra

    return TopicPartition(*partition)


def _partition(known: Any) -> Partition:  # noqa: ANN401
    return Partition(*known)
