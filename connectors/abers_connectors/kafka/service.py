"""The loop of `abers run` over Kafka.

Governing rule: what is in memory is valid only while commits succeed and the
partitions are owned. Whatever puts that in doubt throws the shard away, and it
is restored from what is committed; a batch is never tried twice in memory.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import BrokerError, DeadLettersError
from abers_connectors.kafka import changelog
from abers_connectors.kafka.merging import Merge, size_of
from abers_connectors.kafka.transport import Partition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from abers_connectors.kafka.decoding import Decoder
    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.merging import Taken
    from abers_connectors.kafka.restoring import Restored
    from abers_connectors.kafka.shard import Shard, Work
    from abers_connectors.kafka.status import Status
    from abers_connectors.kafka.transport import Consumer, Membership, Producer, Reader, Record
    from abers_connectors.kafka.wording import Wording

__all__ = ["Limits", "Service", "Stopped"]

_IDLE = 0.1  # seconds of one look at what has come, when nothing waits
_HELD = 4  # batches that may wait of an input before it is paused
_ENOUGH = 1000  # records before the share of dead letters is looked at


class Stopped(Exception):  # noqa: N818 - no error, but the way out
    """The service was told to stop."""


class Limits(NamedTuple):
    """When a batch closes, and how long one input waits for the other; times in seconds.

    Parameters
    ----------
    records, bytes
        How much a batch holds.
    linger
        How long after its first record it closes.
    idle
        How long an input is waited for of which nothing comes although something is there.
    seat
        How long the process may be without a seat in the group.
    dead_per_1000
        How many of a thousand records may be dead letters.
    stop_at_dead
        Whether the first one stops the service.
    """

    records: int
    bytes: int
    linger: float
    idle: float
    seat: float
    dead_per_1000: int = 1000
    stop_at_dead: bool = False


class _Input:
    """One partition that a shard reads."""

    def __init__(self, partition: Partition, end: int) -> None:
        self.partition = partition
        self.backlog = end  # before this offset it was there when the shard was restored
        self.paused = False


class _Owned:
    """A shard in operation: what it reads, and what waits in its merge."""

    def __init__(self, shard: Shard, inputs: Sequence[_Input]) -> None:
        self.shard, self.inputs = shard, inputs
        self.merge = Merge(len(inputs))
        self.lacking_since: float | None = None


class Service:
    """One process of an application.

    Parameters
    ----------
    home
        Which application.
    consumer, producer, reader
        The broker.
    restore
        Restores a shard, given what is in memory of it, and what to call now and then.
    decoder, wording
        From records to events, from outputs to records.
    topics
        Where each sink goes; a sink without a topic goes nowhere.
    limits
        Of batches.
    status
        Told of everything.
    housekeeping
        Called with the shards after each turn, such as to save snapshots.
    clock
        Monotonic, in seconds.
    """

    def __init__(  # noqa: PLR0913 - the parts of a service
        self,
        home: Home,
        *,
        consumer: Consumer,
        producer: Producer,
        reader: Reader,
        restore: Callable[[int, Shard | None, Callable[[], None]], Restored],
        decoder: Decoder,
        wording: Wording,
        topics: Mapping[str, str],
        limits: Limits,
        status: Status,
        housekeeping: Callable[[Sequence[Shard]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home = home
        self._consumer, self._producer, self._reader = consumer, producer, reader
        self._restore, self._decoder, self._wording = restore, decoder, wording
        self._topics, self._limits, self._status = topics, limits, status
        self._housekeeping, self._clock = housekeeping, clock
        self._counts = {topic: producer.partitions(topic) for topic in {*topics.values()}}
        self._owned: dict[int, _Owned] = {}
        self._epoch = -1
        self._first: float | None = None  # when the first record of the open batch came
        self._unseated: float | None = None  # since when there is no seat in the group
        self._stopping = False
        self._records = self._dead = 0

    def stop(self) -> None:
        """Finish the batch at hand, and end `run`; may be called from a signal handler."""
        self._stopping = True

    def run(self) -> None:
        """Serve until told to stop.

        Raises
        ------
        StateError
            If offsets and state do not fit, or records are lost.
        BrokerError
            If the broker, or the place in the group, is lost.
        DeadLettersError
            If there are too many.
        """
        try:
            while not self._stopping:
                self.turn()
        except Stopped:
            pass

    def _tick(self) -> None:
        """Show that a restore goes on, keep the seat in the group, and see whether it is ours."""
        self._status.progressed()
        if self._stopping:
            raise Stopped
        self._consumer.poll(0.0, 1)  # all is paused: nothing can come
        if self._consumer.membership().epoch != self._epoch:
            raise _MovedError

    def turn(self) -> None:
        """Take what has come, and commit a batch if one is due."""
        arrived = self._consumer.poll(self._patience(), self._limits.records)
        self._status.progressed()
        membership = self._consumer.membership()
        self._require_seat(membership)
        if membership.epoch != self._epoch:
            self._reassign(membership)
            return
        for partition, records in arrived.items():
            self._buffer(Partition(*partition), records)
        if membership.proof is not None and self._due():
            self._batch(membership.proof)
        self._housekeeping([one.shard for one in self._owned.values()])

    # The assignment

    def _require_seat(self, membership: Membership) -> None:
        """End where the group cannot be joined: a client may be stuck, and a new one is not."""
        if membership.proof is not None:
            self._unseated = None
            return
        self._unseated = self._unseated or self._clock()
        if self._clock() - self._unseated > self._limits.seat:
            msg = (
                f"the group of {self._home.app} could not be joined within "
                f"{self._limits.seat:g} s (kafka.watchdog); ending, to be started again"
            )
            raise BrokerError(msg)

    def _reassign(self, membership: Membership) -> None:
        """Own what is assigned; what was owned before is looked at again."""
        kept = {number: one.shard for number, one in self._owned.items()}
        self._owned, self._first, self._epoch = {}, None, membership.epoch
        numbers = self._numbers(membership.assigned)
        self._status.assign(membership.assigned)
        for partition in membership.assigned:
            self._consumer.pause(partition)
        try:
            for number in numbers:
                self._own(number, kept.pop(number, None), membership)
        except _MovedError:
            self._epoch = -1
            return
        self._read_on()
        self._status.joined = membership.proof is not None

    def _numbers(self, assigned: frozenset[Partition]) -> list[int]:
        """Give the shards, each of which has its partitions of all inputs."""
        numbers = sorted({one.number for one in assigned})
        for number in numbers:
            if not assigned.issuperset(self._home.partitions(number)):
                msg = f"partition {number} is assigned of one input and not of the other"
                raise AssertionError(msg)
        return numbers

    def _own(self, number: int, kept: Shard | None, membership: Membership) -> None:
        shard, fresh = self._restore(number, kept, self._tick)
        inputs = [
            _Input(one, self._reader.stable_end(one)) for one in self._home.partitions(number)
        ]
        if fresh:
            self._begin(shard, membership)
        self._owned[number] = _Owned(shard, inputs)
        self._status.restore(shard)

    def _read_on(self) -> None:
        """Fetch again, only now that all is restored: what came before would be lost."""
        for owned in self._owned.values():
            for one, offset in zip(owned.inputs, owned.shard.place.following, strict=False):
                self._consumer.seek(one.partition, offset)
                self._consumer.resume(one.partition)

    def _begin(self, shard: Shard, membership: Membership) -> None:
        """Commit where a new shard starts, so that from now on there is one truth."""
        if membership.proof is None:
            raise _MovedError
        self._producer.begin()
        told = self._log(shard, shard.opening())
        self._producer.commit(self._offsets([shard]), membership.proof)
        shard.written(told() + 1)

    # Batches

    def _patience(self) -> float:
        if self._first is None:
            return _IDLE
        left = self._first + self._limits.linger - self._clock()
        return min(max(left, 0.0), _IDLE)

    def _buffer(self, partition: Partition, records: Sequence[Record]) -> None:
        owned = self._owned.get(partition.number)
        if owned is None or not records:
            return
        which = self._home.inputs.index(partition.topic)
        owned.merge.add(which, records)
        if self._first is None:
            self._first = self._clock()
        self._hold_back(owned, which)

    def _hold_back(self, owned: _Owned, which: int) -> None:
        """Pause an input that is far ahead of the other, resume one that is no longer."""
        one, (count, size) = owned.inputs[which], owned.merge.held(which)
        full = count > _HELD * self._limits.records or size > _HELD * self._limits.bytes
        if full and not one.paused:
            self._consumer.pause(one.partition)
        elif one.paused and not full:
            self._consumer.resume(one.partition)
        one.paused = full

    def _due(self) -> bool:
        if self._first is None:
            return False
        held = [
            one.merge.held(which)
            for one in self._owned.values()
            for which in range(len(one.inputs))
        ]
        count, size = sum(one for one, _ in held), sum(one for _, one in held)
        return (
            count >= self._limits.records
            or size >= self._limits.bytes
            or self._clock() - self._first >= self._limits.linger
        )

    def _batch(self, proof: object) -> None:
        """Apply what can be applied now, in one transaction."""
        taken = self._taken()
        if taken:
            try:
                self._commit(taken, proof)
            except TransactionError as error:
                self._status.abort(str(error))
                self._owned, self._epoch = {}, -1
                return
        waits = any(
            one.merge.held(which)[0]
            for one in self._owned.values()
            for which in range(len(one.inputs))
        )
        self._first = self._clock() if waits else None
        self._check_share()

    def _taken(self) -> list[tuple[Shard, Taken]]:
        found: list[tuple[Shard, Taken]] = []
        most, most_bytes = self._limits.records, self._limits.bytes
        for owned in self._owned.values():
            taken = owned.merge.take(most, most_bytes, self._ended(owned))
            for which in range(len(owned.inputs)):
                self._hold_back(owned, which)
            if taken.records:
                most -= len(taken.records)
                most_bytes -= sum(map(size_of, taken.records))
                found.append((owned.shard, taken))
            if most <= 0 or most_bytes <= 0:
                break
        for shard, _ in found:  # who was served goes to the end of the queue
            number = shard.place.partition
            self._owned[number] = self._owned.pop(number)
        return found

    def _ended(self, owned: _Owned) -> list[bool]:
        """Say of each input whether it is passed over where nothing of it waits."""
        lacking = owned.merge.lacking()
        if lacking is None:
            owned.lacking_since = None
        elif owned.lacking_since is None:
            owned.lacking_since = self._clock()
        return [self._passed(owned, which, lacking) for which in range(len(owned.inputs))]

    def _passed(self, owned: _Owned, which: int, lacking: int | None) -> bool:
        one = owned.inputs[which]
        reached = self._consumer.reached(one.partition)
        if reached.lag is not None and reached.lag <= 0:
            return True
        live = reached.position is not None and reached.position >= one.backlog
        waited = self._clock() - (owned.lacking_since or self._clock())
        return which == lacking and live and waited >= self._limits.idle

    def _commit(self, taken: Sequence[tuple[Shard, Taken]], proof: object) -> None:
        began = self._clock()
        self._producer.begin()
        works = [(shard, self._write(shard, part)) for shard, part in taken]
        self._producer.commit(self._offsets([shard for shard, _ in works]), proof)
        for shard, (work, told) in works:
            shard.written(told() + 1)
            self._records += len(work.applied.inputs)
            self._dead += sum(1 for one in work.outgoing if one.sink == "dead_letters")
            self._status.commit(shard, work)
        self._status.committed(self._clock() - began)

    def _write(self, shard: Shard, taken: Taken) -> tuple[Work, Callable[[], int]]:
        work = shard.apply(taken, self._decoder, self._wording)
        number = shard.place.partition
        for one in work.outgoing:
            topic = self._topics.get(one.sink)
            if topic is not None:
                to = Partition(topic, number % self._counts[topic])
                self._producer.send(to, one.key, one.value, one.headers, one.timestamp)
        return work, self._log(shard, work.applied)

    def _log(self, shard: Shard, applied: changelog.Applied) -> Callable[[], int]:
        """Tell the changelog; the last of its parts says where it goes on."""
        log = self._home.log(shard.place.partition)
        return [self._producer.send(log, None, value) for value in changelog.encode(applied)][-1]

    def _offsets(self, shards: Sequence[Shard]) -> dict[Partition, int]:
        return {
            partition: offset
            for shard in shards
            for partition, offset in zip(
                self._home.partitions(shard.place.partition), shard.place.following, strict=False
            )
        }

    def _check_share(self) -> None:
        most = self._limits.dead_per_1000
        if self._limits.stop_at_dead and self._dead:
            msg = "a record is a dead letter, and output.on_bad_record says stop; it is committed"
            raise DeadLettersError(msg)
        if self._records >= _ENOUGH and self._dead * 1000 > most * self._records:
            msg = (
                f"{self._dead:,} of {self._records:,} records are dead letters, more than "
                f"output.max_dead_per_1000 = {most} allows; look at them in "
                f"{self._topics['dead_letters']}, and mend the input or its mapping"
            )
            raise DeadLettersError(msg)


class _MovedError(Exception):
    """The assignment changed while a shard was restored."""
