"""Where records are routed to if labels carry only ids, and how that is recovered.

An observation goes to the partition of its model, and a label to that of the observation with its
id. Both inputs have the same partitions, by id. A router that has a partition of observations has
that of labels, too.

The inputs are the log of a routing. `LabelRecovery` restores its newest snapshot before the
committed offsets, and lets it take the records from there to these offsets, without writing them.
Without a snapshot it takes all records that the inputs still have.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import partial
from itertools import compress, repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from abers.exceptions import StateError
from abers.stream.background_snapshot import BackgroundSnapshotter
from abers.stream.cells import root
from abers_connectors.runtime.application import CommitNote
from abers_connectors.runtime.batches import LABELS, OBSERVATIONS
from abers_connectors.runtime.deserializer import input_schemas
from abers_connectors.runtime.label_routes import LabelColumns, LabelRouting, RoutingPosition
from abers_connectors.runtime.model_routes import UNREAD, InputFields, Routes, partitions_by_model
from abers_connectors.runtime.transport import BadHeaders, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from abers.arrays import Integers
    from abers.serialization import Piece
    from abers.stream.cells import RawColumns
    from abers.stream.columns import Schema
    from abers_connectors.config.model import Config
    from abers_connectors.runtime.application import Application
    from abers_connectors.runtime.label_routes import RoutingLimits
    from abers_connectors.runtime.snapshots import SnapshotStore
    from abers_connectors.runtime.transport import CommittedOffset, Reader, Record

__all__ = ["IdRouting", "LabelKeys", "LabelRecovery", "LabelSnapshots"]

LabelKey: TypeAlias = tuple[str, int, str | None]
"""Id, event time in milliseconds, and the model; None for a label."""


class LabelKeys:
    """Reads the keys of observations and labels, as the tasks read these fields."""

    def __init__(self, config: Config, environ: Mapping[str, str] = os.environ) -> None:
        observations, labels = input_schemas(config)
        seen, late = observations.fields, labels.fields
        reads = [_roots(seen.id, seen.time, seen.model), _roots(late.id, late.time)]
        inputs = [partial(_keys, observations, OBSERVATIONS), partial(_keys, labels, LABELS)]
        self._fields = InputFields(config, reads, inputs, environ)
        self.prepare = self._fields.prepare

    def read(self, records: Sequence[Record], inputs: Sequence[int]) -> list[LabelKey | None]:
        """Return the key of each record; None if it cannot be read, and so is no event."""
        keys = self._fields.read(records, inputs)
        if BadHeaders in {type(one.headers) for one in records}:
            bad = (type(one.headers) is BadHeaders for one in records)
            keys = [None if lost else key for lost, key in zip(bad, keys, strict=True)]
        return keys


def _roots(*paths: str) -> frozenset[str]:
    return frozenset(name for path in paths for name in root(path))


def _keys(schema: Schema, which: int, raw: RawColumns, rows: range) -> list[LabelKey | None]:
    """Return the keys of the records of an input; raises an error if an id is not UTF-8."""
    of_ids, times, of_models = schema.keys(raw, rows)
    ids: list[str | None] = of_ids.tolist()
    "".join(filter(None, ids)).encode()
    models = repeat(None) if which == LABELS else of_models.tolist()
    keys = zip(ids, times.tolist(), models, strict=False)
    return [None if id_ is None else (id_, time, model) for id_, time, model in keys]


_log = logging.getLogger(__name__)


@dataclass
class LabelPartition:
    """The routing of a partition, and where it is."""

    number: int
    routing: LabelRouting
    position: RoutingPosition
    since_snapshot: int = 0  # records


class LabelRecovery:
    """Restores the routing of partitions.

    `keys` reads what the routing needs of records. Without `snapshots` all records of the inputs
    are read. `tick` is called while a snapshot is read.
    """

    def __init__(  # noqa: PLR0913 - each is independent
        self,
        application: Application,
        reader: Reader,
        snapshots: SnapshotStore | None,
        *,
        limits: RoutingLimits,
        keys: LabelKeys,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        self._application, self._reader, self._limits = application, reader, limits
        self._snapshots, self._keys, self._tick = snapshots, keys, tick

    def restored(
        self, number: int, committed: Sequence[CommittedOffset]
    ) -> Generator[None, None, LabelPartition]:
        """Return the routing at committed offsets of observations and labels.

        It yields between steps, so that the caller keeps control.
        """
        observations, labels = committed
        end = RoutingPosition(observations.offset, labels.offset)
        routing, start = self._newest(number, end)
        for which, topic in enumerate(self._application.sources):
            log = TopicPartition(topic, number)
            first = max(start[which], self._reader.offset_range(log).start)
            if first < end[which]:
                for records in self._reader.read(log, first, end[which]):
                    self._replay(routing, records, which)
                    yield
        routing.resume(CommitNote.decoded(labels.note).waiting)
        return LabelPartition(number, routing, end)

    def _newest(self, number: int, end: RoutingPosition) -> tuple[LabelRouting, RoutingPosition]:
        """Return the routing of the newest snapshot that is not after a position, or a new one."""
        owner, key = snapshot_owner(self._application, number), self._application.key
        stored = () if self._snapshots is None else self._snapshots.newest(number, self._tick)
        for name, blob in stored:
            try:
                routing, start = LabelRouting.restore(self._limits, blob, key, owner)
            except StateError as error:
                _log.warning("%s is skipped: %s", name, error)
                continue
            if start.observations <= end.observations and start.labels <= end.labels:
                return routing, start
        return LabelRouting(self._limits, key), RoutingPosition(0, 0)

    def _replay(self, routing: LabelRouting, records: Sequence[Record], which: int) -> None:
        inputs = [which] * len(records)
        self._keys.prepare(records, inputs, self._tick)
        keys = self._keys.read(records, inputs)
        known = [key is not None for key in keys]
        if taken := [*compress(records, known)]:
            found = [key for key in keys if key is not None]
            routing.replay(LabelColumns(taken, inputs[: len(taken)], *label_columns(found)))


class LabelSnapshots:
    """Saves snapshots in the background, of each partition after `every` records."""

    def __init__(self, application: Application, snapshots: SnapshotStore, every: int) -> None:
        self._application, self._every = application, every
        self._saver = BackgroundSnapshotter(snapshots.save)

    def save(self, partitions: Collection[LabelPartition]) -> None:
        """Start a snapshot of the partition that needs it most, unless one is running."""
        for result in self._saver.finished():
            if result.error is not None:
                _log.warning("snapshot of the ids not saved: %s", result.error)
        due = [one for one in partitions if one.since_snapshot >= self._every]
        if not due or self._saver.busy():
            return
        one = max(due, key=lambda part: part.since_snapshot)
        one.since_snapshot = 0
        make = partial(_pieces, one, snapshot_owner(self._application, one.number))
        self._saver.start(one.number, sum(one.position), make)

    def close(self, timeout: float = 0.0) -> None:
        """Wait `timeout` seconds for an unfinished snapshot, then abandon it."""
        self._saver.close(timeout)


def snapshot_owner(application: Application, number: int) -> str:
    """Return the owner that a snapshot is sealed for."""
    return str(TopicPartition(application.router_group, number))


def label_columns(
    keys: Sequence[LabelKey],
) -> tuple[Sequence[str], Sequence[str | None], Integers]:
    """Return ids, models and times, as `LabelRouting` takes them."""
    ids, times, models = zip(*keys, strict=True)
    return ids, models, np.array(times, np.int64)


def _pieces(partition: LabelPartition, owner: str) -> list[Piece]:
    return [partition.routing.snapshot(partition.position, owner)]


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
    """Routes records to `partitions` partitions; see `model_routes.Routing`.

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
        """Restore the partitions that are assigned; yield between steps.

        A partition that has not moved needs nothing. Raises a StateError if a partition of only one
        input is assigned.
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
        """Yield the records to write for some rows, all of one partition."""
        found = label_columns([key for row in rows if (key := keys[row]) is not None])
        taken, which = [records[row] for row in rows], [inputs[row] for row in rows]
        routed = self._parts[number].routing.route(LabelColumns(taken, which, *found))
        of_batch = (rows[row] for row in routed.rows)
        columns = (routed.records, routed.inputs, routed.models, routed.headers)
        return map(_Written, of_batch, *columns)

    def _advance(self, records: Sequence[Record], inputs: Sequence[int]) -> None:
        """Move the positions past records, which the state now includes."""
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
