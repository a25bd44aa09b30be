"""The parts of a saved state that the join has: counters, names, clocks and what waits."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from abers.serialization import count, require
from abers.stream.accounts import total
from abers.stream.component import Component
from abers.stream.join import COUNTERS, LATER_COUNTERS
from abers.stream.layouts import ArrayLayout, Axis, Layout, ListLayout
from abers.stream.msgpack_encoder import encode, encode_array
from abers.stream.pending_store import PENDING
from abers.stream.saved_store import (
    STORES,
    SavedClock,
    SavedStore,
    encode_stores,
    load_clocks,
    load_store,
    store_layout,
)
from abers.stream.validation import require_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from abers.arrays import Integers
    from abers.serialization import Piece
    from abers.stream.layouts import Cut
    from abers.stream.model_learners import ModelLearners
    from abers.stream.state import ProcessorState

__all__ = [
    "Clocks",
    "EventCounters",
    "Features",
    "Names",
    "Pending",
    "SavedNames",
    "saved_counters",
]

_decode, _encode_to_bytes = msgspec.msgpack.decode, msgspec.msgpack.Encoder().encode
_Counts: TypeAlias = dict[str, int]


class _CounterLayout(Layout):
    """Counters: what waits is counted where it waits, and all else in the first part.

    Of each other part, an observation that waits, and for which no label was assumed, counts as an
    observation and a prediction, and a label that waits as a label that came, early. So each
    account of `abers.stream.accounts` adds up in every part, and all parts have the sums of the
    whole. What has ended (labels learned or assumed, duplicates, dead letters, what expired, was
    evicted or retired) is of the first part: no counter is by model.
    """

    def split(self, payload: msgspec.Raw, cut: Cut) -> Iterator[bytes]:
        """Yield the counters of each part."""
        early = cut.rows[Axis.EARLY_LABELS]
        waiting = zip(cut.undecided[1:], map(len, early[1:]), strict=True)
        others = [*(_waiting(*each) for each in waiting)]
        first = Counter(saved_counters(payload))
        for one in others:
            first.subtract(one)
        return (_encode_to_bytes(_written(one)) for one in (first, *others))

    def join(self, payloads: Sequence[msgspec.Raw], cut: Cut) -> bytes:
        """Return the sums."""
        del cut
        return _encode_to_bytes(_written(total(map(saved_counters, payloads))))


def _waiting(observations: int, labels: int) -> _Counts:
    """Return the counters of a state that has nothing but what waits."""
    return dict.fromkeys(COUNTERS, 0) | {
        "observations": observations,
        "predictions": observations,
        "labels_in": labels,
        "early_labels": labels,
    }


def saved_counters(payload: msgspec.Raw) -> _Counts:
    """Return saved counters; a ValueError if they cannot be all of them."""
    saved = dict.fromkeys(LATER_COUNTERS, 0) | _decode(payload, type=_Counts)
    require(saved.keys() == {*COUNTERS}, "counters")
    return {name: saved[name] for name in COUNTERS}


def _written(counters: Mapping[str, int]) -> _Counts:
    """Return the counters as they are saved."""
    for name, number in counters.items():
        count(number, f"counter {name}")
    return {name: one for name, one in counters.items() if one or name not in LATER_COUNTERS}


class EventCounters(Component):
    """All counters, by name."""

    name = "counters"
    formats: ClassVar = {1: dict[str, int]}
    layout = _CounterLayout()

    def __init__(self, state: ProcessorState) -> None:
        self._join = state.join

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the counters."""
        del slots
        counters = self._join.counters.items()
        return encode({name: one for name, one in counters if one or name not in LATER_COUNTERS})

    def _load(self, saved: dict[str, int]) -> None:
        saved = dict.fromkeys(LATER_COUNTERS, 0) | saved
        require(saved.keys() == self._join.counters.keys(), "counters")
        for name, number in saved.items():
            count(number, f"counter {name}")
        self._join.counters = saved


class SavedNames(msgspec.Struct, array_like=True):
    """Models, and pairs of model and segment, by their numbers."""

    models: list[str]
    keys: list[tuple[str, str]]


class Names(Component):
    """Models, and pairs of model and segment, by their numbers."""

    name = "keys"
    formats: ClassVar = {1: SavedNames}
    layout = ArrayLayout(ListLayout(Axis.MODELS), ListLayout(Axis.KEYS))

    def __init__(self, state: ProcessorState) -> None:
        self._names, self._settings = state.join.names, state.settings
        self._front = state.join.validator.front

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the names."""
        del slots
        return encode([self._names.by_number, self._names.pairs])

    def _load(self, saved: SavedNames) -> None:
        names = [*saved.models, *(segment for _, segment in saved.keys)]
        count = max(len(saved.models), len(saved.keys))
        require_limits(self._settings, count, names, [], self._front)
        models, keys = {*saved.models}, {*saved.keys}
        require(len(models) == len(saved.models), "models")
        require(len(keys) == len(saved.keys), "keys")
        require({model for model, _ in keys} <= models, "keys")
        self._names.add(saved.models, saved.keys)


class Clocks(Component):
    """The clock of each model."""

    name = "clocks"
    formats: ClassVar = {1: list[SavedClock]}
    layout = ListLayout(Axis.MODELS)

    def __init__(self, state: ProcessorState) -> None:
        self._join = state.join

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the clocks."""
        del slots
        return encode(self._join.store.clocks())

    def _load(self, saved: list[SavedClock]) -> None:
        load_clocks(self._join.store, saved, [*self._join.names.models])


class Pending(Component):
    """Observations and labels that wait, and finished ids, which may be left out."""

    name = "pending"
    formats: ClassVar = {1: list[SavedStore]}
    layout = ArrayLayout(*map(store_layout, STORES))

    def __init__(self, state: ProcessorState, *, finished_ids: bool = True) -> None:
        self._state, self._finished_ids = state, finished_ids

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the pending store."""
        del slots
        return encode_stores(self._state.join.store, finished_ids=self._finished_ids)

    def _load(self, saved: list[SavedStore]) -> None:
        require(len(saved) == len(STORES), "stores")
        names, store = self._state.join.names, self._state.join.store
        predicted = names.pairs[: len(self._state.calibration.calibrators)]
        owners = np.array([names.models[model] for model, _ in predicted], np.uint32)
        clocks = [SavedClock(*one) for one in store.clocks()]
        task, settings = self._state.task, self._state.settings
        front = self._state.join.validator.front
        for kind, one in zip(STORES, saved, strict=True):
            load_store(store, kind, one, clocks, owners, task, settings, front)


class Features(Component):
    """Features of the observations that wait, which learners are yet to learn."""

    name = "features"
    formats: ClassVar = {1: list[Any]}
    layout = ListLayout(Axis.OBSERVATIONS)

    def __init__(self, state: ProcessorState, learners: ModelLearners) -> None:
        self._store, self._learners = state.join.store, learners

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the features in some slots."""
        stored = self._learners.features
        features = (msgspec.Raw(_encode_to_bytes(stored[slot])) for slot in slots.tolist())
        return encode_array(len(slots), features)

    def _load(self, saved: list[Any]) -> None:
        require(len(saved) == self._store.count(PENDING), "features")
        require(all(x is None or isinstance(x, dict) for x in saved), "features")
        self._learners.features += saved
