"""The ledger in a snapshot: clocks, what waits, and what is done with.

Governing rule: columns are little-endian bytes, the ids of a store are never all in memory as
Python has them, and nothing is loaded that no ledger could have saved.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from abers._arrays import raw
from abers._clocks import APART, NO_CLOCK, QUORUM
from abers._ledger import EARLY, PENDING
from abers._saved import require
from abers.stream.admission import require_room
from abers.stream.pieces import ARRAY, TEXT, header, pieces
from abers.stream.settings import LARGEST_TIME
from abers.stream.stored import Columns, parts, read_ids

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import Ledger
    from abers._sealed import Piece
    from abers.stream.settings import Settings
    from abers.stream.snapshot import State
    from abers.stream.tasks import Task

__all__ = ["SavedClock", "SavedStore", "columns_of", "encoded", "fill"]


class _Ids(msgspec.Struct, array_like=True):
    """Texts, one after the other, and the number of characters of each."""

    text: msgspec.Raw  # a str, of which there need not be those of all stores at once
    lengths: memoryview


class SavedStore(msgspec.Struct, array_like=True):
    """A store of the ledger, oldest entry first."""

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


def _clocks(held: State) -> list[Any]:
    """Check the clocks of a state, one for each of its models."""
    require(len(held.clocks) == len(held.models), "clocks")
    for clock in held.clocks:
        times = [time for _, time, _ in clock.candidates]
        ids = {id_ for id_, _, _ in clock.candidates}
        require(0 <= clock.agreed <= clock.events <= LARGEST_TIME, "clocks")
        require(0 <= clock.step <= APART * 2 * LARGEST_TIME, "clocks")
        require(len(ids) == len(times) < QUORUM, "clocks")
        begun = clock.known or bool(times)
        require(clock.time == NO_CLOCK if not begun else abs(clock.time) < LARGEST_TIME, "clocks")
        require(all(abs(time) < LARGEST_TIME for time in times), "clocks")
        require(all(0 < number <= clock.events for _, _, number in clock.candidates), "clocks")
    return [msgspec.structs.astuple(one) for one in held.clocks]


def columns_of(ledger: Ledger, store: int) -> Columns:
    """Read a store, and throw its ids away."""
    columns = Columns.of(ledger.count(store))
    for _ in read_ids(ledger, store, columns):
        pass
    return columns


def encoded(ledger: Ledger, store: int) -> Iterator[Piece]:
    """Encode a store, as `SavedStore`."""
    columns = Columns.of(ledger.count(store))
    lengths, size = np.empty(len(columns.slots), np.uint32), 0
    rows = parts(len(lengths))
    for part, ids in zip(rows, read_ids(ledger, store, columns), strict=True):
        lengths[part] = np.fromiter(map(len, ids), np.uint32, len(ids))
        size += len("".join(ids).encode())
    yield header(ARRAY, len(SavedStore.__struct_fields__))
    yield header(ARRAY, 2)
    yield header(TEXT, size)
    for ids in read_ids(ledger, store, columns):
        yield "".join(ids).encode()
    for one in (lengths, *columns[1:]):
        yield from pieces(raw(one))


def fill(ledger: Ledger, held: State, task: Task, settings: Settings) -> None:
    """Fill a ledger with what a state says of it.

    Raises
    ------
    ValueError
        If that is inconsistent.
    SettingsError
        If an id is longer than the settings allow.
    """
    ledger.set_clocks(_clocks(held))
    numbers = {name: number for number, name in enumerate(held.models)}
    owners = np.array([numbers[model] for model, _ in held.keys], np.uint32)
    for store, entries in enumerate(held.stores):
        columns = _Saved.of(entries)
        require((columns.models < len(held.models)).all(), "models of entries")
        _require_times(columns, held.clocks)
        if store == PENDING:
            require((columns.keys < len(held.calibrators)).all(), "keys of entries")
            require((owners[columns.keys] == columns.models).all(), "keys of entries")
            sizes = columns.values
            require(((sizes >= 0) & (sizes < LARGEST_TIME)).all(), "bytes of features")
        elif store == EARLY:
            require(task.are_values(columns.values), "labels that wait")
        _load(ledger, store, entries.ids, columns, settings)


class _Saved(NamedTuple):
    """The columns of a store as they lie in the snapshot, which no machine need like."""

    models: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    times: NDArray[np.int64]
    stored: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, entries: SavedStore) -> _Saved:
        kinds = ("<u4", "<u4", "<i8", "<i8", "<f8")
        saved = (entries.models, entries.keys, entries.times, entries.stored, entries.values)
        columns = [np.frombuffer(one, kind) for one, kind in zip(saved, kinds, strict=True)]
        lengths = len(entries.ids.lengths) / 4
        require({*map(len, columns)} == {lengths}, "columns of entries")
        return cls(*columns)


def _require_times(columns: _Saved, clocks: Sequence[SavedClock]) -> None:
    """Refuse times that are none, and entries that are not in the order in which they came.

    While the clock of a model is not known, its entries have no order, for none expires.
    """
    for time in (columns.times, columns.stored):
        require(((time > -LARGEST_TIME) & (time < LARGEST_TIME)).all(), "times of entries")
    order = np.argsort(columns.models, kind="stable")
    model = columns.models[order]
    order, model = (one[np.array([c.known for c in clocks], bool)[model]] for one in (order, model))
    stored = columns.stored[order]
    require(
        (stored <= np.array([c.time for c in clocks], np.int64)[model]).all(), "times of entries"
    )
    later = (stored[:-1] <= stored[1:]) | (model[:-1] != model[1:])
    require(later.all(), "order of entries")


def _load(ledger: Ledger, store: int, saved: _Ids, columns: _Saved, settings: Settings) -> None:
    lengths, at = np.frombuffer(saved.lengths, "<u4"), 0
    text = msgspec.msgpack.decode(saved.text, type=str)
    require(lengths.all() and int(lengths.sum(dtype=np.uint64)) == len(text), "ids")
    for part in parts(len(lengths)):
        ends = [*accumulate(lengths[part].tolist(), initial=at)]
        ids, at = [text[start:end] for start, end in pairwise(ends)], ends[-1]
        require_room(settings, 0, [], ids)
        # As the machine has numbers, and where it likes them.
        some: Any = (one[part].astype(one.dtype.newbyteorder("="), copy=True) for one in columns)
        ledger.load(store, ids, *some)
