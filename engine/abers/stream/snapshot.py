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
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

import abers
from abers._sealed import REMEDY, seal, unseal
from abers.exceptions import AbersError, ParameterError, StateError
from abers.stream.finished import FinishedColumns
from abers.stream.waiting import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.learners import Learner
    from abers.stream.processor import Processor
    from abers.stream.settings import Settings

__all__ = ["Snapshot", "dump", "load", "read", "state"]

MAGIC = b"abersPS\x01"


class _Ids(msgspec.Struct, array_like=True):
    """Texts, one after the other, and the number of characters of each."""

    text: str
    lengths: bytes


class _Waiting(msgspec.Struct, array_like=True):
    ids: _Ids
    models: bytes
    keys: bytes
    times: bytes
    stored: bytes
    rows: bytes
    things: list[Any]


class _Finished(msgspec.Struct, array_like=True):
    ids: _Ids
    models: bytes
    stored: bytes
    labelled: bytes


class State(msgspec.Struct):
    """All that a processor remembers, but its learners."""

    clock: int | None
    counters: dict[str, int]
    models: list[str]
    keys: list[tuple[str, str]]
    calibrators: list[bytes]
    monitors: list[Any] | None
    pending: _Waiting
    early: _Waiting
    finished: _Finished


class Snapshot(msgspec.Struct):
    """What a file of state holds."""

    version: str
    settings: Settings
    position: Any
    state: msgspec.Raw
    learners: bytes | None
    digest: bytes | None


def state(processor: Processor) -> bytes:
    """Give the state of a processor in canonical form."""
    answering = processor._answering
    monitors = answering.monitors
    held = State(
        clock=processor.clock,
        counters=processor.counters,
        models=list(processor._models),
        keys=list(processor._keys),
        calibrators=[calibrator.to_bytes() for calibrator in answering.calibrators],
        monitors=None if monitors is None else [monitor.state() for monitor in monitors],
        pending=_packed(processor._pending.columns()),
        early=_packed(processor._early.columns()),
        finished=_finished(processor._finished.columns()),
    )
    try:
        return msgspec.msgpack.encode(held)
    except (TypeError, OverflowError, ValueError) as error:
        msg = f"features that wait cannot be saved ({error}); use what JSON can hold"
        raise StateError(msg) from None


def dump(processor: Processor, position: Any, key: bytes | None) -> bytes:  # noqa: ANN401
    """Give the snapshot of a processor."""
    learners = digest = None
    if processor._learns:
        secret = _required(key)
        learners = pickle.dumps((processor._given, processor._learners), protocol=5)
        digest = _keyed(learners, secret)
    held = msgspec.Raw(state(processor))
    whole = Snapshot(abers.__version__, processor.settings, position, held, learners, digest)
    return seal(MAGIC, msgspec.msgpack.encode(whole))


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
    payload = unseal(MAGIC, bytes(blob), "a snapshot of a processor")
    try:
        whole = msgspec.msgpack.decode(payload, type=Snapshot)
        return whole, msgspec.msgpack.decode(whole.state, type=State)
    except (msgspec.MsgspecError, ParameterError) as error:
        msg = f"snapshot is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None


def load(processor: Processor, blob: bytes, key: bytes | None) -> None:
    """Fill an empty processor with what `dump` gave."""
    whole, held = read(blob)
    _refuse_other(whole.settings, processor.settings)
    if processor._learns:
        processor._given, processor._learners = _learners(whole, _required(key))
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
        f"{name} was {before[name]!r} and is {now[name]!r}"
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
    answering, task = processor._answering, processor._task
    if set(held.counters) != set(processor.counters):
        msg = "counters"
        raise ValueError(msg)
    processor.counters.update(held.counters)
    if held.clock is not None:
        processor._clock = held.clock
    for name in held.models:
        processor._new_model(name)
    answering.keys.update({pair: number for number, pair in enumerate(held.keys)})
    answering.calibrators += [task.calibrator(blob) for blob in held.calibrators]
    if answering.monitors is not None:
        answering.monitors += [task.monitor(one) for one in held.monitors or []]
    processor._pending.load(_unpacked(held.pending))
    processor._early.load(_unpacked(held.early))
    finished = held.finished
    processor._finished.load(
        FinishedColumns(
            _split(finished.ids),
            *_columns(finished.models, finished.stored, finished.labelled, types="<u4 <i8 u1"),
        )
    )
    processor._expire()


# Columns


def _joined(ids: list[str]) -> _Ids:
    lengths = np.fromiter(map(len, ids), np.uint32, len(ids))
    return _Ids("".join(ids), lengths.astype("<u4").tobytes())


def _split(ids: _Ids) -> list[str]:
    ends = accumulate(np.frombuffer(ids.lengths, "<u4").tolist(), initial=0)
    return [ids.text[start:end] for start, end in pairwise(ends)]


def _packed(columns: Columns) -> _Waiting:
    return _Waiting(
        ids=_joined(columns.ids),
        models=_bytes(columns.models),
        keys=_bytes(columns.keys),
        times=_bytes(columns.times),
        stored=_bytes(columns.stored),
        rows=_bytes(columns.rows),
        things=columns.things,
    )


def _unpacked(saved: _Waiting) -> Columns:
    models, keys, times, stored = _columns(
        saved.models, saved.keys, saved.times, saved.stored, types="<u4 <u4 <i8 <i8"
    )
    (rows,) = _columns(saved.rows, types="<f8")
    shape = (len(times), -1) if len(times) else (0, 1)
    return Columns(
        _split(saved.ids), models, keys, times, stored, rows.reshape(shape), saved.things
    )


def _finished(columns: FinishedColumns) -> _Finished:
    return _Finished(
        ids=_joined(columns.ids),
        models=_bytes(columns.models),
        stored=_bytes(columns.stored),
        labelled=_bytes(columns.labelled),
    )


def _bytes(column: NDArray[Any]) -> bytes:
    return column.astype(column.dtype.newbyteorder("<"), copy=False).tobytes()


def _columns(*saved: bytes, types: str) -> list[NDArray[Any]]:
    return [np.frombuffer(one, kind) for one, kind in zip(saved, types.split(), strict=True)]


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


def _learners(whole: Snapshot, key: bytes) -> tuple[Learner | None, dict[int, Learner]]:
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
