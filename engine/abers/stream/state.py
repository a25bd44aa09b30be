"""The state of a processor, and its step: a batch is decided, and then applied.

Retirement of models without events for long, so that there can be new models. A batch retires
models only before it begins, and only if there are `max_models`. All of a retired model is
forgotten, as if it had never come. The clocks decide which models those are, and only clocks of
models with many events count, so junk does not decide what is late.

`decide` changes nothing, and reads every limit, clock and learner. `apply_decided` changes the
state in place, and reads none of them. So what was decided once can be applied again, from a
journal, and gives the same state on any release and machine.
"""

from __future__ import annotations

from itertools import compress, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from abers.exceptions import ParameterError, StateError
from abers.stream.calibration_step import CalibrationStep
from abers.stream.join import Join
from abers.stream.pending_store import (
    ASSUMED,
    EARLY,
    FINISHED,
    NO_CLOCK,
    PENDING,
    QUORUM,
    STORES,
    Count,
    StoreColumns,
    parts,
)
from abers.stream.single_event import SingleEvents
from abers.stream.tasks import make_task
from abers.stream.validation import Retired
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.learners import Learner
    from abers.stream.columns import Events
    from abers.stream.events import DeadLetter
    from abers.stream.option import Front
    from abers.stream.outputs import Outputs
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import PredictionRows, Task
    from abers.stream.validation import Decided, JoinedBatch

__all__ = [
    "KnownIds",
    "ProcessorState",
    "apply_decided",
    "decide",
    "due",
    "known_count",
    "known_ids",
    "retire",
    "step",
]


class KnownIds(NamedTuple):
    """Some ids of one kind.

    Attributes
    ----------
    names
        Model and id of each.
    kind
        `PENDING`, `EARLY` or `FINISHED`.
    labels
        Of an early label its value, of a finished id whether its label came, else None.
    """

    names: list[tuple[str, str]]
    kind: int
    labels: Iterable[Any]


def known_count(join: Join) -> int:
    """Return the number of ids."""
    return sum(map(join.store.count, STORES))


def known_ids(join: Join, task: Task) -> Iterator[KnownIds]:
    """Yield all ids, some at a time; they take time in proportion to their number."""
    models = join.names.by_number
    for kind in STORES:
        columns = StoreColumns.empty(join.store.count(kind))
        blocks = zip(parts(len(columns.slots)), columns.ids_of(join.store, kind), strict=True)
        for part, ids in blocks:
            of = map(models.__getitem__, columns.models[part].tolist())
            labels: Iterable[Any] = repeat(None)
            if kind == EARLY:
                labels = map(task.label, columns.values[part].tolist())
            elif kind == FINISHED:
                labels = map(bool, columns.keys[part].tolist())
            yield KnownIds([*zip(of, ids, strict=True)], kind, labels)


class ProcessorState:
    """All that a processor remembers; see `Processor` for its parameters.

    Attributes
    ----------
    task
        The task that the settings name.
    join
        Joins observations and labels.
    calibration
        Calibrators, monitors, and the predictions that wait.
    single
        Takes single events.
    broken
        Whether a journal entry could not be applied half-way, so that nothing can go on.
    """

    def __init__(
        self,
        settings: Settings,
        learner: Learner | None = None,
        *,
        outcomes: bool = True,
        front: Front = "python",
    ) -> None:
        self.settings, self.outcomes = settings, outcomes
        self.task = make_task(settings)
        self.join = Join(settings, self.task, learner, front)
        self.calibration = CalibrationStep(self.task, settings)
        self.single = SingleEvents(
            self.join,
            self.calibration,
            self.task,
            settings,
            outcomes=outcomes,
            calibrate=self.calibrate,
        )
        self.broken = False

    def sound(self) -> Self:
        """Return the state with all events taken, or raise a StateError if it is broken."""
        self.single.flush()
        if self.broken:
            msg = (
                "the processor could not apply a journal entry, and its state is broken; throw it "
                "away, and restore one from a snapshot"
            )
            raise StateError(msg)
        return self

    def reset_model(self, model: str) -> None:
        """Forget all that was learned of a model; a ParameterError if it is unknown."""
        of = [number for number, key in enumerate(self.join.names.keys) if key[0] == model]
        if not of:
            msg = f"model {shown(model)} is not known; no observation was of it"
            raise ParameterError(msg)
        for number in of:
            self.calibration.reset(number)
        self.join.reset_model(model)

    def watched(self) -> CalibrationStep:
        """Return calibrators and monitors, which have taken all events."""
        self.single.flush()
        return self.calibration

    def calibrate(self, joined: JoinedBatch) -> tuple[Outputs, PredictionRows]:
        """Run the calibration step of a batch; return the outputs, and predictions as rows."""
        names = self.join.names
        self.calibration.reserve(len(names.pairs), self.join.store.capacity())
        return self.calibration.run(joined, names.pairs, outcomes=self.outcomes)


_MIN_CLOCK_EVENTS = 100  # events of a model before its clock counts


def due(join: Join, settings: Settings) -> list[int]:
    """Return the models without events for `retire_after`, if there are `max_models`."""
    after = settings.retire_after
    most = max(len(join.names.models), len(join.names.keys))
    if after is None or most < settings.max_models:
        return []
    clocks = join.store.clocks()
    often = [time for time, known, events, *_ in clocks if known and events >= _MIN_CLOCK_EVENTS]
    if not often:
        return []
    latest = sorted(often, reverse=True)[:QUORUM][-1]
    return [
        number
        for number, (time, *_) in enumerate(clocks)
        if time != NO_CLOCK and time + after < latest
    ]


def retire(state: ProcessorState, models: Sequence[int]) -> Retired:
    """Forget models, given by ascending numbers, between two batches; renumber the others."""
    if not models:
        return Retired([], [], [])
    join = state.join
    names = join.names.by_number
    stays = np.ones(len(names), bool)
    stays[[*models]] = False
    keys = np.flatnonzero([stays[join.names.models[model]] for model, _ in join.names.pairs])
    moved = _MovedStore(join, stays, keys)
    state.calibration.keep(keys, moved.slots)
    if join.learners is not None:
        join.learners.keep(moved.slots.tolist())
    join.retire(models, moved.store)
    return Retired([*models], [names[number] for number in models], moved.dead_letters)


class _MovedStore:
    """A copy of a pending store without some models, and the old slots of what waits."""

    def __init__(self, join: Join, stays: NDArray[np.bool_], keys: NDArray[np.int64]) -> None:
        self._join, self._stays = join, stays
        self._models = np.cumsum(stays, dtype=np.uint32) - 1
        self._keys = np.zeros(len(join.names.keys), np.uint32)
        self._keys[keys] = np.arange(len(keys))
        self.store, old = join.empty_store(), join.store
        self.dead_letters: list[tuple[int, DeadLetter]] = []
        self._dropped = 0  # observations that waited for their own label
        self.store.set_clocks([*compress(old.clocks(), stays.tolist())])
        counts = [*old.counts]
        slots = [self._move(kind) for kind in STORES]
        self.slots = slots[PENDING]
        counts[Count.EXPIRED] += self._dropped
        counts[Count.RETIRED_OBSERVATIONS] += self._dropped
        counts[Count.UNKNOWN_LABELS] += len(self.dead_letters)
        self.store.counts = counts

    def _move(self, kind: int) -> NDArray[np.int64]:
        """Move the entries that stay, and return their old slots."""
        columns = StoreColumns.empty(self._join.store.count(kind))
        slots = [np.empty(0, np.int64)]
        several = zip(
            parts(len(columns.slots)), columns.ids_of(self._join.store, kind), strict=True
        )
        for part, ids in several:
            some = columns.take(part)
            stay = self._stays[some.models]
            if kind == PENDING:
                self._dropped += int((~stay & (some.values != ASSUMED)).sum())
            if kind == EARLY:
                self._reject(ids, some, ~stay)
            kept = some.take(stay)
            keys = self._keys[kept.keys] if kind == PENDING else kept.keys
            renumbered = kept._replace(models=self._models[kept.models], keys=keys)
            renumbered.load(self.store, kind, [*compress(ids, stay.tolist())])
            slots.append(kept.slots)
        return np.concatenate(slots)

    def _reject(self, ids: Sequence[str], some: StoreColumns, gone: NDArray[np.bool_]) -> None:
        for row in np.flatnonzero(gone).tolist():
            label = (0, ids[row], some.models[row], int(some.times[row]), float(some.values[row]))
            self.dead_letters.append((0, self._join.unmatched(label)))


def decide(state: ProcessorState, events: Events) -> Decided:
    """Decide about a batch of observations that bring their scores; nothing changes."""
    gone = due(state.join, state.settings) if len(events) else []
    names = state.join.names.without({*gone})
    return state.join.validator.validate(events, names)._replace(retired=gone)


def apply_decided(state: ProcessorState, decided: Decided) -> tuple[Outputs, Decided]:
    """Apply what is decided, and return the outputs, and the batch with what was issued."""
    retired = retire(state, decided.retired)
    joined = state.join.take(decided, retired.dead_letters)
    return _calibrated(state, joined, retired)


def step(state: ProcessorState, events: Events) -> tuple[Outputs, Decided]:
    """Decide about a batch and apply it.

    With a learner each event is joined before the next is decided, since a score depends on the
    labels before it. Calibrators and monitors go on once, behind the last event.
    """
    learners = state.join.learners
    if learners is None:
        return apply_decided(state, decide(state, events))
    retired = retire(state, due(state.join, state.settings) if len(events) else [])
    joined = state.join.take_scored(events, learners, retired)
    return _calibrated(state, joined, retired)


def _calibrated(
    state: ProcessorState, joined: JoinedBatch, retired: Retired
) -> tuple[Outputs, Decided]:
    outputs, issued = state.calibrate(joined)
    return outputs._replace(retired=retired.names), joined.decided._replace(issued=issued)
