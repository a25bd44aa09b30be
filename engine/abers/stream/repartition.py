"""States of processors by model: one is split into parts, and parts are joined, as bytes.

A part has for its models what a processor has that got their events alone, to the byte; only the
counters are divided by a rule, see `abers.stream.saved_state`. No calibrator, monitor, history or
test is decoded. So all models of a state move to other processors in a fraction of the time in
which they load. See `abers.stream.component` for how.

A limit of one processor holds anew for each part: `max_models`, and `max_bytes`.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from abers.exceptions import AbersError, ParameterError, StateError
from abers.serialization import REMEDY, require
from abers.stream.component import Axis, Component, Cut, SavedComponent, require_readable
from abers.stream.learners import ModelLearners, SavedLearners, require_protection
from abers.stream.pending_store import (
    ASSUMED,
    PENDING,
    STORES,
    SavedStore,
    StoreColumns,
    payload_bytes,
)
from abers.stream.saved_state import EventCounters, Names, Pending, SavedNames, saved_counters
from abers.stream.snapshot import INCONSISTENT, Snapshot, components_of
from abers.stream.state import ProcessorState
from abers.stream.validation import require_limits
from abers.validation import shown
from abers.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from abers.arrays import Integers
    from abers.stream.option import Front

__all__ = ["event_counts", "join", "require_few", "split"]

_decode = msgspec.msgpack.decode


def split(
    whole: Snapshot,
    parts: int,
    owner: Callable[[str], int],
    key: bytes | None = None,
    trusted_types: Sequence[str] | None = None,
) -> list[Snapshot]:
    """Split a state by model.

    Parameters
    ----------
    whole
        The state, as `abers.stream.snapshot.read` returns it.
    parts
        Number of parts, at least 1. A part without models is the state of a new processor.
    owner
        Number of the part of a model, less than `parts`.
    key, trusted_types
        Those under which learners were read. A learner that all models share is in every part.

    Returns
    -------
    list of Snapshot
        What `abers.stream.snapshot.write` takes, by number; their positions are that of the whole.

    Raises
    ------
    StateError
        If another version of abers wrote the state, it cannot be one, or its learners cannot be
        loaded.
    ParameterError
        If there is no part, or `owner` returns no number of a part.

    Notes
    -----
    **Guarantee.** Restored, a part goes on with its models as the whole processor would, to the
    bit, as long as neither `max_bytes` nor `max_models` binds, and no learner is shared. `join`
    undoes it.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> from abers.stream.snapshot import read, write
    >>> processor = Processor()
    >>> for model in ("first", "second"):
    ...     _ = processor.process(Observation("a", time=1, model=model, score=0.5))
    >>> parts = split(read(processor.snapshot()), 2, owner=["first", "second"].index)
    >>> blobs = [b"".join(write(one, None, None, "")) for one in parts]
    >>> [Processor.restore(blob).keys for blob in blobs]
    [[('first', '')], [('second', '')]]
    """
    components = _components(whole, key, trusted_types)
    with _sound():
        names, stores = _names(whole), _stores(whole)
    cut = _cut(names, stores, _owners(names.models, parts, owner), parts)
    with _sound():
        divided = {
            one.name: [*one.layout.split(whole.components[one.name].payload, cut)]
            for one in components
        }
    return [
        _with(whole, {name: payloads[part] for name, payloads in divided.items()})
        for part in range(parts)
    ]


def join(
    parts: Sequence[Snapshot],
    key: bytes | None = None,
    trusted_types: Sequence[str] | None = None,
) -> Snapshot:
    """Join the states of processors of different models.

    Parameters
    ----------
    parts
        The states, at least one; their models and entries follow each other in this order.
    key, trusted_types
        Those under which learners were read.

    Returns
    -------
    Snapshot
        Its position is that of the first.

    Raises
    ------
    StateError
        If versions or settings differ, a model is in two of them, all together exceed
        `limits.max_bytes`, or models share a learner that differs. A state with more than
        `limits.max_models` is refused when it is restored; see `require_few`.
    ParameterError
        If there is no state.

    Notes
    -----
    **Guarantee.** Restored, the whole goes on with every model as its part would, to the bit,
    under the conditions of `split`.

    Examples
    --------
    >>> from abers.stream import Observation, Processor
    >>> from abers.stream.snapshot import read, write
    >>> states = []
    >>> for model in ("first", "second"):
    ...     processor = Processor()
    ...     _ = processor.process(Observation("a", time=1, model=model, score=0.5))
    ...     states.append(read(processor.snapshot()))
    >>> blob = b"".join(write(join(states), None, None, ""))
    >>> Processor.restore(blob).keys
    [('first', ''), ('second', '')]
    """
    _require_alike(parts)
    components, *_ = [_components(one, key, trusted_types) for one in parts]
    with _sound():
        names, stores = [*map(_names, parts)], [*map(_stores, parts)]
    _require_disjoint([one.models for one in names])
    with _sound():
        _require_room(parts[0], stores)
        cut = _joint(names, stores)
        joined = {
            one.name: one.layout.join([part.components[one.name].payload for part in parts], cut)
            for one in components
        }
    return _with(parts[0], joined)


def event_counts(one: Snapshot) -> tuple[int, int]:
    """Return how many observations and labels a state counts; see `abers.stream.saved_state`.

    Raises a StateError if it cannot be a state.
    """
    with _sound():
        counters = saved_counters(one.components[EventCounters.name].payload)
    return counters["observations"], counters["labels_in"]


def require_few(one: Snapshot, front: Front) -> None:
    """Raise a SettingsError if a state has more models than a processor restores.

    `front` says how the message names the limit.
    """
    with _sound():
        names = _names(one)
    require_limits(one.settings, max(len(names.models), len(names.keys)), [], [], front)


@contextmanager
def _sound() -> Iterator[None]:
    """Raise a StateError if bytes cannot be a state."""
    try:
        yield
    except AbersError:
        raise
    except INCONSISTENT as error:
        msg = f"snapshot is inconsistent ({error}); {REMEDY}"
        raise StateError(msg) from None


def _with(whole: Snapshot, payloads: Mapping[str, bytes]) -> Snapshot:
    """Return a snapshot with other payloads."""
    saved = {
        name: msgspec.structs.replace(whole.components[name], payload=msgspec.Raw(payload))
        for name, payload in payloads.items()
    }
    return msgspec.structs.replace(whole, components=saved)


# What is saved


def _components(
    whole: Snapshot, key: bytes | None, trusted_types: Sequence[str] | None
) -> list[Component]:
    """Return the components that a snapshot has; they must be as this version writes them."""
    state, saved = ProcessorState(whole.settings), whole.components
    if SavedLearners.name in saved and state.join.learners is None:
        state.join.learners = ModelLearners(whole.settings, state.task, None)
    components = [*components_of(state)]
    if state.join.learners is not None:
        require_protection(key, trusted_types)
        components.append(SavedLearners(state.join.learners, trusted_types))
    require_readable(components, saved, whole.version)
    for one in components:
        if one.name in saved:
            _require_latest(one, saved[one.name])
    return [one for one in components if one.name in saved]


def _require_latest(component: Component, saved: SavedComponent) -> None:
    if saved.version != component.version:
        msg = (
            f"the snapshot has {component.name!r} in version {saved.version}, and abers "
            f"{__version__} writes version {component.version}; start abers {__version__} once, so "
            "that it writes snapshots, then repeat"
        )
        raise StateError(msg)


def _names(whole: Snapshot) -> SavedNames:
    return _decode(whole.components[Names.name].payload, type=SavedNames)


def _stores(whole: Snapshot) -> dict[int, SavedStore]:
    """Return the pending store by kinds of entries."""
    saved = _decode(whole.components[Pending.name].payload, type=list[SavedStore])
    return dict(zip(STORES, saved, strict=True))


# Splitting


def _owners(models: Sequence[str], parts: int, owner: Callable[[str], int]) -> Integers:
    """Return the part of each model."""
    if parts < 1:
        msg = f"parts={shown(parts)}; give at least 1"
        raise ParameterError(msg)
    owners = [owner(model) for model in models]
    for model, one in zip(models, owners, strict=True):
        if not 0 <= one < parts:
            msg = f"model {shown(model)} is of part {one}; give a number from 0 to {parts - 1}"
            raise ParameterError(msg)
    return np.array(owners, np.int64)


def _cut(names: SavedNames, stores: Mapping[int, SavedStore], owners: Integers, parts: int) -> Cut:
    """Return the cut by the part of each model."""
    with _sound():
        of = dict(zip(names.models, owners.tolist(), strict=True))
        require(len(of) == len(names.models), "models")
        columns = {kind: StoreColumns.saved(one) for kind, one in stores.items()}
        by_axis = {
            Axis.MODELS: owners,
            Axis.KEYS: np.array([of[model] for model, _ in names.keys], np.int64),
            **{STORES[kind]: owners[one.models] for kind, one in columns.items()},
        }
        rows = {axis: _grouped(of_row, parts) for axis, of_row in by_axis.items()}
    undecided = columns[PENDING].values != ASSUMED
    return Cut(
        [[names.models[number] for number in own.tolist()] for own in rows[Axis.MODELS]],
        rows,
        [int(undecided[own].sum()) for own in rows[Axis.OBSERVATIONS]],
    )


def _grouped(owners: Integers, parts: int) -> list[Integers]:
    """Return the rows of each part, ascending."""
    ends = np.cumsum(np.bincount(owners, minlength=parts))
    return np.split(np.argsort(owners, kind="stable"), ends[:-1])


# Joining


def _require_alike(parts: Sequence[Snapshot]) -> None:
    """Refuse states of different versions or settings."""
    if not parts:
        msg = "there is no state to join; give at least one"
        raise ParameterError(msg)
    remedy = f"start abers {__version__} once for each, so that it writes snapshots, then repeat"
    versions = {one.version for one in parts}
    if len(versions) > 1:
        msg = f"versions {' and '.join(sorted(versions))} of abers wrote these states; {remedy}"
        raise StateError(msg)
    first, *others = (msgspec.structs.asdict(one.settings) for one in parts)
    for name in first:
        found = [first[name], *(one[name] for one in others if one[name] != first[name])]
        if len(found) > 1:
            values = " and ".join(map(shown, found[:2]))
            msg = f"these states have other settings: {name} is {values}; {remedy}"
            raise StateError(msg)
    if len({frozenset(one.components) for one in parts}) > 1:
        msg = f"these states have different components; {remedy}"
        raise StateError(msg)


def _require_disjoint(models: Sequence[Sequence[str]]) -> None:
    """Refuse a model that is in two states: each learned from other events."""
    owner: dict[str, int] = {}
    for part, model in ((part, model) for part, own in enumerate(models) for model in own):
        if (before := owner.setdefault(model, part)) != part:
            msg = (
                f"model {shown(model)} has a calibrator in each of states {before} and {part}, and "
                "there is no exact union; derive the state anew from all events of the model"
            )
            raise StateError(msg)


def _require_room(first: Snapshot, stores: Sequence[Mapping[int, SavedStore]]) -> None:
    """Refuse states that have more entries than one processor keeps."""
    taken = sum(payload_bytes(saved, kind) for one in stores for kind, saved in one.items())
    if taken > (most := first.settings.max_bytes):
        msg = (
            f"what waits in these states, and their finished ids, count {taken:,} bytes, and "
            f"limits.max_bytes is {most:,}, so some would be dropped; join fewer states"
        )
        raise StateError(msg)


def _joint(names: Sequence[SavedNames], stores: Sequence[Mapping[int, SavedStore]]) -> Cut:
    """Return the cut that has the parts one after the other."""
    sizes = {
        Axis.MODELS: [len(one.models) for one in names],
        Axis.KEYS: [len(one.keys) for one in names],
        **{
            axis: [len(StoreColumns.saved(one[kind]).models) for one in stores]
            for kind, axis in STORES.items()
        },
    }
    rows = {axis: _following(each) for axis, each in sizes.items()}
    return Cut([one.models for one in names], rows)


def _following(sizes: Sequence[int]) -> list[Integers]:
    ends = [0, *accumulate(sizes)]
    return [np.arange(start, end) for start, end in pairwise(ends)]
