"""What waits for labels, and how it is saved: clocks, events, finished ids and distributions.

What Python knows of the numbers of the native pending store. The store joins observations and
labels; `core.PendingStore` has its clocks, entries and limits.

The pending store as it is saved: clocks, waiting events, and finished ids. Columns are
little-endian bytes. The ids of a store are never all in memory as Python strings, and a state that
no store could have saved is refused.

The predictive distributions that wait for their labels, and their scores. The merged CDF waits as
it was predicted, by the slot of the prediction. It is scored once, by its label, and then dropped.
There are never more of them than observations that wait.
"""

from __future__ import annotations

from enum import IntEnum, auto
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

import msgspec
import numpy as np

from abers.arrays import raw
from abers.regression import PredictiveDistribution
from abers.serialization import require
from abers.stream.component import (
    ARRAY,
    BINARY,
    TEXT,
    ArrayLayout,
    Axis,
    ColumnLayout,
    Layout,
    NumberLayout,
    TextLayout,
    encode,
    header,
    spans,
)
from abers.stream.settings import LARGEST_TIME
from abers.stream.validation import require_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import PendingStore
    from abers.arrays import Floats, Integers
    from abers.serialization import Piece
    from abers.stream.cells import Column
    from abers.stream.columns import Numbers
    from abers.stream.component import Cut
    from abers.stream.option import Front
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task

__all__ = [
    "APART",
    "ASSUMED",
    "ASSUMES",
    "EARLY",
    "ENTRY_BYTES",
    "FINISHED",
    "LATE",
    "NO_CLOCK",
    "PENDING",
    "QUORUM",
    "REPEATS",
    "STORES",
    "WAITS",
    "Count",
    "DistributionLayout",
    "PendingDistributions",
    "SavedClock",
    "SavedDistributions",
    "SavedStore",
    "StoreColumns",
    "Unknown",
    "distribution_scores",
    "encode_stores",
    "load_clocks",
    "load_store",
    "parts",
    "payload_bytes",
    "store_layout",
]

PENDING, EARLY, FINISHED = 0, 1, 2
"""Kinds of entries: observations, labels before them, and ids that are done."""
ASSUMES, LATE = 2, 3
"""Kinds of steps beyond those that predict and learn; a late label is not learned."""
WAITS, REPEATS = 0, 1
"""Results of a label that is no step; with any other its observation no longer waits."""
ASSUMED = -1.0
"""What an observation has in the place of the bytes of its features once its label is assumed."""
ENTRY_BYTES = (180, 110, 110)
"""Bytes that an entry of each kind counts for, besides its id and features."""

QUORUM = 3
"""Number of ids that must agree when the clock of a model starts, or moves far."""
APART = 3
"""Factor of the distance of agreeing ids by which a single event may then be ahead."""
NO_CLOCK = -(1 << 61)
"""The clock of a step while it is unknown."""

Unknown: TypeAlias = "tuple[int, str, int, int, float]"
"""An unmatched label: row of the event that expired it, id, model, time, value."""


class Count(IntEnum):
    """Indices of the counts; in lower case their names.

    Each event is counted by one end, and so is each prediction; see `abers.stream.accounts`.
    """

    PREDICTIONS = 0
    LABELS = auto()  # learned, and not assumed
    ASSUMED = auto()
    EARLY_LABELS = auto()
    DUPLICATE_OBSERVATIONS = auto()
    DUPLICATE_LABELS = auto()
    LATE_LABELS = auto()
    LATE_EVENTS = auto()
    AHEAD_EVENTS = auto()
    EXPIRED = auto()  # those of retired models, too
    EVICTED = auto()
    RETIRED_OBSERVATIONS = auto()
    UNKNOWN_LABELS = auto()  # those that were evicted, too
    EVICTED_LABELS = auto()
    FORGOTTEN = auto()


STORES = {
    PENDING: Axis.OBSERVATIONS,
    EARLY: Axis.EARLY_LABELS,
    FINISHED: Axis.FINISHED_IDS,
}
"""Kinds of entries, each with the axis of its entries."""
_BLOCK_ENTRIES = 1 << 16  # entries that are read or written at once


class _Ids(msgspec.Struct, array_like=True):
    """Strings, one after the other, and the number of characters of each."""

    text: msgspec.Raw  # a str, decoded only when its store is loaded
    lengths: memoryview


class SavedStore(msgspec.Struct, array_like=True):
    """A part of the pending store, oldest entry first; the last five are of `StoreColumns`."""

    ids: _Ids
    models: memoryview
    keys: memoryview
    times: memoryview
    stored: memoryview
    values: memoryview


class SavedClock(msgspec.Struct, array_like=True):
    """The clock of a model; of each candidate the id, the time, and the number of the event."""

    time: int
    known: bool
    events: int
    step: int
    agreed: int
    candidates: list[tuple[str, int, int]]


class StoreColumns(NamedTuple):
    """Entries of a part of the pending store, a row each, without their ids."""

    slots: Integers  # where their predictions are stored
    models: Numbers
    keys: Numbers  # of the pairs of model and segment
    times: Integers
    stored: Integers  # clocks when they were stored
    values: Floats  # labels that wait; of observations sizes of features, or `ASSUMED`

    @classmethod
    def empty(cls, count: int) -> StoreColumns:
        """Return columns for so many entries, to be filled by `ids_of`."""
        slots, times, stored = (np.empty(count, np.int64) for _ in range(3))
        models, keys = np.empty(count, np.uint32), np.empty(count, np.uint32)
        return cls(slots, models, keys, times, stored, np.empty(count))

    @classmethod
    def of(cls, store: PendingStore, kind: int) -> StoreColumns:
        """Return the columns of a part of a store."""
        columns = cls.empty(store.count(kind))
        for _ in columns.ids_of(store, kind):
            pass
        return columns

    @classmethod
    def saved(cls, saved: SavedStore) -> StoreColumns:
        """Return saved columns; they have no slots, and the byte order of the snapshot."""
        kinds = ("<u4", "<u4", "<i8", "<i8", "<f8")
        given = (saved.models, saved.keys, saved.times, saved.stored, saved.values)
        columns: list[Any] = [
            np.frombuffer(one, kind) for one, kind in zip(given, kinds, strict=True)
        ]
        count = len(saved.ids.lengths) / 4
        require({*map(len, columns)} == {count}, "columns of entries")
        return cls(np.broadcast_to(np.int64(0), int(count)), *columns)

    def ids_of(self, store: PendingStore, kind: int) -> Iterator[list[str]]:
        """Yield the ids of a part of a store, some at a time, and fill the columns."""
        after = 0
        for part in parts(len(self.slots)):
            ids, after = store.entries(kind, after, *self.take(part))
            yield ids

    def take(self, rows: slice | NDArray[np.bool_]) -> StoreColumns:
        """Return some of the rows."""
        columns: list[Any] = [column[rows] for column in self]
        return StoreColumns(*columns)

    def load(self, store: PendingStore, kind: int, ids: list[str]) -> None:
        """Load the entries, with these ids, into a part of a store, which gives them slots."""
        native: Any = (one.astype(one.dtype.newbyteorder("=")) for one in self[1:])
        store.load(kind, ids, *native)


def parts(count: int) -> Iterator[slice]:
    """Yield slices of a limited length that cover so many rows."""
    return (slice(first, first + _BLOCK_ENTRIES) for first in range(0, count, _BLOCK_ENTRIES))


def store_layout(kind: int) -> ArrayLayout:
    """Return the layout of a `SavedStore`; of observations alone the keys are those of models."""
    axis = STORES[kind]
    keys = NumberLayout(axis, Axis.KEYS) if kind == PENDING else ColumnLayout(axis)
    return ArrayLayout(
        TextLayout(axis),
        NumberLayout(axis, Axis.MODELS),
        keys,
        *(ColumnLayout(axis) for _ in range(3)),
    )


def payload_bytes(saved: SavedStore, kind: int) -> int:
    """Return the bytes for which the entries of a kind count, as `limits.max_bytes` limits them."""
    sizes = np.frombuffer(saved.values, "<f8")
    features = sizes[sizes != ASSUMED].sum() if kind == PENDING else 0
    ids = len(msgspec.msgpack.decode(saved.ids.text, type=str).encode())
    return ENTRY_BYTES[kind] * len(sizes) + ids + int(features)


def encode_stores(store: PendingStore, *, finished_ids: bool) -> Iterator[Piece]:
    """Encode all parts of a store, as a list of `SavedStore`; that of finished ids may be empty."""
    yield header(ARRAY, len(STORES))
    for kind in STORES:
        count = store.count(kind) if finished_ids or kind != FINISHED else 0
        yield from _encode_store(store, kind, count)


def _encode_store(store: PendingStore, kind: int, count: int) -> Iterator[Piece]:
    """Yield the first encoded entries of one kind, with their ids in blocks."""
    columns = StoreColumns.empty(count)
    lengths, size = np.empty(len(columns.slots), np.uint32), 0
    for part, ids in zip(parts(len(lengths)), columns.ids_of(store, kind), strict=True):
        lengths[part] = np.fromiter(map(len, ids), np.uint32, len(ids))
        size += len("".join(ids).encode())
    yield header(ARRAY, len(SavedStore.__struct_fields__))
    yield header(ARRAY, 2)
    yield header(TEXT, size)
    for ids in columns.ids_of(store, kind):
        yield "".join(ids).encode()
    for one in (lengths, *columns[1:]):
        yield from encode(raw(one))


def load_clocks(store: PendingStore, clocks: Sequence[SavedClock], models: Sequence[str]) -> None:
    """Load the clocks of models into an empty store; a ValueError if they are inconsistent."""
    require(len(clocks) == len(models), "clocks")
    for clock in clocks:
        times = [time for _, time, _ in clock.candidates]
        ids = {id_ for id_, _, _ in clock.candidates}
        require(0 <= clock.agreed <= clock.events <= LARGEST_TIME, "clocks")
        require(0 <= clock.step <= APART * 2 * LARGEST_TIME, "clocks")
        require(len(ids) == len(times) < QUORUM, "clocks")
        begun = clock.known or bool(times)
        require(clock.time == NO_CLOCK if not begun else abs(clock.time) < LARGEST_TIME, "clocks")
        require(all(abs(time) < LARGEST_TIME for time in times), "clocks")
        require(all(0 < number <= clock.events for _, _, number in clock.candidates), "clocks")
    rows: list[Any] = [msgspec.structs.astuple(one) for one in clocks]
    store.set_clocks(rows)


def load_store(  # noqa: PLR0913, PLR0917 - what the entries refer to
    store: PendingStore,
    kind: int,
    saved: SavedStore,
    clocks: Sequence[SavedClock],
    owners: Numbers,
    task: Task,
    settings: Settings,
    front: Front,
) -> None:
    """Load a saved part into a store; there is a clock of each model, and the model of each key.

    A ValueError is raised if the part is inconsistent, a SettingsError if an id is too long.
    """
    columns = StoreColumns.saved(saved)
    require((columns.models < len(clocks)).all(), "models of entries")
    _require_times(columns, clocks)
    if kind == PENDING:
        require((columns.keys < len(owners)).all(), "keys of entries")
        require((owners[columns.keys] == columns.models).all(), "keys of entries")
        sizes = columns.values
        assumed = (sizes == ASSUMED) & (settings.unlabelled is not None)
        require((assumed | ((sizes >= 0) & (sizes < LARGEST_TIME))).all(), "bytes of features")
    elif kind == EARLY:
        require(task.are_values(columns.values), "labels that wait")
    lengths, at = np.frombuffer(saved.ids.lengths, "<u4"), 0
    text = msgspec.msgpack.decode(saved.ids.text, type=str)
    require(lengths.all() and int(lengths.sum(dtype=np.uint64)) == len(text), "ids")
    for part in parts(len(lengths)):
        ends = [*accumulate(lengths[part].tolist(), initial=at)]
        ids, at = [text[start:end] for start, end in pairwise(ends)], ends[-1]
        require_limits(settings, 0, [], ids, front)
        columns.take(part).load(store, kind, ids)


def _require_times(columns: StoreColumns, clocks: Sequence[SavedClock]) -> None:
    """Refuse impossible times, and entries that are not in the order in which they came.

    While the clock of a model is not known, its entries have no order, for none expires.
    """
    for time in (columns.times, columns.stored):
        require(((time > -LARGEST_TIME) & (time < LARGEST_TIME)).all(), "times of entries")
    order = np.argsort(columns.models, kind="stable")
    model = columns.models[order]
    known = np.array([one.known for one in clocks], bool)[model]
    order, model = order[known], model[known]
    stored = columns.stored[order]
    latest = np.array([one.time for one in clocks], np.int64)[model]
    require((stored <= latest).all(), "times of entries")
    later = (stored[:-1] <= stored[1:]) | (model[:-1] != model[1:])
    require(later.all(), "order of entries")


_BLOCK_DISTRIBUTIONS = 10_000  # distributions that are encoded at once


class SavedDistributions(msgspec.Struct, array_like=True):
    """CDFs behind each other, as little-endian bytes."""

    counts: memoryview  # number of thresholds of each
    supports: memoryview  # the two ends of each
    thresholds: memoryview  # where each CDF jumps
    values: memoryview  # its value before the first threshold, and those at each


class DistributionLayout(Layout):
    """`SavedDistributions`, a CDF for each observation that waits."""

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the CDFs of each part."""
        columns = _columns(payload, cut.size(Axis.OBSERVATIONS))
        return (_taken(columns, rows) for rows in cut.rows[Axis.OBSERVATIONS])

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return all CDFs."""
        of_parts = zip(payloads, cut.rows[Axis.OBSERVATIONS], strict=True)
        several = (_columns(one, len(rows)) for one, rows in of_parts)
        columns = [np.concatenate(each) for each in zip(*several, strict=True)]
        return _encoded(columns)


def _columns(payload: msgspec.Raw, count: int) -> list[NDArray[Any]]:
    """Return counts, supports, thresholds and values of so many saved CDFs."""
    saved = msgspec.msgpack.decode(payload, type=SavedDistributions)
    counts = np.frombuffer(saved.counts, "<u4")
    supports, thresholds, values = (
        np.frombuffer(one, "<f8") for one in (saved.supports, saved.thresholds, saved.values)
    )
    total = int(counts.sum(dtype=np.int64))
    sizes = tuple(map(len, (counts, supports, thresholds, values)))
    require(sizes == (count, 2 * count, total, total + count), "distributions")
    return [counts, supports, thresholds, values]


def _taken(columns: Sequence[NDArray[Any]], rows: Integers) -> bytes:
    """Encode some of the CDFs."""
    counts, supports, thresholds, values = columns
    taken = (
        counts[rows],
        supports.reshape(-1, 2)[rows],
        thresholds[spans(counts, rows)],
        values[spans(counts.astype(np.int64) + 1, rows)],
    )
    return _encoded(taken)


def _encoded(columns: Sequence[NDArray[Any]]) -> bytes:
    """Encode counts, supports, thresholds and values."""
    return msgspec.msgpack.encode(SavedDistributions(*map(raw, columns)))


class PendingDistributions:
    """Merged CDFs by slot.

    Examples
    --------
    >>> pending = PendingDistributions()
    >>> pending.reserve(2)
    >>> pending.store([1], np.array([PredictiveDistribution([3.0], [0.0, 1.0])]))
    >>> distribution_scores(pending.settle([1]), np.array([5.0])).tolist()
    [[2.0, 1.0, 1.0]]
    """

    def __init__(self) -> None:
        self._by_slot: list[PredictiveDistribution | None] = [None]

    def reserve(self, slots: int) -> None:
        """Reserve so many slots."""
        self._by_slot += [None] * (slots - len(self._by_slot))

    def store(self, slots: Sequence[int], bands: Column) -> None:
        """Store the merged CDFs of bands."""
        for slot, band in zip(slots, bands, strict=True):
            self._by_slot[slot] = band.merged()

    def settle(self, slots: Sequence[int]) -> list[PredictiveDistribution]:
        """Return and drop the CDFs in some slots."""
        settled = self._at(slots)
        self.drop(slots)
        return settled

    def drop(self, slots: Sequence[int]) -> None:
        """Drop the CDFs in some slots."""
        for slot in slots:
            self._by_slot[slot] = None

    def keep(self, slots: Sequence[int]) -> None:
        """Keep only the CDFs in these slots, as those of slots 1, 2, ..."""
        self._by_slot = [None, *self._at(slots)]

    def encode(self, slots: Sequence[int]) -> Iterator[Piece]:
        """Encode the CDFs in some slots, in canonical form, as `SavedDistributions`."""
        counts = np.array([len(one.thresholds) for one in self._at(slots)], "<u4")
        total, n = int(counts.sum(dtype=np.int64)), len(slots)
        yield header(ARRAY, 4)
        yield from encode(raw(counts))
        for size, of in (
            (2 * n, attrgetter("support")),
            (total, attrgetter("thresholds")),
            (total + n, attrgetter("values")),
        ):
            yield header(BINARY, 8 * size)
            for first in range(0, n, _BLOCK_DISTRIBUTIONS):
                some = map(of, self._at(slots[first : first + _BLOCK_DISTRIBUTIONS]))
                yield raw(np.concatenate([*some]).astype("<f8", copy=False))

    def load(self, saved: SavedDistributions) -> int:
        """Load the CDFs into the slots from the second on; return their number."""
        counts = np.frombuffer(saved.counts, "<u4").astype(np.int64)
        supports, thresholds, values = (
            np.frombuffer(one, "<f8").astype(np.float64)
            for one in (saved.supports, saved.thresholds, saved.values)
        )
        ends = np.cumsum(counts)
        parts = zip(
            np.split(thresholds, ends[:-1]),
            np.split(values, np.cumsum(counts + 1)[:-1]),
            supports.reshape(len(counts), 2).tolist(),
            strict=True,
        )
        if len(counts):
            self._by_slot[1:] = [
                PredictiveDistribution(where, cdf, support=(lo, hi))
                for where, cdf, (lo, hi) in parts
            ]
        return len(counts)

    def _at(self, slots: Sequence[int]) -> list[PredictiveDistribution]:
        # Every observation that waits has a distribution.
        return [cast("PredictiveDistribution", self._by_slot[slot]) for slot in slots]


def distribution_scores(distributions: Sequence[PredictiveDistribution], labels: Floats) -> Floats:
    """Score n distributions by their labels.

    Return an array of shape (n, 3): the CRPS, and the CDF just below the label and at it.
    """
    found = np.empty((len(distributions), 3))
    with np.errstate(over="ignore"):  # a distance beyond the largest double is infinite
        for row, (one, label) in enumerate(zip(distributions, labels.tolist(), strict=True)):
            found[row] = one.crps(label), *one.pit_ends(label)
    return found
