"""The stream processor as the plainest Python, which the tests compare with.

Nothing here is clever. What waits and what is remembered are lists, each oldest
first, searched from their beginning; events are applied one at a time. The rules, in the order
in which they apply:

1. *Values.* A score is a finite real number (a probability where the settings say so); with a
   learner the features are a dictionary. A label is 0 or 1.
2. *Validity.* The id is a text that is not empty, model and segment are texts, none of them is
   too long in UTF-8, the time is a whole number less than 2**53 (and 2**50 half-lives) from zero.
3. *Future.* The time is at most `max_clock_skew` after the record was written, where that is known.
4. *Caps.* At most `max_models` models, and as many segments of all models. Then the learner
   scores, which has to give what rule 1 asks for.
5. *Clock.* An event that passed 1-4 moves the clock of its model to its time if that is later, by
   at most the jump, which for 100 events after three ids agreed is at least three times what the
   nearest two of them are apart. One further ahead is a candidate, and of three candidates of
   different ids among the last 100 events of the model the earliest is the clock, or one that is
   later by at most the jump. A clock begins with the first three ids: with the median of their
   times, or one later by at most the jump; before, nothing expires, and calibrators that forget
   by time learn nothing. An event is late if its time is more than `allowed_lateness` behind the
   clock. Its model and segment are known from now on. For calibrators no observation is later than
   the clock.
6. *Expiry.* What was stored more than a span before the clock of its model less the lateness
   goes; what made the clock jump was stored at the clock that it made. These go:
   observations that wait (then remembered as finished), labels that wait, remembered ids.
   If a label is assumed, an observation whose wait is over is settled by it instead, at its time
   and the span, and waits anew, its features gone. Its own label is then late and not learned; at
   the end of the second wait, or for want of room, it is remembered as finished, and nothing is
   counted.
7. *Duplicates* of what waits or is remembered are counted and change nothing more.
8. *An observation* is predicted, and settled at once if its label waits; else it waits.
9. *A label* settles its observation if that waits: the calibrator learns the score of the
   prediction, the learner the features. Else it waits.

The predictions of a calibrator are numbered, and it knows labels, and what will have none, by the
number. It is taught in an order of its own (`tests.oracles.teaching_order`).

Before a batch, if `retire_after` is set and rule 4 leaves no room, every model is forgotten whose
clock is further than that behind the third latest of the known clocks of models that had 100
events, or the earliest of fewer. Its observations that wait count as expired, its labels that wait
are dead letters.

A model that has more entries in a list than its limit loses its oldest one there. Beyond
`max_bytes` of all entries, ids, features and what experts keep, the oldest finished id of all
models goes, or else the oldest early label, or else the oldest observation.
"""

from __future__ import annotations

import math
from itertools import pairwise
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from tests.engine.stream.ordered import merged

from abers import ProtectedVennAbers
from abers.arrays import EXPIRE, LEARN, PREDICT
from abers.calibration import MultiInterval
from abers.stream import (
    DeadLetter,
    Event,
    Label,
    Observation,
    Outcome,
    Output,
    Prediction,
    Settings,
)
from abers.stream.pending_store import NO_CLOCK
from abers.stream.tasks import make_task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.engine.stream.cases import Scorer

    from abers._core import Model

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
COUNTERS = (
    "observations",
    "labels_in",
    "unlearned",
    "retired",
    "predictions",
    "labels",
    "assumed",
    "early_labels",
    "duplicate_observations",
    "duplicate_labels",
    "late_labels",
    "late_events",
    "ahead_events",
    "expired",
    "evicted",
    "retired_observations",
    "unknown_labels",
    "evicted_labels",
    "forgotten",
    *(f"dead:{reason}" for reason in REASONS),
)
ENTRY_BYTES = (180, 110, 110)
"""Bytes of a pending observation with its prediction, of an early label and of a finished id, each
without id and features."""


class Stored(NamedTuple):
    """An entry that waits or is remembered, and the clock when it was stored."""

    model: str
    id: str
    at: int


class Pending(NamedTuple):
    """An observation that waits, with its prediction."""

    model: str
    id: str
    at: int
    observation: Observation
    prediction: Any
    number: int  # of the prediction
    assumed: bool = False  # whether its label is


class Early(NamedTuple):
    """A label that waits."""

    model: str
    id: str
    at: int
    label: Label


class Finished(NamedTuple):
    """A finished id."""

    model: str
    id: str
    at: int
    labelled: bool


class Candidate(NamedTuple):
    """A time that a clock may move to, and the number of its event in its model."""

    id: str
    time: int
    number: int


class Clock:
    """The clock of a model: its last 100 candidates, and how many events there were."""

    def __init__(self, jump: int) -> None:
        """Begin without a time."""
        self.jump, self.time, self.known, self.events = jump, 0, False, 0
        self.apart, self.agreed = 0, 0
        self.candidates: list[Candidate] = []

    def far(self) -> list[Candidate]:
        """List the candidates that are still far ahead, and recent."""
        recent = [one for one in self.candidates if self.events - one.number < 100]
        return [one for one in recent if one.time - self.time > self.alone()]

    def alone(self) -> int:
        """Return how far one event alone moves the clock."""
        return max(self.jump, 3 * self.apart) if self.events - self.agreed < 100 else self.jump

    def agree(self) -> list[int]:
        """Note how far the nearest two of three candidates are apart; the times of all."""
        times = sorted(one.time for one in self.candidates)
        self.apart, self.agreed = min(b - a for a, b in pairwise(times)), self.events
        return times

    def add(self, event: Event) -> bool:
        """Add a candidate, unless its id is one."""
        if event.id in [one.id for one in self.candidates]:
            return False
        self.candidates.append(Candidate(event.id, event.time, self.events))
        return True

    def settle(self, times: list[int]) -> None:
        """Be the first of these times, or one that follows closely enough."""
        self.time = times[0]
        for time in times:
            self.time = time if time - self.time <= self.alone() else self.time


class Answer(NamedTuple):
    """An interval and the probability, merged or protected."""

    p0: float
    p1: float
    merged: float

    @property
    def probability(self) -> float:
        """The protected probability."""
        return self.merged


class Aged:
    """A calibrator of the core that is taught labels by age; test_ordered_set.py tests it."""

    def __init__(self, model: Model, classes: Sequence[str] = ()) -> None:
        self._model, self._classes = model, [*classes]
        self._nothing = [0.0] * max(len(classes), 1)

    def __len__(self) -> int:
        """Count the labels that it holds."""
        return self._model.size

    def advance(self, clock: int) -> None:
        """Let labels teach that are old enough by the clock: no observation expires."""
        self._model.step(EXPIRE, self._nothing, 0.0, math.nan, -1, 0, clock)

    def predict_one(
        self,
        score: Any,  # noqa: ANN401 - of its task
        time: float = math.nan,
        *,
        number: int,
        moment: int,
        clock: int,
    ) -> Any:  # noqa: ANN401 - likewise
        """Predict."""
        found = self._model.step(PREDICT, self._row(score), 0.0, time, number, moment, clock)
        assert found is not None
        if not self._classes:
            return Answer(*found[0])
        k = len(self._classes)
        parts = (found[0][at : at + k] for at in range(0, 3 * k, k))
        named: list[Any] = [dict(zip(self._classes, part, strict=True)) for part in parts]
        return MultiInterval(*named)

    def learn_one(  # noqa: PLR0913 - the fields of a step
        self,
        score: Any,  # noqa: ANN401 - of its task
        label: Any,  # noqa: ANN401 - likewise
        *,
        number: int,
        moment: int,
        clock: int,
        time: float = math.nan,
    ) -> None:
        """Take a label."""
        value = self._classes.index(label) if self._classes else label
        row = self._row(score)
        assert self._model.step(LEARN, row, value, time, number, moment, clock) is not None

    def expire_one(self, number: int) -> None:
        """Stop waiting for a label."""
        self._model.step(EXPIRE, self._nothing, 0.0, math.nan, number, 0, NO_CLOCK)

    def _row(self, score: Any) -> list[float]:  # noqa: ANN401 - of its task
        return [score[name] for name in self._classes] if self._classes else [score]


class Naive:
    """A processor that follows the rules, and does nothing else."""

    def __init__(
        self, settings: Settings, *, learner: Scorer | None = None, outcomes: bool = True
    ) -> None:
        """Begin with nothing."""
        self.settings, self.learner, self.outcomes = settings, learner, outcomes
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.clocks: dict[str, Clock] = {}
        self.models: list[str] = []
        self.calibrators: list[tuple[str, str, Any]] = []
        self.pending: list[Pending] = []
        self.early: list[Early] = []
        self.finished: list[Finished] = []
        self.outputs: list[Output] = []
        self.row: int | None = None
        self.numbers: dict[tuple[str, str], int] = {}  # predictions by model and segment
        self.score: Any = 0.0

    def process_many(self, events: list[Event]) -> list[Output]:
        """Apply events in their order."""
        self.outputs = []
        if events:
            self.retire()
        for self.row, event in enumerate(events):
            self.apply(event)
        return self.outputs

    def process(self, event: Event) -> list[Output]:
        """Apply one event."""
        return self.process_many([event])

    @property
    def clock(self) -> int | None:
        """The latest of all clocks."""
        return max((clock.time for clock in self.clocks.values()), default=None)

    def summary(self) -> dict[str, Any]:
        """List what waits and what is remembered, oldest first."""
        return {
            "clocks": [
                (clock.time, clock.known, clock.events, clock.apart, clock.agreed, clock.candidates)
                for clock in self.clocks.values()
            ],
            "models": self.models,
            "segments": [(model, segment, len(c)) for model, segment, c in self.calibrators],
            "pending": [Stored(*entry[:3]) for entry in self.pending],
            "early": [Stored(*entry[:3]) for entry in self.early],
            "finished": self.finished,
        }

    def retire(self) -> None:
        """Forget models without events for long, if there are `max_models`."""
        after, most = self.settings.retire_after, self.settings.max_models
        often = [one for one in self.clocks.values() if one.known and one.events >= 100]
        if after is None or not often or max(len(self.models), len(self.calibrators)) < most:
            return
        latest = sorted(clock.time for clock in often)[-3:][0]
        for model in [one for one in self.models if self.now(one) + after < latest]:
            self.count("retired")
            for pending in [one for one in self.pending if one.model == model]:
                self.counters["expired"] += not pending.assumed
                self.counters["retired_observations"] += not pending.assumed
                self.pending.remove(pending)
            self.finished = [one for one in self.finished if one.model != model]
            self.calibrators = [one for one in self.calibrators if one[0] != model]
            self.numbers = {of: number for of, number in self.numbers.items() if of[0] != model}
            self.models.remove(model)
            del self.clocks[model]
        for early in [one for one in self.early if one.model not in self.models]:
            self.give_up(early)

    def apply(self, event: Event) -> None:
        """Apply an event, or refuse it."""
        observed = isinstance(event, Observation)
        self.count("observations" if observed else "labels_in")
        reason = self.refusal(event)
        if reason is not None:
            self.dead(reason, event, self.row)
            return
        if event.model not in self.models:
            self.models.append(event.model)
            self.clocks[event.model] = Clock(self.settings.jump)
        if isinstance(event, Observation):
            self.calibrator(event)
        first = len(self.outputs)
        self.tick(event, self.clocks[event.model])
        before = len(self.outputs)
        if isinstance(event, Observation):
            self.observe(event)
        else:
            self.label(msgspec.structs.replace(event, value=self.as_learned(event.value)))
        # Labels that leave room for an event come out before what is said of it.
        said, self.outputs = self.outputs[before:], self.outputs[:before]
        gone = [one for one in said if isinstance(one, DeadLetter) and one.row is None]
        self.outputs += gone
        self.fit()
        self.outputs += [one for one in said if all(one is not other for other in gone)]
        self.outputs[first:] = sorted(self.outputs[first:], key=order)

    # Rules 1 to 4

    def refusal(self, event: Event) -> str | None:
        """Return the first rule that an event breaks."""
        for broken in (self.bad_value, self.bad_form, self.in_future, self.too_many, self.unscored):
            reason = broken(event)
            if reason is not None:
                return reason
        return None

    def bad_value(self, event: Event) -> str | None:
        """Rule 1."""
        if isinstance(event, Label):
            return None if self.is_label(event.value) else "bad-label"
        if self.learner is not None:
            return None if isinstance(event.x, dict) else "bad-features"
        return None if self.is_score(event.score) else "bad-score"

    def is_label(self, value: Any) -> bool:  # noqa: ANN401
        """Return a label from anything else."""
        return value in (0, 1)

    def is_score(self, score: Any) -> bool:  # noqa: ANN401
        """Return a score from anything else."""
        try:
            number = float(score) if isinstance(score, Real) else math.nan
        except OverflowError:
            return False
        within = 0 <= number <= 1 or self.settings.scores != "probability"
        return math.isfinite(number) and within

    def bad_form(self, event: Event) -> str | None:
        """Rule 2."""
        if not is_text(event.id) or event.id == "":
            return "bad-id"
        segment = event.segment if isinstance(event, Observation) else ""
        if not is_text(event.model) or not is_text(segment):
            return "bad-model"
        if self.too_long(event):
            return "too-long"
        if isinstance(event.time, bool) or not isinstance(event.time, int):
            return "bad-time"
        half_life = self.settings.half_life
        limit = 2**53 if half_life is None else min(2**53, half_life * 2**50)
        return None if abs(event.time) < limit else "bad-time"

    def too_long(self, event: Event) -> bool:
        """Measure what has a length."""
        names = [event.model, event.segment if isinstance(event, Observation) else ""]
        longest = max(len(name.encode()) for name in names)
        limits = self.settings
        return len(event.id.encode()) > limits.max_id_bytes or longest > limits.max_name_bytes

    def in_future(self, event: Event) -> str | None:
        """Rule 3."""
        if event.recorded is None or event.time <= event.recorded + self.settings.max_clock_skew:
            return None
        return "time-in-future"

    def too_many(self, event: Event) -> str | None:
        """Rule 4."""
        most = self.settings.max_models
        if event.model not in self.models and len(self.models) >= most:
            return "too-many-models"
        if isinstance(event, Label) or len(self.calibrators) < most:
            return None
        known = [(model, segment) for model, segment, _ in self.calibrators]
        return None if (event.model, event.segment) in known else "too-many-models"

    def unscored(self, event: Event) -> str | None:
        """Have an observation scored."""
        if isinstance(event, Label):
            return None
        score = event.score
        if self.learner is not None:
            assert event.x is not None
            try:
                score = self.learner.score(event.x)
            except Exception:  # noqa: BLE001 - a learner may raise anything
                return "learner-failed"
        if not self.is_score(score):
            return "bad-score"
        self.score = self.kept(score)
        return None

    def kept(self, score: Any) -> Any:  # noqa: ANN401
        """Return a score as it is kept."""
        return float(score)

    def as_learned(self, value: Any) -> Any:  # noqa: ANN401
        """Return a label as it is learned."""
        return int(value)

    # Rule 5

    def tick(self, event: Event, clock: Clock) -> None:
        """Let the time of an event move the clock of its model."""
        clock.events += 1
        if not clock.known:
            self.begin(event, clock)
        elif event.time - clock.time > clock.alone():
            self.count("ahead_events")
            self.propose(event, clock)
        elif event.time > clock.time:
            clock.time = event.time
            self.expire(event.model)
        if event.time < clock.time - self.settings.allowed_lateness:
            self.count("late_events")

    def begin(self, event: Event, clock: Clock) -> None:
        """Wait for three ids to know the clock, unless no time can be too far ahead."""
        if clock.jump == 2**53:
            clock.time, clock.known = event.time, True
            return
        if not clock.add(event):
            clock.candidates = [
                one._replace(time=event.time)
                if one.id == event.id and 0 < event.time - one.time <= clock.jump
                else one
                for one in clock.candidates
            ]
        if len(clock.candidates) < 3:
            clock.settle(sorted(one.time for one in clock.candidates))
        else:
            clock.settle(clock.agree()[1:])
            clock.known, clock.candidates = True, clock.far()
            for _ in clock.candidates:
                self.count("ahead_events")
            self.stamp(event.model, None, clock.time)

    def propose(self, event: Event, clock: Clock) -> None:
        """Move the clock far if three ids agree."""
        clock.candidates = clock.far()
        if not clock.add(event) or len(clock.candidates) < 3:
            return
        agreed = clock.candidates
        clock.settle(clock.agree())
        clock.candidates = clock.far()
        for one in agreed:
            self.stamp(event.model, one.id, clock.time)
        self.expire(event.model)

    def stamp(self, model: str, id_: str | None, at: int) -> None:
        """Have the entries of an id come last, and at a time; all of a model without an id."""
        self.pending = stamped(self.pending, model, id_, at)
        self.early = stamped(self.early, model, id_, at)
        self.finished = stamped(self.finished, model, id_, at)

    # Rule 6

    def expire(self, model: str) -> None:
        """Drop what has waited, or has been remembered, for too long."""
        wait, memory = self.settings.label_timeout, self.settings.dedup_ttl
        for pending in [one for one in self.pending if self.over(one, model, wait)]:
            if self.settings.unlabelled is None or pending.assumed:
                self.drop(pending, "expired")
            else:
                self.assume(pending, self.settings.unlabelled)
        for early in [one for one in self.early if self.over(one, model, wait)]:
            self.give_up(early)
        memory = wait if memory is None else memory
        self.finished = [one for one in self.finished if not self.over(one, model, memory)]

    def over(self, entry: Pending | Early | Finished, model: str, span: int) -> bool:
        """Return whether a span that began with an entry is over."""
        return (
            entry.model == model
            and entry.at + span < self.now(model) - self.settings.allowed_lateness
        )

    def now(self, model: str) -> int:
        """Return the clock of a model."""
        return self.clocks[model].time

    def fit(self) -> None:
        """Drop entries until what they keep fits into `max_bytes`."""
        while self.size() > self.settings.max_bytes:
            if self.finished:
                self.finished.pop(0)
                self.count("forgotten")
            elif self.early:
                self.evict(self.early[0])
            else:
                self.drop(self.pending[0], "evicted")

    def assume(self, entry: Pending, value: Any) -> None:  # noqa: ANN401
        """Learn a label that did not come, and wait once more."""
        self.count("assumed")
        observation = entry.observation
        time = observation.time + self.settings.label_timeout
        self.learn(entry, Label(entry.id, time, entry.model, value), row=None, assumed=True)
        self.pending.remove(entry)
        self.pending.append(entry._replace(at=self.now(entry.model), assumed=True))

    def size(self) -> int:
        """Count the bytes of ids and features, and of weights and forecasts of experts."""
        held: list[Any] = [*self.pending, *self.early, *self.finished]
        size = sum(len(one.id.encode()) for one in held)
        counts = (len(self.pending), len(self.early), len(self.finished))
        size += sum(n * each for n, each in zip(counts, ENTRY_BYTES, strict=True))
        if self.settings.protected:
            weights, kept = 11, 26  # of methods; forecasts, features and log odds
            size += sum(not one.assumed for one in self.pending) * (weights + kept) * 8
        if self.learner is None:
            return size
        waiting = [one for one in self.pending if not one.assumed]
        return size + sum(len(msgspec.msgpack.encode(one.observation.x)) for one in waiting)

    def drop(self, entry: Pending, reason: str) -> None:
        """Stop waiting for a label."""
        self.pending.remove(entry)
        if not entry.assumed:
            self.count(reason)
            self.calibrator(entry.observation).expire_one(entry.number)
        self.remember(entry.model, entry.id, labelled=False)

    def evict(self, entry: Early) -> None:
        """Stop waiting for an observation, for want of room."""
        self.count("evicted_labels")
        self.give_up(entry)

    def give_up(self, entry: Early) -> None:
        """Stop waiting for an observation."""
        self.early.remove(entry)
        self.count("unknown_labels")
        self.dead("unknown-id", entry.label, None)

    def remember(self, model: str, id_: str, *, labelled: bool) -> None:
        """Remember a finished id, and drop the oldest beyond the limit."""
        self.finished.append(Finished(model, id_, self.now(model), labelled))
        own = self.of(self.finished, model)
        if len(own) > self.settings.dedup_max_ids:
            self.finished.remove(own[0])
            self.count("forgotten")

    # Rules 7 to 9

    def observe(self, event: Observation) -> None:
        """Predict an observation that is no duplicate."""
        if self.find(self.pending, event) or self.find(self.finished, event):
            self.count("duplicate_observations")
            return
        early = self.find(self.early, event)
        own = self.of(self.pending, event.model)
        if early is None and len(own) == self.settings.max_pending:
            self.drop(own[0], "evicted")
        number = self.number(event)
        prediction = self.predict(event)
        self.numbers[event.model, event.segment] = number + 1
        entry = Pending(event.model, event.id, self.now(event.model), event, prediction, number)
        self.pending.append(entry)
        if early is not None:
            self.early.remove(early)
            self.settle(entry, early.label)

    def predict(self, event: Observation) -> Any:  # noqa: ANN401
        """Predict with the calibrator of the model and segment."""
        calibrator = self.calibrator(event)
        prediction = self.answer(calibrator, event)
        self.count("predictions")
        self.outputs.append(prediction)
        return prediction

    def answer(self, calibrator: Any, event: Observation) -> Any:  # noqa: ANN401
        """Make a prediction of what a calibrator returned."""
        number, aged = self.number(event), self.aged(event)
        if aged:
            calibrator.advance(aged["clock"])
        given, n = self.when(event) | aged, len(calibrator)
        interval = calibrator.predict_one(self.score, number=number, **given)
        p0, p1 = interval.p0, interval.p1
        p = interval.probability if self.settings.protected else interval.merged
        return Prediction(
            id=event.id,
            time=event.time,
            model=event.model,
            score=self.score,
            p0=p0,
            p1=p1,
            p=p,
            n_labels=n,
            segment=event.segment,
            extra=event.extra,
        )

    def number(self, event: Observation) -> int:
        """Return the number of the next prediction of a model and segment."""
        return self.numbers.get((event.model, event.segment), 0)

    def calibrator(self, event: Observation) -> Any:  # noqa: ANN401
        """Find the calibrator of the model and segment, or make it."""
        for model, segment, calibrator in self.calibrators:
            if (model, segment) == (event.model, event.segment):
                return calibrator
        made = self.made()
        self.calibrators.append((event.model, event.segment, made))
        return made

    def made(self) -> Any:  # noqa: ANN401
        """Make a calibrator."""
        s = self.settings
        if s.labels_after is not None:
            native = make_task(s).native()
            assert native is not None
            return Aged(native[0], s.classes)
        if s.protected:
            rule = (s.window, s.max_age, s.half_life)
            return ProtectedVennAbers(*rule, scores=s.scores, raw_weight=s.raw_weight)
        return merged(s)

    def when(self, event: Observation) -> dict[str, float]:
        """Return the time of an observation to a calibrator that forgets by time."""
        if not self.aging():
            return {}
        clock = self.clocks[event.model]
        return {"time": min(event.time, clock.time) if clock.known else event.time}

    def aged(self, event: Observation) -> dict[str, int]:
        """Return time and clock for a calibrator that is taught labels by age."""
        if not isinstance(self.calibrator(event), Aged):
            return {}
        clock = self.clocks[event.model]
        if not clock.known:
            return {"moment": event.time, "clock": NO_CLOCK}
        return {"moment": min(event.time, clock.time), "clock": clock.time}

    def aging(self) -> bool:
        """Return whether calibrators forget by time."""
        return self.settings.max_age is not None or self.settings.half_life is not None

    def label(self, event: Label) -> None:
        """Use a label that is no duplicate, or let it wait."""
        finished = self.find(self.finished, event)
        if finished is not None:
            self.count("duplicate_labels" if finished.labelled else "late_labels")
        elif self.find(self.early, event):
            self.count("duplicate_labels")
        elif (entry := self.find(self.pending, event)) is not None:
            self.settle(entry, event)
        else:
            self.count("early_labels")
            self.early.append(Early(event.model, event.id, self.now(event.model), event))
            own = self.of(self.early, event.model)
            if len(own) > self.settings.max_early:
                self.evict(own[0])

    def settle(self, entry: Pending, event: Label) -> None:
        """Learn the label of an observation, unless one was assumed."""
        self.pending.remove(entry)
        self.remember(event.model, event.id, labelled=True)
        if not entry.assumed:
            self.learn(entry, event, row=self.row)
            return
        self.count("late_labels")
        if self.outcomes:
            late = self.outcome(entry.prediction, event)
            self.outputs.append(msgspec.structs.replace(late, late=True))

    def learn(
        self, entry: Pending, event: Label, *, row: int | None, assumed: bool = False
    ) -> None:
        """Learn the label of an observation."""
        observation, prediction = entry.observation, entry.prediction
        calibrator = self.calibrator(observation)
        if self.clocks[event.model].known or not self.aging():
            given = self.when(observation) | self.aged(observation) | {"number": entry.number}
            calibrator.learn_one(prediction.score, event.value, **given)
        else:
            calibrator.expire_one(entry.number)
        if not assumed:
            self.count("labels")
        if self.outcomes:
            outcome = self.outcome(prediction, event)
            of = {"assumed": True} if assumed else {}
            self.outputs.append(msgspec.structs.replace(outcome, **of))
        if self.learner is not None:
            assert observation.x is not None
            try:
                self.learner.learn(observation.x, event.value)
            except Exception:  # noqa: BLE001 - a learner may raise anything
                self.count("unlearned")
                self.dead("learner-failed", event, row)

    def outcome(self, prediction: Any, label: Label) -> Any:  # noqa: ANN401
        """Return the outcome of a label and the prediction that it settles."""
        return Outcome(
            id=prediction.id,
            time=label.time,
            model=prediction.model,
            prediction_time=prediction.time,
            label=label.value,
            score=prediction.score,
            p0=prediction.p0,
            p1=prediction.p1,
            p=prediction.p,
            segment=prediction.segment,
        )

    # What all of them need

    @staticmethod
    def of(entries: list[Any], model: str) -> list[Any]:
        """Return the entries of a model."""
        return [one for one in entries if one.model == model]

    @staticmethod
    def find(entries: list[Any], event: Event) -> Any:  # noqa: ANN401
        """Find the entry of an event's id, None if there is none."""
        for entry in entries:
            if (entry.model, entry.id) == (event.model, event.id):
                return entry
        return None

    def count(self, name: str) -> None:
        """Increment a counter."""
        self.counters[name] += 1

    def dead(self, reason: str, event: Event, row: int | None) -> None:
        """Put out a dead letter; its text is the processor's own."""
        self.count(f"dead:{reason}")
        self.outputs.append(DeadLetter(reason, reason, event, row))


def stamped(entries: list[Any], model: str, id_: str | None, at: int) -> list[Any]:
    """Have the entries of an id come last, at a time; without an id all of a model, in place."""
    if id_ is None:
        return [one._replace(at=at) if one.model == model else one for one in entries]
    found = [one for one in entries if (one.model, one.id) == (model, id_)]
    return [one for one in entries if one not in found] + [one._replace(at=at) for one in found]


def order(output: Output) -> int:
    """Put what an event brought to an end before what comes of the event itself."""
    if isinstance(output, DeadLetter) and output.row is None:
        return 1 if output.reason == "unknown-id" else 2
    return 0 if getattr(output, "assumed", False) else 3


def is_text(name: object) -> bool:
    """Return text from other objects, and from strings that no encoding can hold."""
    return isinstance(name, str) and not any("\ud800" <= c <= "\udfff" for c in name)
