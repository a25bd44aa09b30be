"""Routing of labels that carry only the id of their observation, by an index of ids.

It knows one partition of observations and the partition of labels with the same number; a label is
in the partition of its observation. A label goes to the model of the observation with its id. Until
that comes it waits, at most `limits.label_timeout` of event time, and then it is unknown.

The state follows from the observations and the labels that were read, each in their order, and not
from the order in which they were merged; only labels that go out because too many wait depend on
that. The first of those that wait go out. So a router that commits the offsets of both inputs and
`LabelRouting.first_waiting` in one transaction loses and repeats nothing: it restores a snapshot,
replays the records after it up to the committed offsets, and ends the waits that had ended.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec
import numpy as np

from abers.backends import core
from abers.exceptions import StateError
from abers.serialization import REMEDY, seal, unseal
from abers_connectors.runtime.batches import LABELS
from abers_connectors.runtime.deserializer import AMBIGUOUS_ID, MODEL, REFUSED, UNKNOWN_ID
from abers_connectors.runtime.transport import sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from abers._core import IdIndex
    from abers.arrays import Integers
    from abers.stream import Settings
    from abers.stream.cells import BadRecordError
    from abers_connectors.runtime.transport import Record

    _Result: TypeAlias = str | BadRecordError  # the model of a record, or why it has none

__all__ = [
    "LabelColumns",
    "LabelRouting",
    "ModelNumbers",
    "RoutedLabels",
    "RoutingLimits",
    "RoutingPosition",
]

_SHARE = 4  # a quarter as many new models as numbers come between two searches


class ModelNumbers:
    """Numbers for the models of the ids in an index, at most `most`.

    Which models have numbers depends only on their order, and on the numbers that are in use when
    none is free.

    Examples
    --------
    >>> numbers = ModelNumbers(2)
    >>> [numbers.of(model, in_use=lambda: [1]) for model in ("a", "b", "b", "c")]
    [0, 1, 1, 0]
    >>> numbers.names
    ['c', 'b']
    """

    def __init__(self, most: int, names: Sequence[str | None] = (), since: int = 0) -> None:
        self._most = most
        self.names: list[str | None] = [*names]
        """By number; None where a number is free."""
        self._numbers = {name: number for number, name in enumerate(names) if name is not None}
        self._free = self._without_name()
        self.since = since
        """How many further models came since the last search for free numbers."""

    def __getitem__(self, model: str) -> int:
        """Return the number of a model that has one."""
        return self._numbers[model]

    def of(self, model: str, in_use: Callable[[], Iterable[int]]) -> int | None:
        """Return the number of a model, a new one if it has none; None if all are in use.

        `in_use` is called when no number is free, but not again before a quarter as many further
        models came as there are numbers: it takes long.
        """
        number = self._numbers.get(model)
        return self._new(model, in_use) if number is None else number

    def _new(self, model: str, in_use: Callable[[], Iterable[int]]) -> int | None:
        self.since += 1
        if len(self.names) < self._most:
            self._free.append(len(self.names))
            self.names.append(None)
        if not self._free and _SHARE * self.since > self._most:
            self._keep({*in_use()})
        if not self._free:
            return None
        number = self._free.pop()
        self.names[number] = model
        self._numbers[model] = number
        return number

    def _keep(self, numbers: set[int]) -> None:
        """Keep only the models with these numbers."""
        self.since = 0
        self._numbers = {name: one for name, one in self._numbers.items() if one in numbers}
        self.names = [name if name in self._numbers else None for name in self.names]
        self._free = self._without_name()

    def _without_name(self) -> list[int]:
        """Return the free numbers, the first to use last."""
        return [number for number, name in enumerate(self.names) if name is None][::-1]


class WaitingLabel(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A `runtime.transport.Record` that waits, as it was read."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return a record without what its client keeps with it."""
        return cls(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            [*record.headers],
        )


class WaitingLabels:
    """Records of labels, by ascending offsets."""

    def __init__(self, labels: Iterable[WaitingLabel] = ()) -> None:
        self._labels: dict[int, WaitingLabel] = {}
        self.bytes = 0
        """Their memory, as by `transport.sizes_of`."""
        for one in labels:
            self.add(one)

    def __len__(self) -> int:
        """Return their number."""
        return len(self._labels)

    def __iter__(self) -> Iterator[int]:
        """Return their offsets."""
        return iter(self._labels)

    def all(self) -> list[WaitingLabel]:
        """Return all of them."""
        return [*self._labels.values()]

    def first(self) -> int | None:
        """Return the offset of the first of them, or None."""
        return next(iter(self._labels), None)

    def add(self, record: Record) -> None:
        """Add the record with the largest offset."""
        label = WaitingLabel.of(record)
        self._labels[label.offset] = label
        self.bytes += sum(sizes_of([label]))

    def pop(self, offset: int) -> WaitingLabel:
        """Remove and return a record."""
        label = self._labels.pop(offset)
        self.bytes -= sum(sizes_of([label]))
        return label


_MAGIC = b"abersLR\x01"
_WHAT = "a snapshot of label routing"
_ID_BYTES = 110  # of `limits.max_bytes`, as a finished id counts at least

# Results of `IdIndex.take` that are not the number of a model.
_AMBIGUOUS, _WAITS = -2, -3


class RoutingLimits(NamedTuple):
    """How long and how much is remembered; times in milliseconds of event time."""

    span: int  # how long an observation waits for its label, and a label for its observation
    jump: int  # how far one event alone moves the clock
    ids: int  # of observations that are remembered
    models: int  # of these observations
    labels: int  # that wait
    bytes: int  # of their records, as by `transport.sizes_of`

    @classmethod
    def of(cls, settings: Settings, tasks: int) -> Self:
        """Return the limits of a partition by those of the tasks; `tasks` is their number.

        The index knows as many ids as one task has room for, and as many models as all tasks.
        """
        return cls(
            settings.label_timeout + settings.allowed_lateness,
            settings.jump,
            max(1, settings.max_bytes // _ID_BYTES),
            settings.max_models * tasks,
            settings.max_early,
            settings.max_bytes,
        )


class RoutingPosition(NamedTuple):
    """The next offset of each input."""

    observations: int
    labels: int


class RoutedLabels(NamedTuple):
    """Records to write now, in order: columns of equal length."""

    records: list[Record]
    rows: list[int]  # the row of the batch after which each is written
    inputs: list[int]
    models: list[str | None]  # None for a label that is refused
    headers: list[tuple[str, bytes] | None]  # to add to each; `MODEL` or `REFUSED`

    def add(self, row: int, record: Record, which: int, result: _Result, *, given: bool) -> None:
        """Add a record with its model, `given` if the record itself has it, or with its refusal."""
        self.records.append(record)
        self.rows.append(row)
        self.inputs.append(which)
        if isinstance(result, str):
            self.models.append(result)
            self.headers.append(None if given else (MODEL, result.encode("utf-8", "surrogatepass")))
        else:
            self.models.append(None)
            self.headers.append((REFUSED, result.reason.encode()))


class _Saved(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    position: RoutingPosition
    names: list[str | None]
    since: int  # of `names`
    index: bytes
    waiting: list[WaitingLabel]


class LabelColumns(NamedTuple):
    """Records of both inputs, merged in any order, without those that cannot be decoded.

    Attributes
    ----------
    records
        The next records of each input.
    inputs
        Of each record: 0 for observations, 1 for labels.
    ids, models, times
        Fields of each record. The model is None where a label names none, and is looked up;
        all others go to their own model.
    """

    records: Sequence[Record]
    inputs: Sequence[int]
    ids: Sequence[str]
    models: Sequence[str | None]
    times: Integers


class _Found(NamedTuple):
    """What is known of a batch."""

    results: list[_Result | None]  # of each record; None if it waits
    released: list[tuple[int, int, _Result]]  # labels: after which row, offset


class LabelRouting:
    """The labels of a partition, and the ids of its observations.

    The clocks are the latest times of observations and of labels, which a wrong time moves no
    further than `jump`. Time is cut into 32 parts of `span`, so spans are exact to a part. With
    more ids than its limit the routing forgets the oldest, and early labels do not wait then.

    Parameters
    ----------
    limits
        How long and how much is remembered.
    key
        The secret that seals the state, or None. With it nobody can write ids that collide.

    Examples
    --------
    >>> from abers.stream import Settings
    >>> def record(offset):
    ...     return WaitingLabel("events", 0, offset, 0, None, b"", [])
    >>> routing = LabelRouting(RoutingLimits.of(Settings(), tasks=16))
    >>> early = LabelColumns([record(0)], [LABELS], ["a"], [None], np.array([60]))
    >>> routed = routing.route(early)
    >>> routed.records, routing.first_waiting
    ([], 0)
    >>> routed = routing.route(LabelColumns([record(0)], [0], ["a"], ["fraud"], np.array([50])))
    >>> routed.inputs, routed.models, routed.headers
    ([0, 1], ['fraud', 'fraud'], [None, ('abers.model', b'fraud')])
    """

    def __init__(self, limits: RoutingLimits, key: bytes | None = None) -> None:
        self._limits, self._key = limits, key
        secret = blake2b(key or b"", digest_size=16, person=b"abers.ids").digest()
        self._index: IdIndex = core.IdIndex(secret, limits.span, limits.jump, limits.ids)
        self._models, self._waiting = ModelNumbers(limits.models), WaitingLabels()

    @property
    def first_waiting(self) -> int | None:
        """The offset of the first label that waits, or None; commit it with the offset of labels.

        Without further labels it need not be committed again.
        """
        return self._waiting.first()

    @property
    def waiting(self) -> int:
        """Number of labels that wait."""
        return len(self._waiting)

    @property
    def evicted(self) -> int:
        """Number of ids that were forgotten early since the start, because there were too many."""
        return self._index.evicted

    def route(self, batch: LabelColumns) -> RoutedLabels:
        """Take the next records of both inputs, and return those to write now.

        Returns
        -------
        RoutedLabels
            Each observation, right after it the labels that waited for it, then the labels that
            expire by it; and each label that does not wait. Last come the labels for which there is
            no room.
        """
        routed = self._take(batch)
        for label in self._without_room():
            routed.add(len(batch.records) - 1, label, LABELS, UNKNOWN_ID, given=False)
        return routed

    def replay(self, batch: LabelColumns) -> None:
        """Take records that were routed before, as those after a snapshot; see `route`.

        It takes least memory if observations come first.
        """
        self._take(batch)

    def resume(self, first_waiting: int | None) -> None:
        """End the waits before the committed `first_waiting`, or all of them, after a replay."""
        ended = (one for one in [*self._waiting] if first_waiting is None or one < first_waiting)
        for offset in ended:
            self._end_wait(offset)

    def snapshot(self, position: RoutingPosition, owner: str) -> bytes:
        """Return the state at a position, sealed for its owner, such as a partition."""
        saved = _Saved(
            position,
            self._models.names,
            self._models.since,
            self._index.save(),
            self._waiting.all(),
        )
        return seal(_MAGIC, msgspec.msgpack.encode(saved), self._key, owner)

    @classmethod
    def restore(
        cls, limits: RoutingLimits, blob: bytes, key: bytes | None, owner: str
    ) -> tuple[Self, RoutingPosition]:
        """Return the routing of a snapshot, and its position.

        Raises a StateError if the snapshot is damaged, of another owner or key, or of another span.
        Then start without one: `replay` all records of the last two spans.
        """
        payload = unseal(_MAGIC, blob, _WHAT, key, owner)
        routing = cls(limits, key)
        try:
            saved = msgspec.msgpack.decode(payload, type=_Saved)
            routing._load(saved)
        except (msgspec.MsgspecError, ValueError) as error:
            msg = f"{_WHAT} cannot be used ({error}); {REMEDY}, or delete them"
            raise StateError(msg) from error
        return routing, saved.position

    def _load(self, saved: _Saved) -> None:
        self._index.load(saved.index)
        self._models = ModelNumbers(self._limits.models, saved.names, saved.since)
        self._waiting = WaitingLabels(saved.waiting)
        named = {number for number, name in enumerate(saved.names) if name is not None}
        waits = [one.offset for one in saved.waiting]
        if self._index.waits() != waits or not named.issuperset(self._index.models()):
            msg = "it is of another index"
            raise ValueError(msg)

    def _take(self, batch: LabelColumns) -> RoutedLabels:
        """Take a batch, in parts that the index can take at once."""
        found = _Found([*batch.models], [])
        rows: list[int] = []

        def in_use() -> list[int]:
            self._look_up(batch, rows, found)
            rows.clear()
            return self._index.models()

        for row, (which, model) in enumerate(zip(batch.inputs, batch.models, strict=True)):
            if model is None or (which != LABELS and self._models.of(model, in_use) is not None):
                rows.append(row)
        self._look_up(batch, rows, found)
        return self._written(batch, found)

    def _look_up(self, batch: LabelColumns, rows: Sequence[int], found: _Found) -> None:
        """Look up some rows, and add what is found."""
        if not rows:
            return
        labels = np.array([batch.inputs[row] for row in rows], np.uint8)
        numbers = [0 if (one := batch.models[row]) is None else self._models[one] for row in rows]
        offsets = np.array([batch.records[row].offset for row in rows], np.int64)
        results = np.empty(len(rows), np.int64)
        released = self._index.take(
            [batch.ids[row] for row in rows],
            labels,
            np.array(numbers, np.uint32),
            batch.times[rows],
            offsets,
            results,
        )
        for at in np.flatnonzero(labels).tolist():
            result = int(results[at])
            found.results[rows[at]] = None if result == _WAITS else self._result(result)
        found.released.extend((rows[at], offset, self._result(one)) for at, offset, one in released)

    def _result(self, number: int) -> _Result:
        """Return what a result of the index means; the result is not that of a waiting label."""
        name = self._models.names[number] if number >= 0 else None
        if name is not None:
            return name
        return AMBIGUOUS_ID if number == _AMBIGUOUS else UNKNOWN_ID

    def _written(self, batch: LabelColumns, found: _Found) -> RoutedLabels:
        """Return the records to write, and let the others wait."""
        routed = RoutedLabels([], [], [], [], [])
        released = deque(found.released)
        for row, (record, which, result) in enumerate(
            zip(batch.records, batch.inputs, found.results, strict=True)
        ):
            if result is None:
                self._waiting.add(record)
            else:
                given = batch.models[row] is not None
                routed.add(row, record, which, result, given=given)
            while released and released[0][0] == row:
                _, offset, why = released.popleft()
                routed.add(row, self._waiting.pop(offset), LABELS, why, given=False)
        return routed

    def _without_room(self) -> Iterator[WaitingLabel]:
        """End the waits for which there is no room, in the order of their offsets."""
        while len(self._waiting) > self._limits.labels or self._waiting.bytes > self._limits.bytes:
            yield self._end_wait(next(iter(self._waiting)))

    def _end_wait(self, offset: int) -> WaitingLabel:
        self._index.drop(offset)
        return self._waiting.pop(offset)
