"""Saving and restoring a processor.

Governing rule: the state is a function of the events taken, to the last bit;
what cannot be that, the pickles of learners, lies beside it. With a key all of
it is under one seal, for one place; learners are read only from under such a
seal, and only if the settings name a learner.

A snapshot is a seal (see `abers._keyed`) around MessagePack: the settings, the
position, the state, and the learners. Columns are little-endian bytes.
"""

# ruff: noqa: SLF001 - this is the other half of the class Processor

from __future__ import annotations

import pickle
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

import abers
from abers._arrays import raw
from abers._clocks import APART, NO_CLOCK, QUORUM
from abers._keyed import sealing, unseal
from abers._ledger import EARLY, PENDING
from abers._saved import column, count, require
from abers._sealed import REMEDY
from abers._shown import shown
from abers.exceptions import AbersError, SettingsError, StateError
from abers.stream.admission import require_room
from abers.stream.bets import Saved  # noqa: TC001 - msgspec reads the annotations
from abers.stream.pieces import ARRAY, BINARY, TEXT, fields, header, pieces, several
from abers.stream.settings import LARGEST_TIME, OF_ADMISSION, Settings
from abers.stream.stored import Columns, parts, read_ids
from abers.stream.waiting import Packed  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import Ledger
    from abers._sealed import Piece
    from abers.learners import Learner
    from abers.stream.processor import Processor
    from abers.stream.tasks import Task

__all__ = ["SavedClock", "Snapshot", "State", "dump", "load", "read", "require_whole", "state"]

MAGIC = b"abersPS\x03"
_WHAT = "a snapshot of a processor"
_INCONSISTENT = (
    *(ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError),
    msgspec.MsgspecError,
)
_encode = msgspec.msgpack.Encoder().encode


class _Ids(msgspec.Struct, array_like=True):
    """Texts, one after the other, and the number of characters of each."""

    text: msgspec.Raw  # a str, of which there need not be those of all stores at once
    lengths: memoryview


class _Entries(msgspec.Struct, array_like=True):
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


class State(msgspec.Struct, omit_defaults=True):
    """All that a processor remembers, but its learners."""

    clocks: list[SavedClock]
    counters: dict[str, int]
    models: list[str]
    keys: list[tuple[str, str]]
    calibrators: list[bytes]
    monitors: list[Any] | None
    stores: list[_Entries]
    rows: memoryview
    features: list[Any]
    waiting: Packed | None = None
    bets: Saved | None = None


class Snapshot(msgspec.Struct):
    """What a file of state holds."""

    version: str
    settings: Settings
    position: Any
    state: msgspec.Raw
    learners: bytes | None


def state(processor: Processor) -> Iterator[Piece]:
    """Encode the state of a processor in canonical form, as a `State`."""
    answering, deciding = processor._answering, processor._deciding
    ledger, learning = deciding.ledger, deciding.learning
    monitors, bets = answering.monitors, answering.bets
    waiting = _columns(ledger, PENDING).slots
    features = [] if learning is None else learning.features
    calibrators = answering.calibrators
    held = {
        "clocks": pieces(ledger.clocks()),
        "counters": pieces(processor.counters),
        "models": pieces([*deciding.admission.models]),
        "keys": pieces([*deciding.admission.keys]),
        "calibrators": several(len(calibrators), (one.to_bytes() for one in calibrators)),
        "monitors": pieces(None)
        if monitors is None
        else several(len(monitors), (one.state() for one in monitors)),
        "stores": chain([header(ARRAY, 3)], *(_entries(ledger, store) for store in range(3))),
        "rows": _rows(answering.rows, waiting),
        "features": pieces([])
        if learning is None
        else several(len(waiting), (msgspec.Raw(_encode(features[i])) for i in waiting.tolist())),
    }
    if answering.waiting is not None:
        held["waiting"] = answering.waiting.pack(waiting.tolist())
    if bets is not None and (saved := bets.save(waiting)) is not None:
        held["bets"] = saved
    yield from fields(held)


def dump(
    processor: Processor,
    position: Any,  # noqa: ANN401
    key: bytes | None,
    place: str,
) -> Iterator[Piece]:
    """Give the snapshot of a processor in pieces, each made when it is its turn."""
    learners, learning = None, processor._deciding.learning
    if learning is not None:
        _require_key(key)
        learners = pickle.dumps((learning.given, learning.by_model), protocol=5)
    whole: dict[str, Iterable[Piece]] = {
        "version": pieces(abers.__version__),
        "settings": pieces(processor.settings),
        "position": [_position(position)],
        "state": state(processor),
        "learners": pieces(learners),
    }
    yield from sealing(MAGIC, fields(whole), key, place)


def _position(position: Any) -> bytes:  # noqa: ANN401
    try:
        return _encode(position)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"position {shown(position)} cannot be saved ({error}); give what JSON can hold"
        raise StateError(msg) from None


def read(blob: bytes, key: bytes | None = None, place: str | None = None) -> tuple[Snapshot, State]:
    """Read a snapshot, all but its learners.

    Parameters
    ----------
    blob
        What `Processor.snapshot` gave.
    key
        The secret that it was given.
    place
        Whose it must be, if it is under a key; None reads that of any place.

    Returns
    -------
    Snapshot, State
        What it says of itself, and the state.

    Raises
    ------
    StateError
        If the bytes are damaged or of an unknown version, or the seal is not right.
    """
    payload = _payload(blob, key, place)
    try:
        whole = msgspec.msgpack.decode(payload, type=Snapshot)
        held = msgspec.msgpack.decode(whole.state, type=State)
    except (msgspec.MsgspecError, ValueError) as error:
        msg = f"snapshot is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    return whole, held


def _payload(blob: bytes, key: bytes | None, place: str | None) -> memoryview:
    return unseal(MAGIC, bytes(blob), _WHAT, key, place)


def require_whole(blob: bytes, key: bytes | None = None, place: str | None = None) -> None:
    """Raise a StateError if a snapshot is damaged; what it says is not looked at."""
    _payload(blob, key, place)


def load(processor: Processor, blob: bytes, key: bytes | None, place: str) -> None:
    """Fill an empty processor with what `dump` gave."""
    if processor._deciding.learning is not None:
        _require_key(key)
    whole, held = read(blob, key, place)
    _refuse_other(whole.settings, processor.settings)
    names = [*held.models, *(segment for _, segment in held.keys)]
    count = max(len(held.models), len(held.keys))
    require_room(processor.settings, count, names, [])
    learning = processor._deciding.learning
    if learning is not None:
        learning.given, learning.by_model = _learners(whole)
    elif whole.learners is not None:
        msg = "the snapshot holds learners, and the settings name none; name the learner again"
        raise StateError(msg)
    try:
        _fill(processor, held)
    except SettingsError:
        raise
    except _INCONSISTENT as error:
        msg = f"snapshot is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None
    processor.position = whole.position


def _refuse_other(saved: Settings, wanted: Settings) -> None:
    """Refuse settings other than those that shaped the state, and say which differ."""
    before, now = msgspec.structs.asdict(saved), msgspec.structs.asdict(wanted)
    differing = [
        f"{name} was {shown(before[name])} and is {shown(now[name])}"
        for name in before
        if before[name] != now[name] and name not in OF_ADMISSION
    ]
    if differing:
        msg = (
            f"the snapshot was made with other settings: {'; '.join(differing)}; "
            "set them back, or start without the snapshot"
        )
        raise SettingsError(msg)


def _fill(processor: Processor, held: State) -> None:
    answering, task, deciding = processor._answering, processor._task, processor._deciding
    ledger, admission, learning = deciding.ledger, deciding.admission, deciding.learning
    require(held.counters.keys() == processor.counters.keys(), "counters")
    for name, number in held.counters.items():
        count(number, f"counter {name}")
    require(len(held.stores) == 3, "stores")  # noqa: PLR2004 - what waits, twice, and what is done
    admission.models.update({name: number for number, name in enumerate(held.models)})
    admission.keys.update({pair: number for number, pair in enumerate(held.keys)})
    require(len(admission.models) == len(held.models), "models")
    require(len(admission.keys) == len(held.keys) >= len(held.calibrators), "keys")
    require({model for model, _ in held.keys} <= admission.models.keys(), "keys")
    answering.calibrators += [task.calibrator(blob) for blob in held.calibrators]
    require((held.monitors is None) == (answering.monitors is None), "monitors")
    if answering.monitors is not None:
        answering.monitors += [task.monitor(one) for one in held.monitors or []]
        require(len(answering.monitors) == len(answering.calibrators), "monitors")
    deciding.counters = held.counters
    _fill_ledger(ledger, held, task, processor.settings)
    waiting = ledger.count(PENDING)
    answering.make_room(len(held.keys), waiting + 1)
    width = answering.rows.shape[1]
    rows = column(held.rows, "<f8", "rows", waiting * width).reshape(waiting, width)
    require(task.are_scores(rows[:, : task.score_width]), "scores that wait")
    require(task.are_answers(rows[:, task.score_width :]), "answers that wait")
    answering.rows[1 : waiting + 1] = rows
    require((held.waiting is None) == (answering.waiting is None), "distributions")
    if answering.waiting is not None and held.waiting is not None:
        require(answering.waiting.load(held.waiting) == waiting, "distributions")
    if answering.bets is not None and held.bets is not None:
        require(answering.bets.load(held.bets) == waiting, "bets")
    if learning is not None:
        require(len(held.features) == waiting, "features")
        require(all(x is None or isinstance(x, dict) for x in held.features), "features")
        learning.features += held.features


# The ledger


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


def _columns(ledger: Ledger, store: int) -> Columns:
    """Read a store, and throw its ids away."""
    columns = Columns.of(ledger.count(store))
    for _ in read_ids(ledger, store, columns):
        pass
    return columns


def _entries(ledger: Ledger, store: int) -> Iterator[Piece]:
    """Encode a store, as `_Entries`."""
    columns = Columns.of(ledger.count(store))
    lengths, size = np.empty(len(columns.slots), np.uint32), 0
    rows = parts(len(lengths))
    for part, ids in zip(rows, read_ids(ledger, store, columns), strict=True):
        lengths[part] = np.fromiter(map(len, ids), np.uint32, len(ids))
        size += len("".join(ids).encode())
    yield header(ARRAY, len(_Entries.__struct_fields__))
    yield header(ARRAY, 2)
    yield header(TEXT, size)
    for ids in read_ids(ledger, store, columns):
        yield "".join(ids).encode()
    for one in (lengths, *columns[1:]):
        yield from pieces(raw(one))


def _rows(rows: NDArray[np.float64], slots: NDArray[np.int64]) -> Iterator[Piece]:
    """Encode some rows of numbers, one behind the other."""
    yield header(BINARY, rows.itemsize * rows.shape[1] * len(slots))
    for part in parts(len(slots)):
        yield raw(rows[slots[part]])


def _fill_ledger(ledger: Ledger, held: State, task: Task, settings: Settings) -> None:
    """Fill a ledger with what was saved of it."""
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
    def of(cls, entries: _Entries) -> _Saved:
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


# Learners


def _require_key(key: bytes | None) -> None:
    if key is None:
        msg = (
            "the state of a learner is saved and loaded only under a secret key; "
            "give one (the command line reads ABERS_STATE_KEY)"
        )
        raise StateError(msg)


def _learners(whole: Snapshot) -> tuple[Learner | None, dict[str, Learner]]:
    if whole.learners is None:
        msg = "the snapshot holds no learner, and the settings name one; start without it"
        raise StateError(msg)
    try:
        given, learners = pickle.loads(whole.learners)  # noqa: S301 - it was under the key
    except Exception as error:
        msg = (
            f"the learners in the snapshot cannot be loaded ({error}); is river's version another?"
        )
        raise StateError(msg) from error
    return given, learners
