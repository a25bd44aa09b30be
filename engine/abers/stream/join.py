"""The join of observations and labels, before any calibrator runs.

The pending store joins the valid events of a batch. Nothing here depends on a prediction. With a
learner validation and join go event by event, because a score depends on the labels before it.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from abers.backends import core
from abers.stream.cells import objects
from abers.stream.columns import Events
from abers.stream.events import DeadLetter, Label
from abers.stream.learners import ModelLearners
from abers.stream.outputs import in_causal_order
from abers.stream.pending_store import ASSUMES, LATE, PENDING, Count, StoreColumns
from abers.stream.validation import (
    ENDS,
    EventValidator,
    ExpiredObservations,
    JoinedBatch,
    JoinedSteps,
    ModelNames,
    Retired,
)
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import PendingStore
    from abers.arrays import Bytes, Floats, Integers
    from abers.learners import Learner
    from abers.stream.events import Event
    from abers.stream.option import Front
    from abers.stream.pending_store import Unknown
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task
    from abers.stream.validation import Decided

    Numbers = NDArray[np.uint32]
    DeadLetters = Sequence[tuple[int, DeadLetter]]  # each with the row of the event that causes it

__all__ = ["COUNTERS", "LATER_COUNTERS", "REASONS", "Join"]

REASONS = (
    "bad-id",
    "bad-model",
    "bad-time",
    "time-in-future",
    "bad-score",
    "bad-features",
    "bad-label",
    "too-many-models",
    "learner-failed",
    "unknown-id",
    "too-long",
    "missing-field",
    "not-utf8",
)
"""Reasons of the dead letters of a processor."""

_STORE = tuple(one.name.lower() for one in Count)
COUNTERS = (
    *("observations", "labels_in", *_STORE[:2], "unlearned", "retired", *_STORE[2:]),
    *(f"dead:{reason}" for reason in REASONS),
)
"""Names of all counters; `abers.stream.accounts` says how they add up."""
LATER_COUNTERS = ("dead:missing-field", "dead:not-utf8")
"""The last of them, written once they count: before there were any, none was."""

_LATE_DELAYS = 1_000  # late labels with known delays


class Join:
    """Names, pending store and learners.

    Attributes
    ----------
    names
        Models, and pairs of model and segment, by their numbers.
    validator
        Validates events.
    store
        Observations and labels that wait, and ids that are finished.
    learners
        The learners; None if observations bring their scores.
    late_delays
        How long after its observation each of the last late labels came; no part of the state.
    """

    def __init__(
        self, settings: Settings, task: Task, learner: Learner | None, front: Front = "python"
    ) -> None:
        self._task, self.names = task, ModelNames()
        self.awaiting_bytes = task.awaiting_bytes()
        learns = learner is not None or settings.learner is not None
        self.learners = ModelLearners(settings, task, learner) if learns else None
        score = None if self.learners is None else self.learners.score
        self.validator = EventValidator(settings, task, score, front)
        memory = settings.label_timeout if settings.dedup_ttl is None else settings.dedup_ttl
        self._limits = (
            settings.allowed_lateness,
            settings.label_timeout,
            memory,
            settings.jump,
            settings.max_pending,
            settings.max_early,
            settings.dedup_max_ids,
            settings.max_bytes,
            None if settings.unlabelled is None else task.value(settings.unlabelled),
        )
        self.store = self.empty_store()
        self._counters = dict.fromkeys(COUNTERS, 0)
        self.late_delays: deque[int] = deque(maxlen=_LATE_DELAYS)

    def empty_store(self) -> PendingStore:
        """Return an empty pending store."""
        store: PendingStore = core.PendingStore(*self._limits)
        return store

    @property
    def counters(self) -> dict[str, int]:
        """Counts of events by kind and result."""
        return self._counters | dict(zip(_STORE, self.store.counts, strict=True))

    @counters.setter
    def counters(self, counters: dict[str, int]) -> None:
        self._counters.update(counters)
        self.store.counts = [counters[name] for name in _STORE]

    def take(self, decided: Decided, retired: DeadLetters) -> JoinedBatch:
        """Join a batch; dead letters of models that were retired before it come first."""
        self.names.add(decided.new_models, decided.new_keys)
        self.store.recycle()
        joined = self._join(decided)
        dead = [*retired, *joined.dead_letters]
        if self.learners is not None:
            dead += self._learned_again(joined, self.learners)
        return self._finished(joined, dead)

    def take_scored(self, events: Events, learners: ModelLearners, retired: Retired) -> JoinedBatch:
        """Decide and join events one after another, and let the learners learn each."""
        self.store.recycle()
        joined, unknown, dead = self._one_by_one(events, learners)
        self.names.add(joined.decided.new_models, joined.decided.new_keys)
        unmatched = [(row, self.unmatched(label)) for row, label in unknown]
        decided = joined.decided._replace(retired=retired.numbers)
        dead = [*retired.dead_letters, *unmatched, *dead]
        return self._finished(joined._replace(decided=decided), dead)

    def reset_model(self, model: str) -> None:
        """Reset the clock of a model, and its learner unless that is shared."""
        self.store.restart(self.names.models[model])
        if self.learners is not None:
            self.learners.by_model.pop(model, None)

    def retire(self, models: Sequence[int], store: PendingStore) -> None:
        """Drop models, and renumber the others; the new store is without them."""
        kept = self.names.without({*models})
        if self.learners is not None:
            for name in self.names.models.keys() - kept.models.keys():
                self.learners.by_model.pop(name, None)
        store.notes_unsettled = self.store.notes_unsettled
        self.store, self.names = store, kept
        self._counters["retired"] += len(models)

    def unmatched(self, label: Unknown) -> DeadLetter:
        """Return the dead letter of a label without its observation."""
        _, id_, model, time, value = label
        name = self.names.by_number[model]
        detail = f"no observation with id {shown(id_)} came; see that ids and models of both agree"
        event = Label(id_, time, name, self._task.label(value))
        return DeadLetter("unknown-id", detail, event, None)

    def _join(self, decided: Decided) -> JoinedBatch:
        """Join events that have their scores."""
        ids = decided.events.ids.tolist()
        columns = (decided.kinds, decided.models, decided.keys, decided.times, decided.values)
        return self._joined(decided, self._enter(ids, *columns))

    def _joined(
        self,
        decided: Decided,
        entered: tuple[JoinedSteps, JoinedSteps, list[Unknown], ExpiredObservations],
    ) -> JoinedBatch:
        steps, late, unknown, expired = entered
        dead = [(int(decided.rows[label[0]]), self.unmatched(label)) for label in unknown]
        return JoinedBatch(decided, steps, dead, expired, late)

    def waits(self) -> Events:
        """Return the ends of all waits for labels, oldest first, at the times of observations."""
        columns = StoreColumns.empty(self.store.count(PENDING))
        ids = [one for part in columns.ids_of(self.store, PENDING) for one in part]
        every, names = np.ones(len(ids), bool), objects(self.names.by_number)
        segments = objects([""] * len(ids))
        return Events(
            every, objects(ids), columns.times, names[columns.models], segments, ended=every
        )

    # One event, which `EventValidator.known` knows, and the store has taken

    def count_one(self, *, is_label: bool, steps: int) -> None:
        """Count an event that makes so many steps; it has no dead letter."""
        self._counters["labels_in" if is_label else "observations"] += 1
        if is_label and not steps:
            self.late_delays += self.store.late_delays()

    def taken(self, event: Event, taken: tuple[int, list[str], list[Unknown], int]) -> JoinedBatch:
        """Join an event as a batch, from what the store returned of it."""
        decided = self.validator.validate(Events.of([event]), self.names)
        joined = self._joined(decided, self._entered(taken))
        return self._finished(joined, joined.dead_letters)

    # With learners

    def _one_by_one(
        self, events: Events, learners: ModelLearners
    ) -> tuple[JoinedBatch, list[tuple[int, Unknown]], list[tuple[int, DeadLetter]]]:
        """Return a batch, its unmatched labels by row, and what learners failed to learn."""
        steps: list[JoinedSteps] = []
        late: list[JoinedSteps] = []
        expired: list[ExpiredObservations] = []
        unmatched: list[tuple[int, Unknown]] = []
        dead: list[tuple[int, DeadLetter]] = []
        kinds = events.kinds

        def accept(row: int, event: Event, model: int, key: int, value: float) -> None:
            """Join a valid event, and pass it to the learners."""
            step, corrected, unknown, gone = self._enter(
                [event.id],
                kinds[row : row + 1],
                np.array([model], np.uint32),
                np.array([key], np.uint32),
                np.array([event.time], np.int64),
                np.array([value]),
            )
            number = len(steps)  # of the valid event
            step.rows[:] = corrected.rows[:] = gone.rows[:] = number
            steps.append(step)
            late.append(corrected)
            expired.append(gone)
            unmatched.extend((row, label) for label in unknown)
            dead.extend(self._learned(learners, row, event, step))

        joined = JoinedBatch(
            self.validator.validate(events, self.names, accept),
            JoinedSteps(*_concatenated(steps, len(JoinedSteps._fields))),
            [],
            ExpiredObservations(*_concatenated(expired, len(ExpiredObservations._fields))),
            JoinedSteps(*_concatenated(late, len(JoinedSteps._fields))),
        )
        return joined, unmatched, dead

    def _learned_again(
        self, joined: JoinedBatch, learners: ModelLearners
    ) -> Iterator[tuple[int, DeadLetter]]:
        """Let learners learn what a batch settled, in the order in which they did."""
        decided, steps = joined.decided, joined.steps
        ends = np.searchsorted(steps.rows, np.arange(len(decided.rows) + 1)).tolist()
        for event, row, (start, end) in zip(
            decided.events, decided.rows.tolist(), pairwise(ends), strict=True
        ):
            yield from self._learned(learners, row, event, steps.take(slice(start, end)))

    def _learned(
        self, learners: ModelLearners, row: int, event: Event, steps: JoinedSteps
    ) -> Iterator[tuple[int, DeadLetter]]:
        """Let learners learn what an event settled, and count what they fail to learn."""
        for failed in learners.learn(row, event, steps, self.store.capacity()):
            self._counters["unlearned"] += 1
            yield failed

    # With and without learners

    def _enter(  # noqa: PLR0913, PLR0917 - a column each
        self,
        ids: list[str],
        kinds: Bytes,
        models: Numbers,
        keys: Numbers,
        times: Integers,
        values: Floats,
    ) -> tuple[JoinedSteps, JoinedSteps, list[Unknown], ExpiredObservations]:
        """Enter events into the pending store.

        Return the steps, the late labels, the unmatched labels, and what expires.
        """
        if self.awaiting_bytes:
            observes = kinds == 0
            values = np.where(observes, values + self.awaiting_bytes, values)
        return self._entered(self.store.take(ids, kinds, models, keys, times, values))

    def _entered(
        self, taken: tuple[int, list[str], list[Unknown], int]
    ) -> tuple[JoinedSteps, JoinedSteps, list[Unknown], ExpiredObservations]:
        """Read what the store returned of events that it took last; see `_enter`."""
        count, assumed, unknown, gone = taken
        self.late_delays += self.store.late_delays()
        columns, learned = np.empty((6, count), np.int64), np.empty(count)
        learns, names = np.empty(count, np.uint8), np.full(count, None)
        self.store.steps(columns, learns, learned)
        assumes, late = learns == ASSUMES, learns == LATE
        names[assumes], learns[assumes] = assumed, 1
        joined: list[Any] = [learns, *columns, learned, names]
        steps = JoinedSteps(*joined)
        expired = ExpiredObservations(*np.empty((4, gone), np.int64))
        self.store.dropped(*expired)
        return steps.take(~late) if late.any() else steps, steps.take(late), unknown, expired

    def _finished(self, joined: JoinedBatch, dead: DeadLetters) -> JoinedBatch:
        """Drop what expired, count the results, and return the batch with dead letters in order."""
        if self.learners is not None:
            self.learners.drop(joined.expired.slots.tolist())
        decided, counters = joined.decided, self._counters
        n_labels = int(decided.labels.sum())
        counters["labels_in"] += n_labels - int((decided.kinds == ENDS).sum())
        counters["observations"] += len(decided.labels) - n_labels
        for reason in (*(one.reason for _, one in dead), *(why for _, why in decided.rejected)):
            counters[f"dead:{reason}"] += 1
        dead = [*dead, *((one.row or 0, one) for one in decided.dead_letters)]
        return joined._replace(dead_letters=in_causal_order(dead))


def _concatenated(parts: Sequence[tuple[Any, ...]], width: int) -> Iterator[NDArray[Any]]:
    if not parts:
        return (np.empty(0, np.int64) for _ in range(width))
    return (np.concatenate(column) for column in zip(*parts, strict=True))
