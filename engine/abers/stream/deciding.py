"""What becomes of each event of a batch, before any calibrator is asked.

Governing rule: nothing here looks at an answer. Admission turns away what
cannot be used, the ledger pairs observations and labels; where a learner gives
the scores, both go event by event, for a score depends on the labels before it.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from abers._backend import core
from abers._shown import shown
from abers.learners import river
from abers.stream.admission import Admission
from abers.stream.answering import Dropped, Taken
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.learning import Learning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers._core import Ledger
    from abers._ledger import Unknown
    from abers.learners import Learner
    from abers.stream.admission import Admitted
    from abers.stream.columns import Events
    from abers.stream.events import Event
    from abers.stream.settings import Settings
    from abers.stream.tasks import Task

__all__ = ["COUNTERS", "REASONS", "Decided", "Deciding"]

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
)
"""Why the processor makes a dead letter of an event."""

_OWN = ("observations", "labels_in", "predictions", "labels", "retired")
_LEDGER = (  # in the order of its counts
    "early_labels",
    "duplicate_observations",
    "duplicate_labels",
    "late_labels",
    "late_events",
    "ahead_events",
    "expired",
    "evicted",
    "unknown_labels",
    "forgotten",
)
COUNTERS = (*_OWN, *_LEDGER, *(f"dead:{reason}" for reason in REASONS))
"""Names of all counters."""


class Decided(NamedTuple):
    """What becomes of a batch.

    Attributes
    ----------
    admitted
        The events that came in.
    taken
        The steps of calibrators that they bring about.
    letters
        Dead letters, each with the row of the event that brought it about.
    dropped
        The observations that wait no longer for a label.
    """

    admitted: Admitted
    taken: Taken
    letters: list[tuple[int, DeadLetter]]
    dropped: Dropped


class Deciding:
    """Admission, ledger, and learners.

    Parameters
    ----------
    settings
        The limits.
    task
        Checks scores and labels.
    learner
        Scores the features of all models, in place of those that the settings name.
    """

    def __init__(self, settings: Settings, task: Task, learner: Learner | None) -> None:
        self._task = task
        learns = learner is not None or settings.learner is not None
        self.learning = Learning(_maker(settings), task.lesson, learner) if learns else None
        score = None if self.learning is None else self.learning.score
        self.admission = Admission(settings, task, score)
        memory = settings.label_wait if settings.dedup_for is None else settings.dedup_for
        self._limits = (
            settings.lateness,
            settings.label_wait,
            memory,
            settings.jump,
            settings.max_pending,
            settings.max_early,
            settings.dedup_max,
            settings.max_bytes,
        )
        self.ledger = self.new_ledger()
        self._counters = dict.fromkeys(COUNTERS, 0)

    def new_ledger(self) -> Ledger:
        """Make a ledger that holds nothing."""
        ledger: Ledger = core.Ledger(*self._limits)
        return ledger

    @property
    def clock(self) -> int | None:
        """The latest clock of all models; None before the first event."""
        clock: int | None = self.ledger.clock
        return clock

    @property
    def counters(self) -> dict[str, int]:
        """How many events of each kind came, and what became of them."""
        return self._counters | dict(zip(_LEDGER, self.ledger.counts, strict=True))

    @counters.setter
    def counters(self, counters: dict[str, int]) -> None:
        self._counters.update(counters)
        self.ledger.counts = [counters[name] for name in _LEDGER]

    def decide(self, events: Events, retired: Sequence[DeadLetter] = ()) -> Decided:
        """Take a batch.

        Parameters
        ----------
        events
            At least one observation or label.
        retired
            Labels that waited for observations of models that were retired.

        Returns
        -------
        Decided
            What becomes of them.
        """
        self.ledger.recycle()
        if self.learning is None:
            decided = self._at_once(events)
        else:
            decided = self._one_by_one(events, self.learning)
            self.learning.drop(decided.dropped.slots.tolist())
        decided.letters[:0] = ((0, letter) for letter in retired)
        refused = decided.admitted.refused
        decided.letters.extend((letter.row or 0, letter) for letter in refused)
        self._count(events.labels, decided, [letter.reason for _, letter in decided.letters])
        return decided

    def redo(
        self,
        admitted: Admitted,
        labels: NDArray[np.bool_],
        refused: Sequence[str],
        retired: Sequence[DeadLetter],
    ) -> Decided:
        """Take a batch for which admission and scores are known.

        Parameters
        ----------
        admitted
            The events that came in.
        labels
            Which events of the whole batch are labels.
        refused
            Why the others did not come in.
        retired
            As for `decide`.

        Returns
        -------
        Decided
            What became of those that came in.
        """
        self.ledger.recycle()
        decided = self._paired(admitted)
        if self.learning is not None:
            decided = self._learned_again(decided, self.learning)
            self.learning.drop(decided.dropped.slots.tolist())
        decided.letters[:0] = ((0, letter) for letter in retired)
        reasons = [letter.reason for _, letter in decided.letters]
        self._count(labels, decided, [*reasons, *refused])
        return decided

    def _at_once(self, events: Events) -> Decided:
        return self._paired(self.admission.admit(events))

    def _paired(self, admitted: Admitted) -> Decided:
        taken, unknown, dropped = self._enter(
            admitted.events.ids.tolist(),
            admitted.kinds,
            admitted.models,
            admitted.keys,
            admitted.times,
            admitted.values,
        )
        letters = [(int(admitted.rows[label[0]]), self.unknown(label)) for label in unknown]
        return Decided(admitted, taken, letters, dropped)

    def forget(self, model: str) -> None:
        """Begin anew with the clock of a model, and with its learner if that is its own."""
        self.ledger.restart(self.admission.models[model])
        if self.learning is not None:
            self.learning.by_model.pop(model, None)

    def _one_by_one(self, events: Events, learning: Learning) -> Decided:
        parts: list[Taken] = []
        gone: list[Dropped] = []
        letters: list[tuple[int, DeadLetter]] = []  # by number of the event that came in

        def accepted(event: Event, value: float) -> None:
            number = len(parts)
            learns, key = 1, 0
            if type(event) is Observation:
                learns, key = 0, self.admission.keys[event.model, event.segment]
            taken, unknown, dropped = self._enter(
                [event.id],
                np.array([learns], np.uint8),
                np.array([self.admission.models[event.model]], np.uint32),
                np.array([key], np.uint32),
                np.array([event.time], np.int64),
                np.array([value]),
            )
            taken.rows[:] = dropped.rows[:] = number
            parts.append(taken)
            gone.append(dropped)
            letters.extend((number, self.unknown(label)) for label in unknown)
            letters.extend((number, failed) for failed in self._learn(event, taken, learning))

        admitted = self.admission.admit(events, accepted)
        columns = zip(*parts, strict=True) if parts else [[np.empty(0, np.int64)]] * 8
        taken = Taken(*(np.concatenate(list(column)) for column in columns))
        columns = zip(*gone, strict=True) if gone else [[np.empty(0, np.int64)]] * 3
        dropped = Dropped(*(np.concatenate(list(column)) for column in columns))
        rows = admitted.rows.tolist()
        told = [(rows[n], _at(letter, rows[n])) for n, letter in letters]
        return Decided(admitted, taken, told, dropped)

    def _learned_again(self, decided: Decided, learning: Learning) -> Decided:
        """Let learners learn what a batch settled, in the order in which they did."""
        admitted, taken, letters, dropped = decided
        ends = np.searchsorted(taken.rows, np.arange(len(admitted.rows) + 1)).tolist()
        failed: list[tuple[int, DeadLetter]] = []
        for event, row, (start, end) in zip(
            admitted.events, admitted.rows.tolist(), pairwise(ends), strict=True
        ):
            part: list[Any] = [column[start:end] for column in taken]
            wrong = self._learn(event, Taken(*part), learning)
            failed.extend((row, _at(one, row)) for one in wrong)
        # Of one event, labels that waited in vain come first.
        told = sorted([*letters, *failed], key=itemgetter(0))
        return Decided(admitted, taken, told, dropped)

    def _learn(self, event: Event, taken: Taken, learning: Learning) -> Iterator[DeadLetter]:
        """Let learners learn what an event settled; what they could not learn."""
        for told, learned, why in learning.learn(event, taken, self.ledger.capacity()):
            label = Label(event.id, told, event.model, self._task.label(learned))
            yield DeadLetter("learner-failed", why, label, 0)

    def _enter(  # noqa: PLR0913, PLR0917 - a column each
        self,
        ids: list[str],
        kinds: NDArray[np.uint8],
        models: NDArray[np.uint32],
        keys: NDArray[np.uint32],
        times: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> tuple[Taken, list[Unknown], Dropped]:
        """Let the ledger decide what becomes of events."""
        most = 2 * len(ids)  # an observation whose label waited makes two steps
        steps, learns = np.empty((6, most), np.int64), np.empty(most, np.uint8)
        learned = np.empty(most)
        count, unknown, gone = self.ledger.take(
            ids, kinds, models, keys, times, values, steps, learns, learned
        )
        row, slot, key, time, told, clock = steps[:, :count]
        dropped = Dropped(*np.empty((3, gone), np.int64))
        self.ledger.dropped(*dropped)
        taken = Taken(learns[:count], row, slot, key, time, told, clock, learned[:count])
        return taken, unknown, dropped

    def _count(self, labels: NDArray[np.bool_], decided: Decided, reasons: Sequence[str]) -> None:
        counters, taken = self._counters, decided.taken
        told = int(labels.sum())
        learned = int(taken.learns.sum())
        counters["labels_in"] += told
        counters["observations"] += len(labels) - told
        counters["labels"] += learned
        counters["predictions"] += len(taken.learns) - learned
        for reason in reasons:
            counters[f"dead:{reason}"] += 1

    def retire(self, models: Sequence[int], ledger: Ledger) -> None:
        """Forget models, with a ledger in which they are not, and number the others anew."""
        gone = {*models}
        admission = self.admission
        names = [name for name, number in admission.models.items() if number not in gone]
        if self.learning is not None:
            for name in admission.models.keys() - {*names}:
                self.learning.by_model.pop(name, None)
        self.ledger = ledger
        self._counters["retired"] += len(gone)
        admission.renumber(names)

    def unknown(self, label: Unknown) -> DeadLetter:
        """Word the end of a label whose observation did not come."""
        _, id_, model, time, value = label
        name = list(self.admission.models)[model]
        detail = f"no observation with id {shown(id_)} came; see that ids and models of both agree"
        event = Label(id_, time, name, self._task.label(value))
        return DeadLetter("unknown-id", detail, event, None)


def _maker(settings: Settings) -> Callable[[], Any]:
    """Give what makes the learner that settings name."""
    name = str(settings.learner)
    if settings.classes:
        return partial(river.make_multi, name, settings.classes)
    if settings.task == "regression":
        return partial(river.make_regressor, name)
    if settings.calibrator == "cvap":
        return partial(river.RiverFolds, partial(river.make, name), settings.folds)
    return partial(river.make, name)


def _at(letter: DeadLetter, row: int) -> DeadLetter:
    """Give a dead letter its row, unless it has none."""
    if letter.row is None:
        return letter
    return DeadLetter(letter.reason, letter.detail, letter.event, row)
