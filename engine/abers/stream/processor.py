"""The stream processor: a deterministic state machine from events to outputs.

Governing rule: score at prediction time, pair at label time, never re-score.
Nothing but the events decides: no clock but theirs, no randomness, no I/O, so
the same events in the same order give the same outputs and the same state,
however they are batched.

A batch goes through three rooms. Admission turns away what cannot be used; the
ledger decides what becomes of each event; answering lets each calibrator run
its steps in one call. Neither of the first two looks at an answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from abers._backend import core
from abers.exceptions import ParameterError
from abers.learners import river
from abers.stream import snapshot
from abers.stream.admission import Admission
from abers.stream.answering import Answering, Taken
from abers.stream.binary import Binary
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers._ledger import Unknown
    from abers.learners import Learner
    from abers.stream.admission import Admitted
    from abers.stream.events import Event, Output
    from abers.stream.tasks import Monitor

    _Entered = tuple[Admitted, Taken, list[tuple[int, DeadLetter]]]

__all__ = ["COUNTERS", "REASONS", "Processor"]

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
)
"""Why the processor makes a dead letter of an event."""

_OWN = ("observations", "labels_in", "predictions", "labels")
_LEDGER = (  # in the order of its counts
    "early_labels",
    "duplicate_observations",
    "duplicate_labels",
    "late_labels",
    "late_events",
    "expired",
    "evicted",
    "unknown_labels",
    "forgotten",
)
COUNTERS = (*_OWN, *_LEDGER, *(f"dead:{reason}" for reason in REASONS))
"""Names of all counters."""


class Processor:
    """Predict observations, and learn their labels whenever they come.

    Parameters
    ----------
    settings
        The task, the calibrators and the limits.
    learner
        What scores the features, in place of the learner that the settings name; an object
        with `score(x)` and `learn(x, value)`, shared by all models.
    outcomes
        Whether a label that settles a prediction gives an `Outcome`.

    Attributes
    ----------
    position
        What the snapshot that this processor was restored from had as its position.

    Notes
    -----
    **Guarantee.** That of the calibrator, see `abers.VennAbers`: with a fixed scorer and
    exchangeable observations one of p0 and p1 is perfectly calibrated, provided that delay
    and absence of a label do not depend on it.

    **Rules.** An event that cannot be used becomes a `DeadLetter` and changes nothing but a
    counter. A second observation or label with the same id is ignored and counted. Labels
    that come before their observation wait for it. Expiry, and all other limits in time, go
    by the events' own time: the clock is the largest time accepted so far.

    Examples
    --------
    >>> from abers.stream import Label, Observation, Processor
    >>> processor = Processor()
    >>> processor.process(Observation("a1", time=1_000, score=0.83))[0].p
    0.5
    >>> processor.process(Label("a1", time=9_000, value=1))[0].label
    1
    >>> prediction, = processor.process(Observation("a2", time=9_500, score=0.9))
    >>> prediction.p0, prediction.p1, prediction.n
    (0.5, 1.0, 1)
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        learner: Learner | None = None,
        outcomes: bool = True,
    ) -> None:
        self.settings = settings = settings or Settings()
        self.position: Any = None
        self._outcomes = outcomes
        self._given = learner
        self._learners: dict[str, Learner] = {}  # by model
        self._learns = learner is not None or settings.learner is not None
        self._features: list[dict[Any, Any] | None] = [None]  # by slot, for the learner to learn
        self._task = Binary(settings)
        self._admission = Admission(settings, self._task, self._score if self._learns else None)
        self._answering = Answering(self._task, monitors=settings.monitors)
        memory = settings.label_wait if settings.dedup_for is None else settings.dedup_for
        self._ledger = core.Ledger(
            settings.lateness,
            settings.label_wait,
            memory,
            settings.max_pending,
            settings.max_early,
            settings.dedup_max,
        )
        self._counters = dict.fromkeys(COUNTERS, 0)

    @property
    def clock(self) -> int | None:
        """The largest event time accepted so far; None before the first."""
        clock: int | None = self._ledger.clock
        return clock

    @property
    def counters(self) -> dict[str, int]:
        """How many events of each kind came, and what became of them."""
        return self._counters | dict(zip(_LEDGER, self._ledger.counts, strict=True))

    def _set_counters(self, counters: dict[str, int]) -> None:
        self._counters.update(counters)
        self._ledger.counts = [counters[name] for name in _LEDGER]

    @property
    def waiting(self) -> tuple[int, int]:
        """How many observations wait for labels, and labels for observations."""
        return self._ledger.count(0), self._ledger.count(1)

    @property
    def monitors(self) -> Sequence[Monitor]:
        """What judges the predictions, one for each model and segment; none if switched off."""
        return self._answering.monitors or ()

    def process(self, event: Event) -> list[Output]:
        """Take one event.

        Parameters
        ----------
        event
            An `Observation` or a `Label`.

        Returns
        -------
        list
            What is to be said of it: predictions, outcomes, dead letters.
        """
        return self.process_many([event])

    def process_many(self, events: Iterable[Event]) -> list[Output]:
        """Take events in their order; as `process` for each.

        Parameters
        ----------
        events
            Observations and labels, in order of arrival.

        Returns
        -------
        list
            The outputs, in the order of the events.

        Raises
        ------
        ParameterError
            If something in the batch is neither; nothing of the batch is taken then.
        """
        batch = list(events)
        if not {*map(type, batch)} <= {Observation, Label}:
            row, event = next(
                (row, event)
                for row, event in enumerate(batch)
                if type(event) not in {Observation, Label}
            )
            msg = f"row {row}: {event!r} is no Observation and no Label"
            raise ParameterError(msg)
        return self._take(batch) if batch else []

    def _take(self, events: Sequence[Event]) -> list[Output]:
        self._ledger.recycle()
        entered = self._one_by_one(events) if self._learns else self._at_once(events)
        admitted, taken, letters = entered
        self._count(events, admitted, taken)
        keys = self._admission.keys
        self._answering.make_room(len(keys), self._ledger.capacity())
        predictions, outcomes = self._answering.run(
            admitted, taken, list(keys), outcomes=self._outcomes
        )
        letters += [(letter.row or 0, letter) for letter in admitted.refused]
        if not letters and not outcomes:
            return list(predictions)
        made: Iterator[Output] = iter(predictions)
        settled: Iterator[Output] = iter(outcomes)
        outputs = [
            (admitted.rows[row], next(settled if learns else made))
            for learns, row in zip(taken.learns.tolist(), taken.rows.tolist(), strict=True)
            if self._outcomes or not learns
        ]
        return _merged(outputs, letters)

    def _at_once(self, events: Sequence[Event]) -> _Entered:
        """Let the ledger decide what becomes of a batch."""
        admitted = self._admission.admit(events, self.clock)
        taken, unknown = self._enter(
            admitted.ids,
            admitted.kinds,
            admitted.models,
            admitted.keys,
            admitted.times,
            admitted.values,
        )
        letters = [(admitted.rows[label[0]], self._unknown(label)) for label in unknown]
        return admitted, taken, letters

    def _one_by_one(self, events: Sequence[Event]) -> _Entered:
        """Do the same where a learner's score depends on the labels before it."""
        parts: list[Taken] = []
        letters: list[tuple[int, DeadLetter]] = []  # by number of the event that came in

        def accepted(event: Event, value: float) -> None:
            number = len(parts)
            learning, key = 1, 0
            if type(event) is Observation:
                learning, key = 0, self._admission.keys[event.model, event.segment]
            taken, unknown = self._enter(
                [event.id],
                np.array([learning], np.uint8),
                np.array([self._admission.models[event.model]], np.uint32),
                np.array([key], np.uint32),
                np.array([event.time], np.int64),
                np.array([value]),
            )
            taken.rows[:] = number
            parts.append(taken)
            letters.extend((number, self._unknown(label)) for label in unknown)
            letters.extend((number, letter) for letter in self._learn(event, taken))

        admitted = self._admission.admit(events, self.clock, accepted)
        columns = zip(*parts, strict=True) if parts else [[np.empty(0, np.int64)]] * 7
        taken = Taken(*(np.concatenate(list(column)) for column in columns))
        rows = admitted.rows
        return admitted, taken, [(rows[n], _at(letter, rows[n])) for n, letter in letters]

    def _enter(  # noqa: PLR0913, PLR0917 - a column each
        self,
        ids: list[str],
        kinds: NDArray[np.uint8],
        models: NDArray[np.uint32],
        keys: NDArray[np.uint32],
        times: NDArray[np.int64],
        values: NDArray[np.float64],
    ) -> tuple[Taken, list[Unknown]]:
        """Let the ledger decide what becomes of events."""
        most = 2 * len(ids)  # an observation whose label waited makes two steps
        steps, learns = np.empty((5, most), np.int64), np.empty(most, np.uint8)
        learned = np.empty(most)
        count, unknown = self._ledger.take(
            ids, kinds, models, keys, times, values, steps, learns, learned
        )
        row, slot, key, time, told = steps[:, :count]
        return Taken(learns[:count], row, slot, key, time, told, learned[:count]), unknown

    def _count(self, events: Sequence[Event], admitted: Admitted, taken: Taken) -> None:
        counters, learned = self._counters, int(taken.learns.sum())
        labels = len([None for event in events if type(event) is Label])
        counters["labels_in"] += labels
        counters["observations"] += len(events) - labels
        counters["labels"] += learned
        counters["predictions"] += len(taken.learns) - learned
        for letter in admitted.refused:
            counters[f"dead:{letter.reason}"] += 1

    def _unknown(self, label: Unknown) -> DeadLetter:
        _, id_, model, time, value = label
        self._counters["dead:unknown-id"] += 1
        name = list(self._admission.models)[model]
        detail = f"no observation with id {id_!r} came; see that ids and models of both agree"
        event = Label(id_, time, name, self._task.label(value))
        return DeadLetter("unknown-id", detail, event, None)

    # What scores features

    def _learner(self, model: str) -> Learner:
        if self._given is not None:
            return self._given
        learner = self._learners.get(model) or river.make(str(self.settings.learner))
        if model in self._admission.models:  # otherwise its observation may yet be refused
            self._learners[model] = learner
        return learner

    def _score(self, observation: Observation) -> float:
        return self._learner(observation.model).score(observation.x or {})

    def _learn(self, event: Event, taken: Taken) -> Iterator[DeadLetter]:
        """Keep the features of what was predicted, let the learner learn what was settled."""
        self._features += [None] * (self._ledger.capacity() - len(self._features))
        for learns, slot, told, value in zip(
            taken.learns.tolist(),
            taken.slots.tolist(),
            taken.told.tolist(),
            taken.values.tolist(),
            strict=True,
        ):
            if not learns:
                self._features[slot] = event.x if type(event) is Observation else None
                continue
            x, self._features[slot] = self._features[slot], None
            try:
                self._learner(event.model).learn(x or {}, value)
            except Exception as error:  # noqa: BLE001 - whatever a learner raises
                self._counters["dead:learner-failed"] += 1
                label = Label(event.id, told, event.model, self._task.label(value))
                yield _not_learned(label, error)

    # Saving

    def state_bytes(self) -> bytes:
        """Give the state in canonical form; learners are left out.

        Returns
        -------
        bytes
            Equal for processors of equal settings that took the same events.
        """
        return snapshot.state(self)

    def snapshot(self, position: Any = None, key: bytes | None = None) -> bytes:  # noqa: ANN401
        """Save the processor: versioned, with a checksum and its settings.

        Parameters
        ----------
        position
            Where reading goes on, kept for the caller; anything that JSON can hold.
        key
            Secret that seals the learners' state. Required with learners, for it is a
            pickle, which must not be read unless it is known where it comes from.

        Returns
        -------
        bytes
            What `restore` takes.

        Raises
        ------
        StateError
            If there are learners and no key, or something cannot be saved.
        """
        return snapshot.dump(self, position, key)

    @classmethod
    def restore(
        cls,
        blob: bytes,
        settings: Settings | None = None,
        *,
        key: bytes | None = None,
        learner: Learner | None = None,
        outcomes: bool = True,
    ) -> Processor:
        """Restore a processor, which goes on as the saved one would have.

        Parameters
        ----------
        blob
            What `snapshot` gave.
        settings, learner, outcomes
            Those of the saved processor. The learner is replaced by the saved one.
        key
            The secret that `snapshot` was given.

        Returns
        -------
        Processor
            The processor; its `position` is what `snapshot` was given.

        Raises
        ------
        StateError
            If the bytes are damaged, of an unknown version or of other settings, or hold
            learners and the key is missing or wrong.

        Examples
        --------
        >>> from abers.stream import Observation, Processor
        >>> processor = Processor()
        >>> _ = processor.process(Observation("a1", time=0, score=0.3))
        >>> Processor.restore(processor.snapshot({"line": 1})).position
        {'line': 1}
        """
        processor = cls(settings, learner=learner, outcomes=outcomes)
        snapshot.load(processor, blob, key)
        return processor


def _not_learned(label: Label, error: Exception) -> DeadLetter:
    detail = (
        f"the learner failed to learn {label.id!r} ({type(error).__name__}: {error}); the "
        "calibrator learned it; choose another learner, or repair the features"
    )
    return DeadLetter("learner-failed", detail, label, 0)


def _at(letter: DeadLetter, row: int) -> DeadLetter:
    """Give a dead letter its row, unless it has none."""
    if letter.row is None:
        return letter
    return DeadLetter(letter.reason, letter.detail, letter.event, row)


def _merged(
    outputs: list[tuple[int, Output]], letters: list[tuple[int, DeadLetter]]
) -> list[Output]:
    """Put dead letters among the outputs of the steps, by row."""
    if not letters:
        return [one for _, one in outputs]
    # Within a row: labels that waited in vain, the steps, what a learner could not learn.
    ranked: list[tuple[int, int, Output]] = [
        (row, 0 if one.row is None else 2, one) for row, one in letters
    ]
    ranked += [(row, 1, one) for row, one in outputs]
    ranked.sort(key=lambda ranking: ranking[:2])
    return [one for _, _, one in ranked]
