"""Records that were deleted before they were read.

Governing rule: nobody goes on past a loss unless the configuration says so; and
where a shard then goes on is committed like a batch, so that the changelog shows
the gap and nobody decides again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from abers.exceptions import StateError
from abers_connectors.kafka.home import named

if TYPE_CHECKING:
    from collections.abc import Callable

    from abers_connectors.kafka.home import Home
    from abers_connectors.kafka.shard import Shard
    from abers_connectors.kafka.transport import Partition, Reader

__all__ = ["Losses"]


class Losses:
    """Sees whether the inputs still have what a shard is to read.

    Parameters
    ----------
    home
        Which application.
    reader
        Knows the bounds of the inputs.
    policy
        What to do where they have not: `kafka.lost_history`.
    say
        Told in a sentence what was passed over.
    """

    def __init__(
        self,
        home: Home,
        reader: Reader,
        policy: Literal["stop", "earliest", "latest"],
        say: Callable[[str], None],
    ) -> None:
        self._home, self._reader, self._policy, self._say = home, reader, policy, say

    def pass_over(self, shard: Shard) -> bool:
        """Move a shard past what its inputs no longer have.

        Parameters
        ----------
        shard
            It, where its offsets are.

        Returns
        -------
        bool
            Whether it was moved, which is to be committed.

        Raises
        ------
        StateError
            If something is lost, and the configuration does not say how to go on.
        """
        place = shard.place
        parts = self._home.partitions(place.partition)
        moved = [
            self._where(partition, offset)
            for partition, offset in zip(parts, place.following, strict=False)
        ]
        first, second = (*moved, *place.following[len(moved) :])
        if (first, second) == place.following:
            return False
        shard.skip((first, second))
        return True

    def _where(self, partition: Partition, offset: int) -> int:
        """Give where to go on; at the offset itself if it can be read."""
        bounds = self._reader.bounds(partition)
        if bounds.start <= offset <= bounds.end:
            return offset
        lost = (
            f"{named(partition, offset)} is next, and the topic has only @{bounds.start} to "
            f"@{bounds.end}: records were deleted before they were read, or the topic is another"
        )
        if self._policy == "stop":
            msg = f'{lost}; write kafka.lost_history = "earliest" or "latest" to go on without them'
            raise StateError(msg)
        ends = {"earliest": bounds.start, "latest": self._reader.stable_end(partition)}
        found = ends[self._policy]
        self._say(f"{lost}; going on at @{found}, as kafka.lost_history says")
        return found
