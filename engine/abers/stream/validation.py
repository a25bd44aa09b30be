"""Validation of events, before anything changes.

A rejected event changes nothing but a counter. The checks of an event depend on the event and on
the models seen so far, on nothing else. A batch in which nothing is unusual is checked a column at
a time, any other one event at a time; the result is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from abers.backends import core
from abers.exceptions import InputError, LabelError, ScoreError, SettingsError
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.name_columns import fits, is_text, names_of, numbers_of
from abers.stream.readers import are_scalars
from abers.stream.settings import LARGEST_TIME
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from abers.arrays import Bytes, Floats, Integers
    from abers.stream.columns import Column, Events
    from abers.stream.events import Event
    from abers.stream.name_columns import BatchNames, Numbers
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import Task

__all__ = ["EventValidator", "ValidEvents", "require_limits"]


class ValidEvents(NamedTuple):
    """Valid events of a batch, a row each."""

    events: Events
    rows: Integers  # in the batch
    kinds: Bytes  # 0 for an observation, 1 for a label
    models: Numbers
    keys: Numbers  # of the pairs of model and segment; 0 for labels
    times: Integers
    scores: Floats  # of shape (n, width of a score); 0 for labels
    values: Floats  # labels as numbers of `Task.value`; of observations the bytes of the features
    rejected: list[DeadLetter]  # of the other events


class _Rejection(Exception):  # noqa: N818 - caught in this module
    """An event that cannot be used."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class EventValidator:
    """Validate events, and number the models and segments that they name.

    A learner scores an observation last, so that a rejected one creates no learner for its model.

    Attributes
    ----------
    models, keys
        Number of each model, and of each pair of model and segment, in order of appearance.
    """

    def __init__(
        self, settings: Settings, task: Task, score: Callable[[Observation], Any] | None
    ) -> None:
        self._settings, self._task, self._by_features = settings, task, score
        # Doubles do not resolve half-lives further from zero.
        self._latest = min(LARGEST_TIME, (settings.half_life or LARGEST_TIME) << 50)
        self.models: dict[str, int] = {}
        self.keys: dict[tuple[str, str], int] = {}

    def validate(
        self, events: Events, accept: Callable[[int, Event, float], None] | None = None
    ) -> ValidEvents:
        """Validate a batch, in order of arrival.

        With `accept`, call it with row, event and `values` of each valid event before the next one
        is validated.
        """
        plain = self._plain(events) if accept is None else None
        if plain is None:
            return self._one_by_one(events, accept)
        return self._numbered(events, np.arange(len(events)), *plain, [])

    def renumber(self, models: Sequence[str]) -> None:
        """Keep only these models, and number them in this order."""
        pairs = [pair for pair in self.keys if pair[0] in {*models}]
        self.models = {name: number for number, name in enumerate(models)}
        self.keys = {pair: number for number, pair in enumerate(pairs)}

    def known(self, event: Event) -> tuple[int, int, Any] | None:
        """Return the numbers of the model and of the key of an event, and its score or value.

        A score is a row of `Task.score`, and the key of a label 0. None if the model or the key is
        new, or anything is unusual, so that `validate` has to decide; nothing changes.
        """
        if type(event) not in {Observation, Label} or not self._is_plain(event):
            return None
        model = self.models.get(event.model)
        key: int | None = 0
        given: Any
        try:
            if type(event) is Label:
                given = self._task.value(event.value)
            elif type(event) is Observation:
                score = self._task.score(event.score, event.id)
                given = [score] if type(score) is float else score
                pair = (event.model, event.segment)
                key = self.keys.get(pair) if type(event.segment) is str else None
        except InputError:
            return None
        return None if model is None or key is None else (model, key, given)

    def _is_plain(self, event: Event) -> bool:
        """Return whether id and times are valid for certain, and the model is a string."""
        id_, time, recorded = event.id, event.time, event.recorded
        if not type(id_) is type(event.model) is str or type(time) is not int:
            return False
        if not (id_.isascii() and 0 < len(id_) <= self._settings.max_id_bytes):
            return False
        if type(event) is Observation and event.extra and not are_scalars(event.extra):
            return False
        if not -self._latest < time < self._latest:
            return False
        if recorded is None:
            return True
        return type(recorded) is int and time - recorded <= self._settings.max_clock_skew

    # A column at a time

    def _plain(self, events: Events) -> tuple[BatchNames, Floats, Floats] | None:
        """Return names, scores and values if nothing is unusual, so that all events are valid."""
        plain = (
            self._by_features is None
            and len(events) > 0
            and core.are_names(events.ids.tolist(), self._settings.max_id_bytes)
            and self._plain_times(events.times, events.recorded)
        )
        named = names_of(events, self._settings.max_name_bytes) if plain else None
        if named is None or not self._has_room(named):
            return None
        found = self._task.columns(events)
        return None if found is None else (named, *found)

    def _plain_times(self, times: Column, recorded: Column | None) -> bool:
        if times.dtype != np.int64 or (recorded is not None and recorded.dtype != np.int64):
            return False
        if not -self._latest < times.min() <= times.max() < self._latest:
            return False
        # Times are small, so this difference cannot overflow.
        return recorded is None or bool((times - self._settings.max_clock_skew <= recorded).all())

    def _has_room(self, named: BatchNames) -> bool:
        most = self._settings.max_models
        return (
            len(self.models.keys() | {*named.models}) <= most
            and len(self.keys.keys() | {*named.pairs}) <= most
        )

    def _numbered(  # noqa: PLR0913, PLR0917 - a column each
        self,
        events: Events,
        rows: Integers,
        named: BatchNames,
        scores: Floats,
        values: Floats,
        rejected: list[DeadLetter],
    ) -> ValidEvents:
        """Return valid events with the numbers of their models and keys."""
        keys = np.zeros(len(events), np.uint32)
        keys[~events.labels] = numbers_of(named.pairs, self.keys)[named.pair]
        return ValidEvents(
            events,
            rows,
            events.labels.astype(np.uint8),
            numbers_of(named.models, self.models)[named.model],
            keys,
            events.times.astype(np.int64, copy=False),
            scores,
            values,
            rejected,
        )

    # An event at a time

    def _one_by_one(
        self, events: Events, accept: Callable[[int, Event, float], None] | None
    ) -> ValidEvents:
        """Validate events one after another, and pass each valid one to `accept`."""
        rows: list[int] = []
        rejected: list[DeadLetter] = []
        scores = np.zeros((len(events), self._task.score_width))
        values = np.zeros(len(events))
        for row, event in enumerate(events):
            try:
                value = self._value(event)
                self._check(event)
                if self._by_features is not None and type(event) is Observation:
                    values[row] = value
                    value = self._score(event, self._by_features)
            except _Rejection as why:
                rejected.append(DeadLetter(why.reason, str(why), event, row))
                continue
            self.models.setdefault(event.model, len(self.models))
            if type(event) is Observation:
                self.keys.setdefault((event.model, event.segment), len(self.keys))
                scores[row] = value
            else:
                values[row] = value
            rows.append(row)
            if accept is not None:
                accept(row, event, values[row])
        kept = np.array(rows, np.int64)
        valid = events.take(kept)
        # The names are checked, so there are some.
        named = cast("BatchNames", names_of(valid, self._settings.max_name_bytes))
        return self._numbered(valid, kept, named, scores[kept], values[kept], rejected)

    def _value(self, event: Event) -> Any:  # noqa: ANN401 - as the task has it
        """Check score, features or label, and return a value; of features their size."""
        try:
            if type(event) is Label:
                return self._task.value(event.value)
            if type(event) is Observation and self._by_features is None:
                id_ = event.id if type(event.id) is str else ""  # `_check` rejects it
                return self._task.score(event.score, id_)
        except ScoreError as error:
            raise _Rejection("bad-score", str(error)) from None
        except LabelError as error:
            raise _Rejection("bad-label", str(error)) from None
        return _features_bytes(event)

    def _score(self, event: Observation, score: Callable[[Observation], Any]) -> Any:  # noqa: ANN401
        """Return the learner's score of an observation, or reject the observation."""
        try:
            given = score(event)
        except Exception as error:  # noqa: BLE001 - whatever a learner raises
            detail = (
                f"the learner failed on {shown(event.id)} ({shown(error)}); "
                "choose another, or repair the features"
            )
            raise _Rejection("learner-failed", detail) from None
        try:
            return self._task.score(given, event.id)
        except ScoreError as error:
            raise _Rejection("bad-score", str(error)) from None

    def _check(self, event: Event) -> None:
        """Check all but the value."""
        id_, time = event.id, event.time
        if not is_text(id_) or not id_:
            raise _Rejection("bad-id", f"id {shown(id_)} must be a non-empty string")
        for name in (event.model, event.segment if type(event) is Observation else ""):
            if not is_text(name):
                raise _Rejection("bad-model", f"model or segment {shown(name)} must be a string")
        self._check_lengths(event)
        if type(time) is not int or not -self._latest < time < self._latest:
            detail = (
                f"time {shown(time)} must be a whole number of ms within {self._latest} of zero"
            )
            raise _Rejection("bad-time", detail)
        self._check_future(event)
        self._check_crowd(event)

    def _check_lengths(self, event: Event) -> None:
        """Reject an event whose id or names are too long."""
        segment = event.segment if type(event) is Observation else ""
        for what, text, name in (
            ("id", event.id, "max_id_bytes"),
            ("model", event.model, "max_name_bytes"),
            ("segment", segment, "max_name_bytes"),
        ):
            if not fits(text, most := getattr(self._settings, name)):
                detail = (
                    f"{what} {shown(text)} takes {len(text.encode()):,} bytes, and {name}={most}; "
                    f"shorten it, or raise {name}"
                )
                raise _Rejection("too-long", detail)

    def _check_future(self, event: Event) -> None:
        """Reject an event that is too far ahead of its record."""
        recorded, limit = event.recorded, self._settings.max_clock_skew
        if recorded is None:
            return
        if type(recorded) is not int:
            raise _Rejection("bad-time", f"recorded {shown(recorded)} must be a whole number of ms")
        ahead = event.time - recorded
        if ahead > limit:
            detail = (
                f"time {event.time} is {shown(ahead)} ms ahead of its record, "
                f"max_clock_skew allows {limit}; repair the producer's clock, or raise "
                "max_clock_skew"
            )
            raise _Rejection("time-in-future", detail)

    def _check_crowd(self, event: Event) -> None:
        """Reject an event of a new model or segment beyond `max_models`."""
        most = self._settings.max_models
        if event.model not in self.models and len(self.models) >= most:
            what = f"model {shown(event.model)}"
        elif (
            type(event) is Observation
            and (event.model, event.segment) not in self.keys
            and len(self.keys) >= most
        ):
            what = f"segment {shown(event.segment)} of model {shown(event.model)}"
        else:
            return
        detail = (
            f"{what} is new, and max_models={most} are there already; raise max_models, or set "
            "retire_after"
        )
        raise _Rejection("too-many-models", detail)


def require_limits(settings: Settings, count: int, names: list[str], ids: list[str]) -> None:
    """Raise a SettingsError if a state exceeds the limits.

    It has so many models, or pairs of model and segment if these are more; names of both, and ids.
    """
    name_bytes = max((len(name.encode()) for name in names), default=0)
    short = core.are_names(ids, settings.max_id_bytes)
    id_bytes = 0 if short else max(len(one.encode()) for one in ids)
    for name, least, what in (
        ("max_models", count, f"{count:,} models or segments"),
        ("max_name_bytes", name_bytes, f"a model or segment of {name_bytes:,} bytes"),
        ("max_id_bytes", id_bytes, f"an id of {id_bytes:,} bytes"),
    ):
        if least > (most := getattr(settings, name)):
            msg = f"the state holds {what}, and {name}={most}; set {name} to {least} or more"
            raise SettingsError(msg)


def _features_bytes(event: Event) -> int:
    x = getattr(event, "x", None)
    if type(x) is not dict:
        detail = f"x={shown(x)} must be a dict of features; send those that the learner scores"
        raise _Rejection("bad-features", detail)
    try:  # features that cannot be saved would fail every snapshot while they wait
        return len(msgspec.msgpack.encode(x))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        detail = f"features of {shown(event.id)} cannot be kept ({error}); send what JSON can hold"
        raise _Rejection("bad-features", detail) from None
