"""Snapshots of a processor.

A snapshot is a seal (see `abers.serialization`) around MessagePack: the settings, the position, and
the parts of the state by name (see `abers.stream.component`). Columns are little-endian bytes.

The state is a function of the events, to the last bit. The bytes of learners and the histories of
models are not, so they are parts outside of `state_bytes`. With a key all of a snapshot is under
one seal, for one owner. A pickle of learners is read only from under this seal, and learners only
if the caller wants them.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from abers.exceptions import AbersError, SettingsError, StateError
from abers.serialization import REMEDY, as_bytes, seal_pieces, unseal
from abers.stream import saved_state
from abers.stream.component import (
    SavedComponent,
    encode,
    encode_components,
    encode_saved,
    encode_struct,
    load_components,
    require_readable,
)
from abers.stream.learners import SavedLearners, require_protection
from abers.stream.pending_store import PENDING, StoreColumns
from abers.stream.settings import OF_VALIDATION, Settings
from abers.validation import shown
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers.serialization import Piece
    from abers.stream.component import Component
    from abers.stream.state import ProcessorState

__all__ = [
    "INCONSISTENT",
    "MAGIC",
    "Snapshot",
    "components_of",
    "dump",
    "dump_state",
    "load",
    "load_state",
    "read",
    "require_settings",
    "require_whole",
    "write",
]

MAGIC = b"abersPS\x01"
_DESCRIPTION = "a snapshot of a processor"
_LEARNERS = SavedLearners.name
INCONSISTENT = (
    *(ValueError, IndexError, KeyError, TypeError, OverflowError, AbersError),
    msgspec.MsgspecError,
)
"""What is raised by bytes that are under a right seal, and are no state."""
_encode_to_bytes = msgspec.msgpack.Encoder().encode


class Snapshot(msgspec.Struct):
    """What is under the seal."""

    version: str
    settings: Settings
    position: Any
    components: dict[str, SavedComponent]


def components_of(state: ProcessorState, *, finished_ids: bool = True) -> Iterator[Component]:
    """Yield the parts of a state, but its learners, each behind those that it needs."""
    calibration = state.calibration
    yield saved_state.EventCounters(state)
    yield saved_state.Names(state)
    yield saved_state.Clocks(state)
    yield saved_state.Calibrators(state)
    if state.task.tracked:
        yield saved_state.Trackers(state)
    yield saved_state.Pending(state, finished_ids=finished_ids)
    if state.join.learners is not None:
        yield saved_state.Features(state, state.join.learners)
    yield from saved_state.monitor_states(state)
    yield saved_state.Predictions(state)
    if calibration.pending is not None:
        yield saved_state.Distributions(state, calibration.pending)
    if calibration.e_processes is not None:
        yield saved_state.EProcesses(state, calibration.e_processes)
    if calibration.monitors is not None:
        yield saved_state.Histories(state)


# Saving


def dump_state(state: ProcessorState) -> Iterator[Piece]:
    """Encode the parts of a state that follow from the events, in canonical form."""
    return _encode(state, [one for one in components_of(state) if not one.derived])


def _encode(state: ProcessorState, components: Sequence[Component]) -> Iterator[Piece]:
    return encode_components(components, StoreColumns.of(state.join.store, PENDING).slots)


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
    components = [*components_of(state, finished_ids=finished_ids)]
    if state.join.learners is not None:
        require_protection(key, trusted_types)
        components.append(SavedLearners(state.join.learners, trusted_types))
    saved = _encode(state, components)
    return _sealed(__version__, state.settings, position, saved, key, owner)


def write(
    whole: Snapshot,
    position: Any,  # noqa: ANN401
    key: bytes | None,
    owner: str,
    trusted_types: Sequence[str] | None = None,
) -> Iterator[Piece]:
    """Return the pieces of a snapshot with its parts as they were saved, at a new position."""
    if _LEARNERS in whole.components:
        require_protection(key, trusted_types)
    saved = encode_saved(whole.components)
    return _sealed(whole.version, whole.settings, position, saved, key, owner)


def _sealed(  # noqa: PLR0913, PLR0917 - the fields of a snapshot, and its seal
    version: str,
    settings: Settings,
    position: Any,  # noqa: ANN401
    components: Iterable[Piece],
    key: bytes | None,
    owner: str,
) -> Iterator[Piece]:
    whole: dict[str, Iterable[Piece]] = {
        "version": encode(version),
        "settings": encode(settings),
        "position": [_position(position)],
        "components": components,
    }
    return seal_pieces(MAGIC, encode_struct(whole), key, owner)


def _position(position: Any) -> bytes:  # noqa: ANN401
    try:
        return _encode_to_bytes(position)
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"position {shown(position)} cannot be saved ({error}); give what JSON can hold"
        raise StateError(msg) from None


# Loading


def read(blob: bytes, key: bytes | None = None, owner: str | None = None) -> Snapshot:
    """Read a snapshot; its parts are not decoded.

    The key is that of the writer, and so is the owner; None reads that of any owner. A
    StateError is raised if the bytes are damaged, of an unknown version, or under another seal.
    """
    payload = unseal(MAGIC, as_bytes(blob, _DESCRIPTION), _DESCRIPTION, key, owner)
    try:
        return msgspec.msgpack.decode(payload, type=Snapshot)
    except (msgspec.MsgspecError, ValueError) as error:
        msg = f"snapshot is garbled ({error}); {REMEDY}"
        raise StateError(msg) from None


def require_whole(blob: bytes, key: bytes | None = None, owner: str | None = None) -> None:
    """Raise a StateError if a snapshot is damaged; its contents are not read."""
    unseal(MAGIC, as_bytes(blob, _DESCRIPTION), _DESCRIPTION, key, owner)


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
        require_protection(key, trusted_types)
    whole = read(blob, key, owner)
    require_settings(whole.settings, state.settings)
    if learners is not None and _LEARNERS not in whole.components:
        msg = "the snapshot has no learner, and the settings name one; start without the snapshot"
        raise StateError(msg)
    if learners is None and _LEARNERS in whole.components:
        msg = "the snapshot has learners, and the settings name no learner; name it again"
        raise StateError(msg)
    own = [] if learners is None else [SavedLearners(learners, trusted_types)]
    _load(state, whole, own)
    return whole.position


def load_state(state: ProcessorState, whole: Snapshot) -> None:
    """Load all parts of a snapshot but its learners, which may be of unknown types."""
    without = {_LEARNERS, saved_state.Features.name}
    left = {name: one for name, one in whole.components.items() if name not in without}
    _load(state, msgspec.structs.replace(whole, components=left), [])


def _load(state: ProcessorState, whole: Snapshot, learners: Sequence[Component]) -> None:
    components, saved = [*components_of(state)], whole.components
    require_readable([*components, *learners], saved, whole.version)
    try:
        with _collections_paused():
            load_components(components, saved)
    except SettingsError:
        raise
    except INCONSISTENT as error:
        msg = f"snapshot is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None
    load_components(learners, saved)


@contextmanager
def _collections_paused() -> Iterator[None]:
    """Let the garbage collector pause: it would read all models again and again as they come."""
    runs = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if runs:
            gc.enable()


def require_settings(saved: Settings, wanted: Settings) -> None:
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
