"""History of topics: the records that they had when it was opened, read from the outside.

It joins no group and commits nothing, so no service notices it. Reading ends where the topics ended
at the start. Records come in the order of their timestamps, however they arrive.
"""

from __future__ import annotations

import heapq
import os
import time
from bisect import bisect
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from abers.exceptions import BrokerError, ParameterError
from abers_connectors.kafka.connection import (
    client_settings,
    connection_errors,
    new_consumer,
    to_client,
)
from abers_connectors.runtime.batches import LABELS, OBSERVATIONS, TimestampMerge
from abers_connectors.runtime.deserializer import Deserializer
from abers_connectors.runtime.reprocessor import HistoryRecord
from abers_connectors.runtime.transport import OffsetRange, TopicPartition
from abers_connectors.sources.base import BadRecord, Batch, Origin
from abers_connectors.sources.line_formats import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers_connectors.config.model import Config
    from abers_connectors.runtime.transport import Record
    from abers_connectors.sources.base import Position

__all__ = ["TimeOrOffset", "TopicHistory", "TopicSample"]

_POLL = 200  # ms
_QUEUED = 10_000  # records that may queue of a partition before it is paused
_QUEUED_BYTES = 32 << 20
_BATCH = 500  # records that are merged at once


class TimeOrOffset(NamedTuple):
    """A time in milliseconds, or an offset of every partition."""

    time: int | None = None
    offset: int | None = None


class TopicHistory:
    """A `runtime.reprocessor.History` of one or two topics: observations, and labels.

    Partitions of the same number belong together. A broker may take `timeout` seconds to answer.
    """

    def __init__(
        self, topics: Sequence[str], settings: Mapping[str, Any], *, timeout: float
    ) -> None:
        self._topics, self._settings, self._timeout = topics, settings, timeout
        with connection_errors(settings):
            self._consumer = new_consumer(
                settings,
                group_id=None,
                max_partition_fetch_bytes=8 << 20,
                bootstrap_timeout_ms=int(1000 * timeout),
            )
        try:
            self.partition_count = self._count_partitions()
        except BaseException:
            self.close()
            raise

    def _count_partitions(self) -> int:
        """Return the number of partitions; raise a ParameterError if the inputs differ in it."""
        counts = {}
        for topic in self._topics:
            with connection_errors(self._settings):
                counts[topic] = len(self._consumer.partitions_for_topic(topic) or ())
            if not counts[topic]:
                msg = f"there is no topic {topic}, or the permission to read it is missing"
                raise ParameterError(msg)
        if len({*counts.values()}) > 1:
            found = ", ".join(f"{topic} has {count}" for topic, count in counts.items())
            msg = (
                f"both inputs need equally many partitions ({found}); a label would miss its "
                "observation"
            )
            raise ParameterError(msg)
        return counts[self._topics[0]]

    def ranges(
        self, since: TimeOrOffset | None = None, until: TimeOrOffset | None = None
    ) -> dict[TopicPartition, OffsetRange]:
        """Return the range of a part of the history in each partition; it may be empty.

        The part is from the first record of `since` to before the first record of `until`. Records
        behind an open transaction do not count.
        """
        partitions = [
            TopicPartition(topic, number)
            for number in range(self.partition_count)
            for topic in self._topics
        ]
        with connection_errors(self._settings):
            starts = self._consumer.beginning_offsets([*map(to_client, partitions)])
            ends = self._consumer.end_offsets([*map(to_client, partitions)])
        first, last = self._offsets(partitions, since), self._offsets(partitions, until)
        found = {}
        for one in partitions:
            start, end = starts[one], ends[one]
            begin = start if since is None else min(max(start, first.get(one, end)), end)
            stop = end if until is None else min(max(begin, last.get(one, end)), end)
            found[one] = OffsetRange(begin, stop)
        return found

    def _offsets(
        self, partitions: Sequence[TopicPartition], bound: TimeOrOffset | None
    ) -> dict[TopicPartition, int]:
        """Return the offset of a bound in each partition that has one."""
        if bound is None:
            return {}
        if bound.offset is not None:
            return dict.fromkeys(partitions, bound.offset)
        with connection_errors(self._settings):
            found = self._consumer.offsets_for_times(
                {to_client(one): bound.time for one in partitions}
            )
        return {one: at.offset for one in partitions if (at := found[one]) is not None}

    def read(self, ranges: Mapping[TopicPartition, OffsetRange]) -> Iterator[HistoryRecord]:
        """Yield the records of ranges of all partitions, merged by timestamp.

        Those of one partition number come in the order in which a service that has all of them
        would process them. Raises a BrokerError if no record arrives although there are some.
        """
        reading = _MergedReading(self._consumer, self._topics, ranges, self._timeout)
        with connection_errors(self._settings):
            parts = [reading.partition(number) for number in range(self.partition_count)]
            yield from heapq.merge(*parts, key=attrgetter("record.timestamp"))

    def close(self) -> None:
        """Close the client."""
        self._consumer.close(autocommit=False)


class _MergedReading:
    """Reads ranges, pausing the partitions that are ahead of the others."""

    def __init__(
        self,
        consumer: Any,  # noqa: ANN401 - the client has no types
        topics: Sequence[str],
        ranges: Mapping[TopicPartition, OffsetRange],
        timeout: float,
    ) -> None:
        self._consumer, self._topics, self._timeout = consumer, topics, timeout
        self._left = {one: part for one, part in ranges.items() if part.start < part.end}
        self._merges = {one.partition: TimestampMerge(len(topics)) for one in ranges}
        self._moved = time.monotonic()
        consumer.assign([*map(to_client, self._left)])
        for one, part in self._left.items():
            consumer.seek(to_client(one), part.start)

    def partition(self, number: int) -> Iterator[HistoryRecord]:
        """Read the partitions of one number."""
        merge = self._merges[number]
        inputs = [TopicPartition(topic, number) for topic in self._topics]
        while True:
            ended = [one not in self._left for one in inputs]
            merged = merge.take(_BATCH, _QUEUED_BYTES, ended)
            for record, which in zip(merged.records, merged.inputs, strict=True):
                yield HistoryRecord(number, which, record)
            if not merged.records:
                if all(ended):
                    return
                self._poll()

    def _poll(self) -> None:
        """Add the records that have arrived."""
        self._pause_or_resume()
        found = self._consumer.poll(_POLL)
        for client, records in found.items():
            one = TopicPartition(*client)
            end = self._left[one].end
            which = self._topics.index(one.topic)
            self._merges[one.partition].add(which, [r for r in records if r.offset < end])
        before = self._left
        # Markers of transactions, which are no records, may follow the last record.
        positions = {one: self._consumer.position(to_client(one)) for one in before}
        self._left = {
            one: OffsetRange(positions[one], part.end)
            for one, part in before.items()
            if positions[one] < part.end
        }
        if found or self._left != before:
            self._moved = time.monotonic()
        elif time.monotonic() - self._moved > self._timeout:
            one, part = next(iter(self._left.items()))
            msg = (
                f"{one.at(part.start)}: no record arrives, although there are records before "
                f"@{part.end}; check the brokers"
            )
            raise BrokerError(msg)

    def _pause_or_resume(self) -> None:
        """Pause what is far ahead or has ended, so that what the others wait for arrives."""
        paused, wanted = list[Any](), list[Any]()
        for client in self._consumer.assignment():
            one = TopicPartition(*client)
            count, size = self._merges[one.partition].queued(self._topics.index(one.topic))
            full = one not in self._left or count > _QUEUED or size > _QUEUED_BYTES
            (paused if full else wanted).append(client)
        self._consumer.pause(*paused)
        self._consumer.resume(*wanted)


_NEWEST = 10_000  # records of all partitions together
_BATCH_RECORDS = 1000


class TopicSample:
    """A `Source` of the newest records of a topic, decoded as in a service, ordered by timestamp.

    They are labels if it is the configuration's topic of labels, and otherwise observations.
    """

    def __init__(self, config: Config, topic: str, environ: Mapping[str, str] = os.environ) -> None:
        if config.kafka is None:
            msg = "to check a topic, name a configuration with a section [kafka]"
            raise ParameterError(msg)
        self.name = topic
        self._config, self._kafka = config, config.kafka
        self._which = LABELS if topic == self._kafka.labels else OBSERVATIONS
        self._environ = environ

    def batches(self, position: Position | None = None) -> Iterator[Batch]:
        """Return the records; the position is ignored."""
        del position
        settings = client_settings(self._kafka, self._environ)
        history = TopicHistory([self.name], settings, timeout=self._kafka.stall_timeout / 1000)
        try:
            deserializer = Deserializer(
                self._config, partitions=history.partition_count, environ=self._environ
            )
            most = -(-_NEWEST // history.partition_count)
            ranges = {
                one: OffsetRange(max(part.start, part.end - most), part.end)
                for one, part in history.ranges().items()
            }
            reads = history.read(ranges)
            while batch := [one.record for one in islice(reads, _BATCH_RECORDS)]:
                yield self._batch(deserializer, batch)
        finally:
            history.close()

    def fraction(self) -> float | None:
        """Return None: the sample is small."""
        return None

    def _batch(self, deserializer: Deserializer, records: Sequence[Record]) -> Batch:
        decoded = deserializer.decode(records, [self._which] * len(records))
        bad = [
            BadRecord(bisect(decoded.rows, row), reason, detail, _origin_of_record(records[row]))
            for row, reason, detail in decoded.dead
        ]
        rows = decoded.rows
        return Batch(
            decoded.events, bad, {}, len(records), lambda n: _origin_of_record(records[rows[n]])
        )


def _origin_of_record(record: Record) -> Origin:
    where = f"{record.topic}[{record.partition}]@{record.offset}"
    return Origin(where, shown(record.value or b""))
