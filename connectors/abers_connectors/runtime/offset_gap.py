"""Input records that were deleted before they were read.

A task skips a gap only if the configuration says so. Where it continues is committed like a batch,
so that the changelog shows the gap and no later process decides again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abers.exceptions import StateError

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.config.sections import OffsetGapPolicy
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.task import StreamTask
    from abers_connectors.runtime.transport import Reader, TopicPartition

__all__ = ["offset_after_gap", "skip_gap"]


def offset_after_gap(
    reader: Reader,
    policy: OffsetGapPolicy,
    warn: Callable[[str], None],
    partition: TopicPartition,
    offset: int,
) -> int:
    """Return the offset from which to read a partition: the given one, if the topic has it.

    The policy is `kafka.on_offset_out_of_range`; "stop" raises a StateError. `warn` is called with
    a sentence about a gap that is skipped.
    """
    start, end = reader.offset_range(partition)
    if start <= offset <= end:
        return offset
    gap = (
        f"{partition.at(offset)} is next, but the topic has only @{start} to @{end}: records "
        "were deleted before they were read, or it is another topic"
    )
    if policy == "stop":
        msg = (
            f'{gap}; set kafka.on_offset_out_of_range = "earliest" or "latest" to continue '
            "without them"
        )
        raise StateError(msg)
    found = reader.last_stable_offset(partition) if policy == "latest" else start
    warn(f"{gap}; continuing at @{found}, as kafka.on_offset_out_of_range says")
    return found


def skip_gap(
    application: Application,
    reader: Reader,
    policy: OffsetGapPolicy,
    warn: Callable[[str], None],
    task: StreamTask,
) -> bool:
    """Move a task past gaps of its inputs, and return whether it moved and is to be committed.

    The parameters are those of `offset_after_gap`.
    """
    checkpoint = task.checkpoint
    next_offsets = [*checkpoint.next_offsets]
    for which, partition in enumerate(application.input_partitions(checkpoint.partition)):
        offset = next_offsets[which]
        next_offsets[which] = offset_after_gap(reader, policy, warn, partition, offset)
    moved = (next_offsets[0], next_offsets[1])
    if moved == checkpoint.next_offsets:
        return False
    task.seek(moved)
    return True
