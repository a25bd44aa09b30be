"""Columns of fields, and their conversion to events, all rows at once.

Only columns whose every value is valid are converted: strings, integers, finite numbers, or
strings of these. For anything else the result is None, and the rows are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import repeat
from operator import is_not
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from abers.stream import Events
from abers.stream.column_types import Column, column, objects, repeated
from abers.stream.readers import ClassScoresReader
from abers.stream.schema_columns import DEFAULT_MODEL
from abers.stream.times import TimeReader
from abers_connectors.mapping.bad_record import BadRecordError
from abers_connectors.mapping.fields import constant, is_plain

if TYPE_CHECKING:
    from abers.stream.schema_columns import Readers
    from abers_connectors.mapping.fields import Fields

__all__ = [
    "EventBuilder",
    "FieldColumn",
    "FieldColumns",
    "label_builder",
    "labelled_builder",
    "mixed_builder",
]

Mask: TypeAlias = npt.NDArray[np.bool_]


class FieldColumn(NamedTuple):
    """Values of one field."""

    values: Column  # strings as objects, int64, float64 or bool
    valid: Mask | None = None  # rows that have a value; None if all have

    @classmethod
    def of(cls, values: list[Any]) -> FieldColumn:
        """Return the column of some values, None where there is none."""
        if None not in values:
            return cls(column(values))
        valid = np.fromiter(map(is_not, values, repeat(None)), bool, len(values))
        return cls(objects(values), valid)

    def complete(self) -> Column | None:
        """Return the values, or None if some are missing."""
        return self.values if self.valid is None else None


FieldColumns: TypeAlias = Mapping[str, FieldColumn]
"""Columns by field name; a field that no row has is left out."""

EventBuilder: TypeAlias = Callable[[FieldColumns], Events | None]
"""Converts columns to events, or returns None if the rows must be read one by one."""


def mixed_builder(fields: Fields, readers: Readers) -> EventBuilder:
    """Return the builder for inputs that hold both: a row with a score is an observation."""

    def build(head: Events, columns: FieldColumns) -> Events | None:
        observed = _valid(columns.get(str(fields.score)), len(head))
        labels = ~observed
        scores = _scores(columns, fields.score, observed, readers)
        found = _read_labels(columns.get(fields.label), labels, readers.label.one)
        if (scores is None and observed.any()) or (found is None and labels.any()):
            return None
        return replace(head, labels=labels, scores=scores, values=found)

    return _compiled(fields, build, fields.score, fields.label)


def label_builder(fields: Fields, readers: Readers) -> EventBuilder:
    """Return the builder for inputs that hold labels only."""

    def build(head: Events, columns: FieldColumns) -> Events | None:
        every = np.ones(len(head), bool)
        found = _read_labels(columns.get(fields.label), every, readers.label.one)
        return None if found is None else replace(head, labels=every, values=found)

    return _compiled(fields, build, fields.label)


def labelled_builder(fields: Fields, readers: Readers) -> EventBuilder:
    """Return the builder for rows with a score and its label, which is released later."""

    def build(head: Events, columns: FieldColumns) -> Events | None:
        scores = _scores(columns, fields.score, np.ones(len(head), bool), readers)
        given = columns.get(fields.label)
        known = _labelled(given, len(head))
        awaited = _awaited(given, known, readers.label.one)
        if scores is None or awaited is None:
            return None
        if fields.label_time is None:
            return replace(head, scores=scores, awaited=awaited)
        times = _label_times(columns.get(fields.label_time), known, head.times)
        if times is None:
            return None
        return replace(head, scores=scores, awaited=awaited, awaited_times=times)

    timed = () if fields.label_time is None else (fields.label_time,)
    return _compiled(fields, build, fields.score, fields.label, *timed)


def _compiled(
    fields: Fields,
    build: Callable[[Events, FieldColumns], Events | None],
    *paths: str | Mapping[str, str],
) -> EventBuilder:
    """Return a builder that reads ids, times and names first, and calls `build` with them.

    If a path is not the name of a plain field, the builder always returns None.
    """
    if not _are_plain(fields, *paths):
        return lambda _columns: None

    def events(columns: FieldColumns) -> Events | None:
        head = _head(fields, columns)
        return None if head is None else build(head, columns)

    return events


def _are_plain(fields: Fields, *paths: str | Mapping[str, str]) -> bool:
    if not all(isinstance(path, str) for path in paths):
        return False
    names = [fields.model] if fields.segment is None else [fields.model, fields.segment]
    named = [path for path in names if constant(path) is None]
    plain = all(map(is_plain, (fields.id, fields.time, *named, *map(str, paths))))
    return plain and not (fields.x or fields.passthrough)


def _head(fields: Fields, columns: FieldColumns) -> Events | None:
    """Return events with ids, times, models and segments only."""
    ids = _strings(columns.get(fields.id))
    if ids is None or (times := _times(columns.get(fields.time))) is None:
        return None
    size = len(ids)
    models = _names(columns, fields.model, DEFAULT_MODEL, size)
    segments = _names(columns, fields.segment or "", "", size)
    if models is None or segments is None:
        return None
    return Events(np.zeros(size, bool), ids, times, models, segments)


def _names(columns: FieldColumns, path: str, default: str, size: int) -> Column | None:
    if (same := constant(path)) is None and path in columns:
        return _strings(columns[path])
    return repeated(same or default, size)


def _valid(given: FieldColumn | None, size: int) -> Mask:
    """Return which rows have a value; an empty string is none."""
    if given is None:
        return np.zeros(size, bool)
    valid = np.ones(size, bool) if given.valid is None else given.valid
    if given.values.dtype == object and "" in (texts := given.values.tolist()):
        valid = valid & np.fromiter((text != "" for text in texts), bool, size)
    return valid


def _labelled(given: FieldColumn | None, size: int) -> Mask:
    """Return which rows have a label; NaN is none."""
    known = _valid(given, size)
    if given is not None and given.values.dtype == np.float64:
        return known & ~np.isnan(given.values)
    return known


def _awaited(given: FieldColumn | None, known: Mask, read: Callable[[Any], Any]) -> Column | None:
    """Return labels, None where none is known yet; None if one of them is not a label."""
    if not known.any():
        return repeated(None, len(known))
    found = _read_labels(given, known, read)
    return found if found is None or known.all() else np.where(known, found.astype(object), None)


def _label_times(given: FieldColumn | None, known: Mask, own: Column) -> Column | None:
    """Return the times of labels, that of the observation where none is known yet."""
    if not known.any():
        return own
    if given is None or not _valid(given, len(known))[known].all():
        return None
    found = _times(FieldColumn(given.values[known]))
    if found is None or (found < own[known]).any():
        return None
    times = own.copy()
    times[known] = found
    return times


def _scores(columns: FieldColumns, path: object, rows: Mask, readers: Readers) -> Column | None:
    """Return the scores of some rows; None if rows must be read one by one."""
    given = columns.get(str(path))
    if given is None or not rows.any() or not _valid(given, len(rows))[rows].all():
        return None
    if given.values.dtype == object and str not in {*map(type, given.values[rows].tolist())}:
        return given.values  # the decoder has checked that they are objects of numbers, or lists
    if isinstance(readers.score, ClassScoresReader):
        return None
    found = _numbers(given.values[rows], np.float64)
    return _spread(found, rows) if found is not None and np.isfinite(found).all() else None


def _times(given: FieldColumn | None) -> Column | None:
    whole = None if given is None else given.complete()
    found = None if whole is None else _numbers(whole, np.int64)
    return found if found is not None and TimeReader().are_times(found) else None


def _read_labels(
    given: FieldColumn | None, rows: Mask, read: Callable[[Any], Any]
) -> Column | None:
    """Return the labels of some rows; None if one of them is not a label."""
    if given is None or not rows.any() or not _valid(given, len(rows))[rows].all():
        return None
    present = given.values[rows]
    found = present.tolist()
    try:
        known = {value: read(value) for value in dict.fromkeys(found)}
    except BadRecordError:
        return None
    if present.dtype != object and all(_is_same(value, label) for value, label in known.items()):
        return _spread(present, rows)
    return _spread(column([known[value] for value in found]), rows)


def _is_same(value: object, label: object) -> bool:
    return type(value) is type(label) and value == label


def _strings(given: FieldColumn | None) -> Column | None:
    whole = None if given is None else given.complete()
    if whole is None or whole.dtype != object or "" in whole.tolist():
        return None
    return whole


def _numbers(found: Column, kind: type[np.int64 | np.float64]) -> Column | None:
    if found.dtype != object:
        return found if found.dtype == kind else None
    texts = found.tolist()
    read = int if kind is np.int64 else float
    try:
        # Python allows underscores between digits; records do not.
        return None if "_" in "".join(texts) else np.fromiter(map(read, texts), kind, len(texts))
    except (TypeError, ValueError, OverflowError):
        return None


def _spread(found: Column, rows: Mask) -> Column:
    """Return a column of all rows with values in some of them."""
    if len(found) == len(rows):
        return found
    whole = np.zeros(len(rows), found.dtype)
    whole[rows] = found
    return whole
