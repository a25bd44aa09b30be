"""The calibration step of a batch: every calibrator runs its steps.

A prediction is stored with its score when it is made. When the label settles it, both are read from
there, so nothing is computed twice.

Settled predictions of a batch, added to the monitors and histories of their keys. Where all
monitors of a key are of the core, one native call takes the rows of all keys.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from abers.arrays import EXPIRE
from abers.backends import core
from abers.monitoring import BinaryMonitor, ProtectionMonitor, Totals
from abers.serialization import require
from abers.stream.alarms import KeyedEProcesses, ModelHistory, alarms
from abers.stream.calibrators import by_key, calibrators_of, grouped
from abers.stream.cells import objects
from abers.stream.outputs import Outputs, SettledBatch
from abers.stream.pending_store import LATE, NO_CLOCK, PendingDistributions, distribution_scores
from abers.stream.tasks.base import CalibrationSteps, PredictionRows, SettledRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from abers.arrays import Floats, Integers
    from abers.monitoring import Monitor, ScoredRows, TaskMonitor
    from abers.stream.columns import Events
    from abers.stream.events import Alarm
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task
    from abers.stream.validation import ExpiredObservations, JoinedBatch, JoinedSteps

    Mask = NDArray[np.bool_]

__all__ = ["CalibrationStep", "add_settled"]


def add_settled(
    monitors: Sequence[TaskMonitor],
    histories: Sequence[ModelHistory],
    keys: Integers,
    scored: ScoredRows,
    times: Integers,
) -> list[int]:
    """Add predictions, each of the key in its row, to monitors and histories by key.

    Return the keys with a window that ended, ascending.
    """
    if len(keys) and scored.widths is not None and _is_native(monitors[keys[0]]):
        return _add_natively(monitors, histories, keys, scored, times)
    return [
        key
        for key, rows in by_key(keys)
        if histories[key].update(scored.take(rows), times[rows], monitors[key])
    ]


def _is_native(monitor: TaskMonitor) -> bool:
    """Return whether a monitor and all others of its key are of the core."""
    others = all(type(one) is ProtectionMonitor for one in monitor.others)
    return type(monitor) is BinaryMonitor and others


def _add_natively(
    monitors: Sequence[Any],
    histories: Sequence[ModelHistory],
    keys: Integers,
    scored: ScoredRows,
    times: Integers,
) -> list[int]:
    present, order, offsets = grouped(keys)
    watched = [histories[key].watched(monitors[key]) for key in present]
    ended = dict[int, None]()
    for at, labels, first, last, scores, outside in core.score_rows(
        watched, order, offsets, *_columns(scored, times)
    ):
        totals: dict[str, Any] = {BinaryMonitor.name: scores}
        if outside is not None:
            totals[ProtectionMonitor.name] = outside
        histories[present[at]].windowed.note(Totals(labels, first, last, totals))
        ended[present[at]] = None
    return [*ended]


def _columns(scored: ScoredRows, times: Integers) -> tuple[Any, ...]:
    """Return the columns that the core reads."""
    views: Any = scored.forecasts
    raw = views.get("raw")
    given = (
        scored.labels,
        views["calibrated"].probabilities,
        None if raw is None else raw.probabilities,
        scored.widths,
        None if scored.outside is None else scored.outside.view(np.uint8),
        times,
    )
    return tuple(None if one is None else np.ascontiguousarray(one) for one in given)


M = TypeVar("M", bound="Monitor")

_SPARE = 8  # rows grow by one part in so many: doubling would waste half of a million


class CalibrationStep:
    """Calibrators and monitors, one of each for every key, and the predictions that wait.

    Attributes
    ----------
    rows
        Scores and predictions by slot; behind them their numbers, if the task is stateful.
    pending
        Predictive distributions by slot; None if the task has none.
    calibrators, monitors
        By key; monitors are None if they are switched off.
    histories
        By key, of the predictions with labels; empty without monitors.
    e_processes
        Tests of the predictions, or None.
    made
        Number of predictions by key, so the number of the next prediction.
    """

    def __init__(self, task: Task, settings: Settings) -> None:
        self._task = task
        self._width = task.score_width + task.prediction_width
        self.rows = np.empty((1, self._width + task.stateful))
        self.pending = PendingDistributions() if task.distributions else None
        self.calibrators = calibrators_of(task)
        self.monitors: list[TaskMonitor] | None = [] if settings.monitors else None
        self.histories: list[ModelHistory] = []
        self.made = np.zeros(0, np.int64)
        self._assuming = settings.unlabelled is not None
        self._levels = settings.quantiles if settings.task == "regression" else ()
        self._aging = settings.max_age is not None or settings.half_life is not None
        tested = settings.monitors and settings.tests
        make = task.e_process
        self.e_processes = KeyedEProcesses(make, settings.max_pending) if tested else None

    @property
    def labels(self) -> int:
        """Number of labels that all calibrators hold."""
        return sum(map(self.calibrators.size, range(len(self.calibrators))))

    def reserve(self, keys: int, slots: int) -> None:
        """Reserve so many keys and slots."""
        if (more := keys - len(self.made)) > 0:
            self.made = np.append(self.made, np.zeros(more, np.int64))
        if (more := keys - len(self.calibrators)) > 0:
            self.calibrators.add(more)
            for _ in range(more if self.monitors is not None else 0):
                self.add_monitor(self._task.monitor())
        if self.e_processes is not None and self.monitors is not None:
            for monitor in self.monitors[len(self.e_processes.by_key) :]:
                monitor.e_processes = [self.e_processes.add()]
            self.e_processes.reserve(slots)
        if slots > len(self.rows):
            shape = (slots + slots // _SPARE, self.rows.shape[1])
            self.rows.resize(shape, refcheck=False)
        if self.pending is not None:
            self.pending.reserve(slots)

    def add_monitor(self, monitor: TaskMonitor) -> None:
        """Add the monitor of the first calibrator without one, and an empty history."""
        if self.monitors is not None:
            self.monitors.append(self.watching(monitor, len(self.monitors)))
            self.histories.append(self._history())

    def _history(self) -> ModelHistory:
        return ModelHistory(self._task, self._levels)

    def watching(self, monitor: M, key: int) -> M:
        """Let a monitor read the mixture and the tracker of a key; return the monitor."""
        if (mixture := self.calibrators.mixture(key)) is not None:
            monitor.watch(mixture)
        if (tracker := self.calibrators.tracker(key)) is not None:
            monitor.watch_tracker(tracker)
        return monitor

    def reset(self, key: int) -> None:
        """Reset a calibrator, its monitor and its tests."""
        self.calibrators.reset(key)
        if self.monitors is not None:
            self.monitors[key] = self.watching(self._task.monitor(), key)
            self.histories[key] = self._history()
            if self.e_processes is not None:
                self.monitors[key].e_processes = [self.e_processes.renew(key)]

    def keep(self, keys: Integers, slots: Integers) -> None:
        """Keep only these keys and slots, in their order; slots begin with 1."""
        self.calibrators.keep(keys.tolist())
        self.made = self.made[keys]
        if self.monitors is not None:
            self.monitors = [self.monitors[key] for key in keys.tolist()]
            self.histories = [self.histories[key] for key in keys.tolist()]
        if self.e_processes is not None:
            self.e_processes.keep(keys, slots)
        kept = self.rows[slots]
        self.rows = np.empty((len(slots) + 1, self.rows.shape[1]))
        self.rows[1:] = kept
        if self.pending is not None:
            self.pending.keep(slots.tolist())

    def run(
        self,
        joined: JoinedBatch,
        keys: Sequence[tuple[str, str]],
        *,
        outcomes: bool,
    ) -> tuple[Outputs, PredictionRows]:
        """Run the steps of a batch, and return the outputs, and the predictions as rows.

        Predictions that were issued before are served as they were.

        Parameters
        ----------
        joined
            The batch.
        keys
            Model and segment of each calibrator.
        outcomes
            Whether labels give outcomes.
        """
        valid, steps, dead, expired, late = joined
        known = valid.issued
        width, slots, events = self._task.score_width, steps.slots, valid.events.heads()
        learns = steps.learns == 1
        predicts = ~learns
        issued, causes = slots[predicts], steps.rows[predicts]
        self.rows[issued, :width] = valid.scores[causes]
        times, _ = _clipped(steps)
        run = CalibrationSteps(steps.learns, self.rows[slots, :width], steps.values, times)
        # Before the clock is known, a wrong time could make a calibrator forget all that comes.
        usable = predicts | (steps.clocks != NO_CLOCK) | (not self._aging)
        made = steps.keys[predicts]
        self.made += np.bincount(made, minlength=len(self.made))
        if self._task.stateful:
            self.rows[issued, -1] = self._last_numbers(made)
            predicted = self._run(*self._numbered(run, joined, predicts, usable))
        elif known is None:
            predicted = self._run(run, steps.keys, predicts, usable)
        else:
            require(len(known.n_labels) == len(issued), "predictions")
            predicted = known
            self._learn(run, steps.keys, learns & usable)
        self.rows[issued, width : self._width] = predicted.rows
        whole = predicted._replace(rows=self._at(issued))
        predictions = self._task.predictions(events.take(causes), whole)
        outputs = Outputs(
            predictions, None, dead, valid.rows[causes], valid.rows[steps.rows[learns]]
        )
        distributions = None
        if self.pending is not None:
            if predicted.bands is not None:
                self.pending.store(issued.tolist(), predicted.bands)
            distributions = self.pending.settle(slots[learns].tolist())
            self.pending.drop(expired.slots.tolist())
        if self.monitors is None and not outcomes:
            return outputs, predicted
        labelled = steps.take(np.flatnonzero(learns))
        settled = self._at(labelled.slots)
        if distributions is not None:
            settled = np.hstack((settled, distribution_scores(distributions, labelled.values)))
        batch, raised = self._watch(steps, expired, labelled, settled, keys)
        by_row = [(int(valid.rows[row]), alarm) for row, alarm in raised]
        outputs = outputs._replace(settled_batch=batch, alarms=by_row)
        if outcomes:
            if len(late.rows):  # no task with distributions has any
                labelled = labelled.merged(late)
                settled = self._at(labelled.slots)
                outputs = outputs._replace(settled=valid.rows[labelled.rows])
            rows = self._settled(events, keys, labelled, settled)
            outputs = outputs._replace(outcomes=self._task.outcomes(rows))
        return outputs, predicted

    def _at(self, slots: Integers) -> Floats:
        """Return the scores and predictions in some slots."""
        return self.rows[slots][:, : self._width]

    def _last_numbers(self, keys: Integers) -> Integers:
        """Return the numbers of the last predictions, which are counted, by their keys."""
        if not len(keys):
            return np.empty(0, np.int64)
        order = np.argsort(keys, kind="stable")
        ordered, ranks = keys[order], np.arange(len(keys))
        begins = np.append(True, ordered[1:] != ordered[:-1])
        firsts = np.maximum.accumulate(np.where(begins, ranks, 0))
        before = self.made - np.bincount(keys, minlength=len(self.made))
        numbers = np.empty(len(keys), np.int64)
        numbers[order] = before[ordered] + ranks - firsts
        return numbers

    def watch(
        self,
        steps: JoinedSteps,
        expired: ExpiredObservations,
        keys: Sequence[tuple[str, str]],
    ) -> None:
        """Monitor and test steps that calibrators have run, with slots that are not used again.

        Predictions have no distributions.
        """
        labelled = steps.take(np.flatnonzero(steps.learns))
        self._watch(steps, expired, labelled, self._at(labelled.slots), keys)

    def _watch(
        self,
        steps: JoinedSteps,
        expired: ExpiredObservations,
        labelled: JoinedSteps,
        settled: Floats,
        keys: Sequence[tuple[str, str]],
    ) -> tuple[SettledBatch, list[tuple[int, Alarm]]]:
        """Monitor and test the steps of a batch; return what settled, and the alarms by row."""
        scored = self._task.scored_rows(settled, labelled.values)
        batch = SettledBatch(labelled.keys, *_clipped(labelled), scored)
        completed: list[int] = []
        if self.monitors is not None:
            of = self.monitors, self.histories
            completed = add_settled(*of, labelled.keys, scored, batch.times)
        raised = self._alarms(steps, expired, scored, keys)
        self._note(completed, [alarm for _, alarm in raised], keys)
        return batch, raised

    def _settled(
        self,
        events: Events,
        keys: Sequence[tuple[str, str]],
        labelled: JoinedSteps,
        rows: Floats,
    ) -> SettledRows:
        """Return predictions, in rows as they were issued, with their labels."""
        of = events.take(labelled.rows)
        assumed = None
        if self._assuming:
            assumed = np.not_equal(labelled.assumed, None).astype(bool)
            of = replace(of, ids=np.where(assumed, labelled.assumed, of.ids))
        segments = objects([segment for _, segment in keys])[labelled.keys]
        return SettledRows(
            of,
            segments,
            labelled.label_times,
            labelled.times,
            rows,
            labelled.values,
            assumed,
            None if assumed is None else labelled.learns == LATE,
        )

    def _numbered(
        self, run: CalibrationSteps, joined: JoinedBatch, predicts: Mask, usable: Mask
    ) -> tuple[CalibrationSteps, Integers, Mask, Mask]:
        """Return the steps with numbers, and what expires at an event before or after its own.

        A label that cannot be used expires its observation.
        """
        steps, expired = joined.steps, joined.expired
        gone = len(expired.slots)
        events = np.concatenate((expired.rows, steps.rows))
        order: Any = slice(None)  # nearly always: sorting takes longer than all the rest
        if gone:
            last = np.append(2 * expired.last, np.ones(len(steps.slots), np.int64))
            order = np.lexsort((last, events))
        slots = np.concatenate((expired.slots, steps.slots))[order]
        kinds = np.where(usable, run.kinds, EXPIRE)
        whole = CalibrationSteps(
            np.concatenate((np.full(gone, EXPIRE), kinds)).astype(np.uint8)[order],
            self.rows[slots, : self._task.score_width],
            np.concatenate((np.zeros(gone), run.values))[order],
            np.concatenate((np.zeros(gone, np.int64), run.times))[order],
            self.rows[slots, -1].astype(np.int64),
            np.concatenate((np.full(gone, NO_CLOCK), steps.clocks))[order],
        )
        keys = np.concatenate((expired.keys, steps.keys))[order]
        wanted = np.concatenate((np.zeros(gone, bool), predicts))[order]
        return whole, keys, wanted, np.ones(len(keys), bool)

    def _run(
        self, steps: CalibrationSteps, keys: Integers, wanted: Mask, usable: Mask
    ) -> PredictionRows:
        """Run the usable steps of each calibrator, and return the rows of those `wanted`."""
        if not usable.all():
            steps, keys, wanted = steps.take(usable), keys[usable], wanted[usable]
        return self.calibrators.run(keys, steps).take(wanted)

    def _learn(self, steps: CalibrationSteps, keys: Integers, learns: Mask) -> None:
        """Run only the labels: predictions do not change a calibrator."""
        self.calibrators.run(keys[learns], steps.take(learns))

    def _note(
        self,
        completed: Sequence[int],
        raised: Sequence[Alarm],
        keys: Sequence[tuple[str, str]],
    ) -> None:
        """Add the alarms of a batch, and the evidence at ends of windows, to the histories."""
        if self.monitors is not None:
            noted: dict[int, list[Alarm]] = {key: [] for key in completed}
            for one in raised:  # by an observation that expires also where no label came
                noted.setdefault(keys.index((one.model, one.segment)), []).append(one)
            ended = {*completed}
            for key, mine in noted.items():
                self.histories[key].note(self.monitors[key], mine, completed=key in ended)

    def _alarms(
        self,
        steps: JoinedSteps,
        expired: ExpiredObservations,
        scored: ScoredRows,
        keys: Sequence[tuple[str, str]],
    ) -> list[tuple[int, Alarm]]:
        """Test the predictions, and return the alarms that this raises by row of the event."""
        if self.e_processes is None:
            return []
        issued = self._at(steps.slots[steps.learns == 0])
        forecasts, outcomes = self._task.bets(issued, scored)
        numbers = self._last_numbers(steps.keys[steps.learns == 0])
        opened = self.e_processes.run(steps, expired, numbers, forecasts, outcomes)
        return alarms(opened, keys, self.e_processes.by_key)


def _clipped(steps: JoinedSteps) -> tuple[Integers, Integers]:
    """Return the times of observations, and the delays of labels.

    A time later than the clock of its model counts as the clock.
    """
    clocks = np.where(steps.clocks == NO_CLOCK, np.iinfo(np.int64).max, steps.clocks)
    times = np.minimum(steps.times, clocks)
    return times, np.minimum(steps.label_times, clocks) - times
