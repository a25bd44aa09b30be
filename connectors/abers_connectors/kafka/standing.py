"""What there is of the state of a shard, as somebody sees it from outside.

Governing rule: looking changes nothing, and damage is part of what is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from abers.exceptions import StateError
from abers_connectors.kafka.changelog import Applied, Assembler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers_connectors.kafka.restoring import Weighed
    from abers_connectors.kafka.snapshots import Stored
    from abers_connectors.kafka.transport import Bounds, Partition, Reader

__all__ = ["Kept", "Standing", "last_batch", "standing"]

_TAIL = 64  # records of the changelog that are read to find the last batch, and then more


class Kept(msgspec.Struct, frozen=True):
    """A snapshot, and why it cannot be used; None if it can."""

    name: str
    offset: int
    size: int
    unfit: str | None


class Standing(msgspec.Struct, frozen=True):
    """What there is of a shard, and what a restore would start from."""

    partition: int
    committed: dict[str, int | None]
    changelog: str
    start: int
    end: int
    snapshots: list[Kept]
    unread: list[str]
    restore: str


def standing(  # noqa: PLR0913, PLR0917 - what there is to tell
    number: int,
    committed: dict[str, int | None],
    changelog: tuple[str, Bounds],
    stored: Iterable[Stored],
    weighed: Iterable[Weighed],
    unread: list[str],
) -> Standing:
    """Put together what there is of a shard.

    Parameters
    ----------
    number
        Of its partitions.
    committed
        Offsets by the names of the input partitions.
    changelog
        The name of its partition, and the bounds.
    stored, weighed
        Snapshots as they lie there, of other shards too, and what each is worth.
    unread
        What could not be read, a sentence each; what is found out of `weighed` may add to it.

    Returns
    -------
    Standing
        It.
    """
    log, bounds = changelog
    unfit = {one.name: None if one.error is None else str(one.error) for one in weighed}
    kept = [
        Kept(one.name, one.offset, one.size, unfit.get(one.name, "it cannot be read"))
        for one in stored
        if one.partition == number
    ]
    good = next((one for one in kept if one.unfit is None), None)
    if good is not None:
        start = f"snapshot {good.name} and the changelog from @{good.offset} on"
    elif bounds.end == 0 and {*committed.values()} == {None}:
        start = "nothing: there is no state yet, and it begins where kafka.start says"
    elif bounds.start == 0 < bounds.end:
        start = "the changelog from its beginning"
    elif unread:
        start = "nothing, as long as the snapshots cannot be read: the changelog lost its beginning"
    else:
        start = "nothing: no snapshot can be used, and the changelog lost its beginning"
    return Standing(number, committed, log, *bounds, kept, unread, start)


def last_batch(reader: Reader, log: Partition, bounds: Bounds) -> Applied | None:
    """Read the last batch of a changelog that can be read; None if there is none.

    Parameters
    ----------
    reader
        Reads it.
    log, bounds
        Its partition, and the part of it that is there.
    """
    count = _TAIL
    while True:
        start = max(bounds.start, bounds.end - count)
        last = _last(reader, log, start, bounds.end)
        if last is not None or start == bounds.start:
            return last
        count *= _TAIL


def _last(reader: Reader, log: Partition, start: int, end: int) -> Applied | None:
    last, assembler = None, Assembler()
    for records in reader.read(log, start, end):
        for record in records:
            try:
                last = assembler.add(record.value or b"") or last
            except StateError:  # damaged, or the rest of a batch that began before
                assembler = Assembler()
    return last
