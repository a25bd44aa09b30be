"""Events by columns.

A batch is a handful of arrays. An event becomes an object only on request, and equals the object
that the columns were made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from abers.exceptions import ParameterError
from abers.stream.arrow_fields import fields_of_arrow
from abers.stream.column_types import kind_of, numbers, objects
from abers.stream.event_order import filled_times, released_order, time_order
from abers.stream.events import Event, Label, Observation
from abers.stream.readers import SCALARS, CellReader, PassedReader, PlainReader
from abers.stream.schema_columns import Readers
from abers.validation import shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from abers.stream.arrow_fields import FieldNames
    from abers.stream.column_types import Column
    from abers.stream.settings import Settings

__all__ = ["Events", "as_events", "require_events"]

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
            If JSON cannot hold an extra field.
        """
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

        A row with a score or features is an observation, and one with only a label is a label. The
        label of an observation is read only if "label_time" says when it was known. A null is no
        value. A row that is no valid event, such as one without an id, is a dead letter of the
        processor.

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
    """Return events as they are, and those of a table of Arrow or a data frame."""
    return data if isinstance(data, Events) else Events.from_arrow(data, settings=settings)


def require_events(events: Sequence[Any]) -> None:
    """Raise a ParameterError unless all are observations and labels."""
    if not {*map(type, events)} <= {Observation, Label}:
        row = [type(event) in {Observation, Label} for event in events].index(False)
        msg = f"row {row}: {shown(events[row])} is neither an Observation nor a Label"
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
