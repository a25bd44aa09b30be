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
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

import abers
from abers._arrays import raw
from abers._keyed import sealing, unseal
from abers._ledger import PENDING
from abers._saved import column, count, require
from abers._sealed import REMEDY
from abers._shown import shown
from abers.exceptions import AbersError, SettingsError, StateError
from abers.stream import saved_ledger
from abers.stream.admission import require_room
from abers.stream.bets import Saved  # noqa: TC001 - msgspec reads the annotations
from abers.stream.pieces import ARRAY, BINARY, fields, header, pieces, several
from abers.stream.saved_ledger import SavedClock, SavedStore  # noqa: TC001 - as above
from abers.stream.settings import OF_ADMISSION, Settings
from abers.stream.stored import parts
from abers.stream.waiting import Packed  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from abers._sealed import Piece
    from abers.learners import Learner
    from abers.stream.processor import Processor

__all__ = ["Snapshot", "State", "dump", "load", "read", "require_whole", "state"]

MAGIC = b"abersPS\x03"
_WHAT = "a snapshot of a processor"
_INCONSISTENT = (
    *(ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError),
    msgspec.MsgspecError,
)
_encode = msgspec.msgpack.Encoder().encode


class State(msgspec.Struct, omit_defaults=True):
    """All that a processor remembers, but its learners."""

    clocks: list[SavedClock]
    counters: dict[str, int]
    models: list[str]
    keys: list[tuple[str, str]]
    calibrators: list[bytes]
    monitors: list[Any] | None
    stores: list[SavedStore]
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
    waiting = saved_ledger.columns_of(ledger, PENDING).slots
    features = [] if learning is None else learning.features
    calibrators = answering.calibrators
    stores = (saved_ledger.encoded(ledger, store) for store in range(3))
    held = {
        "clocks": pieces(ledger.clocks()),
        "counters": pieces(processor.counters),
        "models": pieces([*deciding.admission.models]),
        "keys": pieces([*deciding.admission.keys]),
        "calibrators": several(len(calibrators), (one.to_bytes() for one in calibrators)),
        "monitors": pieces(None)
        if monitors is None
        else several(len(monitors), (one.state() for one in monitors)),
        "stores": chain([header(ARRAY, 3)], *stores),
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
    saved_ledger.fill(ledger, held, task, processor.settings)
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


def _rows(rows: NDArray[np.float64], slots: NDArray[np.int64]) -> Iterator[Piece]:
    """Encode some rows of numbers, one behind the other."""
    yield header(BINARY, rows.itemsize * rows.shape[1] * len(slots))
    for part in parts(len(slots)):
        yield raw(rows[slots[part]])


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
