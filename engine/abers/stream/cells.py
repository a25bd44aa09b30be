"""Raw columns, as a format decodes them: types, cells, masks, and the fields of an event in them.

A cell may be any object. None and the empty string mean no value.

Which rows of a batch: all, none, or those of a mask. Most columns are there in all rows of a batch,
and most batches are of one kind. `True` and `False` say so without an array; operations on arrays
cost most of what a lone record takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from itertools import compress, repeat
from numbers import Integral, Real
from operator import is_not
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from abers.exceptions import RecordError
from abers.stream.option import Phrase, said

if TYPE_CHECKING:
    from abers.arrays import Integers
    from abers.stream.option import Front, Part

__all__ = [
    "ALL",
    "CONSTANT_PREFIX",
    "FIELDS",
    "LABEL_FIELDS",
    "ROW",
    "BadRecordError",
    "Cells",
    "Column",
    "Fields",
    "Mask",
    "RawColumns",
    "Refused",
    "RefusedCell",
    "Rows",
    "any_of",
    "both",
    "cells_at",
    "column",
    "constant",
    "either",
    "is_of_record",
    "kind_of",
    "label_without_time",
    "mask_of",
    "missing",
    "numbers",
    "numbers_of",
    "objects",
    "others",
    "plain",
    "plain_nested",
    "repeated",
    "root",
    "two_in_one",
    "whole_milliseconds",
]

Column: TypeAlias = NDArray[Any]
"""Of float64, int64 or bool, or of objects."""

_OF_NUMBERS: Mapping[type, type[np.generic]] = {float: np.float64, int: np.int64, bool: np.bool_}


def objects(values: Sequence[Any]) -> Column:
    """Return a column of any objects."""
    return np.fromiter(values, object, len(values))


def column(values: Sequence[Any]) -> Column:
    """Return a column of numbers if all values are of one plain type, otherwise of objects.

    Parameters
    ----------
    values
        One a row.

    Returns
    -------
    numpy.ndarray
        Of float64, int64, bool or object; its `tolist` returns the values.

    Examples
    --------
    >>> column([1, 2]).dtype, column([1, 2.5]).dtype, column([True]).dtype
    (dtype('int64'), dtype('O'), dtype('bool'))
    """
    found = numbers(values, kind_of(values))
    return objects(values) if found is None else found


def kind_of(values: Sequence[Any]) -> type | None:
    """Return the type of all values; None if they have several, or there are no values."""
    if not values:
        return None
    first = type(values[0])  # counting it takes less than a set of the types
    return first if [*map(type, values)].count(first) == len(values) else None


def numbers(values: Sequence[Any], kind: type | None) -> Column | None:
    """Return values of one type as numbers; None if an array cannot have them as numbers."""
    if kind is not None and (plain := _OF_NUMBERS.get(kind)) is not None:
        try:
            return np.fromiter(values, plain, len(values))
        except OverflowError:  # a whole number of more than 64 bits
            return None
    return None


def repeated(value: object, size: int) -> Column:
    """Return a column of one object; `numpy.full` would make a string of its own for each row."""
    found = np.empty(size, object)
    found.fill(value)
    return found


Mask: TypeAlias = NDArray[np.bool_]

_PLAIN = frozenset([str, int, float, bool, NoneType, dict, list, datetime])


class BadRecordError(RecordError):
    """A record, or a cell of it, that cannot become an event.

    `reason` is a short name from a fixed set, by which counters group bad records; the text says
    what is wrong and how to fix it, and may name options.
    """

    def __init__(self, reason: str, *text: Part) -> None:
        super().__init__(reason, *text)  # all of them, so that a pickle can make it again
        self.reason, self.text = reason, text

    def __str__(self) -> str:
        """Return the text in the words of a call."""
        return self.said("python")

    def said(self, front: Front) -> str:
        """Return the text in the words of a front end."""
        return said(self.text, front)


class RefusedCell(NamedTuple):
    """A cell, or its row, that cannot be read, with what its `BadRecordError` says.

    The error itself would keep the record in memory.
    """

    row: int
    reason: str
    text: tuple[Part, ...]


class Refused(NamedTuple):
    """A row that cannot become an event, with what its `BadRecordError` says to its user."""

    row: int
    reason: str
    detail: str


class Cells(NamedTuple):
    """The cells of a field, one a row.

    Attributes
    ----------
    values
        Of int64, float64, bool or datetime64[ms], or objects.
    valid
        Rows that have a value; None if all have. None and "" mean no value, too.
    kind
        Type of all objects where there is a value, if it is known.
    """

    values: Column
    valid: Mask | None = None
    kind: type | None = None

    @classmethod
    def of(cls, cells: Sequence[Any]) -> Cells:
        """Return the cells that a decoder lists, None where a row has no value.

        The others are of plain types, and of no subclass of str.

        Examples
        --------
        >>> Cells.of([0.5, None])
        Cells(values=array([0.5, 0. ]), valid=array([ True, False]), kind=None)
        """
        kind = _kind(cells)
        if (found := numbers(cells, kind)) is not None:
            return cls(found)
        if kind is NoneType:
            return cls.none(len(cells))
        if kind is None and len(kinds := {*map(type, cells)} - {NoneType}) == 1:
            return cls._of_given(cells, kinds.pop())
        return cls(objects(cells), None, kind)

    @classmethod
    def _of_given(cls, cells: Sequence[Any], kind: type) -> Cells:
        """Return cells of one kind where they are not None."""
        valid = _are_given(cells)
        found = numbers([*compress(cells, valid.tolist())], kind)
        if found is None:
            return cls(objects(cells), valid, kind)
        whole = np.zeros(len(cells), found.dtype)
        whole[valid] = found
        return cls(whole, valid)

    @classmethod
    def none(cls, size: int) -> Cells:
        """Return the cells of a field that no row has."""
        return cls(np.zeros(size, bool), np.zeros(size, bool))

    def present(self) -> Mask | None:
        """Return which rows have a value; None if all have.

        Examples
        --------
        >>> Cells(np.array([5, None, ""], object)).present()
        array([ True, False, False])
        """
        if self.values.dtype != object or self.kind not in {None, str}:
            return self.valid
        cells = self.values.tolist()
        if _all_true(cells):
            return self.valid
        kinds: set[type] = {*map(type, cells)} if self.kind is None else {self.kind}
        if kinds <= {str, NoneType}:
            found = np.fromiter(map(bool, cells), bool, len(cells))
        else:
            found = _are_given(cells)
            for row in np.flatnonzero(found).tolist() if _has_texts(kinds) else ():
                found[row] = not (isinstance(cells[row], str) and not cells[row])
        return found if self.valid is None else found & self.valid


RawColumns: TypeAlias = Mapping[str, Cells]
"""Cells by the name of a top-level field, or by the path of a part of the record's metadata.

A field that no record has may be left out."""


def plain(cell: Any) -> Any:  # noqa: ANN401 - anything a column holds
    """Return the plain Python value that a cell equals, or the cell itself.

    Any whole number is an int, any other real number the nearest float, and any kind of string a
    str.

    Examples
    --------
    >>> plain(np.int64(5)), plain(np.str_("a")), plain(Decimal("0.1")), plain([1])
    (5, 'a', 0.1, [1])
    """
    if type(cell) in _PLAIN or isinstance(cell, np.datetime64 | np.timedelta64):
        return cell
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str):
        return str.__str__(cell)
    with suppress(ValueError, TypeError, OverflowError):
        if isinstance(cell, Integral) and not isinstance(cell, bool):
            return int(cell)
        if isinstance(cell, Real | Decimal) and not isinstance(cell, bool):
            return float(cell)
        if isinstance(cell, datetime):  # such as a timestamp of pandas
            return datetime.combine(cell.date(), cell.timetz())
    return cell


def plain_nested(cell: Any) -> Any:  # noqa: ANN401
    """Return a cell, or objects and lists of cells, as `plain` does.

    Examples
    --------
    >>> plain_nested({"a": [np.float32(0.5), "b"]})
    {'a': [0.5, 'b']}
    """
    if type(cell) is dict:
        return {plain(name): plain_nested(one) for name, one in cell.items()}
    if type(cell) in {list, tuple}:
        return type(cell)(map(plain_nested, cell))
    if isinstance(cell, np.ndarray):
        return plain_nested(cell.tolist())
    if isinstance(cell, datetime | np.datetime64) and cell != cell:  # noqa: PLR0124 - NaT
        return None
    return whole_milliseconds(cell) if isinstance(cell, np.datetime64) else plain(cell)


def whole_milliseconds(moment: np.datetime64) -> int:
    """Return the milliseconds from 1970 to a moment.

    Examples
    --------
    >>> whole_milliseconds(np.datetime64("1970-01-02"))
    86400000
    """
    return int(moment.astype("datetime64[ms]").astype(np.int64))


def _kind(cells: Sequence[Any]) -> type | None:
    """Return the type of all cells; joining texts takes a third of the time of asking each."""
    if not cells or type(cells[0]) is not str:
        return kind_of(cells)
    try:
        "".join(cells)
    except TypeError:
        return None
    return str


def _all_true(cells: Sequence[Any]) -> bool:
    try:
        return all(cells)
    except (ValueError, TypeError):  # of an array, or NA of pandas
        return False


def _are_given(cells: Sequence[Any]) -> Mask:
    return np.fromiter(map(is_not, cells, repeat(None)), bool, len(cells))


def _has_texts(kinds: set[type]) -> bool:
    return any(issubclass(kind, str) for kind in kinds)


Rows: TypeAlias = Mask | bool
"""A mask; True for all rows, and False for none."""

ALL: Final[Rows] = True


def both(one: Rows, two: Rows) -> Rows:
    """Return the rows that are in both."""
    if isinstance(one, bool):
        return two if one else False
    if isinstance(two, bool):
        return one if two else False
    return one & two


def either(one: Rows, two: Rows) -> Rows:
    """Return the rows that are in one or in both."""
    if isinstance(one, bool):
        return one or two
    if isinstance(two, bool):
        return two or one
    return one | two


def others(rows: Rows) -> Rows:
    """Return all other rows."""
    return not rows if isinstance(rows, bool) else ~rows


def any_of(rows: Rows) -> bool:
    """Return whether there is a row; True of a batch without any."""
    return rows if isinstance(rows, bool) else bool(rows.any())


def mask_of(rows: Rows, size: int) -> Mask:
    """Return the mask of a batch of so many rows."""
    return np.full(size, rows) if isinstance(rows, bool) else rows


def numbers_of(rows: Rows, size: int) -> Integers:
    """Return the numbers of the rows in a batch of so many."""
    return np.flatnonzero(mask_of(rows, size))


CONSTANT_PREFIX = "const:"
ROW = "row"
FIELDS = Phrase(
    "in [input.fields]", "in fields", "with --score, --label, --id, --time or --model-column"
)
"""Where a user names fields: in a configuration, by options of a command, or in a call."""
_WHOLE_RECORDS = Phrase(
    ", or set input.delay if each record of a file has its label",
    ", or name in fields the column of the label's time as label_time",
    "",
)
LABEL_FIELDS = Phrase("in [input.label_fields]", "in fields", "with --id, --label or --label-time")
"""Where a user names the fields of a second input, of labels."""
_OF_RECORD = "record:"


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Paths of the fields of a record.

    Each is the name of a field, a dotted path into nested fields ("payload.id"), or a constant
    ("const:fraud"); id and time may be "row", the number of the record.
    """

    id: str = "id"
    time: str = "time"
    model: str = "model"  # a record without one belongs to the model "default"
    segment: str | None = None
    score: str | Mapping[str, str] = "score"  # of several classes: one object, or a path by class
    x: str | Sequence[str] | None = None  # of the features, or the fields that are features
    label: str = "label"
    label_time: str | None = None  # of a record that has an observation and its label
    passthrough: Sequence[str] = ()  # fields that are passed through to the prediction
    recorded: str | None = None  # when the record was written, if its transport does not say

    @property
    def scored(self) -> tuple[str, ...]:
        """Paths of scores and features: a record with any of them is an observation."""
        score = (self.score,) if isinstance(self.score, str) else tuple(self.score.values())
        return (*score, *self.features)

    @property
    def features(self) -> Sequence[str]:
        """Paths of the features."""
        return [self.x] if isinstance(self.x, str) else self.x or ()


def constant(path: str) -> str | None:
    """Return the value of a constant path, or None if the path is not a constant.

    Examples
    --------
    >>> constant("const:fraud"), constant("model")
    ('fraud', None)
    """
    return path.removeprefix(CONSTANT_PREFIX) if path.startswith(CONSTANT_PREFIX) else None


def is_of_record(path: str) -> bool:
    """Return whether a path names metadata of a record, such as its key or a header.

    The decoder of the record adds the metadata as fields named by their paths.

    Examples
    --------
    >>> is_of_record("record:key"), is_of_record("key")
    (True, False)
    """
    return path.startswith(_OF_RECORD)


def root(path: str) -> tuple[str, ...]:
    """Return the top-level fields that a path may read.

    Examples
    --------
    >>> root("payload.id"), root("const:fraud")
    (('payload.id', 'payload'), ())
    """
    if path == ROW or constant(path) is not None:
        return ()
    return (path, path.split(".", 1)[0]) if _is_nested(path) else (path,)


def cells_at(path: str, raw: RawColumns, numbers: Sequence[int]) -> Cells:
    """Return the cells at a path of records with these numbers.

    Examples
    --------
    >>> payloads = np.array([{"id": "a"}, None], object)
    >>> cells_at("payload.id", {"payload": Cells(payloads)}, [1, 2]).values.tolist()
    ['a', None]
    """
    if path == ROW:
        return Cells(np.array(numbers, np.int64))
    if (same := constant(path)) is not None:
        return Cells(repeated(same, len(numbers)))
    if (found := raw.get(path)) is not None and not _is_nested(path):
        return found
    if _is_nested(path):
        return _nested(path, found, raw.get(path.split(".", 1)[0]), len(numbers))
    return Cells.none(len(numbers))


def label_without_time(label: str, time: str) -> BadRecordError:
    """Return the error for a record with a label without its time.

    Examples
    --------
    >>> print(label_without_time("y", "seen"))
    the record has a "y", but no "seen"; fill it in, or leave "y" empty until it is known
    """
    detail = (
        f'the record has a "{label}", but no "{time}"; fill it in, or leave "{label}" empty until '
        "it is known"
    )
    return BadRecordError("missing-field", detail)


def two_in_one(scored: Sequence[str], label: str) -> BadRecordError:
    """Return the error for a record of a log that is an observation and has a label.

    Examples
    --------
    >>> print(two_in_one(["score"], "y"))
    the record has "score" and "y", but labels have records of their own here; write the label ...
    """
    named = " and ".join(f'"{path}"' for path in scored)
    detail = (
        f'the record has {named} and "{label}", but labels have records of their own here; write '
        "the label in a later record with the same id"
    )
    return BadRecordError("bad-label", detail, _WHOLE_RECORDS)


def missing(*paths: str) -> BadRecordError:
    """Return the error for a record without a value at any of some paths.

    A constant is not named, as no record can have it.

    Examples
    --------
    >>> print(missing("score", "label"))
    the record has no "score" and no "label"; fill it in, drop the record, or name its ...
    """
    named = " and ".join(f'no "{path}"' for path in paths if constant(path) is None)
    remedy = "fill it in, drop the record, or name its field "
    return BadRecordError("missing-field", f"the record has {named}; {remedy}", FIELDS)


def _is_nested(path: str) -> bool:
    return "." in path and not is_of_record(path)


def _nested(path: str, own: Cells | None, outer: Cells | None, size: int) -> Cells:
    """Return cells within others, where no column has the path as its name."""
    if outer is None:
        return own or Cells.none(size)
    if own is not None and own.present() is None:
        return own
    valid = np.ones(size, bool) if outer.valid is None else outer.valid
    keys = path.split(".")[1:]
    within = [
        _walk(one, keys) if there else None
        for one, there in zip(outer.values.tolist(), valid.tolist(), strict=True)
    ]
    if own is None:
        return Cells(objects(within))
    there = own.present()
    return Cells(np.where(there, own.values.astype(object), objects(within)))


def _walk(found: Any, keys: Sequence[str]) -> Any:  # noqa: ANN401 - anything the record holds
    for key in keys:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found
