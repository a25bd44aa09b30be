"""The pending store as it is saved: clocks, waiting events, and finished ids.

Columns are little-endian bytes. The ids of a store are never all in memory as Python strings, and a
state that no store could have saved is refused.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers.arrays import raw
from abers.serialization import require
from abers.stream.layouts import ArrayLayout, Axis, ColumnLayout, NumberLayout, TextLayout
from abers.stream.msgpack_encoder import ARRAY, TEXT, encode, header
from abers.stream.pending_store import (
    APART,
    ASSUMED,
    EARLY,
    ENTRY_BYTES,
    FINISHED,
    NO_CLOCK,
    PENDING,
    QUORUM,
)
from abers.stream.settings import LARGEST_TIME
from abers.stream.validation import require_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import PendingStore
    from abers.arrays import Floats, Integers
    from abers.serialization import Piece
    from abers.stream.name_columns import Numbers
    from abers.stream.option import Front
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task

__all__ = [
    "STORES",
    "SavedClock",
    "SavedStore",
    "StoreColumns",
    "encode_stores",
    "load_clocks",
    "load_store",
    "parts",
    "payload_bytes",
    "store_layout",
]

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
