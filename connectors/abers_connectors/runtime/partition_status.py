"""Status of one partition's state: what a restore would start from.

Reading the status changes nothing, and damage is part of it rather than an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers_connectors.runtime.restore import CheckedSnapshot
    from abers_connectors.runtime.snapshots import StoredSnapshot
    from abers_connectors.runtime.transport import OffsetRange

__all__ = ["PartitionStatus", "SnapshotStatus"]


class SnapshotStatus(msgspec.Struct, frozen=True):
    """A snapshot, and why it cannot be used; None if it can."""

    name: str
    offset: int
    size: int
    unfit: str | None


class PartitionStatus(msgspec.Struct, frozen=True):
    """Offsets, changelog and snapshots of a partition, and what a restore would start from."""

    partition: int
    committed: dict[str, int | None]
    changelog: str
    start: int
    end: int
    snapshots: list[SnapshotStatus]
    unread: list[str]
    restore: str

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - all that belongs to a partition
        cls,
        partition: int,
        committed: dict[str, int | None],
        changelog: tuple[str, OffsetRange],
        stored: Iterable[StoredSnapshot],
        checked: Iterable[CheckedSnapshot],
        unread: list[str],
    ) -> PartitionStatus:
        """Put the status together.

        `committed` are the offsets of the input partitions, and `changelog` is the name of that
        partition with its offsets. `stored` are all snapshots, `checked` those of this partition.
        `unread` has a sentence for everything that could not be read; iterating `checked` may add
        to it.
        """
        log, offsets = changelog
        unfit = {one.name: None if one.error is None else str(one.error) for one in checked}
        snapshots = [
            SnapshotStatus(one.name, one.offset, one.size, unfit.get(one.name, "it cannot be read"))
            for one in stored
            if one.partition == partition
        ]
        good = next((one for one in snapshots if one.unfit is None), None)
        if good is not None:
            restore = f"snapshot {good.name} and the changelog from @{good.offset} on"
        elif offsets.end == 0 and {*committed.values()} == {None}:
            restore = (
                "nothing: there is no state yet, and it begins where kafka.starting_offset says"
            )
        elif offsets.start == 0 < offsets.end:
            restore = "the changelog from its beginning"
        elif unread:
            restore = "nothing while the snapshots cannot be read: the changelog lost its beginning"
        else:
            restore = "nothing: no snapshot can be used, and the changelog lost its beginning"
        return cls(partition, committed, log, *offsets, snapshots, unread, restore)
