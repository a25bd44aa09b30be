"""Which events may come in: what the processor checks before anything is changed.

Governing rule: an event that is refused changes nothing but a counter, and the
checks of an event depend on nothing but itself and the models seen so far. A
batch in which nothing is unusual is checked a column at a time, any other one
event at a time; what is let in is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
import numpy as np

from abers._backend import core
from abers._shown import shown
from abers._texts import fits, is_text
from abers.exceptions import LabelError, ScoreError, SettingsError
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.settings import LARGEST_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from numpy.typing import NDArray

    from abers.stream.columns import Column, Events
    from abers.stream.events import Event
    from abers.stream.settings import Settings
    from abers.stream.tasks import Task

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.uint32]

__all__ = ["Admission", "Admitted", "require_room"]


class Admitted(NamedTuple):
    """The events of a batch that come in, a row each.

    Attributes
    ----------
    events
        They.
    rows
        Their rows in the batch.
    kinds
        0 for an observation, 1 for a label.
    models, keys
        Numbers of the models, and of the pairs of model and segment (0 for labels).
    times
        Event times.
    scores
        Array of shape (n, width of a score); 0 for labels.
    values
        Labels, as the task's `value` gave them; of an observation the bytes of its features.
    refused
        Dead letters of the others.
    """

    events: Events
    rows: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    models: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    times: NDArray[np.int64]
    scores: Floats
    values: Floats
    refused: list[DeadLetter]


class _Named(NamedTuple):
    """The models of a batch, and the pairs of model and segment of its observations.

    Each stands once, in order of appearance, and each row has its number in that order.
    """

    models: list[str]
    model: Numbers
    pairs: list[tuple[str, str]]
    pair: Numbers


class _Refused(Exception):  # noqa: N818 - no error, but the way out of an event
    """An event that cannot be used."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class Admission:
    """Check events, and number the models and segments that they name.

    Parameters
    ----------
    settings
        The limits.
    task
        Checks scores and labels.
    score
        Gives the score of an observation by its features; None if it brings its score. It is
        asked last, for an observation that is refused must not make a learner for its model.

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

    def admit(
        self, events: Events, accepted: Callable[[Event, float], None] | None = None
    ) -> Admitted:
        """Let in what may come in.

        Parameters
        ----------
        events
            A batch, in order of arrival.
        accepted
            Called with each event that comes in, and its row of `values`, before the next one
            is looked at.

        Returns
        -------
        Admitted
            The events that come in, and dead letters of the others.
        """
        taken = self._plain(events) if accepted is None else None
        if taken is None:
            return self._sifted(events, accepted)
        return self._numbered(events, np.arange(len(events)), *taken, [])

    def renumber(self, models: Sequence[str]) -> None:
        """Know these of the models alone, and number them in their order."""
        pairs = [pair for pair in self.keys if pair[0] in {*models}]
        self.models = {name: number for number, name in enumerate(models)}
        self.keys = {pair: number for number, pair in enumerate(pairs)}

    # A column at a time

    def _plain(self, events: Events) -> tuple[_Named, Floats, Floats] | None:
        """Give names, scores and values if nothing is unusual, so that all of a batch comes in."""
        plain = (
            self._by_features is None
            and len(events) > 0
            and core.are_names(events.ids.tolist(), self._settings.max_id_bytes)
            and self._plain_times(events.times, events.recorded)
        )
        named = _named(events, self._settings.max_name_bytes) if plain else None
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
        return recorded is None or bool((times - self._settings.max_ahead <= recorded).all())

    def _has_room(self, named: _Named) -> bool:
        most = self._settings.max_models
        return (
            len(self.models.keys() | {*named.models}) <= most
            and len(self.keys.keys() | {*named.pairs}) <= most
        )

    def _numbered(  # noqa: PLR0913, PLR0917 - a column each
        self,
        events: Events,
        rows: NDArray[np.int64],
        named: _Named,
        scores: Floats,
        values: Floats,
        refused: list[DeadLetter],
    ) -> Admitted:
        keys = np.zeros(len(events), np.uint32)
        keys[~events.labels] = _numbers(named.pairs, self.keys)[named.pair]
        return Admitted(
            events,
            rows,
            events.labels.astype(np.uint8),
            _numbers(named.models, self.models)[named.model],
            keys,
            events.times.astype(np.int64, copy=False),
            scores,
            values,
            refused,
        )

    # An event at a time

    def _sifted(self, events: Events, accepted: Callable[[Event, float], None] | None) -> Admitted:
        rows: list[int] = []
        refused: list[DeadLetter] = []
        scores = np.zeros((len(events), self._task.score_width))
        values = np.zeros(len(events))
        for row, event in enumerate(events):
            try:
                value = self._value(event)
                self._check(event)
                if self._by_features is not None and type(event) is Observation:
                    values[row] = value
                    value = self._score(event, self._by_features)
            except _Refused as why:
                refused.append(DeadLetter(why.reason, str(why), event, row))
                continue
            self.models.setdefault(event.model, len(self.models))
            if type(event) is Observation:
                self.keys.setdefault((event.model, event.segment), len(self.keys))
                scores[row] = value
            else:
                values[row] = value
            rows.append(row)
            if accepted is not None:
                accepted(event, values[row])
        kept = np.array(rows, np.int64)
        taken = events.take(kept)
        named = cast("_Named", _named(taken, self._settings.max_name_bytes))  # each is checked
        return self._numbered(taken, kept, named, scores[kept], values[kept], refused)

    def _value(self, event: Event) -> Any:  # noqa: ANN401 - as the task has it
        """Check score, features or label; of features, return their bytes."""
        try:
            if type(event) is Label:
                return self._task.value(event.value)
            if type(event) is Observation and self._by_features is None:
                id_ = event.id if type(event.id) is str else ""  # what is wrong with it comes later
                return self._task.score(event.score, id_)
        except ScoreError as error:
            raise _Refused("bad-score", str(error)) from None
        except LabelError as error:
            raise _Refused("bad-label", str(error)) from None
        return _features_bytes(event)

    def _score(self, event: Observation, score: Callable[[Observation], Any]) -> Any:  # noqa: ANN401
        try:
            given = score(event)
        except Exception as error:  # noqa: BLE001 - whatever a learner raises
            detail = (
                f"the learner failed on {shown(event.id)} ({shown(error)}); "
                "choose another, or repair the features"
            )
            raise _Refused("learner-failed", detail) from None
        try:
            return self._task.score(given, event.id)
        except ScoreError as error:
            raise _Refused("bad-score", str(error)) from None

    def _check(self, event: Event) -> None:
        """Check all but the value."""
        id_, time = event.id, event.time
        if not is_text(id_) or not id_:
            raise _Refused("bad-id", f"id {shown(id_)} is no text of at least one character")
        for name in (event.model, event.segment if type(event) is Observation else ""):
            if not is_text(name):
                raise _Refused("bad-model", f"model or segment {shown(name)} is no text")
        self._check_lengths(event)
        if type(time) is not int or not -self._latest < time < self._latest:
            detail = f"time {shown(time)} is no whole number of ms within {self._latest} of zero"
            raise _Refused("bad-time", detail)
        self._check_future(event)
        self._check_crowd(event)

    def _check_lengths(self, event: Event) -> None:
        most = self._settings.max_id_bytes
        if not fits(event.id, most):
            raise _too_long("id", event.id, "max_id_bytes", most)
        most = self._settings.max_name_bytes
        if not fits(event.model, most):
            raise _too_long("model", event.model, "max_name_bytes", most)
        if type(event) is Observation and not fits(event.segment, most):
            raise _too_long("segment", event.segment, "max_name_bytes", most)

    def _check_future(self, event: Event) -> None:
        recorded, limit = event.recorded, self._settings.max_ahead
        if recorded is None:
            return
        if type(recorded) is not int:
            detail = f"recorded {shown(recorded)} is no whole number of milliseconds"
            raise _Refused("bad-time", detail)
        ahead = event.time - recorded
        if ahead > limit:
            detail = (
                f"time {event.time} is {shown(ahead)} ms ahead of its record, "
                f"max_ahead allows {limit}; repair the producer's clock, or raise max_ahead"
            )
            raise _Refused("time-in-future", detail)

    def _check_crowd(self, event: Event) -> None:
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
        raise _Refused("too-many-models", detail)


def require_room(settings: Settings, count: int, names: list[str], ids: list[str]) -> None:
    """Refuse what is held already if it is more, or longer, than the settings let in.

    Parameters
    ----------
    settings
        The limits.
    count
        How many models, or pairs of model and segment, are held, whichever are more.
    names, ids
        Of models and segments, and of observations.

    Raises
    ------
    SettingsError
        If a limit is too low.
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


def _too_long(what: str, text: str, name: str, most: int) -> _Refused:
    detail = (
        f"{what} {shown(text)} takes {len(text.encode()):,} bytes, and {name}={most}; "
        f"shorten it, or raise {name}"
    )
    return _Refused("too-long", detail)


def _features_bytes(event: Event) -> int:
    x = getattr(event, "x", None)
    if type(x) is not dict:
        detail = f"x={shown(x)} is no mapping of features; send those that the learner scores"
        raise _Refused("bad-features", detail)
    try:  # what cannot be saved now would stop every snapshot while it waits
        return len(msgspec.msgpack.encode(x))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        detail = f"features of {shown(event.id)} cannot be kept ({error}); send what JSON can hold"
        raise _Refused("bad-features", detail) from None


def _named(events: Events, most: int) -> _Named | None:
    """Look at the names of a batch; None if one is no text, or takes more than `most` bytes."""
    seen = ~events.labels
    models, segments = _distinct(events.models, most), _distinct(events.segments[seen], most)
    if models is None or segments is None:
        return None
    (model, names), (segment, parts) = models, segments
    if len(names) == len(parts) == 1:  # sorting costs more than the rest
        return _Named(names, model, [(names[0], parts[0])], segment)
    # A pair is one number, as there can be too many of them for a table.
    pairs = model[seen].astype(np.int64) * len(parts) + segment
    found, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    named = [(names[one // len(parts)], parts[one % len(parts)]) for one in found[order].tolist()]
    return _Named(names, model, named, place[pair])


def _distinct(texts: Column, most: int) -> tuple[Numbers, list[str]] | None:
    numbers = np.empty(len(texts), np.uint32)
    names = core.distinct(texts.tolist(), numbers, most)
    return None if names is None else (numbers, names)


def _numbers(names: Sequence[Hashable], known: dict[Any, int]) -> Numbers:
    """Look up the numbers of names; those that are new get the next ones."""
    return np.array([known.setdefault(name, len(known)) for name in names], np.uint32)
