"""One event at a time, without columns of one row.

A batch of one event takes hundreds of microseconds, nearly all of them in calls on short arrays.
Here a plain event is validated, joined, and predicted or learned by itself. Its monitoring waits:
monitors and tests add up row by row, so they take the steps of many events at once, before anything
reads or saves them, and before any batch.

Outputs and state are those of a batch of one event, to the bit. An event makes a batch if

- there is a learner, or models are retired,
- predictions are whole distributions, or have intervals of their own,
- it is not valid, its id is not ASCII, or it is the first of its model or segment,
- a label is assumed, or comes after an assumed one, or becomes unmatched.
"""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.stream.events import Label, Observation
from abers.stream.pending_store import LATE, NO_CLOCK
from abers.stream.validation import ExpiredObservations, JoinedSteps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers._core import PendingStore
    from abers.arrays import Integers
    from abers.stream.calibration_step import CalibrationStep
    from abers.stream.events import Event, Output
    from abers.stream.join import Join
    from abers.stream.outputs import Outputs
    from abers.stream.pending_store import Unknown
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import PredictionRows, Task
    from abers.stream.validation import JoinedBatch

    Known = tuple[int, int, Any]  # what `EventValidator.known` returns
    Taken = tuple[int, list[str], list[Unknown], int]  # what `PendingStore.take` returns
    Step = list[int]  # row of the event, slot, key, time, time of the label, clock

__all__ = ["EventNotes", "SingleEvents"]


class EventNotes:
    """The columns of a journal entry, an event at a time; see `abers.stream.JournalEntry`."""

    def __init__(self) -> None:
        self.labels = bytearray()
        self.ids: list[str] = []
        self.times: list[int] = []
        self.models: list[int] = []
        self.keys: list[int] = []
        self.scores: list[float] = []
        self.values: list[float] = []
        self.predictions: list[float] = []
        self.n_labels: list[int] = []

    def add(self, event: Event, model: int, key: int, given: Any) -> None:  # noqa: ANN401 - a score or a label
        """Note a valid event, before it is processed."""
        self.ids.append(event.id)
        self.times.append(event.time)
        self.models.append(model)
        if type(event) is Observation:
            self.labels.append(0)
            self.keys.append(key)
            self.scores += given
        else:
            self.labels.append(1)
            self.values.append(given)

    def predicted(self, row: Sequence[float], n_labels: int) -> None:
        """Note a prediction."""
        self.predictions += row
        self.n_labels.append(n_labels)

    def predicted_rows(self, issued: PredictionRows) -> None:
        """Note the predictions of a batch."""
        for row, n_labels in zip(issued.rows.tolist(), issued.n_labels.tolist(), strict=True):
            self.predicted(row, n_labels)


_MOST_WAITING = 256  # events: more of them take hardly less time each, and a longer pause
_STEP_COLUMNS = 6
_MOST_STEPS = 2  # of a plain event: a prediction, and a label that came before it


class SingleEvents:
    """Single events of a processor; their monitoring waits.

    Parameters
    ----------
    join, calibration, task, settings
        Those of the processor.
    outcomes
        Whether labels give outcomes.
    calibrate
        Runs the calibration step of a joined batch, and returns the predictions as rows too.
    """

    def __init__(  # noqa: PLR0913 - the parts of a processor
        self,
        join: Join,
        calibration: CalibrationStep,
        task: Task,
        settings: Settings,
        *,
        outcomes: bool,
        calibrate: Callable[[JoinedBatch], tuple[Outputs, PredictionRows]],
    ) -> None:
        self._join, self._calibration, self._task = join, calibration, task
        self._outcomes, self._calibrate = outcomes, calibrate
        plain = not (task.distributions or task.promised) and settings.retire_after is None
        self._serves = plain and join.learners is None
        self._aging = settings.max_age is not None or settings.half_life is not None
        self._width, self._monitored = task.score_width, settings.monitors
        self._prediction: Any = task.prediction
        self._outcome: Any = task.outcome
        self._columns, self._waiting = _EventColumns(), _WaitingSteps()
        self._count = 0  # events since the last flush
        self._segments: list[str] = []  # by key; the newest may be missing
        self._lock = RLock()  # another thread may read monitors, which take what waits then

    def process(self, event: Event) -> list[Output] | None:
        """Process a plain event; return None of one that is to make a batch, and change nothing."""
        known = self.known(event)
        return None if known is None else self.take(event, *known)

    def known(self, event: Event) -> Known | None:
        """Return what is known of a plain event; None of one that is to make a batch."""
        join = self._join
        return join.validator.known(event, join.names) if self._serves else None

    def take(
        self,
        event: Event,
        model: int,
        key: int,
        given: Any,  # noqa: ANN401 - a score or a label
        notes: EventNotes | None = None,
    ) -> list[Output]:
        """Process an event with what is known of it, and note what a journal entry has of it."""
        with self._lock:
            if notes is not None:
                notes.add(event, model, key, given)
            return self._process(event, model, key, given, notes)

    def flush(self) -> None:
        """Let monitors and tests take the steps that wait, and free the slots of these."""
        self._segments = []
        if self._count:  # else a copy of this process, with the lock as it was, must not wait
            with self._lock:
                self._flush()

    def _process(
        self,
        event: Event,
        model: int,
        key: int,
        given: Any,  # noqa: ANN401 - a score or a label
        notes: EventNotes | None,
    ) -> list[Output]:
        store, is_label = self._join.store, type(event) is Label
        value = given if is_label else self._join.awaiting_bytes
        taken = self._columns.take(store, event, model, key, value)
        count, assumed, unknown, gone = taken
        unusual = assumed or unknown
        steps = self._columns.steps(store, count) if count and not unusual else []
        if unusual or (steps and steps[0][0] == LATE):
            self._flush()
            whole, issued = self._calibrate(self._join.taken(event, taken))
            if notes is not None:
                notes.predicted_rows(issued)
            return whole.in_order()
        outputs: list[Output] = []
        dropped = _dropped(store, gone, self._count) if gone else None
        if dropped is not None:
            self._expire(dropped, last=0)
        for kind, step, label in steps:
            step[0] = self._count
            if kind == PREDICT and type(event) is Observation:
                outputs.append(self._predict(event, step, given, notes))
            else:
                outputs += self._learn(event, step, label)
        if dropped is not None:
            self._expire(dropped, last=1)
        self._join.count_one(is_label=is_label, steps=count)
        if self._monitored:
            self._waiting.add(steps)
            if dropped is not None:
                self._waiting.expire(dropped)
        self._count += 1
        if self._count == _MOST_WAITING:
            self._flush()
        return outputs

    def _flush(self) -> None:
        self._join.store.recycle()
        if self._waiting:
            keys = self._join.names.pairs
            self._calibration.reserve(len(keys), self._join.store.capacity())
            self._calibration.watch(*self._waiting.drained(), keys)
        self._count = 0  # at last: no other thread may begin a batch before

    def _predict(
        self, event: Observation, step: Step, score: Sequence[float], notes: EventNotes | None
    ) -> Output:
        _, slot, key, time, _, clock = step
        calibration = self._calibration
        if slot >= len(calibration.rows):
            keys = len(self._join.names.pairs)
            calibration.reserve(keys, self._join.store.capacity())
        number = int(calibration.made[key]) if self._task.stateful else None
        calibration.made[key] += 1
        calibrators, when = calibration.calibrators, _clipped(time, clock)
        found, n_labels = calibrators.step(key, PREDICT, score, 0.0, when, number, clock)
        if notes is not None:
            notes.predicted(found, n_labels)
        row = [*score, *found]
        calibration.rows[slot] = row if number is None else [*row, number]
        fields = (*self._task.field_values(row), n_labels, event.segment, event.extra)
        made: Output = self._prediction(event.id, time, event.model, *fields)
        return made

    def _expire(self, dropped: Integers, last: int) -> None:
        """Let calibrators expire what was dropped before or after the steps of the event."""
        if self._task.stateful:
            for _, slot, key, when in dropped.T.tolist():
                if when == last:
                    number = int(self._calibration.rows[slot, -1])
                    no_score = [0.0] * self._width
                    self._calibration.calibrators.step(key, EXPIRE, no_score, 0.0, 0, number)

    def _learn(self, event: Event, step: Step, label: float) -> list[Output]:
        _, slot, key, time, label_time, clock = step
        row = self._calibration.rows[slot].tolist()
        number = int(row.pop()) if self._task.stateful else None
        usable = clock != NO_CLOCK or not self._aging
        if usable or number is not None:  # as in `CalibrationStep.run`
            kind = LEARN if usable else EXPIRE
            when = _clipped(time, clock)
            step_one = self._calibration.calibrators.step
            step_one(key, kind, row[: self._width], label, when, number, clock)
        if not self._outcomes:
            return []
        segments = self._segments
        if key >= len(segments):
            segments = self._segments = [segment for _, segment in self._join.names.pairs]
        fields = (time, self._task.label(label), *self._task.field_values(row), segments[key])
        return [self._outcome(event.id, label_time, event.model, *fields)]


class _EventColumns:
    """Columns of one event, which a pending store reads, and of the steps that it writes."""

    def __init__(self) -> None:
        self._kinds, self._times = np.zeros(1, np.uint8), np.zeros(1, np.int64)
        self._models, self._keys = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
        self._values = np.zeros(1)
        self._steps = [
            (np.empty((_STEP_COLUMNS, count), np.int64), np.empty(count, np.uint8), np.empty(count))
            for count in range(1 + _MOST_STEPS)
        ]
        self._only = self._steps[1][0].ravel()  # a view

    def take(self, store: PendingStore, event: Event, model: int, key: int, value: float) -> Taken:
        """Let the store take an event, and return what it returns."""
        self._kinds[0] = type(event) is Label
        self._models[0], self._keys[0] = model, key
        self._times[0], self._values[0] = event.time, value
        return store.take(
            [event.id], self._kinds, self._models, self._keys, self._times, self._values
        )

    def steps(self, store: PendingStore, count: int) -> list[tuple[int, Step, float]]:
        """Return kind, columns and label of each step that the store made last."""
        columns, kinds, labels = self._steps[count]
        store.steps(columns, kinds, labels)
        if count == 1:  # as of nearly all events
            return [(kinds.item(), self._only.tolist(), labels.item())]
        return [*zip(kinds.tolist(), columns.T.tolist(), labels.tolist(), strict=True)]


class _WaitingSteps:
    """Steps of events that calibrators have run, and monitors have not taken."""

    def __init__(self) -> None:
        self._steps: list[tuple[int, Step, float]] = []
        self._expired: list[Integers] = []

    def __bool__(self) -> bool:
        """Return whether any wait."""
        return bool(self._steps or self._expired)

    def add(self, steps: Sequence[tuple[int, Step, float]]) -> None:
        """Add the steps of an event."""
        self._steps += steps

    def expire(self, dropped: Integers) -> None:
        """Add observations that were dropped."""
        self._expired.append(dropped)

    def drained(self) -> tuple[JoinedSteps, ExpiredObservations]:
        """Return all as columns, and keep none."""
        kinds, steps, labels = zip(*self._steps, strict=True) if self._steps else ((), (), ())
        table = np.array(steps, np.int64).reshape(-1, _STEP_COLUMNS)
        columns: list[Any] = [np.array(kinds, np.uint8), *np.ascontiguousarray(table.T)]
        columns += [np.array(labels), np.full(len(kinds), None)]
        expired = np.hstack(self._expired) if self._expired else np.empty((4, 0), np.int64)
        self._steps, self._expired = [], []
        return JoinedSteps(*columns), ExpiredObservations(*expired)


def _dropped(store: PendingStore, count: int, row: int) -> Integers:
    """Return row, slots, keys and places of what the store dropped last, at this row."""
    dropped = np.empty((4, count), np.int64)
    store.dropped(*dropped)
    dropped[0] = row
    return dropped


def _clipped(time: int, clock: int) -> int:
    """Return the time of an observation, or the clock of its model where that is less."""
    return time if clock == NO_CLOCK else min(time, clock)
