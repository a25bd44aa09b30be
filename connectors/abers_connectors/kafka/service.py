"""The loop of `abers run` over Kafka.

Governing rule: what is in memory is valid only while commits succeed and the
partitions are owned. Whatever puts that in doubt throws the shard away, and it
is restored from what is committed; a batch is never tried twice in memory.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from typing import TYPE_CHECKING

from abers.exceptions import BrokerError, DeadLettersError, StateError
from abers_connectors.kafka import changelog
from abers_connectors.kafka.gathering import Gathering
from abers_connectors.kafka.transport import Partition, TransactionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from abers_connectors.kafka.decoding import Decoder
    from abers_connectors.kafka.gathering import Limits
    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.merging import Taken
    from abers_connectors.kafka.restoring import Restored
    from abers_connectors.kafka.shard import Shard, Work
    from abers_connectors.kafka.status import Status
    from abers_connectors.kafka.transport import Consumer, Membership, Producer, Reader
    from abers_connectors.kafka.wording import Wording
    from abers_connectors.running import Tolerance

__all__ = ["Service", "Stopped"]

_log = logging.getLogger(__name__)

_READ = 4  # batches that may be read at once


class Stopped(Exception):  # noqa: N818 - no error, but the way out
    """The service was told to stop."""


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
        Where each sink goes, which is there; a sink without a topic goes nowhere.
    limits
        Of batches.
    tolerance
        How many records may be dead letters.
    seat
        Seconds that the process may be without a seat in the group.
    status
        Told of everything.
    onlooker
        Called with what a batch did to a shard, once it is committed.
    housekeeping
        Called with the shards after each turn, such as to save snapshots.
    clock
        Monotonic, in seconds.

    Attributes
    ----------
    status
        As given.
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
        tolerance: Tolerance,
        seat: float,
        status: Status,
        onlooker: Callable[[Shard, Work], object] = lambda *_: None,
        housekeeping: Callable[[Sequence[Shard]], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._home = home
        self._consumer, self._producer, self._reader = consumer, producer, reader
        self._restore, self._decoder, self._wording = restore, decoder, wording
        self._topics, self._tolerance, self._seat, self.status = topics, tolerance, seat, status
        self._batch = Gathering(consumer, limits, clock)
        self._most = _READ * limits.records
        self._onlooker, self._housekeeping, self._clock = onlooker, housekeeping, clock
        self._counts = {topic: reader.partitions(topic) for topic in {*topics.values()}}
        self._shards: dict[int, Shard] = {}
        self._epoch = -1
        self._unseated: float | None = None  # since when there is no seat in the group
        self._stopping = False
        self._records, self._dead = 0, Counter[str]()

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
        self.status.progressed()
        if self._stopping:
            raise Stopped
        self._consumer.poll(0.0, 1)  # all is paused: nothing can come
        if self._consumer.membership().epoch != self._epoch:
            raise _MovedError

    def turn(self) -> None:
        """Take what has come, and commit a batch if one is due."""
        patience = self._batch.patience(seated=self._unseated is None)
        arrived = self._consumer.poll(patience, self._most)
        self.status.progressed()
        membership = self._consumer.membership()
        self._require_seat(membership)
        if membership.epoch != self._epoch:
            self._reassign(membership)
            return
        self.status.joined = membership.proof is not None
        self.status.heard = membership.heard
        self._batch.add(arrived)
        if membership.proof is not None and self._batch.due():
            self._transact(self._batch.take(), membership.proof)
            self._check_share()
        self._housekeeping([*self._shards.values()])

    # The assignment

    def _require_seat(self, membership: Membership) -> None:
        """End where the group cannot be joined: a client may be stuck, and a new one is not."""
        if membership.proof is not None:
            self._unseated = None
            return
        self._unseated = self._unseated or self._clock()
        if self._clock() - self._unseated > self._seat:
            msg = (
                f"the group of {self._home.app} could not be joined within "
                f"{self._seat:g} s (kafka.watchdog); ending, to be started again"
            )
            raise BrokerError(msg)

    def _reassign(self, membership: Membership) -> None:
        """Own what is assigned; what was owned before is looked at again."""
        kept, self._shards, self._epoch = self._shards, {}, membership.epoch
        self._batch.begin({})
        self.status.joined = False  # until all is restored, and we are in the group then
        self.status.assign(membership.assigned)
        for partition in membership.assigned:
            self._consumer.pause(partition)
        try:
            for number in self._numbers(membership.assigned):
                self._own(number, kept.get(number), membership.proof)
        except _MovedError:
            self._epoch = -1
        except TransactionError as error:
            self._doubt(error)
        else:
            self._read_on()

    def _doubt(self, error: TransactionError) -> None:
        """Throw away what is in memory; the next turn restores it."""
        self.status.joined = False  # until it is restored
        self.status.abort(str(error))
        _log.warning("%s; restoring", error)
        self._shards, self._epoch = {}, -1

    def _numbers(self, assigned: frozenset[Partition]) -> list[int]:
        """Give the shards, each of which has its partitions of all inputs."""
        numbers = sorted({one.number for one in assigned})
        for number in numbers:
            if not assigned.issuperset(self._home.partitions(number)):
                msg = (
                    f"partition {number} is assigned of one input and not of the other: another "
                    f"program reads one of them in the group {self._home.app}; give it, or this "
                    "application (kafka.app), a group of its own"
                )
                raise StateError(msg)
        return numbers

    def _own(self, number: int, kept: Shard | None, proof: object | None) -> None:
        shard, fresh = self._restore(number, kept, self._tick)
        if fresh:
            self._begin(shard, proof)
        self._shards[number] = shard
        self.status.restore(shard)

    def _read_on(self) -> None:
        """Fetch, only now that all is restored: what came before would be lost."""
        backlogs = {
            number: {one: self._reader.stable_end(one) for one in self._home.partitions(number)}
            for number in self._shards
        }
        self._batch.begin(backlogs)
        for partition, offset in self._offsets(self._shards.values()).items():
            self._consumer.seek(partition, offset)
            self._consumer.resume(partition)

    def _begin(self, shard: Shard, proof: object | None) -> None:
        """Commit where a new shard starts, so that from now on there is one truth."""
        if proof is None:
            raise _MovedError
        self._producer.begin()
        told = self._log(shard, shard.opening())
        self._producer.commit(self._offsets([shard]), proof)
        shard.written(told() + 1)

    # Batches

    def _transact(self, batch: Sequence[tuple[int, Taken]], proof: object) -> None:
        """Apply a batch, in one transaction."""
        try:
            self._commit([(self._shards[number], taken) for number, taken in batch], proof)
        except TransactionError as error:
            self._doubt(error)

    def _commit(self, taken: Sequence[tuple[Shard, Taken]], proof: object) -> None:
        began = self._clock()
        self._producer.begin()
        works = [(shard, self._write(shard, part)) for shard, part in taken]
        self._producer.commit(self._offsets([shard for shard, _ in works]), proof)
        for shard, (work, told) in works:
            shard.written(told() + 1)
            self._records += len(work.applied.inputs)
            self._dead.update(
                str(one.reason) for one in work.outgoing if one.sink == "dead_letters"
            )
            self.status.commit(shard, work)
            self._onlooker(shard, work)
        self.status.committed(self._clock() - began)

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

    def _offsets(self, shards: Iterable[Shard]) -> dict[Partition, int]:
        return {
            partition: offset
            for shard in shards
            for partition, offset in zip(
                self._home.partitions(shard.place.partition), shard.place.following, strict=False
            )
        }

    def _check_share(self) -> None:
        if self._tolerance.stop and self._dead:
            msg = "a record is a dead letter, and output.on_bad_record says stop; it is committed"
            raise DeadLettersError(msg)
        self._tolerance.require(self._dead, self._records)


class _MovedError(Exception):
    """The assignment changed while a shard was restored."""
