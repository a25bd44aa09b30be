"""The router: it writes each record of the inputs to the partition that owns the slot of its model.

It reads the inputs in a group of its own, merges its partitions by timestamp, and commits records
and input offsets in one transaction. All state follows from the records before these offsets. After
an aborted transaction or a rebalance it reads again from the committed offsets.

`RouterAlignment` keeps the routers of an application together in a backlog. Each router merges only
its own partitions by timestamp, so where many records wait, some would run ahead of others. So each
commits with its offsets the timestamp that it has reached, and reads those of all others. It does
not go ahead of the slowest by more than the span of a batch.

`RouterStart` finds where a router begins to read. `kafka.starting_offset` is for a group that never
committed: one member commits where all partitions begin, and the others wait for it. After that, a
partition without an offset is a new partition, and is read from its beginning.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, deque
from itertools import repeat
from typing import TYPE_CHECKING, Literal, NamedTuple

from abers.exceptions import StateError
from abers_connectors.runtime.application import (
    ORIGIN,
    Beginning,
    CommitNote,
    RoutedOrigin,
    encoded_origins,
)
from abers_connectors.runtime.batches import BatchBuffer, GroupWatch
from abers_connectors.runtime.model_routes import UNREAD, Routes
from abers_connectors.runtime.partition_count import offset_after_gap, require_copartitioned
from abers_connectors.runtime.restore import starting_offset
from abers_connectors.runtime.status import ROUTER
from abers_connectors.runtime.transport import (
    LARGEST,
    BadHeaders,
    CommittedOffset,
    TopicPartition,
    TransactionError,
    sizes_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from abers_connectors.config.sections import OffsetGapPolicy
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.batches import BatchLimits, MergedRecords
    from abers_connectors.runtime.model_routes import Routing
    from abers_connectors.runtime.status import Status
    from abers_connectors.runtime.transport import (
        Consumer,
        GroupMembership,
        Headers,
        Producer,
        Reader,
        Record,
    )

__all__ = ["Router", "RouterAlignment", "RouterStart"]

_ASK_INTERVAL = 0.1  # seconds between two requests


class _Reached(NamedTuple):
    """What was committed of a partition of another router."""

    committed: CommittedOffset | None
    since: float  # when it was first seen, by the clock


class RouterAlignment:
    """How far a router may go, by what the others have committed.

    Parameters
    ----------
    reader
        Reader of the offsets of the routers' group.
    patience
        Seconds without progress after which the router no longer waits for a partition.
    clock
        Monotonic clock.
    """

    def __init__(self, reader: Reader, patience: float, clock: Callable[[], float]) -> None:
        self._reader, self._patience, self._clock = reader, patience, clock
        self._others: list[TopicPartition] = []
        self._known: dict[TopicPartition, _Reached] = {}
        self._looked, self._reached = -math.inf, math.inf

    @property
    def alone(self) -> bool:
        """Whether no other router has a partition."""
        return not self._others

    def begin(self, inputs: Collection[TopicPartition], mine: Collection[TopicPartition]) -> None:
        """Take a new assignment: all partitions of the inputs, and those of this router."""
        self._others = [one for one in inputs if one not in mine]
        self._known = {one: self._known[one] for one in self._others if one in self._known}
        self._looked = -math.inf

    def reached(self) -> float:
        """Return the timestamp that the slowest other router has reached.

        It is infinite if no other has records to read, and minus infinity if another has not yet
        committed how far it is.
        """
        now = self._clock()
        if self._others and now - self._looked >= _ASK_INTERVAL:
            self._looked = now
            committed = self._reader.all_committed(self._others, stable=False)
            ends = self._reader.last_stable_offsets(self._others)
            self._note(committed, now)
            self._reached = min(
                (_time_of(found) for found in self._binding(ends, now)), default=math.inf
            )
        return self._reached if self._others else math.inf

    def _note(self, committed: Mapping[TopicPartition, CommittedOffset], now: float) -> None:
        for one in self._others:
            found = committed.get(one)
            if one not in self._known or self._known[one].committed != found:
                self._known[one] = _Reached(found, now)

    def _binding(
        self, ends: Mapping[TopicPartition, int], now: float
    ) -> list[CommittedOffset | None]:
        """Return what is committed of the partitions that are behind and make progress."""
        return [
            found.committed
            for one, found in self._known.items()
            if ends[one] > (0 if found.committed is None else found.committed.offset)
            and now - found.since <= self._patience
        ]


def _time_of(committed: CommittedOffset | None) -> float:
    """Return the timestamp that was committed with an offset."""
    reached = None if committed is None else CommitNote.decoded(committed.note).reached
    return -math.inf if reached is None else reached


class RouterStart:
    """Finds the offsets of the inputs that a router reads.

    `reader` is of the group of the routers. `start` and `policy` are `kafka.starting_offset` and
    `kafka.on_offset_out_of_range`. `warn` is called with a sentence about a gap that is skipped.
    `require_generation` raises if the routed topic is not that of the generation in use.
    """

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        application: Application,
        reader: Reader,
        producer: Producer,
        *,
        start: Literal["earliest", "latest"] | int,
        policy: OffsetGapPolicy,
        warn: Callable[[str], None],
        require_generation: Callable[[], object] = lambda: None,
    ) -> None:
        self._application, self._reader, self._producer = application, reader, producer
        self._start, self._policy, self._warn = start, policy, warn
        self._require_generation = require_generation
        self.inputs: Sequence[TopicPartition] = ()
        """All partitions of the inputs, when offsets were last found."""

    def offsets(self, membership: GroupMembership) -> dict[TopicPartition, CommittedOffset] | None:
        """Return the next offset of each partition that is assigned; None while it is unknown.

        Raises a StateError if records are lost, or the offsets of the group are.
        """
        self._require_generation()
        inputs = [
            TopicPartition(topic, number)
            for topic in self._application.sources
            for number in range(self._reader.partition_count(topic))
        ]
        self.inputs = inputs
        if not membership.assigned <= {*inputs}:  # a partition was added a moment ago
            return None
        committed = self._reader.all_committed(inputs)
        self._require_copartitioned(inputs, committed)
        if not committed:
            if not self._may_begin(inputs[0], membership):
                return None
            self._require_nothing_routed()
            first = {one: starting_offset(self._reader, self._start, one) for one in inputs}
            self._producer.begin()
            self._producer.commit(first, membership.group_metadata)
            committed = {one: CommittedOffset(offset) for one, offset in first.items()}
        return {one: self._next(one, committed.get(one)) for one in membership.assigned}

    @staticmethod
    def _may_begin(first: TopicPartition, membership: GroupMembership) -> bool:
        """Return whether this member commits the first offsets: the one that has a partition."""
        return first in membership.assigned and membership.group_metadata is not None

    def _require_copartitioned(
        self, inputs: Sequence[TopicPartition], committed: Collection[TopicPartition]
    ) -> None:
        """Raise a StateError if labels are looked up by ids, which lie in other partitions now."""
        counts = Counter(one.topic for one in inputs)
        before = Counter(one.topic for one in committed) or counts
        first = self._application.sources[0]
        require_copartitioned(self._application, counts, before[first])

    def _next(
        self, partition: TopicPartition, committed: CommittedOffset | None
    ) -> CommittedOffset:
        if committed is None:
            return CommittedOffset(self._reader.offset_range(partition).start)
        offset = offset_after_gap(
            self._reader, self._policy, self._warn, partition, committed.offset
        )
        return committed._replace(offset=offset)

    def _require_nothing_routed(self) -> None:
        """Raise a StateError if the group has no offsets and yet records were routed."""
        (topic,) = self._application.inputs
        for number in range(self._reader.partition_count(topic)):
            one = TopicPartition(topic, number)
            start, end = self._reader.offset_range(one)
            # Ends of transactions are no records.
            if start or any(self._reader.read(one, start, end)):
                group = self._application.router_group
                msg = (
                    f"{one} has records before @{end}, and the group {group} has no committed "
                    "offsets any more, so records would be routed twice; set its offsets behind "
                    "the last routed records by kafka-consumer-groups.sh --reset-offsets, or start "
                    "a new application (kafka.application_id)"
                )
                raise StateError(msg)


_log = logging.getLogger(__name__)

_NO_EPOCH = -1  # differs from all epochs, so that the next turn begins anew
_POLLED_BATCHES = 4  # batches of records that one poll may return
_MERGED = 0  # the number of the only sequence of records in the buffer
_INTERVAL = 1.0  # seconds between two updates of the lags
_LIVE = 1.0  # seconds after a record in which the next is waited for closely
_CLOSE, _IDLE = 0.005, 0.05  # seconds that a stage may wait; kafka-python reads nothing in 0 s


class Router:
    """One process of an application that routes.

    `start` finds where to read. The router fails if it is outside its group for more than
    `stall_timeout` seconds. In a backlog it waits for other routers that are behind, but not for a
    router without progress for `patience` seconds. It routes only the beginning of a record with
    more than `largest` bytes.
    """

    def __init__(  # noqa: PLR0913 - the parts of a service
        self,
        application: Application,
        *,
        consumer: Consumer,
        producer: Producer,
        reader: Reader,
        start: RouterStart,
        routing: Routing,
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
        self._beginning: Iterator[None] | None = None  # what the routing has to do before it routes
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
        if self._beginning is not None:
            return 0.0
        live = self._clock() - self._last < _LIVE
        return min(_CLOSE if live else _IDLE, self._buffer.poll_timeout(joined=self._group.joined))

    def turn(self, seconds: float = _IDLE) -> None:
        """Poll once, for at most `seconds`, and route and commit a batch if one is due."""
        timeout = min(seconds, self._buffer.poll_timeout(joined=self._group.joined))
        timeout = timeout if self._beginning is None else min(timeout, _CLOSE)
        polled = self._consumer.poll(timeout, self._max_records)
        self.status.progressed()
        membership = self._consumer.membership()
        self._group.require(membership)
        try:
            if membership.epoch != self._epoch:
                self._begin(membership)
            elif self._begun():
                self._take(polled, membership)
        except TransactionError as error:
            _log.warning("%s; reading the inputs again", error)
            self.status.transaction_aborted(str(error), ROUTER)
            self._epoch = _NO_EPOCH
        self._update(membership)
        self.housekeeping()

    def _update(self, membership: GroupMembership) -> None:
        seat, now = self._seat, self._clock()
        begun = membership.epoch == self._epoch and self._beginning is None
        seat.joined = membership.group_metadata is not None and begun
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
        """Return the timestamp up to which records may be routed; infinity outside a backlog."""
        if self._alignment.alone or not self._is_behind():
            return math.inf
        return self._alignment.reached() + self._span

    def _is_behind(self) -> bool:
        """Return whether more records wait than fit in a batch, as far as is known."""
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
        self._routing.committed(offsets)

    def _positions(self) -> dict[TopicPartition, int]:
        """Return the ends of inputs that were read, after the marks of transactions there."""
        found = {one: self._consumer.fetch_position(one) for one in self._inputs}
        return {
            one: at.position
            for one, at in found.items()
            if at.position is not None and at.lag is not None and at.lag <= 0
        }

    def _notes(self, offsets: Iterable[TopicPartition]) -> dict[TopicPartition, str]:
        """Return what to commit with offsets: the time that was reached, and what waits."""
        known = self._published > -math.inf and not self._alignment.alone
        reached = int(self._published) if known else None
        notes = {one: CommitNote(reached, self._routing.first_waiting(one)) for one in offsets}
        return {one: note.encoded() for one, note in notes.items() if note != CommitNote()}

    def _begin(self, membership: GroupMembership) -> None:
        """Read all inputs that are assigned from their offsets."""
        self._buffer.clear()
        for one in membership.assigned:
            self._consumer.pause(one)
        committed = self._start.offsets(membership)
        if committed is None:
            return
        offsets = {one: found.offset for one, found in committed.items()}
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
        self._beginning = self._routing.begin(committed)

    def _begun(self) -> bool:
        """Let the routing begin for a moment, unless it has; return whether it has begun."""
        if self._beginning is None:
            return True
        until = self._clock() + _IDLE
        for _ in self._beginning:
            if self._clock() >= until:
                return False
        self._beginning = None
        for one in self._inputs:
            self._consumer.resume(one)
        return True

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
        self._routing.committed(following)
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
    """Return records with only the beginning of those that are too large, which are unread."""
    rows = [row for row, size in enumerate(sizes) if size > largest]
    records, partitions = [*routes.records], [*routes.partitions]
    for row in rows:
        records[row] = Beginning.of(records[row], sizes[row])
        partitions[row] = UNREAD
    found = [None if row in rows else one for row, one in enumerate(routes.found)]
    return Routes(records, routes.inputs, partitions, sorted({*routes.unread, *rows}), found)


def _headers(routes: Routes) -> list[Headers]:
    """Return the headers of records, with their origins last."""
    records, inputs = routes.records, routes.inputs
    encoded = encoded_origins(records, inputs, routes.found)
    given: list[Headers] = [one.headers for one in records]
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
            looked_up=bool(routes.found and routes.found[row]),
        ).encoded()
    if any(routes.found):
        added = (() if one is None else (one,) for one in routes.found)
        given = [(*some, *more) for some, more in zip(given, added, strict=True)]
    if not any(given):
        return [[one] for one in zip(repeat(ORIGIN), encoded)]
    return [[*some, (ORIGIN, origin)] for some, origin in zip(given, encoded, strict=True)]
