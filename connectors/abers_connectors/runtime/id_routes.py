"""Where records are routed to if labels carry only the id of their observation.

An observation goes to the partition of its model, and a label to that of the observation with its
id. Both inputs have the same partitions, by id. A router that has one of observations has that of
labels, too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from abers.exceptions import StateError
from abers_connectors.runtime.label_recovery import label_columns
from abers_connectors.runtime.label_routes import RoutingPosition
from abers_connectors.runtime.model_routes import UNREAD, Routes, partitions_by_model
from abers_connectors.runtime.transport import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.label_keys import LabelKey, LabelKeys
    from abers_connectors.runtime.label_recovery import (
        LabelPartition,
        LabelRecovery,
        LabelSnapshots,
    )
    from abers_connectors.runtime.transport import CommittedOffset, Record

__all__ = ["IdRouting"]

_NO_ROOM = (
    "the router forgets ids before limits.label_timeout, because there are too many, so labels "
    "that come later become dead letters, unknown-id; raise limits.max_bytes"
)


class _Written(NamedTuple):
    """A record to write."""

    row: int  # of the batch, after which it is written
    record: Record
    which: int  # its input
    model: str | None
    found: tuple[str, bytes] | None
    unread: bool = False


class IdRouting:
    """Routes records to one of so many `partitions`; see `model_routes.Routing`.

    `hint` is called with a sentence for the operator.
    """

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        application: Application,
        partitions: int,
        *,
        keys: LabelKeys,
        recovery: LabelRecovery,
        snapshots: LabelSnapshots | None,
        hint: Callable[[str], None],
    ) -> None:
        self._application = application
        self._keys, self._recovery, self._snapshots = keys, recovery, snapshots
        self.prepare = keys.prepare
        self._hint = hint
        self._partition = partitions_by_model(partitions)
        self._parts: dict[int, LabelPartition] = {}

    def begin(self, committed: Mapping[TopicPartition, CommittedOffset]) -> Iterator[None]:
        """Restore the partitions that are assigned; yield while it lasts.

        A partition that is where it was needs nothing. Raises a StateError if one of only one input
        is assigned.
        """
        before, self._parts = self._parts, {}
        for number in sorted({one.partition for one in committed}):
            found = [committed.get(one) for one in self._inputs(number)]
            ends = [one for one in found if one is not None]
            if len(ends) < len(found):
                msg = (
                    f"partition {number} of only one input is assigned: another program reads one "
                    f"of the inputs in the group {self._application.router_group}; give it a group "
                    "of its own"
                )
                raise StateError(msg)
            known = before.get(number)
            if known is None or known.position != tuple(one.offset for one in ends):
                known = yield from self._recovery.restored(number, ends)
            self._parts[number] = known

    def route(self, records: Sequence[Record], inputs: Sequence[int]) -> Routes:
        """Return the records to write now; see `model_routes.Routing`."""
        keys = self._keys.read(records, inputs)
        rows: dict[int, list[int]] = defaultdict(list)
        written: list[_Written] = []
        for row, (record, which, key) in enumerate(zip(records, inputs, keys, strict=True)):
            if key is None:
                written.append(_Written(row, record, which, None, None, unread=True))
            else:
                rows[record.partition].append(row)
        for number, mine in rows.items():
            written += self._routed(number, mine, records, inputs, keys)
        self._advance(records, inputs)
        written.sort(key=lambda one: one.row)
        return self._routes(written)

    def first_waiting(self, partition: TopicPartition) -> int | None:
        """Return the offset of the first label of a partition that waits, or None."""
        is_of_labels = partition.topic == self._application.sources[-1]
        return self._parts[partition.partition].routing.first_waiting if is_of_labels else None

    def committed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Take the next offsets, which are committed with all that was routed."""
        self._reach(offsets)
        if any(part.routing.evicted for part in self._parts.values()):
            self._hint(_NO_ROOM)
        if self._snapshots is not None:
            self._snapshots.save(self._parts.values())

    def _inputs(self, number: int) -> list[TopicPartition]:
        return [TopicPartition(topic, number) for topic in self._application.sources]

    def _routed(
        self,
        number: int,
        rows: Sequence[int],
        records: Sequence[Record],
        inputs: Sequence[int],
        keys: Sequence[LabelKey | None],
    ) -> Iterator[_Written]:
        """Yield what is written of some rows, all of a partition."""
        ids, models, times = label_columns([key for row in rows if (key := keys[row]) is not None])
        routed = self._parts[number].routing.route(
            [records[row] for row in rows], [inputs[row] for row in rows], ids, models, times
        )
        of_batch = (rows[row] for row in routed.rows)
        columns = (routed.records, routed.inputs, routed.models, routed.headers)
        return map(_Written, of_batch, *columns)

    def _advance(self, records: Sequence[Record], inputs: Sequence[int]) -> None:
        """Move the positions behind records: from now on the state is of these."""
        numbers, offsets = [one.partition for one in records], [one.offset for one in records]
        for number, count in Counter(numbers).items():
            self._parts[number].since_snapshot += count
        last = dict(zip(zip(numbers, inputs, strict=True), offsets, strict=True))
        self._reach({self._inputs(n)[which]: one + 1 for (n, which), one in last.items()})

    def _reach(self, offsets: Mapping[TopicPartition, int]) -> None:
        for part in self._parts.values():
            ends = zip(self._inputs(part.number), part.position, strict=True)
            part.position = RoutingPosition(*(offsets.get(one, before) for one, before in ends))

    def _routes(self, written: Sequence[_Written]) -> Routes:
        models = [one.model for one in written]
        return Routes(
            [one.record for one in written],
            [one.which for one in written],
            [UNREAD if model is None else self._partition(model) for model in models],
            [at for at, one in enumerate(written) if one.unread],
            [one.found for one in written],
        )
