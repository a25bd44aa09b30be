"""The parts of a saved state that the join and the calibration step have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from abers.arrays import raw
from abers.serialization import MAX_COUNT, column, count, require
from abers.stream.accounts import total
from abers.stream.alarms import KeyedEProcesses, SavedEProcesses, SavedHistory
from abers.stream.component import (
    ARRAY,
    BINARY,
    ArrayLayout,
    Axis,
    ColumnLayout,
    Component,
    Layout,
    ListLayout,
    encode,
    encode_array,
    header,
)
from abers.stream.join import COUNTERS, LATER_COUNTERS
from abers.stream.pending_store import (
    PENDING,
    STORES,
    DistributionLayout,
    PendingDistributions,
    SavedClock,
    SavedDistributions,
    SavedStore,
    encode_stores,
    load_clocks,
    load_store,
    parts,
    store_layout,
)
from abers.stream.settings import LARGEST_TIME
from abers.stream.validation import require_limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.monitoring import Monitor
    from abers.serialization import Piece
    from abers.stream.component import Cut
    from abers.stream.learners import ModelLearners
    from abers.stream.state import ProcessorState

__all__ = [
    "Calibrators",
    "Clocks",
    "Distributions",
    "EProcesses",
    "EventCounters",
    "Features",
    "Histories",
    "MonitorStates",
    "Names",
    "Pending",
    "Predictions",
    "SavedNames",
    "Trackers",
    "monitor_states",
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


class _SavedCalibrators(msgspec.Struct, array_like=True):
    made: memoryview  # number of predictions by key, as little-endian i8
    calibrators: list[memoryview]


class Calibrators(Component):
    """The calibrator of each key, and how many predictions it made."""

    name = "calibrators"
    formats: ClassVar = {1: _SavedCalibrators}
    layout = ArrayLayout(ColumnLayout(Axis.KEYS), ListLayout(Axis.KEYS))

    def __init__(self, state: ProcessorState) -> None:
        self._calibration, self._keys = state.calibration, state.join.names.keys

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the calibrators, one after the other."""
        del slots
        yield header(ARRAY, 2)
        yield from encode(raw(self._calibration.made))
        calibrators = self._calibration.calibrators
        yield from encode_array(len(calibrators), calibrators.save())

    def _load(self, saved: _SavedCalibrators) -> None:
        require(len(saved.calibrators) <= len(self._keys), "keys")
        self._calibration.calibrators.load(saved.calibrators)
        made = column(saved.made, "<i8", "numbers of predictions", len(saved.calibrators))
        require(((made >= 0) & (made <= MAX_COUNT)).all(), "numbers of predictions")
        last = [self._calibration.calibrators.last(key) for key in range(len(made))]
        require((made > last).all(), "numbers of predictions")
        self._calibration.made = made


class Trackers(Component):
    """The tracker of each calibrator."""

    name = "tracker"
    formats: ClassVar = {1: list[bytes]}
    layout = ListLayout(Axis.KEYS)

    def __init__(self, state: ProcessorState) -> None:
        self._calibration = state.calibration

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the trackers, one after the other."""
        del slots
        tracked = self._calibration.calibrators.tracked
        return encode_array(len(tracked), (one.tracker.to_bytes() for one in tracked))

    def _load(self, saved: list[bytes]) -> None:
        tracked = self._calibration.calibrators.tracked
        require(len(saved) == len(tracked), "trackers")
        for calibrator, one in zip(tracked, saved, strict=True):
            calibrator.load_tracker(one)


class MonitorStates(Component):
    """The state of one of the monitors of each key; the first state makes the others, empty."""

    formats: ClassVar = {2: list[Any]}
    layout = ListLayout(Axis.KEYS)

    def __init__(self, state: ProcessorState, kind: type[Monitor], place: int) -> None:
        self._calibration, self._task = state.calibration, state.task
        self._kind, self._place = kind, place
        self.name = f"monitor.{kind.name}"
        self.missing = "empty" if place else "refuse"

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the state of the monitor of each key."""
        del slots
        monitors, at = self._calibration.monitors or [], self._place
        states = ((one.others[at - 1] if at else one).state() for one in monitors)
        return encode_array(len(monitors), states)

    def _load(self, saved: list[Any]) -> None:
        calibration, monitors = self._calibration, self._calibration.monitors or []
        require(len(saved) == len(calibration.calibrators), "monitors")
        if not self._place:
            for one in saved:
                calibration.add_monitor(self._task.monitor({self._kind.name: one}))
            return
        for key, (monitor, one) in enumerate(zip(monitors, saved, strict=True)):
            restored = self._kind.restore(one)
            monitor.others[self._place - 1] = calibration.watching(restored, key)


def monitor_states(state: ProcessorState) -> list[MonitorStates]:
    """Return the components of all monitors; none if they are switched off."""
    if (monitors := state.calibration.monitors) is None:
        return []
    kinds = map(type, (monitors[0] if monitors else state.task.monitor()).each().values())
    return [MonitorStates(state, kind, place) for place, kind in enumerate(kinds)]


class Predictions(Component):
    """Scores and predictions of the observations that wait, a row each."""

    name = "rows"
    formats: ClassVar = {1: memoryview}
    layout = ColumnLayout(Axis.OBSERVATIONS)

    def __init__(self, state: ProcessorState) -> None:
        self._calibration, self._join, self._task = state.calibration, state.join, state.task

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the rows in some slots, one behind the other."""
        rows = self._calibration.rows
        yield header(BINARY, rows.itemsize * rows.shape[1] * len(slots))
        for part in parts(len(slots)):
            yield raw(rows[slots[part]])

    def _load(self, saved: memoryview) -> None:
        waiting = self._join.store.count(PENDING)
        self._calibration.reserve(len(self._join.names.keys), waiting + 1)
        width, score = self._calibration.rows.shape[1], self._task.score_width
        rows = column(saved, "<f8", "rows", waiting * width).reshape(waiting, width)
        require(self._task.are_scores(rows[:, :score]), "scores that wait")
        predictions = rows[:, score:][:, : self._task.prediction_width]
        require(self._task.are_predictions(predictions), "predictions that wait")
        numbered = not self._task.stateful or _are_numbers(rows[:, -1])
        require(numbered, "numbers of predictions that wait")
        self._calibration.rows[1 : waiting + 1] = rows


def _are_numbers(given: NDArray[np.float64]) -> bool:
    """Return whether all are numbers of observations."""
    return bool(((given >= 0.0) & (given < LARGEST_TIME) & (given == np.floor(given))).all())


class Distributions(Component):
    """Predictive distributions of the observations that wait."""

    name = "distributions"
    formats: ClassVar = {1: SavedDistributions}
    layout = DistributionLayout()

    def __init__(self, state: ProcessorState, pending: PendingDistributions) -> None:
        self._store, self._pending = state.join.store, pending

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the distributions in some slots."""
        return self._pending.encode(slots.tolist())

    def _load(self, saved: SavedDistributions) -> None:
        waiting = self._store.count(PENDING)
        require(self._pending.load(saved) == waiting, "distributions")


class EProcesses(Component):
    """Tests of the predictions, and the numbers of the observations that wait."""

    name = "e_processes"
    formats: ClassVar = {2: SavedEProcesses}
    layout = ArrayLayout(ColumnLayout(Axis.OBSERVATIONS), ListLayout(Axis.KEYS))

    def __init__(self, state: ProcessorState, e_processes: KeyedEProcesses) -> None:
        self._store, self._calibration = state.join.store, state.calibration
        self._e_processes = e_processes

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the tests of each key, and the numbers in some slots."""
        return self._e_processes.save(slots)

    def _load(self, saved: SavedEProcesses) -> None:
        loaded = self._e_processes.load(saved, self._calibration.made)
        require(loaded == self._store.count(PENDING), "e-processes")


class Histories(Component):
    """The history of each key, which only pages and reports read."""

    name = "history"
    formats: ClassVar = {1: list[SavedHistory]}
    layout = ListLayout(Axis.KEYS)
    missing = "empty"
    derived = True

    def __init__(self, state: ProcessorState) -> None:
        self._histories, self._task = state.calibration.histories, state.task

    def save(self, slots: Integers) -> Iterator[Piece]:
        """Encode the histories, one after the other."""
        del slots
        return encode_array(len(self._histories), (one.save() for one in self._histories))

    def _load(self, saved: list[SavedHistory]) -> None:
        require(len(saved) == len(self._histories), "histories")
        monitors = self._task.monitor().each().keys()
        for history, one in zip(self._histories, saved, strict=True):
            history.load(one, monitors)
