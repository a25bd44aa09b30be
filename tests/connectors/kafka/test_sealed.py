"""Snapshots of shards under a key: what is used, what is passed over, and what stops a start."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from tests.connectors.keys import KEY, OTHER

from abers.exceptions import StateError
from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.kafka.home import Home, seed_of
from abers_connectors.kafka.restoring import Restorer
from abers_connectors.kafka.shard import NONE, Place, Shard
from abers_connectors.kafka.snapshots import Snapshots
from abers_connectors.kafka.starting import Beginning
from abers_connectors.kafka.transport import Bounds
from abers_connectors.kafka.trimming import Trimming
from abers_connectors.state_key import read_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from abers_connectors.kafka.transport import Partition, Record

HOME = Home("fraud", ["seen"], "changelog", Settings(), outcomes=False, key=read_key(KEY))
OPEN = HOME._replace(key=None)
STRANGE = HOME._replace(key=read_key(OTHER))
PLACE = Place("fraud", 0, 3, 17, (40, NONE))


class Topics:
    """A changelog without a record after the snapshot, and what was committed."""

    def committed(self, partition: Partition) -> int | None:
        """Give where the snapshot stands."""
        del partition
        return PLACE.following[0]

    def bounds(self, partition: Partition) -> Bounds:
        """Give a changelog whose beginning was deleted."""
        del partition
        return Bounds(10, PLACE.changelog)

    def read(self, partition: Partition, start: int, end: int) -> Iterator[list[Record]]:
        """Read nothing: the snapshot is at the end."""
        del partition
        assert start == end
        return iter(())

    stable_end = at_time = None


def used() -> Processor:
    """Make a processor that has learned something."""
    processor = Processor(HOME.settings, outcomes=False)
    processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    return processor


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    """Make a place of snapshots."""
    return Snapshots(str(tmp_path), "fraud")


def restored(home: Home, snapshots: Snapshots, said: list[str] | None = None) -> Processor:
    """Restore shard 0."""

    def begin(number: int) -> Shard:
        raise AssertionError(number)

    say = [].append if said is None else said.append
    restorer = Restorer(home, Topics(), snapshots, begin, lambda _: False, say=say)  # type: ignore[arg-type]
    return restorer.restore(0, None, lambda: None).shard.processor


def test_a_snapshot_under_the_key_is_used(snapshots: Snapshots) -> None:
    """The service finds what it saved."""
    snapshots.save(0, 17, HOME.saved(used(), PLACE))
    assert restored(HOME, snapshots).state_bytes() == used().state_bytes()


@pytest.mark.parametrize(
    ("home", "place", "why"),
    [
        (OPEN, PLACE, "is not sealed, and a key is given"),
        (STRANGE, PLACE, "sealed under another key"),
        (HOME, Place("other", 0, 3, 17, (40, NONE)), "for 'other[0]@17', not for 'fraud[0]@17'"),
        (HOME, Place("fraud", 1, 3, 17, (40, NONE)), "for 'fraud[1]@17', not for 'fraud[0]@17'"),
        (HOME, Place("fraud", 0, 2, 12, (30, NONE)), "for 'fraud[0]@12', not for 'fraud[0]@17'"),
    ],
)
def test_a_foreign_snapshot_is_passed_over(
    snapshots: Snapshots, home: Home, place: Place, why: str
) -> None:
    """One without a seal, of another key, application or partition, or an old one renamed."""
    snapshots.save(0, 17, home.saved(used(), place))
    said: list[str] = []
    with pytest.raises(StateError, match="no snapshot can be used"):
        restored(HOME, snapshots, said)
    assert len(said) == 1
    assert why in said[0]


@pytest.mark.parametrize(
    "place",
    [
        Place("other", 0, 3, 17, (40, NONE)),
        Place("fraud", 1, 3, 17, (40, NONE)),
        Place("fraud", 0, 2, 12, (30, NONE)),
    ],
)
def test_without_a_key_the_position_is_looked_at(snapshots: Snapshots, place: Place) -> None:
    """A snapshot that lies where another belongs is passed over too."""
    snapshots.save(0, 17, OPEN.saved(used(), place))
    said: list[str] = []
    with pytest.raises(StateError, match="no snapshot can be used"):
        restored(OPEN, snapshots, said)
    assert "not of fraud[0]@17" in said[0]


def test_a_key_that_is_missing_stops_the_start(snapshots: Snapshots) -> None:
    """Who forgot the key is told so, and the state is not derived from the changelog instead."""
    snapshots.save(0, 17, HOME.saved(used(), PLACE))
    with pytest.raises(StateError, match=r"00017\.abers: .*no key.*ABERS_STATE_KEY"):
        restored(OPEN, snapshots)


def test_learners_of_another_shard_are_never_unpickled(
    snapshots: Snapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even under the right key."""
    home = HOME._replace(settings=Settings(learner="logistic"))
    learning = Processor(home.settings, outcomes=False)
    snapshots.save(0, 17, home.saved(learning, Place("fraud", 1, 3, 17, (40, NONE))))
    monkeypatch.setattr(pickle, "loads", None)
    with pytest.raises(StateError, match="no snapshot can be used"):
        restored(home, snapshots)


@pytest.mark.parametrize(
    ("home", "place"), [(OPEN, PLACE), (HOME, Place("fraud", 0, 2, 12, (30, NONE)))]
)
def test_the_changelog_is_not_shortened_for_a_foreign_snapshot(
    snapshots: Snapshots, home: Home, place: Place
) -> None:
    """What cannot be used for a restore keeps nothing of the changelog, and shortens nothing."""
    snapshots.save(0, 17, home.saved(used(), place))
    trimming = Trimming(HOME, snapshots, {})
    assert trimming.oldest(0) == 0
    snapshots.save(0, 19, HOME.saved(used(), Place("fraud", 0, 4, 19, (50, NONE))))
    assert trimming.oldest(0) == 19


def test_a_seed_is_for_its_shard(snapshots: Snapshots) -> None:
    """A seed begins a shard, neither one of another partition nor a snapshot does."""
    place = Place("fraud", 0, 0, 0, (40, NONE))
    position = {"app": "fraud", "partition": 0, "batch": 0, "changelog": 0, "following": (40, -1)}
    seed = used().snapshot(position, HOME.key, seed_of("fraud", 0))
    beginning = Beginning(HOME, Topics(), "earliest", snapshots)  # type: ignore[arg-type]
    snapshots.save(0, 0, seed)
    shard = beginning.shard(0)
    assert (shard.place, shard.processor.state_bytes()) == (place, used().state_bytes())
    snapshots.save(1, 0, seed)
    with pytest.raises(StateError, match=r"the seed of fraud\[0\]' *, not for 'the seed of fraud"):
        beginning.shard(1)
    snapshots.save(0, 0, HOME.saved(used(), place))
    with pytest.raises(StateError, match=r"sealed for 'fraud\[0\]@0'"):
        beginning.shard(0)


def test_a_seed_without_a_key_is_for_its_shard(snapshots: Snapshots) -> None:
    """Without a key the position says which shard it is of."""
    position = {"app": "fraud", "partition": 0, "batch": 0, "changelog": 0, "following": (40, -1)}
    snapshots.save(1, 0, used().snapshot(position))
    beginning = Beginning(OPEN, Topics(), "earliest", snapshots)  # type: ignore[arg-type]
    with pytest.raises(StateError, match=r"it is of fraud\[0\]@0, not of fraud\[1\]@0"):
        beginning.shard(1)
