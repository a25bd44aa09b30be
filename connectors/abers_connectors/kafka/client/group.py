"""A member of the group.

Governing rule: what is owned is what the listener was told last; a partition
that moved away a moment ago is left alone, and nothing here fails for it.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer
from kafka import errors as told
from kafka.admin import MemberToRemove
from kafka.coordinator.assignors.range import RangePartitionAssignor

from abers_connectors.kafka.client._common import FETCH_WAIT, to_client, translated
from abers_connectors.kafka.client.mending import unhurried
from abers_connectors.kafka.transport import Membership, Partition, Reached

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka import TopicPartition

    from abers_connectors.kafka.transport import Record
    from abers_connectors.kafka.watchdog import Watchdog

__all__ = ["Group"]

_STABLE = "<stable>"
_HEARTBEAT = 3  # seconds at most until a member hears that others come or go

# What the client says of a partition that moved away a moment ago, in a thread of its own.
_GONE = (told.IllegalStateError, ValueError, KeyError)


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
        self._session = session
        self._sought = set[tuple[int, Partition]]()
        with watchdog.call("connect"), translated("connecting"):
            self._consumer = unhurried(
                KafkaConsumer(
                    group_id=group,
                    group_instance_id=instance,
                    isolation_level="read_committed",
                    enable_auto_commit=False,
                    auto_offset_reset="none",
                    allow_auto_create_topics=False,
                    # The only assignor that gives a member the same partitions of both topics.
                    partition_assignment_strategy=(RangePartitionAssignor,),
                    session_timeout_ms=int(1000 * session),
                    heartbeat_interval_ms=int(1000 * min(session / 4, _HEARTBEAT)),
                    fetch_max_wait_ms=FETCH_WAIT,
                    metrics_enabled=False,
                    **settings,
                )
            )
            self._consumer.subscribe(list(topics), listener=self._listener)
        # A poll would end when a heartbeat is due, and where one is overdue it would not wait at
        # all, which burns a core; heartbeats are sent by a task that needs no poll.
        self._consumer._coordinator.time_to_next_poll = lambda: math.inf  # noqa: SLF001

    def poll(self, seconds: float, most: int) -> Mapping[Partition, Sequence[Record]]:
        """Give what has come; only here may the assignment change.

        A BrokerError if another process took the seat in the group.
        """
        with self._watchdog.call("poll"), translated("reading"):
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
        self._require_seat()
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

    def _require_seat(self) -> None:
        """Refuse to go on where the brokers refused a heartbeat: another process has our name.

        kafka-python 3.0.12 then sends no more of them, tells nobody, and stays as it was; at any
        other time it stops sending only while it joins.
        """
        coordinator = self._consumer._coordinator  # noqa: SLF001 - there is no other way
        with translated("staying in the group"), coordinator._lock:  # noqa: SLF001
            silent = not coordinator._heartbeat_enabled  # noqa: SLF001
            if silent and coordinator.stable() and not coordinator.rejoining:
                raise told.FencedInstanceIdError

    def membership(self) -> Membership:
        """Say what is owned now."""
        while True:
            epoch, assigned = self._listener.state()
            proof = self._consumer.group_metadata()
            if self._listener.state()[0] == epoch:
                heard = self._heard()
                # A broker that is gone leaves the client stable as it was, with nobody to ask, and
                # so does one that hangs, with no answer.
                known = not self._consumer._coordinator.coordinator_unknown()  # noqa: SLF001
                known = known and time.monotonic() - heard <= self._session
                stable = known and proof.generation_id >= 0 and proof.state == _STABLE
                return Membership(epoch, assigned, proof if stable else None, heard)

    def _heard(self) -> float:
        """Give when a heartbeat was answered, or the group was found or joined."""
        heartbeat = self._consumer._coordinator.heartbeat  # noqa: SLF001 - there is no other way
        return float(max(heartbeat.last_receive, heartbeat.last_reset))

    def seek(self, partition: Partition, offset: int) -> None:
        """Read on from an offset; what is no longer owned is left alone."""
        self._sought.add(self._now(*partition))
        with suppress(*_GONE):
            self._consumer.seek(to_client(partition), offset)

    def _now(self, topic: str, number: int) -> tuple[int, Partition]:
        """Name a partition as it is in this assignment."""
        return self._listener.state()[0], Partition(topic, number)

    def reached(self, partition: Partition) -> Reached:
        """Say how far it has been read."""
        known = to_client(partition)
        try:
            end = self._consumer.highwater(known)
            position = self._consumer.position(known, timeout_ms=0)
        except (*_GONE, told.NoOffsetForPartitionError):
            return Reached(None, None)  # no longer, or not yet
        return Reached(position, end)

    def pause(self, partition: Partition) -> None:
        """Fetch no more of a partition; what is no longer owned is left alone."""
        with suppress(*_GONE):
            self._consumer.pause(to_client(partition))

    def resume(self, partition: Partition) -> None:
        """Fetch it again; what is no longer owned is left alone."""
        with suppress(*_GONE):
            self._consumer.resume(to_client(partition))

    def close(self) -> None:
        """Close, keeping the seat in the group."""
        with self._watchdog.call("close"), translated("closing"):
            self._consumer.close(autocommit=False)

    def leave(self) -> None:
        """Close, and give the seat in the group up."""
        self.close()
        with self._watchdog.call("leave"), translated("leaving the group"):
            admin = KafkaAdminClient(**self._settings)
            admin.remove_group_members(
                self._group, [MemberToRemove(group_instance_id=self._instance)]
            )
            admin.close()
