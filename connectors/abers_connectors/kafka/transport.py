"""What the service asks of a Kafka client.

Governing rule: this is all of it, so another client may take the place of the
one in `client`; no call returns before the broker has answered, and none waits
for ever: a broker that does not answer in time ends the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from abers.exceptions import BrokerError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

__all__ = [
    "Bounds",
    "Consumer",
    "Membership",
    "Partition",
    "Producer",
    "Reached",
    "Reader",
    "Record",
    "TransactionError",
]


class TransactionError(BrokerError):
    """A transaction was aborted, and nothing of it happened; what is in memory is not valid."""


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


class Record(Protocol):
    """A record as it was read; the timestamp in milliseconds, -1 if there is none."""

    @property
    def topic(self) -> str:
        """Its topic."""
        ...

    @property
    def partition(self) -> int:
        """Number of its partition."""
        ...

    @property
    def offset(self) -> int:
        """Its place there."""
        ...

    @property
    def timestamp(self) -> int:
        """In milliseconds; -1 if there is none."""
        ...

    @property
    def key(self) -> bytes | None:
        """None if it has none."""
        ...

    @property
    def value(self) -> bytes | None:
        """None of a tombstone."""
        ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """Names and values."""
        ...


class Bounds(NamedTuple):
    """The first offset of a partition that is there, and the next one to be written."""

    start: int
    end: int


class Reached(NamedTuple):
    """How far a partition has been read.

    Parameters
    ----------
    position
        The offset that is given next; None if that is not known.
    end
        The offset behind all that is known to be there, open transactions included; None
        before anything is known.
    """

    position: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """How many offsets are known to follow."""
        known = self.position is not None and self.end is not None
        return self.end - self.position if known else None  # type: ignore[operator]


class Membership(NamedTuple):
    """What a member of the group owns, and what proves to the broker that it still does.

    Parameters
    ----------
    epoch
        Grows with everything that happens to the assignment.
    assigned
        The partitions.
    proof
        What `Producer.commit` takes; None while there is no stable membership.
    heard
        When the brokers last answered for the group: monotonic, in seconds.
    """

    epoch: int
    assigned: frozenset[Partition]
    proof: object | None
    heard: float


class Consumer(Protocol):
    """Reads committed records of the input topics, as a member of the group."""

    def poll(self, seconds: float, most: int) -> Mapping[Partition, Sequence[Record]]:
        """Give what has come; only here may the assignment change.

        A BrokerError if another process took the seat in the group.
        """
        ...

    def membership(self) -> Membership:
        """Say what is owned now."""
        ...

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from an offset; what is no longer owned is left alone."""
        ...

    def reached(self, partition: Partition) -> Reached:
        """Say how far it has been read."""
        ...

    def pause(self, partition: Partition) -> None:
        """Fetch no more of a partition; what is no longer owned is left alone."""
        ...

    def resume(self, partition: Partition) -> None:
        """Fetch it again; what is no longer owned is left alone."""
        ...

    def close(self) -> None:
        """Close, keeping the seat in the group."""
        ...


class Producer(Protocol):
    """Writes in transactions."""

    def begin(self) -> None:
        """Begin a transaction."""
        ...

    def send(
        self,
        to: Partition,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp: int | None = None,
    ) -> Callable[[], int]:
        """Send a record in the open transaction; after its commit the call tells its offset."""
        ...

    def commit(self, offsets: Mapping[Partition, int], proof: object) -> None:
        """Commit it with input offsets; a TransactionError if nothing of it happened."""
        ...

    def leaderless(self, partitions: Collection[Partition]) -> list[Partition]:
        """Name those of which the brokers said lately that they have no leader; at once."""
        ...

    def close(self) -> None:
        """Close; an open transaction is aborted."""
        ...


class Reader(Protocol):
    """Reads partitions without being a member of the group."""

    def partitions(self, topic: str) -> int:
        """Count the partitions of a topic; 0 if there is no such topic."""
        ...

    def committed(self, partition: Partition) -> int | None:
        """Give the offset that the group committed, after any open transaction has ended."""
        ...

    def bounds(self, partition: Partition) -> Bounds:
        """Give its bounds; the end counts open transactions."""
        ...

    def stable_end(self, partition: Partition) -> int:
        """Give the offset before which every transaction has ended."""
        ...

    def at_time(self, partition: Partition, time: int) -> int | None:
        """Give the first offset whose record is of a time or later; None if there is none."""
        ...

    def read(self, partition: Partition, start: int, end: int) -> Iterator[Sequence[Record]]:
        """Give the committed records from one offset to before another, waiting for them.

        While nothing comes it gives nothing now and then, so that the caller may do something.
        """
        ...

    def close(self) -> None:
        """Close."""
        ...
