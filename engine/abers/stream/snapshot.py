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
from abers._ledger import EARLY, PENDING
from abers._saved import column, count, require
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
    from abers.stream.tasks import Task

__all__ = ["Snapshot", "State", "dump", "load", "read", "require_whole", "state"]

MAGIC = b"abersPS\x02"
_BEFORE = b"abersPS\x01"  # its monitors have no reliability diagrams
_WHAT = "a snapshot of a processor"
_INCONSISTENT = (ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError)


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
    _fill_ledger(ledger, held, task)
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


def _fill_ledger(ledger: Ledger, held: State, task: Task) -> None:
    """Fill a ledger with what was saved of it."""
    clock = held.clock
    require(clock is None or -LARGEST_TIME < clock < LARGEST_TIME, "clock")
    ledger.clock = clock
    numbers = {name: number for number, name in enumerate(held.models)}
    owners = np.array([numbers[model] for model, _ in held.keys], np.uint32)
    for store, entries in enumerate(held.stores):
        ids = _texts(entries.ids)
        n = len(ids)
        model, key = (column(one, "<u4", "entries", n) for one in (entries.models, entries.keys))
        time, stored = (column(one, "<i8", "entries", n) for one in (entries.times, entries.stored))
        values = column(entries.values, "<f8", "entries", n)
        require((model < len(held.models)).all(), "models of entries")
        _require_times(time, stored, clock)
        if store == PENDING:
            require((key < len(held.calibrators)).all(), "keys of entries")
            require((owners[key] == model).all(), "keys of entries")
        elif store == EARLY:
            require(task.are_values(values), "labels that wait")
        ledger.load(store, ids, model, key, time, stored, values)


def _texts(saved: _Ids) -> list[str]:
    lengths = column(saved.lengths, "<u4", "ids")
    require(lengths.all() and int(lengths.sum(dtype=np.uint64)) == len(saved.text), "ids")
    ends = accumulate(lengths.tolist(), initial=0)
    return [saved.text[start:end] for start, end in pairwise(ends)]


def _require_times(time: NDArray[np.int64], stored: NDArray[np.int64], clock: int | None) -> None:
    """Refuse times that are none, and entries that are not in the order in which they came."""
    require(((time > -LARGEST_TIME) & (time < LARGEST_TIME)).all(), "times of entries")
    if len(stored):
        require(clock is not None and stored[0] > -LARGEST_TIME, "times of entries")
        require(stored[-1] <= (clock or 0), "times of entries")
        require((stored[:-1] <= stored[1:]).all(), "order of entries")


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
