"""What a batch decides before anything changes: valid events, their names, steps, and dead letters.

Limits, clocks and learners are asked once, when a batch comes. What they say is all that the state
needs to change, now or when a journal is applied.

A rejected event changes nothing but a counter. The checks of an event depend on the event and on
the models seen so far, on nothing else. A batch in which nothing is unusual is checked a column at
a time, any other one event at a time; the result is the same.
"""

from __future__ import annotations

from itertools import count, repeat
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar, cast

import msgspec
import numpy as np

from abers.backends import core
from abers.exceptions import InputError, LabelError, ScoreError, SettingsError
from abers.stream.columns import names_of
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.option import Ref, RefusedScoreError, fits, is_text, said
from abers.stream.readers import are_scalars
from abers.stream.settings import LARGEST_TIME, setting_options
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from abers.arrays import Bytes, Floats, Integers
    from abers.stream.cells import BadRecordError, Column
    from abers.stream.columns import BatchNames, Events
    from abers.stream.events import Event
    from abers.stream.option import Front, Part
    from abers.stream.settings import Settings
    from abers.stream.tasks.base import PredictionRows, Task

    Accept: TypeAlias = Callable[[int, Event, int, int, float], None]

__all__ = [
    "ENDS",
    "Decided",
    "EventValidator",
    "ExpiredObservations",
    "JoinedBatch",
    "JoinedSteps",
    "ModelNames",
    "NewNames",
    "Retired",
    "require_limits",
]

ENDS = 2
"""The kind of an event that says that no label will come."""


class Decided(NamedTuple):
    """A batch after all decisions about it; columns have a row for each valid event."""

    labels: NDArray[np.bool_]  # which events of the batch are labels
    events: Events  # the valid ones
    rows: Integers  # in the batch
    kinds: Bytes  # 0 for an observation, 1 for a label, `ENDS` where no label will come
    models: NDArray[np.uint32]  # numbers, after what is retired is gone
    keys: NDArray[np.uint32]  # of the pairs of model and segment; 0 for labels
    times: Integers
    scores: Floats  # of shape (n, width of a score); 0 for labels
    values: Floats  # labels as numbers of `Task.value`; of observations the bytes of the features
    new_models: Sequence[str]
    new_keys: Sequence[tuple[str, str]]
    rejected: Sequence[tuple[int, str]]  # row and reason of each other event
    dead_letters: Sequence[DeadLetter] = ()  # of these; a journal does not keep them
    retired: Sequence[int] = ()  # numbers of the models that are forgotten before the batch
    issued: PredictionRows | None = None  # predictions that were made; None: they are to be made


class JoinedSteps(NamedTuple):
    """Steps of calibrators, a row each."""

    learns: Bytes  # 0 predicts, 1 learns
    rows: Integers  # row of the valid event that causes the step
    slots: Integers  # where the prediction is stored
    keys: Integers  # number of the calibrator
    times: Integers  # event time of the observation
    label_times: Integers  # event time of the label that is learned
    clocks: Integers  # clock of the model; `NO_CLOCK` where it is not known yet
    values: Floats  # value of the label that is learned
    assumed: Column  # id of the observation if its label is assumed, else None

    def take(self, rows: Any) -> JoinedSteps:  # noqa: ANN401 - anything indexes an array
        """Return some of the steps."""
        return JoinedSteps(*(column[rows] for column in self))

    def merged(self, later: JoinedSteps) -> JoinedSteps:
        """Return these steps and others in the order of the events, these first of one event."""
        columns = [np.concatenate(pair) for pair in zip(self, later, strict=True)]
        return JoinedSteps(*columns).take(np.argsort(columns[1], kind="stable"))


class ExpiredObservations(NamedTuple):
    """Observations that no longer wait for a label, a row each."""

    rows: Integers  # row of the valid event at which it expires
    slots: Integers  # where the prediction was stored
    keys: Integers  # number of the calibrator
    last: Integers  # 1 if after the steps of the event, as its bytes took the room; else 0


class JoinedBatch(NamedTuple):
    """The steps that the valid events of a batch cause, and its dead letters by row."""

    decided: Decided
    steps: JoinedSteps
    dead_letters: list[tuple[int, DeadLetter]]
    expired: ExpiredObservations
    late: JoinedSteps  # labels that came after others were assumed; these are not learned


class Retired(NamedTuple):
    """Retired models, in the order of the numbers that they had."""

    numbers: Sequence[int]
    names: Sequence[str]
    dead_letters: Sequence[tuple[int, DeadLetter]]  # labels that waited for observations; in row 0


K = TypeVar("K")


class ModelNames:
    """The models of a stream, and its pairs of model and segment, each with its number.

    Attributes
    ----------
    models, keys
        Number of each model, and of each pair.
    by_number, pairs
        Models, and pairs, by their numbers.
    """

    def __init__(self, models: Sequence[str] = (), keys: Sequence[tuple[str, str]] = ()) -> None:
        self.by_number: list[str] = []
        self.pairs: list[tuple[str, str]] = []
        self.models: dict[str, int] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self.add(models, keys)

    def add(self, models: Sequence[str], keys: Sequence[tuple[str, str]]) -> None:
        """Add new models and pairs, which get the next numbers."""
        self.models.update(zip(models, count(len(self.models)), strict=False))
        self.keys.update(zip(keys, count(len(self.keys)), strict=False))
        self.by_number += models
        self.pairs += keys

    def without(self, gone: Collection[int]) -> ModelNames:
        """Return the names without the models of some numbers; the others are renumbered."""
        if not gone:
            return self
        models = [name for name, number in self.models.items() if number not in gone]
        kept = {*models}
        return ModelNames(models, [pair for pair in self.pairs if pair[0] in kept])


class NewNames(Generic[K]):
    """Names that a batch brings, with the numbers that follow those of known names.

    Examples
    --------
    >>> names = NewNames({"a": 0})
    >>> names.numbers(["b", "a", "b"]).tolist(), names.new
    ([1, 0, 1], {'b': 1})
    """

    def __init__(self, known: Mapping[K, int]) -> None:
        self._known = known
        self.new: dict[K, int] = {}

    def __len__(self) -> int:
        """Return the number of names, known and new."""
        return len(self._known) + len(self.new)

    def __contains__(self, name: object) -> bool:
        """Return whether a name is known or new."""
        return name in self._known or name in self.new

    def number(self, name: K) -> int:
        """Return the number of a name, which is new if it is not known."""
        found = self._known.get(name)
        return self.new.setdefault(name, len(self)) if found is None else found

    def numbers(self, names: Sequence[K]) -> NDArray[np.uint32]:
        """Return the numbers of names."""
        found = [*map(self._known.get, names)]
        if None in found:
            found = [*map(self.number, names)]
        return np.array(found, np.uint32)


class _Rejection(Exception):  # noqa: N818 - caught in this module
    """An event that cannot be used."""

    def __init__(self, reason: str, *text: Part) -> None:
        super().__init__(*text)
        self.reason, self.text = reason, text


class _New(NamedTuple):
    """What a batch names: the known models and keys, and new models and keys."""

    models: NewNames[str]
    keys: NewNames[tuple[str, str]]


class EventValidator:
    """Validate events, and number the models and segments that they name.

    A learner scores an observation last, so that a rejected one creates no learner for its model.
    `front` says how rejections name options.
    """

    def __init__(
        self,
        settings: Settings,
        task: Task,
        score: Callable[[Observation], Any] | None,
        front: Front = "python",
    ) -> None:
        self.front = front
        self._settings, self._task, self._by_features = settings, task, score
        # Doubles do not resolve half-lives further from zero.
        self._latest = min(LARGEST_TIME, (settings.half_life or LARGEST_TIME) << 50)

    def validate(self, events: Events, names: ModelNames, accept: Accept | None = None) -> Decided:
        """Validate a batch, in order of arrival, where there are these names.

        With `accept`, call it with row, event, the numbers of model and key, and `values` of each
        valid event before the next is validated.
        """
        new = _New(NewNames(names.models), NewNames(names.keys))
        plain = self._plain(events, new) if accept is None else None
        if plain is None:
            return self._one_by_one(events, new, accept)
        return _numbered(events, events.labels, np.arange(len(events)), new, *plain, [])

    def known(self, event: Event, names: ModelNames) -> tuple[int, int, Any] | None:
        """Return the numbers of the model and of the key of an event, and its score or value.

        A score is a row of `Task.score`, and the key of a label 0. None if the model or the key is
        new, or anything is unusual, so that `validate` has to decide; nothing changes.
        """
        if type(event) not in {Observation, Label} or not self._is_plain(event):
            return None
        model = names.models.get(event.model)
        key: int | None = 0
        given: Any
        try:
            if type(event) is Label:
                given = self._task.value(event.value)
            elif type(event) is Observation:
                score = self._task.score(event.score, event.id)
                given = [score] if type(score) is float else score
                pair = (event.model, event.segment)
                key = names.keys.get(pair) if type(event.segment) is str else None
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

    def _plain(self, events: Events, new: _New) -> tuple[BatchNames, Floats, Floats] | None:
        """Return names, scores and values if nothing is unusual, so that all events are valid."""
        plain = (
            self._by_features is None
            and not events.has_refused
            and len(events) > 0
            and core.are_names(events.ids.tolist(), self._settings.max_id_bytes)
            and self._plain_times(events.times, events.recorded)
        )
        named = names_of(events, self._settings.max_name_bytes) if plain else None
        if named is None or not self._has_room(named, new):
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

    def _has_room(self, named: BatchNames, new: _New) -> bool:
        most = self._settings.max_models
        return _fits(named.models, new.models, most) and _fits(named.pairs, new.keys, most)

    # An event at a time

    def _one_by_one(self, events: Events, new: _New, accept: Accept | None) -> Decided:
        """Validate events one after another, and pass each valid one to `accept`."""
        rows: list[int] = []
        rejected: list[DeadLetter] = []
        scores = np.zeros((len(events), self._task.score_width))
        values, kinds = np.zeros(len(events)), events.kinds
        refused = repeat(None) if events.refused is None else events.refused
        for row, (event, error) in enumerate(zip(events, refused, strict=False)):
            try:
                _require_read(error)
                value = 0.0 if kinds[row] == ENDS else self._value(event)
                self._check(event, new)
                if self._by_features is not None and type(event) is Observation:
                    values[row] = value
                    value = self._score(event, self._by_features)
            except _Rejection as why:
                detail = said(why.text, self.front)
                rejected.append(DeadLetter(why.reason, detail, event, row))
                continue
            model, key = new.models.number(event.model), 0
            if type(event) is Observation:
                key = new.keys.number((event.model, event.segment))
                scores[row] = value
            else:
                values[row] = value
            rows.append(row)
            if accept is not None:
                accept(row, event, model, key, values[row])
        kept = np.array(rows, np.int64)
        valid = events.take(kept)
        # The names are checked, so there are some.
        named = cast("BatchNames", names_of(valid, self._settings.max_name_bytes))
        columns = (new, named, scores[kept], values[kept])
        return _numbered(valid, events.labels, kept, *columns, rejected)

    def _value(self, event: Event) -> Any:  # noqa: ANN401 - as the task has it
        """Check score, features or label, and return a value; of features their size."""
        try:
            if type(event) is Label:
                return self._task.value(event.value)
            if type(event) is Observation and self._by_features is None:
                id_ = event.id if type(event.id) is str else ""  # `_check` rejects it
                return self._task.score(event.score, id_)
        except ScoreError as error:
            raise _bad_score(error) from None
        except LabelError as error:
            raise _Rejection("bad-label", str(error)) from None
        return _features_bytes(event)

    def _score(self, event: Observation, score: Callable[[Observation], Any]) -> Any:  # noqa: ANN401
        """Return the learner's score of an observation, or reject the observation."""
        try:
            given = score(event)
        except Exception as error:  # noqa: BLE001 - anything a learner raises
            detail = (
                f"the learner failed on {shown(event.id)} ({shown(error)}); "
                "choose another, or repair the features"
            )
            raise _Rejection("learner-failed", detail) from None
        try:
            return self._task.score(given, event.id)
        except ScoreError as error:
            raise _bad_score(error) from None

    def _check(self, event: Event, new: _New) -> None:
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
        self._check_crowd(event, new)

    def _check_lengths(self, event: Event) -> None:
        """Reject an event with an id or names that are too long."""
        segment = event.segment if type(event) is Observation else ""
        for what, text, name in (
            ("id", event.id, "max_id_bytes"),
            ("model", event.model, "max_name_bytes"),
            ("segment", segment, "max_name_bytes"),
        ):
            if not fits(text, most := getattr(self._settings, name)):
                size = f"{what} {shown(text)} takes {len(text.encode()):,} bytes, and "
                remedy = ("; shorten it, or raise ", _ref(name))
                raise _Rejection("too-long", size, _ref(name, most), *remedy)

    def _check_future(self, event: Event) -> None:
        """Reject an event that is too far ahead of its record."""
        recorded, limit = event.recorded, self._settings.max_clock_skew
        if recorded is None:
            return
        if type(recorded) is not int:
            raise _Rejection("bad-time", f"recorded {shown(recorded)} must be a whole number of ms")
        ahead = event.time - recorded
        if ahead > limit:
            raise _Rejection(
                "time-in-future",
                f"time {event.time} is {shown(ahead)} ms ahead of its record, and {limit} ms are "
                "allowed; repair the producer's clock, or raise ",
                _ref("max_clock_skew"),
            )

    def _check_crowd(self, event: Event, new: _New) -> None:
        """Reject an event of a new model or segment beyond `max_models`."""
        most = self._settings.max_models
        if event.model not in new.models and len(new.models) >= most:
            what = f"model {shown(event.model)}"
        elif (
            type(event) is Observation
            and (event.model, event.segment) not in new.keys
            and len(new.keys) >= most
        ):
            what = f"segment {shown(event.segment)} of model {shown(event.model)}"
        else:
            return
        raise _Rejection(
            "too-many-models",
            f"{what} is new, and {most:,} are there already; raise ",
            _ref("max_models"),
            ", or set ",
            _ref("retire_after"),
        )


def _fits(names: Sequence[Any], known: NewNames[Any], most: int) -> bool:
    """Return whether there are at most so many names with those that are known."""
    if len(known) + len(names) <= most:  # as nearly always
        return True
    return len(known) + sum(name not in known for name in names) <= most


def _numbered(  # noqa: PLR0913, PLR0917 - a column each
    valid: Events,
    labels: NDArray[np.bool_],
    rows: Integers,
    new: _New,
    named: BatchNames,
    scores: Floats,
    values: Floats,
    rejected: list[DeadLetter],
) -> Decided:
    """Return valid events with the numbers of their models and keys."""
    keys = np.zeros(len(valid), np.uint32)
    keys[~valid.labels] = new.keys.numbers(named.pairs)[named.pair]
    return Decided(
        labels,
        valid,
        rows,
        valid.kinds,
        new.models.numbers(named.models)[named.model],
        keys,
        valid.times.astype(np.int64, copy=False),
        scores,
        values,
        [*new.models.new],
        [*new.keys.new],
        [(letter.row or 0, letter.reason) for letter in rejected],
        rejected,
    )


def require_limits(
    settings: Settings, count: int, names: list[str], ids: list[str], front: Front
) -> None:
    """Raise a SettingsError if a state exceeds the limits.

    It has so many models, or pairs of model and segment if these are more; names of both, and ids.
    `front` says how the message names the limits.
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
            parts = (f"the state holds {what}, and ", _ref(name, most), "; set ", _ref(name))
            raise SettingsError(said((*parts, f" to {least} or more"), front))


def _ref(name: str, *value: int) -> Ref:
    """Return a setting for a message."""
    return Ref(setting_options()[name], *value)


def _bad_score(error: ScoreError) -> _Rejection:
    text = error.text if isinstance(error, RefusedScoreError) else (str(error),)
    return _Rejection("bad-score", *text)


def _require_read(error: BadRecordError | None) -> None:
    if error is not None:
        raise _Rejection(error.reason, *error.text)


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
