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
    from abers_connectors.runtime.transport import Reader

__all__ = ["skip_gap"]


def skip_gap(
    application: Application,
    reader: Reader,
    policy: OffsetGapPolicy,
    warn: Callable[[str], None],
    task: StreamTask,
) -> bool:
    """Move a task past gaps of its inputs, and return whether it moved and is to be committed.

    The policy is `kafka.on_offset_out_of_range`; "stop" raises a StateError. `warn` is called with
    a sentence about each gap that is skipped.
    """
    checkpoint = task.checkpoint
    next_offsets = [*checkpoint.next_offsets]
    for which, partition in enumerate(application.input_partitions(checkpoint.partition)):
        offset, (start, end) = next_offsets[which], reader.offset_range(partition)
        if start <= offset <= end:
            continue
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
        latest = policy == "latest"
        next_offsets[which] = reader.last_stable_offset(partition) if latest else start
        warn(f"{gap}; continuing at @{next_offsets[which]}, as kafka.on_offset_out_of_range says")
    moved = (next_offsets[0], next_offsets[1])
    if moved == checkpoint.next_offsets:
        return False
    task.seek(moved)
    return True
