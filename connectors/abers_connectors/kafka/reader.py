"""Reader of partitions and offsets, outside the consumer group.

Every answer is new, and right even if transactions are open.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from kafka import errors

from abers.exceptions import BrokerError
from abers_connectors.kafka import workarounds
from abers_connectors.kafka.client_errors import translated_errors
from abers_connectors.kafka.connection import connection_errors, new_consumer, to_client
from abers_connectors.runtime.transport import CommittedOffset, OffsetRange, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.runtime.transport import Record
    from abers_connectors.runtime.watchdog import Watchdog

__all__ = ["PartitionReader"]

_POLL = 20  # ms; meanwhile the restored tasks wait
_REQUEST_TIMEOUT = 1000  # ms after which to look up the leader again


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
        """Return the ids of topics, which those made anew do not share; "" where it is unknown."""
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
        """Return what the group committed of partitions, by one request.

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
        """Return the first offset of a record of a time or later, or None."""
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
            return ask(what, timeout_ms=_REQUEST_TIMEOUT)
        with suppress(errors.RetriableError):
            client.topics()  # updates the metadata
