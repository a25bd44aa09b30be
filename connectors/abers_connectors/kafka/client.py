"""The transport of kafka-python: consumer, producer and reader.

The consumer is a member of its group. Its assignment is the last that the listener got. Calls about
a partition that was revoked a moment ago do nothing.

The producer is transactional. It aborts a transaction that failed, and then replaces its client,
before it raises the error; after a refused record it keeps the client. A fenced producer does not
abort. It writes nothing before the last transaction has ended in every partition that it wrote to
(see `transaction_repair`).

The reader is outside the group. Each of its answers is new, and right even if transactions are
open.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack, cast

from kafka import ConsumerRebalanceListener, OffsetAndMetadata, errors
from kafka.coordinator.assignors.range import RangePartitionAssignor

from abers.exceptions import BrokerError
from abers_connectors.kafka import workarounds
from abers_connectors.kafka.assignor import StickyAssignor
from abers_connectors.kafka.client_errors import FENCED, REFUSED, remove_member, translated_errors
from abers_connectors.kafka.connection import (
    client_settings,
    connection_errors,
    headers_to_client,
    new_consumer,
    new_producer,
    to_client,
)
from abers_connectors.kafka.transaction_repair import (
    last_transaction_committed,
    repeat_transaction_end,
)
from abers_connectors.runtime.transport import (
    LARGEST,
    NO_NOTES,
    CommittedOffset,
    FetchPosition,
    GroupMembership,
    OffsetRange,
    RefusedRecordError,
    TopicPartition,
    TransactionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.process import Watchdog
    from abers_connectors.runtime.transport import (
        ConsumerOptions,
        Headers,
        ProducerOptions,
        Record,
        Transport,
    )

__all__ = ["GroupConsumer", "PartitionReader", "TransactionalProducer", "open_transport"]

_STABLE = "<stable>"
_GROWTH = 3_000  # ms at most until added partitions are found, if a topic grows
_HEARTBEAT = 3  # seconds at most until a member hears of a rebalance

# Both give a member the same partitions of both topics. The first that all members know is used.
ASSIGNORS = (StickyAssignor, RangePartitionAssignor)

# Errors of the client about a partition that its own thread has just revoked.
_REVOKED = (errors.IllegalStateError, ValueError, KeyError)


class _AssignmentListener(ConsumerRebalanceListener):  # type: ignore[misc] # has no types
    """Keeps the current assignment; the client calls it in a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._epoch, self._assigned = 0, frozenset[TopicPartition]()

    def state(self) -> tuple[int, frozenset[TopicPartition]]:
        with self._lock:
            return self._epoch, self._assigned

    def on_partitions_revoked(self, revoked: object) -> None:
        del revoked  # the protocol is eager: all of them
        self._set(frozenset())

    def on_partitions_assigned(self, assigned: Sequence[tuple[str, int]]) -> None:
        self._set(frozenset(TopicPartition(*one) for one in assigned))

    def on_partitions_lost(self, lost: object) -> None:
        del lost
        self._set(frozenset())

    def _set(self, assigned: frozenset[TopicPartition]) -> None:
        with self._lock:
            self._epoch += 1
            self._assigned = assigned


class GroupConsumer:
    """A `runtime.transport.Consumer`; see `runtime.transport.Transport.consumer`."""

    def __init__(
        self,
        topics: Sequence[str],
        group: str,
        instance: str,
        *,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
        **options: Unpack[ConsumerOptions],
    ) -> None:
        self._watchdog, self._listener = watchdog, _AssignmentListener()
        self._group, self._instance, self._settings = group, instance, settings
        self._session_timeout = session_timeout = options["session_timeout"]
        self._sought = set[tuple[int, TopicPartition]]()
        with watchdog.call("connect"), translated_errors("connecting"):
            self._consumer = new_consumer(
                settings,
                group_id=group,
                group_instance_id=instance,
                partition_assignment_strategy=ASSIGNORS,
                session_timeout_ms=int(1000 * session_timeout),
                heartbeat_interval_ms=int(1000 * min(session_timeout / 4, _HEARTBEAT)),
                **({"metadata_max_age_ms": _GROWTH} if options.get("grows") else {}),
            )
            workarounds.patch_consumer(self._consumer)
            self._consumer.subscribe(list(topics), listener=self._listener)

    def poll(self, seconds: float, max_records: int) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return the records that have arrived."""
        with self._watchdog.call("poll"), translated_errors("reading"):
            workarounds.take_join_response(self._consumer)
            try:
                found = self._consumer.poll(int(1000 * seconds), max_records=max_records)
            except errors.NoOffsetForPartitionError:
                found = {}  # just assigned, before the first seek
            except errors.OffsetOutOfRangeError as error:
                gone = (self._assigned_now(*one) for one in dict(error.args[0]))
                if not self._sought.isdisjoint(gone):
                    raise
                found = {}  # the client began at the committed offset, before the first seek
            finally:
                workarounds.keep_join_response(self._consumer)
        with translated_errors("staying in the group"):
            if workarounds.heartbeats_stopped(self._consumer):
                raise errors.FencedInstanceIdError
        return cast("Mapping[TopicPartition, Sequence[Record]]", found)

    def membership(self) -> GroupMembership:
        """Return the current assignment."""
        while True:
            epoch, assigned = self._listener.state()
            metadata = self._consumer.group_metadata()
            if self._listener.state()[0] == epoch:
                heartbeat = workarounds.last_heartbeat(self._consumer)
                # A client with a broker that is gone or hangs stays in its state "stable".
                stable = (
                    workarounds.coordinator_known(self._consumer)
                    and time.monotonic() - heartbeat <= self._session_timeout
                    and metadata.generation_id >= 0
                    and metadata.state == _STABLE
                )
                return GroupMembership(epoch, assigned, metadata if stable else None, heartbeat)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at an offset."""
        self._sought.add(self._assigned_now(*partition))
        with suppress(*_REVOKED):
            self._consumer.seek(to_client(partition), offset)

    def _assigned_now(self, topic: str, number: int) -> tuple[int, TopicPartition]:
        """Return a partition with the epoch of its assignment."""
        return self._listener.state()[0], TopicPartition(topic, number)

    def fetch_position(self, partition: TopicPartition) -> FetchPosition:
        """Return how far a partition has been read."""
        known = to_client(partition)
        try:
            end = self._consumer.highwater(known)
            position = self._consumer.position(known, timeout_ms=0)
        except (*_REVOKED, errors.NoOffsetForPartitionError):
            return FetchPosition(None, None)  # no longer assigned, or before the first seek
        return FetchPosition(position, end)

    def pause(self, partition: TopicPartition) -> None:
        """Stop fetching a partition."""
        with suppress(*_REVOKED):
            self._consumer.pause(to_client(partition))

    def resume(self, partition: TopicPartition) -> None:
        """Fetch a paused partition again."""
        with suppress(*_REVOKED):
            self._consumer.resume(to_client(partition))

    def close(self) -> None:
        """Close the client, but stay a member of the group until the session times out."""
        with self._watchdog.call("close"), translated_errors("closing"):
            self._consumer.close(autocommit=False)

    def leave(self) -> None:
        """Close the client and leave the group."""
        self.close()
        remove_member(self._group, self._instance, settings=self._settings, watchdog=self._watchdog)


_NO_LEADER = -1
_CLOSE_TIMEOUT = 5  # seconds for pending requests when a producer is closed
_REQUEST_TIMEOUT = 10  # seconds after which a broker that does not answer counts as gone


class TransactionalProducer:
    """A `runtime.transport.Producer`; see `runtime.transport.Transport.producer`."""

    def __init__(
        self,
        transactional_id: str,
        *,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
        **options: Unpack[ProducerOptions],
    ) -> None:
        self._watchdog, self._settings = watchdog, settings
        self._transactional_id = transactional_id
        self._topics, self._group = options["topics"], options["group"]
        self._open = partial(
            new_producer,
            settings,
            options["compression"],
            transactional_id=transactional_id,
            transaction_timeout_ms=int(1000 * options["timeout"]),
            batch_size=1 << 19,
            linger_ms=1000,  # a commit sends what is buffered
            retry_backoff_ms=5,  # a transaction is refused until the end of the last
            request_timeout_ms=1000 * _REQUEST_TIMEOUT,
            max_request_size=options.get("largest", LARGEST),
        )
        self._producer = self._connect()

    def _connect(self) -> Any:  # noqa: ANN401 - has no types
        """Open a client; the broker aborts an open transaction of the same transactional id."""
        with self._watchdog.call("connect"), translated_errors("connecting"):
            committed = last_transaction_committed(
                self._transactional_id, self._topics, self._settings, self._watchdog.seconds
            )
            producer = self._open()
            workarounds.patch_producer(producer)
            producer.init_transactions()
            if committed is not None:
                repeat_transaction_end(producer, self._topics, self._group, committed=committed)
            self._connections = workarounds.connections(producer)
            self._epoch = workarounds.producer_epoch(producer)
        return producer

    def begin(self) -> None:
        """Begin a transaction."""
        with self._watchdog.call("begin"), translated_errors("beginning a transaction"):
            if not self._connections <= workarounds.connections(self._producer):
                # A broker may have failed after it decided the last commit, and before all
                # partitions had it.
                repeat_transaction_end(self._producer, self._topics, self._group, committed=True)
            self._connections = workarounds.connections(self._producer)
            self._producer.begin_transaction()

    def send(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> None:
        """Send a record in the open transaction."""
        self._send(to, key, value, headers_to_client(headers), timestamp)

    def send_tracked(self, to: TopicPartition, value: bytes) -> Callable[[], int]:
        """Send a value in the open transaction; the result returns its offset after the commit."""
        future = self._send(to, None, value, [], None)
        return lambda: cast("int", future.get(timeout=0).offset)

    def _send(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes]],
        timestamp: int | None,
    ) -> Any:  # noqa: ANN401 - has no types
        if key is None and value is None:  # this client refuses to write that
            key = b""
        try:
            return self._producer.send(to.topic, value, key, headers, to.partition, timestamp)
        except errors.KafkaError:  # a context manager for every record would be slow
            with self._aborting(f"writing to {to}"):
                raise

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        group_metadata: object,
        notes: Mapping[TopicPartition, str] = NO_NOTES,
    ) -> None:
        """Commit the transaction together with input offsets, some of them with a text."""
        client = {
            to_client(one): OffsetAndMetadata(offset, notes.get(one, ""))
            for one, offset in offsets.items()
        }
        with self._aborting("committing"):
            with self._watchdog.call("send offsets"):
                self._producer.send_offsets_to_transaction(client, group_metadata)
            with self._watchdog.call("commit"):
                self._producer.commit_transaction()
            if self._epoch_changed():
                msg = "the brokers ended the transaction, perhaps after kafka.transaction_timeout"
                raise errors.KafkaError(msg)

    def abort(self) -> None:
        """Abort the open transaction."""
        with self._watchdog.call("abort"), translated_errors("aborting"):
            self._producer.abort_transaction()

    def leaderless(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions without a leader, and request metadata for the next call."""
        cluster = workarounds.cluster_metadata(self._producer)
        for topic in {one.topic for one in partitions}:
            cluster.add_topic(topic)
        cluster.request_update()
        return [
            one for one in partitions if cluster.leader_for_partition(to_client(one)) == _NO_LEADER
        ]

    def close(self) -> None:
        """Close the client; the broker aborts an open transaction."""
        with self._watchdog.call("close"), suppress(errors.KafkaError):  # nothing is left to lose
            self._producer.close(timeout=_CLOSE_TIMEOUT)

    def _epoch_changed(self) -> bool:
        """Return whether the client silently began a new epoch, as kafka-python 3.0.12 may.

        It does so if a broker rejects a record, for example of a transaction that has timed out.
        That aborts the open transaction, and yet the client reports a successful commit.
        """
        return bool(workarounds.producer_epoch(self._producer) != self._epoch)

    @contextmanager
    def _aborting(self, doing: str) -> Iterator[None]:
        """Abort the transaction and replace the client if the block fails, unless it is fenced."""
        try:
            yield
        except FENCED:
            with translated_errors(doing):
                raise
        except errors.KafkaError as error:
            # kafka-python 3.0.12 would commit the offsets of the aborted transaction with its next
            # one, so this client is replaced.
            if not self._epoch_changed():
                self.abort()
            if isinstance(error, REFUSED):
                raise RefusedRecordError(doing, error) from error
            self.close()
            self._producer = self._connect()
            msg = f"{doing}: {error or type(error).__name__}; the transaction was aborted"
            raise TransactionError(msg) from error


_POLL = 20  # ms; meanwhile the restored tasks wait
_ANSWER_TIMEOUT = 1000  # ms after which to look up the leader again


class PartitionReader:
    """A `runtime.transport.Reader` that knows the committed offsets of a group."""

    def __init__(self, group: str, *, settings: Mapping[str, Any], watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        # This is the first client of a service, so it meets all errors of the connection.
        with watchdog.call("connect"), connection_errors(settings):
            # The group's member is not used for committed offsets: it may return the result of an
            # earlier request that a poll had given up.
            self._committed = new_consumer(
                settings, group_id=group, max_partition_fetch_bytes=8 << 20
            )
            # A reader of committed records only would not see the end behind open transactions.
            self._all = new_consumer(settings, group_id=group, isolation_level="read_uncommitted")

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 if there is no topic."""
        with self._watchdog.call("metadata"), translated_errors(f"topic {topic}"):
            self._all.topics()  # updates the metadata
            return len(self._all.partitions_for_topic(topic) or ())

    def topic_ids(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of topics, "" where unknown; a topic that is made anew gets another id."""
        with self._watchdog.call("metadata"), translated_errors("the ids of the topics"):
            self._all.topics()  # updates the metadata
            return tuple(workarounds.topic_id(self._all, topic) for topic in topics)

    def committed(self, partition: TopicPartition) -> int | None:
        """Return the offset that the group committed, once no transaction on it is open."""
        with self._watchdog.call("committed"), translated_errors(f"offset of {partition}"):
            offset: int | None = self._committed.committed(to_client(partition))
        return offset

    def all_committed(
        self, partitions: Sequence[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets that the group committed of partitions, by one request.

        With `stable` it waits until no transaction on them is open.
        """
        client = [to_client(one) for one in partitions]
        consumer = self._committed if stable else self._all
        with self._watchdog.call("committed"), translated_errors("offsets of the group"):
            found = workarounds.committed_offsets(consumer, client)
        return {  # librdkafka (2.16) ends a text with a null
            TopicPartition(*one): CommittedOffset(known.offset, (known.metadata or "").rstrip("\0"))
            for one, known in found.items()
        }

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return the first offset and the end, open transactions included."""
        known = to_client(partition)
        with self._watchdog.call("bounds"), translated_errors(f"offsets of {partition}"):
            start = _ask_leader(self._all, self._all.beginning_offsets, [known])[known]
            return OffsetRange(start, _ask_leader(self._all, self._all.end_offsets, [known])[known])

    def last_stable_offset(self, partition: TopicPartition) -> int:
        """Return the offset before which all transactions have ended."""
        known = to_client(partition)
        with self._watchdog.call("end"), translated_errors(f"end of {partition}"):
            end: int = _ask_leader(self._committed, self._committed.end_offsets, [known])[known]
            return end

    def last_stable_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the `last_stable_offset` of each partition."""
        client = [to_client(one) for one in partitions]
        with self._watchdog.call("end"), translated_errors("ends of the inputs"):
            ends = _ask_leader(self._committed, self._committed.end_offsets, client)
        return {TopicPartition(*one): end for one, end in ends.items()}

    def offset_for_time(self, partition: TopicPartition, time_: int) -> int | None:
        """Return the offset of the first record at or after a time, or None."""
        known = to_client(partition)
        with self._watchdog.call("time"), translated_errors(f"a time of {partition}"):
            found = _ask_leader(self._all, self._all.offsets_for_times, {known: time_})[known]
        return None if found is None else cast("int", found.offset)

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Sequence[Record]]:
        """Yield the committed records of a range of offsets, waiting for them."""
        known = to_client(partition)
        self._committed.assign([known])
        self._committed.seek(known, start)
        position, moved = start, time.monotonic()
        while position < end:
            with self._watchdog.call("read"), translated_errors(f"reading {partition}"):
                found = self._committed.poll(_POLL).get(known, [])
                now_at = self._committed.position(known)
            if now_at > position:
                position, moved = now_at, time.monotonic()
            elif time.monotonic() - moved > self._watchdog.seconds:
                msg = (
                    f"{partition.at(position)}: no record arrives, although there are records "
                    f"before @{end}; a transaction of another process is open there"
                )
                raise BrokerError(msg)
            yield [one for one in found if one.offset < end]

    def close(self) -> None:
        """Close the client."""
        with self._watchdog.call("close"), translated_errors("closing"):
            self._committed.close()
            self._all.close()


def _ask_leader(client: Any, ask: Callable[..., Any], what: object) -> Any:  # noqa: ANN401
    """Ask the leader for offsets, and look up the leader again if it does not answer.

    A client that has not heard of an added partition fails with a KeyError. If a broker answers
    that another leads, kafka-python 3.0.12 asks the same broker again until the request times out.
    """
    while True:
        with suppress(errors.KafkaTimeoutError, KeyError):
            return ask(what, timeout_ms=_ANSWER_TIMEOUT)
        with suppress(errors.RetriableError):
            client.topics()  # updates the metadata


class KafkaPythonTransport:
    """The `runtime.transport.Transport` of kafka-python."""

    def __init__(self, kafka: KafkaSection, watchdog: Watchdog) -> None:
        common: dict[str, Any] = {"settings": client_settings(kafka), "watchdog": watchdog}
        self.reader = partial(PartitionReader, **common)
        self.producer = partial(TransactionalProducer, **common)
        self.consumer = partial(GroupConsumer, **common)


def open_transport(kafka: KafkaSection, watchdog: Watchdog) -> Transport:
    """Return the transport of a configuration; it connects when a client is opened."""
    return KafkaPythonTransport(kafka, watchdog)
