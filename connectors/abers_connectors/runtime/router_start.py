"""Where a router begins to read the inputs.

`kafka.starting_offset` holds for a group that never committed: one member commits where all
partitions begin, and the others wait for it. From then on a partition without an offset was added,
and is read from its beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from abers.exceptions import StateError
from abers_connectors.runtime.initial_state import starting_offset
from abers_connectors.runtime.offset_gap import offset_after_gap
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers_connectors.config.sections import OffsetGapPolicy
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.transport import GroupMembership, Producer, Reader

__all__ = ["RouterStart"]


class RouterStart:
    """Finds the offsets of the inputs that a router reads.

    `reader` is of the group of the routers. `start` and `policy` are `kafka.starting_offset` and
    `kafka.on_offset_out_of_range`. `warn` is called with a sentence about a gap that is skipped.
    `require_generation` raises if the routed topic is not that of the generation in use.
    """

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        application: Application,
        reader: Reader,
        producer: Producer,
        *,
        start: Literal["earliest", "latest"] | int,
        policy: OffsetGapPolicy,
        warn: Callable[[str], None],
        require_generation: Callable[[], object] = lambda: None,
    ) -> None:
        self._application, self._reader, self._producer = application, reader, producer
        self._start, self._policy, self._warn = start, policy, warn
        self._require_generation = require_generation
        self.inputs: Sequence[TopicPartition] = ()
        """All partitions of the inputs, when offsets were last found."""

    def offsets(self, membership: GroupMembership) -> dict[TopicPartition, int] | None:
        """Return the next offset of each partition that is assigned; None while it is unknown.

        Raises a StateError if records are lost, or the offsets of the group are.
        """
        self._require_generation()
        inputs = [
            TopicPartition(topic, number)
            for topic in self._application.sources
            for number in range(self._reader.partition_count(topic))
        ]
        self.inputs = inputs
        if not membership.assigned <= {*inputs}:  # a partition was added a moment ago
            return None
        committed = {one: found.offset for one, found in self._reader.all_committed(inputs).items()}
        if not committed:
            if not self._may_begin(inputs[0], membership):
                return None
            self._require_nothing_routed()
            committed = {one: starting_offset(self._reader, self._start, one) for one in inputs}
            self._producer.begin()
            self._producer.commit(committed, membership.group_metadata)
        return {one: self._next(one, committed.get(one)) for one in membership.assigned}

    @staticmethod
    def _may_begin(first: TopicPartition, membership: GroupMembership) -> bool:
        """Return whether this member commits the first offsets: the one that has a partition."""
        return first in membership.assigned and membership.group_metadata is not None

    def _next(self, partition: TopicPartition, committed: int | None) -> int:
        if committed is None:
            return self._reader.offset_range(partition).start
        return offset_after_gap(self._reader, self._policy, self._warn, partition, committed)

    def _require_nothing_routed(self) -> None:
        """Raise a StateError if the group has no offsets and yet records were routed."""
        (topic,) = self._application.inputs
        for number in range(self._reader.partition_count(topic)):
            one = TopicPartition(topic, number)
            start, end = self._reader.offset_range(one)
            # Ends of transactions are no records.
            if start or any(self._reader.read(one, start, end)):
                group = self._application.router_group
                msg = (
                    f"{one} has records before @{end}, and the group {group} has no committed "
                    "offsets any more, so records would be routed twice; set its offsets behind "
                    "the last routed records by kafka-consumer-groups.sh --reset-offsets, or start "
                    "a new application (kafka.application_id)"
                )
                raise StateError(msg)
