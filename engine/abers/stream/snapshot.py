"""Snapshots of a processor.

The state is a function of the events, to the last bit. The bytes of learners and the histories of
models are not, so they are saved beside it. With a key all of a snapshot is under one seal, for one
owner. A pickle of learners is read only from under such a seal, and no learner without being asked
for.

A snapshot is a seal (see `abers.serialization`) around MessagePack: the settings, the position, the
state, the learners and the histories. Columns are little-endian bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from abers.arrays import raw
from abers.exceptions import AbersError, SettingsError, StateError
from abers.serialization import (
    MAX_COUNT,
    REMEDY,
    column,
    count,
    require,
    seal_pieces,
    unseal,
)
from abers.stream import saved_learners
from abers.stream.alarms import SavedEProcesses  # noqa: TC001 - msgspec reads the annotations
from abers.stream.history import SavedHistory  # noqa: TC001 - as above
from abers.stream.msgpack_encoder import BINARY, encode, encode_array, encode_struct, header
from abers.stream.pending_distributions import SavedDistributions  # noqa: TC001 - as above
from abers.stream.pending_store import PENDING
from abers.stream.saved_store import (
    STORES,
    SavedClock,
    SavedStore,
    StoreColumns,
    encode_stores,
    load_clocks,
    load_store,
    parts,
)
from abers.stream.settings import LARGEST_TIME, OF_VALIDATION, Settings
from abers.stream.validation import require_limits
from abers.validation import shown
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.serialization import Piece
    from abers.stream.calibration_step import CalibrationStep
    from abers.stream.join import Join
    from abers.stream.state import ProcessorState
    from abers.stream.tasks.base import Task

__all__ = ["SavedState", "Snapshot", "dump", "dump_state", "load", "read", "require_whole"]

MAGIC = b"abersPS\x02"
_DESCRIPTION = "a snapshot of a processor"
_INCONSISTENT = (
    *(ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError),
    msgspec.MsgspecError,
)
_encode_to_bytes = msgspec.msgpack.Encoder().encode


class SavedState(msgspec.Struct, omit_defaults=True):
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
    made: memoryview  # number of predictions by key, as little-endian i8
    distributions: SavedDistributions | None = None
    e_processes: SavedEProcesses | None = None


class Snapshot(msgspec.Struct):
    """What is under the seal."""

    version: str
    settings: Settings
    position: Any
    state: msgspec.Raw
    learners: bytes | None
    histories: list[SavedHistory] = []


# Saving


def dump_state(state: ProcessorState, *, finished_ids: bool = True) -> Iterator[Piece]:
    """Encode a state in canonical form, as a `SavedState`."""
    calibration, join = state.calibration, state.join
    slots = StoreColumns.of(join.store, PENDING).slots
    features: Iterable[Any] = ()
    if join.learners is not None:
        stored = join.learners.features
        features = (msgspec.Raw(_encode_to_bytes(stored[slot])) for slot in slots.tolist())
    fields = {
        "clocks": encode(join.store.clocks()),
        "counters": encode(join.counters),
        "models": encode([*join.validator.models]),
        "keys": encode([*join.validator.keys]),
        "calibrators": _encode_each(calibration.calibrators, "to_bytes"),
        "monitors": _encode_each(calibration.monitors, "state"),
        "stores": encode_stores(join.store, finished_ids=finished_ids),
        "rows": _encode_rows(calibration.rows, slots),
        "features": encode_array(0 if join.learners is None else len(slots), features),
        "made": encode(raw(calibration.made)),
    }
    if calibration.pending is not None:
        fields["distributions"] = calibration.pending.encode(slots.tolist())
    if calibration.e_processes is not None and calibration.made.any():
        fields["e_processes"] = calibration.e_processes.save(slots)
    yield from encode_struct(fields)


def _encode_each(several: list[Any] | None, method: str) -> Iterator[Piece]:
    """Encode what a method of each returns, only when it is its turn; None of None."""
    if several is None:
        return encode(None)
    return encode_array(len(several), (getattr(one, method)() for one in several))


def _encode_rows(rows: NDArray[np.float64], slots: NDArray[np.int64]) -> Iterator[Piece]:
    """Encode the rows in some slots, one behind the other."""
    yield header(BINARY, rows.itemsize * rows.shape[1] * len(slots))
    for part in parts(len(slots)):
        yield raw(rows[slots[part]])


def dump(  # noqa: PLR0913 - the state, the position, and what is saved how
    state: ProcessorState,
    position: Any,  # noqa: ANN401
    key: bytes | None,
    owner: str,
    trusted_types: Sequence[str] | None,
    *,
    finished_ids: bool,
) -> Iterator[Piece]:
    """Return the snapshot of a state in pieces, each made when it is its turn."""
    saved, learners = None, state.join.learners
    if learners is not None:
        saved_learners.require_protection(key, trusted_types)
        saved = saved_learners.dump((learners.shared, learners.by_model), trusted_types)
    whole: dict[str, Iterable[Piece]] = {
        "version": encode(__version__),
        "settings": encode(state.settings),
        "position": [_position(position)],
        "state": dump_state(state, finished_ids=finished_ids),
        "learners": encode(saved),
        "histories": _encode_each(state.calibration.histories, "save"),
    }
    return seal_pieces(MAGIC, encode_struct(whole), key, owner)


def _position(position: Any) -> bytes:  # noqa: ANN401
    try:
        return _encode_to_bytes(position)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"position {shown(position)} cannot be saved ({error}); give what JSON can hold"
        raise StateError(msg) from None


# Loading


def read(
    blob: bytes, key: bytes | None = None, owner: str | None = None
) -> tuple[Snapshot, SavedState]:
    """Read a snapshot and the state in it, all but its learners.

    The key is the one that it was given, and so is the owner; None reads that of any owner. A
    StateError is raised if the bytes are damaged, of an unknown version, or under another seal.
    """
    payload = _payload(blob, key, owner)
    try:
        whole = msgspec.msgpack.decode(payload, type=Snapshot)
        saved = msgspec.msgpack.decode(whole.state, type=SavedState)
    except (msgspec.MsgspecError, ValueError, KeyError) as error:
        msg = f"snapshot is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None
    return whole, saved


def _payload(blob: bytes, key: bytes | None, owner: str | None) -> memoryview:
    return unseal(MAGIC, bytes(blob), _DESCRIPTION, key, owner)


def require_whole(blob: bytes, key: bytes | None = None, owner: str | None = None) -> None:
    """Raise a StateError if a snapshot is damaged; its contents are not read."""
    _payload(blob, key, owner)


def load(
    state: ProcessorState,
    blob: bytes,
    key: bytes | None,
    owner: str,
    trusted_types: Sequence[str] | None,
) -> Any:  # noqa: ANN401
    """Load a snapshot into an empty state, and return its position."""
    learners = state.join.learners
    if learners is not None:
        saved_learners.require_protection(key, trusted_types)
    whole, saved = read(blob, key, owner)
    _require_settings(whole.settings, state.settings)
    names = [*saved.models, *(segment for _, segment in saved.keys)]
    require_limits(state.settings, max(len(saved.models), len(saved.keys)), names, [])
    if learners is not None:
        if whole.learners is None:
            msg = "the snapshot holds no learner, and the settings name one; start without it"
            raise StateError(msg)
        learners.shared, learners.by_model = saved_learners.load(whole.learners, trusted_types)
    elif whole.learners is not None:
        msg = "the snapshot holds learners, and the settings name none; name the learner again"
        raise StateError(msg)
    try:
        _load_join(state.join, saved, state.task, state.settings)
        _load_calibration(state.calibration, saved, state.task, state.join.store.count(PENDING))
        require(len(whole.histories) in {0, len(state.calibration.histories)}, "histories")
        for history, one in zip(state.calibration.histories, whole.histories, strict=False):
            history.load(one)
    except SettingsError:
        raise
    except _INCONSISTENT as error:
        msg = f"snapshot is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None
    return whole.position


def _require_settings(saved: Settings, wanted: Settings) -> None:
    """Refuse settings other than those that shaped the state, and list the differences."""
    before, now = msgspec.structs.asdict(saved), msgspec.structs.asdict(wanted)
    differing = [
        f"{name} was {shown(before[name])} and is {shown(now[name])}"
        for name in before
        if before[name] != now[name] and name not in OF_VALIDATION
    ]
    if differing:
        msg = (
            f"the snapshot was made with other settings: {'; '.join(differing)}; "
            "set them back, or start without the snapshot"
        )
        raise SettingsError(msg)


def _load_join(join: Join, saved: SavedState, task: Task, settings: Settings) -> None:
    """Check the names, clocks and stores of a snapshot, and load them into an empty join."""
    require(saved.counters.keys() == join.counters.keys(), "counters")
    for name, number in saved.counters.items():
        count(number, f"counter {name}")
    require(len(saved.stores) == len(STORES), "stores")
    models = {name: number for number, name in enumerate(saved.models)}
    keys = {pair: number for number, pair in enumerate(saved.keys)}
    require(len(models) == len(saved.models), "models")
    require(len(keys) == len(saved.keys) >= len(saved.calibrators), "keys")
    require({model for model, _ in keys} <= models.keys(), "keys")
    join.validator.models.update(models)
    join.validator.keys.update(keys)
    join.counters = saved.counters
    load_clocks(join.store, saved.clocks, saved.models)
    predicted = saved.keys[: len(saved.calibrators)]
    owners = np.array([models[model] for model, _ in predicted], np.uint32)
    for kind, one in zip(STORES, saved.stores, strict=True):
        load_store(join.store, kind, one, saved.clocks, owners, task, settings)
    if join.learners is not None:
        require(len(saved.features) == join.store.count(PENDING), "features")
        require(all(x is None or isinstance(x, dict) for x in saved.features), "features")
        join.learners.features += saved.features


def _load_calibration(
    calibration: CalibrationStep, saved: SavedState, task: Task, waiting: int
) -> None:
    """Check the calibrators, monitors and pending rows of a snapshot, and load them."""
    calibration.calibrators += [task.calibrator(one) for one in saved.calibrators]
    require((saved.monitors is None) == (calibration.monitors is None), "monitors")
    if calibration.monitors is not None:
        monitors = saved.monitors or []
        require(len(monitors) == len(calibration.calibrators), "monitors")
        calibration.monitors += [
            calibration.watching(task.monitor(one), calibrator)
            for one, calibrator in zip(monitors, calibration.calibrators, strict=True)
        ]
        calibration.histories += [calibration.history() for _ in monitors]
    made = column(saved.made, "<i8", "numbers of predictions", len(calibration.calibrators))
    require(((made >= 0) & (made <= MAX_COUNT)).all(), "numbers of predictions")
    calibration.made = made
    calibration.reserve(len(saved.keys), waiting + 1)
    width = calibration.rows.shape[1]
    rows = column(saved.rows, "<f8", "rows", waiting * width).reshape(waiting, width)
    require(task.are_scores(rows[:, : task.score_width]), "scores that wait")
    predictions = rows[:, task.score_width :][:, : task.prediction_width]
    require(task.are_predictions(predictions), "predictions that wait")
    require(not task.stateful or _are_numbers(rows[:, -1]), "numbers of predictions that wait")
    calibration.rows[1 : waiting + 1] = rows
    pending, e_processes = calibration.pending, calibration.e_processes
    require((saved.distributions is None) == (pending is None), "distributions")
    if pending is not None and saved.distributions is not None:
        require(pending.load(saved.distributions) == waiting, "distributions")
    if e_processes is not None and saved.e_processes is not None:
        loaded = e_processes.load(saved.e_processes, calibration.made)
        require(loaded == waiting, "e-processes")


def _are_numbers(given: NDArray[np.float64]) -> bool:
    """Return whether all are numbers of observations."""
    return bool(((given >= 0.0) & (given < LARGEST_TIME) & (given == np.floor(given))).all())
