"""From columns to events, all rows at once.

Governing rule: only columns that are plainly right are taken (texts, whole
numbers, finite numbers, or texts of such); at the least doubt the answer is
None, and the rows are read one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from abers.stream import Events
from abers.stream.columns import Column, column
from abers_connectors import values
from abers_connectors._paths import constant, is_plain
from abers_connectors.records import BadRecordError

if TYPE_CHECKING:
    from abers_connectors.fields import Fields
    from abers_connectors.reads import Reads

__all__ = ["Columns", "Given", "labelled", "labels", "mixed"]

Mask: TypeAlias = npt.NDArray[np.bool_]


class Given(NamedTuple):
    """A column of a file.

    Parameters
    ----------
    values
        Texts as objects, int64, float64 or bool.
    there
        Which rows have a value; None if all have.
    """

    values: Column
    there: Mask | None = None

    def whole(self) -> Column | None:
        """Give the values if all are there."""
        return self.values if self.there is None else None


Columns: TypeAlias = Mapping[str, Given]
"""By name; one that is left out is not there."""


def mixed(fields: Fields, reads: Reads) -> Callable[[Columns], Events | None]:
    """Compile what makes observations, which have a score, and labels of columns."""
    plain = _plain(fields, fields.score, fields.label)

    def events(columns: Columns) -> Events | None:
        head = _head(fields, columns) if plain else None
        if head is None:
            return None
        seen = _there(columns.get(str(fields.score)), len(head))
        told = ~seen
        scores = _scores(columns, fields.score, seen, reads)
        outcomes = _values(columns.get(fields.label), told, reads.label)
        if (scores is None and seen.any()) or (outcomes is None and told.any()):
            return None
        return replace(head, labels=told, scores=scores, values=outcomes)

    return events


def labels(fields: Fields, reads: Reads) -> Callable[[Columns], Events | None]:
    """Compile what makes labels of columns."""
    plain = _plain(fields, fields.label)

    def events(columns: Columns) -> Events | None:
        head = _head(fields, columns) if plain else None
        if head is None:
            return None
        told = np.ones(len(head), bool)
        outcomes = _values(columns.get(fields.label), told, reads.label)
        return None if outcomes is None else replace(head, labels=told, values=outcomes)

    return events


def labelled(fields: Fields, reads: Reads) -> Callable[[Columns], Events | None]:
    """Compile what makes observations of columns, their labels not yet out."""
    plain = _plain(fields, fields.score, fields.label)

    def events(columns: Columns) -> Events | None:
        head = _head(fields, columns) if plain else None
        if head is None:
            return None
        seen = np.ones(len(head), bool)
        scores = _scores(columns, fields.score, seen, reads)
        awaited = _values(columns.get(fields.label), seen, reads.label)
        if scores is None or awaited is None:
            return None
        return replace(head, scores=scores, awaited=awaited)

    return events


def _plain(fields: Fields, *paths: str | Mapping[str, str]) -> bool:
    if not all(isinstance(path, str) for path in paths):
        return False
    names = [fields.model] if fields.segment is None else [fields.model, fields.segment]
    named = [path for path in names if constant(path) is None]
    plain = all(map(is_plain, (fields.id, fields.time, *named, *map(str, paths))))
    return plain and not (fields.x or fields.extra)


def _head(fields: Fields, columns: Columns) -> Events | None:
    """Give ids, times, models and segments, all of observations as yet."""
    ids = _texts(columns.get(fields.id))
    if ids is None or (times := _times(columns.get(fields.time))) is None:
        return None
    size = len(ids)
    models = _names(columns, fields.model, values.DEFAULT_MODEL, size)
    segments = _names(columns, fields.segment or "", "", size)
    if models is None or segments is None:
        return None
    return Events(np.zeros(size, bool), ids, times, models, segments)


def _names(columns: Columns, path: str, default: str, size: int) -> Column | None:
    if (same := constant(path)) is None and path in columns:
        return _texts(columns[path])
    return np.full(size, same or default, object)


def _there(given: Given | None, size: int) -> Mask:
    """Tell which rows have a value; an empty text is none."""
    if given is None:
        return np.zeros(size, bool)
    there = np.ones(size, bool) if given.there is None else given.there
    if given.values.dtype == object and "" in (texts := given.values.tolist()):
        there = there & np.fromiter((text != "" for text in texts), bool, size)
    return there


def _scores(columns: Columns, path: object, rows: Mask, reads: Reads) -> Column | None:
    """Give the scores of some rows; None if one of them is not plainly right."""
    given = columns.get(str(path))
    if given is None or not rows.any() or not _there(given, len(rows))[rows].all():
        return None
    if given.values.dtype == object and str not in {*map(type, given.values[rows].tolist())}:
        return given.values  # the decoder has seen that they are mappings to numbers, or lists
    if reads.type == dict[str, float]:
        return None
    found = _numbers(given.values[rows], np.float64)
    return _spread(found, rows) if found is not None and np.isfinite(found).all() else None


def _times(given: Given | None) -> Column | None:
    whole = None if given is None else given.whole()
    found = None if whole is None else _numbers(whole, np.int64)
    return found if found is not None and values.are_plain_times(found) else None


def _values(given: Given | None, rows: Mask, read: Callable[[Any], Any]) -> Column | None:
    """Read the labels of some rows; None if one of them is none."""
    if given is None or not rows.any() or not _there(given, len(rows))[rows].all():
        return None
    there = given.values[rows]
    found = there.tolist()
    try:
        known = {value: read(value) for value in dict.fromkeys(found)}
    except BadRecordError:
        return None
    if there.dtype != object and all(_is_same(value, label) for value, label in known.items()):
        return _spread(there, rows)
    return _spread(column([known[value] for value in found]), rows)


def _is_same(value: object, label: object) -> bool:
    return type(value) is type(label) and value == label


def _texts(given: Given | None) -> Column | None:
    whole = None if given is None else given.whole()
    if whole is None or whole.dtype != object or "" in whole.tolist():
        return None
    return whole


def _numbers(found: Column, kind: type[np.int64 | np.float64]) -> Column | None:
    if found.dtype != object:
        return found if found.dtype == kind else None
    texts = found.tolist()
    read = int if kind is np.int64 else float
    try:
        # An underscore, which Python allows between digits, is none of a number's.
        return None if "_" in "".join(texts) else np.fromiter(map(read, texts), kind, len(texts))
    except (TypeError, ValueError, OverflowError):
        return None


def _spread(found: Column, rows: Mask) -> Column:
    """Put values into their rows of a whole column."""
    if len(found) == len(rows):
        return found
    whole = np.zeros(len(rows), found.dtype)
    whole[rows] = found
    return whole
