"""The router: it writes each record of the inputs to the partition that owns the slot of its model.

It reads the inputs in a group of its own, merges its partitions by timestamp, and commits records
and input offsets in one transaction. It has no state but these offsets. After an aborted
transaction or a rebalance it reads again from what is committed.
"""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from itertools import repeat
from typing import TYPE_CHECKING

from abers_connectors.runtime.batch_buffer import BatchBuffer
from abers_connectors.runtime.group_watch import GroupWatch
from abers_connectors.runtime.model_routes import UNREAD, Routes
from abers_connectors.runtime.routed_record import ORIGIN, Beginning, RoutedOrigin, encoded_origins
from abers_connectors.runtime.router_alignment import RouterAlignment
from abers_connectors.runtime.status import ROUTER
from abers_connectors.runtime.transport import (
    LARGEST,
    BadHeaders,
    TopicPartition,
    TransactionError,
    sizes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.batch_buffer import BatchLimits
    from abers_connectors.runtime.model_routes import ModelRouting
    from abers_connectors.runtime.router_start import RouterStart
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.timestamp_merge import MergedRecords
    from abers_connectors.runtime.transport import (
        Consumer,
        GroupMembership,
        Headers,
        Producer,
        Reader,
        Record,
    )

__all__ = ["Router"]

_log = logging.getLogger(__name__)

_NO_EPOCH = -1  # differs from all epochs, so that the next turn begins anew
_POLLED_BATCHES = 4  # batches of records that one poll may return
_MERGED = 0  # the number of the only sequence of records in the buffer
_INTERVAL = 1.0  # seconds between two updates of the lags
_LIVE = 1.0  # seconds after a record in which the next is waited for closely
_CLOSE, _IDLE = 0.005, 0.05  # seconds that a stage may wait; kafka-python reads nothing in none


class Router:
    """One process of an application that routes.

    `start` finds where to read. The router fails if it is outside its group for more than
    `stall_timeout` seconds. In a backlog it waits for other routers that are behind, but not for
    one without progress for `patience` seconds. Of a record with more than `largest` bytes only the
    beginning is routed.
    """

    def __init__(  # noqa: PLR0913 - the parts of a service
        self,
        application: Application,
        *,
        consumer: Consumer,
        producer: Producer,
        reader: Reader,
        start: RouterStart,
        routing: ModelRouting,
        limits: BatchLimits,
        stall_timeout: float,
        status: Status,
        patience: float,
        largest: int = LARGEST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._application, self._clock = application, clock
        self.status = status
        self._consumer, self._producer, self._reader = consumer, producer, reader
        self._routing, self._start = routing, start
        self.housekeeping: Callable[[], object] = lambda: None
        """Called after each turn."""
        self._seat = status.seats[ROUTER]
        self._group = GroupWatch(application.router_group, stall_timeout, clock)
        self._buffer = BatchBuffer(consumer, limits, clock)
        self._limits, self._largest = limits, largest
        self._max_records = _POLLED_BATCHES * limits.records
        (topic,) = application.inputs
        self._targets = [TopicPartition(topic, n) for n in range(reader.partition_count(topic))]
        self._inputs: list[TopicPartition] = []  # by their numbers in the merge
        self._offsets: dict[TopicPartition, int] = {}  # of each, that are committed
        self._alignment = RouterAlignment(reader, patience, clock)
        self._published = -math.inf  # the time that other routers know
        self._span = 0  # of the times of the last batch
        self._epoch = _NO_EPOCH  # of the membership for which the inputs were sought
        self._last = self._updated = clock()  # when a record was routed, and the status updated
        self._stopping = False

    def stop(self) -> None:
        """Finish the current batch, and end `run`; safe to call in a signal handler."""
        self._stopping = True

    def run(self) -> None:
        """Route records until `stop` is called.

        Raises a StateError if records are lost, and a BrokerError if the broker or the membership
        is lost.
        """
        while not self._stopping:
            self.turn()

    def alongside(self) -> float:
        """Route what has arrived; return the seconds that another stage may wait then."""
        self.turn(_CLOSE)
        live = self._clock() - self._last < _LIVE
        return min(_CLOSE if live else _IDLE, self._buffer.poll_timeout(joined=self._group.joined))

    def turn(self, seconds: float = _IDLE) -> None:
        """Poll once for so many seconds at most, and route and commit a batch if one is due."""
        timeout = min(seconds, self._buffer.poll_timeout(joined=self._group.joined))
        polled = self._consumer.poll(timeout, self._max_records)
        self.status.progressed()
        membership = self._consumer.membership()
        self._group.require(membership)
        try:
            if membership.epoch == self._epoch:
                self._take(polled, membership)
            else:
                self._begin(membership)
        except TransactionError as error:
            _log.warning("%s; reading the inputs again", error)
            self.status.transaction_aborted(str(error), ROUTER)
            self._epoch = _NO_EPOCH
        self._update(membership)
        self.housekeeping()

    def _update(self, membership: GroupMembership) -> None:
        seat, now = self._seat, self._clock()
        seat.joined = membership.group_metadata is not None and membership.epoch == self._epoch
        seat.last_heartbeat = membership.last_heartbeat
        if now - self._updated >= _INTERVAL:
            self._updated = now
            lags = {one: self._consumer.fetch_position(one).lag for one in self._inputs}
            self.status.update_router_lags(
                {one: lag for one, lag in lags.items() if lag is not None}
            )

    def _take(
        self, polled: Mapping[TopicPartition, Sequence[Record]], membership: GroupMembership
    ) -> None:
        """Take records that were polled, and route and commit a batch if one is due."""
        self._buffer.until = self._farthest()
        self._buffer.add(polled)
        metadata = membership.group_metadata
        if metadata is None:
            return
        if self._buffer.due():
            for _, batch in self._buffer.take():
                self._process(batch, metadata)
        elif not self._alignment.alone:
            self._publish(metadata)

    def _farthest(self) -> float:
        """Return the timestamp up to which records may be routed: in a backlog not all."""
        if self._alignment.alone or not self._is_behind():
            return math.inf
        return self._alignment.reached() + self._span

    def _is_behind(self) -> bool:
        """Return whether more records wait than a batch holds, as far as is known."""
        waiting = self._buffer.queued()
        for one in self._inputs:
            lag = self._consumer.fetch_position(one).lag
            waiting += self._max_records if lag is None else lag
        return waiting > self._limits.records

    def _publish(self, group_metadata: object) -> None:
        """Commit how far this router is, if others may wait for that, without a record."""
        head = self._buffer.head(_MERGED)
        ended = head is None and not self._buffer.queued()
        if head is not None and head <= self._published:
            return
        offsets = self._offsets | (self._positions() if ended else {})
        if head is None and offsets == self._offsets:
            return
        if head is not None:
            self._published = head
        self._producer.begin()
        self._producer.commit(offsets, group_metadata, self._notes(offsets))
        self._offsets = offsets

    def _positions(self) -> dict[TopicPartition, int]:
        """Return the ends of inputs that were read, behind the marks of transactions there."""
        found = {one: self._consumer.fetch_position(one) for one in self._inputs}
        return {
            one: at.position
            for one, at in found.items()
            if at.position is not None and at.lag is not None and at.lag <= 0
        }

    def _notes(self, offsets: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Return what to commit with offsets: the time that was reached."""
        known = self._published > -math.inf and not self._alignment.alone
        return dict.fromkeys(offsets, str(int(self._published))) if known else {}

    def _begin(self, membership: GroupMembership) -> None:
        """Read all inputs that are assigned from their offsets."""
        self._buffer.clear()
        for one in membership.assigned:
            self._consumer.pause(one)
        offsets = self._start.offsets(membership)
        if offsets is None:
            return
        ends = self._reader.last_stable_offsets([*offsets])
        self._epoch = membership.epoch
        topics = self._application.sources
        self._offsets, self._published = dict(offsets), -math.inf
        self._alignment.begin(self._start.inputs, self._offsets)
        self._inputs = sorted(offsets, key=lambda one: (topics.index(one.topic), one.partition))
        if self._inputs:
            self._buffer.add_task(_MERGED, {one: ends[one] for one in self._inputs})
        for one in self._inputs:
            self._consumer.seek(one, offsets[one])
            self._consumer.resume(one)

    def _process(self, batch: MergedRecords, group_metadata: object) -> None:
        """Route a batch, and commit it in one transaction."""
        began = self._clock()
        topics = self._application.sources
        of_merge = [topics.index(one.topic) for one in self._inputs]
        inputs = [of_merge[one] for one in batch.inputs]
        self._routing.prepare(batch.records, inputs, self.status.progressed)
        routes = self._routing.route(batch.records, inputs)
        self._producer.begin()
        self._send(routes)
        self._offsets |= (following := self._following(batch))
        times = [one.timestamp for one in batch.records]
        self._span = max(times) - min(times)
        if not self._alignment.alone:
            following = self._offsets  # the others are at that time, too
            self._published = max(self._published, self._buffer.head(_MERGED) or times[-1])
        self._producer.commit(following, group_metadata, self._notes(following))
        self._last = self._clock()
        self.status.routed(routes.inputs)
        self.status.transaction_committed(self._last - began, ROUTER)

    def _following(self, batch: MergedRecords) -> dict[TopicPartition, int]:
        """Return the offsets after a batch."""
        backwards = batch.inputs[::-1]
        return {
            self._inputs[which]: batch.records[-1 - backwards.index(which)].offset + 1
            for which in {*backwards}
        }

    def _send(self, routes: Routes) -> None:
        """Send records, each with its origin; `map` calls for half the price of a loop."""
        sizes = sizes_of(routes.records)
        if max(sizes, default=0) > self._largest:
            routes = _cut(routes, sizes, self._largest)
        records = routes.records
        columns = (
            [self._targets[one] for one in routes.partitions],
            [one.key for one in records],
            [one.value for one in records],
            _headers(routes),
            [one.timestamp if one.timestamp >= 0 else None for one in records],
        )
        deque(map(self._producer.send, *columns), maxlen=0)


def _cut(routes: Routes, sizes: Sequence[int], largest: int) -> Routes:
    """Return records with the beginning of each that is too large, which is unread then."""
    rows = [row for row, size in enumerate(sizes) if size > largest]
    records, partitions = [*routes.records], [*routes.partitions]
    for row in rows:
        records[row] = Beginning.of(records[row], sizes[row])
        partitions[row] = UNREAD
    return Routes(records, routes.inputs, partitions, sorted({*routes.unread, *rows}))


def _headers(routes: Routes) -> list[Headers]:
    """Return the headers of records, with their origins last."""
    records, inputs = routes.records, routes.inputs
    encoded = encoded_origins(records, inputs)
    given = [one.headers for one in records]
    odd = {*routes.unread}
    if BadHeaders in {*map(type, given)}:
        odd |= {row for row, some in enumerate(given) if type(some) is BadHeaders}
    for row in odd:
        one = records[row]
        encoded[row] = RoutedOrigin(
            inputs[row],
            one.partition,
            one.offset,
            one.timestamp,
            unread=row in routes.unread,
            bad_headers=type(one.headers) is BadHeaders,
            whole=one.whole if isinstance(one, Beginning) else 0,
        ).encoded()
    if not any(given):
        return [[one] for one in zip(repeat(ORIGIN), encoded)]
    return [[*some, (ORIGIN, origin)] for some, origin in zip(given, encoded, strict=True)]
