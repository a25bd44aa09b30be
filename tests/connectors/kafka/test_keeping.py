"""When snapshots are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from abers.stream import Settings
from abers_connectors.kafka.changelog import Applied
from abers_connectors.kafka.home import Home, snapshot_of
from abers_connectors.kafka.keeping import Keeping
from abers_connectors.kafka.shard import Place, Shard
from abers_connectors.kafka.snapshots import Snapshots
from abers_connectors.kafka.status import Status
from abers_connectors.notify import Supervisor

if TYPE_CHECKING:
    from pathlib import Path

    from abers_connectors.kafka.transport import Consumer

HOME = Home("app", ["seen", "told"], "changelog", Settings(), outcomes=False, key=None)
EVERY = 100


def batch(number: int, records: int) -> Applied:
    """Give a batch of records none of which was an event."""
    return Applied("0", number, (10 * (number + 1), 0), bytes(records), b"", [], None)


def restored(snapshots: Snapshots, batches: list[Applied]) -> Shard:
    """Restore a shard: the newest snapshot, and the changelog after it, one batch a record."""
    shard = Shard(HOME.processor(), Place("app", 0, 0, 0, (0, 0)))
    for name, blob in snapshots.newest(0):
        processor = HOME.loaded(blob, snapshot_of("app", 0, snapshots.offset(name)))
        shard = Shard(processor, Place.of(processor.position))
        break
    for one in batches[shard.place.batch :]:
        shard.redo(one)
        shard.written(one.number + 1)
    return shard


@pytest.mark.parametrize("restarts", [(), (1, 3, 5, 7), range(10)])
def test_a_restart_does_not_begin_to_count_anew(restarts: tuple[int, ...], tmp_path: Path) -> None:
    """Snapshots lie `state.every` records apart, however many processes applied those."""
    snapshots = Snapshots(str(tmp_path), "app", keep=99)
    batches: list[Applied] = []
    shard = restored(snapshots, batches)
    for number in range(10):
        if number in restarts:
            shard = restored(snapshots, batches)
        keeping = Keeping(
            HOME,
            snapshots,
            every=EVERY,
            consumer=cast("Consumer", None),  # which is not asked while the time stands still
            status=Status(60.0),
            supervisor=Supervisor({}),
            clock=lambda: 0.0,
        )
        batches.append(batch(number, 40))
        shard.redo(batches[-1])
        shard.written(number + 1)
        keeping([shard])
        # What has begun is done in the background.
        while shard.unsaved == 0 and number + 1 not in {one.offset for one in snapshots.stored()}:
            pass
    assert [one.offset for one in snapshots.stored()] == [9, 6, 3]
