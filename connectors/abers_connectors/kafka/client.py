"""kafka-python behind the protocols of `transport`.

Governing rule: every call that waits for a broker is watched, and every error
of the client leaves as one of ours: a TransactionError where memory is to be
thrown away and read again, a BrokerError where the process had better end.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from kafka import (
    ConsumerRebalanceListener,
    KafkaAdminClient,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka import errors as told
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.range import RangePartitionAssignor

from abers.exceptions import BrokerError, ConfigError
from abers_connectors.kafka.client_settings import reaching
from abers_connectors.kafka.home import named
from abers_connectors.kafka.transport import (
    Bounds,
    Membership,
    Partition,
    Reached,
    TransactionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.kafka.transport import Record
    from abers_connectors.kafka.watchdog import Watchdog

__all__ = ["Group", "Log", "Transactions"]

_FETCH_WAIT = 100  # ms that a broker holds a fetch: what is resumed waits no longer than this
_PATIENCE = 200  # ms of one look at what has come
_FAREWELL = 5  # seconds for what is under way when a producer is closed
_STABLE = "<stable>"

# What the client says of a partition that moved away a moment ago, in a thread of its own.
_GONE = (told.IllegalStateError, ValueError, KeyError)

# After these another owner, or another one of us, has what was ours.
_FENCED = (
    told.ProducerFencedError,
    told.InvalidProducerEpochError,
    told.FencedInstanceIdError,
    told.TransactionCoordinatorFencedError,
)


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    try:
        yield
    except told.OffsetOutOfRangeError as error:
        raise _lost(error) from error
    except _FENCED as error:
        msg = (
            f"{doing}: another process took the place of this one ({type(error).__name__}); "
            "see that no two have the same kafka.instance"
        )
        raise BrokerError(msg) from error
    except told.AuthorizationError as error:
        msg = (
            f"{doing}: a permission is missing ({type(error).__name__}); "
            "`abers check --connect` says which"
        )
        raise ConfigError([msg]) from error
    except told.KafkaError as error:
        msg = f"{doing}: {error or type(error).__name__}"
        raise BrokerError(msg) from error


def _lost(error: told.OffsetOutOfRangeError) -> BrokerError:
    """Tell what is gone; whoever starts again sees how to go on (`losing`)."""
    places = ", ".join(
        f"{one.topic}[{one.partition}]@{offset}" for one, offset in dict(error.args[0]).items()
    )
    msg = f"{places}: the topic has no such offset; records were deleted before they were read"
    return BrokerError(msg)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # has no types
    """Notes what happens to the assignment; it is called in a thread of the client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._epoch, self._assigned = 0, frozenset[Partition]()

    def state(self) -> tuple[int, frozenset[Partition]]:
        with self._lock:
            return self._epoch, self._assigned

    def on_partitions_revoked(self, revoked: object) -> None:
        del revoked  # the protocol is eager: all of them
        self._note(frozenset())

    def on_partitions_assigned(self, assigned: Sequence[TopicPartition]) -> None:
        self._note(frozenset(Partition(*one) for one in assigned))

    def on_partitions_lost(self, lost: object) -> None:
        del lost
        self._note(frozenset())

    def _note(self, assigned: frozenset[Partition]) -> None:
        with self._lock:
            self._epoch += 1
            self._assigned = assigned


class _Answer:
    """A join that is under way, whose answer counts although nobody waited as it came.

    Of one that comes between two polls kafka-python 3.0.12 makes nothing: it joins again, which
    begins another rebalance of the whole group, or, where it takes itself for joined as soon as
    the broker has answered, waits for ever for what it was told.

    Parameters
    ----------
    future
        The client's own.
    """

    is_done = False  # not for the client, until it has been told

    def __init__(self, future: Any) -> None:  # noqa: ANN401 - has no types
        self.add_callback, self.add_errback = future.add_callback, future.add_errback
        self._future = future

    def __await__(self) -> Any:  # noqa: ANN401 - has no types
        return self._future.__await__()

    @property
    def came(self) -> bool:
        """Whether the broker has answered."""
        return bool(self._future.is_done)


class Group:
    """A member of the consumer group; a `transport.Consumer`.

    Parameters
    ----------
    topics
        The inputs.
    group, instance
        Names of the group and of this member, which is the same one after a restart.
    session
        Seconds without a sign of life after which another member takes over.
    settings
        Of the client: servers and security.
    watchdog
        Watches the calls.
    """

    def __init__(  # noqa: PLR0913 - what a member is
        self,
        topics: Sequence[str],
        group: str,
        instance: str,
        *,
        session: float,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog, self._listener = watchdog, _Listener()
        self._group, self._instance, self._settings = group, instance, settings
        self._sought = set[tuple[int, Partition]]()
        with watchdog.call("connect"), _translated("connecting"):
            self._consumer = KafkaConsumer(
                group_id=group,
                group_instance_id=instance,
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="none",
                allow_auto_create_topics=False,
                # The only assignor that gives a member the same partitions of both topics.
                partition_assignment_strategy=(RangePartitionAssignor,),
                session_timeout_ms=int(1000 * session),
                heartbeat_interval_ms=int(1000 * session / 4),
                fetch_max_wait_ms=_FETCH_WAIT,
                metrics_enabled=False,
                **settings,
            )
            self._consumer.subscribe(list(topics), listener=self._listener)

    def poll(self, seconds: float, most: int) -> Mapping[Partition, Sequence[Record]]:
        """Give what has come; only here may the assignment change."""
        with self._watchdog.call("poll"), _translated("reading"):
            self._unpark()
            self._take_answer()
            try:
                found = self._consumer.poll(int(1000 * seconds), max_records=most)
            except told.NoOffsetForPartitionError:
                found = {}  # just assigned, and not yet sought
            except told.OffsetOutOfRangeError as error:
                if not self._sought.isdisjoint(self._now(*one) for one in dict(error.args[0])):
                    raise
                found = {}  # it began by itself where the group was, and is not yet sought
            finally:
                self._keep_answer()
        return cast("Mapping[Partition, Sequence[Record]]", found)

    def _unpark(self) -> None:
        """Have the records of a resumed partition given.

        kafka-python 3.0.12 looks for them only where nothing is in line, and takes for something
        what was in line and is used up; if nothing else is fetched, they would never come.
        """
        fetcher = self._consumer._fetcher  # noqa: SLF001 - there is no other way
        if not fetcher._next_partition_records:  # noqa: SLF001
            fetcher._next_partition_records = None  # noqa: SLF001

    def _take_answer(self) -> None:
        """Have the answer looked at that came since the last poll."""
        coordinator = self._consumer._coordinator  # noqa: SLF001 - there is no other way
        task = coordinator._join_task  # noqa: SLF001
        if isinstance(task, _Answer) and task.came:
            coordinator.request_rejoin()

    def _keep_answer(self) -> None:
        """Have the answer kept that comes before the next poll."""
        coordinator = self._consumer._coordinator  # noqa: SLF001 - there is no other way
        task = coordinator._join_task  # noqa: SLF001
        if task is not None and not isinstance(task, _Answer):
            coordinator._join_task = _Answer(task)  # noqa: SLF001

    def membership(self) -> Membership:
        """Say what is owned now."""
        while True:
            epoch, assigned = self._listener.state()
            proof = self._consumer.group_metadata()
            if self._listener.state()[0] == epoch:
                # A broker that is gone leaves the client stable as it was, with nobody to ask.
                known = not self._consumer._coordinator.coordinator_unknown()  # noqa: SLF001
                stable = known and proof.generation_id >= 0 and proof.state == _STABLE
                return Membership(epoch, assigned, proof if stable else None)

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from an offset; what is no longer owned is left alone."""
        self._sought.add(self._now(*partition))
        with suppress(*_GONE):
            self._consumer.seek(_known(partition), offset)

    def _now(self, topic: str, number: int) -> tuple[int, Partition]:
        """Name a partition as it is in this assignment."""
        return self._listener.state()[0], Partition(topic, number)

    def reached(self, partition: Partition) -> Reached:
        """Say how far it has been read."""
        known = _known(partition)
        try:
            end = self._consumer.highwater(known)
            position = self._consumer.position(known, timeout_ms=0)
        except (*_GONE, told.NoOffsetForPartitionError):
            return Reached(None, None)  # no longer, or not yet
        return Reached(position, end)

    def pause(self, partition: Partition) -> None:
        """Fetch no more of a partition; what is no longer owned is left alone."""
        with suppress(*_GONE):
            self._consumer.pause(_known(partition))

    def resume(self, partition: Partition) -> None:
        """Fetch it again; what is no longer owned is left alone."""
        with suppress(*_GONE):
            self._consumer.resume(_known(partition))

    def close(self) -> None:
        """Close, keeping the seat in the group."""
        with self._watchdog.call("close"), _translated("closing"):
            self._consumer.close(autocommit=False)

    def leave(self) -> None:
        """Close, and give the seat in the group up."""
        self.close()
        with self._watchdog.call("leave"), _translated("leaving the group"):
            admin = KafkaAdminClient(**self._settings)
            admin.remove_group_members(
                self._group, [MemberToRemove(group_instance_id=self._instance)]
            )
            admin.close()


class Transactions:
    """A `transport.Producer`.

    Parameters
    ----------
    identity
        Its transactional id: whoever comes with the same one fences the one before.
    timeout
        Seconds after which the broker aborts a transaction that is left open.
    compression
        Of the records; "none" for none.
    settings, watchdog
        As of `Group`.
    """

    def __init__(
        self,
        identity: str,
        *,
        timeout: float,
        compression: str,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog = watchdog
        self._settings = {
            "transactional_id": identity,
            "transaction_timeout_ms": int(1000 * timeout),
            "compression_type": None if compression == "none" else compression,
            "allow_auto_create_topics": False,
            "batch_size": 1 << 19,
            "linger_ms": 1000,  # a commit sends what is there
            # A transaction that begins before the last is through is told to retry.
            "retry_backoff_ms": 5,
            "metrics_enabled": False,
            **settings,
        }
        self._producer = self._connected()

    def _connected(self) -> Any:  # noqa: ANN401 - has no types
        """Make a client; the broker aborts what one of the same identity left open."""
        with self._watchdog.call("connect"), _translated("connecting"):
            producer = KafkaProducer(**self._settings)
            producer.init_transactions()
        return producer

    def begin(self) -> None:
        """Begin a transaction."""
        with _translated("beginning a transaction"):
            self._producer.begin_transaction()

    def send(
        self,
        to: Partition,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
        timestamp: int | None = None,
    ) -> Callable[[], int]:
        """Send a record in the open transaction; after its commit the call tells its offset."""
        try:
            future = self._producer.send(to.topic, value, key, list(headers), to.number, timestamp)
        except told.KafkaError:  # a context for each of so many records would take its time
            with self._aborting(f"writing to {named(to)}"):
                raise
        return lambda: cast("int", future.get(timeout=0).offset)

    def commit(self, offsets: Mapping[Partition, int], proof: object) -> None:
        """Commit it with input offsets; a TransactionError if nothing of it happened."""
        next_ones = {_known(one): OffsetAndMetadata(offset) for one, offset in offsets.items()}
        with self._aborting("committing"):
            with self._watchdog.call("send offsets"):
                self._producer.send_offsets_to_transaction(next_ones, proof)
            with self._watchdog.call("commit"):
                self._producer.commit_transaction()

    def partitions(self, topic: str) -> int:
        """Count the partitions of a topic."""
        with self._watchdog.call("metadata"), _translated(f"topic {topic}"):
            return len(self._producer.partitions_for(topic))

    def close(self) -> None:
        """Close; an open transaction is aborted."""
        with self._watchdog.call("close"), suppress(told.KafkaError):  # nothing more is to be lost
            self._producer.close(timeout=_FAREWELL)

    @contextmanager
    def _aborting(self, doing: str) -> Iterator[None]:
        try:
            yield
        except _FENCED:
            with _translated(doing):
                raise
        except told.KafkaError as error:
            # The client would commit the offsets of what is aborted with its next transaction
            # (kafka-python 3.0.12), so it has none.
            with self._watchdog.call("abort"), _translated("aborting"):
                self._producer.abort_transaction()
            self.close()
            self._producer = self._connected()
            msg = f"{doing}: {error or type(error).__name__}; the transaction was aborted"
            raise TransactionError(msg) from error


class Log:
    """Reads partitions without being a member of the group; a `transport.Reader`.

    Parameters
    ----------
    group
        Whose committed offsets are asked for.
    settings, watchdog
        As of `Group`.
    """

    def __init__(self, group: str, *, settings: Mapping[str, Any], watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        common = {
            "enable_auto_commit": False,
            "auto_offset_reset": "none",
            "allow_auto_create_topics": False,
            "fetch_max_wait_ms": _FETCH_WAIT,
            "metrics_enabled": False,
            **settings,
        }
        # The first client of a service, so whatever is wrong with the way to the brokers shows.
        with watchdog.call("connect"), reaching(settings):
            # A member would do for the committed offsets, were it not that it answers with what
            # an earlier request of its own, given up by a poll, had found.
            self._committed = KafkaConsumer(
                group_id=group,
                isolation_level="read_committed",
                max_partition_fetch_bytes=8 << 20,
                **common,
            )
            # Asked of a reader of committed records only, an end hides what an open
            # transaction is in front of.
            self._all = KafkaConsumer(isolation_level="read_uncommitted", **common)

    def partitions(self, topic: str) -> int:
        """Count the partitions of a topic; 0 if there is no such topic."""
        with self._watchdog.call("metadata"), _translated(f"topic {topic}"):
            return len(self._all.partitions_for_topic(topic) or ())

    def committed(self, partition: Partition) -> int | None:
        """Give the offset that the group committed, after any open transaction has ended."""
        with self._watchdog.call("committed"), _translated(f"offset of {named(partition)}"):
            offset: int | None = self._committed.committed(_known(partition))
        return offset

    def bounds(self, partition: Partition) -> Bounds:
        """Give its bounds; the end counts open transactions."""
        known = _known(partition)
        with self._watchdog.call("bounds"), _translated(f"bounds of {named(partition)}"):
            start = self._all.beginning_offsets([known])[known]
            return Bounds(start, self._all.end_offsets([known])[known])

    def stable_end(self, partition: Partition) -> int:
        """Give the offset before which every transaction has ended."""
        known = _known(partition)
        with self._watchdog.call("end"), _translated(f"end of {named(partition)}"):
            end: int = self._committed.end_offsets([known])[known]
            return end

    def at_time(self, partition: Partition, time_: int) -> int | None:
        """Give the first offset whose record is of a time or later; None if there is none."""
        known = _known(partition)
        with self._watchdog.call("time"), _translated(f"a time of {named(partition)}"):
            found = self._all.offsets_for_times({known: time_})[known]
        return None if found is None else cast("int", found.offset)

    def read(self, partition: Partition, start: int, end: int) -> Iterator[Sequence[Record]]:
        """Give the committed records from one offset to before another, waiting for them."""
        known = _known(partition)
        self._committed.assign([known])
        self._committed.seek(known, start)
        position, moved = start, time.monotonic()
        while position < end:
            with self._watchdog.call("read"), _translated(f"reading {named(partition)}"):
                found = self._committed.poll(_PATIENCE).get(known, [])
                now_at = self._committed.position(known)
            if now_at > position:
                position, moved = now_at, time.monotonic()
            elif time.monotonic() - moved > self._watchdog.seconds:
                msg = (
                    f"{named(partition, position)}: nothing more comes, although there are "
                    f"records before @{end}; a transaction of another process is open there"
                )
                raise BrokerError(msg)
            yield [one for one in found if one.offset < end]

    def close(self) -> None:
        """Close."""
        with self._watchdog.call("close"), _translated("closing"):
            self._committed.close()
            self._all.close()


def _known(partition: Partition) -> TopicPartition:
    return TopicPartition(*partition)
