"""Sealed snapshots: which are used, which are skipped, and which stop a start."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from tests.connectors.keys import KEY, OTHER

from abers.exceptions import StateError
from abers.stream import Label, Observation, Processor, Settings
from abers_connectors.kafka.topic_watch import ChangelogTrimmer
from abers_connectors.runtime.application import (
    NO_OFFSET,
    Application,
    Checkpoint,
    initial_state_scope,
)
from abers_connectors.runtime.restore import InitialState, Restorer
from abers_connectors.runtime.snapshots import SnapshotStore
from abers_connectors.runtime.transport import OffsetRange
from abers_connectors.secret import read_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Record, TopicPartition

APPLICATION = Application(
    "fraud", ["seen"], "changelog", Settings(), outcomes=False, key=read_key(KEY)
)
OPEN = APPLICATION._replace(key=None)
STRANGE = APPLICATION._replace(key=read_key(OTHER))
PLACE = Checkpoint("fraud", 0, 3, 17, (40, NO_OFFSET))


class Topics:
    """A changelog without a record after the snapshot, and the committed offset."""

    def topic_ids(self, topics: Sequence[str]) -> tuple[str, ...]:
        """Return no ids, as of a broker that knows none."""
        return ("",) * len(topics)

    def partition_count(self, topic: str) -> int:
        """Return the number of partitions."""
        del topic
        return 1

    def committed(self, partition: TopicPartition) -> int | None:
        """Return the offset of the snapshot."""
        del partition
        return PLACE.next_offsets[0]

    def offset_range(self, partition: TopicPartition) -> OffsetRange:
        """Return the range of a changelog whose beginning was deleted."""
        del partition
        return OffsetRange(10, PLACE.changelog_offset)

    def read(self, partition: TopicPartition, start: int, end: int) -> Iterator[list[Record]]:
        """Read nothing: the snapshot is at the end."""
        del partition
        assert start == end
        return iter(())

    stable_end = at_time = None


def used() -> Processor:
    """Return a processor that has learned something."""
    processor = Processor(APPLICATION.settings, outcomes=False)
    processor.process_many([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    return processor


@pytest.fixture
def snapshots(tmp_path: Path) -> SnapshotStore:
    """Return an empty store of snapshots."""
    return SnapshotStore(str(tmp_path), "fraud")


def restored(
    application: Application, snapshots: SnapshotStore, said: list[str] | None = None
) -> Processor:
    """Restore task 0."""

    def begin(number: int) -> StreamTask:
        raise AssertionError(number)

    say = [].append if said is None else said.append
    restorer = Restorer(application, Topics(), snapshots, begin, lambda _: False, warn=say)  # type: ignore[arg-type]
    return restorer.restore(0, None, lambda: None).task.processor


def test_a_snapshot_under_the_key_is_used(snapshots: SnapshotStore) -> None:
    """The service finds the snapshot that it saved."""
    snapshots.save(0, 17, APPLICATION.snapshot(used(), PLACE))
    assert restored(APPLICATION, snapshots).state_bytes() == used().state_bytes()


@pytest.mark.parametrize(
    ("application", "place", "why"),
    [
        (OPEN, PLACE, "is not sealed, and a key is given"),
        (STRANGE, PLACE, "sealed under another key"),
        (
            APPLICATION,
            Checkpoint("other", 0, 3, 17, (40, NO_OFFSET)),
            "for 'other[0]@17', not for 'fraud[0]@17'",
        ),
        (
            APPLICATION,
            Checkpoint("fraud", 1, 3, 17, (40, NO_OFFSET)),
            "for 'fraud[1]@17', not for 'fraud[0]@17'",
        ),
        (
            APPLICATION,
            Checkpoint("fraud", 0, 2, 12, (30, NO_OFFSET)),
            "for 'fraud[0]@12', not for 'fraud[0]@17'",
        ),
    ],
)
def test_a_foreign_snapshot_is_passed_over(
    snapshots: SnapshotStore, application: Application, place: Checkpoint, why: str
) -> None:
    """Skipped: no seal, another key, application or partition, or an old one renamed."""
    snapshots.save(0, 17, application.snapshot(used(), place))
    said: list[str] = []
    with pytest.raises(StateError, match="no snapshot can be used"):
        restored(APPLICATION, snapshots, said)
    assert len(said) == 1
    assert why in said[0]


@pytest.mark.parametrize(
    "place",
    [
        Checkpoint("other", 0, 3, 17, (40, NO_OFFSET)),
        Checkpoint("fraud", 1, 3, 17, (40, NO_OFFSET)),
        Checkpoint("fraud", 0, 2, 12, (30, NO_OFFSET)),
    ],
)
def test_without_a_key_the_position_is_looked_at(
    snapshots: SnapshotStore, place: Checkpoint
) -> None:
    """A snapshot under the name of another one is skipped too."""
    snapshots.save(0, 17, OPEN.snapshot(used(), place))
    said: list[str] = []
    with pytest.raises(StateError, match="no snapshot can be used"):
        restored(OPEN, snapshots, said)
    assert "not of fraud[0]@17" in said[0]


def test_a_key_that_is_missing_stops_the_start(snapshots: SnapshotStore) -> None:
    """A missing key is reported, and the state is not rebuilt from the changelog instead."""
    snapshots.save(0, 17, APPLICATION.snapshot(used(), PLACE))
    with pytest.raises(StateError, match=r"00017\.abers: .*no key.*ABERS_STATE_KEY"):
        restored(OPEN, snapshots)


def test_learners_of_another_shard_are_never_unpickled(
    snapshots: SnapshotStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A learner of another task is never unpickled, not even under the right key."""
    application = APPLICATION._replace(settings=Settings(learner="logistic"))
    learning = Processor(application.settings, outcomes=False)
    snapshots.save(
        0, 17, application.snapshot(learning, Checkpoint("fraud", 1, 3, 17, (40, NO_OFFSET)))
    )
    monkeypatch.setattr(pickle, "loads", None)
    with pytest.raises(StateError, match="no snapshot can be used"):
        restored(application, snapshots)


@pytest.mark.parametrize(
    ("application", "place"),
    [(OPEN, PLACE), (APPLICATION, Checkpoint("fraud", 0, 2, 12, (30, NO_OFFSET)))],
)
def test_the_changelog_is_not_shortened_for_a_foreign_snapshot(
    snapshots: SnapshotStore, application: Application, place: Checkpoint
) -> None:
    """A snapshot that cannot be used keeps no changelog records and trims none."""
    snapshots.save(0, 17, application.snapshot(used(), place))
    trimming = ChangelogTrimmer(APPLICATION, snapshots, {})
    assert trimming.oldest(0) == 0
    snapshots.save(
        0, 19, APPLICATION.snapshot(used(), Checkpoint("fraud", 0, 4, 19, (50, NO_OFFSET)))
    )
    assert trimming.oldest(0) == 19


def test_a_seed_is_for_its_shard(snapshots: SnapshotStore) -> None:
    """An initial state starts its own task; another partition's, or a snapshot, starts none."""
    place = Checkpoint("fraud", 0, 0, 0, (40, NO_OFFSET))
    position = {"app": "fraud", "partition": 0, "batch": 0, "changelog": 0, "following": (40, -1)}
    seed = used().snapshot(position, APPLICATION.key, initial_state_scope("fraud", 0))
    beginning = InitialState(APPLICATION, Topics(), "earliest", snapshots)  # type: ignore[arg-type]
    snapshots.save(0, 0, seed)
    task = beginning.create(0)
    assert (task.checkpoint, task.processor.state_bytes()) == (place, used().state_bytes())
    snapshots.save(1, 0, seed)
    with pytest.raises(StateError, match=r"the seed of fraud\[0\]' *, not for 'the seed of fraud"):
        beginning.create(1)
    snapshots.save(0, 0, APPLICATION.snapshot(used(), place))
    with pytest.raises(StateError, match=r"sealed for 'fraud\[0\]@0'"):
        beginning.create(0)


def test_a_seed_without_a_key_is_for_its_shard(snapshots: SnapshotStore) -> None:
    """Without a key the position names the task."""
    position = {"app": "fraud", "partition": 0, "batch": 0, "changelog": 0, "following": (40, -1)}
    snapshots.save(1, 0, used().snapshot(position))
    beginning = InitialState(OPEN, Topics(), "earliest", snapshots)  # type: ignore[arg-type]
    with pytest.raises(StateError, match=r"the snapshot is of fraud\[0\]@0, not of fraud\[1\]@0"):
        beginning.create(1)
