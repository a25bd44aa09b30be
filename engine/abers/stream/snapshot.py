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
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import abers
from abers._keyed import seal, unseal
from abers._ledger import PENDING
from abers._sealed import REMEDY
from abers._shown import shown
from abers.exceptions import AbersError, StateError
from abers.stream.bets import Saved  # noqa: TC001 - msgspec reads the annotations
from abers.stream.settings import LARGEST_TIME, Settings
from abers.stream.waiting import Packed  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers._core import Ledger
    from abers.learners import Learner
    from abers.stream.processor import Processor

__all__ = ["Snapshot", "State", "dump", "load", "read", "require_whole", "state"]

MAGIC = b"abersPS\x02"
_BEFORE = b"abersPS\x01"  # its monitors have no reliability diagrams
_WHAT = "a snapshot of a processor"


class _Ids(msgspec.Struct, array_like=True):
    """Texts, one after the other, and the number of characters of each."""

    text: str
    lengths: bytes


class _Entries(msgspec.Struct, array_like=True):
    """A store of the ledger, oldest entry first."""

    ids: _Ids
    models: bytes
    keys: bytes
    times: bytes
    stored: bytes
    values: bytes


class State(msgspec.Struct, omit_defaults=True):
    """All that a processor remembers, but its learners."""

    clock: int | None
    counters: dict[str, int]
    models: list[str]
    keys: list[tuple[str, str]]
    calibrators: list[bytes]
    monitors: list[Any] | None
    stores: list[_Entries]
    rows: bytes
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


def state(processor: Processor) -> bytes:
    """Give the state of a processor in canonical form."""
    answering, deciding = processor._answering, processor._deciding
    ledger, learning = deciding.ledger, deciding.learning
    monitors = answering.monitors
    stores, slots = zip(*(_entries(ledger, store) for store in range(3)), strict=True)
    waiting = slots[PENDING]
    held = State(
        clock=ledger.clock,
        counters=processor.counters,
        models=list(deciding.admission.models),
        keys=list(deciding.admission.keys),
        calibrators=[calibrator.to_bytes() for calibrator in answering.calibrators],
        monitors=None if monitors is None else [monitor.state() for monitor in monitors],
        stores=list(stores),
        rows=answering.rows[waiting].astype("<f8", copy=False).tobytes(),
        features=[] if learning is None else [learning.features[i] for i in waiting.tolist()],
        waiting=None if answering.waiting is None else answering.waiting.pack(waiting.tolist()),
        bets=None if answering.bets is None else answering.bets.save(waiting),
    )
    return msgspec.msgpack.encode(held)


def dump(processor: Processor, position: Any, key: bytes | None, place: str) -> bytes:  # noqa: ANN401
    """Give the snapshot of a processor."""
    learners, learning = None, processor._deciding.learning
    if learning is not None:
        _require_key(key)
        learners = pickle.dumps((learning.given, learning.by_model), protocol=5)
    held = msgspec.Raw(state(processor))
    whole = Snapshot(abers.__version__, processor.settings, position, held, learners)
    try:
        payload = msgspec.msgpack.encode(whole)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"position {shown(position)} cannot be saved ({error}); give what JSON can hold"
        raise StateError(msg) from None
    return seal(MAGIC, payload, key, place)


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
        return whole, msgspec.msgpack.decode(whole.state, type=State)
    except (msgspec.MsgspecError, ValueError) as error:
        msg = f"snapshot is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None


def _payload(blob: bytes, key: bytes | None, place: str | None) -> memoryview:
    magic = _BEFORE if blob[: len(_BEFORE)] == _BEFORE else MAGIC
    return unseal(magic, bytes(blob), _WHAT, key, place)


def require_whole(blob: bytes, key: bytes | None = None, place: str | None = None) -> None:
    """Raise a StateError if a snapshot is damaged; what it says is not looked at."""
    _payload(blob, key, place)


def load(processor: Processor, blob: bytes, key: bytes | None, place: str) -> None:
    """Fill an empty processor with what `dump` gave."""
    if processor._deciding.learning is not None:
        _require_key(key)
    whole, held = read(blob, key, place)
    _refuse_other(whole.settings, processor.settings)
    learning = processor._deciding.learning
    if learning is not None:
        learning.given, learning.by_model = _learners(whole)
    elif whole.learners is not None:
        msg = "the snapshot holds learners, and the settings name none; name the learner again"
        raise StateError(msg)
    try:
        _fill(processor, held)
    except (ValueError, IndexError, KeyError, TypeError, AbersError) as error:
        msg = f"snapshot is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None
    processor.position = whole.position


def _refuse_other(saved: Settings, wanted: Settings) -> None:
    """Refuse settings other than those that shaped the state, and say which differ."""
    before, now = msgspec.structs.asdict(saved), msgspec.structs.asdict(wanted)
    differing = [
        f"{name} was {shown(before[name])} and is {shown(now[name])}"
        for name in before
        if before[name] != now[name]
    ]
    if differing:
        msg = (
            f"the snapshot was made with other settings: {'; '.join(differing)}; "
            "set them back, or start without the snapshot"
        )
        raise StateError(msg)


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
    ledger.clock = held.clock
    for store, entries in enumerate(held.stores):
        _load(ledger, store, entries, models=len(held.models), keys=len(held.calibrators))
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


def _entries(ledger: Ledger, store: int) -> tuple[_Entries, NDArray[np.int64]]:
    """Give a store, and the slots of its entries."""
    count = ledger.count(store)
    slots, times, stored = (np.empty(count, np.int64) for _ in range(3))
    models, keys = np.empty(count, np.uint32), np.empty(count, np.uint32)
    values = np.empty(count)
    ids = ledger.entries(store, slots, models, keys, times, stored, values)
    lengths = np.fromiter(map(len, ids), np.uint32, count)
    columns = (models, keys, times, stored, values)
    return _Entries(_Ids("".join(ids), _bytes(lengths)), *[_bytes(one) for one in columns]), slots


def _load(ledger: Ledger, store: int, saved: _Entries, *, models: int, keys: int) -> None:
    ends = accumulate(np.frombuffer(saved.ids.lengths, "<u4").tolist(), initial=0)
    ids = [saved.ids.text[start:end] for start, end in pairwise(ends)]
    _require(all(ids) and sum(map(len, ids)) == len(saved.ids.text), "ids")
    model, key = (np.frombuffer(one, "<u4").astype(np.uint32) for one in (saved.models, saved.keys))
    time, stored = (
        np.frombuffer(one, "<i8").astype(np.int64) for one in (saved.times, saved.stored)
    )
    _require(bool((model < models).all()), "models")
    _require(store != PENDING or bool((key < keys).all()), "keys")
    for column in (time, stored):
        _require(bool(((column > -LARGEST_TIME) & (column < LARGEST_TIME)).all()), "times")
    ledger.load(
        store, ids, model, key, time, stored, np.frombuffer(saved.values, "<f8").astype(float)
    )


def _bytes(column: NDArray[Any]) -> bytes:
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()


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
