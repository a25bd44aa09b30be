"""The parts of a saved state that the calibration step has: calibrators, monitors and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np

from abers.arrays import raw
from abers.serialization import MAX_COUNT, column, require
from abers.stream.alarms import KeyedEProcesses, SavedEProcesses
from abers.stream.component import Component
from abers.stream.history import SavedHistory
from abers.stream.layouts import ArrayLayout, Axis, ColumnLayout, ListLayout
from abers.stream.msgpack_encoder import ARRAY, BINARY, encode, encode_array, header
from abers.stream.pending_distributions import (
    DistributionLayout,
    PendingDistributions,
    SavedDistributions,
)
from abers.stream.pending_store import PENDING
from abers.stream.saved_store import parts
from abers.stream.settings import LARGEST_TIME

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.monitoring import Monitor
    from abers.serialization import Piece
    from abers.stream.state import ProcessorState

__all__ = [
    "Calibrators",
    "Distributions",
    "EProcesses",
    "Histories",
    "MonitorStates",
    "Predictions",
    "Trackers",
    "monitor_states",
]


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
