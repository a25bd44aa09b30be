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
from abers.learners import river
from abers.stream import snapshot
from abers.stream.admission import Admission
from abers.stream.answering import Answering, Taken
from abers.stream.binary import Binary
from abers.stream.events import DeadLetter, Label
from abers.stream.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from abers._ledger import Unknown
    from abers.learners import Learner
    from abers.stream.admission import Admitted
    from abers.stream.events import Event, Observation, Output
    from abers.stream.tasks import Monitor

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
        if not self._learns:
            return self._take(batch, 0)
        # What a learner makes of an observation depends on the label before it.
        return [output for row, event in enumerate(batch) for output in self._take([event], row)]

    def _take(self, events: Sequence[Event], first: int) -> list[Output]:
        """Take a batch whose first event has the row `first` in the caller's."""
        if not events:
            return []
        admitted = self._admission.admit(events, self.clock)
        self._count(events, admitted)
        taken, unknown = self._enter(admitted)
        keys = self._admission.keys
        self._answering.make_room(len(keys), self._ledger.capacity())
        predictions, outcomes = self._answering.run(
            admitted, taken, list(keys), outcomes=self._outcomes
        )
        letters = [(letter.row or 0, letter) for letter in admitted.refused]
        letters += [(admitted.rows[label[0]], self._unknown(label)) for label in unknown]
        if self._learns:
            letters += self._learn(admitted, taken)
        if not letters and not outcomes:
            return list(predictions)
        steps = list(zip(taken.learns.tolist(), taken.rows.tolist(), strict=True))
        made: Iterator[Output] = iter(predictions)
        settled: Iterator[Output] = iter(outcomes)
        outputs = [
            (admitted.rows[row], next(settled if learns else made))
            for learns, row in steps
            if self._outcomes or not learns
        ]
        return _merged(outputs, [(row, _moved(letter, first)) for row, letter in letters])

    def _count(self, events: Sequence[Event], admitted: Admitted) -> None:
        labels = len([event for event in events if type(event) is Label])
        self._counters["labels_in"] += labels
        self._counters["observations"] += len(events) - labels
        for letter in admitted.refused:
            self._counters[f"dead:{letter.reason}"] += 1

    def _enter(self, admitted: Admitted) -> tuple[Taken, list[Unknown]]:
        """Let the ledger decide what becomes of the events."""
        most = 2 * len(admitted.events)
        steps, learns = np.empty((5, most), np.int64), np.empty(most, np.uint8)
        values = np.empty(most)
        count, unknown = self._ledger.take(
            [event.id for event in admitted.events],
            admitted.kinds,
            admitted.models,
            admitted.keys,
            admitted.times,
            admitted.values,
            steps,
            learns,
            values,
        )
        row, slot, key, time, told = steps[:, :count]
        taken = Taken(learns[:count], row, slot, key, time, told, values[:count])
        learned = int(taken.learns.sum())
        self._counters["labels"] += learned
        self._counters["predictions"] += count - learned
        self._counters["dead:unknown-id"] += len(unknown)
        return taken, unknown

    def _unknown(self, label: Unknown) -> DeadLetter:
        _, id_, model, time, value = label
        name = list(self._admission.models)[model]
        detail = f"no observation with id {id_!r} came; see that ids and models of both agree"
        return DeadLetter(
            "unknown-id", detail, Label(id_, time, name, self._task.label(value)), None
        )

    # What scores features

    def _learner(self, model: str) -> Learner:
        if self._given is not None:
            return self._given
        if model not in self._learners:
            self._learners[model] = river.make(str(self.settings.learner))
        return self._learners[model]

    def _score(self, observation: Observation) -> float:
        return self._learner(observation.model).score(observation.x or {})

    def _learn(self, admitted: Admitted, taken: Taken) -> list[tuple[int, DeadLetter]]:
        """Keep the features of what was predicted, and let the learner learn what was settled."""
        failed = []
        missing = self._ledger.capacity() - len(self._features)
        self._features += [None] * missing
        for learns, row, slot, told, value in zip(
            *(column.tolist() for column in taken[:3]),
            taken.told.tolist(),
            taken.values.tolist(),
            strict=True,
        ):
            event = admitted.events[row]
            if not learns:
                self._features[slot] = event.x
                continue
            x, self._features[slot] = self._features[slot], None
            try:
                self._learner(event.model).learn(x or {}, value)
            except Exception as error:  # noqa: BLE001 - whatever a learner raises
                label = Label(event.id, told, event.model, self._task.label(value))
                failed.append((admitted.rows[row], _not_learned(label, error, admitted.rows[row])))
        self._counters["dead:learner-failed"] += len(failed)
        return failed

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


def _not_learned(label: Label, error: Exception, row: int) -> DeadLetter:
    detail = (
        f"the learner failed to learn {label.id!r} ({type(error).__name__}: {error}); the "
        "calibrator learned it; choose another learner, or repair the features"
    )
    return DeadLetter("learner-failed", detail, label, row)


def _moved(letter: DeadLetter, first: int) -> DeadLetter:
    if letter.row is None or not first:
        return letter
    return DeadLetter(letter.reason, letter.detail, letter.event, letter.row + first)


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
