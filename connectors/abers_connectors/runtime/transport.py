"""The Kafka client that the runtime needs: protocols, and the registry of implementations.

The runtime uses nothing else of a client. A client is one module with a function `open_transport`,
and one line in `TRANSPORTS`. A call that needs an answer of a broker returns after that answer; if
a broker does not answer in time, the process ends.
"""

from __future__ import annotations

from importlib import import_module
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    NamedTuple,
    NotRequired,
    Protocol,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
)

import msgspec

from abers.exceptions import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from abers_connectors.config.sections import KafkaSection
    from abers_connectors.process import Watchdog

__all__ = [
    "LARGEST",
    "NO_NOTES",
    "TRANSPORTS",
    "BadHeaders",
    "CommittedOffset",
    "Consumer",
    "ConsumerOptions",
    "FetchPosition",
    "FetchedRecord",
    "GroupMembership",
    "Headers",
    "OffsetRange",
    "Producer",
    "ProducerOptions",
    "Reader",
    "Record",
    "RefusedRecordError",
    "TopicPartition",
    "TransactionError",
    "Transport",
    "open_transport",
    "sizes_of",
]

TRANSPORTS = {
    "kafka-python": "abers_connectors.kafka.client",
    "librdkafka": "abers_connectors.librdkafka.client",
}
"""The module of each client, by the client's name."""

LARGEST = 1 << 20
"""Bytes of the largest record that brokers and clients accept by default."""

Headers: TypeAlias = "Sequence[tuple[str, bytes | None]]"
"""Names and values of headers: a name may be empty, or come twice, and a value may be null."""

NO_NOTES: Mapping[TopicPartition, str] = MappingProxyType({})
"""The default texts to commit with offsets: an empty mapping."""

_RECORD, _HEADER = 300, 150  # bytes of memory of the objects of a record, and of a header


class TransactionError(BrokerError):
    """A transaction was aborted: nothing of it was written, and the state in memory is invalid."""


class RefusedRecordError(BrokerError):
    """The brokers refuse a record as long as its topic has a setting: do not send it again."""

    def __init__(self, doing: str, why: object) -> None:
        msg = (
            f"{doing}: the brokers refuse a record ({why}), so nothing was committed; ending, to "
            "be restarted; compare the settings of the topics by `abers check --connect`"
        )
        super().__init__(msg)


class TopicPartition(NamedTuple):
    """A partition of a topic.

    Examples
    --------
    >>> scores = TopicPartition("scores", 2)
    >>> print(scores, scores.at(17))
    scores[2] scores[2]@17
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return the name that messages use."""
        return f"{self.topic}[{self.partition}]"

    def at(self, offset: int) -> str:
        """Return the name of a record."""
        return f"{self}@{offset}"


class Record(Protocol):
    """A record that was read."""

    @property
    def topic(self) -> str:
        """Name of the topic."""

    @property
    def partition(self) -> int:
        """Number of the partition."""

    @property
    def offset(self) -> int:
        """Offset in the partition."""

    @property
    def timestamp(self) -> int:
        """Timestamp in milliseconds; -1 without one."""

    @property
    def key(self) -> bytes | None:
        """Key, or None."""

    @property
    def value(self) -> bytes | None:
        """Value; None for a tombstone."""

    @property
    def headers(self) -> Headers:
        """Names and values of the headers; `BadHeaders` if the client cannot decode them."""


class FetchedRecord(msgspec.Struct, gc=False):
    """A `Record`, made of its parts."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class BadHeaders(tuple[tuple[str, bytes | None], ...]):
    """The headers of a record with a name that is not UTF-8; empty, as the headers are lost."""

    __slots__ = ()


def sizes_of(records: Iterable[Record]) -> list[int]:
    """Return about how many bytes of memory each record takes; limits of bytes use this size."""
    return [
        _RECORD
        + len(one.key or b"")
        + len(one.value or b"")
        + (_size_of_headers(one.headers) if one.headers else 0)
        for one in records
    ]


def _size_of_headers(headers: Headers) -> int:
    return sum(_HEADER + len(name) + len(value or b"") for name, value in headers)


class OffsetRange(NamedTuple):
    """Offsets of a partition, from `start` to before `end`."""

    start: int
    end: int


class CommittedOffset(NamedTuple):
    """An offset that a group committed, with the text that was committed with it."""

    offset: int
    note: str = ""


class FetchPosition(NamedTuple):
    """How far a consumer has read a partition; None for what is unknown."""

    position: int | None  # offset of the next record
    end: int | None  # of the partition as far as the consumer knows, open transactions included

    @property
    def lag(self) -> int | None:
        """Number of offsets that follow; None if it is unknown."""
        known = self.position is not None and self.end is not None
        return self.end - self.position if known else None  # type: ignore[operator]


class GroupMembership(NamedTuple):
    """The membership of a consumer in its group, and its partitions."""

    epoch: int  # grows with every change of the assignment
    assigned: frozenset[TopicPartition]
    group_metadata: object | None  # for `Producer.commit`; None while the membership is not stable
    last_heartbeat: float  # the brokers' last answer for the group, by the monotonic clock


class Consumer(Protocol):
    """Reads committed records of the input topics as a member of the consumer group.

    Calls about a partition that is no longer assigned do nothing.
    """

    def poll(self, seconds: float, max_records: int) -> Mapping[TopicPartition, Sequence[Record]]:
        """Return the records that have arrived; the assignment changes only during this call.

        Raises a BrokerError if another process has taken this member's place in the group.
        """

    def membership(self) -> GroupMembership:
        """Return the current assignment."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at an offset."""

    def fetch_position(self, partition: TopicPartition) -> FetchPosition:
        """Return how far a partition has been read."""

    def pause(self, partition: TopicPartition) -> None:
        """Stop fetching a partition."""

    def resume(self, partition: TopicPartition) -> None:
        """Fetch a paused partition again."""

    def close(self) -> None:
        """Close the client, but stay a member of the group until the session times out."""

    def leave(self) -> None:
        """Close the client and leave the group."""


class Producer(Protocol):
    """Writes records in transactions."""

    def begin(self) -> None:
        """Begin a transaction."""

    def send(
        self,
        to: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int | None = None,
    ) -> None:
        """Send a record in the open transaction."""

    def send_tracked(self, to: TopicPartition, value: bytes) -> Callable[[], int]:
        """Send a value in the open transaction; the result returns its offset after the commit."""

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        group_metadata: object,
        notes: Mapping[TopicPartition, str] = NO_NOTES,
    ) -> None:
        """Commit the transaction together with input offsets, some of them with a text.

        Raises a TransactionError if the transaction was aborted instead, and a RefusedRecordError
        if it always will be.
        """

    def abort(self) -> None:
        """Abort the open transaction: nothing of it was written."""

    def leaderless(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions without a leader, as of the last metadata; never waits."""

    def close(self) -> None:
        """Close the client; the broker aborts an open transaction."""


class Reader(Protocol):
    """Reads partitions without being a member of the group."""

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions of a topic; 0 if there is no topic."""

    def topic_ids(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return the ids of topics, "" where unknown; a topic that is made anew gets another id."""

    def committed(self, partition: TopicPartition) -> int | None:
        """Return the offset that the group committed, once no transaction on it is open."""

    def all_committed(
        self, partitions: Sequence[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, CommittedOffset]:
        """Return the offsets that the group committed of partitions, by one request.

        With `stable` it waits until no transaction on them is open.
        """

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return the first offset and the end, open transactions included."""

    def last_stable_offset(self, partition: TopicPartition) -> int:
        """Return the offset before which all transactions have ended."""

    def last_stable_offsets(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return the `last_stable_offset` of each partition."""

    def offset_for_time(self, partition: TopicPartition, time: int) -> int | None:
        """Return the offset of the first record at or after a time, or None."""

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[Sequence[Record]]:
        """Yield the committed records of a range of offsets, waiting for them.

        While nothing arrives it yields empty sequences, so that the caller keeps control.
        """

    def close(self) -> None:
        """Close the client."""


class ConsumerOptions(TypedDict):
    """How a consumer is a member of its group.

    Attributes
    ----------
    session_timeout
        Seconds without a heartbeat after which another member takes over.
    grows
        Whether partitions may be added, which are found within some seconds, and the topics may
        have different numbers of partitions; by default False.
    """

    session_timeout: float
    grows: NotRequired[bool]


class ProducerOptions(TypedDict):
    """How a producer writes, and for which topics.

    Attributes
    ----------
    topics, group
        The topics that it writes, and the group of the offsets that it commits.
    timeout
        Seconds after which the broker aborts a transaction that is left open.
    compression
        Compression of the records; "none" for none.
    largest
        Bytes of the largest record; by default `LARGEST`.
    """

    topics: Sequence[str]
    group: str
    timeout: float
    compression: str
    largest: NotRequired[int]


class Transport(Protocol):
    """A Kafka client, connected as the configuration says."""

    def reader(self, group: str) -> Reader:
        """Open a reader that knows the committed offsets of a group."""

    def producer(self, transactional_id: str, **options: Unpack[ProducerOptions]) -> Producer:
        """Open a producer, which fences earlier producers of its id; see `ProducerOptions`."""

    def consumer(
        self,
        topics: Sequence[str],
        group: str,
        instance: str,
        **options: Unpack[ConsumerOptions],
    ) -> Consumer:
        """Join a consumer group.

        Open the producer after this, as it fences.

        Parameters
        ----------
        topics
            The topics to read; partitions of the same number go to the same member, if all topics
            have them.
        group, instance
            Group, and the static name of this member.
        options
            See `ConsumerOptions`.

        Raises
        ------
        BrokerError
            If the brokers refuse a second member of this name.
        """


def open_transport(kafka: KafkaSection, watchdog: Watchdog) -> Transport:
    """Load the Kafka client that the configuration names; the watchdog watches its calls."""
    module = import_module(TRANSPORTS[kafka.client])
    return cast("Transport", module.open_transport(kafka, watchdog))
