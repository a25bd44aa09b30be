"""Raw columns, as a format decodes them, and the errors of their cells.

A cell may be any object. None and the empty string mean no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from itertools import compress, repeat
from numbers import Integral, Real
from operator import is_not
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from abers.exceptions import RecordError
from abers.stream.column_types import kind_of, numbers, objects
from abers.stream.option import said

if TYPE_CHECKING:
    from abers.stream.column_types import Column
    from abers.stream.option import Front, Part

__all__ = [
    "BadRecordError",
    "Cells",
    "Mask",
    "RawColumns",
    "Refused",
    "RefusedCell",
    "plain",
    "plain_nested",
    "whole_milliseconds",
]

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
