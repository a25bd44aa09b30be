"""Which events may come in: what the processor checks before anything is changed.

Governing rule: an event that is refused changes nothing but a counter, and the
checks of an event depend on nothing but itself, the clock, and the models seen
so far. A batch in which nothing is unusual is checked a column at a time, any
other one event at a time; what is let in is the same.
"""

from __future__ import annotations

from itertools import compress
from operator import not_
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from abers._shown import shown
from abers.exceptions import LabelError, ScoreError
from abers.stream.events import DeadLetter, Label, Observation
from abers.stream.settings import LARGEST_TIME

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from abers.stream.events import Event
    from abers.stream.settings import Settings
    from abers.stream.tasks import Task

__all__ = ["Admission", "Admitted"]

_Name = TypeVar("_Name", bound="Hashable")


class Admitted(NamedTuple):
    """The events of a batch that come in, a row each.

    Attributes
    ----------
    events, ids
        The events, and their ids.
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
        Labels, as the task's `values` gave them; 0 for observations.
    refused
        Dead letters of the others.
    """

    events: Sequence[Event]
    ids: list[str]
    rows: Sequence[int]
    kinds: NDArray[np.uint8]
    models: NDArray[np.uint32]
    keys: NDArray[np.uint32]
    times: NDArray[np.int64]
    scores: NDArray[np.float64]
    values: NDArray[np.float64]
    refused: list[DeadLetter]


class _Refused(Exception):  # noqa: N818 - no error, but the way out of an event
    """An event that cannot be used."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class _Columns(NamedTuple):
    """A batch by columns: `scores` and `segments` of the observations, `values` of the labels."""

    events: Sequence[Event]
    labels: list[bool]
    ids: list[str]
    names: list[str]
    times: list[int]
    scores: list[Any]
    segments: list[str]
    values: list[Any]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Give model and segment of each observation."""
        names = compress(self.names, map(not_, self.labels))
        return zip(names, self.segments, strict=True)


def _columns(events: Sequence[Event]) -> _Columns:
    labels = [type(e) is Label for e in events]
    seen: list[Any] = list(compress(events, map(not_, labels)))
    told: list[Any] = list(compress(events, labels))
    return _Columns(
        events,
        labels,
        [e.id for e in events],
        [e.model for e in events],
        [e.time for e in events],
        [e.score for e in seen],
        [e.segment for e in seen],
        [e.value for e in told],
    )


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
        self, settings: Settings, task: Task, score: Callable[[Observation], float] | None
    ) -> None:
        self._settings, self._task, self._by_features = settings, task, score
        # Doubles do not resolve half-lives further from zero.
        self._latest = min(LARGEST_TIME, (settings.half_life or LARGEST_TIME) << 50)
        self.models: dict[str, int] = {}
        self.keys: dict[tuple[str, str], int] = {}

    def admit(
        self,
        events: Sequence[Event],
        clock: int | None,
        accepted: Callable[[Event, float], None] | None = None,
    ) -> Admitted:
        """Let in what may come in.

        Parameters
        ----------
        events
            A batch, in order of arrival.
        clock
            The largest event time accepted before it; None before the first.
        accepted
            Told of each event that comes in, with its label or 0, before the next one is
            looked at.

        Returns
        -------
        Admitted
            The events that come in, and dead letters of the others.
        """
        columns = _columns(events)
        if accepted is None and self._plain(columns, clock):
            return self._numbered(columns, range(len(events)), [])
        kept, rows, scores, values, refused = self._sifted(events, clock, accepted)
        checked = _columns(kept)._replace(scores=scores, values=values)
        return self._numbered(checked, rows, refused)

    # A column at a time

    def _plain(self, columns: _Columns, clock: int | None) -> bool:
        """Tell whether nothing in a batch is unusual, so that all of it comes in."""
        return (
            self._by_features is None
            and _plain_ids(columns.ids)
            and self._plain_times(columns, clock)
            and self._plain_names(columns)
            and self._task.plain(columns.scores, columns.values)
        )

    def _plain_times(self, columns: _Columns, clock: int | None) -> bool:
        times = columns.times
        if {*map(type, times)} != {int}:
            return False
        if [e.recorded for e in columns.events].count(None) < len(times):
            return False
        latest = times[0] if clock is None else clock
        most = min(latest + self._settings.max_jump, self._latest - 1)
        return -self._latest < min(times) <= max(times) <= most

    def _plain_names(self, columns: _Columns) -> bool:
        if {*map(type, columns.names), *map(type, columns.segments)} != {str}:
            return False
        names, segments, most = {*columns.names}, {*columns.segments}, self._settings.max_models
        return (
            all(map(_is_text, names | segments))
            and len(self.models.keys() | names) <= most
            # As many pairs as there could be, or else as there are.
            and (
                len(self.keys) + len(names) * len(segments) <= most
                or len(self.keys.keys() | {*columns.pairs()}) <= most
            )
        )

    def _numbered(
        self, columns: _Columns, rows: Sequence[int], refused: list[DeadLetter]
    ) -> Admitted:
        n, width = len(columns.ids), self._task.score_width
        labels = np.array(columns.labels, bool)
        scores, values, keys = np.zeros((n, width)), np.zeros(n), np.zeros(n, np.uint32)
        scores[~labels] = np.array(columns.scores, float).reshape(-1, width)
        values[labels] = columns.values
        keys[~labels] = self._key_numbers(columns)
        return Admitted(
            columns.events,
            columns.ids,
            rows,
            labels.astype(np.uint8),
            _numbers(columns.names, self.models),
            keys,
            np.array(columns.times, np.int64),
            scores,
            values,
            refused,
        )

    def _key_numbers(self, columns: _Columns) -> NDArray[np.uint32]:
        segments = columns.segments
        if len({*columns.names}) == len({*segments}) == 1:  # hashing pairs costs more than the rest
            pair = (columns.names[0], segments[0])
            return np.full(len(segments), self.keys.setdefault(pair, len(self.keys)), np.uint32)
        return _numbers(list(columns.pairs()), self.keys)

    # An event at a time

    def _sifted(
        self,
        events: Sequence[Event],
        clock: int | None,
        accepted: Callable[[Event, float], None] | None,
    ) -> tuple[list[Event], list[int], list[Any], list[Any], list[DeadLetter]]:
        kept, rows, refused = [], [], []
        scores: list[Any] = []
        values: list[Any] = []
        for row, event in enumerate(events):
            try:
                value = self._value(event)
                self._check(event, clock)
                if self._by_features is not None and type(event) is Observation:
                    value = self._score(event, self._by_features)
            except _Refused as why:
                refused.append(DeadLetter(why.reason, str(why), event, row))
                continue
            clock = event.time if clock is None else max(clock, event.time)
            self.models.setdefault(event.model, len(self.models))
            if type(event) is Observation:
                self.keys.setdefault((event.model, event.segment), len(self.keys))
            (scores if type(event) is Observation else values).append(value)
            kept.append(event)
            rows.append(row)
            if accepted is not None:
                accepted(event, value if type(event) is Label else 0.0)
        return kept, rows, scores, values, refused

    def _value(self, event: Event) -> Any:  # noqa: ANN401 - as the task has it
        """Check score, features or label."""
        try:
            if type(event) is Label:
                return self._task.value(event.value)
            if type(event) is Observation and self._by_features is None:
                return self._task.score(event.score)
        except ScoreError as error:
            raise _Refused("bad-score", str(error)) from None
        except LabelError as error:
            raise _Refused("bad-label", str(error)) from None
        return _check_features(event)

    def _score(self, event: Observation, score: Callable[[Observation], float]) -> Any:  # noqa: ANN401
        try:
            given = score(event)
        except Exception as error:  # noqa: BLE001 - whatever a learner raises
            detail = (
                f"the learner failed on {shown(event.id)} ({shown(error)}); "
                "choose another, or repair the features"
            )
            raise _Refused("learner-failed", detail) from None
        try:
            return self._task.score(given)
        except ScoreError as error:
            raise _Refused("bad-score", str(error)) from None

    def _check(self, event: Event, clock: int | None) -> None:
        """Check all but the value."""
        id_, time = event.id, event.time
        if type(id_) is not str or not id_ or not _is_text(id_):
            raise _Refused("bad-id", f"id {shown(id_)} is no text of at least one character")
        for name in (event.model, event.segment if type(event) is Observation else ""):
            if type(name) is not str or not _is_text(name):
                raise _Refused("bad-model", f"model or segment {shown(name)} is no text")
        if type(time) is not int or not -self._latest < time < self._latest:
            detail = f"time {shown(time)} is no whole number of ms within {self._latest} of zero"
            raise _Refused("bad-time", detail)
        self._check_future(event, clock)
        self._check_crowd(event)

    def _check_future(self, event: Event, clock: int | None) -> None:
        recorded = event.recorded
        if recorded is not None:
            if type(recorded) is not int:
                detail = f"recorded {shown(recorded)} is no whole number of milliseconds"
                raise _Refused("bad-time", detail)
            ahead, limit, name = event.time - recorded, self._settings.max_ahead, "max_ahead"
        elif clock is None:
            return
        else:
            ahead, limit, name = event.time - clock, self._settings.max_jump, "max_jump"
        if ahead > limit:
            since = "all events before it" if recorded is None else "the time it was written"
            detail = (
                f"time {event.time} is {shown(ahead)} ms ahead of {since}, {name} allows {limit}; "
                f"repair the producer's clock, or raise {name}"
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
        detail = f"{what} is new, and max_models={most} are there already; raise max_models"
        raise _Refused("too-many-models", detail)


def _check_features(event: Event) -> None:
    x = getattr(event, "x", None)
    if type(x) is not dict:
        detail = f"x={shown(x)} is no mapping of features; send those that the learner scores"
        raise _Refused("bad-features", detail)
    try:  # what cannot be saved now would stop every snapshot while it waits
        msgspec.msgpack.encode(x)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        detail = f"features of {shown(event.id)} cannot be kept ({error}); send what JSON can hold"
        raise _Refused("bad-features", detail) from None


def _plain_ids(ids: list[str]) -> bool:
    # Half of a surrogate pair is no valid text: only ASCII is told from that at a glance.
    return {*map(type, ids)} == {str} and all(ids) and "".join(ids).isascii()


def _numbers(names: list[_Name], known: dict[_Name, int]) -> NDArray[np.uint32]:
    """Look up the numbers of names; those that are new get the next ones."""
    distinct = dict.fromkeys(names)
    for name in distinct:
        known.setdefault(name, len(known))
    if len(distinct) == 1:
        return np.full(len(names), known[names[0]], np.uint32)
    return np.array([known[name] for name in names], np.uint32)


def _is_text(text: str) -> bool:
    """Tell whether a text can be written down: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
