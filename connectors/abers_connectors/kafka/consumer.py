"""Member of the consumer group.

The assignment is what the listener was last called with. Calls about a partition that was revoked
a moment ago do nothing.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from kafka import ConsumerRebalanceListener, errors
from kafka.coordinator.assignors.range import RangePartitionAssignor

from abers_connectors.kafka import workarounds
from abers_connectors.kafka.assignor import StickyAssignor
from abers_connectors.kafka.client_errors import translated_errors
from abers_connectors.kafka.connection import new_consumer, to_client
from abers_connectors.kafka.membership import remove_member
from abers_connectors.runtime.transport import FetchPosition, GroupMembership, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from abers_connectors.runtime.transport import Record
    from abers_connectors.runtime.watchdog import Watchdog

__all__ = ["GroupConsumer"]

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

    def __init__(  # noqa: PLR0913 - the identity of a member
        self,
        topics: Sequence[str],
        group: str,
        instance: str,
        *,
        session_timeout: float,
        grows: bool = False,
        settings: Mapping[str, Any],
        watchdog: Watchdog,
    ) -> None:
        self._watchdog, self._listener = watchdog, _AssignmentListener()
        self._group, self._instance, self._settings = group, instance, settings
        self._session_timeout = session_timeout
        self._sought = set[tuple[int, TopicPartition]]()
        with watchdog.call("connect"), translated_errors("connecting"):
            self._consumer = new_consumer(
                settings,
                group_id=group,
                group_instance_id=instance,
                partition_assignment_strategy=ASSIGNORS,
                session_timeout_ms=int(1000 * session_timeout),
                heartbeat_interval_ms=int(1000 * min(session_timeout / 4, _HEARTBEAT)),
                **({"metadata_max_age_ms": _GROWTH} if grows else {}),
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
