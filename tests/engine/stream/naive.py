"""The stream processor as the plainest Python, which the tests compare with.

Governing rule: nothing here is clever. What waits and what is remembered are lists, each oldest
first, searched from their beginning; events are applied one at a time. The rules, in the order
in which they are looked at:

1. *Values.* A score is a finite real number (a probability where the settings say so); with a
   learner the features are a dictionary. A label is 0 or 1.
2. *Validity.* The id is a text that is not empty, model and segment are texts, none of them is
   too long in UTF-8, the time is a whole number less than 2**53 (and 2**50 half-lives) from zero.
3. *Future.* The time is at most `max_ahead` after the record was written or, where that is not
   known, at most `max_jump` after the clock.
4. *Caps.* At most `max_models` models, and as many segments of all models. Then the learner
   scores, which has to give what rule 1 asks for.
5. *Clock.* An event that passed 1-4 moves the clock to its time if that is later, and is late
   if its time is more than `lateness` behind. Its model and segment are known from now on.
6. *Expiry.* What was stored more than a span before the clock less the lateness goes:
   observations that wait (then remembered as gone), labels that wait, remembered ids.
7. *Duplicates* of what waits or is remembered are counted and change nothing more.
8. *An observation* is predicted, and settled at once if its label waits; else it waits.
9. *A label* settles its observation if that waits: the calibrator learns the score of the
   prediction, the learner the features. Else it waits.

Beyond its limit each list loses its oldest entry.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from abers import VennAbers
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

if TYPE_CHECKING:
    from tests.engine.stream.cases import Scorer

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
COUNTERS = (
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


class Stored(NamedTuple):
    """Something that waits or is remembered, and the clock at which that began."""

    model: str
    id: str
    at: int


class Pending(NamedTuple):
    """An observation that waits, with what was said of it."""

    model: str
    id: str
    at: int
    observation: Observation
    prediction: Any


class Early(NamedTuple):
    """A label that waits."""

    model: str
    id: str
    at: int
    label: Label


class Finished(NamedTuple):
    """An id that is done with."""

    model: str
    id: str
    at: int
    labelled: bool


class Naive:
    """A processor that obeys the rules, and nothing else."""

    def __init__(
        self, settings: Settings, *, learner: Scorer | None = None, outcomes: bool = True
    ) -> None:
        """Begin with nothing."""
        self.settings, self.learner, self.outcomes = settings, learner, outcomes
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.clock: int | None = None
        self.models: list[str] = []
        self.calibrators: list[tuple[str, str, Any]] = []
        self.pending: list[Pending] = []
        self.early: list[Early] = []
        self.finished: list[Finished] = []
        self.outputs: list[Output] = []
        self.row: int | None = None
        self.score: Any = 0.0

    def process_many(self, events: list[Event]) -> list[Output]:
        """Apply events in their order."""
        self.outputs = []
        for self.row, event in enumerate(events):
            self.apply(event)
        return self.outputs

    def process(self, event: Event) -> list[Output]:
        """Apply one event."""
        return self.process_many([event])

    def summary(self) -> dict[str, Any]:
        """List what waits and what is remembered, oldest first."""
        return {
            "clock": self.clock,
            "models": self.models,
            "segments": [(model, segment, len(c)) for model, segment, c in self.calibrators],
            "pending": [Stored(*entry[:3]) for entry in self.pending],
            "early": [Stored(*entry[:3]) for entry in self.early],
            "finished": self.finished,
        }

    def apply(self, event: Event) -> None:
        """Apply an event, or refuse it."""
        observed = isinstance(event, Observation)
        self.count("observations" if observed else "labels_in")
        reason = self.refusal(event)
        if reason is not None:
            self.dead(reason, event, self.row)
            return
        self.clock = event.time if self.clock is None else max(self.clock, event.time)
        if event.time < self.clock - self.settings.lateness:
            self.count("late_events")
        if event.model not in self.models:
            self.models.append(event.model)
        if isinstance(event, Observation):
            self.calibrator(event)
        self.expire()
        if isinstance(event, Observation):
            self.observe(event)
        else:
            self.label(msgspec.structs.replace(event, value=self.told(event.value)))

    # Rules 1 to 4

    def refusal(self, event: Event) -> str | None:
        """Give the first rule that an event breaks."""
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
        """Tell a label from anything else."""
        return value in (0, 1)

    def is_score(self, score: Any) -> bool:  # noqa: ANN401
        """Tell a score from anything else."""
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
        if event.recorded is not None:
            far = event.time > event.recorded + self.settings.max_ahead
        else:
            far = self.clock is not None and event.time > self.clock + self.settings.max_jump
        return "time-in-future" if far else None

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
        """Give a score as it is kept."""
        return float(score)

    def told(self, value: Any) -> Any:  # noqa: ANN401
        """Give a label as it is learned."""
        return int(value)

    # Rule 6

    def expire(self) -> None:
        """Let go what has waited, or has been remembered, for too long."""
        wait, memory = self.settings.label_wait, self.settings.dedup_for
        for pending in [entry for entry in self.pending if self.over(entry.at, wait)]:
            self.count("expired")
            self.drop(pending)
        for early in [entry for entry in self.early if self.over(entry.at, wait)]:
            self.give_up(early)
        memory = wait if memory is None else memory
        self.finished = [entry for entry in self.finished if not self.over(entry.at, memory)]

    def over(self, at: int, span: int) -> bool:
        """Tell whether a span that began then is over."""
        return at + span < self.now() - self.settings.lateness

    def now(self) -> int:
        """Give the clock, which the first event has set."""
        assert self.clock is not None
        return self.clock

    def drop(self, entry: Pending) -> None:
        """Stop waiting for a label."""
        self.pending.remove(entry)
        self.remember(entry.model, entry.id, labelled=False)

    def give_up(self, entry: Early) -> None:
        """Stop waiting for an observation."""
        self.early.remove(entry)
        self.count("unknown_labels")
        self.dead("unknown-id", entry.label, None)

    def remember(self, model: str, id_: str, *, labelled: bool) -> None:
        """Remember an id that is done with, the newest at the cost of the oldest."""
        self.finished.append(Finished(model, id_, self.now(), labelled))
        if len(self.finished) > self.settings.dedup_max:
            self.finished.pop(0)
            self.count("forgotten")

    # Rules 7 to 9

    def observe(self, event: Observation) -> None:
        """Predict an observation that is no duplicate."""
        if self.find(self.pending, event) or self.find(self.finished, event):
            self.count("duplicate_observations")
            return
        prediction = self.predict(event)
        entry = Pending(event.model, event.id, self.now(), event, prediction)
        self.pending.append(entry)
        early = self.find(self.early, event)
        if early is not None:
            self.early.remove(early)
            self.settle(entry, early.label)
        if len(self.pending) > self.settings.max_pending:
            self.count("evicted")
            self.drop(self.pending[0])

    def predict(self, event: Observation) -> Any:  # noqa: ANN401
        """Let the calibrator of the model and segment answer."""
        calibrator = self.calibrator(event)
        prediction = self.answer(calibrator, event)
        self.count("predictions")
        self.outputs.append(prediction)
        return prediction

    def answer(self, calibrator: Any, event: Observation) -> Any:  # noqa: ANN401
        """Put the answer of a calibrator into words."""
        interval = calibrator.predict_one(self.score, **self.when(event))
        p0, p1, p, n = interval.p0, interval.p1, interval.log, len(calibrator)
        return Prediction(
            id=event.id,
            time=event.time,
            model=event.model,
            score=self.score,
            p0=p0,
            p1=p1,
            p=p,
            n=n,
            segment=event.segment,
            extra=event.extra,
        )

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
        return VennAbers(window=s.window, max_age=s.max_age, half_life=s.half_life)

    def when(self, event: Observation) -> dict[str, float]:
        """Give the time of an observation to a calibrator that forgets by time."""
        aging = self.settings.max_age is not None or self.settings.half_life is not None
        return {"time": event.time} if aging else {}

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
            self.early.append(Early(event.model, event.id, self.now(), event))
            if len(self.early) > self.settings.max_early:
                self.give_up(self.early[0])

    def settle(self, entry: Pending, event: Label) -> None:
        """Learn what a label says of an observation."""
        observation, prediction = entry.observation, entry.prediction
        self.pending.remove(entry)
        when = self.when(observation)
        self.calibrator(observation).learn_one(prediction.score, event.value, **when)
        self.count("labels")
        self.remember(event.model, event.id, labelled=True)
        if self.outcomes:
            self.outputs.append(self.outcome(prediction, event))
        if self.learner is not None:
            assert observation.x is not None
            try:
                self.learner.learn(observation.x, event.value)
            except Exception:  # noqa: BLE001 - a learner may raise anything
                self.dead("learner-failed", event, self.row)

    def outcome(self, prediction: Any, label: Label) -> Any:  # noqa: ANN401
        """Put a label beside the prediction that it settles."""
        return Outcome(
            id=prediction.id,
            time=label.time,
            model=prediction.model,
            predicted=prediction.time,
            label=label.value,
            score=prediction.score,
            p0=prediction.p0,
            p1=prediction.p1,
            p=prediction.p,
            segment=prediction.segment,
        )

    # What all of them need

    @staticmethod
    def find(entries: list[Any], event: Event) -> Any:  # noqa: ANN401
        """Find the entry of an event's id, None if there is none."""
        for entry in entries:
            if (entry.model, entry.id) == (event.model, event.id):
                return entry
        return None

    def count(self, name: str) -> None:
        """Count one."""
        self.counters[name] += 1

    def dead(self, reason: str, event: Event, row: int | None) -> None:
        """Put an event out that cannot be used; the wording is the processor's own."""
        self.count(f"dead:{reason}")
        self.outputs.append(DeadLetter(reason, reason, event, row))


def is_text(name: object) -> bool:
    """Tell text from other objects, and from strings that no encoding can hold."""
    return isinstance(name, str) and not any("\ud800" <= c <= "\udfff" for c in name)
