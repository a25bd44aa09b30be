"""Where a shard begins of which nothing is known yet.

Governing rule: where it begins is decided once; it is the first batch of its
changelog, and from then on nobody asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from abers.exceptions import BrokerError, ConfigError, StateError
from abers_connectors.kafka.home import named, seed_of
from abers_connectors.kafka.shard import NONE, Place, Shard

if TYPE_CHECKING:
    from abers.stream import Processor
    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.snapshots import Snapshots
    from abers_connectors.kafka.transport import Partition, Reader

__all__ = ["Beginning"]


class Beginning:
    """Makes the shards of which nothing is known.

    Parameters
    ----------
    home
        Of which application.
    reader
        Knows the offsets of the inputs.
    start
        "earliest", "latest", or a time in milliseconds.
    seed
        Snapshots that a replay left, whose shards go on here; None begins with nothing.
    """

    def __init__(
        self,
        home: Home,
        reader: Reader,
        start: Literal["earliest", "latest"] | int,
        seed: Snapshots | None = None,
    ) -> None:
        self._home, self._reader, self._start, self._seed = home, reader, start, seed

    def shard(self, number: int) -> Shard:
        """Make a shard that stands where it begins.

        Raises
        ------
        StateError
            If there is to be a seed, and it has nothing for this partition.
        BrokerError
            If the seed cannot be read.
        """
        if self._seed is not None:
            return self._sown(number, self._seed)
        offsets = [self._offset(one) for one in self._home.partitions(number)]
        seen, told = [*offsets, NONE][:2]
        return self._placed(self._home.processor(), number, (seen, told))

    def check(self, snapshots: Snapshots | None, partitions: int) -> None:
        """Refuse a seed that `keep` would refuse, and save nothing; topics may be missing yet."""
        if self._seed is not None:
            self._require_room(snapshots, partitions)
            for number in range(partitions):
                self._sown(number, self._seed)

    def keep(self, snapshots: Snapshots | None, partitions: int) -> None:
        """Save a seed as the first snapshot of each shard; the changelog goes on from it.

        Raises
        ------
        ConfigError
            If there is no place for it.
        StateError
            If there is state already, or the seed has nothing for a partition.
        OSError
            If it cannot be saved.
        """
        if self._seed is None:
            return
        room = self._require_room(snapshots, partitions)
        for number in range(partitions):
            shard = self._sown(number, self._seed)
            place = shard.place
            blob = self._home.saved(shard.processor, place)
            room.save(place.partition, place.changelog, blob)

    def _require_room(self, snapshots: Snapshots | None, partitions: int) -> Snapshots:
        """Give the place of a seed; there is one, and no state yet."""
        if snapshots is None:
            why = "a seed is kept there, which the changelog goes on from"
            raise ConfigError([f"state.path: name the place of the snapshots; {why}"])
        there = self._reader.partitions(self._home.changelog)
        for log in map(self._home.log, range(min(there, partitions))):
            if self._reader.bounds(log).end:
                msg = (
                    f"{named(log)} has state of {self._home.app} already, and a seed is for an "
                    "application that has none; leave out --seed, or take another kafka.app"
                )
                raise StateError(msg)
        return snapshots

    def _placed(self, processor: Processor, number: int, following: tuple[int, int]) -> Shard:
        return Shard(processor, Place(self._home.app, number, 0, 0, following))

    def _sown(self, number: int, seed: Snapshots) -> Shard:
        unread: list[str] = []
        for _, blob in seed.newest(number, failed=unread.append):
            processor = self._home.loaded(blob, seed_of(self._home.app, number))
            place = Place.of(processor.position).expected(self._home.app, number, 0)
            return Shard(processor, msgspec.structs.replace(place, batch=0))
        if unread:
            msg = f"the seed: {unread[0]}; see that it can be read, and start again"
            raise BrokerError(msg)
        msg = f"the seed has no snapshot of partition {number}; replay all partitions into it"
        raise StateError(msg)

    def _offset(self, partition: Partition) -> int:
        if self._start == "earliest":
            return self._reader.bounds(partition).start
        if self._start != "latest":
            found = self._reader.at_time(partition, self._start)
            if found is not None:
                return found
        return self._reader.stable_end(partition)
