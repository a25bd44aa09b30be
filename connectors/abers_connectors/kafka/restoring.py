"""Bringing a shard to where its committed offsets are.

Governing rule: what was committed last is known first (the offsets, then how
far the changelog goes, open transactions included), and only then is the state
brought there, from the newest snapshot that is whole and the changelog after
it. If the two do not meet, nothing goes on.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from abers._keyed import is_keyed
from abers.exceptions import BrokerError, StateError
from abers.stream.snapshot import read
from abers_connectors.kafka.changelog import Applied, Assembler
from abers_connectors.kafka.home import named, snapshot_of
from abers_connectors.kafka.shard import NONE, Place, Shard
from abers_connectors.kafka.snapshots import Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.transport import Bounds, Partition, Reader

__all__ = ["REBUILD", "Restored", "Restorer", "Weighed"]

REBUILD = "`abers state rebuild CONFIG --from-inputs`"
"""What is recommended where a state is lost."""


class Restored(NamedTuple):
    """A shard that is where its offsets are.

    Parameters
    ----------
    shard
        It.
    fresh
        Whether where it stands is not committed yet.
    """

    shard: Shard
    fresh: bool


class Weighed(NamedTuple):
    """A snapshot that somebody looked at.

    Parameters
    ----------
    name
        Its name.
    shard
        What it holds; None if it cannot be used.
    error
        Why it cannot be used; None if it can.
    """

    name: str
    shard: Shard | None
    error: StateError | None


class Restorer:
    """Restores shards.

    Parameters
    ----------
    home
        Of which application.
    reader
        Reads the changelog and the committed offsets.
    snapshots
        Where snapshots are; None if nowhere.
    begin
        Makes a shard of which nothing is known, where it starts.
    pass_over
        Moves a shard past what its inputs have lost, and says whether it did.
    say
        Told in a sentence what is unusual.
    """

    def __init__(  # noqa: PLR0913 - what restoring needs
        self,
        home: Home,
        reader: Reader,
        snapshots: Snapshots | None,
        begin: Callable[[int], Shard],
        pass_over: Callable[[Shard], bool],
        *,
        say: Callable[[str], None],
    ) -> None:
        self._home, self._reader = home, reader
        self._snapshots, self._begin, self._pass_over = snapshots, begin, pass_over
        self._say = say

    def restore(self, number: int, kept: Shard | None, tick: Callable[[], None]) -> Restored:
        """Restore a shard.

        Parameters
        ----------
        number
            Of its partitions.
        kept
            What is still in memory of it, all of it committed, perhaps not the last.
        tick
            Called now and then; it may raise to give up.

        Returns
        -------
        Restored
            It.

        Raises
        ------
        StateError
            If offsets, snapshots and changelog do not fit together, or records are lost.
        BrokerError
            If snapshots cannot be read now, and the changelog is not enough without them.
        """
        unread: list[str] = []

        def failed(sentence: str) -> None:
            unread.append(sentence)
            self._say(sentence)

        try:
            return self._restored(number, kept, tick, failed)
        except _OperatorError:
            raise
        except StateError as error:
            if not unread:
                raise
            msg = (  # what is missing may be there when the place of snapshots is
                f"{unread[0]}; without it: {error}. Ending, to be started again; see that "
                "state.path can be read"
            )
            raise BrokerError(msg) from error

    def _restored(
        self,
        number: int,
        kept: Shard | None,
        tick: Callable[[], None],
        failed: Callable[[str], None],
    ) -> Restored:
        committed = [self._reader.committed(one) for one in self._home.partitions(number)]
        bounds = self._reader.bounds(self._home.log(number))
        shard = kept or self._newest(number, bounds, tick, failed)
        if shard is None:
            if bounds.end == 0 and set(committed) == {None}:
                return Restored(self._begin(number), fresh=True)
            shard = self._beginning(number, bounds, committed)
        self._follow(shard, bounds, tick)
        if shard.place.batch == 0:  # transactions were begun, and none was committed
            if set(committed) == {None}:
                return Restored(self._begin(number), fresh=True)
            raise _lost(self._home.log(number), bounds, committed)
        self._require(shard, committed)
        return Restored(shard, fresh=self._pass_over(shard))

    def weighed(
        self,
        number: int,
        bounds: Bounds,
        tick: Callable[[], None] = lambda: None,
        failed: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Weighed]:
        """Look at the snapshots of a shard, newest first.

        Parameters
        ----------
        number
            Of its partitions.
        bounds
            Of its changelog.
        tick
            Called whenever some of one has come; it may raise to give up.
        failed
            Told in a sentence what cannot be read.

        Yields
        ------
        Weighed
            What each is worth; it is loaded when it is asked for.
        """
        snapshots = self._snapshots
        for name, blob in snapshots.newest(number, tick, failed) if snapshots else ():
            try:
                shard = self._load(blob, number, Snapshots.offset(name))
            except StateError as error:
                yield Weighed(name, None, self._unfit(name, blob, error))
                continue
            place = shard.place
            if bounds.start <= place.changelog <= bounds.end:
                yield Weighed(name, shard, None)
                continue
            log = named(self._home.log(number))
            msg = (
                f"snapshot {name} goes on at {log}@{place.changelog}, and the changelog has "
                f"@{bounds.start} to @{bounds.end}: what lies between is lost; put back a newer "
                f"snapshot, or derive the state anew by {REBUILD}"
            )
            yield Weighed(name, None, _GapError(msg))

    def _newest(
        self,
        number: int,
        bounds: Bounds,
        tick: Callable[[], None],
        failed: Callable[[str], None],
    ) -> Shard | None:
        """Load the newest snapshot that is whole and fits."""
        gap: StateError | None = None
        for one in self.weighed(number, bounds, tick, failed):
            if one.shard is not None:
                return one.shard
            if isinstance(one.error, _OperatorError):
                raise one.error
            if isinstance(one.error, _GapError):
                gap = gap or one.error
            else:
                self._say(f"snapshot {one.name} is passed over: {one.error}")
        if gap is not None and bounds.start > 0:
            raise gap
        return None

    def _unfit(self, name: str, blob: bytes, error: StateError) -> StateError:
        """Tell what somebody can put right, settings and a missing key, from damage."""
        if is_keyed(blob) and self._home.key is None:
            return _OperatorError(f"snapshot {name}: {error}")
        with suppress(StateError):
            if read(blob, self._home.key)[0].settings != self._home.settings:
                msg = f"snapshot {name}: {error}, or derive the state anew by {REBUILD}"
                return _OperatorError(msg)
        return error

    def _load(self, blob: bytes, number: int, offset: int) -> Shard:
        app = self._home.app
        processor = self._home.loaded(blob, snapshot_of(app, number, offset))
        return Shard(processor, Place.of(processor.position).expected(app, number, offset))

    def _beginning(self, number: int, bounds: Bounds, committed: Sequence[int | None]) -> Shard:
        """Begin with an empty state, if the changelog tells all since."""
        if bounds.start > 0 or bounds.end == 0:
            raise _lost(self._home.log(number), bounds, committed)
        place = Place(self._home.app, number, 0, 0, (NONE, NONE))
        return Shard(self._home.processor(), place)

    def _follow(self, shard: Shard, bounds: Bounds, tick: Callable[[], None]) -> None:
        """Redo what the changelog tells after a shard."""
        for applied, following in self._applied(shard.place, bounds.end, tick):
            shard.redo(applied)
            shard.written(following)

    def _applied(
        self, place: Place, end: int, tick: Callable[[], None]
    ) -> Iterator[tuple[Applied, int]]:
        log, batch, start = self._home.log(place.partition), place.batch, place.changelog
        assembler = Assembler(batch)
        for records in self._reader.read(log, start, end):
            tick()
            for record in records:
                try:
                    applied = assembler.add(record.value or b"")
                except StateError as error:
                    msg = f"{named(log, record.offset)}: {error}"
                    raise StateError(msg) from None
                if applied is not None:
                    yield applied, record.offset + 1

    def _require(self, shard: Shard, committed: Sequence[int | None]) -> None:
        """Refuse a state that is not where the offsets are.

        Where none are committed any more (a group that nobody is in forgets them after some
        days), the changelog says where it is.
        """
        following = shard.place.following[: len(committed)]
        if set(committed) == {None}:
            places = ", ".join(
                named(one, offset)
                for one, offset in zip(
                    self._home.partitions(shard.place.partition), following, strict=True
                )
            )
            self._say(
                f"the group has no offsets any more; going on where the changelog is: {places}"
            )
            return
        if tuple(committed) != following:
            triples = zip(
                self._home.partitions(shard.place.partition), following, committed, strict=True
            )
            said = "; ".join(
                f"{named(one)}: the state has applied all before @{state}, the group has "
                f"committed @{offset}"
                for one, state, offset in triples
                if state != offset
            )
            msg = (
                f"state and offsets disagree: {said}. Somebody moved the offsets of the group, or "
                "the changelog is another one; set them back, or derive the state anew by "
                f"{REBUILD}"
            )
            raise StateError(msg)


def _lost(log: Partition, bounds: Bounds, committed: Sequence[int | None]) -> StateError:
    offsets = ", ".join("none" if one is None else f"@{one}" for one in committed)
    msg = (
        f"no snapshot can be used, and {named(log)} has @{bounds.start} to @{bounds.end}, not all "
        f"since @0; committed are {offsets}. Put back a snapshot, or derive the state anew by "
        f"{REBUILD}, or begin anew by `abers state reset CONFIG --accept-loss`"
    )
    return StateError(msg)


class _GapError(StateError):
    """The changelog does not reach a snapshot."""


class _OperatorError(StateError):
    """A snapshot may be whole, but is of other settings, or of a key that is not there."""
