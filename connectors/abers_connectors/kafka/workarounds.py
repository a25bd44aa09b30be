"""Workarounds for kafka-python 3.0.12: the only module that uses the private parts of the client.

They keep a process alive when a broker fails: every request of a transaction is answered or sent
again, no loop runs without a pause, and a member notices that it was fenced from the group.
They also let headers of every shape pass, which brokers accept and the client does not.
Each change applies only to the client at hand. pyproject.toml allows no version of kafka-python
with private parts that may differ.
"""

# ruff: noqa: SLF001 - kafka-python has no public call for any of this

from __future__ import annotations

import math
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from kafka import TopicPartition, errors
from kafka.future import Future
from kafka.record.default_records import DefaultRecordBatch

from abers_connectors.kafka.connection import NULL
from abers_connectors.runtime.transport import BadHeaders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka import KafkaConsumer, KafkaProducer

__all__ = [
    "accept_all_headers",
    "add_partitions",
    "allow_null_headers",
    "cluster_metadata",
    "committed_offsets",
    "connections",
    "coordinator_known",
    "heartbeats_stopped",
    "keep_join_response",
    "last_heartbeat",
    "patch_consumer",
    "patch_producer",
    "producer_epoch",
    "release_resumed",
    "take_join_response",
]

_COORDINATOR_RETRY = 0.02  # seconds between two lookups of a transaction's coordinator
_SENDER_POLL = 1000  # ms at most between two steps of a producer that waits
_GROUP_RETRY = 0.1  # seconds between two lookups of a group's coordinator

# Errors of requests that were not answered; for some of them the client gives up.
_UNANSWERED = (errors.RequestTimedOutError, errors.NodeNotReadyError, errors.Cancelled)


# The producer


class _NullableHeaders(list[tuple[str, bytes | None]]):
    """Headers that the client does not measure: it adds up their lengths only if `bool` is True."""

    def __bool__(self) -> bool:
        return False


def allow_null_headers(producer: KafkaProducer) -> None:
    """Make a producer write headers with a null value, which it can write but refuses."""
    append = producer._accumulator.append

    def appended(
        to: TopicPartition, stamp: int, key: bytes, value: bytes, given: list[Any], **more: object
    ) -> object:
        if any(one is NULL for _, one in given):
            given = _NullableHeaders((name, None if one is NULL else one) for name, one in given)
        return append(to, stamp, key, value, given, **more)

    producer._accumulator.append = appended


def patch_producer(producer: KafkaProducer) -> None:
    """Make a new producer send every unanswered request of a transaction again."""
    client = producer._sender._client
    client.await_ready = _without_raising(client.await_ready)
    client.send = _as_lost_connection(client.send)
    client.poll = _waking_up(client.poll)


def _waking_up(poll: Callable[..., object]) -> Callable[..., object]:
    """Make the sender go on every second.

    When a batch is split and a record of it is refused, nothing else wakes it up: a commit would
    wait endlessly.
    """

    def woken(timeout_ms: float | None = None, **more: object) -> object:
        wait = _SENDER_POLL if timeout_ms is None else min(timeout_ms, _SENDER_POLL)
        return poll(timeout_ms=wait, **more)

    return woken


def _without_raising(await_ready: Callable[..., bool]) -> Callable[..., bool]:
    """Return False for a node that is not ready, where the client raises an error.

    The error makes the client drop the request, and a thread that waits for the response never gets
    it. For a node that is not ready the client finds the coordinator anew, and asks it.
    """

    def ready(node: object, timeout_ms: float) -> bool:
        with suppress(errors.KafkaConnectionError):
            return await_ready(node, timeout_ms)
        time.sleep(_COORDINATOR_RETRY)
        return False

    return ready


def _as_lost_connection(send: Callable[..., Future]) -> Callable[..., Future]:
    """Make every unanswered request fail as if its connection were lost.

    The client sends it again. A broker recognizes records by their sequence numbers,
    and repeats its decision about a transaction as often as it is asked.
    """

    def sent(node: object, request: object, **more: object) -> Future:
        response = Future()

        def fail(error: Exception) -> None:
            unanswered = isinstance(error, _UNANSWERED)
            response.failure(errors.KafkaConnectionError(str(error)) if unanswered else error)

        send(node, request, **more).add_callback(response.success).add_errback(fail)
        return response

    return sent


def connections(producer: KafkaProducer) -> frozenset[Any]:
    """Return the open connections; a connection that was lost is never used again."""
    return frozenset(producer._sender._client._manager._conns.copy().values())


def producer_epoch(producer: KafkaProducer) -> Any:  # noqa: ANN401 - has no types
    """Return the id and epoch of a producer, which the client may silently replace."""
    return producer._transaction_manager.producer_id_and_epoch


def cluster_metadata(producer: KafkaProducer) -> Any:  # noqa: ANN401 - has no types
    """Return the metadata of the cluster, which the client updates in the background."""
    return producer._metadata


def add_partitions(producer: KafkaProducer, topics: Sequence[str]) -> None:
    """Add all partitions of some topics to the open transaction, without a record."""
    manager = producer._transaction_manager
    for topic in topics:
        for number in producer.partitions_for(topic):
            manager.maybe_add_partition_to_transaction(TopicPartition(topic, number))
    with manager._lock:
        request = manager._add_partitions_to_transaction_handler()
        manager._enqueue_request(request)
    producer._sender.wakeup()
    request.result.wait()


# The consumer


class _Decodable(bytes):
    """A text in a record."""

    def decode(self, *_: object) -> str:
        return super().decode(errors="replace")


class _DecodableBuffer:
    """The buffer of a batch; its texts decode even if they are not UTF-8."""

    def __init__(self, buffer: bytearray) -> None:
        self._buffer = buffer

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401 - an index or a slice
        found = self._buffer[at]
        return found if isinstance(found, int) else _Decodable(found)


class _Batch(DefaultRecordBatch):  # type: ignore[misc] # has no types
    """A batch of records that may have a header with a name that is not UTF-8."""

    __slots__ = ()
    _buffer: Any

    def _read_msg(self) -> Any:  # noqa: ANN401 - has no types
        try:
            return super()._read_msg()
        except UnicodeDecodeError:  # the client would read neither this record nor those after it
            buffer, self._buffer = self._buffer, _DecodableBuffer(self._buffer)
        try:
            record = super()._read_msg()
        finally:
            self._buffer = buffer
        record._headers = BadHeaders()
        return record


class _Batches:
    """The batches that a broker returned."""

    def __init__(self, batches: Any) -> None:  # noqa: ANN401 - has no types
        self._batches = batches

    def next_batch(self) -> Any:  # noqa: ANN401 - has no types
        batch = self._batches.next_batch()
        if type(batch) is DefaultRecordBatch:
            batch.__class__ = _Batch
        return batch


def accept_all_headers(consumer: KafkaConsumer) -> None:
    """Make a consumer return the records that have a header with a name that is not UTF-8."""
    fetcher = consumer._fetcher
    unpack = fetcher.PartitionRecords

    def unpacked(offset: int, of: TopicPartition, batches: object, **more: object) -> object:
        return unpack(offset, of, _Batches(batches), **more)

    fetcher.PartitionRecords = unpacked


def patch_consumer(consumer: KafkaConsumer) -> None:
    """Keep a new member of a group from using a whole core while its coordinator is gone."""
    coordinator = consumer._coordinator
    # A poll would return when a heartbeat is due, and at once while one is overdue. Heartbeats are
    # sent by a task that needs no poll.
    coordinator.time_to_next_poll = lambda: math.inf
    lookup = coordinator._send_group_coordinator_request

    async def paced_lookup() -> object:
        # While the brokers still name a coordinator that is gone, the client asks again at once,
        # with a warning, hundreds of times a second.
        node = await lookup()
        if coordinator._client.connection_delay(node) > 0:
            await coordinator._net.sleep(_GROUP_RETRY)
        return node

    coordinator._send_group_coordinator_request = paced_lookup


def release_resumed(consumer: KafkaConsumer) -> None:
    """Make a new consumer return the fetched records of a partition that was resumed.

    The client searches for them only if no partition is next in line, and an exhausted one counts.
    If nothing else is fetched, they would never be returned.
    """
    fetcher = consumer._fetcher
    fetched_records = fetcher.fetched_records

    def released(*words: Any, **more: Any) -> Any:  # noqa: ANN401 - has no types
        if not fetcher._next_partition_records:
            fetcher._next_partition_records = None
        return fetched_records(*words, **more)

    fetcher.fetched_records = released


class _JoinResponse:
    """A pending join; its response counts even if it arrives between two polls.

    The client ignores this response: it joins again, which causes another rebalance of the whole
    group, or it considers itself joined and waits endlessly for its assignment.
    """

    is_done = False  # as the client sees it, until `take_join_response`

    def __init__(self, future: Any) -> None:  # noqa: ANN401 - has no types
        self.add_callback, self.add_errback = future.add_callback, future.add_errback
        self._future = future

    def __await__(self) -> Any:  # noqa: ANN401 - has no types
        return self._future.__await__()

    @property
    def arrived(self) -> bool:
        return bool(self._future.is_done)


def keep_join_response(consumer: KafkaConsumer) -> None:
    """Keep a response to a join that arrives before the next poll; call it after each poll."""
    coordinator = consumer._coordinator
    task = coordinator._join_task
    if task is not None and not isinstance(task, _JoinResponse):
        coordinator._join_task = _JoinResponse(task)


def take_join_response(consumer: KafkaConsumer) -> None:
    """Process a response to a join that arrived since the last poll; call it before each poll."""
    coordinator = consumer._coordinator
    task = coordinator._join_task
    if isinstance(task, _JoinResponse) and task.arrived:
        coordinator.request_rejoin()


def heartbeats_stopped(consumer: KafkaConsumer) -> bool:
    """Return whether the brokers rejected a heartbeat because another process has our name.

    The client then stops sending heartbeats, without an error. Otherwise it stops only while it
    joins.
    """
    coordinator = consumer._coordinator
    with coordinator._lock:
        stopped = not coordinator._heartbeat_enabled
        return bool(stopped and coordinator.stable() and not coordinator.rejoining)


def coordinator_known(consumer: KafkaConsumer) -> bool:
    """Return whether the client knows a coordinator of its group."""
    return not consumer._coordinator.coordinator_unknown()


def committed_offsets(consumer: KafkaConsumer, partitions: Sequence[TopicPartition]) -> Any:  # noqa: ANN401 - has no types
    """Return the committed offsets of partitions; the public call of the client returns one."""
    return consumer._coordinator.fetch_committed_offsets(partitions)


def topic_id(consumer: KafkaConsumer, topic: str) -> str:
    """Return the id of a topic as of the last metadata; "" without one."""
    found = consumer._cluster.topic_id(topic)
    return "" if found is None else str(found)


def last_heartbeat(consumer: KafkaConsumer) -> float:
    """Return when a heartbeat was last answered, or the group was found or joined."""
    heartbeat = consumer._coordinator.heartbeat
    return float(max(heartbeat.last_receive, heartbeat.last_reset))
