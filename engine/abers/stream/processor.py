"""The stream processor: a deterministic state machine from events to outputs.

Governing rule: score at prediction time, pair at label time, never re-score.
Nothing but the events decides: no clock but theirs, no randomness, no I/O, so
the same events in the same order give the same outputs and the same state,
however they are batched.

A batch is taken in two passes. The first, here, decides event by event what
becomes of each; nothing it looks at depends on what a calibrator answers. The
second lets every calibrator run its steps in one call, and words the outputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abers.exceptions import LabelError, ParameterError, ScoreError
from abers.learners import river
from abers.stream import snapshot
from abers.stream.answering import LEARN, PREDICT, Answering
from abers.stream.binary import Binary
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.finished import Finished
from abers.stream.settings import Settings
from abers.stream.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from abers.learners import Learner
    from abers.stream.answering import Step
    from abers.stream.events import Event, Output

__all__ = ["REASONS", "Processor"]

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

_COUNTERS = (
    "observations",
    "labels_in",
    "predictions",
    "labels",
    "early_labels",
    "duplicate_observations",
    "duplicate_labels",
    "late_labels",
    "late_events",
    "expired",
    "evicted",
    "unknown_labels",
    "forgotten",
    *(f"dead:{reason}" for reason in REASONS),
)
_LARGEST_TIME = 1 << 53  # whole numbers below are exact as doubles, and in every JSON reader
_NEVER = _LARGEST_TIME * 4


class _Refused(Exception):  # noqa: N818 - no error, but the way out of an event
    """An event that cannot be used."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


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
    counters
        How many events of each kind came, and what became of them.
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
        self.counters = dict.fromkeys(_COUNTERS, 0)
        self._outcomes = outcomes
        self._clock = -_NEVER
        self._given = learner
        self._task = task = Binary(settings)
        self._learns = learner is not None or settings.learner is not None
        self._pending = Waiting(task.score_width + task.answer_width, things=self._learns)
        self._early = Waiting(1, things=False)
        self._finished = Finished()
        self._models: dict[str, int] = {}
        self._learners: dict[int, Learner] = {}  # by model
        self._answering = Answering(task, self._pending, monitors=settings.monitors)
        self._keys = self._answering.keys
        remember = settings.label_wait if settings.dedup_for is None else settings.dedup_for
        self._wait, self._memory = (
            settings.label_wait + settings.lateness,
            remember + settings.lateness,
        )
        self._due = _NEVER  # nothing goes before the clock is beyond this
        self._steps: list[Step] = []  # of the batch in hand
        self._letters: list[tuple[int, DeadLetter]] = []  # each with the number of steps before

    @property
    def clock(self) -> int | None:
        """The largest event time accepted so far; None before the first."""
        return None if self._clock == -_NEVER else self._clock

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
        """
        self._steps, self._letters = [], []
        for row, event in enumerate(events):
            try:
                if type(event) is Observation:
                    self._observe(event, row)
                elif type(event) is Label:
                    self._settle(event)
                else:
                    msg = f"row {row}: {event!r} is no Observation and no Label"
                    raise ParameterError(msg)
            except _Refused as refused:
                self._refuse(refused, event, row)
        outputs = self._answering.run(self._steps, outcomes=self._outcomes)
        self._pending.recycle()
        self._early.recycle()
        return self._with_letters(outputs)

    # What becomes of an event

    def _observe(self, event: Observation, row: int) -> None:
        counters = self.counters
        counters["observations"] += 1
        if not self._learns:
            score = self._score(event.score)
        elif type(event.x) is not dict:
            detail = f"x={event.x!r} is no mapping of features; send those that the learner scores"
            msg = "bad-features"
            raise _Refused(msg, detail)
        pair = (event.model, event.segment)
        if type(event.segment) is not str:
            msg = "bad-model"
            raise _Refused(msg, f"segment {event.segment!r} is no text")
        model = self._accept(event, pair)
        id_ = event.id
        if id_ in self._pending.slots[model] or id_ in self._finished.labelled[model]:
            counters["duplicate_observations"] += 1
            return
        if self._learns:
            score = self._learner_score(model, event)
        key = self._answering.key(pair)
        clock = self._clock
        slot = self._pending.add(model, id_, key, event.time, clock)
        self._due = min(self._due, clock + self._wait)
        if self._pending.things is not None:
            self._pending.things[slot] = event.x
        self._steps.append((PREDICT, slot, key, score, event.time, event))
        counters["predictions"] += 1
        if id_ in self._early.slots[model]:
            self._pair_early(model, id_, row)
        if len(self._pending) > self.settings.max_pending:
            self._drop_pending("evicted")

    def _settle(self, event: Label) -> None:
        counters = self.counters
        counters["labels_in"] += 1
        try:
            value = self._task.value(event.value)
        except LabelError as error:
            msg = "bad-label"
            raise _Refused(msg, str(error)) from None
        model = self._accept(event, None)
        id_ = event.id
        if id_ in self._pending.slots[model]:
            self._pair(model, event, value)
            return
        labelled = self._finished.labelled[model].get(id_)
        if labelled or id_ in self._early.slots[model]:
            counters["duplicate_labels"] += 1
        elif labelled is not None:
            counters["late_labels"] += 1
        else:
            self._wait_early(model, event, value)

    def _pair(self, model: int, label: Label, value: float) -> None:
        """Learn a label whose observation waits for it."""
        pending = self._pending
        slot = pending.slots[model][label.id]
        if pending.things is not None:
            try:
                self._learner(model).learn(pending.things[slot], value)
            except Exception as error:  # noqa: BLE001 - whatever a learner raises
                raise _learner_failed(label, error) from None
        pending.take(model, label.id)
        self._steps.append((LEARN, slot, pending.keys[slot], value, pending.times[slot], label))
        self.counters["labels"] += 1
        self._finish(model, label.id, labelled=True)

    def _wait_early(self, model: int, label: Label, value: float) -> None:
        early = self._early
        slot = early.add(model, label.id, 0, label.time, self._clock)
        early.fit()
        early.rows[slot] = value
        self._due = min(self._due, self._clock + self._wait)
        self.counters["early_labels"] += 1
        if len(early) > self.settings.max_early:
            self._drop_early()

    def _pair_early(self, model: int, id_: str, row: int) -> None:
        """Learn the label that came before its observation."""
        label = self._take_early(model, id_)
        try:
            self._pair(model, label, self._task.value(label.value))
        except _Refused as refused:
            self._refuse(refused, label, row)

    def _take_early(self, model: int, id_: str) -> Label:
        slot = self._early.take(model, id_)
        value = self._task.label(self._early.rows[slot, 0])
        return Label(id_, self._early.times[slot], self._name(model), value)

    # What an event must be

    def _score(self, given: object) -> Any:  # noqa: ANN401 - a float, or floats, as the task has it
        try:
            return self._task.score(given)
        except ScoreError as error:
            msg = "bad-score"
            raise _Refused(msg, str(error)) from None

    def _accept(self, event: Event, pair: tuple[str, str] | None) -> int:
        """Check all but the values of an event, and let its time pass; the number of its model."""
        time, recorded = event.time, event.recorded
        if type(event.id) is not str or not event.id:
            msg = "bad-id"
            raise _Refused(msg, f"id {event.id!r} is no text of at least one character")
        if type(event.model) is not str:
            msg = "bad-model"
            raise _Refused(msg, f"model {event.model!r} is no text")
        if type(time) is not int or not -_LARGEST_TIME < time < _LARGEST_TIME:
            msg = "bad-time"
            raise _Refused(msg, f"time {time!r} is no whole number of milliseconds")
        if recorded is not None or time > self._clock + self.settings.max_jump:
            self._refuse_future(event)
        model = self._models.get(event.model)
        if model is None or (pair is not None and pair not in self._keys):
            self._refuse_crowd(model, event, pair)
        if time > self._clock:
            self._clock = time
            if time > self._due:
                self._expire()
        elif time < self._clock - self.settings.lateness:
            self.counters["late_events"] += 1
        return self._new_model(event.model) if model is None else model

    def _refuse_future(self, event: Event) -> None:
        settings, recorded = self.settings, event.recorded
        if recorded is not None:
            ahead, limit, name = event.time - recorded, settings.max_ahead, "max_ahead"
        elif self._clock == -_NEVER:
            return
        else:
            ahead, limit, name = event.time - self._clock, settings.max_jump, "max_jump"
        if ahead > limit:
            since = "the time it was written" if recorded is not None else "all events before it"
            detail = (
                f"time {event.time} is {ahead} ms ahead of {since}, {name} allows {limit}; "
                f"repair the producer's clock, or raise {name}"
            )
            msg = "time-in-future"
            raise _Refused(msg, detail)

    def _refuse_crowd(self, model: int | None, event: Event, pair: tuple[str, str] | None) -> None:
        most = self.settings.max_models
        what = f"model {event.model!r}"
        if model is not None or len(self._models) < most:
            if pair is None or len(self._keys) < most:
                return
            what += f", segment {pair[1]!r},"
        detail = f"{what} is new, and max_models={most} are there already; raise max_models"
        msg = "too-many-models"
        raise _Refused(msg, detail)

    def _new_model(self, name: str) -> int:
        number = self._models[name] = len(self._models)
        for by_model in (self._pending.slots, self._early.slots, self._finished.labelled):
            by_model.append({})
        return number

    def _name(self, model: int) -> str:
        return list(self._models)[model]

    # What scores features

    def _learner(self, model: int) -> Learner:
        if self._given is not None:
            return self._given
        if model not in self._learners:
            self._learners[model] = river.make(str(self.settings.learner))
        return self._learners[model]

    def _learner_score(self, model: int, event: Observation) -> Any:  # noqa: ANN401 - as `_score`
        learner = self._learner(model)
        try:
            score = learner.score(event.x or {})
        except Exception as error:  # noqa: BLE001 - whatever a learner raises
            raise _learner_failed(event, error) from None
        return self._score(score)

    # What goes

    def _expire(self) -> None:
        """Let everything go whose time is over."""
        pending, early, finished = self._pending, self._early, self._finished
        horizon = self._clock - self._wait
        while pending.oldest and pending.stored[pending.oldest] < horizon:
            self._drop_pending("expired")
        while early.oldest and early.stored[early.oldest] < horizon:
            self._drop_early()
        horizon = self._clock - self._memory
        while finished and finished.oldest < horizon:
            finished.forget_oldest()
        self._due = min(
            pending.stored[pending.oldest] + self._wait if pending.oldest else _NEVER,
            early.stored[early.oldest] + self._wait if early.oldest else _NEVER,
            finished.oldest + self._memory if finished else _NEVER,
        )

    def _drop_pending(self, counter: str) -> None:
        """Give up waiting for the label of the oldest observation."""
        slot = self._pending.oldest
        model, id_ = self._pending.models[slot], str(self._pending.ids[slot])
        self._pending.take(model, id_)
        self.counters[counter] += 1
        self._finish(model, id_, labelled=False)

    def _drop_early(self) -> None:
        """Give up waiting for the observation of the oldest label."""
        slot = self._early.oldest
        label = self._take_early(self._early.models[slot], str(self._early.ids[slot]))
        self.counters["unknown_labels"] += 1
        detail = f"no observation with id {label.id!r} came; see that ids and models of both agree"
        self._refuse(_Refused("unknown-id", detail), label, None)

    def _finish(self, model: int, id_: str, *, labelled: bool) -> None:
        finished, clock = self._finished, self._clock
        finished.add(model, id_, clock, labelled=labelled)
        self._due = min(self._due, clock + self._memory)
        if len(finished) > self.settings.dedup_max:
            finished.forget_oldest()
            self.counters["forgotten"] += 1

    # What is said

    def _refuse(self, refused: _Refused, event: Event, row: int | None) -> None:
        self.counters[f"dead:{refused.reason}"] += 1
        letter = DeadLetter(refused.reason, str(refused), event, row)
        self._letters.append((len(self._steps), letter))

    def _with_letters(self, outputs: list[Any]) -> list[Output]:
        """Put the dead letters where they belong among the outputs of the steps."""
        done, merged = 0, []
        for at, letter in self._letters:
            merged += [*outputs[done:at], letter]
            done = at
        merged += outputs[done:]
        return merged if self._outcomes else [one for one in merged if one is not None]

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
        >>> processor = Processor()
        >>> _ = processor.process(Observation("a1", time=0, score=0.3))
        >>> Processor.restore(processor.snapshot({"line": 1})).position
        {'line': 1}
        """
        processor = cls(settings, learner=learner, outcomes=outcomes)
        snapshot.load(processor, blob, key)
        return processor


def _learner_failed(event: Event, error: Exception) -> _Refused:
    what = f"the learner failed on {event.id!r} ({type(error).__name__}: {error})"
    return _Refused("learner-failed", f"{what}; choose another, or repair the features")
