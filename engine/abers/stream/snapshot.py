"""Saving and restoring a processor.

Governing rule: the state is a function of the events taken, to the last bit;
what cannot be that, the pickles of learners, lies beside it under a seal of its
own, and is read only if the settings name a learner and the key is right.

A snapshot is a seal (see `abers._sealed`) around MessagePack: the settings, the
position, the state, and the learners. Columns are little-endian bytes.
"""

# ruff: noqa: SLF001 - this is the other half of the class Processor

from __future__ import annotations

import hmac
import pickle
from hashlib import blake2b, sha256
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

import abers
from abers._arrays import raw
from abers._ledger import NO_CLOCK, PENDING, QUORUM
from abers._sealed import REMEDY, sealing, unseal
from abers._shown import shown
from abers.exceptions import AbersError, SettingsError, StateError
from abers.stream.admission import require_room
from abers.stream.bets import Saved  # noqa: TC001 - msgspec reads the annotations
from abers.stream.pieces import ARRAY, BINARY, TEXT, fields, header, pieces, several
from abers.stream.settings import LARGEST_TIME, OF_ADMISSION, Settings
from abers.stream.waiting import Packed  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from abers._core import Ledger
    from abers._sealed import Piece
    from abers.learners import Learner
    from abers.stream.processor import Processor

__all__ = ["Snapshot", "State", "dump", "load", "read", "require_whole", "state"]

MAGIC = b"abersPS\x03"
_WHAT = "a snapshot of a processor"
_TOGETHER = 1 << 16  # entries that are read or written at once
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


class Clock(msgspec.Struct, array_like=True):
    """The clock of a model; of each candidate the id, the time, and the number of the event."""

    time: int
    known: bool
    events: int
    candidates: list[tuple[str, int, int]]


class State(msgspec.Struct, omit_defaults=True):
    """All that a processor remembers, but its learners."""

    clocks: list[Clock]
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
    digest: bytes | None


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


def dump(processor: Processor, position: Any, key: bytes | None) -> Iterator[Piece]:  # noqa: ANN401
    """Give the snapshot of a processor in pieces, each made when it is its turn."""
    learners = digest = None
    learning = processor._deciding.learning
    if learning is not None:
        secret = _required(key)
        learners = pickle.dumps((learning.given, learning.by_model), protocol=5)
        digest = _keyed(learners, secret)
    whole: dict[str, Iterable[Piece]] = {
        "version": pieces(abers.__version__),
        "settings": pieces(processor.settings),
        "position": [_position(position)],
        "state": state(processor),
        "learners": pieces(learners),
        "digest": pieces(digest),
    }
    yield from sealing(MAGIC, fields(whole))


def _position(position: Any) -> bytes:  # noqa: ANN401
    try:
        return _encode(position)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"position {shown(position)} cannot be saved ({error}); give what JSON can hold"
        raise StateError(msg) from None


def read(blob: bytes) -> tuple[Snapshot, State]:
    """Read a snapshot, all but its learners.

    Parameters
    ----------
    blob
        What `Processor.snapshot` gave.

    Returns
    -------
    Snapshot, State
        What it says of itself, and the state.

    Raises
    ------
    StateError
        If the bytes are damaged or of an unknown version.
    """
    payload = _payload(bytes(blob))
    try:
        whole = msgspec.msgpack.decode(payload, type=Snapshot)
        held = msgspec.msgpack.decode(whole.state, type=State)
    except (msgspec.MsgspecError, ValueError) as error:
        msg = f"snapshot is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    return whole, held


def _payload(blob: bytes) -> memoryview:
    return unseal(MAGIC, blob, _WHAT)


def require_whole(blob: bytes) -> None:
    """Raise a StateError if a snapshot is damaged; what it says is not looked at."""
    _payload(bytes(blob))


def load(processor: Processor, blob: bytes, key: bytes | None) -> None:
    """Fill an empty processor with what `dump` gave."""
    whole, held = read(blob)
    _refuse_other(whole.settings, processor.settings)
    names = [*held.models, *(segment for _, segment in held.keys)]
    count = max(len(held.models), len(held.keys))
    require_room(processor.settings, count, names, [])
    learning = processor._deciding.learning
    if learning is not None:
        learning.given, learning.by_model = _learners(whole, _required(key))
    elif whole.learners is not None:
        msg = "the snapshot holds learners, and the settings name none; name the learner again"
        raise StateError(msg)
    try:
        _fill(processor, held)
    except SettingsError:
        raise
    except (
        ValueError,
        IndexError,
        KeyError,
        TypeError,
        AbersError,
        msgspec.MsgspecError,
    ) as error:
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
    _require(held.counters.keys() == processor.counters.keys(), "counters")
    _require(len(held.stores) == 3, "stores")  # noqa: PLR2004 - what waits, twice, and what is done
    admission.models.update({name: number for number, name in enumerate(held.models)})
    admission.keys.update({pair: number for number, pair in enumerate(held.keys)})
    _require(len(admission.models) == len(held.models), "models")
    _require(len(admission.keys) == len(held.keys) >= len(held.calibrators), "keys")
    answering.calibrators += [task.calibrator(blob) for blob in held.calibrators]
    if answering.monitors is not None:
        answering.monitors += [task.monitor(one) for one in held.monitors or []]
        _require(len(answering.monitors) == len(answering.calibrators), "monitors")
    deciding.counters = held.counters
    ledger.set_clocks(_clocks(held))
    for store, entries in enumerate(held.stores):
        _load(
            ledger,
            store,
            entries,
            processor.settings,
            models=len(held.models),
            keys=len(held.calibrators),
        )
    count = ledger.count(PENDING)
    answering.make_room(len(held.keys), count + 1)
    rows = np.frombuffer(held.rows, "<f8")
    answering.rows[1 : count + 1] = rows.reshape(count, answering.rows.shape[1])
    if answering.waiting is not None:
        loaded = None if held.waiting is None else answering.waiting.load(held.waiting)
        _require(loaded == count, "distributions")
    if answering.bets is not None and held.bets is not None:
        _require(answering.bets.load(held.bets) == count, "bets")
    if learning is not None:
        _require(len(held.features) == count, "features")
        learning.features += held.features


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 - reads like an assertion
    if not condition:
        raise ValueError(what)


# The ledger


def _clocks(held: State) -> list[tuple[int, bool, int, list[tuple[str, int, int]]]]:
    """Check the clocks of a state, one for each of its models."""
    _require(len(held.clocks) == len(held.models), "clocks")
    for clock in held.clocks:
        times = [time for _, time, _ in clock.candidates]
        ids = {id_ for id_, _, _ in clock.candidates}
        _require(0 <= clock.events <= LARGEST_TIME, "clocks")
        _require(len(ids) == len(times) < QUORUM, "clocks")
        begun = clock.known or bool(times)
        _require(clock.time == NO_CLOCK if not begun else abs(clock.time) < LARGEST_TIME, "clocks")
        _require(all(abs(time) < LARGEST_TIME for time in times), "clocks")
        _require(all(0 < number <= clock.events for _, _, number in clock.candidates), "clocks")
    return [(one.time, one.known, one.events, one.candidates) for one in held.clocks]


class _Columns(NamedTuple):
    """What the ledger says of the entries of a store, and how long their ids are."""

    slots: NDArray[np.int64]
    models: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    times: NDArray[np.int64]
    stored: NDArray[np.int64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, count: int) -> _Columns:
        slots, times, stored = (np.empty(count, np.int64) for _ in range(3))
        models, keys = np.empty(count, np.uint32), np.empty(count, np.uint32)
        return cls(slots, models, keys, times, stored, np.empty(count))


def _columns(ledger: Ledger, store: int) -> _Columns:
    """Read a store, and throw its ids away."""
    columns = _Columns.of(ledger.count(store))
    for _ in _ids(ledger, store, columns):
        pass
    return columns


def _ids(ledger: Ledger, store: int, columns: _Columns) -> Iterator[list[str]]:
    """Give the ids of a store, some at a time, while its columns are filled."""
    behind = 0
    for part in _parts(len(columns.slots)):
        some: Any = (column[part] for column in columns)
        ids, behind = ledger.entries(store, behind, *some)
        yield ids


def _parts(count: int) -> Iterator[slice]:
    """Cut so many rows into parts of which each is small."""
    return (slice(first, first + _TOGETHER) for first in range(0, count, _TOGETHER))


def _entries(ledger: Ledger, store: int) -> Iterator[Piece]:
    """Encode a store, as `_Entries`."""
    columns = _Columns.of(ledger.count(store))
    lengths, size = np.empty(len(columns.slots), np.uint32), 0
    rows = _parts(len(lengths))
    for part, ids in zip(rows, _ids(ledger, store, columns), strict=True):
        lengths[part] = np.fromiter(map(len, ids), np.uint32, len(ids))
        size += len("".join(ids).encode())
    yield header(ARRAY, len(_Entries.__struct_fields__))
    yield header(ARRAY, 2)
    yield header(TEXT, size)
    for ids in _ids(ledger, store, columns):
        yield "".join(ids).encode()
    for column in (lengths, *columns[1:]):
        yield from pieces(raw(column))


def _rows(rows: NDArray[np.float64], slots: NDArray[np.int64]) -> Iterator[Piece]:
    """Encode some rows of numbers, one behind the other."""
    yield header(BINARY, rows.itemsize * rows.shape[1] * len(slots))
    for part in _parts(len(slots)):
        yield raw(rows[slots[part]])


def _load(
    ledger: Ledger, store: int, saved: _Entries, settings: Settings, *, models: int, keys: int
) -> None:
    lengths, at = np.frombuffer(saved.ids.lengths, "<u4"), 0
    text = msgspec.msgpack.decode(saved.ids.text, type=str)
    model, key = np.frombuffer(saved.models, "<u4"), np.frombuffer(saved.keys, "<u4")
    time, stored = np.frombuffer(saved.times, "<i8"), np.frombuffer(saved.stored, "<i8")
    values = np.frombuffer(saved.values, "<f8")
    columns = (model, key, time, stored, values)
    _require({*map(len, columns)} == {len(lengths)}, "columns")
    _require(bool((model < models).all()), "models")
    _require(store != PENDING or bool((key < keys).all()), "keys")
    for column in (time, stored):
        _require(bool(((column > -LARGEST_TIME) & (column < LARGEST_TIME)).all()), "times")
    _require(store != PENDING or bool(((values >= 0) & (values < LARGEST_TIME)).all()), "values")
    for part in _parts(len(lengths)):
        ends = [*accumulate(lengths[part].tolist(), initial=at)]
        ids, at = [text[start:end] for start, end in pairwise(ends)], ends[-1]
        _require(all(ids), "ids")
        require_room(settings, 0, [], ids)
        # As the machine has numbers, and where it likes them.
        some: Any = (one[part].astype(one.dtype.newbyteorder("="), copy=True) for one in columns)
        ledger.load(store, ids, *some)
    _require(at == len(text), "ids")


# Learners


def _required(key: bytes | None) -> bytes:
    if not key:
        msg = (
            "the state of a learner is saved and loaded only under a secret key; "
            "give one (the command line reads ABERS_STATE_KEY)"
        )
        raise StateError(msg)
    return key


def _keyed(pickled: bytes, key: bytes) -> bytes:
    return blake2b(pickled, key=sha256(key).digest()).digest()


def _learners(whole: Snapshot, key: bytes) -> tuple[Learner | None, dict[str, Learner]]:
    if whole.learners is None or whole.digest is None:
        msg = "the snapshot holds no learner, and the settings name one; start without it"
        raise StateError(msg)
    if not hmac.compare_digest(_keyed(whole.learners, key), whole.digest):
        msg = "the learners in the snapshot were saved under another key, and are not loaded"
        raise StateError(msg)
    try:
        given, learners = pickle.loads(whole.learners)  # noqa: S301 - its keyed digest is right
    except Exception as error:
        msg = (
            f"the learners in the snapshot cannot be loaded ({error}); is river's version another?"
        )
        raise StateError(msg) from error
    return given, learners
