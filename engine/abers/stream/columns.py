"""Events by columns: how they are read, which names they have, and their order.

The order of events by time: labels come first at equal times. A label is known at its time, so a
prediction at that time may have learned it. Merged inputs, labels that a delay releases, and tables
of history have this one order.

A batch is a handful of arrays. An event becomes an object only on request, and equals the object
that the columns were made of.

The only way from records to events. A source decodes its format to raw columns, by field, and a
schema reads these. A lone record is a record among others: its columns have one cell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, cast, overload

import numpy as np

from abers.backends import core
from abers.exceptions import ParameterError
from abers.stream.arrow_columns import fields_of_arrow
from abers.stream.cells import kind_of, numbers, objects
from abers.stream.events import Event, Label, Observation
from abers.stream.readers import SCALARS, CellReader, PassedReader, PlainReader
from abers.stream.schema_columns import ColumnSchema, Readers
from abers.validation import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from abers.arrays import Integers
    from abers.stream.arrow_columns import FieldNames
    from abers.stream.cells import BadRecordError, Column, RawColumns, Refused
    from abers.stream.option import Front
    from abers.stream.settings import Settings

    Numbers = NDArray[np.uint32]

__all__ = [
    "BatchNames",
    "Events",
    "Reading",
    "Schema",
    "as_events",
    "filled_times",
    "names_of",
    "observations_before",
    "released_order",
    "require_events",
    "time_order",
]

_MOST = 2**63


def filled_times(times: Column, before: int | None = None) -> Integers:
    """Return times, with that of the row before in place of a missing time.

    Parameters
    ----------
    times
        Of events.
    before
        The time before the first row, by default the first time that there is.

    Examples
    --------
    >>> filled_times(np.array([None, 3, "?", 5], object)).tolist()
    [3, 3, 3, 5]
    """
    if times.dtype != object:
        return times
    good = np.fromiter((type(one) is int and -_MOST < one < _MOST for one in times), bool)
    known = np.where(good, times, 0).astype(np.int64)
    if before is None:
        before = int(known[good][0]) if good.any() else 0
    rows = np.maximum.accumulate(np.where(good, np.arange(1, len(times) + 1), 0))
    return np.concatenate([[before], known])[rows]


def time_order(times: Integers, labels: NDArray[np.bool_]) -> Integers:
    """Return the rows of events by time, labels first at equal times, otherwise as they came.

    Examples
    --------
    >>> time_order(np.array([5, 3, 5]), np.array([False, False, True])).tolist()
    [1, 2, 0]
    """
    return np.lexsort((~labels, times))


def observations_before(clocks: Integers, due: Integers, own: Integers) -> Integers:
    """Return the number of observations before each label that is released among them.

    These are all before the first one at the time of the label or later, and always its own.

    Parameters
    ----------
    clocks
        Of the observations, ascending.
    due
        When each label is known.
    own
        Number of observations up to that of each label, which is counted.

    Examples
    --------
    >>> observations_before(np.array([1, 5, 9]), np.array([5, 5, 9]), np.array([1, 2, 3])).tolist()
    [1, 2, 3]
    """
    return np.maximum(np.searchsorted(clocks, due), own)


def released_order(times: Integers, due: Integers, rows: Integers) -> Integers:
    """Return the order of observations, and of labels behind them, by time.

    Parameters
    ----------
    times
        Event times of the observations.
    due
        Event times of the labels.
    rows
        The observation of each label.

    Examples
    --------
    >>> released_order(np.array([9, 5]), np.array([9]), np.array([1])).tolist()
    [1, 2, 0]
    """
    n = len(times)
    order = np.argsort(times, kind="stable")
    position = np.empty(n, np.int64)
    position[order] = np.arange(1, n + 1)
    before = observations_before(times[order], due, position[rows])
    # Of labels between the same observations, the label that is known first comes first.
    known = np.concatenate([times, due])
    return np.lexsort((known, np.arange(n + len(due)) >= n, np.concatenate([position, before])))


_PLAIN, _PASSED = PlainReader(), PassedReader()


@dataclass(frozen=True, slots=True, eq=False)
class Events(Sequence[Event]):
    """Observations and labels in order of arrival; see `Observation` and `Label`.

    Attributes
    ----------
    labels
        Which rows are labels.
    ids, models
        Ids and models, as objects.
    times
        Event times: int64, or objects if one is no integer.
    segments
        Segments of observations, as objects.
    scores
        Scores of observations; None without observations.
    values
        Values of labels; None without labels.
    x, extra
        Features and extra fields of observations; None if no row has any.
    recorded
        Times of the records: int64 if every row has one, otherwise objects; None if no row has
        one.
    awaited
        Labels of observations that are not yet released: nothing may read them before; None where
        no label is known yet, or without any.
    awaited_times
        Event times of these labels; None if a delay decides.
    refused
        Why rows of a table are no events, None for the others: the processor makes a dead letter of
        each. None if no row is refused. An event as an object does not say so: a processor may use
        it, such as an event with a time in seconds.
    ended
        Which rows of labels say that no label will come: the observation waits no longer. They
        count as no event, and an event as an object does not say so. None if no row does.

    Examples
    --------
    >>> events = Events.of([Observation("a", 1, score=0.5), Label("a", 2, value=1)])
    >>> events.times, events.scores, events.values
    (array([1, 2]), array([0.5, 0. ]), array([0, 1]))
    >>> events[1]
    Label(id='a', time=2, model='default', value=1, recorded=None)
    """

    labels: NDArray[np.bool_]
    ids: Column
    times: Column
    models: Column
    segments: Column
    scores: Column | None = None
    values: Column | None = None
    x: Column | None = None
    extra: Column | None = None
    recorded: Column | None = None
    awaited: Column | None = None
    awaited_times: Column | None = None
    refused: Column | None = None
    ended: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, events: Sequence[Event]) -> Events:
        """Return the columns of events.

        Numbers, texts and times of other libraries become plain Python values. Anything else stays
        as it is, and the processor makes a dead letter of an event with fields of other types: it
        is a mistake of the program, while a file or a table may have ids and times of other forms.

        Raises
        ------
        ParameterError
            If something else than an event is among them, or JSON cannot hold an extra field.
        """
        require_events(events)
        labels = np.fromiter((type(e) is Label for e in events), bool, len(events))
        given: list[Any] = [e for e in events if type(e) is Label]
        observed: list[Any] = [e for e in events if type(e) is not Label]
        return cls(
            labels,
            _plain([e.id for e in events]).astype(object, copy=False),
            _plain([e.time for e in events]),
            _plain([e.model for e in events]).astype(object, copy=False),
            _spread(_plain([e.segment for e in observed]).astype(object, copy=False), ~labels),
            _spread(_plain([e.score for e in observed]), ~labels) if observed else None,
            _spread(_plain([e.value for e in given]), labels) if given else None,
            _given(_PLAIN, [e.x for e in observed], ~labels),
            _given(_PASSED, [e.extra for e in observed], ~labels),
            _recorded([e.recorded for e in events]),
        )

    @classmethod
    def from_arrow(
        cls, data: object, fields: FieldNames | None = None, settings: Settings | None = None
    ) -> Events:
        """Return the events of a table of Arrow, one a row, as those of a file are read.

        A row with a score or features is an observation, and one with only a label is a label. A
        null or NaN is no value. A row that is no valid event, such as one without an id, is a dead
        letter of the processor. So is a row with a score and a label, unless "label_time" says
        when the label was known; {"label": None} in `fields` leaves labels unread.

        Parameters
        ----------
        data
            A `pyarrow.Table` or `RecordBatch`, or an object that has `__arrow_c_stream__`, such as
            a data frame of Polars.
        fields
            Columns by field, where they have other names: "id", "time", "model", "segment",
            "score", "label", "x" (a struct, or a list of columns), "label_time", "extra" (columns
            that the prediction repeats) and "recorded". A dotted name is of a field in structs.
            "score" may be a dict from class to column. Missing models are "default". Times are
            integers in milliseconds, timestamps with a time zone, or texts in RFC 3339.

            With "label_time", each row is an observation, and if it has a label, also a label at
            that time. The events are in the order of time then, labels first at equal times, but
            after their own observations; a row without a readable time follows the row before it.
        settings
            Settings of the processor that takes the events. Scores and labels are read as its task
            has them, so that a text that parses as a value is one. Without, they stay as they are.

        Returns
        -------
        Events
            In the order of the rows, without "label_time".

        Raises
        ------
        ParameterError
            If a column is missing, or its times could be of any time zone.
        MissingExtraError
            If pyarrow is not installed.

        Examples
        --------
        >>> import pyarrow as pa
        >>> columns = {"key": ["a", "a"], "time": [1, 2], "score": [0.5, None], "y": [None, 1]}
        >>> Events.from_arrow(pa.table(columns), {"id": "key", "label": "y"})[1]
        Label(id='a', time=2, model='default', value=1, recorded=None)
        """
        reads = None if settings is None else Readers.of_settings(settings)
        events = cls(*fields_of_arrow(data, fields, reads))
        return events if events.awaited is None else events.released()

    @property
    def kinds(self) -> NDArray[np.uint8]:
        """What each row is: 0 an observation, 1 a label, 2 the end of the wait for one."""
        kinds = self.labels.astype(np.uint8)
        return kinds if self.ended is None else kinds + self.ended

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which rows are labels with a value."""
        return self.labels if self.ended is None else self.labels & ~self.ended

    @property
    def has_refused(self) -> bool:
        """Whether some rows are no events."""
        return self.refused is not None and bool(np.not_equal(self.refused, None).any())

    def by_time(self) -> Events:
        """Return the events by time, labels first at equal times, otherwise in their order.

        Examples
        --------
        >>> events = Events.of([Observation("b", 5, score=0.5), Label("a", 5, value=1)])
        >>> events.by_time().ids.tolist()
        ['a', 'b']
        """
        return self.take(time_order(filled_times(self.times), self.labels))

    def released(self) -> Events:
        """Return observations and their awaited labels as events, by time.

        Labels come first at equal times, but after their own observations. An observation with None
        as its awaited label has none, and `awaited_times` has the times of all others.

        Examples
        --------
        >>> events = Events.of([Observation("a", 1, score=0.5), Observation("b", 3, score=0.5)])
        >>> history = replace(events, awaited=np.array([1, 0]), awaited_times=np.array([3, 9]))
        >>> [(type(event).__name__, event.id) for event in history.released()]
        [('Observation', 'a'), ('Label', 'a'), ('Observation', 'b'), ('Label', 'b')]
        """
        known, due = cast("Column", self.awaited), cast("Column", self.awaited_times)
        good = True if self.refused is None else np.equal(self.refused, None)
        rows = np.flatnonzero(np.not_equal(known, None) & good)
        of = self.take(rows)
        labels = Events(
            np.ones(len(rows), bool), of.ids, due[rows], of.models, of.segments, values=known[rows]
        )
        events = Events.joined([replace(self, awaited=None, awaited_times=None), labels])
        released = due[rows].astype(np.int64)
        return events.take(released_order(filled_times(self.times), released, rows))

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Return batches, at least one, behind each other."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        columns: list[Any] = [_joined(parts, name) for name in _NAMES]
        return cls(*columns)

    def take(self, rows: Any) -> Events:  # noqa: ANN401 - anything indexes an array
        """Return some rows, by numbers, a mask or a slice."""
        columns: list[Any] = [getattr(self, name) for name in _NAMES]
        taken: list[Any] = [None if one is None else one[rows] for one in columns]
        return Events(*taken)

    def heads(self) -> Events:
        """Return only the columns that a prediction or an outcome repeats."""
        columns = (self.labels, self.ids, self.times, self.models, self.segments)
        return Events(*columns, extra=self.extra)

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: int | slice) -> Event | Events:
        """Return an event, or consecutive events as columns."""
        if isinstance(index, slice):
            return self.take(index)
        return next(iter(self.take([index])))

    def __iter__(self) -> Iterator[Event]:
        """Yield the events as objects."""
        columns = (self.ids, self.times, self.models, self.segments)
        given = (self.scores, self.values, self.x, self.extra, self.recorded)
        for label, id_, time, model, segment, score, value, x, extra, recorded in zip(
            self.labels.tolist(),
            *map(_values, columns),
            *map(_values, given),
            strict=False,  # None for a missing column repeats without end
        ):
            yield (
                Label(id_, time, model, value, recorded)
                if label
                else Observation(id_, time, model, score, x, segment, recorded, extra)
            )


_NAMES = tuple(field.name for field in fields(Events))  # slow to find


def as_events(data: Events | object, settings: Settings) -> Events:
    """Return checked events as they are, and those of a table of Arrow or a data frame."""
    if not isinstance(data, Events):
        return Events.from_arrow(data, settings=settings)
    _require_columns(data)
    return data


_REQUIRED = frozenset(_NAMES[:5])  # the others may be None


def _require_columns(events: Events) -> None:
    """Raise a ParameterError unless each column is an array with a value for every row."""
    rows = len(events.labels)
    for name in _NAMES:
        found = getattr(events, name)
        if found is None and name not in _REQUIRED:
            continue
        if type(found) is not np.ndarray or found.shape[:1] != (rows,):
            given = found.shape if type(found) is np.ndarray else f"a {type(found).__name__}"
            msg = (
                f"{name} of Events must be an array of numpy with {rows} rows, as labels has, not "
                f"{given}; Events.of and Events.from_arrow make these columns"
            )
            raise ParameterError(msg)


def require_events(events: Collection[Any]) -> None:
    """Raise a ParameterError unless all are observations and labels."""
    if not isinstance(events, Collection):
        msg = f"{shown(events)} must be a list of observations and labels"
        raise ParameterError(msg)
    if not {*map(type, events)} <= {Observation, Label}:
        row, event = next(
            (row, one) for row, one in enumerate(events) if type(one) not in {Observation, Label}
        )
        msg = f"row {row}: {shown(event)} is neither an Observation nor a Label"
        raise ParameterError(msg)


def _values(one: Column | None) -> Sequence[Any] | repeat[None]:
    return repeat(None) if one is None else one.tolist()


def _spread(values: Column, mask: NDArray[np.bool_]) -> Column:
    """Return a column with values in the rows of a mask, and unused zeros in all others."""
    if len(values) == len(mask):
        return values
    whole = np.zeros(len(mask), values.dtype)
    whole[mask] = values
    return whole


def _plain(values: Sequence[Any]) -> Column:
    kind = kind_of(values)
    if kind not in SCALARS:
        return _PLAIN.many(objects(values))[0]
    found = numbers(values, kind)
    return objects(values) if found is None else found


def _given(reader: CellReader, values: Sequence[Any], mask: NDArray[np.bool_]) -> Column | None:
    if all(one is None for one in values):
        return None
    # Objects, so that a row without has None.
    return _spread(reader.many(objects(values))[0].astype(object, copy=False), mask)


def _recorded(values: Sequence[Any]) -> Column | None:
    return None if all(one is None for one in values) else _plain(values)


def _joined(parts: Sequence[Events], name: str) -> Column | None:
    """Join a column of all parts, or return None if no part has it."""
    columns = [getattr(part, name) for part in parts]
    kinds = {one.dtype for one in columns if one is not None}
    if not kinds:
        return None
    if name == "recorded" and any(one is None for one in columns):
        kinds.add(np.dtype(object))  # a row without a time must have None, and not 0
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(object)
    return np.concatenate(
        [
            _nothing(len(part), kind) if one is None else one.astype(kind, copy=False)
            for part, one in zip(parts, columns, strict=True)
        ]
    )


def _nothing(size: int, kind: np.dtype[Any]) -> Column:
    """Return the column of a part that lacks it."""
    return np.full(size, None) if kind.hasobject else np.zeros(size, kind)


class BatchNames(NamedTuple):
    """The models of a batch, and the pairs of model and segment of its observations.

    Each name is listed once, in order of appearance, and each row has its number in that order.
    """

    models: list[str]
    model: Numbers
    pairs: list[tuple[str, str]]
    pair: Numbers


def names_of(events: Events, most: int) -> BatchNames | None:
    """Return the names of a batch; None if one is not a string, or longer than `most` bytes."""
    observed = ~events.labels
    models, segments = _distinct(events.models, most), _distinct(events.segments[observed], most)
    if models is None or segments is None:
        return None
    (model, names), (segment, parts) = models, segments
    if len(names) == len(parts) == 1:  # sorting takes longer than all the rest
        return BatchNames(names, model, [(names[0], parts[0])], segment)
    # A pair is one number, as there can be too many of them for a table.
    pairs = model[observed].astype(np.int64) * len(parts) + segment
    found, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), np.uint32)
    number[order] = np.arange(len(order), dtype=np.uint32)
    of, part = (one.tolist() for one in np.divmod(found[order], len(parts)))
    named = [(names[one], parts[other]) for one, other in zip(of, part, strict=True)]
    return BatchNames(names, model, named, number[pair])


def _distinct(texts: Column, most: int) -> tuple[Numbers, list[str]] | None:
    numbers = np.empty(len(texts), np.uint32)
    names = core.distinct(texts.tolist(), numbers, most)
    return None if names is None else (numbers, names)


class Reading(NamedTuple):
    """What records become."""

    events: Events
    rows: Integers  # row of the record of each event
    refused: Sequence[Refused]  # the other rows, in order
    front: Front  # where their user writes options


class Schema(ColumnSchema):
    """How records become events; the parameters are those of `ColumnSchema`."""

    def read(
        self,
        raw: RawColumns,
        numbers: Sequence[int],
        broken: Mapping[int, BadRecordError] | None = None,
    ) -> Reading:
        """Return the events of records; the parameters are those of `columns`.

        Examples
        --------
        >>> import numpy as np
        >>> from abers.stream.cells import Cells
        >>> from abers.stream.cells import Fields
        >>> raw = {"id": Cells(np.array(["a", "b"], object)), "time": Cells(np.array([1, 2]))}
        >>> raw["score"] = Cells(np.array(["0.5", "high"], object))
        >>> reading = Schema(Fields()).read(raw, [1, 2])
        >>> reading.events.scores, reading.rows, reading.refused[0].reason
        (array([0.5]), array([0]), 'bad-score')
        """
        columns, rows, refused = self.columns(raw, numbers, broken)
        return Reading(Events(*columns), rows, refused, self.readers.front)
