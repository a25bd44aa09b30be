"""The consumer of librdkafka, a member of its group.

It keeps the partitions that the group assigns to it, and how far each has been read. The client
calls back during a poll, in the thread of the caller.
"""

from __future__ import annotations

import struct
import time
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Unpack, cast

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from abers.exceptions import BrokerError
from abers_connectors.kafka.client_errors import remove_member
from abers_connectors.librdkafka.connection import (
    TRANSIENT,
    ConnectionWatch,
    Heartbeat,
    error_of,
    translated_error,
    translated_errors,
)
from abers_connectors.runtime.transport import (
    BadHeaders,
    FetchedRecord,
    FetchPosition,
    GroupMembership,
    TopicPartition,
    sizes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import ConsumerOptions, Headers, Record

__all__ = ["Assignment", "LibrdkafkaConsumer", "member_epoch"]


def records_of(messages: Sequence[Message]) -> list[FetchedRecord]:
    """Return the records of messages without an error.

    Copying the parts costs less than calling the message for each of them where it is used, and
    `map` calls a method for half the price of a loop.
    """
    return [
        *map(
            FetchedRecord,
            map(Message.topic, messages),
            map(Message.partition, messages),
            map(Message.offset, messages),
            map(itemgetter(1), map(Message.timestamp, messages)),
            map(Message.key, messages),
            map(Message.value, messages),
            _headers_of(messages),
        )
    ]


def _headers_of(messages: Sequence[Message]) -> list[Headers]:
    """Return the headers of each message.

    If the name of a header is not UTF-8, the client (2.16) sets an error, and yet returns headers,
    with null pointers. `map` finds the error, and goes on after it; a second call would not raise.
    """
    found: list[Headers] = []
    read = map(Message.headers, messages)
    while len(found) < len(messages):
        try:
            found.extend(cast("Headers", one or ()) for one in read)
        except (SystemError, UnicodeDecodeError):
            found.append(BadHeaders())
    return found


_METADATA = struct.Struct("=7xi")  # a tag, and the epoch of the member or the generation


@dataclass
class AssignedPartition:
    """A partition since its assignment.

    A pause does not stop the partition in the client at once: the client would drop all that it has
    fetched, and fetch it again. What arrives meanwhile is kept.
    """

    position: int | None = None  # next offset of the client; None before the first seek
    fetched: bool = False  # something has arrived since the last seek
    paused: bool = False  # by the caller
    stopped: bool = True  # in the client
    held: list[FetchedRecord] = field(default_factory=list)
    held_size: int = 0  # of a paused partition

    def sought(self, offset: int) -> None:
        """Record a seek."""
        self.position, self.fetched, self.held, self.held_size = offset, False, [], 0

    def reached(self, offset: int) -> None:
        """Record that all before an offset has arrived."""
        self.position, self.fetched = max(offset, self.position or 0), True

    def pause(self) -> None:
        """Record that the caller wants no more records."""
        if not self.paused:
            self.paused, self.held_size = True, sum(sizes_of(self.held))

    def hold(self, records: Sequence[FetchedRecord]) -> None:
        """Keep records that have arrived."""
        self.held += records
        if self.paused:
            self.held_size += sum(sizes_of(records))

    def next_offset(self) -> int | None:
        """Return the offset of the next record for the caller."""
        return self.held[0].offset if self.held else self.position

    def take(self, most: int) -> list[FetchedRecord]:
        """Remove and return the first records that are kept."""
        if len(self.held) <= most:
            found, self.held = self.held, []
        else:
            found = self.held[:most]
            del self.held[:most]
        return found


class Assignment:
    """The current assignment.

    In the classic protocol each assignment replaces the earlier assignment. The group metadata are
    those of the moment of the assignment. The metadata of the client change before it calls back
    about a rebalance: a member that was removed from the group has none, and the brokers accept
    offsets without a generation.

    In the consumer protocol (`incremental`) partitions come and go one by one, and the epoch in the
    group metadata grows without a callback. A member that was removed keeps its id, which the
    brokers refuse, and gets another epoch only after its partitions are dropped here. It may own a
    partition of one topic while another member has not yet released that of the other topic. This
    partition counts only once all are there, or after `patience` seconds, for the caller to report.
    """

    def __init__(
        self,
        topics: int,
        *,
        incremental: bool,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.epoch = 0
        """Number of changes."""
        self.partitions: dict[TopicPartition, AssignedPartition] = {}
        """The partitions that count."""
        self.group_metadata: object | None = None
        """What identifies the member in a commit; None while it is not in the group."""
        self._topics, self._incremental = topics, incremental
        self._patience, self._clock = patience, clock
        self._owned, self._changed = frozenset[TopicPartition](), clock()

    def assigned(self, consumer: Any, partitions: Sequence[Any]) -> None:  # noqa: ANN401 - the client's
        """Take partitions; nothing of a partition is fetched before the first seek.

        The offset is a number, so that the client asks a broker for none. An answer that came after
        the seek would make it ask once more, and continue there.
        """
        for one in partitions:
            one.offset = 0
        if self._incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
            with suppress(RuntimeError):  # a client that is closed meanwhile has none
                self.group_metadata = consumer.consumer_group_metadata()
        consumer.pause(partitions)
        self._own(self._owned | _names(partitions))

    def restart(self, consumer: Any, partition: TopicPartition) -> None:  # noqa: ANN401 - the client's
        """Assign a partition anew, at its position, after the client has given it up.

        The client gives up a partition if its topic lacks the offset that it fetches, such as the
        number of the assignment. In the classic protocol all partitions are assigned anew.
        """
        again = [partition] if self._incremental else [*self.partitions]
        places = [ClientPartition(*one, self.partitions[one].position or 0) for one in again]
        if self._incremental:
            consumer.incremental_unassign(places)
            consumer.incremental_assign(places)
        else:
            consumer.assign(places)
        stopped = [one for one, found in self.partitions.items() if found.stopped]
        consumer.pause([ClientPartition(*one) for one in stopped])

    def dropped(self, _consumer: object, partitions: Iterable[Any]) -> None:
        """Drop partitions, revoked or lost."""
        if not self._incremental:
            self.group_metadata = None
        self._own(self._owned - _names(partitions))

    def refresh(self, consumer: Any) -> None:  # noqa: ANN401 - the client's
        """Take what changes without a callback."""
        if self._incremental:
            metadata = consumer.consumer_group_metadata()
            self.group_metadata = metadata if member_epoch(metadata) > 0 else None
            self._count()

    def _own(self, owned: frozenset[TopicPartition]) -> None:
        self._owned, self._changed = owned, self._clock()
        self._count()

    def _count(self) -> None:
        """Find the partitions that count."""
        numbers = Counter(one.partition for one in self._owned)
        waits = self._incremental and self._clock() - self._changed <= self._patience
        least = self._topics if waits else 1
        counted = {one for one in self._owned if numbers[one.partition] >= least}
        if counted != self.partitions.keys():
            self.epoch += 1
            self.partitions = {
                one: self.partitions.get(one) or AssignedPartition() for one in counted
            }


def member_epoch(group_metadata: bytes) -> int:
    """Return the epoch in group metadata, above 0 in a group; the client has no method for it."""
    return int(_METADATA.unpack_from(group_metadata)[0])


def _names(partitions: Iterable[Any]) -> frozenset[TopicPartition]:
    return frozenset(TopicPartition(one.topic, one.partition) for one in partitions)


_JOIN_POLL = 0.05  # seconds
_HEARTBEAT = 3  # seconds at most until a member hears of a rebalance
_POLL_INTERVAL = 300  # seconds without a poll after which the client leaves the group
_MAX_POLLED = 1_000_000  # messages that the client returns at once
_MAX_HELD = 16 << 20  # bytes of paused partitions beyond which they are no longer fetched

# Added partitions are found within this time, in ms, if a topic grows.
_GROWTH: dict[str, Any] = {"topic.metadata.refresh.interval.ms": 3_000}

_SETTINGS: dict[str, Any] = {
    "isolation.level": "read_committed",
    # The client commits nothing, and starts nowhere, by itself.
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    # The end of a partition counts markers of transactions, which are no messages.
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 100,  # the longest wait for a resumed partition
    "socket.timeout.ms": 10_000,  # after which a broker that does not answer counts as gone
    # What is fetched waits in one queue. By default fetching rests for a second when it is full.
    "fetch.queue.backoff.ms": 10,
    # The client does not count headers in the bytes of its queue, so the number of messages is the
    # limit. A bare loop reads up to a third slower than with 20,000; the service takes no more CPU.
    "queued.min.messages": 200,
    "queued.max.messages.kbytes": 32 << 10,
    "fetch.message.max.bytes": 1 << 18,  # of a partition, so that the two inputs come in turns
}


def _protocol(name: str, session_timeout: float, heartbeat: int) -> dict[str, Any]:
    """Return the settings of a group protocol.

    Range is the only assignor that gives a member the same partitions of both topics. In the
    consumer protocol it runs on the brokers, and the time-outs are theirs.
    """
    if name == "consumer":
        return {"group.protocol": name, "group.remote.assignor": "range"}
    return {
        "group.protocol": name,
        "partition.assignment.strategy": "range",
        "session.timeout.ms": int(1000 * session_timeout),
        "heartbeat.interval.ms": heartbeat,
    }


class LibrdkafkaConsumer:
    """A `runtime.transport.Consumer`; see `runtime.transport.Transport.consumer`.

    `settings` are librdkafka's, and `admin_settings` kafka-python's.
    """

    def __init__(  # noqa: PLR0913 - the identity of a member
        self,
        topics: Sequence[str],
        group: str,
        instance: str,
        *,
        protocol: str,
        settings: Mapping[str, Any],
        admin_settings: Mapping[str, Any],
        watchdog: Watchdog,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._watchdog, self._admin_settings = watchdog, admin_settings
        self._group, self._instance = group, instance
        self._session_timeout = session_timeout = options["session_timeout"]
        grows = options.get("grows", False)
        self._heartbeat = Heartbeat()
        # A process that does not release a partition ends, or is removed, within that time.
        self._assignment = Assignment(
            1 if grows else len(topics),
            incremental=protocol == "consumer",
            patience=watchdog.seconds + session_timeout,
        )
        heartbeat = int(1000 * min(session_timeout / 4, _HEARTBEAT))
        with watchdog.call("connect"), translated_errors("connecting"):
            self._consumer = Consumer(
                {
                    **settings,
                    **_SETTINGS,
                    "group.id": group,
                    "group.instance.id": instance,
                    **_protocol(protocol, session_timeout, heartbeat),
                    "max.poll.interval.ms": int(1000 * max(session_timeout, _POLL_INTERVAL)),
                    "statistics.interval.ms": heartbeat // 2,
                    "stats_cb": self._heartbeat.take,
                    **(_GROWTH if grows else {}),
                },
                logger=ConnectionWatch(),
            )
            self._consumer.subscribe(
                [*topics],
                on_assign=self._assignment.assigned,
                on_revoke=self._assignment.dropped,
                on_lost=self._assignment.dropped,
            )
        if protocol == "consumer":
            self._join()

    def _join(self) -> None:
        """Wait until the brokers admit the member, or close the client and raise their error.

        In the consumer protocol they refuse a second member of the same name. So a producer that is
        opened after this fences no running process.
        """
        try:
            with self._watchdog.call("join"), translated_errors("joining the group"):
                while self._assignment.group_metadata is None:
                    for one in self._consumer.consume(1, _JOIN_POLL):
                        self._take_error(one)
                    self._assignment.refresh(self._consumer)
        except BaseException:
            with suppress(BrokerError):
                self.close()
            raise

    def poll(self, seconds: float, max_records: int) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return the records that have arrived: wait for the first, and take what is there."""
        with self._watchdog.call("poll"), translated_errors("reading"):
            messages = self._consumer.consume(1, 0 if self._released() else seconds)
            most = _MAX_POLLED if self._all_paused() else min(max_records - 1, _MAX_POLLED)
            if messages and most:
                messages += self._consumer.consume(most, 0)
            self._assignment.refresh(self._consumer)
        errors = [*map(Message.error, messages)]
        failed = [one for one, error in zip(messages, errors, strict=True) if error is not None]
        if failed:
            messages = [one for one, error in zip(messages, errors, strict=True) if error is None]
        self._hold(records_of(messages))
        for one in failed:
            self._take_error(one)
        return {name: one.take(max_records) for name, one in self._released().items()}

    def _all_paused(self) -> bool:
        """Return whether all records are kept; then news of the group may queue behind them."""
        return all(one.paused for one in self._assignment.partitions.values())

    def _released(self) -> dict[TopicPartition, AssignedPartition]:
        """Return the partitions that are not paused and have records."""
        partitions = self._assignment.partitions
        return {name: one for name, one in partitions.items() if one.held and not one.paused}

    def _hold(self, records: Iterable[FetchedRecord]) -> None:
        """Add records to their partitions; those of partitions that were not sought are dropped."""
        found: dict[tuple[str, int], list[FetchedRecord]] = defaultdict(list)
        for one in records:
            found[one.topic, one.partition].append(one)
        for name, some in found.items():
            partition = self._assignment.partitions.get(TopicPartition(*name))
            if partition is None or partition.position is None:
                continue
            first = some[0].offset
            if first < partition.position:  # the client must never go back by itself
                where = TopicPartition(*name).at(first)
                msg = f"{where} came after {partition.position - 1}; the process must start again"
                raise BrokerError(msg)
            partition.reached(some[-1].offset + 1)
            partition.hold(some)
            if partition.paused and not partition.stopped and self._held() > _MAX_HELD:
                with translated_errors(f"pausing {TopicPartition(*name)}"):
                    self._consumer.pause([ClientPartition(*name)])
                partition.stopped = True

    def _held(self) -> int:
        """Return the size of the records that paused partitions keep."""
        return sum(one.held_size for one in self._assignment.partitions.values() if one.paused)

    def _take_error(self, message: Message) -> None:
        """Handle a message that reports the end of a partition, or an error."""
        error = message.error()
        if error is None:  # of a partition that was not sought
            return
        name = TopicPartition(str(message.topic()), int(message.partition() or 0))
        partition, cause = self._assignment.partitions.get(name), error.name()
        sought = partition is not None and partition.position is not None
        if cause == "_PARTITION_EOF":
            if partition is not None and sought:
                partition.reached(int(message.offset() or 0))
        elif cause == "_AUTO_OFFSET_RESET":
            offset = int(message.offset() or 0)
            # An offset before the position is from before the seek, such as that of `assigned`.
            if partition is not None and sought and offset >= (partition.position or 0):
                msg = (
                    f"{name.at(offset)}: the topic has no such offset; records were deleted before "
                    "they were read"
                )
                raise BrokerError(msg)
        elif error.fatal() or cause not in TRANSIENT:
            raise translated_error(error, "reading")

    def membership(self) -> GroupMembership:
        """Return the current assignment."""
        assignment, last = self._assignment, self._heartbeat.last
        silent = time.monotonic() - last > self._session_timeout
        metadata = None if silent else assignment.group_metadata
        return GroupMembership(assignment.epoch, frozenset(assignment.partitions), metadata, last)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at an offset."""
        found = self._assignment.partitions.get(partition)
        if found is not None:
            found.sought(offset)
            with self._watchdog.call("seek"), translated_errors(f"seeking {partition.at(offset)}"):
                self._seek(partition, offset)
            if not found.paused:
                self.resume(partition)

    def _seek(self, partition: TopicPartition, offset: int) -> None:
        try:
            self._consumer.seek(ClientPartition(*partition, offset))
        except KafkaException as error:
            if error_of(error).name() != "_STATE":
                raise
            self._assignment.restart(self._consumer, partition)

    def fetch_position(self, partition: TopicPartition) -> FetchPosition:
        """Return how far a partition has been read."""
        found = self._assignment.partitions.get(partition)
        if found is None:
            return FetchPosition(None, None)
        if not found.fetched:  # the client may know an end from long ago
            return FetchPosition(found.position, None)
        with translated_errors(f"end of {partition}"):
            known = self._consumer.get_watermark_offsets(ClientPartition(*partition), cached=True)
        return FetchPosition(found.next_offset(), known[1] if known and known[1] >= 0 else None)

    def pause(self, partition: TopicPartition) -> None:
        """Return no more records of a partition, and stop fetching it once many are kept."""
        found = self._assignment.partitions.get(partition)
        if found is not None:
            found.pause()

    def resume(self, partition: TopicPartition) -> None:
        """Fetch a paused partition again."""
        found = self._assignment.partitions.get(partition)
        if found is None:
            return
        found.paused = False
        if found.stopped and found.position is not None:
            with translated_errors(f"resuming {partition}"):
                self._consumer.resume([ClientPartition(*partition)])
            found.stopped = False

    def close(self) -> None:
        """Close the client, but stay a member of the group until the session times out."""
        with self._watchdog.call("close"), translated_errors("closing"):
            # librdkafka (2.16) may never return from an assignment that it reports while it closes.
            self._consumer.poll(0)
            self._consumer.close()

    def leave(self) -> None:
        """Close the client and leave the group."""
        self.close()
        remove_member(
            self._group, self._instance, settings=self._admin_settings, watchdog=self._watchdog
        )
