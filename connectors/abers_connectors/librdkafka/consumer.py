"""Member of the consumer group."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from abers.exceptions import BrokerError
from abers_connectors.kafka.membership import remove_member
from abers_connectors.librdkafka.assignment import Assignment
from abers_connectors.librdkafka.client_errors import (
    TRANSIENT,
    translated_error,
    translated_errors,
)
from abers_connectors.librdkafka.records import records_of
from abers_connectors.librdkafka.statistics import ConnectionWatch, Heartbeat
from abers_connectors.runtime.transport import FetchPosition, GroupMembership, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from confluent_kafka import Message

    from abers_connectors.librdkafka.records import FetchedRecord
    from abers_connectors.runtime.transport import Record
    from abers_connectors.runtime.watchdog import Watchdog

__all__ = ["GroupConsumer"]

_HEARTBEAT = 3  # seconds at most until a member hears of a rebalance
_POLL_INTERVAL = 300  # seconds without a poll after which the client leaves the group
_MAX_POLLED = 1_000_000  # messages that the client returns at once

_SETTINGS: dict[str, Any] = {
    "isolation.level": "read_committed",
    # Nothing is committed, and nothing starts anywhere, by itself.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    # The end of a partition counts markers of transactions, which are no messages.
    "enable.partition.eof": True,
    # The only assignor that gives a member the same partitions of both topics.
    "partition.assignment.strategy": "range",
    "fetch.wait.max.ms": 100,  # the longest wait for a resumed partition
    # What is fetched waits in one queue. By default fetching rests for a second when it is full.
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 32 << 10,
    # Small pieces, so that the two inputs come in turns and neither has to be paused: what is
    # fetched of a paused partition is dropped, and fetched again.
    "fetch.message.max.bytes": 1 << 18,
}


class GroupConsumer:
    """A `runtime.transport.Consumer`; see `runtime.transport.Transport.consumer`.

    `settings` are librdkafka's, and `admin_settings` kafka-python's.
    """

    def __init__(  # noqa: PLR0913 - the identity of a member
        self,
        topics: Sequence[str],
        group: str,
        instance: str,
        *,
        session_timeout: float,
        settings: Mapping[str, Any],
        admin_settings: Mapping[str, Any],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog, self._admin_settings = watchdog, admin_settings
        self._group, self._instance = group, instance
        self._session_timeout = session_timeout
        self._assignment, self._heartbeat = Assignment(), Heartbeat()
        heartbeat = int(1000 * min(session_timeout / 4, _HEARTBEAT))
        with watchdog.call("connect"), translated_errors("connecting"):
            self._consumer = Consumer(
                {
                    **settings,
                    **_SETTINGS,
                    "group.id": group,
                    "group.instance.id": instance,
                    "session.timeout.ms": int(1000 * session_timeout),
                    "heartbeat.interval.ms": heartbeat,
                    "max.poll.interval.ms": int(1000 * max(session_timeout, _POLL_INTERVAL)),
                    "statistics.interval.ms": heartbeat // 2,
                    "stats_cb": self._heartbeat.take,
                },
                logger=ConnectionWatch(),
            )
            self._consumer.subscribe(
                [*topics],
                on_assign=self._assignment.assigned,
                on_revoke=self._assignment.dropped,
                on_lost=self._assignment.dropped,
            )

    def poll(self, seconds: float, max_records: int) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return the records that have arrived: wait for the first one, and take what is there."""
        with self._watchdog.call("poll"), translated_errors("reading"):
            messages = self._consumer.consume(1, seconds)
            if messages and max_records > 1:
                messages += self._consumer.consume(min(max_records - 1, _MAX_POLLED), 0)
        failed = [one for one in messages if one.error() is not None]
        if failed:
            messages = [one for one in messages if one.error() is None]
        found = self._by_partition(records_of(messages))
        for one in failed:
            self._take_error(one)
        return found

    def _by_partition(
        self, records: Iterable[FetchedRecord]
    ) -> Mapping[TopicPartition, list[FetchedRecord]]:
        """Group records by partition, and drop those of partitions that were not sought."""
        found: dict[TopicPartition, list[FetchedRecord]] = defaultdict(list)
        for one in records:
            found[one.topic, one.partition].append(one)  # type: ignore[index] # an equal tuple
        positions = self._assignment.positions
        for partition in [one for one in found if one not in positions]:
            del found[partition]
        for partition, some in found.items():
            self._assignment.reached(partition, some[-1].offset + 1)
        return found

    def _take_error(self, message: Message) -> None:
        """Take a message that tells of the end of a partition, or of an error."""
        error, topic, number = message.error(), message.topic(), message.partition()
        assert error is not None  # noqa: S101 - the caller has looked
        code = error.code()
        known = topic is not None and (topic, number) in self._assignment.positions
        if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the client's name for it
            if known:
                self._assignment.reached((topic, number), message.offset())  # type: ignore[arg-type]
        elif code == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            if known:
                name = TopicPartition(str(topic), int(number or 0)).at(int(message.offset() or 0))
                msg = f"{name}: the topic has no such offset; records were deleted before they "
                msg += "were read"
                raise BrokerError(msg)
        elif error.fatal() or code not in TRANSIENT:
            raise translated_error(error, "reading")

    def membership(self) -> GroupMembership:
        """Return the current assignment."""
        assignment, last = self._assignment, self._heartbeat.last
        silent = time.monotonic() - last > self._session_timeout
        metadata = None if silent else assignment.group_metadata
        return GroupMembership(assignment.epoch, assignment.partitions, metadata, last)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at an offset."""
        if partition in self._assignment.partitions:
            self._assignment.sought(partition, offset)
            with self._watchdog.call("seek"), translated_errors(f"seeking {partition.at(offset)}"):
                self._consumer.seek(ClientPartition(*partition, offset))
            if partition not in self._assignment.paused:
                self.resume(partition)

    def fetch_position(self, partition: TopicPartition) -> FetchPosition:
        """Return how far a partition has been read."""
        position = self._assignment.positions.get(partition)
        if partition not in self._assignment.fetched:  # the client may know an end from long ago
            return FetchPosition(position, None)
        with translated_errors(f"end of {partition}"):
            known = self._consumer.get_watermark_offsets(ClientPartition(*partition), cached=True)
        return FetchPosition(position, known[1] if known and known[1] >= 0 else None)

    def pause(self, partition: TopicPartition) -> None:
        """Stop fetching a partition."""
        if partition in self._assignment.partitions:
            self._assignment.paused.add(partition)
            with translated_errors(f"pausing {partition}"):
                self._consumer.pause([ClientPartition(*partition)])

    def resume(self, partition: TopicPartition) -> None:
        """Fetch a paused partition again."""
        self._assignment.paused.discard(partition)
        if partition in self._assignment.positions:
            with translated_errors(f"resuming {partition}"):
                self._consumer.resume([ClientPartition(*partition)])

    def close(self) -> None:
        """Close the client, but stay a member of the group until the session times out."""
        with self._watchdog.call("close"), translated_errors("closing"):
            self._consumer.close()

    def leave(self) -> None:
        """Close the client and leave the group."""
        self.close()
        remove_member(
            self._group, self._instance, settings=self._admin_settings, watchdog=self._watchdog
        )
