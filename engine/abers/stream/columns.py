"""Events and outputs by columns.

Governing rule: a batch is a handful of arrays, and an event or an output becomes
an object when somebody asks for it, not before; that object is equal to the one
the columns were made of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import repeat
from typing import Any, Generic, TypeAlias, TypeVar, overload

import msgspec
import numpy as np
from numpy.typing import NDArray

from abers.stream.events import Event, Label, Observation

__all__ = ["Column", "Events", "Rows", "column", "objects"]

Column: TypeAlias = NDArray[Any]
"""Of float64, int64 or bool, or of objects."""

T = TypeVar("T", bound=msgspec.Struct)

_PLAIN: Mapping[type, type[np.generic]] = {float: np.float64, int: np.int64, bool: np.bool_}


def objects(values: Sequence[Any]) -> Column:
    """Make a column of objects, whatever they are."""
    return np.fromiter(values, object, len(values))


def column(values: Sequence[Any]) -> Column:
    """Make a column of numbers if all values are of one plain type, otherwise of objects.

    Parameters
    ----------
    values
        One a row.

    Returns
    -------
    numpy.ndarray
        Of float64, int64, bool or object; its `tolist` gives the values back.

    Examples
    --------
    >>> column([1, 2]).dtype, column([1, 2.5]).dtype, column([True]).dtype
    (dtype('int64'), dtype('O'), dtype('bool'))
    """
    kinds = {*map(type, values)}
    plain = _PLAIN.get(kinds.pop()) if len(kinds) == 1 else None
    if plain is not None:
        with suppress(OverflowError):  # a whole number of more than 64 bits
            return np.array(values, plain)
    return objects(values)


@dataclass(frozen=True, slots=True, eq=False)
class Events(Sequence[Event]):
    """Observations and labels in order of arrival; see `Observation` and `Label`.

    Attributes
    ----------
    labels
        Which rows are labels.
    ids, models
        Of objects.
    times
        Of int64, or of objects if one is no such number.
    segments
        Of observations, as objects.
    scores
        Of observations; None if there are none.
    values
        Of labels; None if there are none.
    x, extra, recorded
        Of observations, of observations, and of all; None if no row has any. What was recorded is
        of int64 if every row has it, otherwise of objects.
    awaited
        Labels of observations, at hand but not yet out: nothing may look at them before they
        are released. None if none are.

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

    @classmethod
    def of(cls, events: Sequence[Event]) -> Events:
        """Make columns of events."""
        labels = np.fromiter((type(e) is Label for e in events), bool, len(events))
        told: list[Any] = [e for e in events if type(e) is Label]
        seen: list[Any] = [e for e in events if type(e) is not Label]
        return cls(
            labels,
            objects([e.id for e in events]),
            column([e.time for e in events]),
            objects([e.model for e in events]),
            _spread(objects([e.segment for e in seen]), ~labels),
            _spread(column([e.score for e in seen]), ~labels) if seen else None,
            _spread(column([e.value for e in told]), labels) if told else None,
            _given([e.x for e in seen], ~labels),
            _given([e.extra for e in seen], ~labels),
            _recorded([e.recorded for e in events]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Put batches, at least one, behind each other."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        columns: list[Any] = [_joined(parts, name) for name in _NAMES]
        return cls(*columns)

    def take(self, rows: Any) -> Events:  # noqa: ANN401 - whatever indexes an array
        """Give some rows, by numbers, a mask or a slice."""
        columns: list[Any] = [getattr(self, name) for name in _NAMES]
        taken: list[Any] = [None if one is None else one[rows] for one in columns]
        return Events(*taken)

    def heads(self) -> Events:
        """Give what a prediction or an outcome repeats of the events, and nothing else."""
        columns = (self.labels, self.ids, self.times, self.models, self.segments)
        return Events(*columns, extra=self.extra)

    def __len__(self) -> int:
        """Count the events."""
        return len(self.labels)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Events: ...
    def __getitem__(self, index: int | slice) -> Event | Events:
        """Make an event, or give consecutive ones as columns."""
        if isinstance(index, slice):
            return self.take(index)
        return next(iter(self.take([index])))

    def __iter__(self) -> Iterator[Event]:
        """Make the events."""
        columns = (self.ids, self.times, self.models, self.segments)
        given = (self.scores, self.values, self.x, self.extra, self.recorded)
        for label, id_, time, model, segment, score, value, x, extra, recorded in zip(
            self.labels.tolist(),
            *map(_values, columns),
            *map(_values, given),
            strict=False,  # what is not there repeats without end
        ):
            yield (
                Label(id_, time, model, value, recorded)
                if label
                else Observation(id_, time, model, score, x, segment, recorded, extra)
            )


_NAMES = tuple(field.name for field in fields(Events))  # finding them takes longer than a row


class Rows(Sequence[T], Generic[T]):
    """Outputs of one type.

    Parameters
    ----------
    kind
        The type.
    columns
        By name of its fields, the first of them at least; fields left out have their defaults.

    Examples
    --------
    >>> class Point(msgspec.Struct):
    ...     x: int
    ...     y: int = 0
    >>> rows = Rows(Point, {"x": np.array([3, 4])})
    >>> rows[1], len(rows[:1])
    (Point(x=4, y=0), 1)
    """

    def __init__(self, kind: type[T], columns: Mapping[str, Column]) -> None:
        self.kind = kind
        self.columns = columns
        self._size = len(next(iter(columns.values())))

    def take(self, rows: Any) -> Rows[T]:  # noqa: ANN401 - whatever indexes an array
        """Give some rows, by numbers, a mask or a slice."""
        return Rows(self.kind, {name: one[rows] for name, one in self.columns.items()})

    def __len__(self) -> int:
        """Count the rows."""
        return self._size

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[T]: ...
    def __getitem__(self, index: int | slice) -> T | Rows[T]:
        """Make one object, or give consecutive rows as columns."""
        return self.take(index) if isinstance(index, slice) else next(iter(self.take([index])))

    def __iter__(self) -> Iterator[T]:
        """Make the objects."""
        names = self.kind.__struct_fields__[: len(self.columns)]
        return map(self.kind, *(self.columns[name].tolist() for name in names))


def _values(one: Column | None) -> Sequence[Any] | repeat[None]:
    return repeat(None) if one is None else one.tolist()


def _spread(values: Column, places: NDArray[np.bool_]) -> Column:
    """Put values at some places of a column, and 0 at the others, where nobody looks."""
    if len(values) == len(places):
        return values
    whole = np.zeros(len(places), values.dtype)
    whole[places] = values
    return whole


def _given(values: Sequence[Any], places: NDArray[np.bool_]) -> Column | None:
    there = any(one is not None for one in values)
    return _spread(objects(values), places) if there else None


def _recorded(values: Sequence[Any]) -> Column | None:
    return None if all(one is None for one in values) else column(values)


def _joined(parts: Sequence[Events], name: str) -> Column | None:
    columns = [getattr(part, name) for part in parts]
    kinds = {one.dtype for one in columns if one is not None}
    if not kinds:
        return None
    if name == "recorded" and any(one is None for one in columns):
        kinds.add(np.dtype(object))  # every row is looked at: one that has none says so
    kind = kinds.pop() if len(kinds) == 1 else np.dtype(object)
    return np.concatenate(
        [
            _nothing(len(part), kind) if one is None else one.astype(kind, copy=False)
            for part, one in zip(parts, columns, strict=True)
        ]
    )


def _nothing(size: int, kind: np.dtype[Any]) -> Column:
    """Fill the rows of a part that has none of the values of the others."""
    return np.full(size, None) if kind.hasobject else np.zeros(size, kind)
